package sim

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/task"
)

// row is an output: of a count its key and the count so far, of a window its key, its end and its value.
type row struct {
	key     uint64
	at, val int64
}

// rowLog keeps the outputs of a cell.
type rowLog struct {
	windows   bool
	everyNS   int64 // between two records of the feed
	dues      map[[2]uint64]lastSeen
	seen      map[row]int
	last      map[uint64]lastSeen
	reordered int
}

func (l *rowLog) collect(o task.Output) {
	if l.seen == nil {
		l.seen, l.last, l.dues = map[row]int{}, map[uint64]lastSeen{}, map[[2]uint64]lastSeen{}
	}
	for i, k := range o.Columns.Keys {
		r := row{key: k, at: o.Columns.Vals[i]}
		if l.windows {
			r.at, r.val = int64(binary.LittleEndian.Uint64(o.Columns.Payload(i))), o.Columns.Vals[i]
		}
		l.seen[r]++
		if last := l.last[k]; last.epoch == o.Epoch && r.at < last.count {
			l.reordered++
		}
		l.last[k] = lastSeen{r.at, o.Epoch}
		if l.windows {
			continue
		}
		// The records of one source and key keep their order; each has one answer.
		due := o.Columns.Times[i]
		from := [2]uint64{k, uint64(due / l.everyNS % 2)}
		if last := l.dues[from]; last.epoch == o.Epoch && due <= last.count {
			l.reordered++
		}
		l.dues[from] = lastSeen{due, o.Epoch}
	}
}

// judge says how the outputs break a promise, or nothing.
func (l *rowLog) judge(want map[row]int, p recovery.Promise) error {
	lost, twice, wrong := 0, 0, 0
	for r := range want { // sums: the order does not matter
		switch n := l.seen[r]; {
		case n == 0:
			lost++
		case n > 1:
			twice += n - 1
		}
	}
	for r, n := range l.seen { // a sum: the order does not matter
		if want[r] == 0 {
			wrong += n
		}
	}
	if wrong == 0 && l.reordered == 0 && (lost == 0 || p == recovery.Gap) && (twice == 0 || p != recovery.Precise) {
		return nil
	}
	return fmt.Errorf("safety: promise %s broken: %d expected, %d lost, %d duplicated, %d wrong, %d reordered", p, len(want), lost, twice, wrong, l.reordered)
}

// Reference is what a run that never moved anything gives: its outputs, and the state of each key group afterwards.
type Reference struct {
	rows  map[row]int
	state []uint64
}

// Refer runs the cells of a seed and an operator without a migration and without a fault. In an external store, state has
// another form, so those cells have a reference of their own.
func Refer(seed uint64, operator string, external bool) (*Reference, error) {
	c, err := newCell(Cell{Seed: seed, Operator: operator, Recovery: "none"}, external)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		return nil, err
	}
	state, err := c.fingerprints()
	return &Reference{c.rows.seen, state}, err
}

// verdict says what is wrong when the job has come to its end.
func (c *cell) verdict() error {
	begun, ended, lost := 0, 0, 0
	for _, t := range c.w.Traces {
		switch t.Kind {
		case coord.TraceMigration:
			begun++
		case coord.TraceMigrated:
			ended++
		case coord.TraceMigrationLost:
			lost++
		}
	}
	c.res.Completed, c.res.RolledBack = ended > 0, lost > 0
	if begun != 1 || ended+lost != 1 {
		return fmt.Errorf("safety: %d migrations begun, %d completed and %d rolled back", begun, ended, lost)
	}
	if c.Victim == "" && lost > 0 {
		return fmt.Errorf("liveness: a migration without a fault was rolled back")
	}
	if c.gapped() {
		return nil
	}
	promise := c.promise
	alone := c.Recovery == core.RecoveryActive && c.Victim != victimBoth && c.Victim != victimAgain
	if promise == recovery.Precise && !c.Transactional && !alone && c.w.traced(coord.TraceFallback) {
		promise = recovery.Rollback // only active goes on through a loss in a migration, and through one: the job says so and rolls back
	}
	if err := c.rows.judge(c.ref.rows, promise); err != nil {
		return err
	}
	want := c.before
	if c.res.Completed {
		want = apply(c.before, c.moves)
	}
	return c.state(want)
}

// gapped says that a task without protection may have begun empty: what that may hide is judged in trials.
func (c *cell) gapped() bool {
	return c.promise == recovery.Gap && c.w.traced(coord.TraceDetected)
}

// state says whether the key groups are where the table says, with the state of the run that never moved.
func (c *cell) state(table []int32) error {
	if err := c.tableIs(table); err != nil {
		return err
	}
	got, err := c.fingerprints()
	if err != nil {
		return err
	}
	for g := range got {
		if got[g] != c.ref.state[g] && !c.gapped() {
			return fmt.Errorf("safety: the state of key group %d, at task %d, is not that of a run that never moved", g, table[g])
		}
	}
	return nil
}

// tableIs says whether the coordinator has a table.
func (c *cell) tableIs(want []int32) error {
	if got := c.w.coord.Routes(cellOp).Task; !slices.Equal(got, want) {
		return fmt.Errorf("safety: a migration was left half done: the table is %v, want %v", got, want)
	}
	return nil
}

// fingerprints returns a hash of the state of each key group, at its owner, of which there is one.
func (c *cell) fingerprints() ([]uint64, error) {
	watch := c.steps.watch
	if err := watch.check(); err != nil {
		return nil, fmt.Errorf("safety: %w", err)
	}
	table := c.w.coord.Routes(cellOp).Task
	prints := make([]uint64, len(table))
	if c.external {
		for e, v := range c.w.external.values { // a sum: the order does not matter
			if e.epoch == c.w.coord.Epoch() {
				prints[e.group] += core.HashBytes(binary.LittleEndian.AppendUint64(slices.Clone(v), e.key))
			}
		}
		return prints, nil
	}
	ids := c.w.coord.Graph().OpTasks[cellOp]
	for g, owner := range table {
		s := watch.placed(ids[owner])
		if s == nil {
			return nil, fmt.Errorf("liveness: task %d is not there", owner)
		}
		prints[g] = s.Fingerprint(uint32(g))
	}
	return prints, c.standbys(prints, table)
}

// standbys says whether a standby that has consumed what its primary has is its equal.
func (c *cell) standbys(prints []uint64, table []int32) (err error) {
	watch := c.steps.watch
	for _, k := range c.w.workers {
		if k == nil || !k.alive || k.w.Epoch() == 0 {
			continue
		}
		var v task.View
		k.w.Views(&v, func(v *task.View) {
			if v.Role != core.RoleStandby || v.Owns == nil || c.w.coord.Places()[v.Task].Standby != k.node {
				return
			}
			p := watch.placed(v.Task)
			if p == nil || p.Consumed != v.Consumed {
				return
			}
			for g, owns := range v.Owns {
				if owns != p.Owns[g] || owns && v.Fingerprint(uint32(g)) != prints[g] {
					err = fmt.Errorf("safety: the standby of %s differs from it in key group %d", watch.name(p), g)
				}
			}
		})
	}
	return err
}
