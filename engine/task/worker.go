package task

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

// Harness is the node of the coordinator, the feed and the collector; workers have nodes from 1 on.
const Harness = 0

// Worker is the machine of one worker process: its tasks and its ends of channels. It is owned by one event loop.
type Worker struct {
	// Node is the worker's own number; a replacement process gets a new one.
	Node int
	// Clock is the node's clock in nanoseconds; it decides when, never what.
	Clock func() int64
	// Give is given the memory of state that a task has given away (see state.Heap.GiveTo); nil: the collector finds it.
	Give func(mem []byte)
	// OpenState makes empty keyed state on disk; nil: there is no disk for it. It is called while a deployment is made.
	OpenState func(*state.PagedSpec) (state.Paged, error)

	graph  *core.Graph
	epoch  uint32
	places []core.Place
	tasks  []*Task          // by task id; nil: not here
	local  []*Task          // in the order of their ids
	holds  []*core.OrderLog // by task id: what is known here of the order of tasks elsewhere
	ins    []*In            // by channel id; nil: not here
	outs   []*Out
	dirtyO []*Out
	gated  []*Out // of promoted tasks, with state that waits for their readers
	pool   core.Pool
	e      *Effects // of the step under way

	snapshots []pendingSnapshot
	chunk     []byte
	body      []byte
	pass      core.Columns
	inbox     []arrival // sent from one task here to another
	ticks     int
	segmentID uint64   // of the last segment of a sender log that was written to disk
	buffers   [][]byte // for segments
}

type arrival struct {
	b  *core.Batch
	in *In
}

type pendingSnapshot struct {
	task  int
	id    uint64
	epoch uint32
	snap  state.Snapshot
	cutNS int64
	feed  uint64 // of a source: the feed's next input
	pos   core.Position
	told  bool // the coordinator knows that it is taken
}

// NewWorker returns a worker without tasks.
func NewWorker(node int, clock func() int64) *Worker {
	return &Worker{Node: node, Clock: clock}
}

// Pool returns the worker's batches, for the world that decodes frames.
func (w *Worker) Pool() *core.Pool { return &w.pool }

// Hello is what a worker says when it has reached the coordinator.
func (w *Worker) Hello(addr string) core.Msg {
	return core.Msg{Type: core.MsgHello, Node: w.Node, Addr: addr}
}

func (w *Worker) say(m core.Msg) {
	m.Node = w.Node
	w.e.Msgs = append(w.e.Msgs, m)
}

// place returns where a task runs; ok is false for the tasks of the harness.
func (w *Worker) place(task int) (core.Place, bool) {
	if task < 0 {
		return core.Place{Node: Harness, Standby: -1, Epoch: w.epoch}, false
	}
	return w.places[task], true
}

// nodes returns the nodes of a task, primary first.
func (w *Worker) nodes(task int) []int {
	p, _ := w.place(task)
	if p.Standby >= 0 {
		return []int{p.Node, p.Standby}
	}
	return []int{p.Node}
}

func (w *Worker) senders(c core.Channel) []int   { return w.nodes(c.From) }
func (w *Worker) receivers(c core.Channel) []int { return w.nodes(c.To) }

func (w *Worker) senderEpoch(c core.Channel) uint32 {
	p, _ := w.place(c.From)
	return p.Epoch
}

// Message takes a control-plane message from the coordinator.
func (w *Worker) Message(m *core.Msg, e *Effects) {
	w.e = e
	switch m.Type {
	case core.MsgDeploy:
		if err := w.deploy(m); err != nil {
			w.say(core.Msg{Type: core.MsgTaskFailed, Task: -1, Epoch: m.Epoch, Err: err.Error()})
		}
	case core.MsgStart:
		w.start(m)
	case core.MsgTopology:
		w.topology(m.Places)
		if m.ID > 0 {
			w.say(core.Msg{Type: core.MsgHeld, ID: m.ID})
		}
	case core.MsgFence:
		w.fence(m)
	case core.MsgPromote:
		w.promote(m)
	case core.MsgCheckpointDone:
		w.covered(m.Cuts)
		for _, t := range w.local {
			t.increments.complete(t, m.ID)
		}
	case core.MsgShip:
		w.shipAtOnce(m)
	case core.MsgBaseKept:
		w.baseKept(m)
	case core.MsgLift:
		if m.Task < len(w.tasks) && w.tasks[m.Task] != nil {
			w.tasks[m.Task].lifted = m.ID
		}
	case core.MsgLiftMove, core.MsgLower:
		if m.Task < len(w.tasks) && w.tasks[m.Task] != nil {
			w.tasks[m.Task].liftedMove = m.Type == core.MsgLiftMove
		}
	case core.MsgCheckpointGone:
		for _, t := range w.local {
			t.checkpointGone(m.ID)
		}
	}
}

func (w *Worker) task(id int, epoch uint32) *Task {
	if id < 0 || id >= len(w.tasks) || w.tasks[id] == nil || w.tasks[id].Epoch != epoch {
		return nil
	}
	return w.tasks[id]
}

// ConnUp says that node reached this worker anew: what it sent before may be lost.
func (w *Worker) ConnUp(node int, e *Effects) {
	w.e = e
	for _, in := range w.ins {
		if in != nil && contains(in.Senders, node) {
			in.gap = node != w.Node
			w.askAgain(in)
		}
	}
	for _, t := range w.local {
		if t.Role == core.RoleStandby && !t.cold {
			w.sendOrderHave(t)
		}
		t.shipBroken(node)
	}
}

// LinkUp says that this worker's connection to node is there anew, before anything is sent on it. What was sent to node
// meanwhile went nowhere, so the order logs must begin again: no output may arrive ahead of the order that produced it.
func (w *Worker) LinkUp(node int, e *Effects) {
	w.e = e
	w.orderLost(node)
	w.ConnUp(node, e) // the acks that were lost with the earlier connection asked for something too
}

// ConnDown says that what this worker sent to node may be lost.
func (w *Worker) ConnDown(node int, e *Effects) {
	w.e = e
	for _, o := range w.outs {
		if o != nil && !w.graph.Job.Bug("never-ask-again") {
			o.Disconnected(node)
		}
	}
	w.orderLost(node)
	for _, t := range w.local {
		t.shipBroken(node)
	}
}

func contains(s []int, n int) bool {
	for _, x := range s {
		if x == n {
			return true
		}
	}
	return false
}

// Frame takes a batch that arrived from another node. The caller keeps its reference.
func (w *Worker) Frame(b *core.Batch, e *Effects) {
	w.e = e
	if b.Channel < 0 || b.Channel >= len(w.ins) {
		return // of a deployment that is not known here yet, or no longer
	}
	switch b.Kind {
	case core.KindAck:
		o := w.outs[b.Channel]
		if o == nil || b.Epoch != o.Epoch {
			return
		}
		if w.graph.Job.Bug("trim-at-receipt") {
			b.Ack.Consumed = max(b.Ack.Consumed, b.Ack.Limit)
		}
		w.acknowledge(o, b.Ack)
		o.transmit(w.send)
	case core.KindOrder:
		w.orderFrame(b)
	case core.KindShip:
		w.shipFrame(b)
	default:
		if in := w.ins[b.Channel]; in != nil {
			w.accept(in, b)
		}
	}
}

// acknowledge takes a receiver's ack.
func (w *Worker) acknowledge(o *Out, a core.Ack) {
	lost, anew := o.acknowledge(a)
	if lost {
		w.say(core.Msg{Type: core.MsgTaskFailed, Task: o.Channel.From, Epoch: o.Epoch,
			Err: fmt.Sprintf("node %d misses inputs from %d on of channel %d, which the sender log no longer holds", a.From, a.Next, o.Channel.ID)})
	}
	if anew && o.Channel.From >= 0 {
		w.tasks[o.Channel.From].tellAgain(o)
	}
}

func (w *Worker) accept(in *In, b *core.Batch) {
	if in.Accept(b, w.graph.Job.Bug("skip-fence"), w.graph.Job.Bug("skip-dedup")) {
		w.askAgain(in)
	}
}

// SnapshotDone says that a snapshot is durable in file, or why not.
func (w *Worker) SnapshotDone(task int, epoch uint32, checkpoint uint64, file []byte, bytes int64, err error, e *Effects) {
	w.e = e
	s, ok := w.takeSnapshot(task, epoch, checkpoint)
	if !ok {
		return
	}
	m := core.Msg{Type: core.MsgSnapshot, Task: task, Epoch: epoch, ID: checkpoint, Bytes: bytes, Nanos: s.cutNS, Records: s.feed, File: file,
		Position: &s.pos}
	if err != nil {
		m.Err = err.Error()
	} else if t := w.task(task, epoch); t != nil {
		t.increments.durable(checkpoint, file)
	}
	w.say(m)
}

// quantumInputs is how much one task does before the next one gets its turn.
const quantumInputs = 16 << 10

// Run lets every task work until nothing is ready or it has had its turn, and sends what came of it.
func (w *Worker) Run(e *Effects) {
	w.e = e
	now := w.Clock()
	for round := 0; ; round++ {
		again := false
		for _, t := range w.local {
			did, more := t.step(now, quantumInputs, e)
			if did {
				t.flush()
			}
			again = again || more
		}
		w.flush(now, e)
		if w.deliver(now) || len(w.dirtyO) > 0 {
			again = true
		}
		if !again {
			return
		}
		if round >= 3 || e.BusyNS > 0 {
			e.More = true
			return
		}
	}
}

// dirty marks an output that has something to send.
func (w *Worker) dirty(o *Out) { w.dirtyO = append(w.dirtyO, o) }

// sendGated sends the state of promoted tasks whose readers have consumed what came before it.
func (w *Worker) sendGated() {
	kept := w.gated[:0]
	for _, o := range w.gated {
		if o.transmit(w.send); len(o.behind) > 0 {
			kept = append(kept, o)
		}
	}
	w.gated = kept
}

func (w *Worker) flush(nowNS int64, e *Effects) {
	for _, o := range w.dirtyO {
		o.transmit(w.send)
	}
	w.dirtyO = w.dirtyO[:0]
	w.sendGated()
	w.orderToStandbys()
	w.cutsTaken()
	w.spillOldest()
	for _, t := range w.local {
		if t.ship != nil {
			t.ship.press(t, nowNS)
			t.ship.commit(t)
		}
		for _, in := range t.ins {
			if in.consumed > in.acked {
				// A giver of state waits for its chunks' acknowledgement, not for a quarter of a window.
				w.sendAck(in, nowNS, false, in.prompt || in.Channel.Kind == core.ChanPeer)
				in.prompt = false
			}
		}
	}
}

// send hands a batch to its node: over the world's network, or into the inbox when it stays here.
func (w *Worker) send(node int, b *core.Batch) {
	if node == w.Node {
		if in := w.ins[b.Channel]; in != nil {
			w.inbox = append(w.inbox, arrival{b.Retain(), in})
		}
		return
	}
	w.orderTo(node)
	w.e.Sends = append(w.e.Sends, Send{node, b.Retain()})
}

// deliver takes what tasks here sent to each other.
func (w *Worker) deliver(nowNS int64) bool {
	any := len(w.inbox) > 0
	for _, a := range w.inbox {
		a.b.ArrivedNS = nowNS
		w.accept(a.in, a.b)
		a.b.Release()
	}
	w.inbox = w.inbox[:0]
	return any
}

// askAgain tells the sender where to go on from.
func (w *Worker) askAgain(in *In) { w.sendAck(in, w.Clock(), true, true) }

func (w *Worker) sendAck(in *In, nowNS int64, resync, force bool) {
	if in.silent {
		return
	}
	a, worth := in.ack(nowNS)
	if !worth && !force {
		return
	}
	a.Resync, a.From = resync && !w.graph.Job.Bug("never-ask-again"), w.Node
	in.acked = in.consumed
	for _, node := range in.Senders {
		if node == w.Node {
			if o := w.outs[in.Channel.ID]; o != nil {
				w.acknowledge(o, a)
				w.dirty(o)
			}
			continue
		}
		if node < 0 {
			continue // there is none at present
		}
		b := w.pool.Get()
		b.Kind, b.Channel, b.Epoch, b.Ack = core.KindAck, in.Channel.ID, in.Epoch, a
		w.e.Sends = append(w.e.Sends, Send{node, b})
	}
}

const (
	loadTicks   = 4  // ticks between two reports of loads by key group
	resyncTicks = 20 // ticks between two acks of a channel that has nothing new, in case one was lost
)

// Tick is called each heartbeat: it reports meters, acknowledges what is idle and keeps order logs moving.
func (w *Worker) Tick(e *Effects) {
	w.e = e
	now := w.Clock()
	m := core.Msg{Type: core.MsgHeartbeat, Epoch: w.epoch}
	w.ticks++
	for _, t := range w.local {
		m.Meters = append(m.Meters, t.meters(w.ticks%loadTicks == 0))
		for _, in := range t.ins {
			if in.consumed > in.acked || in.gap || in.open || w.ticks%resyncTicks == 0 {
				w.sendAck(in, now, in.gap, true)
			}
		}
		if t.Role == core.RoleStandby && !t.cold {
			w.sendOrderHave(t)
		}
		t.tickBase(now)
	}
	w.say(m)
}

func (t *Task) meters(loads bool) core.Meters {
	m := core.Meters{Task: t.info.ID, Consumed: t.consumed, BusyNS: t.busyNS, Held: t.heldRecords}
	for _, in := range t.ins {
		m.Queued += in.queued
		m.Fenced += in.Fenced
		m.Dups += in.Dups
		m.Missing += in.Missing
		if in.Channel.Kind == core.ChanFeed {
			m.FeedNext = in.consumed + 1
		}
	}
	for _, o := range t.outs {
		m.LogBytes += o.logBytes
		o.watchBound(t.w.graph.Job.LogBytes)
		m.LogBounds += o.bounds
		o.meter(&m, t.w.graph.Job.LogBytes)
	}
	if !m.AtBound {
		m.LogMoved = 0
	}
	m.LogBounds += t.orderBounds
	m.OrderBytes = orderRunBytes * len(t.order.Runs())
	if m.Standby = t.Role == core.RoleStandby; m.Standby && loads && t.keyed != nil {
		for g := range t.w.graph.Job.Operators[t.info.Operator].Groups {
			m.StandbyBytes += t.keyed.Bytes(g)
		}
	}
	if loads && t.moves.active && t.Role == core.RolePrimary {
		m.Groups = t.moves.owned()
		for _, g := range m.Groups {
			m.Loads = append(m.Loads, t.ctx.Loads[g])
			m.StateBytes = append(m.StateBytes, t.keyed.Bytes(g))
		}
	}
	m.Late = t.late()
	if t.ext != nil {
		m.StoreReads, m.StoreWrites = t.ext.reads, t.ext.writes
	}
	return m
}
