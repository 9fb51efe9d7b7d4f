package task

import (
	"math"

	"github.com/weir-bench/weir/engine/core"
)

// serviceNS returns the service time of input number n with the given key: a pure function, so that a standby and a
// replay spend the same.
func serviceNS(s *core.Service, seed, key, n uint64) int64 {
	mean := float64(s.Mean)
	switch s.Distribution {
	case "exponential":
		return int64(-mean * math.Log(unit(core.Mix64(seed^key^n*0x9e3779b97f4a7c15))))
	case "lognormal":
		h := core.Mix64(seed ^ key ^ n*0x9e3779b97f4a7c15)
		// Box-Muller on two halves of the stream; the mean of exp(σZ − σ²/2) is 1.
		z := math.Sqrt(-2*math.Log(unit(h))) * math.Cos(2*math.Pi*unit(core.Mix64(h)))
		return int64(mean * math.Exp(s.Sigma*z-s.Sigma*s.Sigma/2))
	}
	return int64(s.Mean)
}

// unit maps 64 bits to (0, 1].
func unit(h uint64) float64 { return (float64(h>>11) + 1) / (1 << 53) }

// wakeQuantumNS is how long a timed task sleeps at least: at 50,000 records/s a wake-up a record would cost more than the
// work. Service times are accounted exactly all the same, only their outputs leave up to so much later.
const wakeQuantumNS = 150_000

// maxBurnNS bounds how long a step burns the core, so that outputs do not wait for a whole batch.
const maxBurnNS = 500_000

// serve returns how many of the records are finished now and accounts for their service time. With holds set, records whose
// key group's state is on its way cost nothing yet: they are served when they are worked on.
func (t *Task) serve(cols *core.Columns, first uint64, holds bool, arrivedNS, nowNS int64, e *Effects) int {
	s := &t.spec.Service
	switch s.Mode {
	case core.ServiceTimed:
		for i := range cols.Keys {
			finish := max(t.busyUntilNS, arrivedNS) + t.serviceOf(cols, i, first, holds)
			if finish > nowNS {
				e.wake(max(finish, nowNS+wakeQuantumNS))
				return i
			}
			t.busyNS += finish - max(t.busyUntilNS, arrivedNS)
			t.busyUntilNS = finish
		}
	case core.ServiceBusy:
		var sum int64
		for i := range cols.Keys {
			if sum >= maxBurnNS {
				t.busyNS += sum
				e.BusyNS += sum
				return i
			}
			sum += t.serviceOf(cols, i, first, holds)
		}
		t.busyNS += sum
		e.BusyNS += sum
	}
	return cols.Len()
}

// serviceOf returns the service time of record i, input number first+i.
func (t *Task) serviceOf(cols *core.Columns, i int, first uint64, holds bool) int64 {
	s := &t.spec.Service
	if holds && t.moves.hold[core.KeyGroup(cols.Keys[i], t.spec.Groups)] > 0 {
		return 0
	}
	if s.Distribution != core.ByRecord {
		return serviceNS(s, t.w.graph.Job.Seed, cols.Keys[i], first+uint64(i))
	}
	if len(cols.Vals) == 0 {
		return 0
	}
	return int64(core.ProfileService(cols.Vals[i]))
}
