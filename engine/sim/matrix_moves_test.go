package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
)

// eachCombination calls run with every combination of a strategy, an operator and a guarantee that go together.
func eachCombination(t *testing.T, run func(t *testing.T, c Cell, s migration.Strategy)) {
	for _, s := range migration.Strategies() {
		for _, operator := range []string{"count", "windows"} {
			for _, g := range guarantees() {
				if operator == "windows" && (s.Plain || s.External) || !g.with(s, operator) {
					continue
				}
				c := Cell{Seed: 1, Operator: operator, Migration: s.Name, Recovery: g.recovery, Transactional: g.transactional}
				t.Run(fmt.Sprintf("%s/%s/%s/%v", s.Name, operator, g.recovery, g.transactional), func(t *testing.T) { run(t, c, s) })
			}
		}
	}
}

// stage is a cell that a test plays by hand.
type stage struct {
	*cell
	t *testing.T
}

func newStage(t *testing.T, c Cell, s migration.Strategy, change func(*cell)) stage {
	t.Helper()
	r := &cell{Cell: c, external: s.External, strat: s, w: newWorld(c.Seed), feed: cellFeed{feed{keys: 70, seed: c.Seed}}, records: cellRecords, everyNS: recordNS}
	rec, err := r.recovery()
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	if err := r.start(r.job(rec)); err != nil {
		t.Fatal(err)
	}
	r.before = slices.Clone(r.w.coord.Routes(cellOp).Task)
	return stage{r, t}
}

func (s stage) wait(what string, done func() bool) {
	s.t.Helper()
	if err := s.until(what, done); err != nil {
		s.t.Fatal(err)
	}
}

// hold waits until n records have been worked on, behind which none is emitted, and nothing is under way.
func (s stage) hold(n int64) {
	s.t.Helper()
	s.due = n
	at := startNS + n*s.everyNS + 30*ms
	s.wait("the held feed", func() bool { return s.w.nowNS >= at && s.quiet() && s.steps.watch.there() })
}

func (s stage) move(moves []core.Move) {
	s.t.Helper()
	if err := s.migrate(moves); err != nil {
		s.t.Fatal(err)
	}
	s.wait("the end of the migration", func() bool { return !s.w.coord.Migrating() && s.w.coord.Running() })
	if s.w.traced(coord.TraceMigrationLost) || s.w.traced(coord.TraceTaskFailed) {
		s.t.Fatal("the migration was rolled back without a fault")
	}
	if table := s.w.coord.Routes(cellOp).Task; !slices.Equal(table, apply(table, moves)) {
		s.t.Fatalf("the table is %v after %v", table, moves)
	}
}

// prints returns the state of each key group.
func (s stage) prints() []uint64 {
	s.t.Helper()
	p, err := s.fingerprints()
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// bytes returns the size of a key group's state at its owner.
func (s stage) bytes(group uint32) int64 {
	owner := s.w.coord.Routes(cellOp).Task[group]
	return s.steps.watch.placed(s.w.coord.Graph().OpTasks[cellOp][owner]).Bytes(group)
}

// end lets the rest of the feed come and compares outputs and state with those of a run that never moved.
func (s stage) end(ref *Reference) {
	s.t.Helper()
	s.due = s.records + 2
	s.wait("the end", s.w.edge.Ended)
	rows := maps.Clone(s.rows.seen)
	s.wait("rest", s.settled)
	s.rows.seen = rows
	if err := s.rows.judge(ref.rows, s.promise); err != nil {
		s.t.Fatal(err)
	}
	if p := s.prints(); !slices.Equal(p, ref.state) {
		s.t.Fatal("the state is not that of a run that never moved")
	}
}

func refer(t *testing.T, c Cell, s migration.Strategy) *Reference {
	t.Helper()
	ref, err := Refer(c.Seed, c.Operator, s.External)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// allOf moves all key groups of a table from one task to another.
func allOf(table []int32, from, to int) (moves []core.Move) {
	for g, owner := range table {
		if int(owner) == from {
			moves = append(moves, core.Move{Group: uint32(g), From: from, To: to})
		}
	}
	return moves
}

// TestThereAndBack moves all key groups of a task to another and back while the feed stands still in the middle of open
// windows: the state is the same bit for bit after each move, wherever it is, and so is the rest of the run.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	eachCombination(t, func(t *testing.T, c Cell, m migration.Strategy) {
		s := newStage(t, c, m, nil)
		s.hold(cellRecords / 2)
		before, moves := s.prints(), allOf(s.before, slotSource, slotTarget)
		for _, mv := range moves {
			if !m.External && s.bytes(mv.Group) < 48 { // a window's, or three keys'
				t.Fatalf("key group %d has no state to speak of", mv.Group)
			}
		}
		for _, step := range [][]core.Move{moves, inverse(moves), moves, inverse(moves)} {
			s.move(step)
			s.hold(cellRecords / 2)
			if after := s.prints(); !slices.Equal(after, before) {
				t.Fatalf("a move changed the state: %x, before %x", after, before)
			}
		}
		if table := s.w.coord.Routes(cellOp).Task; !slices.Equal(table, s.before) {
			t.Fatalf("there and back gives the table %v, before it was %v", table, s.before)
		}
		s.end(refer(t, c, m))
	})
}

// TestTwoAtOnce asks for a second migration at every step of a first one: it is refused, and nothing comes of it.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	for _, m := range migration.Strategies() {
		t.Run(m.Name, func(t *testing.T) {
			c := Cell{Seed: 2, Operator: "count", Migration: m.Name, Recovery: "none"}
			s := newStage(t, c, m, nil)
			s.due = cellRecords / 2
			s.wait("the start", func() bool { return s.w.nowNS > startNS+15*ms && s.w.coord.Running() })
			other := []core.Move{{Group: 8, From: slotThird, To: slotSource}}
			moves := allOf(s.before, slotSource, slotTarget)
			if err := s.migrate(moves); err != nil {
				t.Fatal(err)
			}
			asked := 0
			s.wait("the end of the migration", func() bool {
				if !s.w.coord.Migrating() {
					return true
				}
				asked++
				if err := s.migrate(other); !errors.Is(err, coord.ErrBusy) {
					t.Fatalf("a second migration at %.3f ms: %v, want %v", float64(s.w.nowNS)/1e6, err, coord.ErrBusy)
				}
				return false
			})
			if asked < 10 {
				t.Fatalf("asked %d times only", asked)
			}
			if table := s.w.coord.Routes(cellOp).Task; !slices.Equal(table, apply(s.before, moves)) {
				t.Fatalf("the table is %v", table)
			}
			s.move(other) // now it may
			s.end(refer(t, c, m))
		})
	}
}

// TestEmptyGroups moves key groups that have no keys, alone and together with others.
func TestEmptyGroups(t *testing.T) {
	t.Parallel()
	eachCombination(t, func(t *testing.T, c Cell, m migration.Strategy) {
		s := newStage(t, c, m, func(c *cell) { c.feed = cellFeed{feed{keys: 2, seed: 1}} })
		s.hold(cellRecords / 2)
		empty, before := 0, s.prints()
		for _, moves := range [][]core.Move{{{Group: 0, From: slotSource, To: slotTarget}}, allOf(s.before, slotThird, slotSource)} {
			for _, mv := range moves {
				if before[mv.Group] == before[0] { // as of a key group without keys
					empty++
				}
			}
			s.move(moves)
		}
		if empty < 2 {
			t.Fatalf("%d empty key groups were moved, want 2 or more: %x", empty, before)
		}
		s.hold(cellRecords / 2)
		if after := s.prints(); !slices.Equal(after, before) {
			t.Fatalf("moving empty key groups changed the state: %x, before %x", after, before)
		}
		s.due = s.records + 2
		s.wait("the end", s.settled)
	})
}

// TestEndInAMove lets the end of the feed come at each step of a migration of all key groups of a task. The job comes to its
// end, with all answers, and the migration to its own.
func TestEndInAMove(t *testing.T) {
	t.Parallel()
	eachCombination(t, func(t *testing.T, c Cell, m migration.Strategy) {
		ref := refer(t, c, m)
		for step := len(c.Recovery) % 5; ; step += 41 {
			s := newStage(t, c, m, nil)
			s.hold(s.records - 20)
			moves := allOf(s.before, slotSource, slotTarget)
			s.steps.was, s.steps.on = s.steps.look(), true
			if err := s.migrate(moves); err != nil {
				t.Fatal(err)
			}
			s.wait("a step", func() bool { return len(s.res.Steps) > step || !s.w.coord.Migrating() })
			over := !s.w.coord.Migrating()
			s.end(ref)
			if table := s.w.coord.Routes(cellOp).Task; !slices.Equal(table, apply(s.before, moves)) {
				t.Fatalf("step %d: the table is %v", step, table)
			}
			if over {
				return
			}
		}
	})
}

// TestSwapWithFullBuffers lets two tasks give each other key groups while each hears of it from one of its two inputs only, for
// so long that what waits reaches its bound. When the link is back, both must take in the other marker all the same.
func TestSwapWithFullBuffers(t *testing.T) {
	t.Parallel()
	for _, m := range migration.Strategies() {
		t.Run(m.Name, func(t *testing.T) {
			c := Cell{Seed: 3, Operator: "count", Migration: m.Name, Recovery: "none"}
			s := swapWithFullBuffers(t, c, m)
			s.wait("the end of the migration", func() bool { return !s.w.coord.Migrating() })
			s.end(refer(t, c, m))
		})
	}
	t.Run("planted", func(t *testing.T) { // the check catches what it is for
		m, err := migration.Lookup("all-at-once")
		if err != nil {
			t.Fatal(err)
		}
		s := swapWithFullBuffers(t, Cell{Seed: 3, Operator: "count", Migration: m.Name, Recovery: "none", Bugs: []string{"full-before-marker"}}, m)
		if err := s.until("the end of the migration", func() bool { return !s.w.coord.Migrating() }); err == nil {
			t.Error("a task with too much that waits takes no marker, and nothing comes of it")
		}
	})
}

// swapWithFullBuffers begins such a migration.
func swapWithFullBuffers(t *testing.T, c Cell, m migration.Strategy) stage {
	t.Helper()
	s := newStage(t, c, m, func(c *cell) { c.logBytes = 1 << 10 })
	s.wait("the start", func() bool { return s.w.nowNS > startNS+10*ms && s.w.coord.Running() })
	swap := append(allOf(s.before, slotSource, slotTarget), allOf(s.before, slotTarget, slotSource)...)
	s.w.partition(s.w.coord.NodeOfSlot(slotSource), s.w.coord.NodeOfSlot(slotTarget), 60*ms)
	if err := s.migrate(swap); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMigrationSeedsThatOnceFailed runs again what found a bug once: inputs in flight of which a task owns none were given back
// twice at a restore.
func TestMigrationSeedsThatOnceFailed(t *testing.T) {
	for _, c := range []Config{{Seed: 3102234, Migration: "on-demand", Faults: -1}} {
		if r := Run(c); r.Violation != "" {
			t.Errorf("%s: %s\n  repro: go run ./cmd/bench sim --first %d --seeds 1 --migration %s", c.Migration, r.Violation, c.Seed, c.Migration)
		}
	}
}
