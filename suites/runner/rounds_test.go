package runner

import (
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// reported makes a trial whose migration was triggered at 100 ms, with the given traces.
func reported(t *testing.T, traces ...coord.Trace) *trial {
	t.Helper()
	tr := traced(t)
	cell := *tr.cell
	cell.Migration = &spec.Migration{}
	tr.cell, tr.migration, tr.traces = &cell, &moveRecord{triggeredAt: 100 * time.Millisecond}, traces
	return tr
}

// at is a trace of a kind at a time of the axis, with what a task reports.
func at(ms int, kind string, task int, r *core.RoundReport) coord.Trace {
	return coord.Trace{AtNS: int64(ms) * int64(time.Millisecond), Kind: kind, Task: task, Round: r}
}

func round(freeze, transfer, install, drain, lastByte int) *core.RoundReport {
	const ms = time.Millisecond
	return &core.RoundReport{Freeze: time.Duration(freeze) * ms, Transfer: time.Duration(transfer) * ms, Install: time.Duration(install) * ms,
		Drain: time.Duration(drain) * ms, LastByteNS: int64(lastByte) * int64(ms)}
}

func suspended(ms int) *core.RoundReport {
	return &core.RoundReport{Suspended: time.Duration(ms) * time.Millisecond}
}

// The figures of rounds are the longest of any round and task of the measured migration: not of an earlier one and not of
// the way back, but with what tasks say after its end.
func TestMetricsOfRounds(t *testing.T) {
	there := []coord.Trace{
		at(50, coord.TraceMigration, 0, nil), at(60, coord.TraceRoundTask, 1, round(900, 900, 900, 900, 60)), at(70, coord.TraceMigrated, 0, nil), at(71, coord.TraceSuspended, 1, suspended(900)),
		at(101, coord.TraceMigration, 0, nil), at(120, coord.TraceRoundTask, 1, round(3, 20, 0, 0, 118)), at(125, coord.TraceRoundTask, 2, round(2, 21, 9, 4, 119)),
		at(140, coord.TraceRoundTask, 1, round(1, 15, 0, 0, 138)), at(141, coord.TraceMigrated, 0, nil), at(150, coord.TraceRoundTask, 2, round(1, 16, 8, 11, 139)),
	}
	told := append(there[:len(there):len(there)], at(150, coord.TraceSuspended, 1, suspended(0)), at(150, coord.TraceSuspended, 2, suspended(44)))
	back := append(told[:len(told):len(told)], at(300, coord.TraceMigration, 0, nil), at(310, coord.TraceRoundTask, 1, round(800, 800, 800, 800, 310)))
	ended := append(back[:len(back):len(back)], at(333, coord.TraceMigrated, 0, nil), at(334, coord.TraceSuspended, 2, suspended(800)))
	parts := map[string]float64{"round_freeze_ms": 3, "round_transfer_ms": 21, "round_install_ms": 9, "round_drain_ms": 11, "last_byte_ms": 39}
	for _, c := range []struct {
		name             string
		traces           []coord.Trace
		back             bool
		suspension, home float64 // below 0: no value, but a reason
	}{{"one way", told, false, 44, 0}, {"not all told", there, false, -1, 0}, {"there and back", ended, true, 44, 33}, {"back unfinished", back, true, 44, -1}} {
		tr := reported(t, c.traces...)
		if c.back {
			away := time.Duration(0)
			tr.cell.Migration.Back = &away
		}
		m := map[string]runlog.Metric{}
		tr.roundMetrics(m)
		for name, want := range parts {
			if v := m[name].Value; v == nil || *v != want {
				t.Errorf("%s: %s is %+v, want %g", c.name, name, m[name], want)
			}
		}
		for name, want := range map[string]float64{"suspension_ms": c.suspension, "migration_back_ms": c.home} {
			switch got, is := m[name]; {
			case name == "migration_back_ms" && !c.back:
				if is {
					t.Errorf("%s: a way back without one: %+v", c.name, got)
				}
			case want < 0 && (got.Value != nil || got.Reason == ""), want >= 0 && (got.Value == nil || *got.Value != want):
				t.Errorf("%s: %s is %+v, want %g", c.name, name, got, want)
			}
		}
	}
}

// A migration that did not end has no figures of its rounds.
func TestMetricsOfUnfinishedRounds(t *testing.T) {
	m := map[string]runlog.Metric{}
	reported(t, at(101, coord.TraceMigration, 0, nil), at(120, coord.TraceRoundTask, 1, round(3, 20, 0, 0, 118))).roundMetrics(m)
	if len(m) != 0 {
		t.Errorf("figures of a migration that did not end: %+v", m)
	}
}

// Each round of each task is an event with its parts; the last word of a task is only about its suspension.
func TestEventsOfRounds(t *testing.T) {
	tr := traced(t)
	for kind, fields := range map[string]int{coord.TraceRoundTask: 6, coord.TraceSuspended: 2, coord.TraceMigrated: 0} {
		var r *core.RoundReport
		if fields > 0 {
			r = round(3, 20, 9, 4, 118)
			r.Suspended = 25 * time.Millisecond
		}
		d := map[string]any{}
		roundDetail(tr.graph, at(120, kind, 1, r), d)
		if len(d) != fields {
			t.Errorf("%s: %v, want %d fields", kind, d, fields)
		}
		for name, want := range map[string]float64{"freeze_ms": 3, "transfer_ms": 20, "install_ms": 9, "drain_ms": 4, "suspended_ms": 25} {
			if got, is := d[name]; is && got != want {
				t.Errorf("%s: %s is %v, want %g", kind, name, got, want)
			}
		}
	}
}
