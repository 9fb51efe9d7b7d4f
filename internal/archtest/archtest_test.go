package archtest

import (
	"sort"
	"strings"
	"testing"
)

// house is every rule over one tree.
func house(t *tree) []violation {
	table := rooms()
	var vs []violation
	vs = append(vs, checkImports(t, table)...)
	vs = append(vs, checkDocs(t)...)
	vs = append(vs, checkPure(t, table)...)
	vs = append(vs, checkMapOrder(t, table)...)
	vs = append(vs, checkSizes(t)...)
	vs = append(vs, checkState(t)...)
	vs = append(vs, checkLeftovers(t)...)
	sort.Slice(vs, func(i, j int) bool { return vs[i].String() < vs[j].String() })
	return vs
}

// exception is a breach that was agreed on, with its reason.
type exception struct{ rule, path, what, why string }

func exceptions() []exception {
	return []exception{
		{"interface size", "engine/storage/fs.go", "FS", "it is the file system, one method a system call; two implementations need each"},
		{"interface size", "engine/state/keyed.go", "Keyed", "one method for each way that state enters or leaves a store; two stores"},
		{"interface size", "engine/state/keyed.go", "Snapshot", "a reader of chunks and what its owner asks of it; in memory and on disk"},
		{"interface size", "engine/state/keyed.go", "Paged", "the steps of a run over state on disk; task must not know files"},
		{"interface size", "engine/host/fabric_linux.go", "events", "the callbacks of one connection manager to its two owners, unexported"},
		{"interface size", "workloads/stream.go", "Stream", "a log is read in two ways and asked for its times in two; no caller does with fewer"},
	}
}

// TestHouse measures the whole module. An exception that nothing needs any more has to go.
func TestHouse(t *testing.T) {
	tree, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.files) < 100 {
		t.Fatalf("only %d Go files found; the walk must have gone astray", len(tree.files))
	}
	needed := map[exception]bool{}
next:
	for _, v := range house(tree) {
		for _, e := range exceptions() {
			if v.rule == e.rule && strings.HasPrefix(v.where, e.path+":") && strings.HasPrefix(v.what, e.what+" ") {
				needed[e] = true
				continue next
			}
		}
		t.Error(v)
	}
	for _, e := range exceptions() {
		if !needed[e] {
			t.Errorf("the exception of %s in %s from %q is needed no more", e.what, e.path, e.rule)
		}
	}
}

// planted is source that breaks one rule, and what must be said about it.
type planted struct {
	name, path, text string
	want             string // rule of the one violation; empty: none
}

const pureHead = "package core\n\n"

func plantedCases() []planted {
	long := strings.Repeat("\tx++\n", maxFuncLines)
	return []planted{
		{"upward import", "engine/core/a.go", pureHead + "import _ \"" + module + "/engine/task\"\n", "import table"},
		{"sideways import", "engine/model/a.go", "package model\n\nimport _ \"" + module + "/engine/core\"\n", "import table"},
		{"strange module", "engine/core/a.go", pureHead + "import _ \"example.org/x\"\n", "import table"},
		{"tests may import", "engine/core/a_test.go", pureHead + "import _ \"" + module + "/engine/task\"\n", ""},
		{"internal is for tests", "cmd/x/a.go", "package x\n\nimport _ \"" + module + "/internal/need\"\n", "import table"},
		{"unknown room", "attic/a.go", "package attic\n", "import table"},
		{"os", "engine/core/a.go", pureHead + "import _ \"os\"\n", "pure"},
		{"net below", "engine/core/a.go", pureHead + "import _ \"net/url\"\n", "pure"},
		{"sync/atomic", "engine/core/a.go", pureHead + "import _ \"sync/atomic\"\n", "pure"},
		{"old rand", "engine/core/a.go", pureHead + "import _ \"math/rand\"\n", "pure"},
		{"clock", "engine/core/a.go", pureHead + "import \"time\"\n\nfunc f() time.Time { return time.Now() }\n", "pure"},
		{"clock by another name", "engine/core/a.go", pureHead + "import tm \"time\"\n\nfunc f() { tm.Sleep(1) }\n", "pure"},
		{"clock as a value", "engine/core/a.go", pureHead + "import \"time\"\n\nfunc f() func() time.Time { return time.Now }\n", "pure"},
		{"durations are fine", "engine/core/a.go", pureHead + "import \"time\"\n\nconst d = time.Second\n", ""},
		{"clock in the host", "engine/host/a.go", "package host\n\nimport \"time\"\n\nfunc f() time.Time { return time.Now() }\n", ""},
		{"global rand", "engine/core/a.go", pureHead + "import \"math/rand/v2\"\n\nfunc f() int { return rand.IntN(3) }\n", "pure"},
		{"seeded rand is fine", "engine/core/a.go", pureHead + "import \"math/rand/v2\"\n\nfunc f() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }\n", ""},
		{"goroutine", "engine/core/a.go", pureHead + "func f() { go f() }\n", "pure"},
		{"channel", "engine/core/a.go", pureHead + "func f(c chan int) {}\n", "pure"},
		{"loop over a map", "engine/core/a.go", pureHead + "func f(m map[int]int) (s []int) {\n\tfor k := range m {\n\t\ts = append(s, k)\n\t}\n\treturn s\n}\n", "map order"},
		{"loop over a map field", "engine/core/a.go", pureHead + "type t struct{ m map[int]int }\n\nfunc (x t) f() (s []int) {\n\tfor k := range x.m {\n\t\ts = append(s, k)\n\t}\n\treturn s\n}\n", "map order"},
		{"loop over a made map", "engine/core/a.go", pureHead + "func f() (s []int) {\n\tm := make(map[int]int)\n\tfor k := range m {\n\t\ts = append(s, k)\n\t}\n\treturn s\n}\n", "map order"},
		{"collected and sorted", "engine/core/a.go", pureHead + "import \"sort\"\n\nfunc f(m map[int]int) (s []int) {\n\tfor k := range m {\n\t\ts = append(s, k)\n\t}\n\tsort.Ints(s)\n\treturn s\n}\n", ""},
		{"explained loop", "engine/core/a.go", pureHead + "func f(m map[int]int) (s int) {\n\tfor k := range m { // a sum: the order does not matter\n\t\ts += k\n\t}\n\treturn s\n}\n", ""},
		{"map to map", "engine/core/a.go", pureHead + "func f(m, n map[int]int) {\n\tfor k, v := range m {\n\t\tn[k] = v\n\t}\n}\n", ""},
		{"long function", "engine/core/a.go", pureHead + "func f(x int) {\n" + long + "}\n", "function size"},
		{"long table of cases", "engine/core/a_test.go", pureHead + "func f() []int {\n\treturn []int{\n" + strings.Repeat("\t\t1,\n", maxFuncLines) + "\t}\n}\n", ""},
		{"long table in the program", "engine/core/a.go", pureHead + "func f() []int {\n\treturn []int{\n" + strings.Repeat("\t\t1,\n", maxFuncLines) + "\t}\n}\n", "function size"},
		{"padding", "engine/core/a.go", pureHead + "var blank [8]byte\n\nfunc f() byte { return blank[0] }\n", ""},
		{"long file", "engine/core/a.go", pureHead + strings.Repeat("// x\n", maxFileLines), "file size"},
		{"wide interface", "engine/core/a.go", pureHead + "type i interface {\n\ta()\n\tb()\n\tc()\n\td()\n}\n", "interface size"},
		{"init", "engine/core/a.go", pureHead + "func init() {}\n", "package state"},
		{"counter", "engine/core/a.go", pureHead + "var n int\n", "package state"},
		{"cache", "engine/core/a.go", pureHead + "var n = map[int]int{}\n\nfunc f() { n[1] = 2 }\n", "package state"},
		{"address taken", "engine/core/a.go", pureHead + "var n = [2]int{}\n\nfunc f() *int { return &n[0] }\n", "package state"},
		{"made at start", "engine/core/a.go", pureHead + "var n = make([]int, 3)\n", "package state"},
		{"sentinel", "engine/core/a.go", pureHead + "import \"errors\"\n\nvar errX = errors.New(\"x\")\n", ""},
		{"table", "engine/core/a.go", pureHead + "var names = [...]string{\"a\"}\n\nfunc f() string { return names[0] }\n", ""},
		{"interface check", "engine/core/a.go", pureHead + "type t struct{}\n\nvar _ any = t{}\n", ""},
		{"unfinished", "engine/core/a.go", pureHead + "// TO" + "DO: later\n", "unfinished work"},
		{"unfinished text", "docs/a.md", "FIX" + "ME\n", "unfinished work"},
		{"machine path", "docs/a.md", "see /wo" + "rk/notes\n", "path of a machine"},
		{"relative path", "docs/a.md", "see ../wo" + "rk/notes and net" + "wo" + "rk/x\n", ""},
		{"registry", ".ci/run", "GOPROXY=https://proxy.gol" + "ang.org\n", "host of a registry"},
	}
}

// TestRulesCatch tries each rule on source that breaks it, and on the nearest source that does not.
func TestRulesCatch(t *testing.T) {
	for _, c := range plantedCases() {
		tree := newTree()
		if err := tree.add(c.path, c.text); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := map[string]bool{}
		for _, v := range house(tree) {
			if v.rule != "doc.go" { // tried below
				got[v.rule] = true
			}
		}
		if len(got) == 0 && c.want == "" || len(got) == 1 && got[c.want] {
			continue
		}
		t.Errorf("%s: broken rules %v, want %q", c.name, got, c.want)
	}
}

func TestDocsRule(t *testing.T) {
	const imports = "package task\n\nimport _ \"" + module + "/engine/core\"\n"
	for _, c := range []struct {
		name, doc string
		want      int
	}{
		{"full path", "// Package task is a room.\n//\n// May import: engine/core and the standard library.\npackage task\n", 0},
		{"last element", "// Package task is a room.\n//\n// May import: core, standard library.\npackage task\n", 0},
		{"everything", "// Package task is a room.\n//\n// May import: everything.\npackage task\n", 0},
		{"a whole wing", "// Package task is a room.\n//\n// May import: engine, workloads.\npackage task\n", 0},
		{"a room is no wing", "// Package task is a room.\n//\n// May import: reports.\npackage task\n", 1},
		{"everything under", "// Package task is a room.\n//\n// May import: everything under engine except engine/host.\npackage task\n", 0},
		{"excepted", "// Package task is a room.\n//\n// May import: everything under engine except engine/core.\npackage task\n", 1},
		{"elsewhere", "// Package task is a room.\n//\n// May import: everything under reports.\npackage task\n", 1},
		{"not named", "// Package task is a room.\n//\n// May import: engine/state and the standard library.\npackage task\n", 1},
		{"no line", "// Package task is a room.\npackage task\n", 1},
		{"no comment", "package task\n", 1},
	} {
		tree := newTree()
		for name, text := range map[string]string{"engine/task/doc.go": c.doc, "engine/task/a.go": imports} {
			if err := tree.add(name, text); err != nil {
				t.Fatal(err)
			}
		}
		if got := checkDocs(tree); len(got) != c.want {
			t.Errorf("%s: %v, want %d", c.name, got, c.want)
		}
	}
}

// TestTableHasNoDeadLines finds lines of the table that cover no package. The rooms of the plan that are not built yet
// are named here.
func TestTableHasNoDeadLines(t *testing.T) {
	planned := map[string]bool{"chaos/…": true, "docker/…": true, "suites/…": true}
	tree, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	_, dirs := tree.packages()
	table := rooms()
	used := map[string]bool{}
	for _, dir := range dirs {
		r, _ := roomOf(dir, table)
		used[r.path] = true
	}
	for _, r := range table {
		if !used[r.path] && !planned[r.path] {
			t.Errorf("%s is in the table, but there is no such package", r.path)
		}
	}
}
