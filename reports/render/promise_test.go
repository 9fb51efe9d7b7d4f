package render

import (
	"testing"

	"github.com/weir-bench/weir/reports/runlog"
)

// A table of recoveries says what was promised and what the answers keep, the weakest of the repetitions; one in which
// nothing was compared has no such line.
func TestPromisesInTheTable(t *testing.T) {
	cell := func(reps ...runlog.Repetition) runlog.Cell { return runlog.Cell{Name: "a", Repetitions: reps} }
	for want, c := range map[string]runlog.Cell{
		"precise / precise":   cell(runlog.Repetition{Promised: "precise", Observed: "precise"}),
		"rollback / rollback": cell(runlog.Repetition{Promised: "rollback", Observed: "precise"}, runlog.Repetition{Promised: "rollback", Observed: "rollback"}),
		"precise / gap":       cell(runlog.Repetition{Promised: "precise", Observed: "gap"}, runlog.Repetition{}),
		missing:               cell(runlog.Repetition{}),
	} {
		if got := promise(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		g := Group{Title: "recovery", Rows: []Row{{Name: "a", Answer: "valid", Promise: promise(c)}}}
		rows := grids(g, MainFigures, 5)[0].rows
		switch {
		case want == missing && len(rows) != 1:
			t.Errorf("a line of nothing: %v", rows)
		case want != missing && (len(rows) != 2 || rows[1][2] != want):
			t.Errorf("%v, want %q", rows, want)
		}
	}
}
