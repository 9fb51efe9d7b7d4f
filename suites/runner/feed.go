package runner

import (
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/workloads"
)

// feed plays a workload into a job: the engine's task.FeedSource and its schedule. All of it is used on the harness's
// event loop only. Its time axis begins at origin, when the job began to run; before, nothing is due.
type feed struct {
	splits []workloads.Stream
	pacers []*workloads.Pacer // only for the limit policy
	limits []uint64           // records due by the end of the last phase, by split

	started  bool
	originNS int64
	lookedAt time.Duration // when the schedule was looked at last, on the feed's axis
	mode     feedMode
	scratch  core.Columns
}

type feedMode int

const (
	onSchedule feedMode = iota
	saturating          // as fast as the job takes them
)

// everything is a number of due records that no feed reaches.
const everything = 1 << 62

// newFeed opens the splits of a workload of which the records of the first length are to be sent.
func newFeed(w workloads.Stream, splits int, policy spec.CatchUp, length time.Duration) *feed {
	f := &feed{}
	for s := range splits {
		split := workloads.Split(w, s, splits)
		f.splits = append(f.splits, split)
		f.limits = append(f.limits, split.Scheduled(length))
		if policy.Policy == workloads.CatchUpLimit {
			f.pacers = append(f.pacers, workloads.NewPacer(workloads.CatchUp{Policy: policy.Policy, Factor: policy.Factor}, split))
		}
	}
	return f
}

// begin starts the schedule at a time of the harness.
func (f *feed) begin(now int64) { f.started, f.originNS = true, now }

// Fill has the form of task.FeedSource. The splits are those that the feed was made with.
func (f *feed) Fill(dst *core.Columns, split, _ int, from uint64, n int) {
	at := len(dst.Times)
	f.splits[split].Fill(dst, from, n)
	for i := at; i < len(dst.Times); i++ {
		dst.Times[i] += f.originNS
	}
}

// idleLook is how often a feed that has nothing to send looks again.
const idleLook = time.Millisecond

// due has the form of host.Config.Due.
func (f *feed) due(elapsed time.Duration, due []uint64) (next time.Duration) {
	if !f.started {
		clear(due)
		return elapsed + idleLook
	}
	t := elapsed - time.Duration(f.originNS)
	f.lookedAt = t
	if f.mode == saturating {
		for s := range due {
			due[s] = everything
		}
		return elapsed + idleLook
	}
	next = elapsed + idleLook
	for s := range due {
		if f.pacers != nil {
			_, _, n := f.pacers[s].Next(t, 0)
			due[s] = min(due[s]+n, f.limits[s])
			next = elapsed
			continue
		}
		due[s] = min(f.splits[s].Due(t), f.limits[s])
		if due[s] < f.limits[s] {
			next = min(next, f.timeOf(s, due[s]))
		}
	}
	return next
}

// timeOf returns when a record is due, on the harness's clock.
func (f *feed) timeOf(split int, record uint64) time.Duration {
	f.scratch.Reset()
	f.splits[split].Fill(&f.scratch, record, 1)
	return time.Duration(f.scratch.Times[0] + f.originNS)
}

// scheduled returns the number of records of all splits that are due by the end of the last phase.
func (f *feed) scheduled() (n uint64) {
	for _, l := range f.limits {
		n += l
	}
	return n
}
