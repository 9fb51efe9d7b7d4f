package runner

import (
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/reports/stats"
)

// isRoundDetail says whether a kind of trace tells more of a round than that it began and ended.
func isRoundDetail(kind string) bool {
	return kind == coord.TraceRoundTask || kind == coord.TraceSuspended
}

// migrationAt is when the measured migration was triggered, on the trial's axis; without one, the end of the trial.
func (t *trial) migrationAt() time.Duration {
	if t.migration == nil {
		return t.length
	}
	return t.migration.triggeredAt
}

// migrationMetrics are those of planning and moving.
func (t *trial) migrationMetrics(m map[string]runlog.Metric) {
	rec := t.migration
	if rec == nil {
		if t.watch != nil && !isControl(t.cell.Migration) {
			m["migration_ms"] = runlog.Missing("ms", "the detector gave no alarm")
		}
		return
	}
	t.planMetrics(m)
	begin, began := t.find(coord.TraceMigration, rec.triggeredAt)
	end, ended := t.find(traceMoved, rec.triggeredAt)
	missing := func(reason string) {
		m["migration_ms"], m["moved_bytes"] = runlog.Missing("ms", reason), runlog.Missing("bytes", reason)
		m["waited_records"] = runlog.Missing("records", reason)
		m["complete_ms"], m["last_byte_ms"] = runlog.Missing("ms", reason), runlog.Missing("ms", reason)
	}
	switch lost, rolledBack := t.find(coord.TraceMigrationLost, rec.triggeredAt); {
	case !began:
		missing(orElse(rec.refused, "the migration did not begin"))
	case rolledBack && !ended:
		missing("rolled back: " + lost.Detail)
	case !ended:
		missing("the migration did not end within the trial")
		m["migration_ms"] = runlog.AtLeast(runlog.MS(t.length-t.onAxis(begin)), "ms", "the migration did not end within the trial")
	default:
		m["migration_ms"] = runlog.Value(float64(end.AtNS-begin.AtNS)/1e6, "ms")
		m["moved_bytes"], m["waited_records"] = runlog.Value(float64(end.Bytes), "bytes"), runlog.Value(float64(end.Count), "records")
		m["complete_ms"] = runlog.Value(runlog.MS(t.onAxis(end)-rec.triggeredAt), "ms")
		m["last_byte_ms"] = runlog.Value(runlog.MS(t.lastByte(begin, end)-rec.triggeredAt), "ms")
	}
	if rec.strategy.UsesRounds && began {
		n := 0
		for _, tr := range t.traces {
			if tr.Kind == coord.TraceRound && t.onAxis(tr) >= rec.triggeredAt && (!ended || tr.AtNS <= end.AtNS) {
				n++
			}
		}
		m["migration_rounds"] = runlog.Value(float64(n), "rounds")
	}
	m["longest_wait_ms"] = t.longestWait()
	t.byClass(m)
}

// lastByte is when the last state had come to its new owner, as the coordinator heard of it: the end of the last round, or
// for a redeployment that all tasks had loaded theirs.
func (t *trial) lastByte(begin, end coord.Trace) time.Duration {
	last := t.onAxis(end)
	for _, tr := range t.traces {
		if (tr.Kind == coord.TraceRoundDone || tr.Kind == coord.TraceRestored) && tr.AtNS >= begin.AtNS && tr.AtNS <= end.AtNS {
			last = t.onAxis(tr)
		}
	}
	return last
}

// planMetrics say what was planned, and how good the plan is.
func (t *trial) planMetrics(m map[string]runlog.Metric) {
	rec := t.migration
	m["plan_ms"] = runlog.Value(runlog.MS(rec.planned), "ms")
	tasks := t.job.Operators[rec.request.Operator].Parallelism
	m["theta_before"] = runlog.Value(theta(byTask(rec.meters.load, rec.meters.route, tasks)), "")
	if r := t.seen.late; r.late.at > r.early.at && r.early.at > 0 {
		after := t.window(rec.request.Operator, r.early.loads, r.late.loads, r.late.at-r.early.at, r.late.route)
		m["theta_after"] = runlog.Value(theta(byTask(after.rate, after.route, tasks)), "")
	} else {
		m["theta_after"] = runlog.Missing("", "the load after the move was not read")
	}
	p := rec.plan
	if p == nil {
		return
	}
	m["plan_bound_bytes"], m["plan_theta"] = runlog.Value(float64(p.LowerBoundBytes), "bytes"), runlog.Value(p.Theta, "")
	m["plan_reachable_theta"], m["plan_table_entries"] = runlog.Value(p.ReachableTheta, ""), runlog.Value(float64(p.TableSize), "entries")
	switch {
	case p.GapKnown:
		m["plan_gap_percent"] = runlog.Value(p.Gap*100, "%")
	case p.LowerBoundBytes == 0:
		m["plan_gap_percent"] = runlog.Missing("%", "the bound is 0 bytes, so that there is no gap to it: "+p.Verdict())
	default:
		m["plan_gap_percent"] = runlog.Missing("%", p.Verdict())
	}
}

// byClass gives the highest interval p99 of the keys that moved and of those that stayed.
func (t *trial) byClass(m map[string]runlog.Metric) {
	if t.staySeries == nil {
		return
	}
	from := t.migrationAt()
	for name, s := range map[string]*stats.Series{"spike_peak_staying_ms": t.staySeries, "spike_peak_moving_ms": t.moveSeries} {
		peak, is := time.Duration(0), stats.NoSamples
		for _, p := range s.Points {
			if p.Start+s.Interval > from && p.Start < t.length && (p.P99Is > is || p.P99Is == is && p.P99 > peak) {
				peak, is = p.P99, p.P99Is
			}
		}
		m[name] = runlog.Missing("ms", "no samples")
		if is == stats.Measured {
			m[name] = runlog.Value(runlog.MS(peak), "ms")
		}
	}
}

// longestWait is the longest delay of a moving key's record that was due while state moved.
func (t *trial) longestWait() runlog.Metric {
	end, ended := t.find(traceMoved, t.migrationAt())
	if t.moveSeries == nil || !ended {
		return runlog.Missing("ms", "the keys that moved were not told apart")
	}
	worst, found := time.Duration(0), false
	for _, p := range t.moveSeries.Points {
		if p.Start+t.moveSeries.Interval > t.migrationAt() && p.Start <= t.onAxis(end) && p.MaximumIs == stats.Measured {
			worst, found = max(worst, p.Max), true
		}
	}
	if !found {
		return runlog.Missing("ms", "no record of a moving key was due meanwhile")
	}
	return runlog.Value(runlog.MS(worst), "ms")
}

// settleMetrics are about the delay from the trigger until it is stable again. The control has a trigger too: that of the
// cells that it is compared with.
func (t *trial) settleMetrics(series stats.Series, spike stats.Spike, m map[string]runlog.Metric) {
	c := t.cell.Migration
	if c == nil || len(t.cell.Faults) > 0 || t.migration == nil && !isControl(c) || t.migration != nil && t.migration.refused != "" {
		return
	}
	trigger, complete := spike.Event, spike.Event
	if t.migration != nil {
		trigger, complete = t.migrationAt(), -1
		if end, ok := t.find(traceMoved, trigger); ok {
			complete = t.onAxis(end)
		}
	}
	s := stats.AnalyseSettle(series, spike, trigger, complete, t.length)
	reason := orElse(s.Reason, "not determined")
	m["stable_ms"] = runlog.AtLeast(runlog.MS(max(0, s.Until-trigger)), "ms", reason)
	if s.IsStable {
		m["stable_ms"] = runlog.Value(runlog.MS(s.Stable), "ms")
	}
	m["stable_peak_ms"], m["stable_mean_ms"] = runlog.Missing("ms", reason), runlog.Missing("ms", reason)
	if s.PeakIs == stats.Measured {
		m["stable_peak_ms"], m["stable_mean_ms"] = runlog.Value(runlog.MS(s.Peak), "ms"), runlog.Value(runlog.MS(s.Mean), "ms")
	}
	m["total_delay_rec_s"], m["excess_delay_rec_s"] = runlog.Missing("rec·s", reason), runlog.Missing("rec·s", reason)
	if s.Counted {
		m["total_delay_rec_s"], m["excess_delay_rec_s"] = runlog.Value(s.Total, "rec·s"), runlog.Value(s.Excess, "rec·s")
	}
	if t.staySeries == nil {
		return
	}
	for name, of := range map[string]*stats.Series{"stable_mean_staying_ms": t.staySeries, "stable_mean_moving_ms": t.moveSeries} {
		m[name] = runlog.Missing("ms", "no samples")
		if mean, ok := meanOf(of, trigger, s.Until); ok {
			m[name] = runlog.Value(runlog.MS(mean), "ms")
		}
	}
}

// meanOf is the mean delay of the records due in a stretch of time.
func meanOf(s *stats.Series, from, to time.Duration) (time.Duration, bool) {
	sum, n := 0.0, int64(0)
	for _, p := range s.Points {
		if p.Start+s.Interval > from && p.Start < to {
			sum += p.Sum
			n += p.InRange
		}
	}
	if n == 0 {
		return 0, false
	}
	return time.Duration(sum / float64(n) * float64(time.Second)), true
}

// predictionMetrics put what the cost model expected beside what was measured. before is the delay of the steady phase.
func (t *trial) predictionMetrics(before *stats.Histogram, m map[string]runlog.Metric) {
	if t.migration == nil || t.migration.split == nil {
		return
	}
	s := t.migration.split
	missing := func(name, unit, why string) { m[name] = runlog.Missing(unit, orElse(why, "there is no prediction")) }
	missing("rounds_recommended", "rounds", s.why)
	if s.recommended > 0 {
		m["rounds_recommended"] = runlog.Value(float64(s.recommended), "rounds")
	}
	p50, ok50 := before.MeasuredPercentile(50)
	p99, ok99 := before.MeasuredPercentile(99)
	if len(s.rounds) == 0 || !ok50 || !ok99 {
		for _, name := range []string{"predicted_wait_ms", "predicted_peak_ms", "predicted_duration_ms"} {
			missing(name, "ms", s.why)
		}
		return
	}
	peak := peakP99(s.rounds, s.model.ArrivalPerSecond, t.cell.Timing.Interval, s.stalled(), level{p50, p99})
	for _, p := range []struct {
		name, off, measured string
		predicted           time.Duration
	}{
		{"predicted_wait_ms", "wait_error_percent", "longest_wait_ms", p50 + s.wait()},
		{"predicted_peak_ms", "peak_error_percent", "stable_peak_ms", peak},
		{"predicted_duration_ms", "duration_error_percent", "migration_ms", duration(s.rounds)},
	} {
		m[p.name] = runlog.Value(runlog.MS(p.predicted), "ms")
		missing(p.off, "%", p.measured+" was not measured")
		if got := m[p.measured].Value; got != nil {
			if off, ok := percentOff(runlog.MS(p.predicted), *got); ok {
				m[p.off] = runlog.Value(off, "%")
			}
		}
	}
	m["predicted_excess_rec_s"] = runlog.Value(excess(s.rounds, s.model.Utilisation), "rec·s")
}
