package task

import (
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

const standbyNode = 8

// shipBench is a count whose state is shipped to a standby, and which the test answers for.
type shipBench struct {
	*bench
	t *testing.T
}

func newShipBench(t *testing.T) *shipBench {
	b := &shipBench{newBench(t, func(j *core.Job) {
		j.LogBytes, j.Ship = 8<<10, time.Hour
		for i := range j.Operators {
			j.Operators[i].Recovery = core.RecoveryPassive
		}
	}), t}
	b.w.Message(&core.Msg{Type: core.MsgTopology, Places: []core.Place{{Task: countTask, Node: 1, Standby: standbyNode, Epoch: 1}}}, &b.e)
	b.w.Tick(&b.e)
	if b.ship() != 1 {
		t.Fatal("no ship at the first tick")
	}
	b.finish()
	return b
}

// ship returns the number of the ship that was begun since the last call, 0 when none was.
func (b *shipBench) ship() (number uint64) {
	for _, s := range b.e.Sends {
		if s.Node == standbyNode && s.B.Kind == core.KindShip && (s.B.Control.ID == shipMeta || s.B.Control.ID == shipWhole) {
			number = s.B.First
		}
	}
	b.e.Reset()
	return number
}

func (b *shipBench) answer(kind, part uint64) {
	s := b.w.tasks[countTask].ship
	f := b.w.pool.Get()
	f.Kind, f.Channel, f.Epoch, f.First, f.OrderAfter, f.Control.ID = core.KindShip, b.w.tasks[countTask].info.Ins[0], 1, s.number, part, kind
	b.w.Frame(f, &b.e)
	f.Release()
}

// finish lets the ship under way be committed and applied.
func (b *shipBench) finish() {
	out := b.w.tasks[countTask].outs[0]
	b.answer(shipGot, b.w.tasks[countTask].ship.seq)
	out.acknowledge(core.Ack{Next: out.next, Consumed: out.next - 1, Limit: out.next + 1<<20, From: otherNode})
	b.w.Run(&b.e)
	b.answer(shipApplied, 0)
	if p := b.w.tasks[countTask].ship.phase; p != shipIdle {
		b.t.Fatalf("phase %d of a ship that is applied", p)
	}
	b.e.Reset()
}

// TestAShipIsEarlyWhenALogFills says that the standby's base moves before those who send to the task must stop, and that the
// readers which the ship waits for are asked to move theirs.
func TestAShipIsEarlyWhenALogFills(t *testing.T) {
	b := newShipBench(t)
	b.records(0, 100)
	b.w.Run(&b.e)
	if n := b.ship(); n != 0 {
		t.Fatalf("ship %d before half of a log was consumed", n)
	}
	for range 2 {
		b.records(0, 100) // of 16 bytes
		b.w.Run(&b.e)
	}
	if n := b.ship(); n != 2 {
		t.Fatalf("ship %d behind half of a log, want 2", n)
	}
	b.answer(shipGot, b.w.tasks[countTask].ship.seq)
	sink := b.w.graph.Tasks[3]
	var asked []*core.Batch
	b.w.Run(&b.e)
	b.w.Run(&b.e)
	for _, s := range b.e.Sends {
		if s.B.Kind == core.KindShip && s.B.Control.ID == shipWanted {
			asked = append(asked, s.B)
		}
	}
	out := b.w.tasks[countTask].outs[0]
	if len(asked) != 1 || asked[0].Channel != sink.Ins[0] || asked[0].First != out.next-1 || asked[0].OrderAfter != uint64(out.Channel.ID) {
		t.Fatalf("the reader was asked %d times to cover number %d of channel %d: %+v", len(asked), out.next-1, out.Channel.ID, asked)
	}
	b.finish()
	b.w.Run(&b.e)
	if n := b.ship(); n != 0 {
		t.Errorf("ship %d with nothing new", n)
	}
}

// TestAShipThatIsWanted begins when the task has consumed what its base is to cover.
func TestAShipThatIsWanted(t *testing.T) {
	b := newShipBench(t)
	f := b.w.pool.Get()
	f.Kind, f.Channel, f.Epoch, f.First = core.KindShip, b.w.tasks[countTask].info.Ins[0], 1, 20
	f.OrderAfter, f.Control.ID = uint64(b.ch[1]), shipWanted
	b.w.Frame(f, &b.e)
	f.Release()
	b.records(1, 19)
	b.w.Run(&b.e)
	if n := b.ship(); n != 0 {
		t.Fatalf("ship %d one record too early", n)
	}
	b.records(1, 1)
	b.w.Run(&b.e)
	if n := b.ship(); n != 2 {
		t.Fatalf("ship %d, want 2", n)
	}
	b.finish()
	b.w.Run(&b.e)
	if n := b.ship(); n != 0 {
		t.Errorf("ship %d for a wish that is fulfilled", n)
	}
}
