package render

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"strings"

	"github.com/weir-bench/weir/reports/runlog"
)

//go:embed page.html.tmpl
var pageSource string

// page is what the template gets. Everything but the drawings is text that html/template escapes for its place; the
// drawings are built by svg, which escapes every text itself.
type page struct {
	View         View
	When, Weir   string
	Sections     []section
	Guide        []string
	SuiteText    string
	Results      runlog.Results
	Colours      []int
	Phases       []display
	SettingsHead []string
	Settings     [][]string
	EventsHead   []string
	Events       [][]string
	EventsLeft   int
}

type section struct {
	Title                      string
	Cards                      []card
	Legend, PhaseLegend        []legend
	Delay, Percentiles, Phases template.HTML
	Tables, Comparisons, All   []htmlGrid
	More                       int
	Sweeps                     []htmlSweep
}

// htmlSweep is a sweep as a drawing and a table.
type htmlSweep struct {
	Chart   template.HTML
	Legend  []legend
	Table   htmlGrid
	Summary string
}

type card struct{ Name, Class, Answer, Figure, Caption string }

type legend struct{ Class, Text string }

type htmlGrid struct {
	Caption  string
	HasUnits bool
	Head     []string
	Lines    []htmlLine
}

type htmlLine struct {
	Part  bool // a part of the figure above
	Cells []htmlCell
}

type htmlCell struct {
	Text, Class, Chip string
	Head              bool
}

// HTML returns report.html: one file that needs no network and no script.
func HTML(v View) ([]byte, error) {
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		return nil, fmt.Errorf("parse the page template: %w", err)
	}
	m := v.run.Manifest
	p := page{View: v, Guide: readingGuide(), SuiteText: m.SuiteText, Results: v.run.Results, Weir: m.Versions.Weir, Phases: phases(),
		When: fmt.Sprintf("%s · seed %d · %s · %d logical cores", m.StartedAt.UTC().Format("2 January 2006, 15:04 UTC"), m.Seed,
			firstOf(m.Machine.CPUModel, "CPU not known"), m.Machine.LogicalCores)}
	for i := range colours {
		p.Colours = append(p.Colours, i)
	}
	for _, g := range v.Groups {
		p.Sections = append(p.Sections, v.section(g))
	}
	p.SettingsHead, p.Settings = spikeSettings(v)
	p.EventsHead, p.Events = eventRows(v.run.Events)
	p.EventsLeft = len(v.run.Events) - len(p.Events)
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("render the page: %w", err)
	}
	return bytes.Map(printable, b.Bytes()), nil
}

// printable replaces control characters, which HTML forbids even as references; JSON has them escaped already.
func printable(r rune) rune {
	if r < 0x20 && r != '\n' && r != '\t' && r != '\r' || r == 0x7f {
		return '�'
	}
	return r
}

func (v *View) section(g Group) section {
	s := section{Title: capitalise(g.Title), Delay: v.delayChart(g), Percentiles: v.percentileChart(g), Phases: v.phaseChart(g)}
	for i, r := range g.Rows {
		c := card{Name: r.Name, Class: string(r.Verdict), Answer: r.Answer}
		if r.Verdict == runlog.Unknown {
			c.Answer = "unknown" // the reason is in the table
		}
		if r.Verdict != runlog.Invalid {
			c.Figure, c.Caption = lead(g, r)
		}
		s.Cards = append(s.Cards, c)
		class := fmt.Sprintf("c%d", i%colours)
		if r.Verdict == runlog.Invalid {
			class += " dash"
		}
		s.Legend = append(s.Legend, legend{class, r.Name + map[bool]string{true: " (INVALID)"}[r.Verdict == runlog.Invalid]})
	}
	for i, p := range phases() {
		s.PhaseLegend = append(s.PhaseLegend, legend{fmt.Sprintf("p%d", i), p.title})
	}
	for _, t := range grids(g, MainFigures, cellsPerTable) {
		s.Tables = append(s.Tables, htmlTable(t))
	}
	if s.More = more(g); s.More > 0 {
		for _, t := range append(grids(g, AllFigures, cellsPerTable), comparisonGrids(g.Compared, AllFigures, cellsPerTable)...) {
			s.All = append(s.All, htmlTable(t))
		}
	}
	for _, sw := range g.Sweeps {
		s.Sweeps = append(s.Sweeps, htmlSweep{Chart: sw.chart(), Legend: sweepLegend(), Table: htmlTable(sw.grid()), Summary: sw.Summary})
	}
	for _, t := range comparisonGrids(g.Compared, MainFigures, cellsPerTable) {
		s.Comparisons = append(s.Comparisons, htmlTable(t))
	}
	return s
}

// lead picks the one figure that answers the question of the group.
func lead(g Group, r Row) (figure, caption string) {
	for _, metric := range []string{"recovery_ms", "spike_peak_ms", "steady_p99_ms"} {
		for i, d := range g.Metrics {
			if _, ok := r.cell.Summary[metric]; ok && d.metric == metric {
				text, _, _ := strings.Cut(r.Figures[i], " (")
				text, _, _ = strings.Cut(text, " [")
				if text != missing {
					text += " " + d.unit
				}
				return text, d.title
			}
		}
	}
	return "", ""
}

func htmlTable(t grid) htmlGrid {
	out := htmlGrid{Caption: t.caption, Head: t.head, HasUnits: len(t.verdicts) > 0}
	for i, r := range t.rows {
		line := htmlLine{Part: strings.HasPrefix(r[0], "· ")}
		for c, text := range r {
			cell := htmlCell{Text: text, Head: c == 0}
			switch {
			case c == 1 && out.HasUnits:
				cell.Class = "u"
			case c == 0:
				cell.Text = strings.TrimPrefix(text, "· ")
			case i == 0 && out.HasUnits:
				cell.Chip = string(t.verdicts[c-2])
			case text == "INVALID":
				cell.Class = "w"
			case out.HasUnits && t.verdicts[c-2] == runlog.Unknown:
				cell.Class = "q"
			}
			line.Cells = append(line.Cells, cell)
		}
		out.Lines = append(out.Lines, line)
	}
	return out
}

// eventRows lists the events of the run up to a number that a page can hold.
func eventRows(events []runlog.Event) (head []string, rows [][]string) {
	const most = 400
	head = []string{"cell", "trial", "repetition", "time", "event", "phase", "detail"}
	for _, e := range events[:min(most, len(events))] {
		detail := ""
		if shown := shownDetail(e.Detail); len(shown) > 0 {
			// Detail came from JSON, so it can be written as JSON again.
			if b, err := json.Marshal(shown); err == nil {
				detail = string(b)
			}
		}
		rows = append(rows, []string{firstOf(e.Cell, "the run"), positive(e.Trial), positive(e.Repetition),
			fmt.Sprintf("%.3f s", float64(e.NS)/1e9), strings.ReplaceAll(e.Kind, "_", " "), e.Phase, detail})
	}
	return head, rows
}

// shownDetail leaves out lists by key group, which are for programs.
func shownDetail(d map[string]any) map[string]any {
	if d["input"] == nil && d["rounds"] == nil {
		return d
	}
	out := maps.Clone(d)
	delete(out, "input")
	if _, list := out["rounds"].([]any); list {
		delete(out, "rounds")
	}
	return out
}

func positive(n int) string {
	if n > 0 {
		return fmt.Sprint(n)
	}
	return ""
}

// spikeSettings shows the band and the hold time behind every spike figure.
func spikeSettings(v View) (head []string, rows [][]string) {
	head = []string{"repetition", "event at", "level before (p99)", "band", "hold", "interval", "observed", "settled"}
	ms := func(x float64) string { return FormatNumber(x) + " ms" }
	maybe := func(p *float64) string {
		if p == nil {
			return missing
		}
		return FormatNumber(*p)
	}
	for _, g := range v.Groups {
		for _, r := range g.Rows {
			for _, rep := range r.cell.Repetitions {
				sp := rep.Spike
				if sp == nil {
					continue
				}
				rows = append(rows, []string{fmt.Sprintf("%s #%d", r.Name, rep.Repetition), ms(sp.EventMS), maybe(sp.BaselineP99MS) + " ms",
					maybe(sp.BandLowMS) + "–" + maybe(sp.BandHighMS) + " ms", ms(sp.HoldMS), ms(sp.IntervalMS), ms(sp.ObservedMS),
					map[bool]string{true: "yes", false: "no"}[sp.Settled]})
			}
		}
	}
	return head, rows
}
