package task

import (
	"errors"
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/state"
)

// errNoDisk says that an operator's state is to be on disk where there is none.
var errNoDisk = errors.New("there is no disk for state here")

// openPaged makes the task's state on disk. If that cannot be had, the task fails; it has some in memory all the same, so
// that nothing else need know.
func (t *Task) openPaged() {
	spec := &state.PagedSpec{Operator: t.spec.Name, Task: t.info.ID, Epoch: t.Epoch, Groups: t.spec.Groups, ValueBytes: max(t.spec.ValueBytes, 8),
		Blob: t.kind.Blob, Head: operator.HeadKey, HasHead: t.kind.Blob, MemoryBytes: t.spec.StoreCacheBytes}
	err := errNoDisk
	if t.w.OpenState != nil {
		t.paged, err = t.w.OpenState(spec)
	}
	if err == nil {
		t.keyed = t.paged
		t.ctx.State, t.ctx.Blob = t.paged.Memory()
		return
	}
	t.paged = nil
	if t.kind.Blob {
		t.ctx.Blob = state.NewBlob(spec.Groups)
		t.keyed = t.ctx.Blob
	} else {
		t.ctx.State = state.NewHeap(spec.Groups, spec.ValueBytes)
		t.keyed = t.ctx.State
	}
	t.fail(fmt.Errorf("operator %s: state on disk: %w", t.spec.Name, err))
}

// operate lets the operator work on a run of records, whose state is brought into memory for it.
func (t *Task) operate(cols *core.Columns) {
	if t.paged == nil {
		t.op.Process(&t.ctx, cols)
		return
	}
	err := t.paged.Begin(cols.Keys)
	if err == nil {
		t.op.Process(&t.ctx, cols)
		err = t.paged.End()
	}
	t.check(err)
}

// watermark lets the operator move a key group's watermark. When something in the group is due, the operator looks through
// all of it.
func (t *Task) watermark(group uint32, wm int64) {
	if t.paged == nil {
		t.marks.timed.Watermark(&t.ctx, group, wm)
		return
	}
	var err error
	t.paged.Head(group)
	if operator.Due(t.ctx.Blob, group, wm) {
		err = t.paged.Group(group)
	}
	if err == nil {
		t.marks.timed.Watermark(&t.ctx, group, wm)
		err = t.paged.End()
	}
	t.check(err)
}

// check fails the task once.
func (t *Task) check(err error) {
	if err != nil && !t.failed {
		t.fail(fmt.Errorf("operator %s: %w", t.spec.Name, err))
	}
}

// unread returns the error that kept a snapshot from being read to its end.
func unread(snap state.Snapshot) error {
	if f, ok := snap.(interface{ Err() error }); ok {
		return f.Err()
	}
	return nil
}

// fillPaged is Fill of state that is mostly not in memory: a few key groups at a time are made there and then installed.
// An error stays with the state, where the task finds it.
func (r *LoadRequest) fillPaged(into state.Paged) {
	heap, _ := into.Memory()
	groups := heap.NumGroups()
	const atOnce = 64
	for from := uint32(0); from < groups; from += atOnce {
		part, want := state.NewHeap(groups, heap.ValueBytes()), make([]bool, groups)
		var list []uint32
		for g := from; g < min(from+atOnce, groups); g++ {
			if want[g] = r.Want[g]; want[g] {
				list = append(list, g)
			}
		}
		part.Fill(r.Preload, want)
		snap := part.Cut(list)
		for {
			chunk, group, _, done := snap.Next(nil, 256<<10)
			if done || into.Install(group, chunk) != nil {
				break
			}
		}
		snap.Release()
	}
}
