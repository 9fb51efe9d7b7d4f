package render

import (
	"bytes"
	"fmt"
	"strings"
)

// LaTeX returns the tables as floating table environments for a paper; they need no package. Names in scripts that a
// font lacks need XeLaTeX or LuaLaTeX and that font.
func LaTeX(v View) []byte {
	var b bytes.Buffer
	for _, g := range v.Groups {
		for _, t := range append(grids(g, AllFigures, cellsPerTable), comparisonGrids(g.Compared, AllFigures, cellsPerTable)...) {
			latexTable(&b, v, t)
		}
		for _, s := range g.Sweeps {
			latexTable(&b, v, s.grid())
			fmt.Fprintf(&b, "\\par\\noindent{\\footnotesize %s}\n", escapeLaTeX(s.Summary))
		}
	}
	for _, n := range v.Notes {
		fmt.Fprintf(&b, "\\par\\noindent{\\footnotesize %s}\n", escapeLaTeX(n))
	}
	return b.Bytes()
}

func latexTable(b *bytes.Buffer, v View, t grid) {
	columns := strings.Repeat("r", len(t.head)-1)
	if len(t.verdicts) > 0 {
		columns = "l" + columns[1:]
	}
	fmt.Fprintf(b, "\\begin{table}\n\\caption{%s: %s}\n\\begin{tabular}{l%s}\n\\hline\n", escapeLaTeX(v.Suite), escapeLaTeX(t.caption), columns)
	line := func(cells []string) {
		for i, c := range cells {
			if i > 0 {
				b.WriteString(" & ")
			}
			// The group keeps a leading [ or * from being read as the argument of the line break before it.
			fmt.Fprintf(b, "{%s}", escapeLaTeX(c))
		}
		b.WriteString(" \\\\\n")
	}
	line(t.head)
	b.WriteString("\\hline\n")
	for _, r := range t.rows {
		line(r)
	}
	b.WriteString("\\hline\n\\end{tabular}\n\\end{table}\n")
}

// escapeLaTeX makes any text literal.
func escapeLaTeX(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch r {
		case '_', '%', '&', '#', '$', '{', '}':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '~':
			b.WriteString(`\textasciitilde{}`)
		case '^':
			b.WriteString(`\textasciicircum{}`)
		case '\\':
			b.WriteString(`\textbackslash{}`)
		case '<':
			b.WriteString(`\textless{}`)
		case '>':
			b.WriteString(`\textgreater{}`)
		case '|':
			b.WriteString(`\textbar{}`)
		case '"':
			b.WriteString(`\textquotedbl{}`)
		case '×':
			b.WriteString(`\ensuremath{\times}`)
		case '·':
			b.WriteString(`\ensuremath{\cdot}`)
		case '–':
			b.WriteString(`--`)
		case '\n', '\r', '\t':
			b.WriteByte(' ')
		default:
			if r >= 0x20 && r != 0x7f {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}
