package task

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

var seedFlag = flag.Uint64("seed", 1, "seed of the randomised tests")

const (
	giverTask  = 1 // count/0, which owns all key groups
	getterTask = 2 // count/1, which owns none
	moveGroups = 8
	moveValue  = 1024
	moveChunk  = 16 << 10
	ms         = int64(time.Millisecond)
)

// sentChunk is a chunk of state that has left the giver.
type sentChunk struct {
	atNS  int64
	bytes int
	copy  bool
}

// moveBench is two workers with a task of a count each; the test is the source before them, the sink behind them and the
// coordinator. Frames arrive at the moment at which they are sent.
type moveBench struct {
	t       testing.TB
	now     int64
	tick    int64 // by how much each look at the clock advances it
	workers [2]*Worker
	e       [2]Effects
	data    [2]int // channel from the source to each task
	next    map[int]uint64
	chunks  []sentChunk
	answers map[uint64][]int64 // when each key was answered
	msgs    []core.Msg
	// sinkWaits holds the sink's acknowledgements back, in waiting.
	sinkWaits bool
	waiting   []*core.Batch
}

func newMoveBench(t testing.TB, keys uint64, change func(j *core.Job)) *moveBench {
	t.Helper()
	job := core.Job{ID: "t", Workers: 2, ChunkBytes: moveChunk, Operators: []core.OperatorSpec{
		{Name: "in", Kind: "source", Parallelism: 1},
		{Name: "count", Kind: "count", Parallelism: 2, Groups: moveGroups, ValueBytes: moveValue, Inputs: []string{"in"}},
		{Name: "out", Kind: "sink", Parallelism: 1, Inputs: []string{"count"}}}}
	if change != nil {
		change(&job)
	}
	b := &moveBench{t: t, now: ms, next: map[int]uint64{}, answers: map[uint64][]int64{}}
	places := []core.Place{{Task: 0, Node: otherNode, Standby: -1, Epoch: 1}, {Task: giverTask, Node: 1, Standby: -1, Epoch: 1},
		{Task: getterTask, Node: 2, Standby: -1, Epoch: 1}, {Task: 3, Node: otherNode, Standby: -1, Epoch: 1}}
	routes := []*core.Routes{nil, core.NewRoutes(moveGroups, 1), nil}
	for i := range b.workers {
		w := NewWorker(i+1, func() int64 { b.now += b.tick; return b.now })
		b.workers[i] = w
		w.Message(&core.Msg{Type: core.MsgDeploy, Epoch: 1, Job: &job, Places: places, Routes: routes,
			Tasks: []core.Deployment{{Task: giverTask + i, Role: core.RolePrimary, Epoch: 1}}}, &b.e[i])
		w.Message(&core.Msg{Type: core.MsgStart, Epoch: 1}, &b.e[i])
		for _, c := range w.graph.Channels {
			if c.Kind == core.ChanData && c.To == giverTask+i {
				b.data[i] = c.ID
			}
		}
		task := w.tasks[giverTask+i]
		if task == nil {
			t.Fatalf("task %d was not deployed: %+v", giverTask+i, b.e[i].Msgs)
		}
		for _, o := range task.outs {
			if o.Channel.Kind == core.ChanData {
				o.acknowledge(core.Ack{Next: 1, Limit: 1 << 20, From: otherNode, Resync: true})
			}
		}
	}
	b.heap(0).Fill(keys, b.workers[0].tasks[giverTask].moves.owns)
	for i, w := range b.workers {
		w.ConnUp(2-i, &b.e[i])
	}
	b.settle()
	b.msgs = nil
	return b
}

func (b *moveBench) heap(i int) *state.Heap { return b.workers[i].tasks[giverTask+i].ctx.State }

// frame hands a batch from elsewhere to worker i.
func (b *moveBench) frame(i, channel int, fill func(m *core.Batch)) {
	w := b.workers[i]
	m := w.pool.Get()
	m.Kind, m.Channel, m.Epoch, m.First, m.Count, m.ArrivedNS = core.KindRecords, channel, 1, b.next[channel]+1, 1, b.now
	fill(m)
	if m.Kind != core.KindAck {
		b.next[channel] += uint64(m.Count)
	}
	w.Frame(m, &b.e[i])
	m.Release()
}

// record sends a record of a key to task i.
func (b *moveBench) record(i int, key uint64) {
	b.frame(i, b.data[i], func(m *core.Batch) { m.Keys, m.Times = append(m.Keys, key), append(m.Times, b.now) })
}

// marker sends a round's marker to both tasks.
func (b *moveBench) marker(c *core.RouteChange) {
	for i := range b.workers {
		b.frame(i, b.data[i], func(m *core.Batch) {
			m.Kind, m.Control = core.KindControl, core.Control{Type: core.CtlMarker, ID: c.Version, Body: core.AppendRouteChange(nil, c)}
		})
	}
}

// settle lets both workers run until neither has anything to do at this time.
func (b *moveBench) settle() {
	b.t.Helper()
	for range 10_000 {
		more := false
		for i, w := range b.workers {
			w.Run(&b.e[i])
			more = b.carry(i) || more || b.e[i].More
		}
		if !more {
			return
		}
	}
	b.t.Fatal("the workers do not come to rest")
}

// carry takes what worker i has sent to where it goes, and says whether there was anything.
func (b *moveBench) carry(i int) bool {
	e := &b.e[i]
	sends := append([]Send(nil), e.Sends...)
	b.msgs = append(b.msgs, e.Msgs...)
	more, wake := e.More, e.WakeNS
	e.Reset()
	e.More, e.WakeNS = more, wake
	for _, s := range sends {
		b.look(i, s.B)
		switch {
		case s.Node == 2-i:
			s.B.ArrivedNS = b.now
			b.workers[1-i].Frame(s.B, &b.e[1-i])
			s.B.Release()
		case s.B.Kind == core.KindAck:
			s.B.Release() // the source has room for everything
		default:
			b.waiting = append(b.waiting, s.B)
		}
	}
	if !b.sinkWaits {
		b.acknowledge()
	}
	e.More = false
	return len(sends) > 0 || more
}

// acknowledge lets the sink say that it has consumed what it was sent.
func (b *moveBench) acknowledge() {
	for _, s := range b.waiting {
		i, last := 0, s.Last()
		if b.workers[1].outs[s.Channel] != nil {
			i = 1
		}
		b.frame(i, s.Channel, func(m *core.Batch) {
			m.Kind, m.Ack = core.KindAck, core.Ack{Next: last + 1, Consumed: last, Safe: last, Limit: last + 1<<20, From: otherNode}
		})
		s.Release()
	}
	b.waiting = b.waiting[:0]
}

func (b *moveBench) look(from int, s *core.Batch) {
	switch {
	case s.Kind == core.KindRecords:
		for _, k := range s.Keys {
			b.answers[k] = append(b.answers[k], b.now)
		}
	case s.Kind == core.KindControl && s.Control.Type == core.CtlState && from == 0:
		c, err := core.DecodeStateChunk(s.Control.Body)
		if err != nil {
			b.t.Fatal(err)
		}
		b.chunks = append(b.chunks, sentChunk{b.now, len(c.Data), c.Copy})
	}
}

// until lets time pass: the workers run when they want to be woken, or with every > 0 only so often; each time send is
// called first.
func (b *moveBench) until(endNS, every int64, send func()) {
	b.t.Helper()
	for b.now < endNS {
		next := b.now + every
		if every == 0 {
			next = b.now + ms
			for i := range b.e {
				if wake := b.e[i].WakeNS; wake > b.now && wake < next {
					next = wake
				}
			}
		}
		b.now = next
		for i := range b.e {
			b.e[i].Reset()
		}
		if send != nil {
			send()
		}
		b.settle()
	}
}

// keyIn returns a key of a group.
func keyIn(group uint32) (key uint64) {
	for core.KeyGroup(key, moveGroups) != group {
		key++
	}
	return key
}

// change is the move of groups from..7 to the other task.
func change(mode core.MoveMode, from uint32, bandwidth uint64) *core.RouteChange {
	c := &core.RouteChange{Version: 1, Operator: 1, Mode: mode, BandwidthBytes: bandwidth}
	for g := from; g < moveGroups; g++ {
		c.Moves = append(c.Moves, core.Move{Group: g, From: 0, To: 1})
	}
	return c
}

// withinRate fails when more was sent in any span of time than the rate and the bucket allow. A chunk that begins when there
// is room may be larger than the room.
func withinRate(t *testing.T, chunks []sentChunk, rate float64) {
	t.Helper()
	burst := rate*time.Duration(throttleBurst).Seconds() + moveChunk + moveValue
	for i := range chunks {
		sum := 0.0
		for _, c := range chunks[i:] {
			sum += float64(c.bytes)
			if most := rate*float64(c.atNS-chunks[i].atNS)/1e9 + burst; sum > most {
				t.Fatalf("%.0f bytes in the %v from %v on, at most %.0f are allowed", sum, time.Duration(c.atNS-chunks[i].atNS), time.Duration(chunks[i].atNS), most)
			}
		}
	}
}

func total(chunks []sentChunk) (bytes int, took time.Duration) {
	for _, c := range chunks {
		bytes += c.bytes
	}
	return bytes, time.Duration(chunks[len(chunks)-1].atNS - chunks[0].atNS)
}

// TestBandwidthOfAMove says that a move keeps its limit in every span of time and nevertheless uses it up, also when the
// task is woken late, and that neither the keys that stay nor the groups that have come wait for the rest.
func TestBandwidthOfAMove(t *testing.T) {
	const rate = 20e6
	for _, c := range []struct {
		name  string
		every int64   // the workers run so often only
		slack float64 // how much longer than bytes/rate
	}{{"woken in time", 0, 1.02}, {"woken late", 3 * ms, 1.05}, {"woken too late", 25 * ms, 4}} {
		b := newMoveBench(t, 4096, nil)
		stay, moves := keyIn(0), []uint64{keyIn(4), keyIn(7)}
		b.marker(change(core.MoveHold, 4, rate))
		b.settle()
		sent := 0
		b.until(b.now+500*ms, c.every, func() {
			b.record(0, stay)
			b.record(1, moves[0])
			b.record(1, moves[1])
			sent++
			if before := len(b.answers[stay]); before != sent-1 {
				t.Fatalf("%s: %d of %d records that stay are answered", c.name, before, sent-1)
			}
		})
		withinRate(t, b.chunks, rate)
		bytes, took := total(b.chunks)
		if want := 4 * 512 * (8 + moveValue); float64(bytes) < 0.9*float64(want) || float64(bytes) > 1.1*float64(want) {
			t.Errorf("%s: %d bytes, want about %d", c.name, bytes, want)
		}
		ideal := time.Duration(float64(bytes) / rate * 1e9)
		if least, most := ideal-time.Duration(throttleBurst)-time.Millisecond, time.Duration(float64(ideal)*c.slack); took < least || took > most {
			t.Errorf("%s: %d bytes took %v, want %v to %v", c.name, bytes, took, least, most)
		}
		for _, k := range append(moves, stay) {
			if got := b.answers[k]; len(got) != sent {
				t.Errorf("%s: %d of %d records of key %d are answered", c.name, len(got), sent, k)
			}
		}
		first, last := b.answers[moves[0]][0], b.answers[moves[1]][0]
		if end := b.chunks[len(b.chunks)-1].atNS; last < end || first > b.chunks[0].atNS+(end-b.chunks[0].atNS)/2 {
			t.Errorf("%s: groups of a move that ended at %v were there at %v and %v", c.name, time.Duration(end), time.Duration(first), time.Duration(last))
		}
	}
}

// TestMoveWithoutALimit is the other side of TestBandwidthOfAMove: nothing but the room for chunks holds it back.
func TestMoveWithoutALimit(t *testing.T) {
	b := newMoveBench(t, 4096, nil)
	b.marker(change(core.MoveHold, 4, 0))
	b.settle()
	if bytes, took := total(b.chunks); took != 0 || bytes < 2e6 {
		t.Errorf("%d bytes took %v, want about 2 MB at once", bytes, took)
	}
}

// TestBandwidthOfACopy says that what is sent ahead, and the changes that follow, keep the limit too, and together.
func TestBandwidthOfACopy(t *testing.T) {
	const rate = 20e6
	b := newMoveBench(t, 4096, nil)
	ahead := change(core.MoveDelta, 4, rate)
	control := -1
	for _, c := range b.workers[0].graph.Channels {
		if c.Kind == core.ChanControl && c.To == giverTask {
			control = c.ID
		}
	}
	b.frame(0, control, func(m *core.Batch) {
		m.Kind, m.Control = core.KindControl, core.Control{Type: core.CtlCopy, ID: 1, Body: core.AppendRouteChange(nil, ahead)}
	})
	b.settle()
	key := uint64(0)
	b.until(b.now+300*ms, 0, func() { // changes all keys once
		for range 20 {
			b.record(0, key%4096)
			key++
		}
	})
	if b.said(core.MsgCopied) != 1 || b.said(core.MsgMoved) != 0 {
		t.Fatalf("after the copy: %+v", b.msgs)
	}
	copied := len(b.chunks)
	b.marker(ahead)
	b.until(b.now+300*ms, 0, nil)
	withinRate(t, b.chunks, rate)
	for i, c := range b.chunks {
		if c.copy != (i < copied) {
			t.Fatalf("chunk %d of %d, %d of them copies: copy is %v", i, len(b.chunks), copied, c.copy)
		}
	}
	for _, part := range [][]sentChunk{b.chunks[:copied], b.chunks[copied:]} {
		if bytes, took := total(part); bytes < 1e6 || took < time.Duration(float64(bytes)/rate*1e9)-time.Duration(throttleBurst)-time.Millisecond {
			t.Errorf("%d bytes took %v", bytes, took)
		}
	}
	if b.said(core.MsgMoved) != 2 {
		t.Errorf("the move did not end: %+v", b.msgs)
	}
}

func (b *moveBench) said(typ core.MsgType) (n int) {
	for _, m := range b.msgs {
		if m.Type == typ {
			n++
		}
	}
	return n
}

// reports returns what both tasks said of the only round.
func (b *moveBench) reports() (giver, getter core.Msg) {
	b.t.Helper()
	if n := b.said(core.MsgRound); n != 2 {
		b.t.Fatalf("%d reports, want 2: %+v", n, b.msgs)
	}
	for _, m := range b.msgs {
		switch {
		case m.Type != core.MsgRound:
		case m.Task == giverTask:
			giver = m
		default:
			getter = m
		}
	}
	return giver, getter
}

// TestReportOfARound says that the parts of a round follow each other without gap: freeze from the marker until state may
// go, transfer until the last of it is there, drain until nothing waits; install is a part of the transfer.
func TestReportOfARound(t *testing.T) {
	b := newMoveBench(t, 4096, func(j *core.Job) {
		j.Operators[1].Service = core.Service{Mode: core.ServiceTimed, Distribution: "constant", Mean: 2 * time.Millisecond}
	})
	b.tick = 100 // so that what takes time is seen to take some
	marked := b.now
	b.sinkWaits = true
	b.marker(change(core.MoveHold, 7, 20e6))
	b.settle()
	b.until(b.now+7*ms, 0, nil) // the sink is busy
	if len(b.chunks) != 0 {
		t.Fatal("state went before the last answers had been consumed")
	}
	b.sinkWaits = false
	b.acknowledge()
	freed := b.now
	b.settle()
	arrived := b.now
	for range 5 {
		b.record(1, keyIn(7))
	}
	b.settle()
	b.until(b.now+100*ms, 0, nil)
	giver, getter := b.reports()
	bytes, took := total(b.chunks)
	near := func(what string, got, want, tolerance time.Duration) {
		t.Helper()
		if got < want-tolerance || got > want+tolerance {
			t.Errorf("%s: %v, want %v ± %v", what, got, want, tolerance)
		}
	}
	const little = 300 * time.Microsecond
	near("freeze of the giver", giver.Round.Freeze, time.Duration(freed-marked), little)
	near("transfer of the giver", giver.Round.Transfer, took, little)
	near("drain of the giver", giver.Round.Drain, 0, 0)
	near("freeze of the getter", getter.Round.Freeze, time.Duration(freed-marked), little)
	near("transfer of the getter", getter.Round.Transfer, took, little)
	answered := b.answers[keyIn(7)]
	if len(answered) != 5 {
		t.Fatalf("%d of 5 records are answered", len(answered))
	}
	whole := time.Duration(answered[4] - marked)
	near("freeze, transfer and drain of the getter", getter.Round.Freeze+getter.Round.Transfer+getter.Round.Drain, whole, little)
	if near("drain of 5 records of 2 ms", getter.Round.Drain, 10*time.Millisecond, little); getter.Round.Install <= 0 || getter.Round.Install > getter.Round.Transfer {
		t.Errorf("install of %v in a transfer of %v", getter.Round.Install, getter.Round.Transfer)
	}
	near("suspension of the getter", getter.Round.Suspended, time.Duration(answered[4]-arrived), little)
	near("suspension of the giver", giver.Round.Suspended, 0, 0)
	near("busy time of 5 records of 2 ms", time.Duration(b.workers[1].tasks[getterTask].busyNS), 10*time.Millisecond, 0)
	if getter.Records != 5 || giver.Records != 0 || getter.Bytes != int64(bytes) || giver.Bytes != int64(bytes) {
		t.Errorf("%d and %d bytes, %d and %d records waited; want %d, %d, 0, 5", giver.Bytes, getter.Bytes, giver.Records, getter.Records, bytes, bytes)
	}
	if last := b.chunks[len(b.chunks)-1].atNS; giver.Round.LastByteNS > last || getter.Round.LastByteNS < last || time.Duration(getter.Round.LastByteNS-giver.Round.LastByteNS) > little {
		t.Errorf("the last byte went at %d and came at %d; it was on its way at %d", giver.Round.LastByteNS, getter.Round.LastByteNS, last)
	}
}

// TestNobodyWaited says that a round in which no record had to wait suspends nobody and has nothing to drain.
func TestNobodyWaited(t *testing.T) {
	b := newMoveBench(t, 4096, nil)
	b.tick = 100
	b.marker(change(core.MoveHold, 4, 20e6))
	b.until(b.now+300*ms, 0, func() { b.record(0, keyIn(1)) })
	for _, m := range b.msgs {
		if m.Type == core.MsgRound && (m.Round.Suspended != 0 || m.Round.Drain != 0 || m.Records != 0 || m.Round.Transfer < 90*time.Millisecond) {
			t.Errorf("task %d: %d records waited, %+v", m.Task, m.Records, m.Round)
		}
	}
	b.reports()
}

// TestPauseSuspendsBoth says that pause-move blocks both tasks from the marker until the state is there.
func TestPauseSuspendsBoth(t *testing.T) {
	b := newMoveBench(t, 4096, nil)
	b.marker(change(core.MovePause, 4, 20e6))
	b.until(b.now+300*ms, 0, nil)
	giver, getter := b.reports()
	_, took := total(b.chunks)
	for _, m := range []core.Msg{giver, getter} {
		if d := m.Round.Suspended - took; d < 0 || d > time.Millisecond {
			t.Errorf("task %d was suspended for %v of a transfer of %v", m.Task, m.Round.Suspended, took)
		}
	}
}

// TestSuspensionIsAUnion says that intervals in which a task is paused and ones in which records wait count once where they
// overlap, however often their sum is taken on the way.
func TestSuspensionIsAUnion(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seedFlag, 0))
	for range 200 {
		var b blocked
		var want, got time.Duration
		now, waiting, paused := int64(1), 0, false
		for range 50 {
			d := rng.Int64N(1000)
			if waiting > 0 || paused {
				want += time.Duration(d)
			}
			now += d
			switch rng.IntN(4) {
			case 0:
				waiting = rng.IntN(3)
			case 1:
				paused = !paused
			case 2:
				got += b.take(now)
			}
			b.set(waiting, paused, now)
		}
		if got += b.take(now); got != want {
			t.Fatalf("%v, want %v; go test -run TestSuspensionIsAUnion -seed=%d", got, want, *seedFlag)
		}
	}
}
