package sim

import (
	"flag"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/migration"
)

var (
	matrixFlag = flag.Uint64("matrix", 0, "run the whole crash matrix under this many seeds instead of a thin one")
	thinFlag   = flag.Int("thin", 0, "with -matrix: every n-th step only, with one victim each")
	cellFlag   = flag.String("cell", "", "run this cell of the crash matrix only, as a failure names it")
)

// parseCell is the inverse of Cell.String.
func parseCell(t *testing.T, s string) (c Cell) {
	t.Helper()
	f := strings.Split(s, "/")
	if len(f) != 7 {
		t.Fatalf("cell %q: want seed/operator/migration/recovery/transactional/victim/step", s)
	}
	var errs [3]error
	c = Cell{Operator: f[1], Migration: f[2], Recovery: f[3], Victim: f[5]}
	c.Seed, errs[0] = strconv.ParseUint(f[0], 10, 64)
	c.Transactional, errs[1] = strconv.ParseBool(f[4])
	c.Step, errs[2] = strconv.Atoi(f[6])
	for _, err := range errs {
		if err != nil {
			t.Fatalf("cell %q: %v", s, err)
		}
	}
	return c
}

func runCell(t *testing.T, c Cell) CellResult {
	t.Helper()
	s, err := migration.Lookup(c.Migration)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := Refer(c.Seed, c.Operator, s.External)
	if err != nil {
		t.Fatal(err)
	}
	return RunCell(c, ref)
}

func reportCell(t *testing.T, c Cell, r *CellResult) {
	t.Helper()
	t.Errorf("%s: %s\n  struck at %q\n  repro: go test ./engine/sim -run TestMatrix -v -cell=%s", c, r.Violation, r.Struck, c)
}

// TestMatrix stops every migration strategy at the steps of its protocol: every thirty-first one by default, with one victim each;
// -matrix=N runs all of it, under N seeds (a quarter of an hour each), as `bench sim --matrix` does.
func TestMatrix(t *testing.T) {
	t.Parallel()
	if *cellFlag != "" {
		c := parseCell(t, *cellFlag)
		r := runCell(t, c)
		t.Logf("steps %q", r.Steps)
		for _, tr := range r.Traces {
			t.Logf("%9.3f ms %s node %d task %d id %d count %d %s", float64(tr.AtNS)/1e6, tr.Kind, tr.Node, tr.Task, tr.ID, tr.Count, tr.Detail)
		}
		if r.Violation != "" {
			reportCell(t, c, &r)
		}
		return
	}
	o := MatrixOptions{First: *fromFlag, Seeds: *matrixFlag, Thin: *thinFlag}
	if *matrixFlag == 0 {
		o.Seeds, o.Thin = 1, 31
		if testing.Short() {
			o.Thin = 40
		}
	}
	cells, completed, rolledBack := 0, 0, 0
	err := Matrix(o, func(c Cell, r *CellResult) bool {
		cells++
		if r.Completed {
			completed++
		}
		if r.RolledBack {
			rolledBack++
		}
		if r.Violation != "" {
			reportCell(t, c, r)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cells: %d migrations completed, %d rolled back", cells, completed, rolledBack)
}
