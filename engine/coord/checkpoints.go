package coord

import (
	"encoding/json"
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
)

// checkpoints is the part of the coordinator that takes barrier checkpoints, one at a time.
type checkpoints struct {
	c         *Coordinator
	epoch     uint32 // of the whole deployment: what snapshots must belong to
	last      uint64 // highest number ever used
	nextNS    int64
	pending   *checkpoint
	done      *checkpoint    // newest complete one; nil: none
	committed uint64         // highest number whose outputs were made visible
	started   *checkpoint    // from which the whole job was deployed; nil: from nothing
	again     map[int]uint32 // by task: the epoch in which it was deployed again, with its channels to and from the harness
	early     early
}

type checkpoint struct {
	id         uint64
	epoch      uint32 // of the whole deployment
	cuts       map[int]*core.Position
	passed     map[int]bool // tasks whose standby has passed it
	deadlineNS int64
	beganNS    int64
	acked      map[int]bool
	bytes      int64
	completing bool
	routes     []*core.Routes
	feedNext   map[int]uint64
	savepoint  bool
	files      [][]byte
}

func cloneRoutes(rs []*core.Routes) []*core.Routes {
	out := make([]*core.Routes, len(rs))
	for i, r := range rs {
		if r != nil {
			out[i] = r.Clone()
		}
	}
	return out
}

// begin is called when a deployment runs.
func (k *checkpoints) begin() {
	k.epoch = k.c.epoch
	k.nextNS = k.c.Clock() + int64(k.c.job.Checkpoint)
	k.early.logs = map[int]logSize{}
}

func (k *checkpoints) tick(now int64) {
	c := k.c
	if p := k.pending; p != nil && !p.completing && now > p.deadlineNS {
		k.abort("timeout")
	}
	k.complete()
	if c.job.Checkpoint == 0 || !c.Running() || k.pending != nil || c.move != nil && !c.job.Bug("checkpoint-in-a-round") || now < k.nextNS {
		return // a round of a migration and a checkpoint wait for each other: state on its way belongs to nobody's snapshot
	}
	k.take(false)
}

func (k *checkpoints) take(savepoint bool) {
	c := k.c
	k.last++
	now := c.Clock()
	k.pending = &checkpoint{id: k.last, epoch: k.epoch, cuts: map[int]*core.Position{}, passed: map[int]bool{}, beganNS: now, deadlineNS: now + int64(c.job.CheckpointTimeout),
		acked: map[int]bool{}, routes: cloneRoutes(c.routes), feedNext: map[int]uint64{}, savepoint: savepoint}
	k.nextNS = now + int64(c.job.Checkpoint)
	c.trace(TraceCheckpoint, Trace{ID: k.last})
	barrier := core.Control{Type: core.CtlBarrier, ID: k.last}
	if c.job.Unaligned && !savepoint { // what comes between the barriers of a savepoint would be emitted twice
		barrier.Body = []byte(core.BarrierUnaligned)
	}
	for _, t := range c.graph.Tasks {
		if len(c.job.Operators[t.Operator].Inputs) == 0 {
			c.Edge.Control(t.ID, barrier, &c.e.Edge)
		}
	}
}

// snapshot takes a task's word that its part is durable.
func (k *checkpoints) snapshot(m *core.Msg) {
	c, p := k.c, k.pending
	if m.Task >= len(c.places) || m.Epoch != c.places[m.Task].Epoch && m.Epoch != k.epoch {
		return
	}
	if p == nil || p.id != m.ID || p.completing {
		return
	}
	if m.Err != "" {
		k.abort(m.Err)
		return
	}
	c.trace(TraceSnapshot, Trace{Task: m.Task, ID: m.ID, Bytes: m.Bytes, Count: uint64(m.Nanos)})
	p.acked[m.Task] = true
	p.feedNext[m.Task] = m.Records
	p.cuts[m.Task] = m.Position
	p.bytes += m.Bytes
	p.files = append(p.files, m.File)
	k.complete()
}

// cut takes a task's word that its snapshot is taken, or its standby's that it has passed the barriers.
func (k *checkpoints) cut(node int, m *core.Msg) {
	c, p := k.c, k.pending
	if p == nil || p.id != m.ID || m.Task >= len(c.places) || m.Epoch != c.places[m.Task].Epoch {
		return
	}
	if c.places[m.Task].Node == node {
		c.trace(TraceCut, Trace{Task: m.Task, Node: node, ID: m.ID})
	} else {
		p.passed[m.Task] = true
		k.complete()
	}
}

// standbysPassed says whether the standbys are behind the pending checkpoint: of two tasks that are lost together, one may
// go back to it and the other not.
func (k *checkpoints) standbysPassed() bool {
	if !k.bases() {
		return true
	}
	for task, pl := range k.c.places {
		if pl.Standby >= 0 && k.c.builds[task] == nil && !k.pending.passed[task] {
			return false
		}
	}
	return true
}

// bases says whether tasks may go back to a checkpoint alone.
func (k *checkpoints) bases() bool {
	for i := range k.c.job.Operators {
		if k.c.job.Operators[i].Scope == core.ScopeTask {
			return true
		}
	}
	return false
}

// epochOf returns the epoch of a task's channels to and from the harness.
func (k *checkpoints) epochOf(task int) uint32 {
	if e := k.again[task]; e > 0 {
		return e
	}
	return k.epoch
}

// complete completes the pending checkpoint once every task's part is durable and every output before its barriers has
// reached the collector.
func (k *checkpoints) complete() {
	c, p := k.c, k.pending
	if p == nil || p.completing {
		return
	}
	if all := len(p.acked) == len(c.graph.Tasks) && c.Edge.SawBarrier(p.id) && k.standbysPassed(); !all {
		if !c.job.Bug("early-complete") || len(p.acked) == 0 {
			return
		}
	}
	p.completing = true
	c.e.Complete = append(c.e.Complete, Complete{Checkpoint: p.id, Files: p.files, Meta: p.meta(), Retain: c.job.Retain})
}

// CheckpointDurable says that a checkpoint's manifest is on disk, or why not.
func (c *Coordinator) CheckpointDurable(id uint64, err error, e *Effects) {
	c.e = e
	k := &c.checkpoints
	p := k.pending
	if p == nil || p.id != id {
		return
	}
	if err != nil {
		k.abort(err.Error())
	} else {
		k.durable(p)
	}
	c.deployCopies() // which have waited for it
}

// lost gives a checkpoint up because a worker was lost. One whose manifest is being written needs nobody any more: giving it up
// would leave a complete checkpoint on disk that the job does not know of, and a later rollback would take it although
// what it belongs to was undone.
func (k *checkpoints) lost() {
	if k.settled() {
		k.abort("failure")
	}
}

// over returns the highest checkpoint of which no barrier is waited for any more.
func (k *checkpoints) over() uint64 {
	if k.pending != nil {
		return k.pending.id - 1
	}
	return k.last
}

// settled says that no manifest is being written.
func (k *checkpoints) settled() bool { return k.pending == nil || !k.pending.completing }

func (k *checkpoints) durable(p *checkpoint) {
	c, id := k.c, p.id
	k.pending, k.done, k.committed = nil, p, id
	k.early.doneNS = c.Clock()
	k.early.tookNS = k.early.doneNS - p.beganNS
	c.trace(TraceComplete, Trace{ID: id, Bytes: p.bytes, Count: uint64(k.early.tookNS)})
	c.Edge.Commit(id)
	done := core.Msg{Type: core.MsgCheckpointDone, ID: id}
	if k.bases() {
		done.Cuts = p.cuts
		c.Edge.Covered(p.cuts)
	}
	c.tellAll(done)
	if p.savepoint && c.move != nil {
		c.advance(migration.Savepoint)
	}
}

// abort gives up the pending checkpoint; the next one goes on.
func (k *checkpoints) abort(why string) {
	p := k.pending
	if p == nil {
		return
	}
	k.pending = nil
	k.c.trace(TraceAborted, Trace{ID: p.id, Detail: why})
	k.c.tellAll(core.Msg{Type: core.MsgCheckpointGone, ID: p.id})
	if p.savepoint && k.c.move != nil && why != "restart" {
		k.take(true) // the migration cannot go on without it
	}
}

// record is what the coordinator keeps in a checkpoint's manifest.
type record struct {
	Routes   []*core.Routes
	FeedNext map[int]uint64
}

func (p *checkpoint) meta() []byte {
	m, err := json.Marshal(record{p.routes, p.feedNext})
	if err != nil {
		panic(err) // plain numbers
	}
	return m
}

// Chosen tells the newest usable checkpoint (0: there never was one) with its meta, and what was passed over and why.
func (c *Coordinator) Chosen(id uint64, meta []byte, skipped []string, err error, e *Effects) {
	c.e = e
	if !c.choosing {
		return
	}
	c.choosing = false
	for _, s := range skipped {
		c.trace(TraceSkipped, Trace{Detail: s})
	}
	var r record
	if err == nil && id > 0 {
		err = json.Unmarshal(meta, &r)
	}
	if err != nil {
		e.Fatal = fmt.Errorf("nothing to restore from: %w", err)
		return
	}
	if id < c.checkpoints.committed {
		c.trace(TraceCommitLost, Trace{ID: c.checkpoints.committed})
	}
	c.checkpoints.committed = max(c.checkpoints.committed, id)
	c.Edge.Commit(id) // it may be complete without our having heard of it
	c.checkpoints.done = nil
	if id > 0 {
		c.checkpoints.done = &checkpoint{id: id, routes: r.Routes, feedNext: r.FeedNext}
	}
	c.fill()
}

// restore says from where a task is to be restored.
func (k *checkpoints) restore(id int) core.Deployment { return k.restoreFrom(id, k.done) }

func (k *checkpoints) restoreFrom(id int, ck *checkpoint) core.Deployment {
	d := core.Deployment{Task: id, FeedNext: 1}
	if ck == nil {
		return d
	}
	t := k.c.graph.Tasks[id]
	d.Restore = ck.id
	if next := ck.feedNext[id]; next > 0 {
		d.FeedNext = next
	}
	if k.c.job.Bug("source-does-not-rewind") && d.FeedNext > 1 {
		d.FeedNext += 3
	}
	if k.c.routes[t.Operator] != nil {
		// Key groups may have had other owners when the checkpoint was taken.
		old, want := ck.routes[t.Operator], k.c.routes[t.Operator]
		seen := map[int]bool{}
		for g, owner := range want.Task {
			if int(owner) == t.Index {
				seen[int(old.Task[g])] = true
			}
		}
		for i, id := range k.c.graph.OpTasks[t.Operator] {
			if seen[i] && !(k.c.job.Bug("restore-own-file-only") && i != t.Index) {
				d.RestoreFrom = append(d.RestoreFrom, id)
			}
		}
	} else if k.c.job.Unaligned {
		d.RestoreFrom = []int{id} // for what was in flight to it
	}
	return d
}
