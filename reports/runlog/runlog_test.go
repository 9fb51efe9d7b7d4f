package runlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-bench/weir/reports/fixture"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/reports/schema"
	"github.com/weir-bench/weir/reports/stats"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.Results()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schema.ResultsID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schema.ResultsID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, s *jsonschema.Schema, content []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

func generate(t *testing.T, o fixture.Options) string {
	t.Helper()
	dir, err := fixture.Generate(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGeneratedResultsKeepTheSchema(t *testing.T) {
	s := compileSchema(t)
	for _, o := range []fixture.Options{{Repetitions: 2}, {Trouble: true, Repetitions: 1}, {Interrupt: 1}} {
		content := read(t, generate(t, o), runlog.ResultsFile)
		if err := check(t, s, content); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
		for _, word := range []string{"NaN", "Inf"} {
			if bytes.Contains(content, []byte(word)) {
				t.Errorf("%+v: %s in results.json", o, word)
			}
		}
	}
}

// TestSchemaRefuses breaks good results one rule at a time: a schema that takes everything proves nothing.
func TestSchemaRefuses(t *testing.T) {
	s := compileSchema(t)
	good := read(t, generate(t, fixture.Options{Repetitions: 1}), runlog.ResultsFile)
	rep := func(doc map[string]any) map[string]any {
		return doc["cells"].([]any)[0].(map[string]any)["repetitions"].([]any)[0].(map[string]any)
	}
	breaks := map[string]func(map[string]any){
		"version":                func(d map[string]any) { d["schema_version"] = 2 },
		"no suite":               func(d map[string]any) { delete(d, "suite") },
		"partial without reason": func(d map[string]any) { d["partial"] = true },
		"verdict":                func(d map[string]any) { rep(d)["verdict"] = "fine" },
		"invalid without reason": func(d map[string]any) { rep(d)["verdict"] = "invalid" },
		"no lost":                func(d map[string]any) { delete(rep(d)["answers"].(map[string]any), "lost") },
		"negative lost":          func(d map[string]any) { rep(d)["answers"].(map[string]any)["lost"] = -1 },
		"null without reason": func(d map[string]any) {
			rep(d)["metrics"].(map[string]any)["x"] = map[string]any{"value": nil, "unit": "ms"}
		},
		"value as text": func(d map[string]any) {
			rep(d)["metrics"].(map[string]any)["x"] = map[string]any{"value": "1", "unit": "ms"}
		},
		"value with bound": func(d map[string]any) {
			rep(d)["metrics"].(map[string]any)["x"] = map[string]any{"value": 1, "unit": "ms", "at_least": 3}
		},
		"no unit":         func(d map[string]any) { rep(d)["metrics"].(map[string]any)["x"] = map[string]any{"value": 1} },
		"label is number": func(d map[string]any) { d["cells"].([]any)[0].(map[string]any)["labels"].(map[string]any)["n"] = 1 },
	}
	for name, f := range breaks {
		var doc map[string]any
		if err := json.Unmarshal(good, &doc); err != nil {
			t.Fatal(err)
		}
		f(doc)
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if check(t, s, b) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestMetricsAreNeverNaN(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, m := range []runlog.Metric{runlog.Value(nan, "ms"), runlog.Value(inf, "ms"), runlog.Value(-inf, "ms"), runlog.AtLeast(inf, "ms", "x"),
		{Value: &nan, Unit: "ms"}, {Value: &inf, Unit: "ms"}, {Unit: "ms", AtLeast: &inf}, runlog.PercentileMetric(stats.NewHistogram(), 99)} {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), `"value":null`) || !strings.Contains(string(b), `"reason":"`) || strings.Contains(string(b), "at_least") {
			t.Errorf("%s: want a null value with a reason and no bound", b)
		}
	}
	r := runlog.Results{Cells: []runlog.Cell{{Repetitions: []runlog.Repetition{
		{Verdict: runlog.Valid, Metrics: map[string]runlog.Metric{"m": {Value: &nan, Unit: "ms"}}},
		{Verdict: runlog.Valid, Metrics: map[string]runlog.Metric{"m": runlog.Value(3, "ms")}}}}}}
	r.Summarise()
	if s := r.Cells[0].Summary["m"]; s.N != 1 || s.Of != 2 || *s.Median != 3 || *s.Max != 3 {
		t.Errorf("summary %+v", s)
	}
}

func TestSummaryWithBounds(t *testing.T) {
	v, bound := func(x float64) runlog.Metric { return runlog.Value(x, "ms") }, runlog.AtLeast(30_000, "ms", "not recovered")
	cases := []struct {
		in               []runlog.Metric
		median, min, max float64 // −1 for null
	}{
		{[]runlog.Metric{v(5), v(7), v(6)}, 6, 5, 7},
		{[]runlog.Metric{v(5), v(7)}, 6, 5, 7},
		{[]runlog.Metric{v(5), bound, v(6)}, 6, 5, -1},
		{[]runlog.Metric{bound, v(5), bound}, -1, 5, -1},
		{[]runlog.Metric{v(5), bound}, -1, 5, -1},
		{[]runlog.Metric{bound}, -1, -1, -1},
		{[]runlog.Metric{runlog.Missing("ms", "no fault fired")}, -1, -1, -1},
		{[]runlog.Metric{v(0)}, 0, 0, 0},
	}
	for i, c := range cases {
		var cell runlog.Cell
		for _, m := range c.in {
			cell.Repetitions = append(cell.Repetitions, runlog.Repetition{Verdict: runlog.Valid, Metrics: map[string]runlog.Metric{"m": m}})
		}
		r := runlog.Results{Cells: []runlog.Cell{cell}}
		r.Summarise()
		s := r.Cells[0].Summary["m"]
		for j, got := range []*float64{s.Median, s.Min, s.Max} {
			want := []float64{c.median, c.min, c.max}[j]
			if got == nil && want != -1 || got != nil && *got != want {
				t.Errorf("case %d: %v is %v, want %v", i, []string{"median", "min", "max"}[j], got, want)
			}
		}
		if s.Median == nil && s.Reason == "" {
			t.Errorf("case %d: null without a reason", i)
		}
	}
}

func TestVerdicts(t *testing.T) {
	rep := func(v runlog.Verdict, partial bool) runlog.Repetition {
		return runlog.Repetition{Verdict: v, VerdictReason: "because", Partial: partial, Metrics: map[string]runlog.Metric{"m": runlog.Value(1, "ms")}}
	}
	cases := []struct {
		reps []runlog.Repetition
		want runlog.Verdict
		n    int
	}{
		{nil, runlog.Unknown, 0},
		{[]runlog.Repetition{rep(runlog.Valid, false), rep(runlog.Valid, false)}, runlog.Valid, 2},
		{[]runlog.Repetition{rep(runlog.Valid, false), rep(runlog.Valid, true)}, runlog.Unknown, 1},
		{[]runlog.Repetition{rep(runlog.Unknown, false), rep(runlog.Invalid, false), rep(runlog.Valid, false)}, runlog.Invalid, 3},
	}
	for i, c := range cases {
		r := runlog.Results{Cells: []runlog.Cell{{Repetitions: c.reps}}}
		r.Summarise()
		if got := r.Cells[0]; got.Verdict != c.want || got.Summary["m"].N != c.n || got.Verdict != runlog.Valid && got.VerdictReason == "" {
			t.Errorf("case %d: verdict %s (%s) over %d values", i, got.Verdict, got.VerdictReason, got.Summary["m"].N)
		}
	}
	bad := runlog.Results{Cells: []runlog.Cell{{Name: "a", Repetitions: []runlog.Repetition{{Repetition: 1, Verdict: runlog.Invalid,
		Answers: runlog.Answers{Scheduled: runlog.N(10), Emitted: runlog.N(8), NotEmitted: runlog.N(1)}}}}, {Name: "a"}}}
	err := bad.Validate()
	for _, part := range []string{"used twice", "scheduled 10 is not emitted 8 + not_emitted 1", "without a verdict_reason"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

func TestRunDirectories(t *testing.T) {
	root := t.TempDir()
	m := runlog.Manifest{Suite: "../a b/ü", StartedAt: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)}
	seen := map[string]bool{}
	for range 3 {
		w, err := runlog.Create(root, m)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root, w.Dir())
		if err != nil || strings.HasPrefix(rel, "..") || seen[rel] || len(strings.Split(rel, string(filepath.Separator))) != 2 {
			t.Errorf("run directory %q (%v): want a new one, two levels below the root", rel, err)
		}
		seen[rel] = true
		latest, err := os.Readlink(filepath.Join(filepath.Dir(w.Dir()), runlog.LatestLink))
		if err != nil || latest != filepath.Base(w.Dir()) {
			t.Errorf("latest is %q (%v), want %q", latest, err, filepath.Base(w.Dir()))
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	run, err := runlog.Open(filepath.Join(filepath.Dir(filepath.Join(root, firstKey(seen))), runlog.LatestLink))
	if err != nil {
		t.Fatal(err)
	}
	if !run.Manifest.Partial || !run.Results.Partial || len(run.Warnings) == 0 {
		t.Errorf("a run that was only closed is not partial: %+v, %v", run.Results, run.Warnings)
	}
	if _, err := runlog.Open(root); !errors.Is(err, runlog.ErrNotARun) {
		t.Errorf("open of a foreign directory: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := runlog.Create(filepath.Join(root, "file"), m); err == nil {
		t.Error("a run directory below a file")
	}
}

func firstKey(m map[string]bool) string {
	for k := range m {
		return k
	}
	return ""
}

func TestRoundTrip(t *testing.T) {
	dir := generate(t, fixture.Options{Repetitions: 2, Suite: "q,uick"})
	run, err := runlog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if run.Manifest.Partial || run.Results.Partial || len(run.Warnings) != 0 || run.Manifest.EndedAt == nil {
		t.Errorf("finished run is partial or has warnings %v", run.Warnings)
	}
	if len(run.Tags) != 8 || len(run.Events) != 40 || len(run.Results.Cells) != 4 {
		t.Errorf("%d tags, %d events, %d cells", len(run.Tags), len(run.Events), len(run.Results.Cells))
	}
	timeline := map[string]int64{}
	for _, row := range run.Timeline {
		timeline[runlog.Tag(row.Cell, row.Repetition)] += row.Count
	}
	for _, c := range run.Results.Cells {
		for _, rep := range c.Repetitions {
			tag := runlog.Tag(c.Name, rep.Repetition)
			if h := run.Delays[tag]; h == nil || h.Samples() != rep.Delay.Samples || timeline[tag] != rep.Delay.Samples {
				t.Errorf("%s: log, timeline (%d) and results (%d) disagree", tag, timeline[tag], rep.Delay.Samples)
			}
		}
	}
}

func TestInterruptedRunKeepsWhatWasMeasured(t *testing.T) {
	run, err := runlog.Open(generate(t, fixture.Options{Interrupt: 2}))
	if err != nil {
		t.Fatal(err)
	}
	if !run.Manifest.Partial || !run.Results.Partial || run.Results.PartialReason != "interrupted by the user" || run.Manifest.EndedAt == nil {
		t.Errorf("manifest %v results %v (%s)", run.Manifest.Partial, run.Results.Partial, run.Results.PartialReason)
	}
	if len(run.Results.Cells[0].Repetitions) != 1 || run.Results.Cells[2].Verdict != runlog.Unknown {
		t.Errorf("cells %+v", run.Results.Cells)
	}
}

func TestCutFilesAreReportedWithTheirLine(t *testing.T) {
	dir := generate(t, fixture.Options{Repetitions: 1})
	for _, name := range []string{runlog.EventsFile, runlog.TimelineFile, runlog.LatencyFile} {
		content := read(t, dir, name)
		lines := bytes.Count(content, []byte("\n"))
		if err := os.WriteFile(filepath.Join(dir, name), content[:len(content)-9], 0o644); err != nil {
			t.Fatal(err)
		}
		run, err := runlog.Open(dir)
		want := fmt.Sprintf("%s:%d: last line is cut off", name, lines)
		if err != nil || len(run.Warnings) != 1 || run.Warnings[0] != want {
			t.Errorf("%s cut: %v, warnings %v, want %q", name, err, run.Warnings, want)
		}
		broken := bytes.Replace(content, content[len(content)/2:len(content)/2+12], []byte("{,,#\"x%$,,,,"), 1)
		if err := os.WriteFile(filepath.Join(dir, name), broken, 0o644); err != nil {
			t.Fatal(err)
		}
		var line *runlog.LineError
		if _, err := runlog.Open(dir); !errors.As(err, &line) || line.Line < 2 || line.Line >= lines {
			t.Errorf("%s damaged in the middle: %v, want an error with its line", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLatencyLogForOtherTools writes the published case with two logs on one file at once, and reads it with our reader
// and with the library's own.
func TestLatencyLogForOtherTools(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.hlog")
	base := time.Unix(1_700_000_000, 0)
	var wg sync.WaitGroup
	for _, tag := range []string{runlog.Tag("raw, with space", 1), runlog.Tag("corrected#%\n", 2)} {
		wg.Add(1)
		l, err := runlog.CreateLatencyLog(path, base)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer wg.Done()
			for s := range 50 {
				h := stats.NewHistogram()
				h.Record(2*time.Millisecond, 159_999)
				h.Record(5_000_000, 1)
				if err := l.Write(tag, time.Duration(4950+s)*time.Second, time.Second, h); err != nil {
					t.Error(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	content := read(t, path)
	if !bytes.Contains(content, []byte("Tag=raw%2C%20with%20space#1,4991.000000,1.000000,5.000000,HIST")) {
		t.Errorf("no line with start 4991, length 1 and max 5 ms in\n%.900s", content)
	}
	counts := map[string]int64{}
	err := runlog.ReadLatencyLog(bytes.NewReader(content), "x.hlog", func(iv runlog.LatencyInterval) error {
		counts[iv.Tag] += iv.Delays.Samples()
		if p, _ := iv.Delays.Percentile(100); p != 5_000_000 || iv.Length != time.Second {
			t.Errorf("p100 %v length %v", p, iv.Length)
		}
		if rate := float64(iv.Delays.Samples()) / iv.Length.Seconds(); rate != 160_000 {
			t.Errorf("rate %v, want 160000/s", rate)
		}
		return nil
	})
	if err != nil || len(counts) != 2 {
		t.Fatalf("%v, tags %v", err, counts)
	}
	lib := map[string]int64{}
	reader := hdrhistogram.NewHistogramLogReader(bytes.NewReader(content))
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		lib[h.Tag()] += h.TotalCount()
		if start := h.StartTimeMs() - base.UnixMilli(); start < 4_950_000 || start > 4_999_000 {
			t.Errorf("the library reads start %d ms after the base time", start)
		}
	}
	for tag, n := range counts {
		if lib[tag] != n || n != 50*160_000 {
			t.Errorf("tag %s: ours %d, library %d, want %d", tag, n, lib[tag], 50*160_000)
		}
		if cell, rep, err := runlog.SplitTag(tag); err != nil || runlog.Tag(cell, rep) != tag {
			t.Errorf("tag %s splits into %q %d %v", tag, cell, rep, err)
		}
	}
}

func FuzzReadLatencyLog(f *testing.F) {
	f.Add([]byte("#[x]\nTag=a,1,1,1,HISTFAAA\n"))
	f.Add([]byte("1.0,2.0,3.0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		err := runlog.ReadLatencyLog(bytes.NewReader(b), "f", func(runlog.LatencyInterval) error { return nil })
		var line *runlog.LineError
		if err != nil && !errors.As(err, &line) {
			t.Errorf("error without a line: %v", err)
		}
	})
}
