package render

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/reports/stats"
)

// View is a run as texts, ready for any layout. Nothing in it is escaped.
type View struct {
	Suite, Headline string
	// Status is empty for a finished run, else says why it is partial.
	Status   string
	Groups   []Group
	Manifest [][2]string
	Notes    []string
	run      *runlog.Run
}

// Group is the cells of one kind, which share their metrics.
type Group struct {
	Title string
	Kind  string
	Rows  []Row
	// Metrics are the metrics that some cell of the group has, in order; Figures of a Row follow it.
	Metrics []display
	// Compared holds the comparison with the first cell, if there is one to compare.
	Compared *Comparison
	// Sweeps are the cells that differ in the number of rounds only.
	Sweeps []Sweep
}

// Row is one cell.
type Row struct {
	Name    string
	Verdict runlog.Verdict
	// Promise is what was promised and what was observed of the outputs of a recovery.
	Promise string
	// Answer is the verdict in words with counts.
	Answer  string
	Figures []string
	cell    runlog.Cell
}

// Comparison is the ratio of each cell to the first one.
type Comparison struct {
	Base    string
	Names   []string
	Metrics []display
	// Ratios[m][n] belongs to Metrics[m] and Names[n].
	Ratios [][]string
}

// NewView makes the view of a run.
func NewView(run *runlog.Run) View {
	v := View{Suite: run.Manifest.Suite, run: run, Manifest: manifestRows(run.Manifest)}
	if run.Results.Partial || run.Manifest.Partial {
		v.Status = "partial: " + firstOf(run.Manifest.PartialReason, run.Results.PartialReason, "the run has not finished")
	}
	for _, w := range run.Warnings {
		v.Notes = append(v.Notes, "Run directory: "+w+".")
	}
	for _, kind := range kindsOf(run.Results.Cells) {
		v.Groups = append(v.Groups, v.group(kind))
	}
	v.Notes = append(v.Notes, planNotes(run.Events)...)
	v.Headline = headline(v.Groups)
	return v
}

func firstOf(s ...string) string {
	for _, x := range s {
		if x != "" {
			return x
		}
	}
	return ""
}

func kindOf(c runlog.Cell) string {
	_, migration := c.Summary["migration_ms"]
	_, recovery := c.Summary["recovery_ms"]
	switch {
	case c.Labels["kind"] != "":
		return c.Labels["kind"]
	case migration:
		return "migration"
	case recovery:
		return "recovery"
	}
	return "steady"
}

func kindsOf(cells []runlog.Cell) []string {
	var kinds []string
	for _, c := range cells {
		if k := kindOf(c); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func (v *View) group(kind string) Group {
	g := Group{Kind: kind, Title: kind}
	var cells []runlog.Cell
	present := map[string]string{}
	for _, c := range v.run.Results.Cells {
		if kindOf(c) != kind {
			continue
		}
		cells = append(cells, c)
		for name, s := range c.Summary {
			present[name] = s.Unit
		}
	}
	g.Metrics = order(present)
	names := shortNames(cells)
	for i, c := range cells {
		row := Row{Name: names[i], Verdict: c.Verdict, Answer: answer(c), cell: c}
		if kind == "recovery" {
			row.Promise = promise(c)
		}
		for _, d := range g.Metrics {
			row.Figures = append(row.Figures, v.figure(names[i], c, d))
		}
		g.Rows = append(g.Rows, row)
	}
	g.Compared = compare(g, v.run.Manifest.Seed)
	g.Sweeps = sweepsOf(g)
	return g
}

func order(present map[string]string) []display {
	var out []display
	for _, d := range metricOrder() {
		if _, ok := present[d.metric]; ok {
			out = append(out, d)
			delete(present, d.metric)
		}
	}
	var rest []string
	for name := range present {
		rest = append(rest, name)
	}
	sort.Strings(rest)
	for _, name := range rest {
		out = append(out, display{metric: name, title: name, unit: present[name], scale: 1})
	}
	return out
}

// shortNames uses the strategy label when it tells the cells apart, else strategy and fault, else the names of the cells.
func shortNames(cells []runlog.Cell) []string {
	candidates := []func(runlog.Cell) string{
		func(c runlog.Cell) string { return c.Labels["strategy"] },
		func(c runlog.Cell) string { return c.Labels["strategy"] + ", " + c.Labels["fault"] },
	}
	for _, name := range candidates {
		seen := map[string]bool{}
		var names []string
		for _, c := range cells {
			n := name(c)
			if c.Labels["strategy"] == "" || seen[n] {
				break
			}
			seen[n] = true
			names = append(names, n)
		}
		if len(names) == len(cells) {
			return names
		}
	}
	names := make([]string, len(cells))
	for i, c := range cells {
		names[i] = c.Name
	}
	return names
}

// figure is one figure of the table. Wrong answers beat every figure.
func (v *View) figure(name string, c runlog.Cell, d display) string {
	if c.Verdict == runlog.Invalid {
		return "INVALID"
	}
	s, ok := c.Summary[d.metric]
	if !ok {
		return "–"
	}
	if s.Reason != "" && s.N < s.Of {
		v.Notes = append(v.Notes, fmt.Sprintf("%s, %s: %s (%d of %d repetitions gave a value).", name, strings.TrimPrefix(d.title, "· "), s.Reason, s.N, s.Of))
	}
	return formatSummary(s, d.scale)
}

// promise is what was promised of a cell's outputs and what its answers keep, the weakest of the repetitions.
func promise(c runlog.Cell) string {
	order := []string{"gap", "rollback", "precise"}
	promised, observed := "", len(order)
	for _, rep := range c.Repetitions {
		if i := slices.Index(order, rep.Observed); i >= 0 {
			promised, observed = rep.Promised, min(observed, i)
		}
	}
	if promised == "" {
		return missing
	}
	return promised + " / " + order[observed]
}

// answer is the verdict with its counts or reason.
func answer(c runlog.Cell) string {
	switch c.Verdict {
	case runlog.Valid:
		return "valid"
	case runlog.Invalid:
		var parts []string
		for _, kind := range []struct {
			name string
			get  func(runlog.Answers) *int64
		}{
			{"lost", func(a runlog.Answers) *int64 { return a.Lost }},
			{"duplicated", func(a runlog.Answers) *int64 { return a.Duplicated }},
			{"wrong", func(a runlog.Answers) *int64 { return a.Wrong }},
			{"reordered", func(a runlog.Answers) *int64 { return a.Reordered }},
			{"orphaned", func(a runlog.Answers) *int64 { return a.Orphaned }},
		} {
			total := int64(0)
			for _, rep := range c.Repetitions {
				if n := kind.get(rep.Answers); n != nil {
					total += *n
				}
			}
			if total > 0 {
				parts = append(parts, thousands(fmt.Sprint(total))+" "+kind.name)
			}
		}
		return "INVALID: " + firstOf(strings.Join(parts, ", "), c.VerdictReason, "no reason given")
	}
	return "unknown: " + firstOf(c.VerdictReason, "no reason given")
}

func headline(groups []Group) string {
	count := map[runlog.Verdict]int{}
	total := 0
	for _, g := range groups {
		for _, r := range g.Rows {
			count[r.Verdict]++
			total++
		}
	}
	if total == 0 {
		return "Nothing was measured."
	}
	var parts []string
	for _, p := range []struct {
		v    runlog.Verdict
		text string
	}{{runlog.Invalid, "gave wrong answers"}, {runlog.Unknown, "could not be judged"}, {runlog.Valid, "answered correctly"}} {
		if n := count[p.v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d %s", n, total, p.text))
		}
	}
	return strings.Join(parts, ", ") + "."
}

// compare relates each trustworthy cell to the first one; nil when there are not two.
func compare(g Group, seed uint64) *Comparison {
	base := slices.IndexFunc(g.Rows, func(r Row) bool { return r.Verdict == runlog.Valid })
	if base < 0 {
		return nil
	}
	var others []Row
	for i, r := range g.Rows {
		if i != base && r.Verdict == runlog.Valid {
			others = append(others, r)
		}
	}
	if len(others) == 0 {
		return nil
	}
	c := &Comparison{Base: g.Rows[base].Name}
	for _, r := range others {
		c.Names = append(c.Names, r.Name)
	}
	for _, d := range g.Metrics {
		if !d.compare {
			continue
		}
		c.Metrics = append(c.Metrics, d)
		var line []string
		for _, r := range others {
			line = append(line, ratio(g.Rows[base].cell, r.cell, d.metric, seed))
		}
		c.Ratios = append(c.Ratios, line)
	}
	return c
}

func ratio(base, other runlog.Cell, metric string, seed uint64) string {
	a, okA := measured(base, metric)
	b, okB := measured(other, metric)
	if !okA || !okB {
		return missing
	}
	r := stats.Compare(a, b, stats.CompareOptions{Seed: seed})
	switch {
	case !r.OK:
		return missing
	case !r.Differs:
		return "~"
	}
	return fmt.Sprintf("×%s (%s–%s)", FormatNumber(r.Ratio), FormatNumber(r.Low), FormatNumber(r.High))
}

// measured returns the values of all whole repetitions, and false when one of them has none: a ratio over the others
// would leave out the bad one.
func measured(c runlog.Cell, metric string) ([]float64, bool) {
	var out []float64
	for _, rep := range c.Repetitions {
		if rep.Partial {
			continue
		}
		m := rep.Metrics[metric]
		if m.Value == nil {
			return nil, false
		}
		out = append(out, *m.Value)
	}
	return out, len(out) > 0
}

func manifestRows(m runlog.Manifest) [][2]string {
	when := m.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC")
	if m.EndedAt != nil {
		when += fmt.Sprintf(", took %v", m.EndedAt.Sub(m.StartedAt).Round(time.Second))
	}
	or := func(field, value string) string {
		return firstOf(value, "not known: "+firstOf(m.Machine.Unknown[field], "not recorded"))
	}
	memory, load := "", ""
	if m.Machine.MemoryBytes > 0 {
		memory = fmt.Sprintf("%.1f GiB", float64(m.Machine.MemoryBytes)/(1<<30))
	}
	if l := m.Machine.LoadAverage; len(l) == 3 {
		load = fmt.Sprintf("%.2f, %.2f, %.2f (1, 5, 15 min)", l[0], l[1], l[2])
	}
	return [][2]string{
		{"started", when},
		{"command", strings.Join(m.CommandLine, " ")},
		{"runtime", m.Runtime},
		{"seed", fmt.Sprint(m.Seed)},
		{"weir", m.Versions.Weir},
		{"go", m.Versions.Go},
		{"system", strings.TrimSpace(m.Versions.OS + "/" + m.Versions.Arch + " " + m.Versions.Kernel)},
		{"CPU", or("cpu_model", m.Machine.CPUModel)},
		{"logical cores", fmt.Sprint(m.Machine.LogicalCores)},
		{"memory", or("memory_bytes", memory)},
		{"load at start", or("load_average", load)},
		{"governor", or("governor", m.Machine.Governor)},
	}
}

// readingGuide explains the figures, the same in all formats that have room for it.
func readingGuide() []string {
	return []string{
		"Delay is the time from when a record was due (its place in the schedule, which never waits for the system) to the arrival of its result. A record never answered counts as infinitely late.",
		"Each figure is the median of the repetitions with (least–greatest); [2 of 3] says that one repetition gave none. Percentiles are taken from merged histograms, never averaged.",
		"Spike: peak is the highest p99 of any interval from the event on, length the time until the p99, after its peak, is back in the band before the event for a whole hold time, area the excess over the level before summed up to then. Intervals are by due time, and their width is the resolution of the length.",
		"Recovery ends when the delay is back in its band. Running is not recovered.",
		"A ratio ×0.10 means a tenth of the figure it is compared with, with its 95 % bootstrap interval; ~ means that the repetitions cannot tell the two apart.",
		"INVALID means wrong answers: no speed figure of that strategy counts, so none is shown. Unknown means that the answers, or the harness, could not be checked.",
	}
}
