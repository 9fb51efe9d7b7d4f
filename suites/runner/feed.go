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
	limits []uint64           // records due by the end of the last phase, by split; with those that were skipped
	// skips are the splits as Skipping under the skip policy, which leaves out what is overdue by more than stale.
	skips []*workloads.Skipping
	stale time.Duration
	// profile gives the value of each record by its key (core.Profile); nil: the stream's own values.
	profile func(key uint64) int64

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
		if policy.Policy == workloads.CatchUpSkip {
			skip := workloads.NewSkipping(split)
			f.splits[s], f.skips, f.stale = skip, append(f.skips, skip), policy.After
		}
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
	if f.profile != nil {
		for _, key := range dst.Keys[at:] {
			dst.Vals = append(dst.Vals, f.profile(key))
		}
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
		if f.skips != nil {
			f.skip(s, due[s], t)
		}
		limit := f.limits[s] - f.skipped(s)
		due[s] = min(f.splits[s].Due(t), limit)
		if due[s] < limit {
			next = min(next, f.timeOf(s, due[s]))
		}
	}
	return next
}

// skip leaves out what the harness, after a stall, offers too late; what was offered before stays.
func (f *feed) skip(s int, offered uint64, t time.Duration) {
	k := f.skips[s]
	stale := min(k.Of().Due(t-f.stale-1), f.limits[s])
	if done := offered + k.Skipped(); stale > done {
		k.Skip(offered, stale-done)
	}
}

// skipped returns how many records of a split were left out.
func (f *feed) skipped(s int) uint64 {
	if f.skips == nil {
		return 0
	}
	return f.skips[s].Skipped()
}

// allSkipped returns how many records were left out.
func (f *feed) allSkipped() (n uint64) {
	for s := range f.splits {
		n += f.skipped(s)
	}
	return n
}

// timeOf returns when a record is due, on the harness's clock.
func (f *feed) timeOf(split int, record uint64) time.Duration {
	f.scratch.Reset()
	f.splits[split].Fill(&f.scratch, record, 1)
	return time.Duration(f.scratch.Times[0] + f.originNS)
}

// scheduled returns the number of records of all splits that are to be sent by the end of the last phase.
func (f *feed) scheduled() (n uint64) {
	for s, l := range f.limits {
		n += l - f.skipped(s)
	}
	return n
}
