//go:build linux

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/sys/unix"

	"github.com/weir-bench/weir/engine/host"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/reports/schema"
	"github.com/weir-bench/weir/suites/progress"
	"github.com/weir-bench/weir/suites/spec"
)

func TestMain(m *testing.M) {
	if host.IsWorker() {
		os.Exit(host.WorkerMain(nil))
	}
	os.Exit(m.Run())
}

const tiny = `
name: tiny
seed: 7
repeat: 1
job:
  workers: 2
  operators:
    - {name: in, kind: source, placement: [1]}
    - name: count
      kind: count
      inputs: [in]
      parallelism: 2
      placement: [2, 1]
      keyGroups: 64
      state: {bytesPerKey: 1KiB}
    - {name: out, kind: sink, inputs: [count], placement: [1]}
workload: {kind: zipf, keys: 500, exponent: 0.8, rate: 20000/s}
timing: {warmup: 100ms, steady: 300ms, after: 500ms, hold: 100ms, interval: 20ms, band: 5, drain: 3s}
cells:
  - name: rounds
    labels: {strategy: async-rounds}
    migration: {strategy: async-rounds, groups: hottest, share: 0.5, rounds: 4, back: 200ms}
    timing: {capacity: 200ms}
  - name: active
    labels: {strategy: active}
    recovery: active
    faults: [{kind: kill, target: worker 2}]
  - name: checkpoint
    labels: {strategy: checkpoint}
    recovery: checkpoint
    checkpoint: {interval: 100ms}
    faults: [{kind: kill, target: task count/0, on: checkpoint-complete 3}]
  - name: cut
    recovery: checkpoint
    checkpoint: {interval: 100ms}
    faults: [{kind: cut, target: link 1-2, for: 100ms}]
  - name: quiet
    labels: {strategy: none}
objectives:
  - active.first_output_ms < 60000
  - quiet.steady_p99_ms < 0.000001
  - quiet.recovery_ms < 1
`

func parse(t *testing.T, text string, sets ...string) (*spec.Suite, []spec.Trial) {
	t.Helper()
	s, err := spec.Parse("tiny.yaml", []byte(text), spec.Options{Known: Known(), Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := spec.Plan(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, plan
}

// orphanless fails when a child process is left.
func orphanless(t *testing.T) {
	t.Helper()
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("a worker is left: pid %d, %v", pid, err)
	}
}

func checkSchema(t *testing.T, dir string) runlog.Results {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, runlog.ResultsFile))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.Results()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schema.ResultsID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schema.ResultsID)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(inst); err != nil {
		t.Errorf("results.json does not keep its schema: %v", err)
	}
	var r runlog.Results
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// wanted are the metrics that a cell of the tiny suite has to have a value for.
func wanted() map[string][]string {
	return map[string][]string{
		"rounds":     {"migration_ms", "moved_bytes", "waited_records", "migration_rounds", "plan_ms", "spike_peak_ms", "capacity_rec_s", "cpu_s_per_mrec", "rss_bytes"},
		"active":     {"detection_ms", "restart_ms", "restore_ms", "replay_ms", "first_output_ms", "spike_peak_ms", "fenced_frames"},
		"checkpoint": {"detection_ms", "restart_ms", "restore_ms", "replay_ms", "first_output_ms", "spike_peak_ms", "checkpoints", "checkpoint_ms"},
		"cut":        {"spike_peak_ms"}, // a short cut heals before anybody is given up
		"quiet":      {"cpu_s_per_mrec", "rss_bytes"},
	}
}

// TestSuite plays a whole suite in worker processes: a migration there and back, a kill with a standby, a kill on an
// event with a rollback, and a trial in which nothing happens.
func TestSuite(t *testing.T) {
	s, plan := parse(t, tiny)
	var shown bytes.Buffer
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan, Source: []byte(tiny), Args: []string{"bench"}, OutDir: t.TempDir(),
		Progress: progress.New(progress.Plain, &shown, time.Now)})
	if err != nil {
		t.Fatal(err)
	}
	orphanless(t)
	results := checkSchema(t, out.Dir)
	for _, c := range results.Cells {
		t.Logf("%s: %s %s", c.Name, c.Verdict, c.VerdictReason)
	}
	if out.Wrong != 0 || len(results.Cells) != 5 || results.Partial {
		t.Fatalf("%+v, %d cells", out, len(results.Cells))
	}
	for _, c := range results.Cells {
		rep := c.Repetitions[0]
		a := rep.Answers
		if rep.Verdict == runlog.Invalid || a.Expected == nil || *a.Expected == 0 || a.Lost == nil || *a.Lost != 0 || *a.Wrong != 0 || *a.Answered != *a.Expected {
			t.Errorf("%s: %s %s %+v", c.Name, rep.Verdict, rep.VerdictReason, a)
		}
		if *a.Scheduled != *a.Emitted+*a.NotEmitted || *a.NotEmitted != 0 {
			t.Errorf("%s: the account does not add up: %+v", c.Name, a)
		}
		for _, name := range append(wanted()[c.Name], "steady_p50_ms", "steady_p99_ms", "send_lag_p99_ms", "harness_cpu_s") {
			if m := rep.Metrics[name]; m.Value == nil || *m.Value < 0 {
				t.Errorf("%s: %s is %+v", c.Name, name, m)
			}
		}
	}
	if m := results.Cells[3].Repetitions[0].Metrics["detection_ms"]; m.Value != nil || m.Reason != "no failure was detected" {
		t.Errorf("cut: detection_ms is %+v", m)
	}
	judgeTiny(t, out, results)
	readTiny(t, out.Dir)
	if text := shown.String(); !strings.Contains(text, "warm-up") || !strings.Contains(text, "tiny 5/5") {
		t.Errorf("progress:\n%s", text)
	}
}

// judgeTiny looks at the objectives: one is met, one missed, and one has no figure, which counts as missed.
func judgeTiny(t *testing.T, out Outcome, results runlog.Results) {
	t.Helper()
	if len(out.Judgements) != 3 || out.Missed < 2 {
		t.Errorf("judgements: %+v", out.Judgements)
	}
	if j := out.Judgements[2]; j.Met || j.Reason == "" {
		t.Errorf("a figure that nobody has: %+v", j)
	}
	for _, c := range results.Cells {
		if _, ok := c.Repetitions[0].Metrics["recovery_ms"]; ok != (c.Name != "rounds" && c.Name != "quiet") {
			t.Errorf("%s: recovery_ms there: %v", c.Name, ok)
		}
	}
}

// readTiny reads the run directory as a report does.
func readTiny(t *testing.T, dir string) {
	t.Helper()
	run, err := runlog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, e := range run.Events {
		kinds[e.Kind]++
	}
	for kind, n := range map[string]int{runlog.RunStarted: 1, runlog.TrialStarted: 5, runlog.TrialEnded: 5, runlog.FaultInjected: 3, runlog.FaultHealed: 1,
		runlog.MigrationStarted: 2, runlog.MigrationEnded: 2, runlog.MigrationRound: 8, runlog.RunEnded: 1} {
		if kinds[kind] != n {
			t.Errorf("%d events %s, want %d", kinds[kind], kind, n)
		}
	}
	if len(run.Warnings) > 0 || len(run.Delays) != 5 || len(run.Timeline) < 5*40 {
		t.Errorf("warnings %v, %d delay series, %d rows", run.Warnings, len(run.Delays), len(run.Timeline))
	}
	if left, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*")); err != nil || len(left) > 0 {
		t.Errorf("checkpoints are left: %v, %v", left, err)
	}
	if journals, err := filepath.Glob(filepath.Join(dir, "faults", "*.jsonl")); err != nil || len(journals) != 3 {
		t.Errorf("journals of faults: %v, %v", journals, err)
	}
}

// interrupter cancels when the display shows a phase.
type interrupter struct {
	phase  string
	cancel context.CancelFunc
}

func (i *interrupter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(i.phase)) {
		i.cancel()
	}
	return len(p), nil
}

// TestInterrupted cancels in the second trial: what was measured is kept and marked, and no worker is left.
func TestInterrupted(t *testing.T) {
	s, plan := parse(t, tiny, "order=blocked")
	plan = []spec.Trial{plan[4], plan[1]}
	plan[0].Index, plan[1].Index = 0, 1
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, err := Run(ctx, Options{Suite: s, Plan: plan, Source: []byte(tiny), OutDir: t.TempDir(),
		Progress: progress.New(progress.Plain, &interrupter{"tiny 2/2 active #1 event", cancel}, time.Now)})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	orphanless(t)
	results := checkSchema(t, out.Dir)
	if !results.Partial || len(results.Cells) != 2 {
		t.Fatalf("partial %v, %d cells", results.Partial, len(results.Cells))
	}
	whole, cut := results.Cells[1].Repetitions[0], results.Cells[0].Repetitions[0]
	if results.Cells[1].Name != "quiet" {
		t.Fatalf("cells %s and %s", results.Cells[0].Name, results.Cells[1].Name)
	}
	if whole.Partial || whole.Verdict == runlog.Invalid {
		t.Errorf("the trial before: %s %s", whole.Verdict, whole.VerdictReason)
	}
	if !cut.Partial || cut.Verdict != runlog.Unknown || cut.VerdictReason != "interrupted" || cut.Metrics["steady_p50_ms"].Value == nil {
		t.Errorf("the trial under way: partial %v, %s %s, %+v", cut.Partial, cut.Verdict, cut.VerdictReason, cut.Metrics["steady_p50_ms"])
	}
	run, err := runlog.Open(out.Dir)
	if err != nil || !run.Manifest.Partial {
		t.Errorf("partial %v, %v", run.Manifest.Partial, err)
	}
}

// TestDeadline gives a suite less time than it takes.
func TestDeadline(t *testing.T) {
	s, plan := parse(t, tiny)
	s.Deadline = 300 * time.Millisecond // the parser would not let it pass
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan[:1], OutDir: t.TempDir()})
	if !errors.Is(err, errDeadline) || !strings.Contains(err.Error(), "300ms") {
		t.Errorf("error %v", err)
	}
	if r := checkSchema(t, out.Dir); !r.Partial || !strings.Contains(r.PartialReason, "deadline") {
		t.Errorf("partial %v: %s", r.Partial, r.PartialReason)
	}
	orphanless(t)
}

// TestWorkersThatDoNotStart gives one clear message and leaves nothing.
func TestWorkersThatDoNotStart(t *testing.T) {
	s, plan := parse(t, tiny)
	for name, command := range map[string][]string{"start the workers of cell": {"/bin/false"}, "no such file": {"/does/not/exist"}} {
		_, err := Run(context.Background(), Options{Suite: s, Plan: plan[:1], OutDir: t.TempDir(), Command: command})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: error %v", command, err)
		}
		orphanless(t)
	}
}

// TestUnsupported names everything that the engine cannot do, before anything is started.
func TestUnsupported(t *testing.T) {
	s, plan := parse(t, tiny, "checkpoint.interval=auto", "workload.service={kind: constant, mean: 1000}")
	dir := t.TempDir()
	_, err := Run(context.Background(), Options{Suite: s, Plan: plan, OutDir: dir})
	if !errors.Is(err, spec.ErrInvalid) {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{"checkpoint.interval: auto", "workload.service needs to know", "cell quiet"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("something was begun: %v", left)
	}
}

// TestSimulated plays a suite in the simulator: verdicts, and no figure that could be taken for a measured one.
func TestSimulated(t *testing.T) {
	s, plan := parse(t, tiny, "runtime=sim")
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan, OutDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r := checkSchema(t, out.Dir)
	if out.Missed != 0 || len(out.Skipped) != 3 || len(r.Cells) != 5 {
		t.Errorf("%+v, %d cells", out, len(r.Cells))
	}
	for _, c := range r.Cells {
		rep := c.Repetitions[0]
		if rep.Verdict != runlog.Valid || *rep.Answers.Expected == 0 {
			t.Errorf("%s: %s %s %+v", c.Name, rep.Verdict, rep.VerdictReason, rep.Answers)
		}
		if m := rep.Metrics["steady_p99_ms"]; m.Value != nil || m.Reason != notPerformance {
			t.Errorf("%s: steady_p99_ms is %+v", c.Name, m)
		}
	}
}

// TestDiskFull gives checkpoints a file system of one megabyte: a clear error, and what was measured is there. The run
// directory is on another one: between two attempts at a checkpoint there is room again, so whether an event finds some is
// chance.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small file system needs more rights: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s, plan := parse(t, tiny, "job.operators.count.state.bytesPerKey=16KiB", "checkpoint={interval: 100ms, dir: "+dir+"}")
	plan = plan[:1]
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan, OutDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), "could not be written") {
		t.Fatalf("error %v", err)
	}
	orphanless(t)
	r := checkSchema(t, out.Dir)
	rep := r.Cells[0].Repetitions[0]
	if !r.Partial || rep.Verdict == runlog.Valid || rep.Metrics["steady_p50_ms"].Value == nil {
		t.Errorf("partial %v, %s, %+v", r.Partial, rep.Verdict, rep.Metrics["steady_p50_ms"])
	}
}
