package sim

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/task"
)

// errInvariant is a broken invariant: a bug whatever the job promises.
type errInvariant struct{ what string }

func (e errInvariant) Error() string { return "invariant: " + e.what }

// watcher checks after every event what must hold at any time:
//
//   - a task has at most one primary in an epoch;
//   - a key group has at most one owner in a deployment, counting of each task the newest primary that is not replaying and
//     not lost: one that was given up may go on for a while with nobody listening;
//
// and, while the job runs and no migration is under way:
//
//   - each key group is owned by the task that the coordinator's route table names, and nobody else holds state of it;
//   - every task that sends by key has the coordinator's table;
//   - no task has anything left of a migration.
type watcher struct {
	w      *World
	byNode [][]seenTask // as of the worker's last step
	views  []*seenTask  // of the tasks on live workers that have key groups, or send by key
	view   task.View
	// newest is, by deployment and task, the epoch of the newest primary that there ever was.
	newest map[[2]int]uint32
	tasks  []int // that have key groups, or send by key
	was    jobState
	moved  bool // a worker has taken a step since the last check
}

// jobState is what the coordinator says of the job as a whole; what else it knows changes with one of these.
type jobState struct {
	epoch              uint32
	running, migrating bool
}

// seenTask is a task on a live worker.
type seenTask struct {
	node   int
	deploy uint32
	task.View
}

func newWatcher(w *World) *watcher {
	x := &watcher{w: w, newest: map[[2]int]uint32{}}
	for id := range w.coord.Graph().Tasks {
		if x.keyed(id) {
			x.tasks = append(x.tasks, id)
		}
	}
	return x
}

// look gathers what the tasks on live workers know: anew of those that have taken a step.
func (x *watcher) look() {
	x.views = x.views[:0]
	for len(x.byNode) < len(x.w.workers) {
		x.byNode = append(x.byNode, nil)
	}
	for node, k := range x.w.workers {
		if k == nil || !k.alive || k.w.Epoch() == 0 {
			continue
		}
		if k.stepped {
			k.stepped, x.moved = false, true
			x.refresh(k)
		}
		for i := range x.byNode[node] {
			x.views = append(x.views, &x.byNode[node][i])
		}
	}
}

func (x *watcher) refresh(k *worker) {
	n, seen := 0, x.byNode[k.node]
	k.w.Views(&x.view, func(v *task.View) {
		if v.Role != core.RolePrimary || v.Owns == nil && len(v.Tables) == 0 {
			return
		}
		if n == len(seen) {
			seen = append(seen, seenTask{})
		}
		s := &seen[n]
		reads, tables := append(s.Reads[:0], v.Reads...), append(s.Tables[:0], v.Tables...)
		s.node, s.deploy, s.View = k.node, k.w.Epoch(), *v
		s.Reads, s.Tables = reads, tables
		n++
		at := [2]int{int(s.deploy), s.Task}
		x.newest[at] = max(x.newest[at], v.Epoch)
	})
	x.byNode[k.node] = seen[:n]
}

func (x *watcher) check() error {
	x.look()
	c := x.w.coord
	now := jobState{c.Epoch(), c.Running(), c.Migrating()}
	if !x.moved && now == x.was {
		return nil
	}
	x.moved, x.was = false, now
	for i, a := range x.views {
		for _, b := range x.views[:i] {
			if err := x.pair(a, b); err != nil {
				return err
			}
		}
	}
	if now.running && !now.migrating && x.there() {
		return x.atRest()
	}
	return nil
}

// pair says whether two tasks own the same key group, or are the same primary.
func (x *watcher) pair(a, b *seenTask) error {
	if a.deploy == b.deploy && a.Task == b.Task && a.node != b.node && a.View.Epoch == b.View.Epoch {
		return errInvariant{fmt.Sprintf("%s and %s are both primaries in epoch %d", x.name(a), x.name(b), a.View.Epoch)}
	}
	if a.deploy != b.deploy || a.Task == b.Task || a.Owns == nil || b.Owns == nil || x.operator(a) != x.operator(b) || !x.counts(a) || !x.counts(b) {
		return nil
	}
	for g, owns := range a.Owns {
		if owns && b.Owns[g] {
			return errInvariant{fmt.Sprintf("key group %d has two owners in deployment %d, %s and %s", g, a.deploy, x.name(a), x.name(b))}
		}
	}
	return nil
}

// counts says whether a task is its newest primary, is not given up by the coordinator, and has caught up with the ones before.
func (x *watcher) counts(s *seenTask) bool {
	if places := x.w.coord.Places(); s.Task < len(places) && s.View.Epoch < places[s.Task].Epoch {
		return false
	}
	return !s.Replaying && s.View.Epoch == x.newest[[2]int{int(s.deploy), s.Task}]
}

func (x *watcher) operator(s *seenTask) int { return x.w.coord.Graph().Tasks[s.Task].Operator }

func (x *watcher) name(s *seenTask) string {
	return fmt.Sprintf("%s (node %d)", x.w.coord.Graph().TaskName(s.Task), s.node)
}

// placed returns the task that the coordinator means, nil when it is not there or behind.
func (x *watcher) placed(id int) *seenTask {
	p := x.w.coord.Places()[id]
	for _, s := range x.views {
		if s.Task == id && s.node == p.Node && s.View.Epoch == p.Epoch && !s.Replaying {
			return s
		}
	}
	return nil
}

// there says whether all tasks are where the coordinator thinks that they are.
func (x *watcher) there() bool {
	for _, id := range x.tasks {
		if x.placed(id) == nil {
			return false
		}
	}
	return true
}

// keyed says whether a task has key groups, or sends to one that has.
func (x *watcher) keyed(id int) bool {
	g := x.w.coord.Graph()
	op := g.Tasks[id].Operator
	if x.w.coord.Routes(op) != nil {
		return true
	}
	for i := range g.Job.Operators {
		for _, in := range g.Job.Operators[i].Inputs {
			if x.w.coord.Routes(i) != nil && in == g.Job.Operators[op].Name {
				return true
			}
		}
	}
	return false
}

func (x *watcher) atRest() error {
	for _, id := range x.tasks {
		info := &x.w.coord.Graph().Tasks[id]
		s := x.placed(id)
		for i, op := range s.Reads {
			want := x.w.coord.Routes(op)
			if want != nil && !sameTable(s.Tables[i], want) {
				return errInvariant{fmt.Sprintf("%s routes by another table than the coordinator's: version %d %v, want %d %v",
					x.name(s), s.Tables[i].Version, s.Tables[i].Task, want.Version, want.Task)}
			}
		}
		if s.Owns == nil {
			continue
		}
		// Who took over may still be sending what the primary before had sent already.
		if promoted := s.View.Epoch > s.deploy; s.Holding+s.Following+s.Copies+s.Mirroring > 0 || !promoted && s.Rounds+s.Sending > 0 {
			return errInvariant{fmt.Sprintf("%s is left in a migration that is over: holding %d, following %d, rounds %d, sending %d, copies %d, mirroring %d",
				x.name(s), s.Holding, s.Following, s.Rounds, s.Sending, s.Copies, s.Mirroring)}
		}
		for g, owner := range x.w.coord.Routes(info.Operator).Task {
			mine := int(owner) == info.Index
			if s.Owns[g] != mine {
				return errInvariant{fmt.Sprintf("key group %d belongs to task %d, and %s owns it: %v", g, owner, x.name(s), s.Owns[g])}
			}
			if !mine && s.Bytes(uint32(g)) > 0 {
				return errInvariant{fmt.Sprintf("key group %d belongs to task %d, and %s has state of it", g, owner, x.name(s))}
			}
		}
	}
	return nil
}

// idle says whether no task has anything to do for a migration.
func (x *watcher) idle() bool {
	for _, s := range x.views {
		if s.deploy == x.w.coord.Epoch() && s.Rounds+s.Sending > 0 {
			return false
		}
	}
	return true
}

// sameTable says whether two route tables and their versions are the same.
func sameTable(a, b *core.Routes) bool {
	for g := range a.Task {
		if a.Task[g] != b.Task[g] {
			return false
		}
	}
	return a.Version == b.Version
}
