package sim

import (
	"errors"

	"github.com/weir-bench/weir/engine/task"
)

// Times of the simulated store, in nanoseconds.
const (
	storeNS     = 100_000 // of a trip there or back, without its random part
	slowWriteNS = 20 * ms // that a write takes longer at most, now and then
)

// simStore is the URL of the simulated store.
const simStore = "sim://store"

// errStore is what the simulated store answers while it fails.
var errStore = errors.New("store sim://store: the store is full")

// entry is the place of a value in the simulated store.
type entry struct {
	operator string
	epoch    uint32
	group    uint32
	key      uint64
}

// externalStore is the simulated store. Its reads may overtake writes, also of other tasks; the writes of one task take
// place in their order, also when its worker has died meanwhile.
type externalStore struct {
	values  map[entry][]byte
	doneNS  map[[2]int]int64 // by node and task: when its last write took place …
	saidNS  map[[2]int]int64 // … and was answered
	fails   bool
	refused int
}

func newExternalStore() externalStore {
	return externalStore{values: map[entry][]byte{}, doneNS: map[[2]int]int64{}, saidNS: map[[2]int]int64{}}
}

func (w *World) tripNS() int64 { return storeNS + w.rng.Int64N(w.jitterNS) }

// refuse says why the store does not answer, if it does not.
func (s *externalStore) refuse() error {
	if !s.fails {
		return nil
	}
	s.refused++
	return errStore
}

func (w *World) readState(k *worker, r task.ReadRequest) {
	s := &w.external
	w.after(w.tripNS(), func() {
		values, err := make([]byte, len(r.Keys)*r.Space.ValueBytes), s.refuse()
		for i, key := range r.Keys {
			v := s.values[entry{r.Space.Operator, r.Space.Epoch, r.Groups[i], key}]
			copy(values[i*r.Space.ValueBytes:], v)
			w.note(key, uint64(len(v)))
		}
		w.after(w.tripNS(), func() {
			w.on(k, func() {
				w.we.Reset()
				k.w.StateRead(&r, values, err, &w.we)
				w.perform(k)
				w.wake(k, 0)
			})
		})
	})
}

func (w *World) writeState(k *worker, r task.WriteRequest) {
	s, lane := &w.external, [2]int{k.node, r.Task}
	trip := w.tripNS()
	if w.rng.IntN(20) == 0 {
		trip += w.rng.Int64N(slowWriteNS)
	}
	done := max(s.doneNS[lane]+1, w.nowNS+trip)
	said := max(s.saidNS[lane]+1, done+w.tripNS())
	s.doneNS[lane], s.saidNS[lane] = done, said
	var err error
	w.at(done, func() {
		if err = s.refuse(); err != nil {
			return
		}
		for i, key := range r.Keys {
			v := r.Values[i*r.Space.ValueBytes : (i+1)*r.Space.ValueBytes]
			s.values[entry{r.Space.Operator, r.Space.Epoch, r.Groups[i], key}] = v
			w.note(key, uint64(v[0]))
		}
	})
	w.at(said, func() {
		w.on(k, func() {
			w.we.Reset()
			k.w.StateWritten(&r, err, &w.we)
			w.perform(k)
			w.wake(k, 0)
		})
	})
}

// failStore makes the store refuse everything for a while.
func (w *World) failStore(forNS int64) {
	w.note(0x570e)
	w.external.fails = true
	w.after(forNS, func() { w.external.fails = false })
}
