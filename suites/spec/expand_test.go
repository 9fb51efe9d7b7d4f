package spec

import (
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCellsLayTheirOwnOverTheBase(t *testing.T) {
	s := mustParse(t, good, "cells.die.job={operators: [{name: count, keyGroups: 32}, {name: sink, sink: transactional}], spares: 1}", "cells.die.workload={rate: 1k/s}")
	base, die := s.Cells[0], s.Cells[1]
	if die.Job.Spares != 1 || die.Job.Workers != 2 || die.Job.Operators[1].KeyGroups != 32 || die.Job.Operators[1].Parallelism != 2 || die.Job.Operators[2].Sink != "transactional" {
		t.Errorf("%+v", die.Job)
	}
	if die.Workload.Rate != 1000 || die.Workload.Keys != 10000 {
		t.Errorf("%+v", die.Workload)
	}
	if base.Job.Operators[1].KeyGroups != 64 || base.Workload.Rate != 50000 {
		t.Errorf("the base changed: %+v", base)
	}
}

func TestSweep(t *testing.T) {
	s := mustParse(t, strings.Replace(good, "cells:", `cells:
  - name: s
    labels: {a: b}
    migration: {strategy: async-rounds}
    sweep: {migration.rounds: [1, 2, auto], job.operators.count.keyGroups: [16, 32]}`, 1))
	var names []string
	for _, c := range s.Cells {
		names = append(names, c.Name)
	}
	want := []string{"s/rounds=1/keyGroups=16", "s/rounds=1/keyGroups=32", "s/rounds=2/keyGroups=16", "s/rounds=2/keyGroups=32",
		"s/rounds=auto/keyGroups=16", "s/rounds=auto/keyGroups=32", "move", "die"}
	if !slices.Equal(names, want) {
		t.Fatalf("got %q", names)
	}
	c := s.Cells[3]
	if c.Migration.Rounds.N != 2 || c.Job.Operators[1].KeyGroups != 32 || !reflect.DeepEqual(c.Labels, map[string]string{"a": "b", "rounds": "2", "keyGroups": "32"}) {
		t.Errorf("%+v", c)
	}
	for set, want := range map[string]string{
		"cells.move.sweep={migration.rounds: []}":                                           "needs a list of values",
		"cells.move.sweep={migration.rounds: 1}":                                            "needs a list of values",
		"cells.move.sweep=3":                                                                "a mapping",
		"cells.move.sweep={job.operators.cuont.keyGroups: [1]}":                             "did you mean count?",
		"cells.move.sweep={workload.exponnt: [1]}":                                          "did you mean exponent?",
		"cells.move.sweep={workload.exponent: [1, x]}":                                      `"x" is not a number`,
		"cells.move.sweep={workload.keys: [[1]]}":                                           "plain values",
		"cells.move.sweep={workload.rate: [" + strings.Repeat("1/s,", maxCells) + "2/s]}":   "more than 1000 combinations",
		"cells.move.sweep={workload.rate: [" + strings.Repeat("1/s,", maxCells-1) + "2/s]}": "more than 1000 cells",
		"cells.move.sweep={migration.strategy: [stop-restart, externalise]}":                "state outside the workers",
		"cells.move.sweep={workload.rate: [1/s, 1/s]}":                                      "second cell named",
		"cells.move.sweep={faults.0.kind: [kill]}":                                          "sweep",
		"cells.move.sweep={migration.strategy.x: [kill]}":                                   "has no field x",
		"cells.move.sweep={workload..x: [kill]}":                                            "empty part",
	} {
		_, err := parse(t, good, set)
		wantErr(t, err, want)
	}
}

func TestSet(t *testing.T) {
	s := mustParse(t, good, "workload.rate=20000/s", "job.operators[1].keyGroups=128", "job.operators.0.name=source", "cells.die.faults.0.at=1s",
		"checkpoint={interval: auto}", "detection.lease=1s", "description=", "description=a=b")
	if s.Workload.Rate != 20000 || s.Cells[0].Workload.Rate != 20000 || s.Job.Operators[1].KeyGroups != 128 || *s.Cells[1].Faults[0].At != time.Second ||
		!s.Checkpoint.Interval.Auto || s.Detection.Lease != time.Second || s.Description != "a=b" {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(s.AsRun, "rate: 20000/s") || len(s.Sets) != 8 {
		t.Errorf("the suite as run lacks the overrides:\n%s", s.AsRun)
	}
	for set, want := range map[string]string{
		"workload.rate":             "--set workload.rate: not of the form PATH=VALUE",
		"=3":                        "not of the form PATH=VALUE",
		"workload.rate=0/s":         "--set workload.rate=0/s: workload.rate: a rate of 0 sends nothing",
		"workload.rate=5":           "write 5/s",
		"workload.raet=5/s":         "--set workload.raet=5/s: workload.raet: unknown field; did you mean rate?",
		"wrokload.rate=5/s":         "wrokload: unknown field; did you mean workload?",
		"job.operators.cuont.kind=": `has no element "cuont"; did you mean count?`,
		"job.operators[7].kind=x":   "has no element 7; it has 3, counted from 0",
		"job.workers.x=1":           "job.workers: is the number 2, which has no field x",
		"job..workers=1":            "empty part",
		"workload.rate=[":           "the value is not YAML",
		"workload.rate=":            "is empty",
		"job.workers=3\nx: y":       "job.workers",
	} {
		_, err := parse(t, good, set)
		wantErr(t, err, want)
	}
}

func TestOptionsOverride(t *testing.T) {
	seed := uint64(math.MaxUint64)
	s, err := Parse("t.yaml", []byte(good), Options{Known: testKnown(), Repeat: 5, Seed: &seed, Runtime: "sim"})
	if err != nil || s.Repeat != 5 || s.Seed != seed || s.Runtime != "sim" {
		t.Errorf("%+v %v", s, err)
	}
	_, err = Parse("t.yaml", []byte(good), Options{Known: testKnown(), Repeat: -1, Runtime: "vm"})
	wantErr(t, err, "--set repeat=-1: repeat: is -1")
	wantErr(t, err, "--set runtime=vm", "process, sim, docker")
}

func TestPlan(t *testing.T) {
	s := mustParse(t, good, "repeat=20", "cells=[{name: a}, {name: b}, {name: c}]", "objectives=[]")
	plan, err := Plan(s, nil)
	if err != nil || len(plan) != 60 {
		t.Fatal(len(plan), err)
	}
	again, _ := Plan(s, nil)
	if !reflect.DeepEqual(plan, again) {
		t.Error("a plan is a function of the suite")
	}
	orders := map[string]bool{}
	for rep := range 20 {
		block, seen := plan[rep*3:rep*3+3], map[int]bool{}
		order := ""
		for i, tr := range block {
			if tr.Index != rep*3+i || tr.Repetition != rep || tr.Seed != block[0].Seed || tr.Name != s.Cells[tr.Cell].Name {
				t.Errorf("%+v", tr)
			}
			seen[tr.Cell] = true
			order += tr.Name
		}
		if len(seen) != 3 {
			t.Errorf("repetition %d does not have each cell once: %+v", rep, block)
		}
		orders[order] = true
	}
	if len(orders) < 3 {
		t.Errorf("the order hardly changes: %v", orders)
	}
	if plan[0].Seed == plan[3].Seed {
		t.Error("repetitions need different seeds")
	}
	other, _ := Plan(mustParse(t, good, "repeat=20", "seed=8", "cells=[{name: a}, {name: b}, {name: c}]", "objectives=[]"), nil)
	if reflect.DeepEqual(plan, other) {
		t.Error("another seed gives another plan")
	}
	// The same repetition of a cell has the same seed whatever else runs.
	some, _ := Plan(s, regexp.MustCompile("^b$"))
	if len(some) != 20 || some[7].Seed != plan[7*3].Seed {
		t.Errorf("%d trials, seed %d", len(some), some[7].Seed)
	}
	_, err = Plan(s, regexp.MustCompile("zzz"))
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `no cell matches "zzz"; known: a, b, c`) {
		t.Errorf("got %v", err)
	}
}

func TestPlanOrders(t *testing.T) {
	blocked, _ := Plan(mustParse(t, good, "repeat=3", "order=blocked"), nil)
	var got []string
	for _, tr := range blocked {
		got = append(got, tr.Name)
	}
	if want := []string{"move", "move", "move", "die", "die", "die"}; !slices.Equal(got, want) {
		t.Errorf("blocked: %q", got)
	}
	random, _ := Plan(mustParse(t, good, "repeat=50", "order=random"), nil)
	count, sorted := map[string]int{}, true
	for i, tr := range random {
		count[tr.Name]++
		sorted = sorted && tr.Repetition >= random[max(0, i-1)].Repetition
	}
	if count["move"] != 50 || count["die"] != 50 || sorted {
		t.Errorf("random: %v, by repetition %v", count, sorted)
	}
}

func TestEstimates(t *testing.T) {
	// warm-up 0.5 + steady 1.5 + after 2 + start-up.
	for set, want := range map[string]time.Duration{
		"seed=1":                         4 * time.Second,
		"cells.move.migration.at=3s":     5500 * time.Millisecond,
		"cells.move.migration.back=2s":   6 * time.Second,
		"timing.capacity=1s":             5 * time.Second,
		"cells.move.migration.at=1s":     4 * time.Second,
		"cells.die.faults.0.for=1000us":  4 * time.Second,
		"cells.move.timing={warmup: 5s}": 8500 * time.Millisecond,
	} {
		plan, _ := Plan(mustParse(t, good, set, "order=blocked"), nil)
		if got := plan[0].Estimate - Startup; got != want {
			t.Errorf("%s: got %s, want %s", set, got, want)
		}
	}
	plan, _ := Plan(mustParse(t, good, "cells.die.faults.0={kind: freeze, target: worker 1, at: 1s, for: 2s}", "order=blocked"), nil)
	if got := plan[2].Estimate - Startup; got != 5500*time.Millisecond {
		t.Errorf("a fault's length counts: got %s", got)
	}
}

func TestObjectives(t *testing.T) {
	figures := map[string]float64{"a.x_ms.median": 10, "a.x_ms.max": 20, "b.x_ms.median": 100, "v1.5/k=2.x_ms.median": 3, "zero.x.median": 0}
	look := func(r Ref) (float64, bool) {
		v, ok := figures[r.String()]
		return v, ok
	}
	for text, want := range map[string]bool{
		"a.x_ms <= 0.1 * b.x_ms":             true,
		"a.x_ms < 0.1 * b.x_ms":              false,
		"a.x_ms.max == 2 * a.x_ms.median":    true,
		"a.x_ms.max != 20":                   false,
		"(a.x_ms + 10) / 2 >= 10":            true,
		"a.x_ms - 2 - 3 > 4.9":               true, // from the left
		"2 + 3 * a.x_ms == 32":               true,
		"v1.5/k=2.x_ms < 4":                  true,
		"a.x_ms < 1e3":                       true,
		"a.y_ms < 1":                         false,
		"zero.x / zero.x >= 0":               false,
		"0 <= c.x_ms":                        false,
		"a.x_ms.min < 1000":                  false,
		"((((((((a.x_ms)))))))) < ( 1_000 )": true,
	} {
		o, verr := parseObjective(text)
		if verr != nil {
			t.Fatalf("%s: %v", text, verr)
		}
		j := o.Judge(look)
		if j.Met != want {
			t.Errorf("%s: %+v", text, j)
		}
		missing := strings.Contains(text, "a.y") || strings.Contains(text, "zero") || strings.Contains(text, "c.x") || strings.Contains(text, "min")
		if (j.Reason != "") != missing {
			t.Errorf("%s: reason %q", text, j.Reason)
		}
	}
	for _, text := range []string{"", "a.b", "a.b <", "< 3", "a.b < 3 4", "1 < 2", "a < 3", "a.median < 3", "a.b < (3", "a.b < 3)", "a.b ! 3", "a.b < -3", "a.b =< 3", "a.b < 1e999",
		strings.Repeat("(", 300) + "a.b" + strings.Repeat(")", 300) + "<1"} {
		if _, err := parseObjective(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestObjectivesOfASelection(t *testing.T) {
	s := mustParse(t, good, "objectives=[die.x < 1, move.x < die.x]")
	for only, want := range map[string][2]int{"": {2, 0}, "die": {1, 1}, "move": {0, 2}} {
		plan, err := Plan(s, regexp.MustCompile(only))
		if err != nil {
			t.Fatal(err)
		}
		apply, skipped := s.ObjectivesFor(plan)
		if got := [2]int{len(apply), len(skipped)}; got != want {
			t.Errorf("%q: %v, want %v", only, got, want)
		}
	}
}

// A cell's query stands in place of the suite's operators, and its operators in place of the suite's query; both together
// are still refused.
func TestQueryAndOperatorsReplaceEachOther(t *testing.T) {
	const query, operators = "{query: q}", "{operators: [{name: s, kind: source}, {name: o, kind: sink, inputs: [s]}]}"
	k := testKnown()
	k.Queries = []QueryInfo{{Name: "q", Operators: func(Query) []Operator {
		return []Operator{{Name: "events", Kind: "source", Parallelism: 1}, {Name: "rows", Kind: "sink", Inputs: []string{"events"}, Parallelism: 1}}
	}}}
	for _, c := range []struct{ base, own, want string }{
		{operators, query, "events"}, {query, operators, "s"}, {operators, "{}", "s"}, {query, "{workers: 3}", "events"},
	} {
		s, err := Parse("t.yaml", []byte(good), Options{Known: k, Sets: []string{"objectives=[]", "job=" + c.base, "cells=[{name: a, job: " + c.own + "}]"}})
		if err != nil {
			t.Errorf("%s under %s: %v", c.base, c.own, err)
		} else if got := s.Cells[0].Job.Operators[0].Name; got != c.want || (s.Cells[0].Job.Query != nil) != (c.want == "events") {
			t.Errorf("%s under %s: the first operator is %s, want %s", c.base, c.own, got, c.want)
		}
	}
	_, err := Parse("t.yaml", []byte(good), Options{Known: k, Sets: []string{"objectives=[]", "cells=[{name: a, job: {query: q, operators: [{name: s, kind: source}]}}]"}})
	wantErr(t, err, "job.query: is given beside operators")
}
