package queries

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/sim"
	"github.com/weir-bench/weir/workloads/nexmark"
	"github.com/weir-bench/weir/workloads/shufflebench"
	"github.com/weir-bench/weir/workloads/ysb"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this seed only")
	seedsFlag = flag.Uint64("seeds", 6, "how many seeds each test runs, beside a fresh one")
)

// stream is a feed: record i at an even pace of event time.
type stream struct {
	events interface {
		Append(dst *core.Columns, i uint64, at int64)
	}
	spacing time.Duration
}

func (s stream) Fill(dst *core.Columns, split, splits int, from uint64, n int) {
	for j := from; j < from+uint64(n); j++ {
		i := j*uint64(splits) + uint64(split)
		s.events.Append(dst, i, int64(i)*int64(s.spacing))
	}
}

func (s stream) columns(n uint64) *core.Columns {
	var c core.Columns
	s.Fill(&c, 0, 1, 0, int(n))
	return &c
}

// answers reads the outputs as rows in the golden order.
func answers(t *testing.T, rows []sim.JobRow) []nexmark.Row {
	t.Helper()
	out := make([]nexmark.Row, len(rows))
	for i, r := range rows {
		row, err := ParseRow([]byte(r.Payload))
		if err != nil {
			t.Fatal(err)
		}
		out[i] = nexmark.Row{Key: r.Key, Time: row.Time, Val: r.Val, Text: row.Text}
	}
	slices.SortFunc(out, compareRows)
	return out
}

func compareRows(x, y nexmark.Row) int {
	return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Time, y.Time), cmp.Compare(x.Val, y.Val), cmp.Compare(x.Text, y.Text))
}

// difference says how the answers break the promise.
func difference(got, want []nexmark.Row, promise recovery.Promise) string {
	if promise == recovery.Rollback { // outputs may come twice
		got, want = slices.Compact(slices.Clone(got)), slices.Compact(slices.Clone(want))
	}
	if slices.Equal(got, want) {
		return ""
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%d rows, want %d; row %d is %v, want %v", len(got), len(want), i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d rows, want %d, the same as far as they go", len(got), len(want))
}

// trial is one run of a query with all that a seed decides.
type trial struct {
	query   string
	seed    uint64
	records uint64
	options Options
	events  stream
	job     sim.JobConfig
}

func (c trial) String() string {
	j := c.job
	return fmt.Sprintf("%s seed %d: %d sources, %d tasks, recovery %s, transactional %v, %d faults %v, %d migrations %s",
		c.query, c.seed, c.options.Sources, c.options.Tasks, j.Recovery, j.Transactional, j.Faults, j.Kinds, j.Migrations, j.Migration)
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func newTrial(query string, seed uint64) trial {
	r := rand.New(rand.NewPCG(seed, 7))
	c := trial{query: query, seed: seed, records: 1500 + r.Uint64N(1500), options: DefaultOptions()}
	c.options.Sources, c.options.Tasks, c.options.Groups = 1+r.IntN(2), 2+r.IntN(2), uint32(8+r.IntN(24))
	c.job = sim.JobConfig{Seed: seed, Recovery: pick(r, "none", "checkpoint", "active"), Faults: r.IntN(3), Migrations: r.IntN(4),
		Migration: migration.Strategies()[r.IntN(len(migration.Strategies()))].Name}
	c.job.Transactional = c.job.Recovery == "checkpoint" && r.IntN(2) == 0
	c.events = stream{spacing: 20 * time.Millisecond}
	c.job.Job.Workers = 2 + r.IntN(2)
	return c
}

func (c trial) run(t *testing.T, q Query) sim.JobResult {
	t.Helper()
	c.job.Feed, c.job.Records = c.events, c.records
	c.job.Job.Operators = q.Operators(c.options)
	res, err := sim.RunJob(c.job)
	if err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	return res
}

// nexmark returns how many rows there were to compare.
func (c trial) nexmark(t *testing.T, g nexmark.Config) int {
	t.Helper()
	c.events.events = nexmark.New(g)
	in, err := nexmark.Inputs(c.events.columns(c.records))
	if err != nil {
		t.Fatal(err)
	}
	o := c.options
	want, err := nexmark.Golden(c.query, in, nexmark.Options{Window: o.Window, Slide: o.Slide, Gap: o.Gap, Bound: o.Bound, Lateness: o.Lateness})
	if err != nil {
		t.Fatal(err)
	}
	q, err := Lookup(c.query)
	if err != nil {
		t.Fatal(err)
	}
	res := c.run(t, q)
	if d := difference(answers(t, res.Rows), want.Rows, res.Promise); d != "" {
		t.Errorf("%v: %s (promise %s, faults %v, %d migrated)\n  repro: go test ./suites/queries -run '%s' -seed=%d", c, d, res.Promise, res.Faults, res.Migrated, t.Name(), c.seed)
	}
	if res.Late != want.Late {
		t.Errorf("%v: %d late, want %d (faults %v, %d migrated)", c, res.Late, want.Late, res.Faults, res.Migrated)
	}
	return len(want.Rows)
}

func seeds() []uint64 {
	if *seedFlag > 0 {
		return []uint64{*seedFlag}
	}
	var out []uint64
	for s := uint64(1); s <= *seedsFlag; s++ {
		out = append(out, s)
	}
	return append(out, uint64(time.Now().UnixNano())>>8)
}

// TestNEXMark runs each query under faults and migrations, with one to two sources; nothing is late.
func TestNEXMark(t *testing.T) {
	for _, q := range nexmarkQueries() {
		t.Run(q.Name, func(t *testing.T) {
			rows := 0
			for _, seed := range seeds() {
				rows += newTrial(q.Name, seed).nexmark(t, nexmark.DefaultConfig(seed, 50))
			}
			if rows == 0 && *seedFlag == 0 {
				t.Error("no answers to compare")
			}
		})
	}
}

// TestLateEvents has a bound far below the lateness of the events: which are late must be exactly what one thread finds,
// whatever fails or moves on the way.
func TestLateEvents(t *testing.T) {
	for _, name := range []string{"q5", "q7", "q8", "q11"} {
		t.Run(name, func(t *testing.T) {
			for _, seed := range seeds() {
				c := newTrial(name, seed)
				c.options.Sources, c.options.Bound, c.options.Step = 1, 100*time.Millisecond, 1
				c.options.Window, c.options.Slide, c.options.Gap = 2*time.Second, 500*time.Millisecond, 700*time.Millisecond
				c.options.Lateness = time.Duration(seed%3) * 400 * time.Millisecond
				g := nexmark.DefaultConfig(seed, 50)
				g.LateShare = 0.3
				c.nexmark(t, g)
			}
		})
	}
}

func TestYSB(t *testing.T) {
	for _, seed := range seeds() {
		c := newTrial("ysb", seed)
		c.options.Bound = time.Minute // as late as its events are
		g := ysb.DefaultConfig(seed)
		g.LateShare = 0.01
		c.events.events = ysb.New(g)
		golden := ysb.Golden{}
		cols := c.events.columns(c.records)
		for i := range cols.Keys {
			e, err := ysb.Decode(cols.Payload(i))
			if err != nil {
				t.Fatal(err)
			}
			golden.Add(e)
		}
		var want []nexmark.Row
		for cell, n := range golden { // sorted below
			want = append(want, nexmark.Row{Key: cell.Campaign, Time: cell.WindowStart, Val: int64(n)})
		}
		slices.SortFunc(want, compareRows)
		res := c.run(t, ysbQuery())
		if d := difference(answers(t, res.Rows), want, res.Promise); d != "" || res.Late != 0 {
			t.Errorf("%v: %s, %d late\n  repro: go test ./suites/queries -run TestYSB -seed=%d", c, d, res.Late, seed)
		}
	}
}

func TestShuffleBench(t *testing.T) {
	for _, seed := range seeds() {
		c := newTrial("shufflebench", seed)
		g := shufflebench.DefaultConfig(seed)
		g.Rules, g.Selectivity, g.Bytes = 10+seed%20, []float64{0.2, 0.3, 1}[seed%3], 64
		gen := shufflebench.New(g)
		c.events.events = gen
		count := map[uint64]int64{}
		var want []nexmark.Row
		for _, key := range c.events.columns(c.records).Keys {
			if rule, ok := gen.Match(key); ok {
				if count[rule]++; count[rule]%shufflebench.OutputEvery == 0 {
					want = append(want, nexmark.Row{Key: rule, Val: count[rule]})
				}
			}
		}
		slices.SortFunc(want, compareRows)
		res := c.run(t, Shuffle(g))
		if d := difference(answers(t, res.Rows), want, res.Promise); d != "" || len(want) == 0 {
			t.Errorf("%v: %d wanted: %s\n  repro: go test ./suites/queries -run TestShuffleBench -seed=%d", c, len(want), d, seed)
		}
	}
}
