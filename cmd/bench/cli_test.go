package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-bench/weir/suites"
	"github.com/weir-bench/weir/suites/spec"
)

type result struct {
	code     int
	out, err string
}

// bench runs one command line in this process. The app runs nothing; run tells
// what each suite's outcome is.
func bench(t *testing.T, a app, env map[string]string, stdin string, args ...string) result {
	t.Helper()
	return benchCtx(t, context.Background(), a, env, stdin, args...)
}

func benchCtx(t *testing.T, ctx context.Context, a app, env map[string]string, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := execute(ctx, a, world{args: args, in: strings.NewReader(stdin), out: &out, err: &errs, env: func(k string) string { return env[k] }})
	return result{code, out.String(), errs.String()}
}

func testApp(o Outcome, err error) app {
	return app{known: known, run: func(context.Context, RunOptions) (Outcome, error) { return o, err }}
}

func inTempDir(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
}

const broken = `name: broken
duraton: 10s
job:
  workers: two
  operators: [{name: s, kind: source}, {name: o, kind: sink, inputs: [s]}]
workload: {kind: book, rate: 50000}
cells: [{name: a}]
`

// badInput is a command line and the message it should give; a * at the end
// stands for more.
type badInput struct{ args, want string }

// refuse runs command lines in a folder of odd files. Each message is compared
// as a whole: it is the product. Nothing may be started.
func refuse(t *testing.T, cases []badInput) {
	t.Helper()
	inTempDir(t)
	for name, text := range map[string]string{"broken.yaml": broken, "empty.yaml": "# nothing\n", "file": ""} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	started := false
	a := app{known: known, run: func(context.Context, RunOptions) (Outcome, error) { started = true; return Outcome{}, nil }}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			got := bench(t, a, nil, "", strings.Fields(c.args)...)
			want, open := strings.CutSuffix(c.want, "*")
			if got.code != exitUsage || got.out != "" || got.err != want && !(open && strings.HasPrefix(got.err, want)) {
				t.Errorf("code %d, out %q, err\n%s\nwant\n%s", got.code, got.out, got.err, c.want)
			}
		})
	}
	if started {
		t.Error("something was started")
	}
	if _, err := os.Stat("runs"); err == nil {
		t.Error("a run directory was made")
	}
}

func see(cmd string) string { return "bench: see 'bench" + cmd + " --help'\n" }

func TestBadSuites(t *testing.T) {
	const brokenSays = `broken.yaml:2:1: duraton: unknown field; known: name, description, seed, repeat, order, deadline, runtime, job, workload, timing, checkpoint, detection, cells, objectives
broken.yaml:4:12: job.workers: "two" is not a whole number; write a whole number without a unit, such as 3
broken.yaml:6:30: workload.rate: "50000" has no unit; write 50000/s
`
	refuse(t, []badInput{
		{"run", "bench: no suite given\n" + see(" run")},
		{"run quikstart", "bench: unknown suite \"quikstart\"; did you mean quickstart?\n" + see(" run")},
		{"run mine", "bench: unknown suite \"mine\"; suites: " + strings.Join(suites.Names(), ", ") + "; a file of your own needs its path, such as ./mine.yaml\n" + see(" run")},
		{"run missing.yaml", "bench: cannot read the suite: open missing.yaml: no such file or directory\n" + see(" run")},
		{"run .", "bench: cannot read the suite: read .: is a directory\n" + see(" run")},
		{"run broken.yaml", brokenSays},
		{"run quickstart broken.yaml empty.yaml", brokenSays + "empty.yaml:1:1: no suite: the file has nothing but blanks and comments; begin with 'name: my-suite'\n"},
		{"validate broken.yaml", brokenSays},
		{"validate", "bench: no file given\n" + see(" validate")},
		{"run quickstart --set workload.raet=1/s", "--set workload.raet=1/s: workload.raet: unknown field; did you mean rate?\n"},
		{"run quickstart --set workload.rate=0/s", "--set workload.rate=0/s: workload.rate: a rate of 0 sends nothing; write a rate above 0, such as 50000/s\n"},
		{"run quickstart --set job.workers=1", "quickstart.yaml:19:19: job.operators.words.placement[0]: there is no worker 2; write 1\nquickstart.yaml:44:16: cells.stop-restart.migration: there is one worker only*"},
		{"run quickstart --set x", "--set x: not of the form PATH=VALUE; write for example --set workload.rate=20000/s\n"},
	})
}

func TestBadCommandLines(t *testing.T) {
	refuse(t, []badInput{
		{"run quickstart --only (", "bench: --only \"(\" is not a regular expression: error parsing regexp: missing closing ): `(`\n" + see(" run")},
		{"run quickstart --only zzz", "bench: quickstart.yaml: invalid suite: no cell matches \"zzz\"; known: stop-restart, async-rounds, checkpoint, active\n" + see(" run")},
		{"run quickstart --repeat 0", "bench: --repeat is 0; use at least 1\n" + see(" run")},
		{"run quickstart --repeat x", "bench: --repeat is \"x\"; use a whole number\n" + see(" run")},
		{"run quickstart --repeat 5000", "--set repeat=5000: repeat: is 5000; write 1 to 1000\n"},
		{"run quickstart --seed -1", "bench: --seed is \"-1\"; use a whole number from 0\n" + see(" run")},
		{"run quickstart --runtime vm", "--set runtime=vm: runtime: unknown runtime \"vm\"; known: process, sim, docker\n"},
		{"run quickstart --progress loud", "bench: --progress \"loud\" is not known; use one of auto, bar, plain, json, none\n" + see(" run")},
		{"run quickstart --repaet 1", "bench: unknown flag --repaet; did you mean --repeat?\n" + see(" run")},
		{"run quickstart --repeat", "bench: flag needs an argument: --repeat\n" + see(" run")},
		{"rnu quickstart", "bench: unknown command \"rnu\"; did you mean run?\n" + see("")},
		{"zzz", "bench: unknown command \"zzz\"; commands: *"},
		{"help zzz", "bench: unknown command \"zzz\"; commands: *"},
		{"--zzz", "bench: unknown flag --zzz\n" + see("")},
		{"list zzz", "bench: unknown topic \"zzz\"; use one of suites, *"},
		{"list suites x", "bench: unexpected argument \"x\"\n" + see(" list")},
		{"plan", "bench: no suite given\n" + see(" plan")},
		{"plan quickstart smoke", "bench: unexpected argument \"smoke\"\n" + see(" plan")},
		{"report", "bench: no run directory given\n" + see(" report")},
		{"report nowhere", "bench: cannot read the run: stat nowhere: no such file or directory\n" + see(" report")},
		{"report file", "bench: cannot read the run: file is a file, not a run directory\n" + see(" report")},
		{"report . --format pdf", "bench: --format \"pdf\" is not known; use one of table, json, md, html, all\n" + see(" report")},
		{"capacity --workers 0", "bench: --workers is 0; use 1 to 1024\n" + see(" capacity")},
		{"capacity --keys 0", "bench: --keys is 0; use at least 1\n" + see(" capacity")},
		{"capacity --duration 5", "bench: --duration is \"5\"; use a time with a unit, such as 5s\n" + see(" capacity")},
		{"capacity --duration -5s", "bench: --duration is -5s; use 100ms to 1h\n" + see(" capacity")},
		{"capacity --checkpoint 1us", "bench: --checkpoint is 1µs; use 0, or at least 1ms\n" + see(" capacity")},
		{"capacity --checkpoint 3s --alternate", "bench: --alternate measures periods with a checkpoint and without in turns; add --checkpoint, such as 10s, and a --duration of at least two of them, and leave --against out\n" + see(" capacity")},
		{"capacity --repeat 0", "bench: --repeat is 0; use 1 to 1000\n" + see(" capacity")},
		{"capacity --preload 200000", "bench: --preload is 200000; use 0 to 100000, the number of keys\n" + see(" capacity")},
		{"capacity --recovery chekpoint", "bench: --recovery \"chekpoint\" is not known; use one of none, *"},
		{"capacity --recovery checkpoint", "bench: --recovery checkpoint restores from checkpoints; add --checkpoint, such as 1s\n" + see(" capacity")},
		{"capacity --scope task", "bench: --scope says how much rolls back to a checkpoint; use it with --checkpoint and recovery checkpoint\n" + see(" capacity")},
		{"capacity --scope tsk --checkpoint 1s", "bench: --scope \"tsk\" is not known; use one of global, region, task\n" + see(" capacity")},
		{"capacity --against chekpoint", "bench: --against \"chekpoint\" is not known; use one of none, *"},
		{"capacity --against checkpoint", "bench: --against checkpoint restores from checkpoints; add --checkpoint, such as 1s\n" + see(" capacity")},
		{"capacity --against active/task", "bench: --against is \"active/task\"; only checkpoint has a scope\n" + see(" capacity")},
		{"capacity --checkpoint 1s --against checkpoint/tsk", "bench: --against \"tsk\" is not known; use one of global, region, task\n" + see(" capacity")},
		{"capacity x", "bench: unexpected argument \"x\"\n" + see(" capacity")},
		{"sim --seeds 0", "bench: --seeds is 0; use at least 1\n" + see(" sim")},
		{"sim --seed 1 --seeds 5", "bench: --seed runs one seed; use it without --seeds and --first\n" + see(" sim")},
		{"sim --migration zzz", "bench: --migration \"zzz\" is not known; use one of none, stop-restart, *"},
		{"version x", "bench: unexpected argument \"x\"\n" + see(" version")},
	})
}

func TestExitCodes(t *testing.T) {
	inTempDir(t)
	for _, c := range []struct {
		o    Outcome
		err  error
		args string
		want int
	}{
		{Outcome{}, nil, "run smoke", exitPass},
		{Outcome{Missed: 1}, nil, "run smoke", exitMissed},
		{Outcome{Missed: 1, Regressions: 1}, nil, "run smoke", exitRegression},
		{Outcome{Missed: 1, Regressions: 1, Wrong: 1, Inconclusive: 1}, nil, "run smoke --strict", exitWrong},
		{Outcome{Inconclusive: 1}, nil, "run smoke", exitPass},
		{Outcome{Inconclusive: 1}, nil, "run smoke --strict", exitInconclusive},
		{Outcome{}, errors.New("port taken"), "run smoke", exitInternal},
		{Outcome{}, fmt.Errorf("trial 3: %w", context.Canceled), "run smoke", exitInterrupted},
		{Outcome{}, fmt.Errorf("suite: %w", spec.ErrInvalid), "run smoke", exitUsage},
		{Outcome{}, codeError(exitWrong), "run smoke", exitWrong},
	} {
		if got := bench(t, testApp(c.o, c.err), nil, "", strings.Fields(c.args)...); got.code != c.want {
			t.Errorf("%+v, %v: code %d, want %d: %s", c.o, c.err, got.code, c.want, got.err)
		}
	}
	// The worst of several suites counts.
	n := 0
	a := app{known: known, run: func(context.Context, RunOptions) (Outcome, error) {
		n++
		return Outcome{Wrong: 2 - n}, nil
	}}
	if got := bench(t, a, nil, "", "run", "smoke", "quickstart"); got.code != exitWrong || n != 2 {
		t.Errorf("%d suites, code %d", n, got.code)
	}
}

func TestInterrupted(t *testing.T) {
	inTempDir(t)
	ctx, cancel := context.WithCancel(context.Background())
	a := app{known: known, run: func(ctx context.Context, _ RunOptions) (Outcome, error) {
		cancel()
		return Outcome{}, fmt.Errorf("worker 1: connection: %w", ctx.Err())
	}}
	got := benchCtx(t, ctx, a, nil, "", "run", "smoke")
	if got.code != exitInterrupted || got.err != "bench: interrupted\n" {
		t.Errorf("%+v", got)
	}
}

func TestPanicBecomesAMessage(t *testing.T) {
	inTempDir(t)
	a := app{known: known, run: func(context.Context, RunOptions) (Outcome, error) { panic("index out of range") }}
	got := bench(t, a, nil, "", "run", "smoke")
	if got.code != exitInternal || strings.Contains(got.err, "goroutine") || !strings.HasPrefix(got.err, "bench: internal error, please report it: index out of range\n") {
		t.Errorf("%+v", got)
	}
	if got := bench(t, a, map[string]string{"BENCH_DEBUG": "1"}, "", "run", "smoke"); !strings.Contains(got.err, "goroutine") {
		t.Errorf("no stack where one was asked for: %+v", got)
	}
}

func TestFolderOfRuns(t *testing.T) {
	inTempDir(t)
	if err := os.WriteFile("taken", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a := testApp(Outcome{}, nil)
	for _, dir := range []string{"taken", "taken/runs", "/proc/runs"} {
		got := bench(t, a, nil, "", "run", "smoke", "--out", dir)
		if got.code != exitInternal || !strings.HasPrefix(got.err, "bench: the folder of the runs cannot be ") || !strings.Contains(got.err, "name another with --out") {
			t.Errorf("%s: %+v", dir, got)
		}
	}
	if got := bench(t, a, nil, "", "run", "smoke", "--out", "deep/er"); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if left, err := os.ReadDir("deep/er"); err != nil || len(left) != 0 {
		t.Errorf("the probe left %v, %v", left, err)
	}
}

func TestRunHandsOverWhatWasAsked(t *testing.T) {
	inTempDir(t)
	var got RunOptions
	a := app{known: known, run: func(_ context.Context, o RunOptions) (Outcome, error) { got = o; return Outcome{}, nil }}
	r := bench(t, a, map[string]string{"NO_COLOR": "1"}, "", "run", "quickstart", "--only", "^active$", "--repeat", "2", "--seed", "9",
		"--set", "workload.rate=20k/s", "--runtime", "sim", "--out", "here", "--progress", "none")
	if r.code != 0 || r.err != "" || r.out != "" {
		t.Fatalf("%+v", r)
	}
	s := got.Suite
	if len(got.Plan) != 2 || got.Plan[0].Name != "active" || s.Seed != 9 || s.Runtime != "sim" || s.Cells[3].Workload.Rate != 20000 ||
		got.OutDir != "here" || got.Streams.Color || got.Args[1] != "quickstart" || !bytes.Contains(got.Source, []byte("rate: 50000/s")) {
		t.Errorf("%+v", got)
	}
}

func TestNotWired(t *testing.T) {
	inTempDir(t)
	for _, args := range [][]string{{"run", "smoke"}, {"report", "."}, {"capacity"}, {"sim"}} {
		got := bench(t, app{known: known}, nil, "", args...)
		if got.code != exitInternal || got.err != "bench: "+args[0]+": not wired in this build\n" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestStandardInputAndValidate(t *testing.T) {
	inTempDir(t)
	got := bench(t, app{known: known}, nil, broken, "validate", "-")
	if got.code != exitUsage || !strings.HasPrefix(got.err, "standard input:2:1: duraton: ") {
		t.Errorf("%+v", got)
	}
	got = bench(t, app{known: known}, nil, "", "validate", "quickstart", "smoke")
	if got.code != 0 || got.err != "" || !strings.HasPrefix(got.out, "quickstart.yaml: ok: 4 cells, 12 trials, about ") || strings.Count(got.out, "\n") != 2 {
		t.Errorf("%+v", got)
	}
}

// TestGolden compares whole outputs with testdata/. To write them anew:
// go test ./cmd/bench -run TestGolden -update
func TestGolden(t *testing.T) {
	for _, args := range []string{"list", "list --json", "list faults", "plan quickstart", "plan smoke --json", "plan quickstart --only a --repeat 1",
		"help", "help run", "help exit-codes", "help capacity", "help sim", "help trace", "help model rounds", "help model plan", "help plan", "help report", "help validate", "help list", "__complete run --progress=", "__complete run q"} {
		t.Run(args, func(t *testing.T) {
			got := bench(t, app{known: known}, nil, "", strings.Fields(args)...)
			if got.code != 0 || strings.HasPrefix(args, "__") == (got.err == "") {
				t.Errorf("code %d: %s", got.code, got.err)
			}
			file := filepath.Join("testdata", strings.NewReplacer(" ", "_", "--", "", "=", "").Replace(args)+".golden")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got.out), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got.out != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got.out, want)
			}
		})
	}
}

func TestJSONOutputs(t *testing.T) {
	for _, args := range []string{"list --json", "list triggers --json", "plan smoke --json"} {
		got := bench(t, app{known: known}, nil, "", strings.Fields(args)...)
		var v any
		if err := json.Unmarshal([]byte(got.out), &v); err != nil || v == nil {
			t.Errorf("%s: %v: %s", args, err, got.out)
		}
	}
}

func TestHelpEverywhere(t *testing.T) {
	none := bench(t, app{known: known}, nil, "")
	help := bench(t, app{known: known}, nil, "", "--help")
	if none != help || none.code != 0 || none.err != "" {
		t.Errorf("no arguments: %+v\n--help: %+v", none, help)
	}
	for _, name := range []string{"run", "list", "validate", "plan", "report", "capacity", "sim", "trace", "version", "exit-codes"} {
		long, short := bench(t, app{known: known}, nil, "", "help", name), bench(t, app{known: known}, nil, "", name, "--help")
		if long.code != 0 || long != short || !strings.Contains(long.out, "bench "+name) {
			t.Errorf("%s: %+v\n%+v", name, long, short)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := bench(t, app{known: known}, nil, "", "completion", shell); got.code != 0 || len(got.out) < 1000 {
			t.Errorf("%s: %+v", shell, got)
		}
	}
	if got := bench(t, app{known: known}, nil, "", "version"); got.code != 0 || !strings.HasPrefix(got.out, "bench ") {
		t.Errorf("%+v", got)
	}
}

func TestColor(t *testing.T) {
	for _, c := range []struct {
		width int
		env   map[string]string
		want  bool
	}{{80, nil, true}, {0, nil, false}, {80, map[string]string{"NO_COLOR": "1"}, false}, {80, map[string]string{"CI": "true"}, false}, {80, map[string]string{"TERM": "dumb"}, false}} {
		w := world{outWidth: c.width, env: func(k string) string { return c.env[k] }}
		if got := w.streams().Color; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
