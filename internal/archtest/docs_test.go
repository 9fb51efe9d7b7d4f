package archtest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/internal/need"
	"github.com/weir-bench/weir/reports/fixture"
	"github.com/weir-bench/weir/reports/render"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites"
)

var update = flag.Bool("update", false, "write the generated parts of the documents anew")

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStrategiesAreDescribed asks for a paragraph a strategy.
func TestStrategiesAreDescribed(t *testing.T) {
	text := read(t, "docs/strategies.md")
	var names []string
	for _, s := range migration.Strategies() {
		names = append(names, s.Name)
	}
	for _, s := range recovery.Strategies() {
		names = append(names, s.Name)
	}
	for _, name := range names {
		_, section, found := strings.Cut(text, "\n### `"+name+"`")
		section, _, _ = strings.Cut(section, "\n### ")
		if !found {
			t.Errorf("docs/strategies.md has no section about %s", name)
			continue
		}
		for _, part := range []string{"*Mechanism.*", "*Promise.*", "*Price.*", "*Source.*"} {
			if name != "none" && !strings.Contains(section, part) {
				t.Errorf("docs/strategies.md: the section about %s lacks %s", name, part)
			}
		}
	}
}

var (
	shownRE    = regexp.MustCompile(`\{"([a-z][a-z0-9_]*_[a-z0-9_]*)", "`)
	measuredRE = regexp.MustCompile(`(?:\bm|Metrics)\["([a-z0-9_]+)"\]`)
)

// TestMetricsAreDefined asks for a definition of each metric that is measured or shown.
func TestMetricsAreDefined(t *testing.T) {
	text := read(t, "docs/metrics.md")
	names := map[string]bool{}
	for file, re := range map[string]*regexp.Regexp{"reports/render/format.go": shownRE, "suites/runner/measure.go": measuredRE, "suites/runner/recovery_metrics.go": measuredRE} {
		found := re.FindAllStringSubmatch(read(t, file), -1)
		if len(found) < 15 {
			t.Fatalf("only %d metrics found in %s; the pattern no longer fits it", len(found), file)
		}
		for _, m := range found {
			names[m[1]] = true
		}
	}
	for name := range names {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/metrics.md does not define %s", name)
		}
	}
}

// field is a JSON Schema as far as the reference needs it.
type field struct {
	Ref         string           `json:"$ref"`
	Type        any              `json:"type"`
	Description string           `json:"description"`
	Default     any              `json:"default"`
	Const       any              `json:"const"`
	Enum        []string         `json:"enum"`
	Examples    []string         `json:"examples"`
	Minimum     *float64         `json:"minimum"`
	Maximum     *float64         `json:"maximum"`
	Items       *field           `json:"items"`
	Additional  json.RawMessage  `json:"additionalProperties"`
	AnyOf       []field          `json:"anyOf"`
	Properties  map[string]field `json:"properties"`
	Required    []string         `json:"required"`
	Defs        map[string]field `json:"$defs"`
}

func section(ref string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(ref, "#/$defs/"), "Override")
	if ref == "#/$defs/RecoveryOverride" { // a type of its own, not a part laid over another
		name = "RecoveryOverride"
	}
	return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
}

// takes says in words what values a field takes.
func (f field) takes() string {
	switch {
	case f.Ref != "":
		return section(f.Ref)
	case len(f.Enum) > 0:
		return "`" + strings.Join(f.Enum, "`, `") + "`"
	case len(f.AnyOf) > 0:
		var parts []string
		for _, o := range f.AnyOf {
			if n, isNumber := o.Const.(float64); !isNumber || n != 0 { // a bare 0 goes without saying
				parts = append(parts, o.takes())
			}
		}
		return strings.Join(parts, ", or ")
	case f.Const != nil:
		return fmt.Sprintf("`%v`", f.Const)
	case f.Items != nil:
		return "list of " + f.Items.takes()
	case len(f.Examples) > 0:
		return "such as `" + f.Examples[0] + "`"
	}
	switch f.Type {
	case "integer", "number":
		word := map[any]string{"integer": "whole number", "number": "number"}[f.Type]
		if f.Minimum != nil {
			word += fmt.Sprintf(" from %g", *f.Minimum)
		}
		if f.Maximum != nil {
			word += fmt.Sprintf(" to %g", *f.Maximum)
		}
		return word
	case "string":
		return "text"
	case "boolean":
		return "true or false"
	case "object":
		return "names with values"
	}
	return "value"
}

func (f field) table(b *strings.Builder) {
	names := make([]string, 0, len(f.Properties))
	for name := range f.Properties {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { // needed ones first, then by name
		ri, rj := slices.Contains(f.Required, names[i]), slices.Contains(f.Required, names[j])
		return ri && !rj || ri == rj && names[i] < names[j]
	})
	b.WriteString("| field | takes | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, name := range names {
		p := f.Properties[name]
		def := ""
		switch {
		case p.Default != nil:
			def = fmt.Sprintf("`%v`", p.Default)
		case slices.Contains(f.Required, name):
			def = "must be given"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, p.takes(), def, strings.ReplaceAll(p.Description, "|", `\|`))
	}
}

// reference writes the tables of all fields.
func reference(t *testing.T) string {
	t.Helper()
	var root field
	if err := json.Unmarshal(suites.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n### Suite\n\n")
	root.table(&b)
	names := make([]string, 0, len(root.Defs))
	for name := range root.Defs {
		if base, isPart := strings.CutSuffix(name, "Override"); isPart && base != "Recovery" {
			continue
		}
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		root.Defs[name].table(&b)
	}
	b.WriteString("\n")
	return b.String()
}

// generated keeps what stands between two marks of a document equal to want, or with -update writes it.
func generated(t *testing.T, name, mark, want string) {
	t.Helper()
	begin, end := "<!-- "+mark+":begin -->\n", "<!-- "+mark+":end -->"
	text := read(t, name)
	head, rest, ok := strings.Cut(text, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks %s and %s", name, strings.TrimSpace(begin), end)
	}
	want = head + begin + want + end + tail
	if *update {
		if err := os.WriteFile(filepath.Join("../..", name), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != want {
		t.Errorf("%s is out of date; run: go test ./internal/archtest -run %s -update", name, t.Name())
	}
}

// TestSuiteReference keeps the tables of docs/suites.md equal to the schema.
func TestSuiteReference(t *testing.T) { generated(t, "docs/suites.md", "fields", reference(t)) }

// TestReadmeQuotesTheSuite keeps the suite that the README explains equal to the one that runs.
func TestReadmeQuotesTheSuite(t *testing.T) {
	data, ok := suites.Read("quickstart")
	if !ok {
		t.Fatal("no suite quickstart")
	}
	generated(t, "README.md", "suite", "```yaml\n"+string(data)+"```\n")
}

var linkRE = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// TestLinks follows the links between documents.
func TestLinks(t *testing.T) {
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/metrics.md", "docs/strategies.md", "docs/suites.md", "docs/queries.md", "docs/workloads.md", "docs/PERFORMANCE.md"} {
		for _, m := range linkRE.FindAllStringSubmatch(read(t, name), -1) {
			if _, err := os.Stat(filepath.Join("../..", filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: link to %s, which is not there", name, m[1])
			}
		}
	}
}

// TestUpdateReadme fills a copy of the README from a run directory.
func TestUpdateReadme(t *testing.T) {
	need.Chromium(t)
	if testing.Short() {
		t.Skip("a browser takes seconds; run without -short")
	}
	root := t.TempDir()
	run, err := fixture.Generate(filepath.Join(root, "runs"), fixture.Options{Suite: "quickstart", Repetitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runlog.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	v := render.NewView(r)
	page, err := render.HTML(v)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(run, runlog.HTMLFile), string(page))
	write(filepath.Join(run, "report.md"), string(render.Markdown(v)))
	write(filepath.Join(root, "README.md"), "before\n<!-- quickstart:begin -->\nold\n<!-- quickstart:end -->\nafter\n")
	script := filepath.Join(root, "docs", "update-readme.sh")
	write(script, read(t, "docs/update-readme.sh"))
	for range 2 { // a second time replaces what the first one wrote
		if out, err := exec.Command(script, run).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	got, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for text, times := range map[string]int{"before\n<!-- quickstart:begin -->": 1, "<!-- quickstart:end -->\nafter\n": 1, "old": 0,
		"### Migration": 1, "### Recovery": 1, "async-rounds |": 2, "docs/quickstart.png": 1, "logical cores": 1, "## How to read": 0} {
		if n := strings.Count(string(got), text); n != times {
			t.Errorf("README has %q %d times, want %d", text, n, times)
		}
	}
	png, err := os.ReadFile(filepath.Join(root, "docs", "quickstart.png"))
	if err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("no picture: %v", err)
	}
}

// TestReadmeHasItsMarks asks for the place that docs/update-readme.sh fills.
func TestReadmeHasItsMarks(t *testing.T) {
	text := read(t, "README.md")
	if strings.Count(text, "<!-- quickstart:begin -->") != 1 || strings.Count(text, "<!-- quickstart:end -->") != 1 {
		t.Error("README.md needs the marks quickstart:begin and quickstart:end, once each")
	}
}
