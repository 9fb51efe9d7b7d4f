//go:build linux

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/model"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// adjusting is a suite whose keys become skewed: one cell moves on an alarm, one only watches, one asks for a peak that no
// rounds can meet.
var adjusting = tiny[:strings.Index(tiny, "workload:")] + `
workload: {kind: zipf, keys: 2000, exponent: 0, scramble: true, rate: 20000/s, changes: [{kind: step, at: 1200ms, exponent: 1.5}]}
timing: {warmup: 600ms, steady: 600ms, after: 2s, hold: 200ms, interval: 20ms, band: 20, drain: 5s}
detection: {lease: 5s}
cells:
  - name: adjust
    migration: {strategy: async-rounds, planner: greedy, trigger: detect, theta: 0.1}
  - name: watch
    migration: {strategy: none, trigger: detect}
  - name: peak
    migration: {strategy: async-rounds, peak: 1us, at: 100ms}
`

// TestAdjustment goes the whole way from a change of the keys to a balanced job, in worker processes.
func TestAdjustment(t *testing.T) {
	s, plan := parse(t, adjusting, "order=blocked")
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan[:2], Source: []byte(adjusting), OutDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	orphanless(t)
	results := checkSchema(t, out.Dir)
	for _, c := range results.Cells {
		rep := c.Repetitions[0]
		if rep.Verdict == runlog.Invalid {
			t.Errorf("%s: %s", c.Name, rep.VerdictReason)
		}
		for _, name := range []string{"detection_delay_ms", "false_alarms", "misses"} {
			if m := rep.Metrics[name]; m.Value == nil {
				t.Errorf("%s: %s is missing: %s", c.Name, name, m.Reason)
			}
		}
		if m := rep.Metrics["misses"]; m.Value != nil && *m.Value != 0 {
			t.Errorf("%s: %v episodes of skew were not detected", c.Name, *m.Value)
		}
	}
	m := results.Cells[0].Repetitions[0].Metrics
	for _, name := range []string{"plan_ms", "plan_theta", "plan_bound_bytes", "plan_table_entries", "plan_reachable_theta", "theta_before", "theta_after",
		"rounds_recommended", "migration_rounds", "predicted_wait_ms", "predicted_peak_ms", "predicted_duration_ms", "duration_error_percent",
		"complete_ms", "last_byte_ms", "total_delay_rec_s", "excess_delay_rec_s", "stable_peak_ms", "stable_mean_ms"} {
		if m[name].Value == nil {
			t.Errorf("%s is missing: %s", name, m[name].Reason)
		}
	}
	if before, after := m["theta_before"].Value, m["theta_after"].Value; before != nil && after != nil && *after >= *before {
		t.Errorf("imbalance %.3f before and %.3f after the move", *before, *after)
	}
	readPlanned(t, out.Dir)
}

// readPlanned looks at the event that calculations without a run begin from.
func readPlanned(t *testing.T, dir string) {
	t.Helper()
	run, err := runlog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var detail struct {
		Model struct {
			StateBytes              int64   `json:"state_bytes"`
			BandwidthBytesPerSecond float64 `json:"bandwidth_bytes_per_second"`
			SyncCostMS              float64 `json:"sync_cost_ms"`
			Calibrated              string  `json:"calibrated"`
		} `json:"model"`
		Input struct {
			Tasks int       `json:"tasks"`
			Load  []float64 `json:"load"`
			Route []int32   `json:"route"`
		} `json:"input"`
		Result struct {
			Planner string `json:"planner"`
			Moves   int    `json:"moves"`
			Verdict string `json:"verdict"`
		} `json:"result"`
	}
	planned, alarms, calibrated := 0, 0, 0
	for _, e := range run.Events {
		switch e.Kind {
		case SkewDetected:
			alarms++
		case Calibrated:
			calibrated++
		case runlog.MigrationStarted:
			if planned == 0 {
				t.Error("a move of the calibration is among the measured ones")
			}
		case MigrationPlanned:
			planned++
			text, err := json.Marshal(e.Detail)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &detail); err != nil {
				t.Fatal(err)
			}
		}
	}
	if planned != 1 || alarms != 2 || calibrated != 1 {
		t.Errorf("%d plans, %d alarms, %d calibrations; want 1, 2 and 1", planned, alarms, calibrated)
	}
	if d := detail.Model; d.StateBytes <= 0 || d.BandwidthBytesPerSecond <= 0 || d.SyncCostMS <= 0 || d.Calibrated == "" {
		t.Errorf("model %+v", d)
	}
	if d := detail.Input; d.Tasks != 2 || len(d.Load) != 64 || len(d.Route) != 64 {
		t.Errorf("input of %d tasks, %d loads, %d routes", d.Tasks, len(d.Load), len(d.Route))
	}
	if d := detail.Result; d.Planner != "greedy" || d.Moves == 0 || d.Verdict == "" {
		t.Errorf("result %+v", d)
	}
}

// TestPeakThatNoRoundsCanMeet ends the suite with what is wrong, although it could only be known once the engine ran.
func TestPeakThatNoRoundsCanMeet(t *testing.T) {
	s, plan := parse(t, adjusting, "order=blocked")
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan[2:], OutDir: t.TempDir()})
	if !errors.Is(err, spec.ErrInvalid) || !errors.Is(err, model.ErrPeakTarget) || !strings.Contains(err.Error(), "tiny.yaml: cell peak: ") {
		t.Fatalf("error %v", err)
	}
	orphanless(t)
	if r := checkSchema(t, out.Dir); !r.Partial || r.Cells[0].Verdict == runlog.Valid {
		t.Errorf("partial %v, %s", r.Partial, r.Cells[0].Verdict)
	}
}

// TestExactPlannerOfManyGroups is refused before anything starts.
func TestExactPlannerOfManyGroups(t *testing.T) {
	s, plan := parse(t, adjusting, "cells.adjust.migration.planner=exact")
	err := Check(s, plan)
	if !errors.Is(err, spec.ErrInvalid) || !strings.Contains(err.Error(), "exact plans at most 48 key groups with load, and count has 64") {
		t.Errorf("error %v", err)
	}
	s, plan = parse(t, adjusting, "cells.adjust.migration.planner=exact", "job.operators.count.keyGroups=48")
	if err := Check(s, plan); err != nil {
		t.Errorf("48 key groups: %v", err)
	}
}
