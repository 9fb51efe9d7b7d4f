package coord

import (
	"errors"
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/operator"
)

// ErrBusy refuses a migration while another one or a recovery is under way.
var ErrBusy = errors.New("a migration or a recovery is under way")

// moving is a migration under way.
type moving struct {
	request     migration.Request
	machine     migration.Machine
	version     uint64
	waiting     map[int]bool // tasks that have not said that the round is done
	round       int
	bytes       int64
	waited      uint64
	redeploying bool
	wants       *migration.Action // waits for the pending checkpoint
	copies      uint64
	copying     bool  // what is waited for is a copy, not a round
	stepBytes   int64 // moved by the action under way
	wantSave    bool
	before      []*core.Routes
}

// Migrate begins a migration. Two at once are refused.
func (c *Coordinator) Migrate(r migration.Request, s migration.Strategy, e *Effects) error {
	c.e = e
	if !c.Running() || c.move != nil && !c.job.Bug("two-at-once") {
		return ErrBusy
	}
	if r.Operator < 0 || r.Operator >= len(c.routes) || c.routes[r.Operator] == nil {
		return fmt.Errorf("operator %d has no key groups to move", r.Operator)
	}
	if err := Fits(c.graph, r.Operator, s); err != nil {
		return err
	}
	probe := c.routes[r.Operator].Clone()
	if err := probe.Apply(&core.RouteChange{Version: probe.Version + 1, Operator: r.Operator, Moves: r.Moves}); err != nil {
		return err
	}
	c.tellSuspended(true)
	c.tally = c.newTally()
	c.move = &moving{request: r, machine: s.New(r), before: cloneRoutes(c.routes)}
	c.trace(TraceMigration, Trace{Count: uint64(len(r.Moves)), Detail: s.Name})
	c.advance(migration.Begin)
	return nil
}

// Fits says why a strategy cannot move the key groups of a job's operator. A migration is refused for that reason, and
// suites are before they run.
func Fits(g *core.Graph, operatorIndex int, s migration.Strategy) error {
	op := &g.Job.Operators[operatorIndex]
	if err := fitsStore(&g.Job, op, s); err != nil {
		return err
	}
	for _, id := range g.OpTasks[operatorIndex] { // any of them may give or get
		if p := g.Protection(id); !s.GoesWith(p.Strategy) {
			return fmt.Errorf("%s cannot move operator %s, whose task %s is protected by %s: %s; want another recovery for it, or another migration strategy",
				s.Name, op.Name, g.TaskName(id), p.Strategy, s.Because)
		}
	}
	if s.Plain {
		k, _ := operator.Lookup(op.Kind)
		if _, timed := k.New(op).(operator.Timed); timed || len(op.Inputs) != 1 {
			return fmt.Errorf("%s cannot move operator %s: it needs an operator with one input that does not go by event time; want another migration strategy", s.Name, op.Name)
		}
	}
	return nil
}

// Migrating says whether a migration is under way.
func (c *Coordinator) Migrating() bool { return c.move != nil }

func (c *Coordinator) advance(ev migration.Event) {
	bytes := c.move.stepBytes
	c.move.stepBytes = 0
	for _, a := range c.move.machine.Step(ev, bytes) {
		switch a.Do {
		case migration.Pause:
			if c.job.Bug("stop-without-pause") {
				continue
			}
			c.tally.pausedNS = c.Clock()
			for _, t := range c.graph.Tasks {
				if len(c.job.Operators[t.Operator].Inputs) == 0 {
					c.Edge.Control(t.ID, core.Control{Type: core.CtlPause}, &c.e.Edge)
				}
			}
		case migration.Checkpoint:
			if c.checkpoints.pending != nil {
				c.move.wantSave = true
				continue
			}
			c.checkpoints.take(true)
		case migration.Redeploy:
			c.move.bytes = c.checkpoints.done.bytes
			c.tally.savedNS = c.Clock()
			r := c.routes[c.move.request.Operator]
			change := core.RouteChange{Version: r.Version + 1, Operator: c.move.request.Operator, Moves: a.Moves}
			if err := r.Apply(&change); err != nil {
				panic(err) // checked by Migrate
			}
			c.move.redeploying = true
			c.phase, c.reason = waiting, "migration"
			c.staff()
			c.fill()
		case migration.Route:
			if c.checkpoints.pending != nil {
				c.move.wants = &a
				continue
			}
			c.beginRound(&a)
		case migration.Copy:
			if c.checkpoints.pending != nil { // a task that mirrors must not wait for one that aligns
				c.move.wants = &a
				continue
			}
			c.beginCopy(&a)
		case migration.Finish:
			c.trace(TraceMigrated, Trace{Bytes: c.move.bytes, Count: c.move.waited})
			c.restarted(c.move.request.Moves)
			c.move = nil
			c.tally.over = true
			c.tellSuspended(false)
			return
		}
	}
}

// resumeMove goes on with what waited for the pending checkpoint.
func (c *Coordinator) resumeMove() {
	m := c.move
	if m == nil || c.checkpoints.pending != nil || !c.Running() {
		return
	}
	if m.wantSave {
		m.wantSave = false
		c.checkpoints.take(true)
	}
	if w := m.wants; w != nil {
		m.wants = nil
		if w.Do == migration.Copy {
			c.beginCopy(w)
		} else {
			c.beginRound(w)
		}
	}
}

// beginRound applies moves to the route table and sends the change to every task that sends to the operator.
func (c *Coordinator) beginRound(a *migration.Action) {
	m, moves := c.move, a.Moves
	r := c.routes[m.request.Operator]
	change := core.RouteChange{Version: r.Version + 1, Operator: m.request.Operator, Mode: a.Mode, Moves: moves, BandwidthBytes: uint64(m.request.BandwidthBytesPerSecond)}
	if err := r.Apply(&change); err != nil {
		panic(err) // checked by Migrate
	}
	m.version, m.waiting, m.copying = change.Version, map[int]bool{}, false
	m.round++
	ids := c.graph.OpTasks[m.request.Operator]
	for _, mv := range moves {
		m.waiting[ids[mv.From]], m.waiting[ids[mv.To]] = true, true
		c.tally.expect(change.Version, ids[mv.From])
		c.tally.expect(change.Version, ids[mv.To])
	}
	c.trace(TraceRound, Trace{ID: change.Version, Count: uint64(len(moves))})
	body := core.AppendRouteChange(nil, &change)
	op := c.job.Operators[m.request.Operator]
	for _, t := range c.graph.Tasks {
		for _, in := range op.Inputs {
			if c.job.Operators[t.Operator].Name == in {
				c.Edge.Control(t.ID, core.Control{Type: core.CtlRoute, ID: change.Version, Body: body}, &c.e.Edge)
			}
		}
	}
}

// moved takes a task's word that its part of a round is done.
func (c *Coordinator) moved(msg *core.Msg) {
	m := c.move
	if m == nil || m.copying || msg.ID != m.version && !c.job.Bug("any-word-closes-a-round") || !m.waiting[msg.Task] {
		return
	}
	m.bytes += msg.Bytes
	m.stepBytes += msg.Bytes
	m.waited += msg.Records
	delete(m.waiting, msg.Task)
	if len(m.waiting) == 0 {
		c.trace(TraceRoundDone, Trace{ID: m.version, Bytes: m.bytes, Count: m.waited})
		c.advance(migration.RoundDone)
	}
}

// beginCopy asks the giving tasks to send the state (or what changed of it) ahead.
func (c *Coordinator) beginCopy(a *migration.Action) {
	m, moves := c.move, a.Moves
	m.copies++
	m.waiting, m.copying = map[int]bool{}, true
	ids := c.graph.OpTasks[m.request.Operator]
	body := core.AppendRouteChange(nil, &core.RouteChange{Version: m.copies, Operator: m.request.Operator, Mode: a.Mode, Moves: moves,
		BandwidthBytes: uint64(m.request.BandwidthBytesPerSecond)})
	for i, id := range ids {
		gives := false
		for _, mv := range moves {
			gives = gives || mv.From == i
		}
		if gives {
			m.waiting[id] = true
			c.Edge.Control(id, core.Control{Type: core.CtlCopy, ID: m.copies, Body: body}, &c.e.Edge)
		}
	}
	c.trace(TraceCopy, Trace{ID: m.copies})
	if c.job.Bug("switch-before-level") {
		c.advance(migration.Copied)
	}
}

// copied takes a task's word that its copy has been sent whole.
func (c *Coordinator) copied(msg *core.Msg) {
	m := c.move
	if m == nil || !m.copying || msg.ID != m.copies || !m.waiting[msg.Task] { // a promoted standby says it again
		return
	}
	m.bytes += msg.Bytes
	m.stepBytes += msg.Bytes
	delete(m.waiting, msg.Task)
	if len(m.waiting) == 0 {
		c.advance(migration.Copied)
	}
}
