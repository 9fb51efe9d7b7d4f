package render

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/weir-bench/weir/reports/runlog"
)

// Sweep is cells that differ in the number of rounds of a move only: what the cost model expected of each number beside
// what was measured.
type Sweep struct {
	Name string
	Rows []SweepRow // by rising number of rounds
	// Recommended is the row of the number that the model recommends, or the nearest one; −1 if there is none.
	Recommended int
	// Summary says in words how good the recommendation and the expectations are.
	Summary string
}

// SweepRow is one number of rounds. Figures are medians over the repetitions; NaN stands for one that is missing.
type SweepRow struct {
	Label                                                              string
	Rounds                                                             float64
	WaitExpected, Wait, PeakExpected, Peak, DurationExpected, Duration float64 // ms
	ExcessExpected, Excess, Total                                      float64 // record-seconds
	recommended                                                        float64 // rounds, by the model of this cell
	auto                                                               bool
}

// sweepMark is what stands between the name of a cell and its number of rounds.
const sweepMark = "/rounds="

// sweepsOf finds the sweeps among the cells of a group: at least three cells each.
func sweepsOf(g Group) []Sweep {
	var out []Sweep
	for _, r := range g.Rows {
		base, value, ok := strings.Cut(r.cell.Name, sweepMark)
		if _, expected := r.cell.Summary["predicted_wait_ms"]; !ok || !expected || r.Verdict == runlog.Invalid {
			continue
		}
		row := sweepRow(r.cell, value)
		if math.IsNaN(row.Rounds) {
			continue
		}
		i := slices.IndexFunc(out, func(s Sweep) bool { return s.Name == base })
		if i < 0 {
			i = len(out)
			out = append(out, Sweep{Name: base})
		}
		out[i].Rows = append(out[i].Rows, row)
	}
	out = slices.DeleteFunc(out, func(s Sweep) bool { return len(s.Rows) < 3 })
	for i := range out {
		out[i].finish()
	}
	return out
}

func sweepRow(c runlog.Cell, value string) SweepRow {
	get := func(metric string) float64 {
		if m := c.Summary[metric].Median; m != nil {
			return *m
		}
		return math.NaN()
	}
	return SweepRow{Label: value, Rounds: get("migration_rounds"), auto: value == "auto",
		WaitExpected: get("predicted_wait_ms"), Wait: get("longest_wait_ms"), PeakExpected: get("predicted_peak_ms"), Peak: get("stable_peak_ms"),
		DurationExpected: get("predicted_duration_ms"), Duration: get("migration_ms"), ExcessExpected: get("predicted_excess_rec_s"),
		Excess: get("excess_delay_rec_s"), Total: get("total_delay_rec_s"), recommended: get("rounds_recommended")}
}

// finish orders the rows, finds the recommended one, and says how good it is.
func (s *Sweep) finish() {
	slices.SortStableFunc(s.Rows, func(a, b SweepRow) int { return cmp.Compare(a.Rounds, b.Rounds) })
	s.Recommended = -1
	want := s.wanted()
	for i, r := range s.Rows {
		if r.auto {
			s.Recommended = i
			break
		}
		if near := func(r SweepRow) float64 { return math.Abs(math.Log(r.Rounds / want)) }; want > 0 && (s.Recommended < 0 || near(r) < near(s.Rows[s.Recommended])) {
			s.Recommended = i
		}
	}
	var parts []string
	if s.Recommended >= 0 {
		r := s.Rows[s.Recommended]
		text := fmt.Sprintf("The cost model recommends N = %s", FormatNumber(want))
		if r.Rounds != want {
			text += fmt.Sprintf(", of the sweep N = %s", FormatNumber(r.Rounds))
		}
		if best, regret, ok := s.regret(); ok {
			text += fmt.Sprintf("; the delay of all records together was least with N = %s, and with the recommended one %s %% above that", FormatNumber(best.Rounds), FormatNumber(regret*100))
		}
		parts = append(parts, text+".")
	}
	for _, c := range []struct {
		name string
		get  func(SweepRow) (float64, float64)
	}{
		{"the longest wait", func(r SweepRow) (float64, float64) { return r.WaitExpected, r.Wait }},
		{"the peak", func(r SweepRow) (float64, float64) { return r.PeakExpected, r.Peak }},
		{"the time", func(r SweepRow) (float64, float64) { return r.DurationExpected, r.Duration }},
	} {
		if worst, n := s.worst(c.get); n > 0 {
			parts = append(parts, fmt.Sprintf("Of %s, expectations are off by at most %s %%.", c.name, FormatNumber(worst*100)))
		}
	}
	s.Summary = strings.Join(parts, " ")
}

// wanted is the number that the model recommends: its cell's own, or the median of what the cells' models say.
func (s *Sweep) wanted() float64 {
	var all []float64
	for _, r := range s.Rows {
		if r.auto {
			return r.Rounds
		}
		if !math.IsNaN(r.recommended) {
			all = append(all, r.recommended)
		}
	}
	if len(all) == 0 {
		return math.NaN()
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// regret is how much longer all records waited with the recommended number than with the best one, as a share.
func (s *Sweep) regret() (best SweepRow, regret float64, ok bool) {
	found := false
	for _, r := range s.Rows {
		if !math.IsNaN(r.Total) && (!found || r.Total < best.Total) {
			best, found = r, true
		}
	}
	chosen := s.Rows[s.Recommended].Total
	if !found || math.IsNaN(chosen) || best.Total <= 0 {
		return best, 0, false
	}
	return best, chosen/best.Total - 1, true
}

func (s *Sweep) worst(get func(SweepRow) (expected, measured float64)) (worst float64, n int) {
	for _, r := range s.Rows {
		if e, m := get(r); !math.IsNaN(e) && m > 0 {
			worst = max(worst, math.Abs(e/m-1))
			n++
		}
	}
	return worst, n
}

// grid is the table of a sweep.
func (s *Sweep) grid() grid {
	g := grid{caption: fmt.Sprintf("Rounds of %s: expected and measured", s.Name),
		head: []string{"rounds", "longest wait expected, ms", "measured", "peak (p99) expected, ms", "measured", "time expected, ms", "measured", "delay above the level expected, rec·s", "measured", "delay of all records, rec·s"}}
	for i, r := range s.Rows {
		label := r.Label
		if n := FormatNumber(r.Rounds); n != label {
			label = fmt.Sprintf("%s (%s)", n, r.Label)
		}
		if i == s.Recommended {
			label += " ◀ recommended"
		}
		line := []string{label}
		for _, v := range []float64{r.WaitExpected, r.Wait, r.PeakExpected, r.Peak, r.DurationExpected, r.Duration, r.ExcessExpected, r.Excess, r.Total} {
			line = append(line, FormatNumber(v))
		}
		g.rows = append(g.rows, line)
	}
	return g
}

// fitting is the table in as many parts as the width asks for; each part repeats the first column.
func (s *Sweep) fitting(width int) []grid {
	whole := s.grid()
	if width == 0 || tableWidth(whole) <= width {
		return []grid{whole}
	}
	var out []grid
	for from := 1; from < len(whole.head); from += 2 {
		to := min(from+2, len(whole.head))
		part := grid{caption: whole.caption, head: append([]string{whole.head[0]}, whole.head[from:to]...)}
		for _, r := range whole.rows {
			part.rows = append(part.rows, append([]string{r[0]}, r[from:to]...))
		}
		out = append(out, part)
	}
	return out
}

// sweepLines are the curves of the drawing: the expectation is dashed, what was measured drawn through.
func sweepLines() []struct {
	class, text string
	get         func(SweepRow) float64
} {
	return []struct {
		class, text string
		get         func(SweepRow) float64
	}{
		{"c0 dash", "longest wait, expected", func(r SweepRow) float64 { return r.WaitExpected }},
		{"c0", "longest wait, measured", func(r SweepRow) float64 { return r.Wait }},
		{"c1 dash", "peak (p99), expected", func(r SweepRow) float64 { return r.PeakExpected }},
		{"c1", "peak (p99), measured", func(r SweepRow) float64 { return r.Peak }},
		{"c2 dash", "time, expected", func(r SweepRow) float64 { return r.DurationExpected }},
		{"c2", "time, measured", func(r SweepRow) float64 { return r.Duration }},
	}
}

func sweepLegend() []legend {
	var out []legend
	for _, l := range sweepLines() {
		out = append(out, legend{l.class, l.text})
	}
	return out
}

// chart draws expectations and measurements over the number of rounds, both by their logarithms.
func (s *Sweep) chart() template.HTML {
	var all []float64
	for _, l := range sweepLines() {
		for _, r := range s.Rows {
			all = append(all, l.get(r))
		}
	}
	axis, ok := newLogAxis(all, chartTop, chartBottom)
	last := s.Rows[len(s.Rows)-1].Rounds
	if !ok || last <= 1 {
		return ""
	}
	d := newSVG(chartWidth, chartHeight, "Rounds of "+s.Name)
	first := max(1, s.Rows[0].Rounds)
	x := func(n float64) float64 {
		return chartLeft + 24 + (chartRight-chartLeft-48)*math.Log(n/first)/math.Log(max(last/first, 2))
	}
	axis.draw(d, chartLeft, chartRight)
	drawn := math.Inf(-1)
	for _, r := range s.Rows {
		at := x(r.Rounds)
		d.line(at, chartBottom, at, chartBottom+5, "axis")
		if at-drawn > 26 {
			d.text(at, chartBottom+19, "middle", "tick", FormatNumber(r.Rounds))
			drawn = at
		}
	}
	d.line(chartLeft, chartBottom, chartRight, chartBottom, "axis")
	d.text((chartLeft+chartRight)/2, chartHeight-10, "middle", "label", "number of rounds")
	for _, l := range sweepLines() {
		var points []point
		for _, r := range s.Rows {
			points = append(points, point{x(r.Rounds), axis.y(l.get(r))})
		}
		color, dashed := strings.CutSuffix(l.class, " dash")
		class := "l bold " + color
		if dashed {
			class += " bad"
		}
		d.path(points, class, l.text)
	}
	if s.Recommended >= 0 {
		at := x(s.Rows[s.Recommended].Rounds)
		d.line(at, chartTop-4, at, chartBottom, "event")
		d.text(at+6, chartTop-10, "start", "eventlabel", "recommended")
	}
	return template.HTML(d.String())
}

// planNotes repeats what planners said of key groups that no plan can help with, once a cell.
func planNotes(events []runlog.Event) []string {
	var out []string
	for _, e := range events {
		result, _ := e.Detail["result"].(map[string]any)
		if e.Kind != "migration_planned" || result["oversize_groups"] == nil {
			continue
		}
		if note := fmt.Sprintf("%s, plan of %v: %v.", e.Cell, result["planner"], result["verdict"]); !slices.ContainsFunc(out, func(s string) bool { return strings.HasPrefix(s, e.Cell+", ") }) {
			out = append(out, note)
		}
	}
	return out
}
