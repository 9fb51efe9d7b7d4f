package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMultiset(t *testing.T) {
	for _, c := range []struct {
		golden, came []uint64
		want         Answers
		missing      []int
	}{
		{nil, nil, Answers{}, nil},
		{[]uint64{3, 1, 2}, []uint64{2, 1, 3}, Answers{Expected: 3, Answered: 3}, nil},
		{[]uint64{5, 5, 9}, []uint64{9, 5, 5, 5}, Answers{Expected: 3, Answered: 3, Duplicated: 1}, nil},
		{[]uint64{5, 5, 9}, []uint64{5}, Answers{Expected: 3, Answered: 1, Lost: 2}, []int{1, 2}},
		{[]uint64{9, 1}, []uint64{8, 1, 0, 10}, Answers{Expected: 2, Answered: 1, Lost: 1, Wrong: 3}, []int{0}},
		{nil, []uint64{8, 8}, Answers{Wrong: 2}, nil},
	} {
		m := &Multiset{}
		for _, h := range c.came {
			m.Add(h)
		}
		for range 2 { // a second look says the same
			if got, missing := m.Compare(c.golden); got != c.want || !slices.Equal(missing, c.missing) {
				t.Errorf("%v against %v: %+v, missing %v; want %+v, missing %v", c.came, c.golden, got, missing, c.want, c.missing)
			}
		}
		m.AddUnreadable()
		if got, _ := m.Compare(c.golden); got.Wrong != c.want.Wrong+1 {
			t.Errorf("an unreadable output is not counted as wrong: %+v", got)
		}
	}
}

// TestMultisetFindsPlants changes a right run in known ways and looks for exactly those.
func TestMultisetFindsPlants(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	golden := make([]uint64, 1000)
	for i := range golden {
		golden[i] = uint64(r.IntN(700)) * 2 // even, and some more than once
	}
	came := slices.Clone(golden)
	r.Shuffle(len(came), func(i, j int) { came[i], came[j] = came[j], came[i] })
	lost, doubled, wrong := r.IntN(50), r.IntN(50), r.IntN(50)
	came = came[lost:]
	for i := range wrong {
		came = append(came, uint64(i)*2+1)
	}
	m, extra := &Multiset{}, came[:doubled]
	for _, h := range came {
		m.Add(h)
	}
	before, _ := m.Compare(golden)
	for _, h := range extra {
		m.Add(h)
	}
	after, _ := m.Compare(golden)
	what := fmt.Sprintf("seed %d: %d lost, %d doubled, %d wrong", seed, lost, doubled, wrong)
	if before.Lost != uint64(lost) || before.Wrong != uint64(wrong) || before.Duplicated != 0 {
		t.Errorf("%s: %+v", what, before)
	}
	// A second copy of an answer that is due twice and came once is the one that was lost.
	if after.Duplicated != uint64(doubled)-(before.Lost-after.Lost) || after.Wrong != before.Wrong {
		t.Errorf("%s: with doubles %+v", what, after)
	}
}
