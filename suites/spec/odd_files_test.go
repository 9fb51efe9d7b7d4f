package spec

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestOddSuiteFiles feeds files that suite readers are known to get wrong:
// silently ignored fields, silently chosen duplicates, silently dropped
// documents, numbers without a unit, and text that is hostile or unreadable.
func TestOddSuiteFiles(t *testing.T) {
	edit := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the good suite has no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"time without unit", edit("warmup: 500ms", "warmup: 400"), []string{"t.yaml:23:11: timing.warmup: ", `"400" has no unit`, "write 400ms or 400s"}},
		{"size without unit", edit("16KiB", "16384"), []string{"t.yaml:14:28: job.operators.count.state.bytesPerKey: ", "has no unit", "16384B"}},
		{"rate without unit", edit("50000/s", "50000"), []string{"workload.rate", "has no unit", "write 50000/s"}},
		{"rate of 0", edit("50000/s", "0/s"), []string{"t.yaml:21:9: workload.rate: ", "sends nothing"}},
		{"negative rate", edit("50000/s", "-5/s"), []string{"workload.rate", "negative"}},
		{"infinite rate", edit("50000/s", "1e999/s"), []string{"workload.rate", "not a rate"}},
		{"misspelt field", edit("warmup:", "warmpu:"), []string{"t.yaml:23:3: timing.warmpu: ", "unknown field", "did you mean warmup?"}},
		{"unknown field", edit("warmup:", "zzz:"), []string{"timing.zzz", "unknown field", "known: warmup, steady"}},
		{"field given twice", edit("  rate: 50000/s", "  rate: 50000/s\n  rate: 1/s"), []string{"t.yaml:22:3: workload.rate: ", "given twice", "line 21"}},
		{"two documents", good + "---\n" + good, []string{"second document", "one suite a file"}},
		{"second document empty", good + "---\n", []string{"second document"}},
		{"tab in place of spaces", edit("  warmup", "\twarmup"), []string{"t.yaml:23:1: ", "a tab", "spaces"}},
		{"tab after spaces", edit("  warmup", "  \twarmup"), []string{"t.yaml:23:3: ", "a tab", "spaces"}},
		{"empty", "", []string{"t.yaml:1:1: no suite"}},
		{"blank", "\n \n", []string{"no suite"}},
		{"comments only", "# a\n# b\n", []string{"no suite"}},
		{"marker only", "---\n", []string{"no suite"}},
		{"mark and nothing", "\xef\xbb\xbf", []string{"no suite"}},
		{"a list", "- a\n", []string{"the suite is a list"}},
		{"a word", "hello\n", []string{`the suite is "hello"`}},
		{"not YAML", "name: [\n", []string{"not YAML"}},
		{"not text", "\x00\x01\xff", []string{"not YAML"}},
		{"a day", edit("500ms", "1d"), []string{"timing.warmup", "1d", "write 24h"}},
		{"two weeks", edit("500ms", "2w"), []string{"timing.warmup", "write 336h"}},
		{"negative time", edit("500ms", "-5s"), []string{"timing.warmup", `"-5s" is negative`, "write 5s"}},
		{"unknown unit of time", edit("500ms", "5sec"), []string{"timing.warmup", "not a time"}},
		{"time too long for the clock", edit("500ms", "9999999h"), []string{"timing.warmup", "not a time"}},
		{"empty value", edit("warmup: 500ms", "warmup:"), []string{"timing.warmup", "is empty", "a time with a unit"}},
		{"mapping for text", edit("name: test", "name: {a: b}"), []string{"name: is a mapping", "give text"}},
		{"number for text", edit("name: test", "name: 12"), []string{"name: is the number 12", `"12"`}},
		{"text for number", edit("workers: 2", "workers: two"), []string{"job.workers", `"two" is not a whole number`}},
		{"fraction for number", edit("workers: 2", "workers: 1.5"), []string{"job.workers", "not a whole number"}},
		{"word for truth", edit("interval: 1s", "interval: 1s\n  incremental: yes"), []string{"checkpoint.incremental", "write true or false"}},
		{"scalar for list", edit("inputs: [source]", "inputs: source"), []string{"job.operators.count.inputs", `is "source"`, "a list"}},
		{"scalar for mapping", edit("{bytesPerKey: 16KiB}", "16KiB"), []string{"job.operators.count.state", "a mapping"}},
		{"not a number", edit("0.99", ".nan"), []string{"workload.exponent", "not a number"}},
		{"infinite", edit("0.99", ".inf"), []string{"workload.exponent", "not a number"}},
		{"negative exponent", edit("0.99", "-1"), []string{"workload.exponent", "is -1", "0 to 20"}},
		{"own tag", edit("name: test", "name: !x test"), []string{"the tag !x"}},
		{"field name is a list", edit("name: test", "name: test\n? [a]\n: b"), []string{"name of a field is not text"}},
		{"alias inside itself", "name: &a [*a]\n", []string{"contains itself"}},
		{"unknown anchor", "name: *nowhere\n", []string{"not YAML", "unknown anchor"}},
		{"merge of a list", edit("name: test", "<<: [1]\nname: test"), []string{"<< needs a mapping"}},
		{"huge", "name: " + strings.Repeat("a", maxFileBytes), []string{"bytes", "at most"}},
		{"deep", "name: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), []string{"levels deep"}},
		{"seed below 0", edit("seed: 7", "seed: -7"), []string{"seed", "whole number from 0"}},
		{"repeat 0", edit("repeat: 2", "repeat: 0"), []string{"repeat: is 0", "1 to 1000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(t, c.text)
			wantErr(t, err, c.want...)
		})
	}
}

func TestFilesThatLookOddButAreFine(t *testing.T) {
	want := mustParse(t, good).AsRun
	for name, text := range map[string]string{
		"byte order mark and CRLF": "\xef\xbb\xbf" + strings.ReplaceAll(good, "\n", "\r\n"),
		"marker before":            "---\n" + good,
		"end marker":               good + "...\n",
		"comments around":          "# a\n" + good + "# b\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustParse(t, text).AsRun; got != want {
				t.Errorf("differs from the plain file:\n%s", got)
			}
		})
	}
	s := mustParse(t, strings.Replace(good, "warmup: 500ms", "warmup: 0", 1))
	if s.Timing.Warmup != 0 {
		t.Errorf("0 needs no unit, got %s", s.Timing.Warmup)
	}
	s = mustParse(t, strings.Replace(good, "after: 2s", "after: 1m30.5s", 1))
	if s.Timing.After != 90500*time.Millisecond {
		t.Errorf("got %s", s.Timing.After)
	}
}

// The mark must not move the columns of the first line.
func TestByteOrderMarkMovesNoColumn(t *testing.T) {
	_, err := parse(t, "\xef\xbb\xbfnmae: x\r\n")
	wantErr(t, err, "t.yaml:1:1: nmae: unknown field; did you mean name?")
}

func TestMergeWithOverride(t *testing.T) {
	text := strings.Replace(good, "cells:", `x-base: &base
  labels: {who: base, kind: merged}
  recovery: checkpoint
x-more: &more
  recovery: active
  faults: [{kind: kill, target: worker 1}]
cells:
  - <<: [*base, *more]
    name: merged
    labels: {who: own}`, 1)
	s := mustParse(t, text)
	c := s.Cells[0]
	if c.Labels["who"] != "own" || c.Labels["kind"] != "" {
		t.Errorf("a merge is shallow and the own field wins, got %v", c.Labels)
	}
	if c.Recovery.Strategy != "checkpoint" || len(c.Faults) != 1 {
		t.Errorf("the earlier of two merged mappings wins, got %+v %+v", c.Recovery, c.Faults)
	}
}

// TestAliasBomb measures what refusing costs: 308 bytes that would expand to
// 43 million values.
func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'h'; c++ {
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	for name, text := range map[string]string{
		"as written":  b.String(),
		"under cells": b.String() + "cells: *h\n",
		"merged":      "a: &a {x: 1}\nb: &b {<<: [" + strings.TrimSuffix(strings.Repeat("*a,", 40000), ",") + "]}\n" + strings.Repeat("c: {<<: *b}\n", 9),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := parse(t, text)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatal("accepted")
			}
			if name != "merged" {
				wantErr(t, err, "more than 50000 values")
			}
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; took > time.Second || mb > 100 {
				t.Errorf("took %s and %d MB", took, mb)
			}
		})
	}
}

// All errors of a file come at once, in the order of its lines, each once, and
// no more than can be read.
func TestAllErrorsAtOnce(t *testing.T) {
	text := strings.NewReplacer("warmup: 500ms", "warmup: 400", "kind: zipf", "kind: zpif", "repeat: 2", "repaet: 2",
		"worker 2", "worker 9", "exponent: 0.99", "exponent: -1", "interval: 1s", "interval: 5").Replace(good)
	_, err := parse(t, text)
	want := `t.yaml:4:1: repaet: unknown field; did you mean repeat?
t.yaml:18:9: workload.kind: unknown workload "zpif"; did you mean zipf? (known: uniform, zipf, book, replay)
t.yaml:20:13: workload.exponent: is -1; write 0 to 20
t.yaml:23:11: timing.warmup: "400" has no unit; write 400ms or 400s
t.yaml:27:13: checkpoint.interval: "5" has no unit; write 5ms or 5s
t.yaml:35:30: cells.die.faults[0].target: there is no worker 9; write 1 to 2`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, "zz%d: 1\n", i)
	}
	_, err = parse(t, many.String())
	if n := strings.Count(err.Error(), "\n"); n != maxErrors {
		t.Errorf("want %d lines, got %d", maxErrors+1, n+1)
	}
	wantErr(t, err, "more errors")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good), "workload.rate=1/s")
	f.Add([]byte("\xef\xbb\xbfname: x\r\n"), "a.b[0].c={x: [1]}")
	f.Add([]byte("a: &a [*a]\n"), "=")
	f.Add([]byte("a: &a {<<: *a}\n"), "cells.move.migration.rounds=3")
	f.Add([]byte("cells: [{name: a, sweep: {job.workers: [1, 2]}, <<: {labels: {}}}]\n"), "cells.0.name=~")
	f.Add([]byte("objectives: ['(((a.b<1']\n"), "objectives=['a.b < (1 + 2']")
	f.Fuzz(func(t *testing.T, data []byte, set string) {
		s, err := Parse("f.yaml", data, Options{Known: testKnown(), Sets: []string{set}})
		if err != nil {
			if err.Error() == "" {
				t.Error("a refusal without words")
			}
			return
		}
		if _, err := Plan(s, nil); err != nil {
			t.Errorf("an accepted suite has no plan: %v", err)
		}
		if _, err := Parse("f.yaml", []byte(s.AsRun), Options{Known: testKnown()}); err != nil {
			t.Errorf("the suite as run is refused: %v\n%s", err, s.AsRun)
		}
	})
}
