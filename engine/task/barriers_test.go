package task

import (
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

func unalignedBarrier(id uint64) core.Control {
	return core.Control{Type: core.CtlBarrier, ID: id, Body: []byte(core.BarrierUnaligned)}
}

// restored gives a new task what a snapshot holds, as a restart does.
func restored(t *testing.T, snap *SnapshotRequest, change func(j *core.Job)) *bench {
	t.Helper()
	b := newBench(t, change)
	for {
		chunk, group, _, done := snap.State.Next(nil, 1<<16)
		if done {
			break
		}
		if err := b.w.tasks[countTask].ctx.State.Install(group, chunk); err != nil {
			t.Fatal(err)
		}
	}
	b.w.Loaded(&LoadRequest{Task: countTask, Epoch: 1, InFlight: snap.InFlight}, nil, &b.e)
	return b
}

// barriersOut counts the barriers of a checkpoint that the count has passed on.
func (b *bench) barriersOut(id uint64) (n int) {
	o := b.w.tasks[countTask].outs[0]
	for _, x := range o.log[o.head:] {
		if x.Kind == core.KindControl && x.Control.Type == core.CtlBarrier && x.Control.ID == id {
			n++
		}
	}
	return n
}

// TestUnalignedBarriers is the arithmetic of TestAlignment without blocking: the state is cut at the first barrier, the
// records of the slow input are part of the snapshot, and after a crash the run ends at 12 all the same.
func TestUnalignedBarriers(t *testing.T) {
	for name, want := range map[string]struct{ inFlight, afterRestore, final uint64 }{
		"":                 {5, 8, 12},
		"forget-in-flight": {0, 3, 7},
		"in-flight-twice":  {5, 13, 17},
	} {
		plant := func(j *core.Job) { j.Bugs = []string{name} }
		b := newBench(t, plant)
		b.records(0, 3)
		b.control(0, unalignedBarrier(1))
		b.records(0, 4)
		b.w.Run(&b.e)
		if got := b.count(t); got != 7 {
			t.Fatalf("%s: count %d before the second barrier, want 7: no input waits", name, got)
		}
		if b.barriersOut(1) != 1 || len(b.e.Snapshots) != 0 {
			t.Fatalf("%s: %d barriers passed on and %d snapshots before the second barrier, want 1 and 0", name, b.barriersOut(1), len(b.e.Snapshots))
		}
		b.records(1, 5)
		b.control(1, unalignedBarrier(1))
		b.records(1, 1) // behind the barrier: not in the snapshot
		b.w.Run(&b.e)
		if got := b.count(t); got != 13 || len(b.e.Snapshots) != 1 || b.barriersOut(1) != 1 {
			t.Fatalf("%s: count %d, %d snapshots, %d barriers", name, got, len(b.e.Snapshots), b.barriersOut(1))
		}
		snap := b.e.Snapshots[0]
		var held uint64
		for _, f := range snap.InFlight {
			var x core.Batch
			if err := core.DecodeFrame(&x, f); err != nil {
				t.Fatal(err)
			}
			held += uint64(x.Count)
		}
		if held != want.inFlight {
			t.Errorf("%s: %d records in flight, want %d", name, held, want.inFlight)
		}
		replay := restored(t, &snap, plant)
		replay.w.Run(&replay.e)
		if got := replay.count(t); got != want.afterRestore {
			t.Errorf("%s: %d after the restore, want %d", name, got, want.afterRestore)
		}
		replay.records(0, 4)
		replay.w.Run(&replay.e)
		if got := replay.count(t); got != want.final {
			t.Errorf("%s: %d in the end, want %d", name, got, want.final)
		}
	}
}

// TestInFlightComesFirst says that a restored task takes no input before what was in flight, and that its watermarks
// are applied at their place.
func TestInFlightComesFirst(t *testing.T) {
	b := newBench(t, nil)
	b.control(0, unalignedBarrier(1))
	b.w.Run(&b.e)
	b.records(1, 2)
	b.control(1, core.Control{Type: core.CtlWatermark, ID: 44})
	b.control(1, core.Control{Type: core.CtlEnd})
	b.control(1, unalignedBarrier(1))
	b.w.Run(&b.e)
	snap := b.e.Snapshots[0]
	if len(snap.InFlight) != 2 {
		t.Fatalf("%d frames in flight, want the records and the watermark; the end comes again by itself", len(snap.InFlight))
	}
	replay := restored(t, &snap, nil)
	task := replay.w.tasks[countTask]
	out := task.outs[0]
	out.receivers[0].limit, out.receivers[0].consumed = 0, 0
	for range 3 * core.MaxBatch {
		out.batch(&replay.w.pool).Keys = append(out.open.Keys, 1)
		out.open.Times = append(out.open.Times, 1)
		out.seal() // no room
	}
	replay.records(0, 1)
	replay.w.Run(&replay.e)
	if task.ins[task.inputOf(replay.ch[0])].consumed != 0 || len(task.inFlight) != 2 {
		t.Fatal("an input was consumed before what was in flight")
	}
	out.acknowledge(core.Ack{Next: out.next, Consumed: out.next - 1, Limit: 1 << 20, From: otherNode})
	replay.w.Run(&replay.e)
	if replay.count(t) != 3 || task.marks.ins[task.inputOf(replay.ch[1])] != 44 {
		t.Errorf("count %d, watermark %d", replay.count(t), task.marks.ins[task.inputOf(replay.ch[1])])
	}
}

// TestInFlightHasABound says that a checkpoint whose inputs in flight exceed the bound is given up, with the reason, and
// that the task goes on.
func TestInFlightHasABound(t *testing.T) {
	b := newBench(t, func(j *core.Job) { j.InFlightBytes = 1000 })
	b.control(0, unalignedBarrier(1))
	for range 20 {
		b.records(1, 10)
	}
	b.control(1, unalignedBarrier(1))
	b.w.Run(&b.e)
	if len(b.e.Snapshots) != 0 || b.count(t) != 200 || len(b.w.snapshots) != 0 {
		t.Fatalf("%d snapshots, count %d, %d under way", len(b.e.Snapshots), b.count(t), len(b.w.snapshots))
	}
	said := 0
	for _, m := range b.e.Msgs {
		if m.Type == core.MsgSnapshot && m.ID == 1 && strings.Contains(m.Err, "more than 1000 bytes of inputs in flight") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the reason was given %d times, want once", said)
	}
	b.control(0, unalignedBarrier(2))
	b.control(1, unalignedBarrier(2))
	b.w.Run(&b.e)
	if len(b.e.Snapshots) != 1 || b.e.Snapshots[0].Checkpoint != 2 {
		t.Errorf("the next checkpoint has %d snapshots", len(b.e.Snapshots))
	}
}

// TestMarkerBetweenBarriers says that a checkpoint through which a route change passes is given up.
func TestMarkerBetweenBarriers(t *testing.T) {
	b := newBench(t, nil)
	b.control(0, unalignedBarrier(1))
	change := core.RouteChange{Version: 1, Operator: 2}
	b.control(1, core.Control{Type: core.CtlMarker, ID: 1, Body: core.AppendRouteChange(nil, &change)})
	b.control(1, unalignedBarrier(1))
	b.w.Run(&b.e)
	if len(b.e.Snapshots) != 0 {
		t.Error("a snapshot across a route change")
	}
}

// TestGivenUpCheckpointBlocksNothing says that when a checkpoint was given up the aligned input goes on at once, also when
// the word comes before the barrier; that no snapshot is taken of it; and that its barrier is still passed on, as by a
// standby that has not heard of it.
func TestGivenUpCheckpointBlocksNothing(t *testing.T) {
	for name, early := range map[string]bool{"behind the first barrier": false, "before it": true} {
		b := newBench(t, nil)
		gone := func() { b.w.Message(&core.Msg{Type: core.MsgCheckpointGone, ID: 1}, &b.e) }
		if early {
			gone()
		}
		b.control(0, core.Control{Type: core.CtlBarrier, ID: 1})
		b.records(0, 4)
		b.w.Run(&b.e)
		if !early {
			if b.count(t) != 0 {
				t.Fatalf("%s: the aligned input does not wait", name)
			}
			gone()
			b.w.Run(&b.e)
		}
		if b.count(t) != 4 {
			t.Errorf("%s: count %d, want 4: nobody waits for the other barrier", name, b.count(t))
		}
		b.control(1, core.Control{Type: core.CtlBarrier, ID: 1})
		b.w.Run(&b.e)
		if len(b.e.Snapshots) != 0 || b.barriersOut(1) != 1 {
			t.Errorf("%s: %d snapshots, %d barriers passed on, want 0 and 1", name, len(b.e.Snapshots), b.barriersOut(1))
		}
		b.control(0, core.Control{Type: core.CtlBarrier, ID: 2})
		b.control(1, core.Control{Type: core.CtlBarrier, ID: 2})
		b.w.Run(&b.e)
		if len(b.e.Snapshots) != 1 {
			t.Errorf("%s: the next checkpoint has %d snapshots, want 1", name, len(b.e.Snapshots))
		}
	}
}

// TestIncrements says what a snapshot continues: the newest one that is part of a complete checkpoint, and nothing when
// the chain is long enough or key groups have changed hands.
func TestIncrements(t *testing.T) {
	b := newBench(t, func(j *core.Job) { j.Incremental, j.FullEvery = true, 3 })
	id := uint64(0)
	next := func(complete bool, want uint64) {
		t.Helper()
		id++
		b.e.Reset()
		b.records(0, 1)
		b.control(0, core.Control{Type: core.CtlBarrier, ID: id})
		b.control(1, core.Control{Type: core.CtlBarrier, ID: id})
		b.w.Run(&b.e)
		if len(b.e.Snapshots) != 1 {
			t.Fatalf("checkpoint %d has %d snapshots", id, len(b.e.Snapshots))
		}
		if s := b.e.Snapshots[0]; s.Since != want || want > 0 && string(s.SinceFile) != string(rune('a'+want)) {
			t.Errorf("checkpoint %d continues %d (%q), want %d", id, s.Since, s.SinceFile, want)
		}
		b.w.SnapshotDone(countTask, 1, id, []byte(string(rune('a'+id))), 1, nil, &b.e)
		if complete {
			b.w.Message(&core.Msg{Type: core.MsgCheckpointDone, ID: id}, &b.e)
		}
	}
	next(true, 0)
	next(true, 1)
	next(false, 2) // given up
	next(true, 2)
	next(true, 0) // the chain has three files
	next(true, 5)
	task := b.w.tasks[countTask]
	task.moves.owns[3] = false
	task.keyed.Drop(3)
	next(true, 0)
	for range 3 {
		next(false, 7)
	}
	next(false, 0) // four in a row were given up
	next(false, 7)
	next(true, 7)
	next(true, 13)
	if n := len(task.increments.made); n != 0 {
		t.Errorf("%d marks are kept for nothing", n)
	}
}
