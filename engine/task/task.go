package task

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/state"
)

// Task is a deterministic function of its starting state and of the order in which it consumes numbered inputs.
type Task struct {
	info  core.TaskInfo
	spec  *core.OperatorSpec
	kind  operator.Kind
	w     *Worker
	Epoch uint32
	Role  core.Role

	ins        []*In
	outs       []*Out
	edges      []edge
	barrierIns []int // indices of ins that carry barriers, markers and ends
	op         operator.Operator
	ctx        operator.Context

	order       core.OrderLog
	logOrder    bool
	toOrder     []uint64 // by node: order position that it has been sent
	hasOrder    uint64   // order position that the standby has said it has
	replay      []core.Run
	follow      core.OrderLog // the primary's order, at a standby
	running     bool
	loading     bool
	joining     bool // deployed beside tasks that ran already
	cold        bool // has no base yet, or waits to be promoted
	protection  core.Protection
	ship        *ship     // at a primary with a standby that is shipped to
	shipment    shipment  // at such a standby
	upstream    *upstream // nil: of another strategy
	muteTo      uint64    // order position up to which outputs were emitted before
	orderBounds uint64    // how often what is held of the order has reached its bound
	replayed    bool      // tell the coordinator when the replay is over

	paused      bool
	checkpoint  uint64 // that barriers are being aligned for
	aligned     bool   // its snapshot is taken
	gone        uint64 // checkpoints up to it that are pending no more were given up
	passed      uint64 // the last checkpoint whose barrier was passed on
	lifted      uint64 // until the barriers of this checkpoint are passed on, no log has a bound
	liftedMove  bool   // nor while this is set, unless the task is a source
	recording   *recording
	increments  increments
	inFlight    []*core.Batch // what the restored task has to consume first
	inFlightOff int           // inputs of the first one already consumed
	rr          int
	view, part  core.Columns // what is being worked on: in fields, as operators are called by interface
	chunkTurn   bool
	ending      bool // every input has ended
	moves       moves
	keyed       state.Keyed // the context's state; nil when there is none
	paged       state.Paged // the same when most of it is not in memory, else nil
	ext         *external   // nil: the task keeps its state itself
	marks       watermarks

	busyUntilNS int64
	busyNS      int64
	consumed    uint64
	heldRecords uint64
	failed      bool
}

func newTask(w *Worker, d core.Deployment, routes []*core.Routes) *Task {
	info := w.graph.Tasks[d.Task]
	spec := &w.graph.Job.Operators[info.Operator]
	kind, ok := operator.Lookup(spec.Kind)
	if !ok {
		panic("task: operator kind " + spec.Kind + " was validated but is unknown")
	}
	t := &Task{info: info, spec: spec, kind: kind, w: w, Epoch: d.Epoch, Role: d.Role, op: kind.New(spec)}
	t.protection = w.graph.Protection(d.Task)
	t.logOrder = t.protection.Ordered() && !w.graph.Job.Bug("forget-order-log")
	t.cold = d.Cold
	if kind.Keyed {
		t.ctx.Groups = spec.Groups
		if spec.Backend == core.BackendPebble {
			t.openPaged()
		} else if kind.Blob {
			t.ctx.Blob = state.NewBlob(spec.Groups)
			t.ctx.Blob.GiveTo(w.Give)
			t.keyed = t.ctx.Blob
		} else {
			stamp := 0
			if spec.Store != "" {
				stamp = stampBytes
			}
			t.ctx.State = state.NewHeap(spec.Groups, max(spec.ValueBytes, 8)+stamp)
			t.ctx.State.GiveTo(w.Give)
			t.keyed = t.ctx.State
			t.ext = newExternal(t)
		}
		t.ctx.Loads = make([]uint64, spec.Groups)
	}
	for i, id := range info.Ins {
		c := w.graph.Channels[id]
		next := uint64(1)
		if c.Kind == core.ChanFeed {
			next = max(d.FeedNext, 1)
		}
		epoch := w.senderEpoch(c)
		if c.From < 0 && d.HarnessEpoch > 0 {
			epoch = d.HarnessEpoch
		}
		in := NewIn(c, epoch, next, w.senders(c), &w.graph.Job)
		in.silent, in.closed = t.cold, t.onlyBase()
		in.bases = t.protection.Strategy == core.RecoveryUpstream
		if spec.Service.Mode == core.ServiceTimed {
			in.window.low = 16
		}
		t.ins = append(t.ins, in)
		w.ins[id] = in
		if c.Kind == core.ChanData || (kind.Source && c.Kind == core.ChanControl) {
			t.barrierIns = append(t.barrierIns, i)
		}
	}
	t.makeOuts(routes)
	t.moves.init(t)
	t.marks.init(t)
	if t.protection.Strategy == core.RecoveryUpstream {
		t.upstream = newUpstream(t)
	}
	return t
}

// onlyBase says that the task is a standby that does not consume: it holds the state last shipped to it.
func (t *Task) onlyBase() bool {
	return t.Role == core.RoleStandby && t.protection.Strategy == core.RecoveryPassive
}

// step consumes inputs until none is ready, an output is full or about quantum records were consumed. It says whether
// anything was done and whether something is left.
func (t *Task) step(nowNS int64, quantum int, e *Effects) (did, more bool) {
	if !t.running || t.failed {
		return false, false
	}
	for quantum > 0 {
		var n int
		if t.full() && !t.controlAtBound() {
			n = t.stepPeer(nowNS, e)
		} else {
			n = t.stepOnce(nowNS, e)
		}
		if n == 0 {
			return did, false
		}
		did = true
		quantum -= n
		if e.BusyNS >= maxBurnNS {
			break
		}
	}
	return did, true
}

// stepOnce does the next piece of work and returns its size in inputs, 0 when there is none.
func (t *Task) stepOnce(nowNS int64, e *Effects) int {
	if len(t.inFlight) > 0 {
		return t.stepInFlight(nowNS, e)
	}
	// State that is given away goes chunk by chunk between the records that stay.
	if t.chunkTurn = !t.chunkTurn; t.chunkTurn {
		if n := t.moves.stream(t); n > 0 {
			return n
		}
	}
	if t.ext != nil && t.ext.waits() {
		return t.moves.stream(t)
	}
	if t.moves.hasReady() {
		if n := t.moves.drain(t, nowNS, e); n > 0 {
			return n
		}
		return t.moves.stream(t)
	}
	i, limit := t.pick()
	if i < 0 {
		return t.moves.stream(t)
	}
	return t.consume(i, limit, nowNS, e)
}

// stepPeer takes what other tasks of the operator have sent while an output has no room: two tasks that mirror their
// input to each other would wait for each other for ever if they did not.
func (t *Task) stepPeer(nowNS int64, e *Effects) int {
	if t.Role == core.RoleStandby || len(t.replay)+len(t.inFlight) > 0 || t.moves.hasReady() || t.ext != nil {
		return 0
	}
	for i, in := range t.ins {
		if in.Channel.Kind == core.ChanPeer && in.queued > 0 {
			return t.consume(i, ^uint64(0), nowNS, e)
		}
	}
	return 0
}

// consume takes up to limit inputs of input i and returns how many; 0 when their service is not over.
func (t *Task) consume(i int, limit uint64, nowNS int64, e *Effects) int {
	in := t.ins[i]
	b, off := in.peek()
	n := 1
	if b.Kind == core.KindRecords {
		n = int(min(uint64(b.Count-off), limit))
		cols := &t.view
		*cols = b.Slice(off, off+n)
		if t.ext != nil && !t.ext.ready(t, cols) {
			t.rr = i // the same run comes next
			return t.moves.stream(t)
		}
		if n = t.serve(cols, b.First+uint64(off), t.moves.holding > 0 && in.Channel.Kind != core.ChanPeer, b.ArrivedNS, nowNS, e); n == 0 {
			return t.moves.stream(t)
		}
		if n < cols.Len() {
			*cols = b.Slice(off, off+n)
		}
		t.record(i, n)
		if t.recording != nil {
			t.recordInFlight(i, b, off, n)
		}
		if in.Channel.Kind == core.ChanPeer {
			t.moves.shadow(t, cols)
		} else {
			t.process(cols)
		}
	} else {
		t.record(i, n)
		if t.recording != nil {
			t.recordInFlight(i, b, off, n)
		}
		b.Retain() // it counts as consumed in what it makes the task snapshot
		in.take(n)
		t.control(i, b, nowNS, e)
		b.Release()
		if t.muteTo > 0 && t.order.To() == t.muteTo {
			t.unmute()
		}
		return n
	}
	in.take(n)
	return n
}

func (t *Task) record(in, n int) {
	t.consumed += uint64(n)
	if t.logOrder {
		t.order.Add(in, uint64(n))
	}
	if len(t.replay) > 0 {
		if t.replay[0].N -= uint64(n); t.replay[0].N == 0 {
			t.replay = t.replay[1:]
		}
	}
}

// pick chooses the next input channel and how many inputs may be taken from it; -1 when none is ready. A standby and a
// replaying task follow the order log; others take control first, then state, then data in turn.
func (t *Task) pick() (in int, limit uint64) {
	if t.Role == core.RoleStandby && len(t.replay) == 0 {
		t.nextFollow()
	}
	if len(t.replay) > 0 {
		r := t.replay[0]
		if t.ins[r.In].queued == 0 {
			return -1, 0
		}
		return r.In, r.N
	}
	if t.Role == core.RoleStandby {
		return -1, 0
	}
	if t.replayed {
		t.replayed = false
		t.w.say(core.Msg{Type: core.MsgReplayed, Task: t.info.ID, Epoch: t.Epoch})
	}
	n := len(t.ins)
	if t.kind.Source && t.feedOpen() {
		return -1, 0 // a barrier must not find a source that does not know where it stands
	}
	for i, in := range t.ins {
		if in.queued > 0 && (in.Channel.Kind == core.ChanControl || in.Channel.Kind == core.ChanPeer) {
			return i, ^uint64(0)
		}
	}
	for k := 0; k < n; k++ {
		i := (t.rr + k) % n
		in := t.ins[i]
		if in.queued == 0 || in.blocked || in.paused || t.moves.noRoom(t, i) || (t.paused && in.Channel.Kind == core.ChanFeed) {
			continue
		}
		t.rr = i + 1
		return i, ^uint64(0)
	}
	return -1, 0
}

// feedOpen says that a source without a past has not been sent anything of the feed yet.
func (t *Task) feedOpen() bool {
	for _, in := range t.ins {
		if in.open && in.Channel.Kind == core.ChanFeed {
			return true
		}
	}
	return false
}

// nextFollow takes the part of the primary's order that was not consumed yet.
func (t *Task) nextFollow() {
	t.follow.Trim(t.order.To())
	t.replay = append(t.replay, t.follow.Runs()...)
	t.follow.Reset(t.follow.To())
}

// full says whether an output has no room.
func (t *Task) full() bool {
	bound := t.logBound()
	for _, o := range t.outs {
		if o.Channel.Kind != core.ChanPeer && o.full(bound) {
			return true
		}
	}
	return t.moves.mirrorsFull(bound)
}

// process works on a run of records: those of key groups whose state is still on its way wait.
func (t *Task) process(cols *core.Columns) {
	if t.moves.holding > 0 {
		t.moves.split(t, cols)
		return
	}
	if t.marks.source != nil {
		t.applyTimed(cols)
		return
	}
	t.apply(cols)
}

// apply runs the operator and routes what it emits.
func (t *Task) apply(cols *core.Columns) {
	t.work(cols)
	if t.ext != nil {
		t.ext.wrote(t, cols)
	}
}

func (t *Task) work(cols *core.Columns) {
	if t.upstream != nil && t.upstream.op != nil {
		t.upstream.saw(cols)
	}
	if t.moves.mirroring > 0 {
		t.moves.mirror(t, cols)
	}
	if len(t.edges) == 1 && t.edges[0].forward && !t.kind.Resizes {
		t.applyForward(cols)
		return
	}
	t.ctx.Out.Reset()
	t.operate(cols)
	for k := range t.edges {
		t.route(&t.edges[k], &t.ctx.Out)
	}
}

// applyForward lets the operator write straight into the one output's batch.
func (t *Task) applyForward(cols *core.Columns) {
	o := t.edges[0].outs[0]
	for from := 0; from < cols.Len(); {
		b := o.batch(&t.w.pool)
		n := min(cols.Len()-from, max(o.cut-b.Len(), 1))
		part := &t.part
		*part = cols.Slice(from, from+n)
		t.ctx.Out, b.Columns = b.Columns, t.ctx.Out
		t.operate(part)
		t.ctx.Out, b.Columns = b.Columns, t.ctx.Out
		from += n
		if b.Len() >= o.cut {
			t.seal(o)
		}
	}
}

func (t *Task) control(i int, b *core.Batch, nowNS int64, e *Effects) {
	c := b.Control
	switch c.Type {
	case core.CtlBarrier:
		t.onBarrier(i, c, e)
	case core.CtlEnd:
		t.onEnd(i, c)
	case core.CtlWatermark:
		t.onWatermark(i, c)
	case core.CtlTick: // only asks to be acknowledged
	case core.CtlPause:
		t.paused = true
	case core.CtlResume:
		t.paused = false
	case core.CtlRoute:
		t.onRoute(c)
	case core.CtlMarker:
		t.onMarker(i, c)
	case core.CtlCopy:
		t.moves.onCopy(t, c)
	case core.CtlFetch:
		t.moves.onFetch(t, c)
	case core.CtlState:
		t.moves.onState(t, c, nowNS)
	default:
		t.fail(fmt.Errorf("control input %s is not for this task", c.Type))
	}
}

func (t *Task) onEnd(i int, c core.Control) {
	t.ins[i].ended = true
	t.advanceWatermark()
	for _, k := range t.barrierIns {
		if in := t.ins[k]; in.Channel.Kind == core.ChanData && !in.ended {
			return
		}
	}
	t.ending = true
	t.end()
}

// end passes the end of the stream on, behind all records that still wait for their state.
func (t *Task) end() {
	t.passWatermark()
	if t.ending && (t.moves.holding == 0 && !t.moves.hasReady() && len(t.marks.giving) == 0 && (t.ext == nil || t.ext.settled()) || t.w.graph.Job.Bug("end-before-held")) {
		t.ending = false
		t.broadcast(core.Control{Type: core.CtlEnd})
	}
}

// onRoute applies a route change to the links to its operator. The marker behind the last record routed by the old
// table goes to every task that gives or gets a key group.
func (t *Task) onRoute(c core.Control) {
	ch, err := core.DecodeRouteChange(c.Body)
	if err != nil {
		t.fail(err)
		return
	}
	for k := range t.edges {
		e := &t.edges[k]
		if e.operator != ch.Operator || e.routes == nil {
			continue
		}
		concerned := make([]bool, len(e.outs))
		for _, m := range ch.Moves {
			concerned[m.From], concerned[m.To] = !t.w.graph.Job.Bug("giver-is-not-told"), true
		}
		if err := e.routes.Apply(ch); err != nil {
			t.fail(err)
			return
		}
		for i, o := range e.outs {
			if concerned[i] {
				t.sendControl(o, core.Control{Type: core.CtlMarker, ID: ch.Version, Body: c.Body})
			}
		}
	}
}

func (t *Task) fail(err error) {
	t.failed = true
	t.w.say(core.Msg{Type: core.MsgTaskFailed, Task: t.info.ID, Epoch: t.Epoch, Err: err.Error()})
}

// flush seals what is open and lets it go, so that nothing waits for a fuller batch than this step gave.
func (t *Task) flush() {
	for _, o := range t.outs {
		if o.open != nil {
			t.seal(o)
		}
	}
}

// dropInFlight forgets what a restored task would have to consume first.
func (t *Task) dropInFlight() {
	for _, b := range t.inFlight {
		b.Release()
	}
	t.inFlight, t.inFlightOff = nil, 0
}

func (t *Task) close() {
	if t.keyed != nil {
		for _, g := range t.moves.owned() {
			t.w.e.FreedBytes += t.keyed.Bytes(g)
		}
	}
	t.dropInFlight()
	for _, in := range t.ins {
		in.close()
	}
	for _, o := range t.outs {
		o.close()
	}
	if t.paged != nil {
		_ = t.paged.Close() // nobody needs it any more
	}
}
