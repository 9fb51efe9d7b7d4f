//go:build linux

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/queries"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/suites/verify"
	"github.com/weir-bench/weir/workloads"
)

const tinyQueries = `
name: tiny
seed: 7
repeat: 1
job: {workers: 2, query: {name: q5, keyGroups: 64, window: 400ms, slide: 200ms}}
workload: {kind: nexmark, rate: 10000/s}
timing: {warmup: 100ms, steady: 300ms, after: 300ms, hold: 100ms, interval: 20ms, band: 5, drain: 5s}
cells:
  - name: q5
  - name: q1
    job: {query: {name: q1, sources: 2, parallelism: 3}}
  - name: q12-moved
    job: {query: {name: q12}}
    migration: {strategy: async-rounds, groups: hottest, share: 0.5, rounds: 2}
  - name: q9-killed
    job: {query: {name: q9, sink: transactional}}
    recovery: checkpoint
    checkpoint: {interval: 100ms}
    faults: [{kind: kill, target: worker 2}]
  - name: shufflebench
    job: {query: {name: shufflebench}}
    workload: {kind: shufflebench, rate: 50000/s} # a rule answers each tenth record
`

func TestQueries(t *testing.T) {
	s, plan := parse(t, tinyQueries)
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan, Source: []byte(tinyQueries), OutDir: t.TempDir(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	orphanless(t)
	for _, c := range checkSchema(t, out.Dir).Cells {
		for _, r := range c.Repetitions {
			a := r.Answers
			if r.Verdict == runlog.Unknown && strings.Contains(r.VerdictReason, "without a planned fault") {
				t.Logf("%s: %s", c.Name, r.VerdictReason) // the machine is overloaded
				continue
			}
			if late := r.Metrics["late_events"]; late.Value == nil || *late.Value != 0 {
				t.Errorf("%s: no event comes too late, but %+v", c.Name, late)
			}
			if r.Verdict == runlog.Invalid || a.Expected == nil || *a.Expected == 0 || a.Lost == nil || *a.Lost+*a.Wrong+*a.Duplicated != 0 || *a.Answered != *a.Expected {
				t.Errorf("%s: %s: %s: %+v", c.Name, r.Verdict, r.VerdictReason, a)
			}
		}
	}
}

func TestQueriesAreChecked(t *testing.T) {
	for _, c := range []struct {
		sets []string
		want []string // words of the error; nil: there is none
	}{
		{nil, nil},
		{[]string{"job.query=q6"}, nil},
		{[]string{"job.query.name=q55"}, []string{`unknown query "q55"`, "did you mean q5?"}},
		{[]string{"workload.kind=ysb"}, []string{"workload", "is of kind ysb, but q5 reads the events of nexmark", "write 'kind: nexmark'"}},
		{[]string{"job.operators=[{name: a, kind: source}]"}, []string{"job.query", "beside operators"}},
		{[]string{"job.query.parallelism=65"}, []string{"job.query.parallelism", "65 tasks share 64 key groups"}},
		{[]string{"job.query.sink=transactional"}, []string{"job.query.sink", "checkpoint.interval"}},
		{[]string{"job.query.slide=1s"}, []string{"job.query.slide", "longer than the window"}},
		{[]string{"job.query.bound=1s"}, []string{"job.query.bound", "write at least 3s"}},
		{[]string{"job.query.bound=1s", "job.query.step=1ns"}, nil},
		{[]string{"job.slots=2"}, []string{"job.slots", "do not fit"}},
		{[]string{"cells.q5.migration.strategy=pause-move"}, []string{"several keyed operators", "count, hottest"}},
		{[]string{"timing.capacity=1s"}, []string{"timing.capacity is not available"}},
		{[]string{"workload.rate=50M/s"}, []string{"golden answers can be evaluated in memory"}},
	} {
		text := tinyQueries[:strings.Index(tinyQueries, "  - name: q1\n")]
		s, err := spec.Parse("tiny.yaml", []byte(text), spec.Options{Known: Known(), Sets: c.sets})
		if err == nil {
			plan, planErr := spec.Plan(s, nil)
			if planErr != nil {
				t.Fatal(planErr)
			}
			err = Check(s, plan)
		}
		if c.want == nil {
			if err != nil {
				t.Errorf("%v: %v", c.sets, err)
			}
			continue
		}
		if !errors.Is(err, spec.ErrInvalid) {
			t.Errorf("%v: %v, want an error about %q", c.sets, err, c.want)
			continue
		}
		for _, word := range c.want {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v: %v; it should have %q", c.sets, err, word)
			}
		}
	}
	if _, err := spec.Parse("t.yaml", []byte("name: t\njob: {workers: 2}\nworkload: {rate: 1/s}\ncells: [{name: a}]\n"), spec.Options{Known: Known()}); err == nil || !strings.Contains(err.Error(), "job: has no operators") {
		t.Errorf("neither operators nor a query: %v", err)
	}
}

// TestQueryDefaults keeps the defaults of a suite equal to those of the queries, and the job equal to theirs.
func TestQueryDefaults(t *testing.T) {
	for _, q := range queries.Queries() {
		text := fmt.Sprintf("name: t\njob: {query: %s, workers: 2}\nworkload: {kind: %s, rate: 1000/s}\ncells: [{name: a}]\n", q.Name, q.Workload)
		s, _ := parse(t, text)
		if got := queryOptions(*s.Cells[0].Job.Query); got != queries.DefaultOptions() {
			t.Fatalf("options %+v, want %+v", got, queries.DefaultOptions())
		}
		job, want := buildJob(&s.Cells[0], 1), q.Operators(queries.DefaultOptions())
		for i, op := range job.Operators {
			op.Recovery, op.Service = "", core.Service{}
			if fmt.Sprintf("%+v", op) != fmt.Sprintf("%+v", want[i]) {
				t.Errorf("%s: operator %+v, want %+v", q.Name, op, want[i])
			}
		}
	}
}

// TestQueryOracle plants what can be wrong with the outputs of a query; each has to be found, and judged.
func TestQueryOracle(t *testing.T) {
	w, err := workloads.Open(workloads.Spec{Kind: workloads.KindNEXMark, Rate: 1000, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, splits := range []int{1, 3} {
		f := newFeed(w, splits, spec.CatchUp{}, time.Second)
		f.begin(int64(5 * time.Second))
		emitted := []uint64{600}
		if splits == 3 {
			emitted = []uint64{200, 190, 210}
		}
		s := spec.Query{Name: "q1", Sources: splits, Parallelism: 1, KeyGroups: 8, Window: time.Second, Slide: time.Second, Gap: time.Second, Bound: 3 * time.Second}
		right, _, err := newQuery(&s).of.Golden(sent(f, emitted), queryOptions(s))
		if err != nil || len(right) < 500 {
			t.Fatalf("%d answers, %v", len(right), err)
		}
		for name, c := range map[string]struct {
			change func(a []queries.Answer) []queries.Answer
			want   verify.Answers
			broken bool
		}{
			"right": {func(a []queries.Answer) []queries.Answer { slices.Reverse(a); return a }, verify.Answers{}, false},
			"lost":  {func(a []queries.Answer) []queries.Answer { return a[2:] }, verify.Answers{Lost: 2}, true},
			"twice": {func(a []queries.Answer) []queries.Answer { return append(a, a[7]) }, verify.Answers{Duplicated: 1}, true},
			"wrong": {func(a []queries.Answer) []queries.Answer { a[3].Val++; return a }, verify.Answers{Lost: 1, Wrong: 1}, true},
		} {
			q := newQuery(&s)
			for _, a := range c.change(slices.Clone(right)) {
				q.set.Add(a.Hash())
			}
			q.compare(f, emitted)
			got := q.sum
			n := uint64(len(right))
			want := c.want
			want.Expected, want.Answered = n, n-want.Lost
			if got != want || q.err != nil || uint64(len(q.missing)) != want.Lost {
				t.Errorf("%s, %d splits: %+v, %v, want %+v", name, splits, got, q.err, want)
			}
			if broken, err := q.judge(recovery.Precise, true, got); (broken != "") != c.broken || err != nil {
				t.Errorf("%s: judged %q, %v", name, broken, err)
			}
			if broken, err := q.judge(recovery.Gap, true, got); name == "wrong" && (broken != "" || !errors.Is(err, errFewer)) {
				t.Errorf("%s with a gap: judged %q, %v", name, broken, err)
			}
			for _, i := range q.missing {
				if due := q.dueOf(q.golden[i], 0, time.Second); due < 0 || due >= time.Second {
					t.Errorf("an answer was due at %v of a second", due)
				}
			}
		}
	}
}

// TestTraces looks for a trace at its path, in the folder for traces, and nowhere.
func TestTraces(t *testing.T) {
	const text = "name: t\njob: {workers: 1, operators: [{name: in, kind: source}, {name: out, kind: sink, inputs: [in]}]}\n" +
		"workload: {kind: replay, arrivals: replay, replay: {path: nowhere/a.csv, key: k, time: t, unit: ms}}\ncells: [{name: a}]\n"
	t.Chdir(t.TempDir())
	s, plan := parse(t, text)
	t.Setenv(TracesDir, "")
	if err := Check(s, plan); !errors.Is(err, spec.ErrInvalid) || !strings.Contains(err.Error(), "workload.replay.path: there is no trace nowhere/a.csv") ||
		!strings.Contains(err.Error(), "set WEIR_TRACES to the folder that has a.csv") {
		t.Errorf("a trace that is nowhere: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.csv"), []byte("t,k\n0,x\n5,y\n9,x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(TracesDir, dir)
	if err := Check(s, plan); err != nil {
		t.Errorf("a trace in %s: %v", TracesDir, err)
	}
	w, err := workloads.Open(generators(&s.Cells[0], 1))
	if err != nil {
		t.Fatal(err)
	}
	if n, ends := w.Ends(); n != 3 || !ends {
		t.Errorf("%d records", n)
	}
	t.Chdir(filepath.Dir(dir))
	if err := os.MkdirAll("nowhere", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(TracesDir, "")
	if err := os.Rename(filepath.Join(dir, "a.csv"), filepath.Join("nowhere", "a.csv")); err != nil {
		t.Fatal(err)
	}
	if path, err := locate("nowhere/a.csv"); err != nil || path != "nowhere/a.csv" {
		t.Errorf("a trace at its path: %q, %v", path, err)
	}
}
