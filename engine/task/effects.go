package task

import (
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

// Send is a frame for another node. The batch carries one reference, which the world releases when it has encoded it.
type Send struct {
	Node int
	B    *core.Batch
}

// SnapshotRequest asks the world to make a task's snapshot durable and to answer with Worker.SnapshotDone. State may be
// read by one other goroutine until then; it is nil for a task without state.
type SnapshotRequest struct {
	Task       int
	Epoch      uint32
	Checkpoint uint64
	// Meta encodes where the task stands, for the file; it may be called by one other goroutine, as the loop need not wait for it; nil: nothing.
	Meta  func() []byte
	State state.Snapshot
	// Since is the checkpoint whose state State is the difference to, 0 when it is whole, and SinceFile what the world said
	// of the task's file in it.
	Since     uint64
	SinceFile []byte
	// InFlight are inputs that the task had not consumed when State was cut and that nobody will send again, as frames.
	InFlight [][]byte
	CutNS    int64 // the synchronous part
}

// LoadRequest asks the world to load a task's state from a checkpoint into Into, which the world owns until it answers
// with Worker.Loaded. Only groups for which Want is true are installed.
type LoadRequest struct {
	Task       int
	Epoch      uint32
	Checkpoint uint64
	From       []int
	Want       []bool
	Into       state.Keyed // nil: the task keeps no state
	// Meta is filled by the world with what the task itself put into its file of the checkpoint (see Meta), when WantMeta
	// is set.
	WantMeta bool
	Meta     []byte
	// InFlight is filled by the world with the frames of the tasks From (see SnapshotRequest).
	InFlight [][]byte
	// Preload is set when there is no checkpoint: keys 0 to Preload−1 are there from the start; see Fill.
	Preload uint64
}

// Fill carries out a request with Preload.
func (r *LoadRequest) Fill() {
	if p, ok := r.Into.(state.Paged); ok {
		r.fillPaged(p)
		return
	}
	r.Into.(*state.Heap).Fill(r.Preload, r.Want)
}

// Effects is what a step asks of the world, in order. The caller owns it and reuses it.
type Effects struct {
	Sends     []Send
	Msgs      []core.Msg // to the coordinator
	Snapshots []SnapshotRequest
	Loads     []LoadRequest
	Reads     []ReadRequest  // of external state
	Writes    []WriteRequest // of external state
	Segments  []SegmentRequest
	// FreedBytes is the size of the state of tasks that were thrown away: a collection is worth it.
	FreedBytes int64
	// BusyNS is how long the core must be burnt before the effects take place.
	BusyNS int64
	// WakeNS is when the worker wants to run again (0: only on input).
	WakeNS int64
	// More says that work is left: run again at once, after looking at the network.
	More bool
}

// Reset empties e and keeps its memory.
func (e *Effects) Reset() {
	clear(e.Sends)
	e.Sends, e.Msgs, e.Snapshots, e.Loads = e.Sends[:0], e.Msgs[:0], e.Snapshots[:0], e.Loads[:0]
	clear(e.Reads)
	clear(e.Writes)
	clear(e.Segments)
	e.Reads, e.Writes, e.Segments = e.Reads[:0], e.Writes[:0], e.Segments[:0]
	e.FreedBytes, e.BusyNS, e.WakeNS, e.More = 0, 0, 0, false
}

func (e *Effects) wake(ns int64) {
	if e.WakeNS == 0 || ns < e.WakeNS {
		e.WakeNS = ns
	}
}
