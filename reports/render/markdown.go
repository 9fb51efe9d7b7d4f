package render

import (
	"bytes"
	"fmt"
	"strings"
)

// cellsPerTable keeps tables of documents readable on a page.
const cellsPerTable = 5

// Markdown returns report.md (GitHub-flavoured).
func Markdown(v View) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n", escapeMarkdown(v.Suite), escapeMarkdown(v.Headline))
	if v.Status != "" {
		fmt.Fprintf(&b, "\n**%s**\n", escapeMarkdown(v.Status))
	}
	for _, g := range v.Groups {
		fmt.Fprintf(&b, "\n## %s\n", escapeMarkdown(capitalise(g.Title)))
		for _, t := range grids(g, MainFigures, cellsPerTable) {
			markdownTable(&b, t)
		}
		for _, s := range g.Sweeps {
			t := s.grid()
			fmt.Fprintf(&b, "\n%s:\n", escapeMarkdown(t.caption))
			markdownTable(&b, t)
			fmt.Fprintf(&b, "\n%s\n", escapeMarkdown(s.Summary))
		}
		for _, t := range comparisonGrids(g.Compared, MainFigures, cellsPerTable) {
			fmt.Fprintf(&b, "\n%s:\n", escapeMarkdown(t.caption))
			markdownTable(&b, t)
		}
		if more(g) > 0 {
			markdownAll(&b, g)
		}
	}
	if len(v.Notes) > 0 {
		b.WriteString("\n## Notes\n\n")
		for _, n := range v.Notes {
			fmt.Fprintf(&b, "- %s\n", escapeMarkdown(n))
		}
	}
	b.WriteString("\n## How to read this\n\n")
	for _, line := range readingGuide() {
		fmt.Fprintf(&b, "- %s\n", escapeMarkdown(line))
	}
	b.WriteString("\n## Where it ran\n")
	rows := make([][]string, len(v.Manifest))
	for i, r := range v.Manifest {
		rows[i] = r[:]
	}
	markdownTable(&b, grid{head: []string{"", ""}, rows: rows})
	fmt.Fprintf(&b, "\n## The suite as run\n\n%s", codeBlock("yaml", v.run.Manifest.SuiteText))
	return b.Bytes()
}

// markdownAll folds the tables with all figures away.
func markdownAll(b *bytes.Buffer, g Group) {
	fmt.Fprintf(b, "\n<details><summary>All figures of %s</summary>\n", escapeMarkdown(g.Title))
	for _, t := range grids(g, AllFigures, cellsPerTable) {
		markdownTable(b, t)
	}
	for _, t := range comparisonGrids(g.Compared, AllFigures, cellsPerTable) {
		fmt.Fprintf(b, "\n%s:\n", escapeMarkdown(t.caption))
		markdownTable(b, t)
	}
	b.WriteString("\n</details>\n")
}

func markdownTable(b *bytes.Buffer, t grid) {
	line := func(cells []string) {
		for _, c := range cells {
			fmt.Fprintf(b, "| %s ", escapeMarkdown(c))
		}
		b.WriteString("|\n")
	}
	b.WriteByte('\n')
	line(t.head)
	for i := range t.head {
		if i == 0 || i == 1 && len(t.verdicts) > 0 {
			b.WriteString("| :-- ")
		} else {
			b.WriteString("| --: ")
		}
	}
	b.WriteString("|\n")
	for _, r := range t.rows {
		line(r)
	}
}

// escapeMarkdown makes any text literal, in a paragraph, a list or a table cell. Character references rather than
// backslashes for the pipe and the backslash: renderers differ in the order in which they split a row and unescape.
func escapeMarkdown(s string) string {
	var b strings.Builder
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for _, r := range s {
		switch r {
		case '|', '\\', '&', '<', '>', '`', '*', '_', '[', ']', '~', '$', '#', '^', '@':
			fmt.Fprintf(&b, "&#%d;", r)
		case '\n', '\r':
			b.WriteString("<br>")
		default:
			if r < 0x20 || r == 0x7f {
				r = '�'
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// codeBlock fences text with more backticks than any run in it.
func codeBlock(language, text string) string {
	longest, run := 0, 0
	for _, r := range text {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", max(3, longest+1))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return fence + language + "\n" + text + fence + "\n"
}
