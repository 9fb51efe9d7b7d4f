package verify

import (
	"testing"

	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/workloads"
)

// gapRun plays a keyed count of 40 records of each of 8 keys, of which the odd ones lose their state after 20 and miss 3 records
// each in the outage; drop takes further answers away.
func gapRun(drop func(key uint64, i int) bool) (*Oracle, *workloads.Tally, *workloads.Tally) {
	o, golden, outage := New(RunningCount, 8), &workloads.Tally{}, &workloads.Tally{}
	count := map[uint64]int64{}
	for i := range 40 {
		if i == 20 {
			o.StateLost(func(k uint64) bool { return k%2 == 1 })
			for k := uint64(1); k < 8; k += 2 {
				delete(count, k)
			}
		}
		for k := range uint64(8) {
			golden.Add(k, 1)
			if i >= 20 && i < 23 {
				outage.Add(k, 1)
				if k%2 == 1 {
					continue
				}
			}
			count[k]++
			if !drop(k, i) {
				o.Check(1, 1, []uint64{k}, []int64{count[k]})
			}
		}
	}
	return o, golden, outage
}

func TestAGapIsConfinedToTheOutageAndTheLostState(t *testing.T) {
	for _, tc := range []struct {
		name             string
		drop             func(key uint64, i int) bool
		lost, unconfined uint64
	}{
		{"as promised", func(uint64, int) bool { return false }, 12, 0},
		{"under way at the failure", func(k uint64, i int) bool { return k == 2 && i == 21 }, 13, 0},
		{"lost long after it", func(k uint64, i int) bool { return k == 2 && i >= 30 && i < 34 }, 16, 1},
		{"of a lost key long after it", func(k uint64, i int) bool { return k == 3 && i == 30 }, 13, 1},
		{"the first of the new life", func(k uint64, i int) bool { return k == 3 && i == 23 }, 13, 1},
	} {
		o, golden, outage := gapRun(tc.drop)
		a := o.Answers(golden, 1)
		if a.Lost != tc.lost || a.Wrong != 0 || a.Duplicated != 0 || a.Reordered != 0 || a.Answered+a.Lost != a.Expected {
			t.Errorf("%s: answers %+v, want %d lost and nothing else", tc.name, a, tc.lost)
		}
		if got := o.Unconfined(golden, outage, 1); got != tc.unconfined {
			t.Errorf("%s: %d unconfined, want %d", tc.name, got, tc.unconfined)
		} else if a.Unconfined = got; (Judge(recovery.Gap, true, a) != "") != (tc.unconfined > 0) {
			t.Errorf("%s: judged %q", tc.name, Judge(recovery.Gap, true, a))
		}
	}
}

func TestStateThatIsNotKnownToBeLostMayNotBeginAgain(t *testing.T) {
	o := New(RunningCount, 8)
	o.Check(1, 1, []uint64{4, 4, 4, 4}, []int64{1, 2, 1, 2})
	golden := &workloads.Tally{}
	golden.Add(4, 4)
	if a := o.Answers(golden, 1); a.Duplicated != 2 || a.Lost != 2 {
		t.Errorf("answers %+v, want 2 duplicated and 2 lost", a)
	}
}

func TestWhatALostKeyMissesLiesBehindItsFirstLife(t *testing.T) {
	o, golden, _ := gapRun(func(uint64, int) bool { return false })
	o.Answers(golden, 1)
	for v := uint64(1); v <= 40; v++ {
		if want := v <= 20 || v > 23; o.Has(3, v) != want {
			t.Errorf("answer %d of a key whose answers 21 to 23 are missing: has = %v", v, !want)
		}
	}
}
