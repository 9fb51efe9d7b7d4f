package workloads

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// TestSkipping holds a thinned stream against a plain list of what was left in.
func TestSkipping(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	w, err := Open(Spec{Kind: "uniform", Keys: 50, Rate: 1000, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := NewSkipping(w)
	var want []uint64 // keys left in
	var all core.Columns
	const total = 3000
	w.Clone().Fill(&all, 0, total)
	offered, base := uint64(0), uint64(0)
	for base < total {
		n := min(uint64(r.IntN(200)), total-base)
		if r.IntN(3) == 0 {
			s.Skip(offered, n)
		} else {
			want = append(want, all.Keys[base:base+n]...)
			offered += n
		}
		base += n
	}
	for range 200 {
		from := r.IntN(len(want))
		n := r.IntN(len(want) - from + 1)
		var got core.Columns
		s.Clone().Fill(&got, uint64(from), n)
		if !slices.Equal(got.Keys, want[from:from+n]) {
			t.Fatalf("seed %d: records %d to %d differ", seed, from, from+n)
		}
	}
	if got := s.Skipped() + uint64(len(want)); got != total {
		t.Errorf("skipped and offered are %d, want %d", got, total)
	}
	if due := s.Due(total * time.Millisecond); due+s.Skipped() < total {
		t.Errorf("due %d with %d skipped", due, s.Skipped())
	}
	if got := Counts(s, uint64(len(want))).Total(); got != uint64(len(want)) {
		t.Errorf("golden answers of %d records, want %d", got, len(want))
	}
}
