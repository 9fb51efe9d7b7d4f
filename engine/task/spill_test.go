package task

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

// spillBench is a bench whose count keeps what it has sent until a checkpoint covers it, in little memory, with a disk.
type spillBench struct {
	*bench
	out     *Out
	disk    map[uint64][]byte
	waiting []SegmentRequest // asked for, and not carried out
	sent    []uint64         // numbers of the inputs that were sent, in order
	failed  string
}

func newSpillBench(t *testing.T, logBytes int, spillBytes int64, bugs ...string) *spillBench {
	t.Helper()
	b := &spillBench{disk: map[uint64][]byte{}}
	b.bench = newBench(t, func(j *core.Job) {
		j.LogBytes, j.SpillBytes, j.Bugs = logBytes, spillBytes, bugs
		for i := range j.Operators {
			j.Operators[i].Recovery, j.Operators[i].Scope = core.RecoveryCheckpoint, core.ScopeTask
		}
	})
	b.out = b.w.tasks[countTask].outs[0]
	b.take()
	return b
}

// take takes the effects of the last step.
func (b *spillBench) take() {
	for _, s := range b.e.Sends {
		if s.B.Kind == core.KindRecords && s.B.Channel == b.out.Channel.ID {
			for n := s.B.First; n <= s.B.Last(); n++ {
				b.sent = append(b.sent, n)
			}
		}
		s.B.Release()
	}
	for _, m := range b.e.Msgs {
		if m.Type == core.MsgTaskFailed {
			b.failed = m.Err
		}
	}
	b.waiting = append(b.waiting, b.e.Segments...)
	b.e.Reset()
}

// carryOut does what was asked for of the disk, until nothing is; each write and read fails with err.
func (b *spillBench) carryOut(err error) {
	for len(b.waiting) > 0 {
		r := b.waiting[0]
		b.waiting = b.waiting[1:]
		switch {
		case r.Op == SegmentRemove:
			delete(b.disk, r.ID)
			continue
		case r.Op == SegmentWrite && err == nil:
			b.disk[r.ID] = slices.Clone(r.Data)
		case r.Op == SegmentRead:
			r.Data = slices.Clone(b.disk[r.ID])
		}
		b.w.SegmentDone(&r, err, &b.e)
		b.w.Run(&b.e)
		b.take()
	}
}

// step lets the count work on n records, and its reader consume them unless it is told to wait.
func (b *spillBench) step(n int, reader bool) {
	b.records(0, n)
	b.w.Run(&b.e)
	if reader {
		b.ack(otherNode, b.out.next, false)
	}
	b.w.Run(&b.e)
	b.take()
}

func (b *spillBench) ack(node int, next uint64, resync bool) {
	m := &core.Batch{Kind: core.KindAck, Channel: b.out.Channel.ID, Epoch: 1,
		Ack: core.Ack{From: node, Next: next, Consumed: next - 1, Limit: next + 199, Resync: resync}}
	b.w.Frame(m, &b.e)
	b.w.Run(&b.e)
	b.take()
}

// lose replaces the reader by one on another node, which has nothing.
func (b *spillBench) lose() {
	b.w.Message(&core.Msg{Type: core.MsgTopology, Places: []core.Place{{Task: 3, Node: otherNode - 1, Standby: -1, Epoch: 1}}}, &b.e)
	b.take()
	b.sent = nil
	b.ack(otherNode-1, 1, true)
}

// TestSpill lets a reader consume 3,000 records that must all be kept, in memory for some 200. What is more is on disk; a new
// reader gets each once and in order, a segment at a time; when a checkpoint covers them, nothing is left on disk.
func TestSpill(t *testing.T) {
	const memory, disk = 8 << 10, 1 << 20
	b := newSpillBench(t, memory, disk)
	for range 150 {
		b.step(20, true)
		b.carryOut(nil)
		if b.out.logBytes > memory || len(b.e.Msgs) > 0 {
			t.Fatalf("%d bytes of the log are in memory, want at most %d", b.out.logBytes, memory)
		}
	}
	s := b.out.spill
	if len(b.disk) < 10 || len(s.segments) != len(b.disk) || s.began != 1 || s.total != uint64(s.onDisk) || b.out.bounds > 0 {
		t.Fatalf("%d files for %d segments, %d times begun, %d bytes written, %d there, %d times at the bound",
			len(b.disk), len(s.segments), s.began, s.total, s.onDisk, b.out.bounds)
	}
	b.lose()
	for next := uint64(1); next <= 3000; next = b.sent[len(b.sent)-1] + 1 {
		before := len(b.sent)
		b.carryOut(nil)
		size := 0
		for _, x := range s.piece {
			size += x.SizeBytes()
		}
		if size > memory/2 {
			t.Fatalf("%d bytes were read back at once", size)
		}
		b.ack(otherNode-1, b.sent[len(b.sent)-1]+1, false)
		if len(b.sent) == before && len(b.waiting) == 0 {
			t.Fatalf("the replay stands still behind %d", len(b.sent))
		}
	}
	for i, n := range b.sent {
		if n != uint64(i)+1 {
			t.Fatalf("input %d came as number %d of the replay", n, i+1)
		}
	}
	if len(b.sent) != 3000 {
		t.Fatalf("%d inputs were sent again, want 3000", len(b.sent))
	}
	position := &core.Position{In: make([]uint64, 2)}
	for i := range position.In {
		position.In[i] = 3001
	}
	b.w.Message(&core.Msg{Type: core.MsgCheckpointDone, ID: 1, Cuts: map[int]*core.Position{3: position}}, &b.e)
	b.take()
	b.carryOut(nil)
	if len(b.disk) > 0 || s.onDisk != 0 || len(s.piece) > 0 || b.out.logBytes != 0 {
		t.Errorf("%d files, %d bytes on disk, %d batches read back and %d bytes in memory are left of a log that is covered", len(b.disk), s.onDisk, len(s.piece), b.out.logBytes)
	}
}

// TestSpillTrimsWholeSegments covers a part of a segment: its file stays, those before it go.
func TestSpillTrimsWholeSegments(t *testing.T) {
	b := newSpillBench(t, 8<<10, 1<<20)
	for range 60 {
		b.step(20, true)
		b.carryOut(nil)
	}
	g := b.out.spill.segments[3]
	b.out.spill.w.e = &b.e
	b.out.cover(g.Last - 1)
	b.take()
	b.carryOut(nil)
	if got := b.out.spill.segments[0].ID; got != g.ID || b.disk[g.ID] == nil || b.disk[g.ID-1] != nil {
		t.Errorf("the oldest segment is %d, want %d", got, g.ID)
	}
}

// TestSpillBound fills both bounds: that is counted once, the task takes nothing more, and no byte is beyond them.
func TestSpillBound(t *testing.T) {
	const memory, disk = 4 << 10, 6 << 10
	b := newSpillBench(t, memory, disk)
	for range 60 {
		b.step(20, true)
		b.carryOut(nil)
	}
	var most int
	for _, p := range b.disk {
		most += len(p)
	}
	task := b.w.tasks[countTask]
	m := task.meters(false)
	if most > disk || int64(most) != m.SpilledBytes || task.ins[task.inputOf(b.ch[0])].queued == 0 {
		t.Errorf("%d bytes on disk, %d as the meter says, bound %d; %d inputs wait", most, m.SpilledBytes, disk, task.ins[task.inputOf(b.ch[0])].queued)
	}
	if m.LogBounds != 1 || !m.AtBound || m.FullestBytes != int64(m.LogBytes)+m.SpilledBytes || m.LogMoved == 0 {
		t.Errorf("meters %+v", m)
	}
	b.w.Message(&core.Msg{Type: core.MsgLift, Task: countTask, ID: 1}, &b.e)
	b.w.Run(&b.e)
	if q := task.ins[task.inputOf(b.ch[0])].queued; q > 0 {
		t.Errorf("%d inputs wait behind a bound that was lifted", q)
	}
	for s := range 2 {
		b.control(s, core.Control{Type: core.CtlBarrier, ID: 1})
	}
	b.w.Run(&b.e)
	b.step(20, true)
	if q := task.ins[task.inputOf(b.ch[0])].queued; q != 20 {
		t.Errorf("%d inputs wait behind the barriers that the bound was lifted for, want 20", q)
	}
}

// TestSpillFails says that a disk that does not write, or gives back something else, fails the task with the reason; what could
// not be written stays in memory.
func TestSpillFails(t *testing.T) {
	b := newSpillBench(t, 8<<10, 1<<20)
	for len(b.waiting) == 0 {
		b.step(20, true)
	}
	before := b.out.logBytes
	b.carryOut(errors.New("the disk is full"))
	if !strings.Contains(b.failed, "write inputs 1 to") || !strings.Contains(b.failed, "the disk is full") || b.out.logBytes != before {
		t.Errorf("failed with %q, %d bytes in memory, want %d", b.failed, b.out.logBytes, before)
	}
	b = newSpillBench(t, 8<<10, 1<<20)
	for range 60 {
		b.step(20, true)
		b.carryOut(nil)
	}
	for id := range b.disk {
		b.disk[id][len(b.disk[id])/2] ^= 1
	}
	b.lose()
	b.carryOut(nil)
	if !strings.Contains(b.failed, "read back inputs 1 to") || !strings.Contains(b.failed, "checksum") {
		t.Errorf("failed with %q", b.failed)
	}
	if len(b.sent) > 0 {
		t.Errorf("%d inputs of a damaged segment were sent", len(b.sent))
	}
}

// TestSpillIsForgotten deploys anew while a segment is being written: the files go, and the late answer does nothing.
func TestSpillIsForgotten(t *testing.T) {
	b := newSpillBench(t, 8<<10, 1<<20)
	for len(b.disk) < 3 || len(b.waiting) == 0 {
		b.step(20, true)
		if len(b.disk) < 3 {
			b.carryOut(nil)
		}
	}
	late := b.waiting[0]
	job := b.w.graph.Job
	b.w.Message(&core.Msg{Type: core.MsgDeploy, Epoch: 2, Job: &job, Places: b.w.places}, &b.e)
	b.take()
	if late.Op != SegmentWrite {
		t.Fatalf("a request %d is under way, want a write", late.Op)
	}
	b.carryOut(nil)
	if len(b.disk) > 0 {
		t.Errorf("%d files are left of an earlier deployment", len(b.disk))
	}
}
