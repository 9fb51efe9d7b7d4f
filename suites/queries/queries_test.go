package queries

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/sim"
	"github.com/weir-bench/weir/workloads/nexmark"
	"github.com/weir-bench/weir/workloads/shufflebench"
	"github.com/weir-bench/weir/workloads/ysb"
)

var (
	seedFlag      = flag.Uint64("seed", 0, "run this seed only")
	seedsFlag     = flag.Uint64("seeds", 6, "how many seeds each test runs, beside a fresh one")
	migrationFlag = flag.String("migration", "", "use this migration strategy only")
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

// answers reads the outputs, sorted.
func answers(t *testing.T, rows []sim.JobRow) []Answer {
	t.Helper()
	out := make([]Answer, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = ParseAnswer(r.Key, r.Val, []byte(r.Payload)); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(out, Compare)
	return out
}

// difference says how the answers break the promise.
func difference(got, want []Answer, promise recovery.Promise) string {
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
	c.job = sim.JobConfig{Seed: seed, Recovery: pick(r, "none", "checkpoint", "active", "passive"), Faults: r.IntN(3), Migrations: r.IntN(4),
		Migration: migration.Strategies()[r.IntN(len(migration.Strategies()))].Name}
	if c.job.Recovery == "none" {
		c.job.Faults = 0 // what a gap leaves of the answers of windows and joins has no golden answer
	}
	c.job.Transactional = c.job.Recovery == "checkpoint" && r.IntN(2) == 0
	if *migrationFlag != "" {
		c.job.Migration = *migrationFlag
	}
	c.events = stream{spacing: 20 * time.Millisecond}
	c.job.Job.Workers = 2 + r.IntN(2)
	return c
}

// run runs the query and compares its answers and late events with the golden ones. It returns how many answers there were
// to compare, and what is wrong.
func (c trial) run(t *testing.T, q Query) (rows int, wrong string) {
	t.Helper()
	want, late, err := q.Golden(c.events.columns(c.records), c.options)
	if err != nil {
		t.Fatal(err)
	}
	c.job.Feed, c.job.Records = c.events, c.records
	c.job.Job.Operators = q.Operators(c.options)
	res, err := sim.RunJob(c.job)
	if err != nil {
		return len(want), err.Error()
	}
	d := difference(answers(t, res.Rows), want, res.Promise)
	if res.Late != late {
		d += fmt.Sprintf(" %d late, want %d", res.Late, late)
	}
	if d != "" {
		d += fmt.Sprintf(" (promise %s, faults %v, %d migrated)", res.Promise, res.Faults, res.Migrated)
	}
	return len(want), d
}

// check is run where nothing may be wrong.
func (c trial) check(t *testing.T, q Query) int {
	t.Helper()
	rows, wrong := c.run(t, q)
	if wrong != "" {
		t.Errorf("%v: %s\n  repro: go test ./suites/queries -run '%s' -seed=%d", c, wrong, t.Name(), c.seed)
	}
	return rows
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
				c := newTrial(q.Name, seed)
				c.events.events = nexmark.New(nexmark.DefaultConfig(seed, 50))
				rows += c.check(t, q)
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
			q, err := Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, seed := range seeds() {
				c := newTrial(name, seed)
				c.options.Sources, c.options.Bound, c.options.Step = 1, 100*time.Millisecond, 1
				c.options.Window, c.options.Slide, c.options.Gap = 2*time.Second, 500*time.Millisecond, 700*time.Millisecond
				c.options.Lateness = time.Duration(seed%3) * 400 * time.Millisecond
				g := nexmark.DefaultConfig(seed, 50)
				g.LateShare = 0.3
				c.events.events = nexmark.New(g)
				if c.check(t, q) == 0 {
					t.Errorf("%v: no answers to compare", c)
				}
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
		if seed%2 == 1 { // what is late is what one thread finds late
			c.options.Sources, c.options.Bound, c.options.Lateness = 1, 100*time.Millisecond, time.Duration(seed%3)*time.Second
		}
		if c.check(t, ysbQuery()) == 0 {
			t.Errorf("%v: no answers to compare", c)
		}
	}
}

func TestShuffleBench(t *testing.T) {
	for _, seed := range seeds() {
		c := newTrial("shufflebench", seed)
		g := shufflebench.DefaultConfig(seed)
		g.Rules, g.Selectivity, g.Bytes = 10+seed%20, []float64{0.2, 0.3, 1}[seed%3], 64
		c.events.events = shufflebench.New(g)
		if c.check(t, Shuffle(g)) == 0 {
			t.Errorf("%v: no answers to compare", c)
		}
	}
}

// TestOperatorsAreChecked says that every query's parameters pass, and that a query is told from a slip of the pen.
func TestOperatorsAreChecked(t *testing.T) {
	for _, q := range Queries() {
		if err := operator.Check(&core.Job{Operators: q.Operators(DefaultOptions())}); err != nil {
			t.Errorf("%s: %v", q.Name, err)
		}
	}
	if _, err := Lookup("q10"); !errors.Is(err, ErrQuery) || !strings.Contains(err.Error(), "q9, q11") {
		t.Errorf("lookup of q10: %v", err)
	}
	for _, payload := range []string{"short", "12345678\x05text", "12345678\x02text"} {
		if _, err := ParseAnswer(1, 2, []byte(payload)); err == nil {
			t.Errorf("payload %q was accepted", payload)
		}
	}
}

// TestPlantedBugs says that each deliberately broken variant of what keeps windows right on the move is caught by q5, with
// two sources, a watermark at every record and nothing late.
func TestPlantedBugs(t *testing.T) {
	q, err := Lookup("q5")
	if err != nil {
		t.Fatal(err)
	}
	for _, bug := range []string{"", "skip-held-watermarks", "close-moving-windows", "watermark-overtakes"} {
		caught := false
		for seed := uint64(1); seed <= 150 && !caught; seed++ {
			c := newTrial("q5", seed)
			c.options.Sources, c.options.Step, c.records = 2, 1, 800
			c.options.Window, c.options.Slide = 2*time.Second, 500*time.Millisecond
			c.job.Recovery, c.job.Transactional, c.job.Faults = "none", false, 0
			c.job.Migrations, c.job.Migration = 6, "async-rounds"
			c.job.Job.Bugs = []string{bug}
			c.events.events = nexmark.New(nexmark.DefaultConfig(seed, 50))
			_, d := c.run(t, q)
			if caught = d != ""; caught {
				t.Logf("%q at seed %d: %s", bug, seed, d)
			}
			if bug == "" && seed == 10 {
				break
			}
		}
		if caught != (bug != "") {
			t.Errorf("bug %q: caught %v", bug, caught)
		}
	}
}

// TestHash says that answers that differ in one place, and only those, have different hashes.
func TestHash(t *testing.T) {
	seen := map[uint64]Answer{}
	for key := range uint64(8) {
		for _, at := range []int64{0, 1, -1, 1 << 62} {
			for _, val := range []int64{0, 1, -1, 7} {
				for _, text := range []string{"", "a", "b", "ab", "ba", "\x00", "\x00\x00"} {
					a := Answer{key, at, val, text}
					if other, taken := seen[a.Hash()]; taken {
						t.Errorf("%v and %v have the same hash", a, other)
					}
					seen[a.Hash()] = a
				}
			}
		}
	}
	if a := (Answer{1, 2, 3, "x"}); a.Hash() != (Answer{1, 2, 3, "x"}).Hash() {
		t.Error("equal answers have different hashes")
	}
}
