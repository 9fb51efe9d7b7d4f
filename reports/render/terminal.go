package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/weir-bench/weir/reports/runlog"
)

// TerminalOptions says what the terminal can do. The caller decides about NO_COLOR and whether there is a terminal, for
// instance with TerminalFor.
type TerminalOptions struct {
	// Width in columns; 0 means no limit, for files and pipes.
	Width int
	Color bool
	Show  Choice
}

// TerminalFor returns the options for an output: colour only on a terminal and unless NO_COLOR is set to something
// (https://no-color.org) or TERM is dumb.
func TerminalFor(isTerminal bool, width int, getenv func(string) string) TerminalOptions {
	o := TerminalOptions{Color: isTerminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
	if isTerminal {
		o.Width = width
	}
	return o
}

// Terminal writes the tables for people.
func Terminal(w io.Writer, v View, o TerminalOptions) error {
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "%s: %s\n", visible(v.Suite), v.Headline)
	if v.Status != "" {
		fmt.Fprintf(&buf, "%s\n", o.paint(visible(v.Status), runlog.Unknown))
	}
	for _, g := range v.Groups {
		for _, t := range fitting(g, o.Show, o.Width) {
			if err := o.table(&buf, t); err != nil {
				return err
			}
		}
		perTable := max(1, len(g.Rows))
		if o.Width > 0 {
			perTable = max(1, (o.Width-28)/26)
		}
		for _, s := range g.Sweeps {
			for _, t := range s.fitting(o.Width) {
				if err := o.table(&buf, t); err != nil {
					return err
				}
			}
			fmt.Fprintf(&buf, "%s\n", visible(s.Summary))
		}
		for _, t := range comparisonGrids(g.Compared, o.Show, perTable) {
			if err := o.table(&buf, t); err != nil {
				return err
			}
		}
	}
	if n := v.left(o.Show); n > 0 {
		fmt.Fprintf(&buf, "%d figures more: bench report %s --figures all\n", n, visible(v.run.Dir))
	}
	for _, n := range v.Notes {
		fmt.Fprintf(&buf, "%s\n", visible("note: "+n))
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// fitting puts as many cells into a table as the width allows.
func fitting(g Group, show Choice, width int) []grid {
	for per := len(g.Rows); per > 1; per-- {
		out, fits := grids(g, show, per), true
		for _, t := range out {
			fits = fits && (width == 0 || tableWidth(t) <= width)
		}
		if fits {
			return out
		}
	}
	return grids(g, show, 1)
}

func tableWidth(t grid) int {
	total := 1
	for c := range t.head {
		widest := twwidth.Width(visible(t.head[c]))
		for _, r := range t.rows {
			for _, line := range wrap(visible(r[c])) {
				widest = max(widest, twwidth.Width(line))
			}
		}
		total += widest + 3
	}
	return total
}

func (o TerminalOptions) table(w io.Writer, t grid) error {
	fmt.Fprintf(w, "\n%s\n", visible(t.caption))
	align := make(tw.Alignment, len(t.head))
	for i := range align {
		align[i] = tw.AlignRight
	}
	align[0] = tw.AlignLeft
	if len(t.verdicts) > 0 {
		align[1] = tw.AlignLeft
	}
	table := tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{Symbols: tw.NewSymbols(tw.StyleRounded)})),
		tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithHeaderAutoWrap(tw.WrapNone), tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithAlignment(align), tablewriter.WithTrimSpace(tw.Off))
	head := make([]string, len(t.head))
	for i, h := range t.head {
		head[i] = visible(h)
	}
	table.Header(head)
	for i, r := range t.rows {
		cells := make([]string, len(r))
		for c, text := range r {
			lines := wrap(visible(text))
			for l := range lines {
				if i == 0 && c >= 2 && c-2 < len(t.verdicts) {
					lines[l] = o.paint(lines[l], t.verdicts[c-2])
				}
			}
			cells[c] = strings.Join(lines, "\n")
		}
		if err := table.Append(cells); err != nil {
			return fmt.Errorf("lay out the table %q: %w", t.caption, err)
		}
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("lay out the table %q: %w", t.caption, err)
	}
	return nil
}

func (o TerminalOptions) paint(s string, v runlog.Verdict) string {
	if !o.Color || s == "" {
		return s
	}
	color := map[runlog.Verdict]string{runlog.Valid: "32", runlog.Unknown: "33", runlog.Invalid: "1;31"}[v]
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// wrap breaks a long text at spaces; a figure is never broken.
func wrap(s string) []string {
	const limit = 30
	if twwidth.Width(s) <= limit {
		return []string{s}
	}
	var lines []string
	line := ""
	for _, word := range strings.Split(s, " ") {
		if line != "" && twwidth.Width(line)+1+twwidth.Width(word) > limit {
			lines, line = append(lines, line), word
			continue
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// visible replaces what a terminal would obey (line breaks, escape sequences, direction marks) by a sign, since a name may
// hold anything.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r':
			return '⏎'
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return '␡'
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return '�'
		}
		return r
	}, s)
}
