package task

import (
	"slices"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
)

// FeedSource gives the records of one split of the feed: record j (from 0) of split s is a pure function, so that any
// offset can be read again and nothing is stored.
type FeedSource interface {
	// Fill appends records [from, from+n) of split s of splits to dst.
	Fill(dst *core.Columns, split, splits int, from uint64, n int)
}

// Output is what the collector is given: records of one sink, in the order of their channel.
type Output struct {
	Channel int
	Task    int
	Columns *core.Columns
	// Committed is when the records became visible, on the harness's clock: their arrival, or for a transactional
	// sink the completion of the checkpoint that covers them.
	CommittedNS int64
	// Epoch is the epoch in which the sink was deployed.
	Epoch uint32
}

// Edge is the harness's end of the job: the feed's and the coordinator's sending ends and the collector's receiving
// ends. Like Worker it is a pure machine owned by one event loop.
type Edge struct {
	Clock func() int64
	Feed  FeedSource
	// Collect is called with every output, once its number is new; nothing is kept.
	Collect func(Output)
	// Lost counts outputs of transactions that were rolled back.
	RolledBack uint64

	graph *core.Graph
	w     Worker // places, pool and order logs work as in a worker
	feeds []*feedOut
	ended int
	sinks []*sinkIn
	total []uint64     // records of a bounded feed, by split; 0: no end
	view  core.Columns // what Collect is given
}

// feedOut is the sending end of a feed channel. Input number n is the split's record n-1; behind the last record of a
// bounded feed comes its end.
type feedOut struct {
	channel  core.Channel
	epoch    uint32
	split    int
	receiver []receiver
	sent     uint64 // highest number ever sent to a primary: what was emitted
}

// sinkIn is the receiving end of an output channel with its open transactions.
type sinkIn struct {
	in            *In
	transactional bool
	pending       []waiting // outputs and barriers not yet committed
	barrier       uint64    // the last one that came
	ended         bool
}

// NewEdge returns the harness's end. It is silent until Deploy.
func NewEdge(clock func() int64, feed FeedSource, collect func(Output)) *Edge {
	e := &Edge{Clock: clock, Feed: feed, Collect: collect}
	e.w = Worker{Node: Harness, Clock: clock}
	return e
}

// Pool returns the edge's batches, for the world that decodes frames.
func (g *Edge) Pool() *core.Pool { return &g.w.pool }

// Deploy begins an epoch: all channels start anew, except that feeds go on where their sources ask.
func (g *Edge) Deploy(m *core.Msg) error {
	graph, err := core.BuildGraph(*m.Job, operator.Info)
	if err != nil {
		return err
	}
	var drop Effects
	g.w.e = &drop
	old := g.feeds
	for _, s := range g.sinks {
		g.drop(s)
	}
	for _, o := range g.w.outs {
		if o != nil {
			o.close()
		}
	}
	g.graph, g.w.graph, g.w.epoch, g.w.places = graph, graph, m.Epoch, slices.Clone(m.Places)
	g.w.ins, g.w.outs = make([]*In, len(graph.Channels)), make([]*Out, len(graph.Channels))
	g.w.tasks, g.w.holds, g.w.dirtyO = make([]*Task, len(graph.Tasks)), make([]*core.OrderLog, len(graph.Tasks)), nil
	g.feeds, g.sinks, g.ended = nil, nil, 0
	for _, c := range graph.Channels {
		switch {
		case c.Kind == core.ChanFeed:
			g.addFeed(c, old)
		case c.Kind == core.ChanControl:
			o := NewOut(c, m.Epoch, 1)
			o.hold = holdFor(graph, c)
			o.SetReceivers(g.w.receivers(c))
			g.w.outs[c.ID] = o
		case c.Kind == core.ChanOut:
			op := graph.Job.Operators[graph.Tasks[c.From].Operator]
			in := NewIn(c, m.Epoch, 1, g.w.senders(c), &graph.Job)
			g.w.ins[c.ID] = in
			g.sinks = append(g.sinks, &sinkIn{in: in, transactional: op.Transactional})
		}
	}
	return nil
}

func (g *Edge) addFeed(c core.Channel, old []*feedOut) {
	f := &feedOut{channel: c, epoch: g.w.epoch, split: len(g.feeds)}
	f.restart(g.w.receivers(c))
	for _, o := range old {
		if o.split == f.split {
			f.sent = o.sent
		}
	}
	g.feeds = append(g.feeds, f)
	g.known(f.split)
}

// restart forgets what the receivers have asked for.
func (f *feedOut) restart(nodes []int) {
	f.receiver = nil
	for _, n := range nodes {
		f.receiver = append(f.receiver, receiver{node: n, cursor: 1})
	}
}

// Start asks the sinks for their outputs.
func (g *Edge) Start(e *Effects) {
	g.w.e = e
	for _, s := range g.sinks {
		g.w.askAgain(s.in)
	}
}

// StartOf asks the sinks among tasks for their outputs.
func (g *Edge) StartOf(tasks []int, e *Effects) {
	g.w.e = e
	for _, s := range g.sinks {
		if slices.Contains(tasks, s.in.Channel.From) {
			g.w.askAgain(s.in)
		}
	}
}

// known makes room for what is known of a split.
func (g *Edge) known(split int) {
	for len(g.total) <= split {
		g.total = append(g.total, 0)
	}
}

// Bound ends split's feed after n records.
func (g *Edge) Bound(split int, n uint64) {
	g.known(split)
	g.total[split] = n
}

// Splits returns the number of feed splits.
func (g *Edge) Splits() int { return len(g.feeds) }

// Emitted returns how many records of split were ever sent.
func (g *Edge) Emitted(split int) uint64 {
	for _, f := range g.feeds {
		if f.split == split {
			if t := g.total[split]; t > 0 {
				return min(f.sent, t)
			}
			return f.sent
		}
	}
	return 0
}

// Emit sends what is due and has room, at most about quota records, and says whether more could go at once. due is the
// number of records of each split whose intended time has come.
func (g *Edge) Emit(due []uint64, quota int, e *Effects) (more bool) {
	g.w.e = e
	for _, f := range g.feeds {
		for i := range f.receiver {
			r := &f.receiver[i]
			last := due[f.split]
			if t := g.total[f.split]; t > 0 && last >= t {
				last = max(t+1, r.end) // with the end
			}
			for r.synced && r.cursor <= min(last, r.limit) {
				if quota <= 0 {
					return true
				}
				quota -= g.emitOne(f, r, last, i == 0)
			}
		}
	}
	return false
}

func (g *Edge) emitOne(f *feedOut, r *receiver, last uint64, primary bool) int {
	b := g.w.pool.Get()
	b.Channel, b.Epoch, b.First = f.channel.ID, f.epoch, r.cursor
	t := g.total[f.split]
	if t > 0 && r.cursor >= t+1 {
		b.Kind, b.Count, b.Control.Type = core.KindControl, 1, core.CtlEnd
	} else {
		n := min(last-r.cursor+1, r.limit-r.cursor+1, core.MaxBatch)
		if t > 0 {
			n = min(n, t-r.cursor+1)
		}
		b.Kind, b.Count = core.KindRecords, int(n)
		g.Feed.Fill(&b.Columns, f.split, len(g.feeds), r.cursor-1, int(n))
	}
	n := b.Count
	r.cursor += uint64(n)
	if primary {
		f.sent = max(f.sent, r.cursor-1)
	}
	g.w.e.Sends = append(g.w.e.Sends, Send{r.node, b})
	return n
}

// Control sends a control input to a task and returns its number.
func (g *Edge) Control(task int, c core.Control, e *Effects) {
	g.w.e = e
	o := g.w.outs[g.graph.Tasks[task].Ins[0]]
	o.control(&g.w.pool, c)
	o.transmit(g.w.send)
}

// Frame takes a batch that arrived from a worker. The caller keeps its reference.
func (g *Edge) Frame(b *core.Batch, e *Effects) {
	g.w.e = e
	if b.Channel < 0 || b.Channel >= len(g.w.ins) {
		return
	}
	if b.Kind == core.KindOrder {
		g.w.orderFrame(b)
		return
	}
	if b.Kind != core.KindAck {
		if in := g.w.ins[b.Channel]; in != nil {
			g.w.accept(in, b)
		}
		return
	}
	for _, f := range g.feeds {
		if f.channel.ID == b.Channel {
			if b.Epoch == f.epoch {
				f.acknowledge(b.Ack, g.total[f.split])
			}
			return
		}
	}
	if o := g.w.outs[b.Channel]; o != nil {
		g.w.Frame(b, e)
	}
}

func (f *feedOut) acknowledge(a core.Ack, total uint64) {
	for i := range f.receiver {
		r := &f.receiver[i]
		if r.node == a.From && a.Next == 0 { // it takes whatever was not sent yet
			if r.openedAt == 0 {
				r.openedAt = f.sent + 1
			}
			a.Next, a.Consumed, a.Resync, a.Limit = r.openedAt, r.openedAt-1, !r.synced, a.Limit+r.openedAt-1
		}
		if r.node == a.From && a.Next >= r.got {
			r.got = a.Next
			if a.Resync || !r.synced {
				r.cursor, r.synced = a.Next, true
				if t := total; t > 0 && a.Next > t+1 && r.end == 0 {
					r.end = a.Next // it had read the end before a rollback and needs to be told again
				}
			}
			r.limit, r.consumed = max(r.limit, a.Limit), max(r.consumed, a.Consumed)
		}
	}
}

// Drain hands what arrived to the collector and acknowledges it.
func (g *Edge) Drain(e *Effects) {
	g.w.e = e
	now := g.Clock()
	for _, s := range g.sinks {
		for b, off := s.in.peek(); b != nil; b, off = s.in.peek() {
			g.collect(s, b, off, now)
			s.in.take(b.Count - off)
		}
		if s.in.consumed > s.in.acked {
			g.w.sendAck(s.in, now, false, s.in.prompt)
			s.in.prompt = false
		}
	}
}

func (g *Edge) collect(s *sinkIn, b *core.Batch, off int, now int64) {
	if b.Kind == core.KindControl && b.Control.Type == core.CtlBarrier {
		s.barrier = b.Control.ID
	}
	if b.Kind == core.KindControl && b.Control.Type == core.CtlEnd {
		if s.ended {
			return
		}
		s.ended = true
		g.ended++
		if g.ended == len(g.sinks) {
			g.commit(^uint64(0), now) // nothing can be rolled back any more
		}
		return
	}
	if s.transactional {
		s.pending = append(s.pending, waiting{b.Retain(), off})
		if g.graph.Job.Bug("commit-at-barrier") && s.barrier > 0 {
			g.commit(s.barrier, now)
		}
		return
	}
	g.deliver(s, b, off, now)
}

func (g *Edge) deliver(s *sinkIn, b *core.Batch, off int, now int64) {
	if b.Kind != core.KindRecords {
		return
	}
	g.view = b.Slice(off, b.Count)
	g.Collect(Output{Channel: b.Channel, Task: s.in.Channel.From, Columns: &g.view, CommittedNS: now, Epoch: b.Epoch})
}

// Commit makes the outputs before the barriers of a complete checkpoint visible.
func (g *Edge) Commit(checkpoint uint64) { g.commit(checkpoint, g.Clock()) }

func (g *Edge) commit(checkpoint uint64, now int64) {
	for _, s := range g.sinks {
		upto := 0
		for i, p := range s.pending {
			if b := p.b; b.Kind == core.KindControl && b.Control.Type == core.CtlBarrier && b.Control.ID <= checkpoint {
				upto = i + 1
			}
		}
		if checkpoint == ^uint64(0) {
			upto = len(s.pending)
		}
		for _, p := range s.pending[:upto] {
			g.deliver(s, p.b, p.skip, now)
			p.b.Release()
		}
		s.pending = append(s.pending[:0], s.pending[upto:]...)
	}
}

// Covered trims the logs of control channels: a checkpoint is complete at which the tasks stood as told.
func (g *Edge) Covered(cuts map[int]*core.Position) { g.w.covered(cuts) }

// Rewind begins the channels to and from tasks anew that are deployed again without the rest of the job, in the given
// epoch. What they gave since the newest complete checkpoint comes again; of transactional sinks it is rolled back.
func (g *Edge) Rewind(tasks []int, epoch uint32) {
	again := make([]bool, len(g.graph.Tasks))
	for _, t := range tasks {
		again[t] = true
	}
	for _, f := range g.feeds {
		if again[f.channel.To] {
			f.epoch = epoch
			f.restart(g.w.receivers(f.channel))
		}
	}
	for _, t := range tasks {
		c := g.graph.Channels[g.graph.Tasks[t].Ins[0]]
		g.w.outs[c.ID].close()
		o := NewOut(c, epoch, 1)
		o.hold = holdFor(g.graph, c)
		o.SetReceivers(g.w.receivers(c))
		g.w.outs[c.ID] = o
	}
	for _, s := range g.sinks {
		if !again[s.in.Channel.From] || g.graph.Job.Bug("region-keeps-outputs") {
			continue
		}
		g.drop(s)
		s.in = NewIn(s.in.Channel, epoch, 1, g.w.senders(s.in.Channel), &g.graph.Job)
		g.w.ins[s.in.Channel.ID] = s.in
		if s.ended {
			s.ended = false
			g.ended--
		}
	}
}

// drop forgets what came from a sink and was not made visible.
func (g *Edge) drop(s *sinkIn) {
	s.in.close()
	for _, p := range s.pending {
		if p.b.Kind == core.KindRecords {
			g.RolledBack += uint64(p.b.Count - p.skip)
		}
		p.b.Release()
	}
	s.pending = nil
}

// Ended says whether every sink has sent its end of stream.
func (g *Edge) Ended() bool { return len(g.sinks) > 0 && g.ended == len(g.sinks) }

// Uncommitted returns how many outputs wait for a checkpoint.
func (g *Edge) Uncommitted() (n uint64) {
	for _, s := range g.sinks {
		for _, p := range s.pending {
			if p.b.Kind == core.KindRecords {
				n += uint64(p.b.Count - p.skip)
			}
		}
	}
	return n
}

// Fenced returns how many batches of fenced senders were refused and how many came again.
func (g *Edge) Fenced() (fenced, dups uint64) {
	for _, s := range g.sinks {
		fenced += s.in.Fenced
		dups += s.in.Dups
	}
	return fenced, dups
}

// Fence is Worker.fence for the collector's ends; the answer is appended to e.Msgs.
func (g *Edge) Fence(m *core.Msg, e *Effects) {
	g.w.e = e
	g.w.fence(m)
}

// Topology learns where tasks are now.
func (g *Edge) Topology(places []core.Place, e *Effects) {
	g.w.e = e
	g.w.topology(places)
	for _, f := range g.feeds {
		nodes := g.w.receivers(f.channel)
		old := f.receiver
		f.receiver = nil
		for _, n := range nodes {
			r := receiver{node: n, cursor: 1}
			for _, o := range old {
				if o.node == n {
					r = o
				}
			}
			f.receiver = append(f.receiver, r)
		}
	}
}

// ConnUp says that node reached the harness anew.
func (g *Edge) ConnUp(node int, e *Effects) {
	if g.graph == nil {
		return
	}
	g.w.ConnUp(node, e)
}

// ConnDown says that what was sent to node may be lost.
func (g *Edge) ConnDown(node int, e *Effects) {
	g.w.ConnDown(node, e)
	for _, f := range g.feeds {
		for i := range f.receiver {
			if f.receiver[i].node == node {
				f.receiver[i].synced = false
			}
		}
	}
}

// Tick acknowledges what is idle.
func (g *Edge) Tick(e *Effects) {
	g.w.e = e
	now := g.Clock()
	g.w.ticks++
	for _, s := range g.sinks {
		if s.in.consumed > s.in.acked || s.in.gap || g.w.ticks%resyncTicks == 0 {
			g.w.sendAck(s.in, now, s.in.gap, true)
		}
	}
}

// FeedConsumed returns the highest record of split that a source has said to have consumed in this epoch.
func (g *Edge) FeedConsumed(split int) uint64 {
	for _, f := range g.feeds {
		if f.split == split && len(f.receiver) > 0 {
			return f.receiver[0].consumed
		}
	}
	return 0
}

// SawBarrier says whether all outputs before the barrier of a checkpoint have arrived. A checkpoint must not complete
// before: what is under way is in nobody's snapshot and would be lost with its sender.
func (g *Edge) SawBarrier(checkpoint uint64) bool {
	for _, s := range g.sinks {
		if s.barrier < checkpoint {
			return false
		}
	}
	return true
}
