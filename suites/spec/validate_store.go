package spec

import (
	"fmt"
	"slices"
	"strings"
)

// remoteBackend is the state backend outside the tasks.
const remoteBackend = "remote"

// diskBackend is the state backend on the workers' disks.
const diskBackend = "pebble"

// Remote says whether the state lives in an external store.
func (s State) Remote() bool { return s.Backend == remoteBackend }

// Place is where a value stands in a suite, for what is found out about it after the suite was read.
type Place struct {
	File      string // the file's name, or "--set PATH=VALUE"
	Line, Col int    // from 1; 0 when the place is not in a file
	Field     string
}

// Error says what is wrong with the value at the place.
func (p Place) Error(problem, fix string) Error {
	return Error{File: p.File, Line: p.Line, Col: p.Col, Field: p.Field, Problem: problem, Fix: fix}
}

// place gives the place of the field at a struct path.
func (d *decoder) place(path string) Place {
	n := d.nodes[path]
	if n.at.source != "" {
		return Place{File: n.at.source, Field: n.path}
	}
	return Place{File: d.c.file, Line: n.at.line, Col: n.at.col, Field: n.path}
}

// state checks where an operator's state lives, apart from what a cell does with it.
func (c *checker) state(op *Operator, at string) {
	s := &op.State
	if !s.Remote() {
		for _, f := range []string{"url", "cache"} {
			if c.has(at+".state."+f) && !c.bad(at+".state.backend") && !(f == "cache" && s.Backend == diskBackend) {
				c.fail(at+".state."+f, fmt.Sprintf("has no effect, because the backend is %s", s.Backend), "remove it, or write 'backend: remote'")
			}
		}
		return
	}
	s.Where = c.d.place(c.at + at + ".state.backend")
	if c.has(at + ".state.preload") {
		c.fail(at+".state.preload", "fills the heap of a task, and the state is in an external store", "remove it; the warm-up fills the store")
	}
	if kinds := c.d.known.Stored; kinds != nil && c.role(op) == RoleKeyed && !slices.Contains(kinds, op.Kind) {
		c.fail(at+".state.backend", fmt.Sprintf("a %s needs all keys of a key group at once, which an external store does not give", op.Kind),
			"use heap, or a kind whose records need their own key only: "+strings.Join(kinds, ", "))
	}
	if c.cfg.Workload.State.Kind != "" && c.cfg.Workload.State.Kind != "none" {
		c.fail(at+".state.backend", "workload.state gives each key a size of its own, and values in an external store have one size", "remove workload.state, or use heap")
	}
	if !c.has(at + ".state.url") {
		return
	}
	s.Where = c.d.place(c.at + at + ".state.url")
	switch {
	case s.URL == "":
		c.fail(at+".state.url", "is empty", "write redis://host:6379, or remove it for the embedded store")
	case c.d.known.CheckStore != nil:
		if err := c.d.known.CheckStore(s.URL); err != nil {
			c.fail(at+".state.url", err.Error(), "leave it out for the embedded store")
		}
	}
}

// stores checks what goes with state in an external store. Such state is in no checkpoint, and a standby would write it
// a second time; so a job that fails begins anew.
func (c *cellChecker) stores(runtime string) {
	i := slices.IndexFunc(c.cfg.Job.Operators, func(op Operator) bool { return op.State.Remote() })
	if i < 0 {
		return
	}
	op := &c.cfg.Job.Operators[i]
	because := fmt.Sprintf("does not go with the state of %s in an external store", op.Name)
	for i := range c.cfg.Job.Operators {
		o := &c.cfg.Job.Operators[i]
		for t := range o.Parallelism {
			name := c.cell.Recovery.StrategyOf(o.Name, t)
			if info, found := c.d.known.recovery(name); found && !info.None {
				c.fail(c.recoveryPlace(), fmt.Sprintf("%s %s, which checkpoints and standbys do not hold", name, because), "use none")
				return
			}
		}
		if o.Sink == "transactional" {
			c.fail(fmt.Sprintf("job.operators[%d].sink", i), "transactional "+because+", which checkpoints do not hold", "use an eager sink")
		}
	}
	if k := c.cfg.Checkpoint.Interval; k.Auto || k.D > 0 {
		c.fail("checkpoint.interval", "a checkpoint "+because+", which it does not hold", "remove it, or write 0s")
	}
	if m := c.cell.Migration; m != nil {
		c.storeMoves(m)
	}
	c.storeRuntime(runtime, op, fmt.Sprintf("job.operators[%d].state", i))
}

func (c *cellChecker) recoveryPlace() string {
	if c.has("recovery.strategy") {
		return "recovery.strategy"
	}
	return "recovery"
}

// storeMoves checks that a strategy can move state that is not in the tasks; that externalise needs such state is
// checked with the other needs of migrations.
func (c *cellChecker) storeMoves(m *Migration) {
	info, found := c.d.known.migration(m.Strategy)
	if op := c.findOperator(m.Operator); !found || info.None || info.External || op == nil || !op.State.Remote() {
		return
	}
	var fit []string
	for _, k := range c.d.known.Migrations {
		if k.External {
			fit = append(fit, k.Name)
		}
	}
	c.fail("migration.strategy", fmt.Sprintf("%s moves state from task to task, but %s keeps it in an external store", m.Strategy, m.Operator),
		fmt.Sprintf("use %s, or set the state.backend of %s to heap", strings.Join(fit, " or "), m.Operator))
}

// storeRuntime checks that workers can reach the store. The simulator has one of its own, which its trials of
// externalise use.
func (c *cellChecker) storeRuntime(runtime string, op *Operator, at string) {
	switch {
	case runtime == "sim" && op.State.URL != "":
		c.fail(at+".url", "the simulator connects to no store; it has one of its own", "remove it, or use the process runtime")
	case runtime == "sim":
		m := c.cell.Migration
		if m == nil {
			c.fail(at+".backend", "the simulator has an external store only for moves by externalise", "use heap, or the process runtime")
			return
		}
		if info, found := c.d.known.migration(m.Strategy); found && !info.External {
			c.fail(at+".backend", fmt.Sprintf("the simulator has an external store only for moves by externalise, not with %s", m.Strategy), "use heap, or the process runtime")
		}
	case runtime == "docker" && op.State.URL == "":
		c.fail(at+".backend", "workers in containers cannot reach the embedded store, which listens on this machine's loopback interface",
			"add 'url:' with a store that containers reach, or use the process runtime")
	}
}
