package runner

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/reports/stats"
	"github.com/weir-bench/weir/suites/verify"
)

// analyse turns what was recorded into a repetition of the results. The harness is closed.
func (t *trial) analyse(rec *stats.Recorder) runlog.Repetition {
	total := rec.Total()
	rep := runlog.Repetition{Repetition: t.plan.Repetition + 1, Trial: t.plan.Index + 1, Verdict: runlog.Valid,
		Partial: t.seen.interrupted, Delay: runlog.CountsOf(total), Metrics: map[string]runlog.Metric{}}
	m := rep.Metrics
	if t.watch != nil {
		t.skew = t.truth()
		t.detectionMetrics(m)
	}
	if event, ok := t.event(); ok { // a fault that waits for an event may come early
		t.seen.steadyTo = min(t.seen.steadyTo, event)
	}
	steady := rec.Between(t.cell.Timing.Warmup, t.seen.steadyTo.Truncate(rec.Interval()))
	m["steady_p50_ms"], m["steady_p99_ms"] = runlog.PercentileMetric(steady, 50), runlog.PercentileMetric(steady, 99)
	if event, ok := t.event(); ok {
		series := rec.Series()
		spike := stats.AnalyseSpike(series, event, t.spikeOptions())
		rep.Spike = runlog.SpikeMetrics(spike, m)
		t.migrationMetrics(m)
		t.settleMetrics(series, spike, m)
		t.predictionMetrics(steady, m)
		t.roundMetrics(m)
		t.memoryMetrics(m)
		t.recoveryMetrics(spike, m)
	}
	t.costs(m)
	t.storeMetrics(m)
	t.checkpointMetrics(m)
	t.keptMetrics(m)
	m["send_lag_p99_ms"] = runlog.PercentileMetric(t.lag, 99)
	m["harness_cpu_s"] = runlog.Value(t.seen.selfCPU.Seconds(), "s")
	if t.cell.Timing.Capacity > 0 {
		m["capacity_rec_s"] = t.capacity()
	}
	t.answers(&rep)
	t.verdict(&rep, steady)
	return rep
}

func (t *trial) spikeOptions() stats.SpikeOptions {
	return stats.SpikeOptions{Baseline: t.cell.Timing.Steady, Hold: t.cell.Timing.Hold, Slack: t.cell.Timing.Band, End: t.length}
}

// event is when the first event of the trial began: a fault, or what calls for a migration, which is its time or, with a
// detector, the beginning of the skew.
func (t *trial) event() (time.Duration, bool) {
	first, ok := time.Duration(0), false
	add := func(at time.Duration) {
		if !ok || at < first {
			first, ok = at, true
		}
	}
	for _, inj := range t.injected {
		add(inj.at)
	}
	m := t.cell.Migration
	if m == nil {
		return first, ok
	}
	switch at := t.cell.Timing.Warmup; {
	case len(t.skew.skewed) > 0 && t.skew.skewed[0].Start > at:
		add(t.skew.skewed[0].Start)
	case t.migration != nil && t.migration.refused == "":
		add(t.migration.triggeredAt)
	case isControl(m) && m.Trigger == "time" && len(t.cell.Faults) == 0: // it is judged from where the others move
		add(at + t.cell.EventTime(m.At))
	}
	return first, ok
}

// onAxis is a trace's time on the trial's axis.
func (t *trial) onAxis(tr coord.Trace) time.Duration {
	return time.Duration(tr.AtNS - t.feed.originNS)
}

// find returns the first trace of a kind from a time of the axis on.
func (t *trial) find(kind string, from time.Duration) (coord.Trace, bool) {
	for _, tr := range t.traces {
		if tr.Kind == kind && t.onAxis(tr) >= from {
			return tr, true
		}
	}
	return coord.Trace{}, false
}

// costs are what the steady phase took of the workers.
func (t *trial) costs(m map[string]runlog.Metric) {
	b, a := t.seen.before, t.seen.after
	missing := func(reason string) {
		m["cpu_s_per_mrec"], m["rss_bytes"] = runlog.Missing("s", reason), runlog.Missing("bytes", reason)
		m["network_bytes_s"], m["disk_bytes_s"] = runlog.Missing("bytes/s", reason), runlog.Missing("bytes/s", reason)
	}
	span := (a.at - b.at).Seconds()
	switch {
	case !t.seen.haveSteady:
		missing("the steady phase did not end")
	case !b.ok || !a.ok:
		missing("the workers could not be read: " + b.why + a.why)
	case a.answered <= b.answered || span <= 0:
		missing("nothing was answered in the steady phase")
	default:
		m["cpu_s_per_mrec"] = runlog.Value((a.cpu-b.cpu).Seconds()/float64(a.answered-b.answered)*1e6, "s")
		m["rss_bytes"] = runlog.Value(float64(a.rss), "bytes")
		m["network_bytes_s"], m["disk_bytes_s"] = runlog.Missing("bytes/s", "a worker did not tell in time"), runlog.Missing("bytes/s", "a worker did not tell in time")
		if a.carriedOK && b.carriedOK {
			m["network_bytes_s"] = runlog.Value(math.Round(float64(a.network-b.network)/span), "bytes/s")
			m["disk_bytes_s"] = runlog.Value(math.Round(float64(a.disk-b.disk)/span), "bytes/s")
		}
	}
}

func (t *trial) capacity() runlog.Metric {
	b := t.seen.burst
	switch {
	case !b.done && !t.seen.drained:
		return runlog.Missing("records/s", "the records before the burst were not all answered in time")
	case !b.done:
		return runlog.Missing("records/s", "the trial ended before the burst was over")
	}
	return runlog.Value(float64(b.answers)/b.took.Seconds(), "records/s")
}

func orElse(s, alternative string) string {
	if s == "" {
		return alternative
	}
	return s
}

// answers fills in the account of records and answers.
func (t *trial) answers(rep *runlog.Repetition) {
	var emitted uint64
	for _, n := range t.seen.emitted {
		emitted += n
	}
	scheduled := max(t.feed.scheduled(), emitted)
	if t.seen.interrupted || t.seen.overdue != "" || t.seen.failure != nil {
		var due []uint64
		due = append(due, make([]uint64, len(t.feed.splits))...)
		scheduled = 0
		for s := range t.feed.splits {
			due[s] = min(t.feed.splits[s].Due(t.stoppedAt), t.feed.limits[s]-t.feed.skipped(s))
			scheduled += due[s]
		}
		scheduled = max(scheduled, emitted)
	}
	n := func(v uint64) *int64 { return runlog.N(int64(v)) }
	skipped := t.feed.allSkipped() // scheduled, and left out on purpose
	a := runlog.Answers{Scheduled: n(scheduled + skipped), Emitted: n(emitted), NotEmitted: n(scheduled - emitted + skipped)}
	if t.feed.skips != nil {
		a.Skipped = n(skipped)
	}
	if t.blind != nil {
		a.Reason = t.blind.Error()
		rep.Answers = a
		return
	}
	sum := t.compare()
	if t.blind != nil { // the golden answers could not be evaluated
		a.Reason = t.blind.Error()
		rep.Answers = a
		return
	}
	a.Expected, a.Answered, a.Duplicated, a.Wrong = n(sum.Expected), n(sum.Answered), n(sum.Duplicated), n(sum.Wrong)
	if sum.OrderKnown {
		a.Reordered = n(sum.Reordered)
	} else {
		a.Reason = "records that were only passed on have no order that could be checked"
		if q := t.col.query; q != nil {
			a.Reason = "the answers of a query have no order that could be checked"
			rep.Metrics["late_events"] = runlog.Value(float64(q.late), "events")
		}
	}
	if t.migration != nil {
		rep.Metrics["reordered_at_handover"] = runlog.Value(float64(sum.AtHandOver), "answers")
	}
	if t.seen.ended {
		a.Lost = n(sum.Lost)
	} else {
		a.Late = n(sum.Lost)
		a.Reason = "the job had not ended: what had not come by then may have been lost or late"
	}
	rep.Answers = a
}

// compare holds the outputs against the golden answers; it does so once.
func (t *trial) compare() verify.Answers {
	if t.sum != nil {
		return *t.sum
	}
	if q := t.col.query; q != nil {
		q.compare(t.feed, t.seen.emitted)
		t.sum, t.blind = &q.sum, q.err
		return q.sum
	}
	golden := verify.Golden(t.feed.splits, t.seen.emitted)
	sum := verify.Answers{OrderKnown: true}
	for i, e := range t.expect {
		sum = sum.Plus(t.col.oracles[i].Answers(golden, e.Times))
	}
	sum.Unconfined = t.unconfined(golden)
	t.sum = &sum
	return sum
}

// lateWithoutLimit enters every record of the measured phases that was never answered into the delays.
func (t *trial) lateWithoutLimit(rec *stats.Recorder) {
	if t.blind != nil || t.compare().Lost == 0 {
		return
	}
	if q := t.col.query; q != nil {
		for _, i := range q.missing {
			rec.Unanswered(q.dueOf(q.golden[i], time.Duration(t.feed.originNS), t.length), 1)
		}
		return
	}
	counts := map[uint64]uint64{}
	t.eachRecord(func(key uint64, due time.Duration) {
		counts[key]++
		if due < t.length {
			t.enterLate(rec, key, counts[key], due)
		}
	})
}

func (t *trial) enterLate(rec *stats.Recorder, key, nth uint64, due time.Duration) {
	for i, e := range t.expect {
		if !t.col.oracles[i].Has(key, nth*e.Times) {
			rec.Unanswered(due, 1)
		}
	}
}

// verdict judges the repetition. Wrong answers beat all else.
func (t *trial) verdict(rep *runlog.Repetition, steady *stats.Histogram) {
	set := func(v runlog.Verdict, format string, args ...any) {
		if w := rep.Verdict.Worse(v); w != rep.Verdict {
			rep.Verdict, rep.VerdictReason = v, fmt.Sprintf(format, args...)
		}
	}
	promise := verify.Promise(t.graph).Output
	if fallback, fell := t.find(coord.TraceFallback, math.MinInt64); fell {
		// More failed at once than the standbys cover: the job says so and rolls back.
		if promise == recovery.Precise && !t.transactional() {
			promise = recovery.Rollback
		}
		set(runlog.Unknown, "more failed at once than the strategies cover, so the whole job rolled back: %s", fallback.Detail)
	}
	switch {
	case t.blind != nil:
		set(runlog.Unknown, "%v", t.blind)
	default:
		a := t.compare()
		if !t.seen.ended {
			a.Lost = 0 // not known to be lost
		}
		rep.Promised, rep.Observed = string(promise), string(verify.Observed(a))
		broken, err := t.judge(promise, a)
		if err != nil {
			set(runlog.Unknown, "%v", err)
		}
		if broken != "" {
			set(runlog.Invalid, "%s", broken)
		}
	}
	switch {
	case t.seen.interrupted:
		set(runlog.Unknown, "interrupted")
	case t.seen.overdue != "":
		set(runlog.Unknown, "%s", t.seen.overdue)
	case t.seen.failure != nil:
		set(runlog.Unknown, "%v", t.seen.failure)
	case !t.seen.ended:
		set(runlog.Unknown, "the job did not end within the drain time of %v", t.cell.Timing.Drain)
	}
	if why := t.accident(); why != "" {
		set(runlog.Unknown, "%s", why)
	}
	if err := t.storageTrouble(); err != nil {
		set(runlog.Unknown, "%v", err)
	}
	for _, why := range []string{t.faultTrouble(), t.behind(steady)} {
		if why != "" {
			set(runlog.Unknown, "%s", why)
		}
	}
}

func (t *trial) judge(promise recovery.Promise, a verify.Answers) (broken string, err error) {
	if q := t.col.query; q != nil {
		return q.judge(promise, t.anyFailure(), a)
	}
	return verify.Judge(promise, t.anyFailure(), a), nil
}

// anyFailure says whether anything failed, by a planned fault or by accident.
func (t *trial) anyFailure() bool {
	_, detected := t.find(coord.TraceDetected, math.MinInt64)
	_, failed := t.find(coord.TraceTaskFailed, math.MinInt64)
	return detected || failed || len(t.injected) > 0
}

func (t *trial) transactional() bool {
	for _, op := range t.job.Operators {
		if op.Transactional {
			return true
		}
	}
	return false
}

// accident says that a worker failed before any planned fault: the machine was overloaded, or something is broken.
func (t *trial) accident() string {
	tr, ok := t.find(coord.TraceDetected, math.MinInt64)
	if !ok || len(t.injected) > 0 && t.onAxis(tr) >= t.injected[0].at {
		return ""
	}
	return fmt.Sprintf("worker process %d was lost %.1f s after the start without a planned fault: %s", tr.Node, t.onAxis(tr).Seconds(), tr.Detail)
}

// harnessLag is the send lag below which the harness is always taken to have kept its schedule.
const harnessLag = 5 * time.Millisecond

// behind says whether the harness could not keep its own schedule in the steady phase: its sends lagged so much that they
// make up a good part of the delays.
func (t *trial) behind(steady *stats.Histogram) string {
	lag, ok := t.lag.MeasuredPercentile(99)
	p99, measured := steady.MeasuredPercentile(99)
	if !ok || !measured || lag <= harnessLag || lag <= p99/2 {
		return ""
	}
	return fmt.Sprintf("the harness did not keep its schedule: 1 %% of its sends were more than %.1f ms late, the p99 delay was %.1f ms", runlog.MS(lag), runlog.MS(p99))
}
