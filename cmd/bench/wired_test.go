//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-bench/weir/suites/spec"
)

// The test binary is the program that workers are started from, as the command is.
func TestMain(m *testing.M) {
	if code, is := child(nil); is {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

func TestCapacity(t *testing.T) {
	inTempDir(t)
	got := bench(t, wire(), nil, "", "capacity", "--duration", "200ms", "--keys", "1000", "--progress", "none")
	if got.code != 0 || !regexp.MustCompile(`^capacity: [1-9][0-9]* records/s \(.+\)$`).MatchString(lastLine(got.out)) {
		t.Errorf("%+v", got)
	}
	got = bench(t, wire(), nil, "", "capacity", "--duration", "200ms", "--rate", "20k/s", "--checkpoint", "100ms", "--json", "--progress", "none")
	var r capacityReport
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if r.Delay == nil || r.Delay.P50MS <= 0 || r.Delay.P99MS < r.Delay.P50MS || !r.AllAnswersAsHeld || r.Answers.Expected < 4000 || r.Checkpoints == 0 || *r.Rate != 20000 {
		t.Errorf("%+v", r)
	}
}

func TestParseRate(t *testing.T) {
	for s, want := range map[string]spec.Rate{"20000/s": 20000, "1M/s": 1e6, "1.5k/s": 1500, "": 0, "5": 0, "0/s": 0, "-1/s": 0, "1M": 0, "9999999M/s": 0, "1e3/s": 0} {
		if got := parseRate(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

func TestSim(t *testing.T) {
	got := bench(t, wire(), nil, "", "sim", "--seeds", "5", "--from", "3", "--progress", "none")
	if got.code != 0 || !regexp.MustCompile(`^sim: 5 trials, 0 violations, [0-9]+ trials/min \(seeds 3 to 7, .+\)$`).MatchString(lastLine(got.out)) {
		t.Errorf("%+v", got)
	}
	got = bench(t, wire(), nil, "", "sim", "--seed", "4", "--recovery", "active", "--json", "--progress", "none")
	var r simReport
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || r.Trials != 1 || r.First != 4 || r.Violations != 0 {
		t.Errorf("%v: %+v", err, got)
	}
	// The repro of a seed is a command line that runs that seed, with its trace.
	repro := strings.Fields(simRepro(4, &SimOptions{Recovery: "active"}))
	again := bench(t, wire(), nil, "", append(repro[1:], "--progress", "none")...)
	if again.code != 0 || !strings.HasPrefix(again.out, "seed 4: active") || !strings.Contains(again.out, "trace hash") {
		t.Errorf("%v: %+v", repro, again)
	}
}

func TestSimMatrix(t *testing.T) {
	got := bench(t, wire(), nil, "", "sim", "--matrix", "--migration", "externalise", "--json", "--progress", "none")
	var r simReport
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.code != 0 || r.Trials < 100 || r.Faults != r.Trials-1 || r.Violations != 0 {
		t.Errorf("%v, code %d: %s", err, got.code, got.out)
	}
	for flags, want := range map[string]string{
		"--migration externalise --recovery active":        "--migration externalise does not go with --recovery active",
		"--matrix --migration on-demand --recovery active": "--migration on-demand does not go with --recovery active",
		"--matrix --trace": "--trace is for trials",
	} {
		got := bench(t, wire(), nil, "", append([]string{"sim", "--progress", "none"}, strings.Fields(flags)...)...)
		if got.code != 2 || !strings.Contains(got.err, want) {
			t.Errorf("sim %s: code %d, %s; want %q", flags, got.code, got.err, want)
		}
	}
}

func TestTrace(t *testing.T) {
	inTempDir(t)
	var csv strings.Builder
	csv.WriteString("at,user\n")
	for i := range 2000 {
		fmt.Fprintf(&csv, "%d,u%d\n", i, i*i%37)
	}
	if err := os.WriteFile("t.csv", []byte(csv.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	got := bench(t, wire(), nil, "", "trace", "t.csv", "--time", "at", "--key", "user")
	if got.code != 0 || !strings.Contains(got.out, "rows        2000") || !strings.Contains(got.out, "\nworkload:\n") {
		t.Errorf("%+v", got)
	}
	got = bench(t, wire(), nil, "", "trace", "t.csv", "--time", "at", "--key", "user", "--workload")
	if got.code != 0 || !strings.HasPrefix(got.out, "# imitates t.csv\nworkload:\n") {
		t.Errorf("%+v", got)
	}
	// What it prints is a suite's workload.
	suite := "name: from-trace\njob:\n  operators: [{name: s, kind: source}, {name: o, kind: sink, inputs: [s]}]\ncells: [{name: a}]\n" + got.out
	if checked := bench(t, wire(), nil, suite, "validate", "-"); checked.code != 0 {
		t.Errorf("%+v", checked)
	}
	for args, want := range map[string]string{"trace missing.csv --key a": "no such file", "trace t.csv --key zzz": "no such column", "trace t.csv --time at --unit h": "unit"} {
		if got := bench(t, wire(), nil, "", strings.Fields(args)...); got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestReport renders the formats again from a run's files.
func TestReport(t *testing.T) {
	inTempDir(t)
	const suite = `name: short
repeat: 1
job:
  operators: [{name: in, kind: source}, {name: n, kind: count, inputs: [in], parallelism: 2}, {name: out, kind: sink, inputs: [n]}]
workload: {kind: uniform, keys: 100, rate: 5000/s}
timing: {warmup: 50ms, steady: 200ms, after: 100ms, hold: 50ms, interval: 20ms}
cells: [{name: only}]
`
	if err := os.WriteFile("short.yaml", []byte(suite), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := bench(t, wire(), nil, "", "run", "short.yaml", "--progress", "none"); got.code != 0 || !strings.HasPrefix(got.out, "short: 1 of 1 ") {
		t.Fatalf("%+v", got)
	}
	for format, want := range map[string]string{"table": "short: 1 of 1", "json": `"schema_version"`, "md": "", "html": "", "all": "short: 1 of 1"} {
		got := bench(t, wire(), nil, "", "report", "runs/short/latest", "--format", format, "--out", "out-"+format)
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%s: %+v", format, got)
		}
	}
	for _, file := range []string{"out-md/report.md", "out-html/report.html", "out-all/report.md", "out-all/report.html"} {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if got := bench(t, wire(), nil, "", "report", "."); got.code != exitInternal || !strings.Contains(got.err, "not a run directory") {
		t.Errorf("%+v", got)
	}
}

func TestCapacityOfAStrategyInTurnsWithOthers(t *testing.T) {
	args := "capacity --duration 200ms --keys 1000 --preload 1000 --checkpoint 100ms --scope task --recovery checkpoint --repeat 2 --against none --against checkpoint --json --progress none"
	got := bench(t, wire(), nil, "", strings.Fields(args)...)
	var r capacityReport
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.code != 0 {
		t.Fatalf("code %d, %v: %s%s", got.code, err, got.out, got.err)
	}
	if len(r.Against) != 2 || len(r.Against[0].Runs) != 2 || len(r.Against[1].PairPercent) != 2 || r.Against[1].Recovery != "checkpoint" {
		t.Errorf("against %+v", r.Against)
	}
	if len(r.Runs) != 2 || r.Snapshots == 0 || r.Scope != "task" || r.RecordsPerS != min(r.Runs[0], r.Runs[1]) {
		t.Errorf("report %+v", r)
	}
}

func TestCapacityInAlternatePeriods(t *testing.T) {
	args := "capacity --duration 800ms --keys 1000 --checkpoint 200ms --alternate --json --progress none"
	got := bench(t, wire(), nil, "", strings.Fields(args)...)
	var r capacityReport
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.code != 0 {
		t.Fatalf("code %d, %v: %s%s", got.code, err, got.out, got.err)
	}
	if len(r.Turns) != 2 || r.Turns[0].With <= 0 || r.Turns[1].Without <= 0 || r.Checkpoints < 3 {
		t.Errorf("report %+v", r)
	}
}
