package state

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the randomised tests (0: fixed seeds and a fresh one)")

// seeds returns the seeds to run, and logs how to repeat a failing one.
func seeds(t *testing.T, fixed int) []uint64 {
	t.Helper()
	if *seedFlag != 0 {
		return []uint64{*seedFlag}
	}
	list := []uint64{uint64(time.Now().UnixNano()) | 1}
	for i := range fixed {
		list = append(list, uint64(i+1))
	}
	return list
}

func forSeeds(t *testing.T, fixed int, run func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	for _, seed := range seeds(t, fixed) {
		name := t.Name()
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			run(t, rand.New(rand.NewPCG(seed, 7)))
		})
		if !ok {
			t.Fatalf("repeat: go test ./engine/state -run '^%s$' -seed=%d", name, seed)
		}
	}
}

// keyed is the surface that the tests use of both stores.
type keyed interface {
	Get(group uint32, key uint64) ([]byte, bool)
	Delete(group uint32, key uint64) bool
	Len(group uint32) int
	Bytes(group uint32) int64
	Cut(groups []uint32) Snapshot
	CutSince(groups []uint32, since Mark) Snapshot
	Keep(snap Snapshot) Mark
	Forget(m Mark)
	Install(group uint32, chunk []byte) error
	Drop(group uint32)
	Fingerprint(group uint32) uint64
	Range(group uint32, visit func(key uint64, val []byte) bool)
}

// world is a kind of store to test, and how a random value is written to it.
type world struct {
	name string
	make func() keyed
	put  func(k keyed, group uint32, key uint64, rng *rand.Rand) []byte // returns the value now held
	keys int                                                            // size of the key space of a group
}

const testGroups = 4

func heapWorld(valueBytes, keys int) world {
	return world{
		name: fmt.Sprintf("heap%d", valueBytes),
		keys: keys,
		make: func() keyed { return NewHeap(testGroups, valueBytes) },
		put: func(k keyed, group uint32, key uint64, rng *rand.Rand) []byte {
			h := k.(*Heap)
			if rng.IntN(2) == 0 {
				*h.Word(group, key) += rng.Uint64()
			} else {
				val, _ := h.Ref(group, key)
				val[rng.IntN(len(val))]++
				binary.LittleEndian.PutUint64(val[len(val)-8:], rng.Uint64())
			}
			val, _ := h.Get(group, key)
			return slices.Clone(val)
		},
	}
}

func blobWorld(keys int) world {
	return world{
		name: "blob",
		keys: keys,
		make: func() keyed { return NewBlob(testGroups) },
		put: func(k keyed, group uint32, key uint64, rng *rand.Rand) []byte {
			val := make([]byte, rng.IntN(40))
			for i := range val {
				val[i] = byte(rng.Uint32())
			}
			k.(*Blob).Put(group, key, val)
			return val
		},
	}
}

func worlds() []world {
	return []world{
		heapWorld(8, 6000), heapWorld(13, 3000), heapWorld(64, 800), heapWorld(1024, 200), heapWorld(5001, 40), blobWorld(5000),
	}
}

// model is the plain counterpart of a store.
type model [testGroups]map[uint64][]byte

func newModel() *model {
	m := &model{}
	for i := range m {
		m[i] = map[uint64][]byte{}
	}
	return m
}

func (m *model) clone() *model {
	c := newModel()
	for g := range m {
		for k, v := range m[g] {
			c[g][k] = v // values are replaced, never changed
		}
	}
	return c
}

// check compares a store with the model, through every reading method.
func (m *model) check(t *testing.T, k keyed, what string) {
	t.Helper()
	for g := range m {
		group := uint32(g)
		var sum uint64
		var size int64
		for key, want := range m[g] {
			got, ok := k.Get(group, key)
			if !ok || !bytes.Equal(got, want) {
				t.Fatalf("%s: group %d key %d: got %x %v, want %x", what, g, key, got, ok, want)
			}
			sum += hashEntry(key, want)
			size += int64(8 + len(want))
		}
		seen := 0
		k.Range(group, func(key uint64, val []byte) bool {
			seen++
			if want, ok := m[g][key]; !ok || !bytes.Equal(val, want) {
				t.Fatalf("%s: group %d: range gives key %d = %x, want %x %v", what, g, key, val, want, ok)
			}
			return true
		})
		if seen != len(m[g]) || k.Len(group) != len(m[g]) || k.Bytes(group) != size || k.Fingerprint(group) != sum {
			t.Fatalf("%s: group %d: range %d, len %d, want %d; bytes %d, want %d; fingerprint %x, want %x",
				what, g, seen, k.Len(group), len(m[g]), k.Bytes(group), size, k.Fingerprint(group), sum)
		}
	}
}

// mutate makes n random operations on both.
func (m *model) mutate(w world, k keyed, rng *rand.Rand, n int) {
	for range n {
		group := uint32(rng.IntN(testGroups))
		key := uint64(rng.IntN(w.keys)) * 0x9e3779b9
		switch op := rng.IntN(1000); {
		case op < 700:
			m[group][key] = w.put(k, group, key, rng)
		case op < 999 || n < 10:
			_, had := m[group][key]
			if k.Delete(group, key) != had {
				panic("delete disagrees with the model")
			}
			delete(m[group], key)
		case rng.IntN(4) == 0:
			k.Drop(group)
			m[group] = map[uint64][]byte{}
		}
	}
}

// stream installs a snapshot into a store in chunks of random sizes, and returns
// the bytes of all chunks.
func stream(t *testing.T, snap Snapshot, to keyed, rng *rand.Rand) []byte {
	t.Helper()
	var all []byte
	lasts := 0
	for {
		chunk, group, last, done := snap.Next(nil, 64+rng.IntN(20000))
		if done {
			break
		}
		if last {
			lasts++
		}
		if err := to.Install(group, chunk); err != nil {
			t.Fatal(err)
		}
		all = append(all, chunk...)
	}
	if lasts != len(snap.Groups()) {
		t.Fatalf("%d groups ended, want %d", lasts, len(snap.Groups()))
	}
	return all
}

var allGroups = []uint32{0, 1, 2, 3}

func TestOperationsMatchModel(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			forSeeds(t, 2, func(t *testing.T, rng *rand.Rand) {
				k, m := w.make(), newModel()
				for round := range 4 {
					m.mutate(w, k, rng, 10*w.keys)
					m.check(t, k, fmt.Sprint("round ", round))
				}
			})
		})
	}
}

// Several snapshots are alive while the store is written; each must still be the
// state at its cut.
func TestSnapshotsKeepTheStateAtTheirCut(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			forSeeds(t, 2, func(t *testing.T, rng *rand.Rand) {
				k, m := w.make(), newModel()
				type pair struct {
					snap Snapshot
					m    *model
				}
				var live []pair
				for range 30 {
					m.mutate(w, k, rng, w.keys)
					live = append(live, pair{k.Cut(allGroups), m.clone()})
					if len(live) > rng.IntN(5) {
						i := rng.IntN(len(live))
						copied := w.make()
						stream(t, live[i].snap, copied, rng)
						live[i].m.check(t, copied, "copy")
						for g := range live[i].m {
							if live[i].snap.Fingerprint(uint32(g)) != copied.Fingerprint(uint32(g)) {
								t.Fatalf("fingerprint of group %d in the snapshot is not its copy's", g)
							}
						}
						live[i].snap.Release()
						live = slices.Delete(live, i, i+1)
					}
				}
				m.check(t, k, "original")
			})
		})
	}
}

// A chain of increments installed over a first whole snapshot gives the same state, and
// so does one increment over several steps.
func TestIncrementsRebuildTheState(t *testing.T) {
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			forSeeds(t, 2, func(t *testing.T, rng *rand.Rand) {
				k, m := w.make(), newModel()
				m.mutate(w, k, rng, 6*w.keys)
				each, skipping := w.make(), w.make()
				first := k.Cut(allGroups)
				stream(t, first, each, rng)
				first.Rewind()
				stream(t, first, skipping, rng)
				mark := k.Keep(first)
				old := k.Keep(first)
				first.Release()
				for range 12 {
					m.mutate(w, k, rng, rng.IntN(w.keys))
					step := k.CutSince(allGroups, mark)
					want := m.clone()
					if rng.IntN(2) == 0 {
						m.mutate(w, k, rng, rng.IntN(w.keys)) // goes on while it is read
					}
					stream(t, step, each, rng)
					want.check(t, each, "each increment")
					if rng.IntN(3) == 0 {
						step.Release()
						continue // as an aborted checkpoint: the next one starts from the same mark
					}
					next := k.Keep(step)
					k.Forget(mark)
					mark = next
					step.Release()
				}
				leap := k.CutSince(allGroups, old)
				stream(t, leap, skipping, rng)
				leap.Release()
				m.check(t, skipping, "one increment over all")
			})
		})
	}
}
