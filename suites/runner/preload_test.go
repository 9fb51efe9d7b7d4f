//go:build linux

package runner

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// State that is there from the start, tasks without key groups, and limits of the bandwidth are refused where they cannot be
// or would have no effect, with what would be right.
func TestPreloadAndIdleAreChecked(t *testing.T) {
	const move = "cells=[{name: a, migration: {strategy: async-rounds, groups: random, share: 0.5, rounds: 4}}]"
	for _, c := range []struct {
		name string
		sets []string
		want []string // none: accepted
	}{
		{"both", []string{"job.operators.count.state.preload=500", "job.operators.count.idle=1"}, nil},
		{"none", []string{"job.operators.count.state.preload=0", "job.operators.count.idle=0"}, nil},
		{"preload of a sum", []string{"job.operators.count.kind=sum", "job.operators.count.state.preload=10"}, []string{"state.preload of operator count: its kind is sum", "write kind: count"}},
		{"preload of scrambled keys", []string{"workload.scramble=true", "job.operators.count.state.preload=10"}, []string{"state.preload of operator count", "write scramble: false"}},
		{"preload of a preset", []string{"workload={preset: ysb, rate: 1000/s}", "job.operators.count.state.preload=10"}, []string{"state.preload of operator count", "instead of preset: ysb"}},
		{"preload of drawn sizes", []string{"workload.state={kind: constant, mean: 100}", "job.operators.count.state={preload: 10}"}, []string{"state.preload of operator count", "use the operator's bytesPerKey"}},
		{"more keys than there are", []string{"job.operators.count.state.preload=501"}, []string{"state.preload of operator count", "has 500 keys only"}},
		{"idle sources", []string{"job.operators.in.idle=1"}, []string{"idle of operator in: only keyed operators", "leave it out"}},
		{"idle sinks", []string{"job.operators.out.idle=1"}, []string{"idle of operator out: only keyed operators"}},
		{"all idle", []string{"job.operators.count.idle=2"}, []string{"idle of operator count: 2 of 2 tasks", "write at most 1"}},
		{"both wrong", []string{"job.operators.count.idle=3", "job.operators.count.state.preload=501"}, []string{"idle of operator count: 3 of 2", "has 500 keys only"}},
	} {
		s, plan := parse(t, tiny, append([]string{"objectives=[]", move}, c.sets...)...)
		err := Check(s, plan)
		if (len(c.want) == 0) != (err == nil) || err != nil && !errors.Is(err, spec.ErrInvalid) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
			continue
		}
		for _, want := range append(c.want, "tiny.yaml: cell a: ") {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is missing in: %v", c.name, want, err)
			}
		}
	}
	s, plan := parse(t, tiny, "job.operators.count.idle=2")
	dir := t.TempDir()
	if _, err := Run(context.Background(), Options{Suite: s, Plan: plan, OutDir: dir}); !errors.Is(err, spec.ErrInvalid) {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("something was begun: %v", left)
	}
	for _, set := range []string{"job.operators.count.idle=-1", "job.operators.count.state.preload=-1"} {
		field, _, _ := strings.Cut(strings.TrimPrefix(set, "job."), "=")
		if _, err := spec.Parse("tiny.yaml", []byte(tiny), spec.Options{Known: Known(), Sets: []string{set}}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// A limit of the bandwidth is refused exactly where no state travels from task to task; without one nobody is refused.
func TestBandwidthNeedsStateThatIsSent(t *testing.T) {
	s, _ := parse(t, tiny, "objectives=[]", "cells=[{name: a, migration: {strategy: async-rounds, groups: random, share: 0.5, rounds: 4, bandwidth: 10MB}}]")
	cell := &s.Cells[0]
	refused := func() bool {
		return slices.ContainsFunc(unsupported(cell), func(p string) bool {
			return strings.Contains(p, "migration.bandwidth has no effect on "+cell.Migration.Strategy) && strings.Contains(p, "leave it out")
		})
	}
	var none []string
	for _, strategy := range migration.Strategies() {
		cell.Migration.Strategy, cell.Migration.Bandwidth = strategy.Name, 10e6
		if refused() {
			none = append(none, strategy.Name)
		}
		if cell.Migration.Bandwidth = 0; refused() {
			t.Errorf("%s is refused without a limit", strategy.Name)
		}
	}
	if want := []string{"stop-restart", "externalise"}; !slices.Equal(none, want) {
		t.Errorf("a limit is refused for %q, want %q", none, want)
	}
}

// Idle tasks begin with no key groups, and the others share them as if they were alone.
func TestRoutesOfIdleTasks(t *testing.T) {
	s, _ := parse(t, tiny, "job.operators.count.parallelism=4", "job.operators.count.placement=[1, 2, 1, 2]", "job.operators.count.idle=1")
	routes := idleRoutes(&s.Cells[0])
	if len(routes) != 1 || len(routes[1]) != 64 {
		t.Fatalf("%v, want the 64 key groups of operator 1", routes)
	}
	owned := map[int32]int{}
	for _, task := range routes[1] {
		owned[task]++
	}
	if owned[0]+owned[1]+owned[2] != 64 || owned[3] != 0 || min(owned[0], owned[1], owned[2]) < 21 {
		t.Errorf("tasks own %v", owned)
	}
	if s, _ = parse(t, tiny); len(idleRoutes(&s.Cells[0])) != 0 {
		t.Errorf("routes of a job without idle tasks: %v", idleRoutes(&s.Cells[0]))
	}
}

// preloadedMoves moves all that there is to a task that has nothing, at a rate at which most keys are not touched before.
const preloadedMoves = `
cells:
  - {name: free, migration: {strategy: all-at-once, groups: random, share: 1, from: 2, to: 1}}
  - {name: limited, migration: {strategy: all-at-once, groups: random, share: 1, from: 2, to: 1, bandwidth: 2MB}}
`

// The whole state is there before the first record, one task has all of it and the idle one gets it; a limit of the
// bandwidth makes the same move take as long as its bytes say. All answers count from zero.
func TestPreloadedStateMovesToAnIdleTask(t *testing.T) {
	text := tiny[:strings.Index(tiny, "cells:")] + preloadedMoves[1:]
	text = strings.NewReplacer("keyGroups: 64", "keyGroups: 64\n      idle: 1", "bytesPerKey: 1KiB", "bytesPerKey: 1KiB, preload: 500", "rate: 20000/s", "rate: 500/s").Replace(text)
	took := map[string]float64{}
	for name, rep := range playText(t, text) {
		if rep.Verdict == runlog.Invalid || rep.Answers.Wrong == nil || *rep.Answers.Wrong != 0 || *rep.Answers.Answered != *rep.Answers.Expected {
			t.Fatalf("%s: %s %s %+v", name, rep.Verdict, rep.VerdictReason, rep.Answers)
		}
		moved, ms := rep.Metrics["moved_bytes"].Value, rep.Metrics["migration_ms"].Value
		if moved == nil || ms == nil {
			t.Fatalf("%s: moved %+v in %+v", name, rep.Metrics["moved_bytes"], rep.Metrics["migration_ms"])
		}
		const all = 500 * (8 + 1024)
		if *moved < all || *moved > 1.05*all {
			t.Errorf("%s: %.0f bytes moved, want those of all 500 keys: %d and a little", name, *moved, all)
		}
		took[name] = *ms
		if least := (*moved/2e6 - 0.01) * 1000; name == "limited" && (*ms < least-1 || *ms > 2*least) {
			t.Errorf("%.0f bytes took %.1f ms at 2 MB/s, want %.0f and a little", *moved, *ms, least)
		}
	}
	if took["free"] > took["limited"]/2 {
		t.Errorf("moves took %v ms", took)
	}
}

// Preloaded keys reach the engine as a parameter of the count only.
func TestPreloadOfTheJob(t *testing.T) {
	s, _ := parse(t, tiny, "job.operators.count.state.preload=321")
	for _, op := range buildJob(&s.Cells[0], 1).Operators {
		if want := map[string]string{"count": "321"}[op.Name]; op.Params["preload"] != want {
			t.Errorf("operator %s: preload %q, want %q", op.Name, op.Params["preload"], want)
		}
	}
	var none core.OperatorSpec
	if withPreload(&none, &spec.Operator{}); none.Params != nil {
		t.Errorf("parameters of an operator without any: %v", none.Params)
	}
}
