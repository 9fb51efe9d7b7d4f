package task

import (
	"slices"

	"github.com/weir-bench/weir/engine/state"
)

// increments is what a task whose state is in memory remembers of its snapshots, so that the next one need hold only what changed since the newest
// that is part of a complete checkpoint. It is whole all the same when the task's key groups are others than then, as the
// file would go on holding those that were given away, and every so often, so that chains of files stay short.
type increments struct {
	base *increment   // of the newest complete checkpoint; nil: none
	made []*increment // since then, oldest first: complete, about to be, or given up
	cuts int          // since then
}

type increment struct {
	id    uint64
	mark  state.Mark
	owned []uint32
	depth int    // how many files it continues
	file  []byte // what the world says of its file; nil: not durable yet
}

// maxIncrements bounds the marks that are kept while checkpoint after checkpoint is given up. The last of so many is whole:
// what they continue may be what is wrong with them.
const maxIncrements = 4

// cut cuts the task's state for a checkpoint.
func (m *increments) cut(t *Task, req *SnapshotRequest) {
	job, owned := &t.w.graph.Job, t.moves.owned()
	if !job.Incremental {
		req.State = t.keyed.Cut(owned)
		return
	}
	if tabled, ok := t.keyed.(state.Tabled); ok {
		req.State = tabled.CutTables(owned) // whole, and yet only the tables are written that are not there yet
		return
	}
	x := &increment{id: req.Checkpoint, owned: owned}
	b := m.base
	m.cuts++
	if b == nil || b.depth+1 >= job.FullEvery || m.cuts%maxIncrements == 0 || !slices.Equal(b.owned, owned) {
		req.State = t.keyed.Cut(owned)
	} else {
		since := b.mark
		if n := len(m.made); n > 0 && job.Bug("delta-since-aborted") {
			since = m.made[n-1].mark
		}
		req.State, req.Since, req.SinceFile = t.keyed.CutSince(owned, since), b.id, b.file
		if job.Bug("delta-without-link") {
			req.Since = 0
		}
		x.depth = b.depth + 1
	}
	x.mark = t.keyed.Keep(req.State)
	if len(m.made) == maxIncrements {
		m.forget(t, 1)
	}
	m.made = append(m.made, x)
}

// forget drops the n oldest of made.
func (m *increments) forget(t *Task, n int) {
	for _, x := range m.made[:n] {
		t.keyed.Forget(x.mark)
	}
	m.made = slices.Delete(m.made, 0, n)
}

// durable says that a snapshot is in a file.
func (m *increments) durable(id uint64, file []byte) {
	for _, x := range m.made {
		if x.id == id {
			x.file = file
		}
	}
}

// complete says that a checkpoint is complete: its snapshot is what the next one continues.
func (m *increments) complete(t *Task, id uint64) {
	i := slices.IndexFunc(m.made, func(x *increment) bool { return x.id == id && x.file != nil })
	if i < 0 {
		return // of before the task was deployed, or too long ago
	}
	if m.base != nil {
		t.keyed.Forget(m.base.mark)
	}
	m.base, m.cuts = m.made[i], 0
	m.made = slices.Delete(m.made, i, i+1)
	m.forget(t, i)
}
