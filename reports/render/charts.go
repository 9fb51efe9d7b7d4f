package render

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/reports/stats"
)

// The frame of the two line charts.
const (
	chartWidth, chartHeight             = 860.0, 330.0
	chartLeft, chartRight               = 68.0, 842.0
	chartTop, chartBottom               = 26.0, 282.0
	colours                             = 8 // c0 … c7 of the page's style
	shownBeforeS, shownAfterS, hardEndS = 4.0, 6.0, 120.0
	percentileDigits                    = 5 // the axis ends at 99.999 %
)

// representative is the repetition of a cell whose figures are drawn bold or as a bar: the one with the median of the
// metric, so that what is drawn was measured and is no mixture. Of an even number it is the worse of the middle two;
// repetitions without a value count as worst.
func representative(c runlog.Cell, metric string) (runlog.Repetition, bool) {
	var reps []runlog.Repetition
	for _, r := range c.Repetitions {
		if !r.Partial {
			reps = append(reps, r)
		}
	}
	if len(reps) == 0 {
		return runlog.Repetition{}, false
	}
	value := func(r runlog.Repetition) float64 {
		if v := r.Metrics[metric].Value; v != nil {
			return *v
		}
		return math.Inf(1)
	}
	sort.SliceStable(reps, func(i, j int) bool { return value(reps[i]) < value(reps[j]) })
	return reps[len(reps)/2], true
}

// trace is one repetition in the delay chart; x is seconds from the event, y the interval p99 in ms or NaN.
type trace struct {
	row   int
	bold  bool
	title string
	x, y  []float64
	lost  []float64 // times at which records were due that never came
}

func (v *View) traces(g Group) (out []trace) {
	byRep := map[string][]runlog.TimelineRow{}
	for _, r := range v.run.Timeline {
		tag := runlog.Tag(r.Cell, r.Repetition)
		byRep[tag] = append(byRep[tag], r)
	}
	for i, row := range g.Rows {
		bold, _ := representative(row.cell, "spike_area_ms_s")
		for _, rep := range row.cell.Repetitions {
			if rep.Spike == nil {
				continue
			}
			t := trace{row: i, bold: rep.Repetition == bold.Repetition, title: fmt.Sprintf("%s, repetition %d", row.Name, rep.Repetition)}
			half := rep.Spike.IntervalMS / 2
			for _, p := range byRep[runlog.Tag(row.cell.Name, rep.Repetition)] {
				at := (p.StartMS + half - rep.Spike.EventMS) / 1000
				if at < -shownBeforeS || at > hardEndS {
					continue
				}
				y := math.NaN()
				if p.P99MS != nil {
					y = *p.P99MS
				}
				t.x, t.y = append(t.x, at), append(t.y, y)
				if p.Unanswered > 0 {
					t.lost = append(t.lost, at)
				}
			}
			out = append(out, t)
		}
	}
	return out
}

// shownSpan ends a little after the last spike has settled: what follows is steady and would squeeze the picture.
func shownSpan(g Group, traces []trace) float64 {
	end := shownAfterS
	for _, r := range g.Rows {
		for _, rep := range r.cell.Repetitions {
			if rep.Spike == nil {
				continue
			}
			length := rep.Spike.ObservedMS
			if m := rep.Metrics["spike_length_ms"]; m.Value != nil {
				length = *m.Value
			}
			end = max(end, length/1000*1.4)
		}
	}
	last := 0.0
	for _, t := range traces {
		if n := len(t.x); n > 0 {
			last = max(last, t.x[n-1])
		}
	}
	return min(end, last, hardEndS)
}

// delayChart draws the interval p99 over time of all repetitions, aligned at the event.
func (v *View) delayChart(g Group) template.HTML {
	traces := v.traces(g)
	end := shownSpan(g, traces)
	var all []float64
	for _, t := range traces {
		for i, x := range t.x {
			if x <= end {
				all = append(all, t.y[i])
			}
		}
	}
	axis, ok := newLogAxis(all, chartTop, chartBottom)
	if !ok || end <= 0 {
		return ""
	}
	s := newSVG(chartWidth, chartHeight, "Delay over time, "+g.Title)
	x := func(t float64) float64 {
		return chartLeft + (chartRight-chartLeft)*(t+shownBeforeS)/(end+shownBeforeS)
	}
	axis.draw(s, chartLeft, chartRight)
	step := niceStep(end+shownBeforeS, 12)
	for t := math.Ceil(-shownBeforeS/step) * step; t <= end+1e-9; t += step {
		s.line(x(t), chartBottom, x(t), chartBottom+5, "axis")
		s.text(x(t), chartBottom+19, "middle", "tick", signed(t))
	}
	s.line(chartLeft, chartBottom, chartRight, chartBottom, "axis")
	s.text((chartLeft+chartRight)/2, chartHeight-10, "middle", "label", "seconds from the event, by due time")
	s.text(chartLeft-52, chartTop-10, "start", "label", "p99 of each interval")
	sort.SliceStable(traces, func(i, j int) bool { return !traces[i].bold && traces[j].bold })
	for _, t := range traces {
		v.drawTrace(s, g, t, axis, x, end)
	}
	s.line(x(0), chartTop-4, x(0), chartBottom, "event")
	s.text(x(0)+6, chartTop-10, "start", "eventlabel", eventLabel(g))
	return template.HTML(s.String())
}

func (v *View) drawTrace(s *svg, g Group, t trace, axis logAxis, x func(float64) float64, end float64) {
	class := fmt.Sprintf("l c%d", t.row%colours)
	if t.bold {
		class += " bold"
	}
	if g.Rows[t.row].Verdict == runlog.Invalid {
		class += " bad"
	}
	var points []point
	for i := range t.x {
		if t.x[i] <= end {
			points = append(points, point{x(t.x[i]), axis.y(t.y[i])})
		}
	}
	s.path(points, class, t.title)
	if !t.bold || len(t.lost) == 0 {
		return
	}
	for _, at := range t.lost {
		if at <= end {
			s.line(x(at), chartTop-3, x(at), chartTop+3, class)
		}
	}
	if t.lost[0] <= end {
		s.text(x(min(t.lost[len(t.lost)-1], end))-2, chartTop+15, "end", "note", "∞ never answered")
	}
}

func signed(t float64) string {
	s := trimmed(t)
	if t > 0 {
		return "+" + s
	}
	if s == "-0" {
		return "0"
	}
	return strings.Replace(s, "-", "−", 1)
}

// eventLabel names the event; several faults in one group are all named.
func eventLabel(g Group) string {
	var faults []string
	for _, r := range g.Rows {
		if f := r.cell.Labels["fault"]; f != "" && !slices.Contains(faults, f) {
			faults = append(faults, f)
		}
	}
	switch {
	case len(faults) > 0:
		return strings.Join(faults, " / ")
	case g.Kind == "migration":
		return "migration starts"
	}
	return "event"
}

// percentileChart draws the delay of all repetitions of a cell, merged, over the percentile; the abscissa stretches each
// further nine over the same length, as HdrHistogram plots do.
func (v *View) percentileChart(g Group) template.HTML {
	type curve struct {
		row   int
		x, y  []float64
		never float64
	}
	var curves []curve
	var all []float64
	for i, row := range g.Rows {
		h := v.merged(row.cell)
		if h.Samples() == 0 {
			continue
		}
		c := curve{row: i, never: math.NaN()}
		for nines := 0.0; nines <= percentileDigits+1e-9; nines += 0.02 {
			percent := 100 * (1 - math.Pow(10, -nines))
			d, is := h.Percentile(percent)
			if is != stats.Measured {
				c.never = nines
				break
			}
			c.x, c.y = append(c.x, nines), append(c.y, max(runlog.MS(d), 1e-3))
			// Beyond one sample there is no further percentile to show.
			if nines > math.Log10(float64(h.Samples()+h.AboveRange+h.Unanswered)) {
				break
			}
		}
		all = append(all, c.y...)
		curves = append(curves, c)
	}
	axis, ok := newLogAxis(all, chartTop, chartBottom)
	if !ok {
		return ""
	}
	s := newSVG(chartWidth, chartHeight, "Percentiles of the delay, "+g.Title)
	x := func(nines float64) float64 { return chartLeft + (chartRight-chartLeft)*nines/percentileDigits }
	axis.draw(s, chartLeft, chartRight)
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999} {
		at := x(-math.Log10(1 - p/100))
		s.line(at, chartTop, at, chartBottom+5, "grid minor")
		s.text(at, chartBottom+19, "middle", "tick", trimPercent(p))
	}
	s.line(chartLeft, chartBottom, chartRight, chartBottom, "axis")
	s.text((chartLeft+chartRight)/2, chartHeight-10, "middle", "label", "percentile of all records of the trial")
	s.text(chartLeft-52, chartTop-10, "start", "label", "delay at or below")
	for _, c := range curves {
		points := make([]point, len(c.x))
		for i := range c.x {
			points[i] = point{x(c.x[i]), axis.y(c.y[i])}
		}
		class := fmt.Sprintf("l bold c%d", c.row%colours)
		if g.Rows[c.row].Verdict == runlog.Invalid {
			class += " bad"
		}
		s.path(points, class, g.Rows[c.row].Name)
		if !math.IsNaN(c.never) && len(points) > 0 {
			last := points[len(points)-1]
			s.line(last.x, last.y, last.x, chartTop, class+" bad")
			s.text(last.x+6, chartTop+12, "start", "note", "∞ never answered")
		}
	}
	return template.HTML(s.String())
}

func trimPercent(p float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", p), "0"), ".") + " %"
}

// merged merges the delays of a cell's repetitions and adds the records that never came, which a log cannot hold.
func (v *View) merged(c runlog.Cell) *stats.Histogram {
	h := stats.NewHistogram()
	for _, rep := range c.Repetitions {
		d := v.run.Delays[runlog.Tag(c.Name, rep.Repetition)]
		if rep.Partial || d == nil {
			continue
		}
		h.Merge(d)
		if rep.Delay != nil {
			h.Unanswered += rep.Delay.Unanswered
			h.AboveRange += rep.Delay.AboveRange
		}
	}
	return h
}

// phaseChart draws the parts of each cell's median recovery as one bar, or nothing if no cell recovered from anything.
func (v *View) phaseChart(g Group) template.HTML {
	type bar struct {
		row   int
		rep   runlog.Repetition
		total float64
	}
	var bars []bar
	longest := 0.0
	for i, row := range g.Rows {
		rep, ok := representative(row.cell, "recovery_ms")
		if _, has := rep.Metrics["recovery_ms"]; !ok || !has {
			continue
		}
		b := bar{row: i, rep: rep}
		for _, p := range phases() {
			if m := rep.Metrics[p.metric]; m.Value != nil {
				b.total += *m.Value
			}
		}
		if row.Verdict != runlog.Invalid {
			longest = max(longest, b.total)
		}
		bars = append(bars, b)
	}
	if len(bars) == 0 || longest <= 0 {
		return ""
	}
	const rowHeight, left, right = 40.0, 170.0, 690.0
	height := rowHeight*float64(len(bars)) + 46
	s := newSVG(chartWidth, height, "Recovery phases, "+g.Title)
	scale := (right - left) / longest
	step := niceStep(longest, 6)
	for t := 0.0; t <= longest*1.001; t += step {
		s.line(left+t*scale, 8, left+t*scale, height-32, "grid")
		s.text(left+t*scale, height-14, "middle", "tick", delayLabelZero(t))
	}
	for n, b := range bars {
		y := 12 + rowHeight*float64(n)
		s.text(left-12, y+18, "end", "name", shorten(g.Rows[b.row].Name, 22))
		if g.Rows[b.row].Verdict == runlog.Invalid {
			s.text(left+8, y+18, "start", "invalid", g.Rows[b.row].Answer)
			continue
		}
		at := left
		for i, p := range phases() {
			m := b.rep.Metrics[p.metric]
			if m.Value == nil || *m.Value <= 0 {
				continue
			}
			w := *m.Value * scale
			s.rect(at, y, max(w-1, 0.5), 26, fmt.Sprintf("p%d", i), fmt.Sprintf("%s %s ms", p.title, FormatNumber(*m.Value)))
			if label := FormatNumber(*m.Value); w > 9*float64(len(label))+6 {
				s.text(at+w/2, y+17, "middle", "inbar", label)
			}
			at += w
		}
		s.text(at+8, y+18, "start", "total", totalLabel(b.rep))
	}
	return template.HTML(s.String())
}

// totalLabel never makes a length of a limit: what did not recover says so in words.
func totalLabel(rep runlog.Repetition) string {
	m := rep.Metrics["recovery_ms"]
	switch {
	case m.Value != nil:
		return FormatNumber(*m.Value) + " ms"
	case m.AtLeast != nil:
		return "… > " + FormatNumber(*m.AtLeast) + " ms"
	}
	return missing
}

func delayLabelZero(ms float64) string {
	if ms == 0 {
		return "0"
	}
	return delayLabel(ms)
}

func shorten(s string, n int) string {
	s = visible(s)
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
