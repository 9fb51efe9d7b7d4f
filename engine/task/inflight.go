package task

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
)

// recording is the snapshot of a checkpoint whose barriers are not aligned, between its first barrier, at which the state
// was cut, and its last. What the task consumes meanwhile from the channels whose barrier has not come is the state of
// those channels (Chandy and Lamport, "Distributed snapshots", 1985): it is written with the snapshot, and after a
// restore consumed before anything else.
type recording struct {
	request SnapshotRequest
	bytes   int
	part    core.Batch
}

// recordInFlight keeps inputs [off, off+n) of b, which the task consumes from input i. Ticks mean nothing to a restored
// task. Ends come again, as a source that had read its end before the checkpoint is told it anew.
func (t *Task) recordInFlight(i int, b *core.Batch, off, n int) {
	r, in := t.recording, t.ins[i]
	if in.barrier || in.Channel.Kind != core.ChanData || t.w.graph.Job.Bug("forget-in-flight") {
		return
	}
	p := &r.part
	p.Reset()
	p.Kind, p.Channel, p.First, p.Count = b.Kind, in.Channel.ID, b.First+uint64(off), n
	switch {
	case b.Kind == core.KindRecords:
		cols := b.Slice(off, off+n)
		p.AppendAll(&cols)
	case b.Control.Type == core.CtlWatermark:
		p.Control = core.Control{Type: core.CtlWatermark, ID: b.Control.ID}
	case b.Control.Type == core.CtlMarker:
		// The round began before the coordinator knew of this checkpoint, or it has given it up.
		t.giveUpRecording(fmt.Errorf("a route change came between the barriers of checkpoint %d", r.request.Checkpoint))
		return
	default:
		return
	}
	frame := core.AppendFrame(nil, p)
	r.bytes += len(frame)
	r.request.InFlight = append(r.request.InFlight, frame)
	if bound := t.w.graph.Job.InFlightBytes; r.bytes > bound {
		t.giveUpRecording(fmt.Errorf("task %d holds more than %d bytes of inputs in flight between its barriers", t.info.ID, bound))
	}
}

// endRecording is called at the last barrier: the snapshot can be written.
func (t *Task) endRecording(e *Effects) {
	if t.recording != nil {
		e.Snapshots = append(e.Snapshots, t.recording.request)
		t.recording = nil
	}
}

// stopRecording drops the snapshot of a checkpoint that was given up.
func (t *Task) stopRecording() {
	if t.recording == nil {
		return
	}
	q := &t.recording.request
	t.recording = nil
	t.w.takeSnapshot(q.Task, q.Epoch, q.Checkpoint)
}

// giveUpRecording says why the checkpoint under way cannot be had.
func (t *Task) giveUpRecording(err error) {
	q := &t.recording.request
	t.w.say(core.Msg{Type: core.MsgSnapshot, Task: q.Task, Epoch: q.Epoch, ID: q.Checkpoint, Err: err.Error()})
	t.stopRecording()
}

// takeSnapshot takes a snapshot off the list of those under way and releases its state.
func (w *Worker) takeSnapshot(task int, epoch uint32, checkpoint uint64) (s pendingSnapshot, ok bool) {
	for i, s := range w.snapshots {
		if s.task != task || s.id != checkpoint || s.epoch != epoch {
			continue
		}
		if s.snap != nil {
			s.snap.Release()
		}
		w.snapshots = append(w.snapshots[:i], w.snapshots[i+1:]...)
		return s, true
	}
	return pendingSnapshot{}, false
}

// restoreInFlight takes the inputs that were in flight when the state was cut, in the order in which they were consumed
// then. Those of other tasks, whose key groups this one has taken over, come first, and without their watermarks: behind
// one of the task's own channel none of their records could be late.
func (t *Task) restoreInFlight(frames [][]byte) error {
	var own []*core.Batch
	for _, f := range frames {
		b := t.w.pool.Get()
		if err := core.DecodeFrame(b, f); err != nil {
			b.Release()
			return fmt.Errorf("inputs in flight: %w", err)
		}
		if b.Channel < 0 || b.Channel >= len(t.w.graph.Channels) {
			b.Release()
			return fmt.Errorf("inputs in flight: there is no channel %d", b.Channel)
		}
		b.ArrivedNS = t.w.Clock()
		switch {
		case t.w.graph.Channels[b.Channel].To == t.info.ID:
			if t.keepOwned(b) {
				own = append(own, b)
			}
		case b.Kind == core.KindRecords:
			if t.keepOwned(b) {
				t.inFlight = append(t.inFlight, b)
			}
		default:
			b.Release()
		}
	}
	t.inFlight = append(t.inFlight, own...)
	if t.w.graph.Job.Bug("in-flight-twice") {
		for _, b := range own {
			t.inFlight = append(t.inFlight, b.Retain())
		}
	}
	return nil
}

// keepOwned takes the records out of b that are not of the task's key groups. It gives b back and returns false when
// nothing is left.
func (t *Task) keepOwned(b *core.Batch) bool {
	if b.Kind != core.KindRecords || !t.moves.active {
		return true
	}
	n := 0
	for _, k := range b.Keys {
		if t.moves.owns[core.KeyGroup(k, t.spec.Groups)] {
			n++
		}
	}
	if n == b.Count {
		return true
	}
	kept := core.Columns{}
	for i, k := range b.Keys {
		if t.moves.owns[core.KeyGroup(k, t.spec.Groups)] {
			kept.Append(&b.Columns, i)
		}
	}
	b.Columns, b.Count = kept, n
	if n == 0 {
		b.Release()
	}
	return n > 0
}

// stepInFlight works on what was in flight; it returns the number of inputs, 0 when it has to wait.
func (t *Task) stepInFlight(nowNS int64, e *Effects) int {
	b := t.inFlight[0]
	n := 1
	if b.Kind == core.KindRecords {
		cols := &t.view
		*cols = b.Slice(t.inFlightOff, b.Count)
		if n = t.serve(cols, b.First+uint64(t.inFlightOff), false, b.ArrivedNS, nowNS, e); n == 0 {
			return 0
		}
		*cols = b.Slice(t.inFlightOff, t.inFlightOff+n)
		t.process(cols)
	} else {
		t.onWatermark(t.inputOf(b.Channel), b.Control)
	}
	if t.inFlightOff += n; t.inFlightOff >= b.Count {
		b.Release()
		t.inFlight[0] = nil
		t.inFlight, t.inFlightOff = t.inFlight[1:], 0
	}
	return n
}

// inputOf returns the input that a channel is.
func (t *Task) inputOf(channel int) int {
	for i, in := range t.ins {
		if in.Channel.ID == channel {
			return i
		}
	}
	panic(fmt.Sprintf("task: channel %d does not lead to task %d", channel, t.info.ID))
}
