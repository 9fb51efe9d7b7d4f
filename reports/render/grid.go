package render

import (
	"strings"

	"github.com/weir-bench/weir/reports/runlog"
)

// grid is a table of texts: a line a metric, a column a cell. There are a few strategies and many metrics, so this way
// round a table stays narrow and figures that are compared stand side by side.
type grid struct {
	caption string
	head    []string
	rows    [][]string
	// verdicts belong to the columns from 2 on; nil for a table without verdicts.
	verdicts []runlog.Verdict
}

// grids returns the tables of a group's figures with at most perTable cells in each.
func grids(g Group, show Choice, perTable int) []grid {
	var out []grid
	for from := 0; from < len(g.Rows); from += perTable {
		rows := g.Rows[from:min(from+perTable, len(g.Rows))]
		t := grid{caption: capitalise(g.Title), head: []string{"", "unit"}}
		answers, promises := []string{"answers", ""}, []string{"promised / observed", ""}
		told := false
		for _, r := range rows {
			t.head = append(t.head, r.Name)
			t.verdicts = append(t.verdicts, r.Verdict)
			answers, promises = append(answers, r.Answer), append(promises, r.Promise)
			told = told || r.Promise != "" && r.Promise != missing
		}
		t.rows = append(t.rows, answers)
		if told {
			t.rows = append(t.rows, promises)
		}
		for m, d := range g.Metrics {
			if !show.shows(d.metric) {
				continue
			}
			line := []string{d.title, d.unit}
			for _, r := range rows {
				line = append(line, r.Figures[m])
			}
			t.rows = append(t.rows, line)
		}
		out = append(out, t)
	}
	return out
}

// comparisonGrids returns the tables of a comparison, or none.
func comparisonGrids(c *Comparison, show Choice, perTable int) []grid {
	if c == nil {
		return nil
	}
	var out []grid
	for from := 0; from < len(c.Names); from += perTable {
		to := min(from+perTable, len(c.Names))
		t := grid{caption: "Compared with " + c.Base, head: append([]string{""}, c.Names[from:to]...)}
		for m, d := range c.Metrics {
			if !show.shows(d.metric) {
				continue
			}
			t.rows = append(t.rows, append([]string{d.title}, c.Ratios[m][from:to]...))
		}
		out = append(out, t)
	}
	return out
}

func capitalise(s string) string {
	if s == "" {
		return s
	}
	r := []rune(s)
	return strings.ToUpper(string(r[:1])) + string(r[1:])
}
