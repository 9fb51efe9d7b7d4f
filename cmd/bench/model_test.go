package main

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/calc"
)

const rounds = "model rounds --state 100MB --bandwidth 100MB --sync-cost 10ms --groups 256 "

func TestBadModelInput(t *testing.T) {
	r, p := see(" model rounds"), see(" model plan")
	refuse(t, []badInput{
		{"model round", "bench: unknown command \"round\"; did you mean rounds?\n" + see("")},
		{"model rounds", "bench: --state is missing; give the state to move, such as 512MiB, or a run directory\n" + r},
		{"model rounds --state 5", "bench: --state: *"},
		{"model rounds --state 1MB", "bench: --bandwidth is missing; give the bytes a second, such as 512MiB, or a run directory\n" + r},
		{"model rounds --state 1MB --bandwidth 0B --sync-cost 1ms --groups 4", "bench: bandwidth of 0 bytes per second: want a finite number above 0*"},
		{rounds + "--groups 0", "bench: 0 groups to move: want at least 1*"},
		{rounds + "--utilisation 1", "bench: utilisation 1: want 0 ≤ ρ < 1*"},
		{rounds + "--utilisation NaN", "bench: utilisation NaN: want 0 ≤ ρ < 1*"},
		{rounds + "--sync-cost 0s", "bench: synchronisation cost 0s: want above 0*"},
		{rounds + "--largest-group 200MB", "bench: state of 100000000 bytes, largest group of 200000000*"},
		{rounds + "--jitter -1ms", "bench: jitter -1ms: want at least 0*"},
		{rounds + "--stream-bandwidth 200MB", "bench: fixed cost of large rounds 0s: want above 0*"},
		{rounds + "--spike-weight 0", "bench: weights 0 of spike and 1 of duration*"},
		{rounds + "--peak -1s", "bench: --peak is -1s; use 0, or a time such as 20ms\n" + r},
		{rounds + "a b", "bench: unexpected argument \"b\"\n" + r},
		{"model rounds nowhere", "bench: open run: lstat nowhere: no such file or directory\n" + r},
		{"model rounds . --state 1MB", "bench: --state and a run directory: the run has measured that; give one or the other\n" + r},
		{"model rounds .", "bench: .: not a run directory: it has no manifest.json\n" + r},
		{"model plan", "bench: no numbers given; use --loads FILE, or a run directory\n" + p},
		{"model plan --loads nowhere", "bench: cannot read the key groups: open nowhere: no such file or directory\n" + p},
		{"model plan --loads file", "bench: file: no header; want the columns group,load,bytes,owner: EOF\n" + p},
		{"model plan --loads empty.yaml", "bench: empty.yaml:1: no column \"group\"; want the columns group,load,bytes,owner\n" + p},
		{"model plan --loads file --tasks 1", "bench: --tasks is 1; use at least 2, or 0 for one more than the highest owner\n" + p},
		{"model plan --loads file --planner greed", "bench: --planner \"greed\" is not known; use one of all, greedy*"},
	})
}

func TestBadGroupFiles(t *testing.T) {
	for text, want := range map[string]string{
		"group,load,bytes,owner\n0,1,1,0\n0,1,1,1\n":   "-:3: group 0 stands twice, first in line 2",
		"group,load,bytes,owner\n0,1,1,0\n2,1,1,1\n":   "-: group 1 is missing; want every group from 0 to 2",
		"group,load,bytes,owner\n0,NaN,1,0\n":          "-:2: load is \"NaN\"; want a number of at least 0",
		"group,load,bytes,owner\n0,1,1.5,0\n":          "-:2: bytes is \"1.5\"; want a whole number from 0",
		"group,load,bytes,owner\n0,1,1,-1\n":           "-:2: owner is \"-1\"; want a task, from 0",
		"group,load,bytes,owner\n0,1,1\n":              "-: record on line 2: wrong number of fields",
		"group,load,bytes\n":                           "-:1: no column \"owner\"; want the columns group,load,bytes,owner",
		"group,load,bytes,owner\n0,1,1,0\n1,1,1,0\n":   "tasks = 1: moving needs at least 2: bad planner input",
		"owner,bytes,load,group\n0,5,1,0\n1,5,1,17e\n": "-:3: group is \"17e\"; want a whole number from 0 to 1048575",
	} {
		got := bench(t, app{known: known}, nil, text, "model", "plan", "--loads", "-")
		if got.code != exitUsage || got.out != "" || got.err != "bench: "+want+"\n"+see(" model plan") {
			t.Errorf("%q: code %d, out %q, err %q, want %q", text, got.code, got.out, got.err, want)
		}
	}
}

// One round of 100 MB takes 50 + 500 ms by the line of large ones; of two the longest is 2·0.5895 ms above 50 + 250 ms.
func TestModelRoundsWithJitterAndStreaming(t *testing.T) {
	got := bench(t, app{known: known}, nil, "", strings.Fields(rounds+"--stream-bandwidth 200MB --stream-sync-cost 50ms --jitter 2ms --json")...)
	var answers []calc.RoundsAnswer
	if err := json.Unmarshal([]byte(got.out), &answers); err != nil || got.code != 0 {
		t.Fatalf("code %d, %v, err %s", got.code, err, got.err)
	}
	for i, want := range []float64{550, 301.179} {
		if r := answers[0].Rows[i]; math.Abs(r.PeakMS-want) > 0.01 {
			t.Errorf("%d rounds: peak %v ms, want %v", r.Rounds, r.PeakMS, want)
		}
	}
}

func TestModelRoundsByHand(t *testing.T) {
	// a = 1 s, c = 10 ms: N = a/c = 100; with ρ = 0 and weights 100:1, √(100·1/0.01) = 100; a peak of 20 ms needs a/(L−c) = 100.
	got := bench(t, app{known: known}, nil, "", strings.Fields(rounds+"--peak 20ms --json")...)
	var answers []calc.RoundsAnswer
	if err := json.Unmarshal([]byte(got.out), &answers); err != nil || got.code != 0 {
		t.Fatalf("code %d, %v, err %s", got.code, err, got.err)
	}
	for _, c := range answers[0].Choices {
		if c.Rounds != 100 || c.Impossible != "" {
			t.Errorf("%s: %+v, want 100 rounds", c.Form, c)
		}
	}
	found := false
	for _, r := range answers[0].Rows {
		if r.Rounds == 100 {
			found = r.PeakMS == 20 && r.DurationMS == 2000 && len(r.Chosen) == 3
		}
	}
	if !found {
		t.Errorf("no row of 100 rounds with a peak of 20 ms, 2,000 ms long: %+v", answers[0].Rows)
	}
	text := bench(t, app{known: known}, nil, "", strings.Fields(rounds+"--peak 5ms")...)
	if text.code != 0 || !strings.Contains(text.out, "none: peak 5ms: one round alone costs 10ms, want at least 13.90625ms") {
		t.Errorf("code %d, out %q, want a peak that cannot be had", text.code, text.out)
	}
}

// planned writes a run directory with one planned migration.
func planned(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	w, err := runlog.Create(dir, runlog.Manifest{Suite: "mine", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Event(runlog.Event{Wall: time.Unix(0, 0), Trial: 1, Cell: "one", Repetition: 1, Kind: calc.PlannedEvent, Detail: map[string]any{
		"model": map[string]any{"state_bytes": 1e8, "bandwidth_bytes_per_second": 1e8, "sync_cost_ms": 10, "groups": 256, "moving_share": 1, "arrival_per_second": 1},
		"input": map[string]any{"tasks": 2, "theta": 0.1, "load": []float64{6, 2, 1, 1}, "state_bytes": []int64{10, 20, 30, 40}, "route": []int{0, 0, 1, 1}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.Dir()
}

func TestModelOfARun(t *testing.T) {
	dir := planned(t)
	got := bench(t, app{known: known}, nil, "", "model", "rounds", dir)
	if got.code != 0 || !strings.Contains(got.out, "one, repetition 1\n") || !strings.Contains(got.out, "N = 100 (100.0)") {
		t.Errorf("code %d, out %s, err %s", got.code, got.out, got.err)
	}
	got = bench(t, app{known: known}, nil, "", "model", "plan", dir, "--theta", "0.2")
	if got.code != 0 || strings.Count(got.out, "balanced: θ = 0.2") < 2 || !strings.Contains(got.out, "θ now 0.6") {
		t.Errorf("code %d, out %s, err %s", got.code, got.out, got.err)
	}
	if err := os.WriteFile(dir+"/events.jsonl", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got = bench(t, app{known: known}, nil, "", "model", "plan", dir)
	if got.code != exitUsage || !strings.Contains(got.err, "the run planned no migration") {
		t.Errorf("code %d, err %q", got.code, got.err)
	}
}
