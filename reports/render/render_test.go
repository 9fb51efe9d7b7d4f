package render

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/weir-bench/weir/internal/need"
	"github.com/weir-bench/weir/reports/fixture"
	"github.com/weir-bench/weir/reports/runlog"
)

// hostile are names that a renderer may not obey; see the kinds of markup in each.
func hostile() []string {
	return []string{
		`skew|hot <b>keys</b> & 50% "x"`, `join_v2{a}~^\`, "a\nb", `<img src=x onerror=alert(1)>`, "100 %", "偏斜键",
		`</script><script>alert(1)</script>`, "`code|span` ``` and \\| pipe", "]]><!-- ${jndi} $x^2$ [l](javascript:alert(1))",
		"\x1b[31mred\x1b[0m \u202eesrever", "&lt;already&gt; &amp;amp;", "*[0pt] *em* _em_ ~~s~~ # h", "' onmouseover='alert(1)",
	}
}

func viewOf(t *testing.T, o fixture.Options) View {
	t.Helper()
	dir, err := fixture.Generate(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	run, err := runlog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return NewView(run)
}

// hostileView gives each cell, label and the suite a hostile name.
func hostileView(t *testing.T) View {
	t.Helper()
	n, seen := 0, map[string]string{}
	return viewOf(t, fixture.Options{Repetitions: 1, Trouble: true, Suite: hostile()[0], Rename: func(s string) string {
		if name, ok := seen[s]; ok {
			return name
		}
		// A suffix keeps the names of cells distinct. Cells and strategies take turns, and both shall see every name.
		seen[s] = fmt.Sprintf("%s (%d)", hostile()[(n+n/len(hostile()))%len(hostile())], n)
		n++
		return seen[s]
	}})
}

// texts lists every name, figure and verdict of the view.
func texts(v View) (names, figures []string) {
	names = []string{v.Suite}
	for _, g := range v.Groups {
		for _, r := range g.Rows {
			names = append(names, r.Name)
			figures = append(append(figures, r.Answer), r.Figures...)
		}
		if g.Compared != nil {
			for _, line := range g.Compared.Ratios {
				figures = append(figures, line...)
			}
		}
	}
	return names, figures
}

// splitRow splits a table row as GFM does: at every pipe that no backslash escapes.
func splitRow(line string) []string {
	var cells []string
	var cell strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			cell.WriteByte(line[i+1])
			i++
		case line[i] == '|':
			cells = append(cells, cell.String())
			cell.Reset()
		default:
			cell.WriteByte(line[i])
		}
	}
	return cells[1:]
}

func unescapeMarkdown(s string) string {
	return html.UnescapeString(strings.ReplaceAll(strings.TrimSpace(s), "<br>", "\n"))
}

func TestMarkdownKeepsColumnsAndText(t *testing.T) {
	for name, v := range map[string]View{"plain": viewOf(t, fixture.Options{Repetitions: 2}), "hostile": hostileView(t)} {
		md := string(Markdown(v))
		found := map[string]bool{}
		columns := 0
		inFence := false
		for _, line := range strings.Split(md, "\n") {
			if strings.HasPrefix(line, "```") {
				inFence = !inFence
			}
			if inFence || !strings.HasPrefix(line, "|") {
				if strings.HasPrefix(line, "# ") {
					found[unescapeMarkdown(line[2:])] = true
				}
				columns = 0
				continue
			}
			cells := splitRow(line)
			if columns == 0 {
				columns = len(cells)
			}
			if len(cells) != columns {
				t.Errorf("%s: %d cells, the header has %d: %s", name, len(cells), columns, line)
			}
			if regexp.MustCompile("[<`*_\\[\\]~]").MatchString(strings.ReplaceAll(line, "<br>", "")) {
				t.Errorf("%s: live markup in %s", name, line)
			}
			for _, c := range cells {
				found[unescapeMarkdown(c)] = true
			}
		}
		names, figures := texts(v)
		for _, want := range append(names, figures...) {
			clean := strings.TrimSpace(strings.Map(func(r rune) rune {
				if r < 0x20 && r != '\n' {
					return '�'
				}
				return r
			}, want))
			if !found[clean] {
				t.Errorf("%s: %q is not in the Markdown", name, clean)
			}
		}
	}
}

func TestMarkdownFence(t *testing.T) {
	text := "name: x\n```\n# escaped?\n````"
	block := codeBlock("yaml", text)
	lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
	fence := lines[len(lines)-1]
	if len(fence) != 5 || strings.Count("\n"+block, "\n"+fence) != 2 || !strings.Contains(block, text) {
		t.Errorf("the fence %q does not hold\n%s", fence, block)
	}
}

var latexCommand = regexp.MustCompile(`\\(textasciitilde|textasciicircum|textbackslash|textless|textgreater|textbar|textquotedbl)\{\}|\\ensuremath\{\\(times|cdot)\}|\\[_%&#${}]`)

func TestLaTeXIsLiteral(t *testing.T) {
	v := hostileView(t)
	tex := string(LaTeX(v))
	for _, line := range strings.Split(tex, "\n") {
		if strings.HasPrefix(line, `\begin`) || strings.HasPrefix(line, `\end`) || line == `\hline` {
			continue
		}
		rest := latexCommand.ReplaceAllString(line, "")
		rest = strings.TrimSuffix(rest, ` \\`)
		for _, frame := range []string{`\caption`, `\par\noindent`, `\footnotesize `} {
			rest = strings.Replace(rest, frame, "", 1)
		}
		if i := strings.IndexAny(rest, `\%#$_~^<>|"`); i >= 0 {
			t.Errorf("%q is live in %s", rest[i], line)
		}
		if strings.Count(rest, "{") != strings.Count(rest, "}") {
			t.Errorf("unbalanced braces in %s", line)
		}
	}
	names, figures := texts(v)
	for _, want := range append(names, figures...) {
		if !strings.Contains(tex, escapeLaTeX(want)) {
			t.Errorf("%q is not in the LaTeX", want)
		}
	}
	if got := escapeLaTeX(`50% join_v2{a}~^\ & # $`); got != `50\% join\_v2\{a\}\textasciitilde{}\textasciicircum{}\textbackslash{} \& \# \$` {
		t.Errorf("escaped as %s", got)
	}
}

// parsed walks the HTML with the decoder of encoding/xml in its HTML mode and returns elements, attributes and text.
func parsed(t *testing.T, page []byte) (elements map[string]int, attributes map[string]bool, text string) {
	t.Helper()
	// Scripts and styles are raw text in HTML and would be markup in XML.
	raw := regexp.MustCompile(`(?s)(<(script|style)[^>]*>).*?(</(script|style)>)`)
	d := xml.NewDecoder(bytes.NewReader(raw.ReplaceAll(page, []byte("$1$3"))))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	elements, attributes = map[string]int{}, map[string]bool{}
	var b strings.Builder
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, attributes, b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			elements[x.Name.Local]++
			for _, a := range x.Attr {
				attributes[a.Name.Local] = true
			}
		case xml.CharData:
			b.Write(x)
			b.WriteByte('\x00')
		}
	}
}

func TestHTMLShowsNamesAndObeysNone(t *testing.T) {
	v := hostileView(t)
	page, err := HTML(v)
	if err != nil {
		t.Fatal(err)
	}
	elements, attributes, text := parsed(t, page)
	if elements["img"] != 0 || elements["b"] != len(v.Groups[0].Rows)+len(v.Groups[1].Rows) || elements["a"] != 0 || elements["script"] != 1 {
		t.Errorf("live elements: %v", elements)
	}
	for a := range attributes {
		if strings.HasPrefix(a, "on") || a == "src" || a == "href" {
			t.Errorf("live attribute %s", a)
		}
	}
	names, figures := texts(v)
	for _, want := range append(names, figures...) {
		if want = strings.Map(printable, want); !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	data := regexp.MustCompile(`(?s)<script type="application/json" id="weir-results">(.*?)</script>`).FindSubmatch(page)
	if data == nil || bytes.ContainsAny(data[1], "<>") {
		t.Fatal("no data block, or markup in it")
	}
	var results runlog.Results
	if err := json.Unmarshal(data[1], &results); err != nil || results.Suite != v.Suite || len(results.Cells) != len(v.run.Results.Cells) {
		t.Errorf("data block: %v, suite %q", err, results.Suite)
	}
}

func TestHTMLNeedsNothingFromOutside(t *testing.T) {
	page, err := HTML(viewOf(t, fixture.Options{Trouble: true, Repetitions: 1}))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{`(?i)<link`, `(?i)src=`, `(?i)href=`, `(?i)@import`, `url\(`, `https?://`, `NaN`, `[+-]Inf`, `ZgotmplZ`} {
		if m := regexp.MustCompile(`.{0,40}` + pattern + `.{0,40}`).Find(page); m != nil {
			t.Errorf("%s in the page: %s", pattern, m)
		}
	}
	elements, _, _ := parsed(t, page)
	if elements["svg"] != 5 { // two of migration, three of recovery
		t.Errorf("%d drawings, want 5", elements["svg"])
	}
}

func TestTerminalFitsItsWidth(t *testing.T) {
	for name, v := range map[string]View{"plain": viewOf(t, fixture.Options{Repetitions: 2, Trouble: true}), "hostile": hostileView(t)} {
		_, figures := texts(v)
		for _, width := range []int{0, 80, 120} {
			var b bytes.Buffer
			if err := Terminal(&b, v, TerminalOptions{Width: width, Show: AllFigures}); err != nil {
				t.Fatal(err)
			}
			out := b.String()
			if strings.ContainsAny(out, "\x1b\r\u202e") {
				t.Errorf("%s: control characters reach the terminal without colour", name)
			}
			for _, line := range strings.Split(out, "\n") {
				if w := twwidth.Width(line); width > 0 && strings.ContainsAny(line, "│╭╰") && w > width && name == "plain" {
					t.Errorf("%s: line of %d columns in %d: %s", name, w, width, line)
				}
			}
			for _, f := range figures {
				for _, part := range wrap(visible(f)) {
					if !strings.Contains(out, part) {
						t.Errorf("%s: %q is not in the table of width %d", name, part, width)
					}
				}
			}
		}
	}
}

// TestMainTableLeavesDetailsOut says that the first table holds what answers the question and tells where the rest is, and
// that the documents have it all.
func TestMainTableLeavesDetailsOut(t *testing.T) {
	v := viewOf(t, fixture.Options{Repetitions: 2})
	var main, all bytes.Buffer
	for show, b := range map[Choice]*bytes.Buffer{MainFigures: &main, AllFigures: &all} {
		if err := Terminal(b, v, TerminalOptions{Show: show}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := HTML(v)
	if err != nil {
		t.Fatal(err)
	}
	left := v.left(MainFigures)
	if left == 0 || v.left(AllFigures) != 0 {
		t.Fatalf("the fixture has %d details, and %d of all figures are left out", left, v.left(AllFigures))
	}
	if want := fmt.Sprintf("%d figures more: bench report %s --figures all", left, v.run.Dir); !strings.Contains(main.String(), want) || strings.Contains(all.String(), "figures more") {
		t.Errorf("%q is to be said under the main table only", want)
	}
	for _, d := range v.Groups[0].Metrics {
		detail := !MainFigures.shows(d.metric)
		if strings.Contains(main.String(), d.title) == detail || !strings.Contains(all.String(), d.title) {
			t.Errorf("%s: main %v, all %v", d.title, strings.Contains(main.String(), d.title), strings.Contains(all.String(), d.title))
		}
		if title := strings.TrimPrefix(d.title, "· "); !bytes.Contains(page, []byte(title)) || !bytes.Contains(Markdown(v), []byte(title)) {
			t.Errorf("%s is not in the documents", title)
		}
	}
	known := metricOrder()
	for _, name := range details() {
		if !slices.ContainsFunc(known, func(d display) bool { return d.metric == name }) {
			t.Errorf("there is no metric %s", name)
		}
	}
}

func TestColourOnlyWhereWanted(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	cases := []struct {
		terminal bool
		env      map[string]string
		want     bool
	}{{true, nil, true}, {false, nil, false}, {true, map[string]string{"NO_COLOR": "1"}, false}, {true, map[string]string{"TERM": "dumb"}, false}, {true, map[string]string{"NO_COLOR": ""}, true}}
	for _, c := range cases {
		if got := TerminalFor(c.terminal, 80, env(c.env)).Color; got != c.want {
			t.Errorf("terminal %v env %v: colour %v", c.terminal, c.env, got)
		}
	}
	var b bytes.Buffer
	if err := Terminal(&b, viewOf(t, fixture.Options{Repetitions: 1}), TerminalOptions{Color: true}); err != nil || !strings.Contains(b.String(), "\x1b[32mvalid\x1b[0m") {
		t.Errorf("no green verdict with colour (%v)", err)
	}
}

func TestWrongAnswersBeatSpeed(t *testing.T) {
	v := viewOf(t, fixture.Options{Repetitions: 2, Trouble: true})
	seen := false
	for _, g := range v.Groups {
		for _, r := range g.Rows {
			if r.Verdict != runlog.Invalid {
				continue
			}
			seen = true
			for i, f := range r.Figures {
				if f != "INVALID" {
					t.Errorf("%s of an invalid row shows %q", g.Metrics[i].metric, f)
				}
			}
			if r.Answer != "INVALID: 6 lost, 2 wrong" {
				t.Errorf("verdict reads %q", r.Answer)
			}
			if g.Compared.Base == r.Name || strings.Contains(strings.Join(g.Compared.Names, "\n"), r.Name) {
				t.Error("an invalid row is compared")
			}
		}
	}
	if !seen {
		t.Fatal("the fixture has no invalid row")
	}
}

func TestGroupsHaveTheirOwnColumns(t *testing.T) {
	v := viewOf(t, fixture.Options{Repetitions: 1})
	has := func(g Group, metric string) bool {
		for _, d := range g.Metrics {
			if d.metric == metric {
				return true
			}
		}
		return false
	}
	if len(v.Groups) != 2 || !has(v.Groups[0], "migration_ms") || has(v.Groups[0], "recovery_ms") || has(v.Groups[1], "moved_bytes") || !has(v.Groups[1], "catchup_ms") {
		t.Errorf("groups %+v", v.Groups)
	}
}

func TestFormatNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0004: "0.0004", 0.0123: "0.0123", 0.9996: "1.00", 0.99949: "0.999", 1.005: "1.00", 9.996: "10.0", 12.34: "12.3",
		99.96: "100", 999.6: "1,000", 1234567.8: "1,234,568", -4321: "-4,321", math.Inf(1): missing, math.Inf(-1): missing} {
		if got := FormatNumber(v); got != want {
			t.Errorf("FormatNumber(%v) = %q, want %q", v, got, want)
		}
	}
	if got := FormatNumber(math.NaN()); got != missing {
		t.Errorf("NaN shows as %q", got)
	}
}

func TestBoundsAndGapsAreShown(t *testing.T) {
	num := func(x float64) *float64 { return &x }
	cases := []struct {
		s    runlog.Summary
		want string
	}{
		{runlog.Summary{Median: num(5), Min: num(4), Max: num(6), N: 3, Of: 3}, "5.00 (4.00–6.00)"},
		{runlog.Summary{Median: num(5), Min: num(5), Max: num(5), N: 1, Of: 1}, "5.00"},
		{runlog.Summary{Median: num(6), Min: num(5), N: 2, Of: 3}, "6.00 (5.00–n/a) [2 of 3]"},
		{runlog.Summary{AtLeast: num(30000), N: 0, Of: 1}, "> 30,000 [0 of 1]"},
		{runlog.Summary{N: 0, Of: 3}, missing},
	}
	for _, c := range cases {
		if got := formatSummary(c.s, 1); got != c.want {
			t.Errorf("%+v shows as %q, want %q", c.s, got, c.want)
		}
	}
}

func TestEmptyAndPartialRuns(t *testing.T) {
	root := t.TempDir()
	w, err := runlog.Create(root, runlog.Manifest{Suite: "empty", StartedAt: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	run, err := runlog.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []View{NewView(run), viewOf(t, fixture.Options{Interrupt: 1})} {
		page, err := HTML(v)
		if err != nil {
			t.Fatal(err)
		}
		var term bytes.Buffer
		if err := Terminal(&term, v, TerminalOptions{Width: 80}); err != nil {
			t.Fatal(err)
		}
		for format, out := range map[string]string{"html": string(page), "markdown": string(Markdown(v)), "terminal": term.String()} {
			if !strings.Contains(out, "partial") {
				t.Errorf("%s of a partial run does not say so", format)
			}
		}
	}
}

// TestPageInChromium opens the page in a real browser: the hostile names may neither run nor vanish, nor become
// elements.
func TestPageInChromium(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds; run without -short")
	}
	browser := need.Chromium(t)
	v := hostileView(t)
	page, err := HTML(v)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, runlog.HTMLFile)
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(dir, "profile"), "--dump-dom", "file://"+file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %.500s", err, stderr.String())
	}
	// What the browser made of the page, parsed again: the same elements as we meant, no more.
	want, _, _ := parsed(t, page)
	got, _, text := parsed(t, dom)
	for _, name := range []string{"svg", "path", "rect", "img", "script", "table", "tr", "td", "b"} {
		if got[name] != want[name] {
			t.Errorf("the browser sees %d <%s>, the page has %d", got[name], name, want[name])
		}
	}
	if names, _ := texts(v); !strings.Contains(text, names[0]) {
		t.Error("the browser does not show the name of the suite")
	}
}
