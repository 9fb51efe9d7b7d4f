package task

import (
	"slices"

	"github.com/weir-bench/weir/engine/core"
)

// Out is the sending end of a channel: it numbers inputs, builds batches, keeps the sender log and sends to the primary
// and, where there is one, the standby of the receiving task. It is owned by one event loop.
type Out struct {
	Channel core.Channel
	// Epoch is the deployment epoch of the sending task.
	Epoch uint32
	// Held keeps outputs back: the task is a standby.
	Held bool

	hold      hold
	behind    []gateAt // of state that a standby gave away
	node      int      // of the sending task
	shares    bool     // sender and receiver each go back to checkpoints alone, and to the same ones when lost together
	local     bool     // they share and are on one worker: the sender makes again what the receiver misses, and need not keep it
	forgets   bool     // planted bug: what waits for a checkpoint is forgotten when it is consumed
	muted     bool     // what is emitted was emitted before: it gets no number
	next      uint64   // the number of the next input
	sent      uint64   // highest number ever sent to a primary
	ended     bool     // the end of the stream was emitted
	replays   bool     // planted bug: who begins without a past is sent what its predecessor was
	open      *core.Batch
	log       []*core.Batch
	head      int
	logBytes  int
	receivers []receiver
	safe      uint64 // numbers up to it need not be kept
	cut       int    // largest batch the receiver wants
	bounds    uint64 // how often the log has reached its bound
	bounded   bool   // it has, and has not been well below since
	spill     *spill // what is on disk of the log, before the rest; nil: nothing ever
}

// hold says until when sent inputs are kept.
type hold uint8

const (
	holdConsumed   hold = iota // until every receiver has consumed them; a standby that only has a base counts that
	holdCheckpoint             // until a complete checkpoint covers them
	holdSafe                   // until the receiver says that it needs them no more
)

// holdFor returns the hold of a channel by the protection of its receiver.
func holdFor(g *core.Graph, c core.Channel) hold {
	if c.To < 0 {
		return holdConsumed
	}
	switch p := g.Protection(c.To); {
	case p.Scope == core.ScopeTask:
		return holdCheckpoint
	case p.Strategy == core.RecoveryUpstream:
		return holdSafe
	}
	return holdConsumed
}

// gateAt is a gate for what is sent from number at on.
type gateAt struct {
	gate
	at uint64
}

// receiver is one place that a channel is sent to.
type receiver struct {
	node     int
	cursor   uint64 // next number to send
	consumed uint64 // as the receiver says, or at a standby what has arrived there
	done     uint64 // the last number that the receiver has said to have consumed
	safe     uint64 // as the receiver says
	got      uint64 // what the receiver expected next when it last said so
	openedAt uint64 // the number from which a receiver without a past was sent to, 0: not yet
	limit    uint64
	synced   bool   // the receiver has said what it wants
	end      uint64 // of a feed: the number of an end that must be sent again
}

// NewOut returns the sending end whose next input has number next.
func NewOut(c core.Channel, epoch uint32, next uint64) *Out {
	return &Out{Channel: c, Epoch: epoch, next: next, safe: next - 1, cut: core.MaxBatch}
}

// SetReceivers sets the nodes of the receiving task, primary first. A node that stays keeps its position; a new one is
// sent to from the number on that it asks for.
func (o *Out) SetReceivers(nodes []int) {
	old := o.receivers
	o.receivers = make([]receiver, len(nodes))
	for i, n := range nodes {
		o.receivers[i] = receiver{node: n}
		for _, r := range old {
			if r.node == n {
				o.receivers[i] = r
			}
		}
	}
	o.local = o.shares && !slices.ContainsFunc(nodes, func(n int) bool { return n != o.node })
}

// holds returns until when inputs are kept for the receivers that there are.
func (o *Out) holds() hold {
	if o.local {
		return holdConsumed
	}
	return o.hold
}

// Disconnected says that what was sent to node may be lost: it will be asked again.
func (o *Out) Disconnected(node int) {
	for i := range o.receivers {
		if o.receivers[i].node == node {
			o.receivers[i].synced = false
		}
	}
}

// seek lets the sending end, which must be empty, go on with number next.
func (o *Out) seek(next uint64) { o.next, o.safe = next, next-1 }

// Next returns the number of the next input.
func (o *Out) Next() uint64 { return o.next }

// LogBytes returns the size of the sender log.
func (o *Out) LogBytes() int { return o.logBytes }

// batch returns the batch being built.
func (o *Out) batch(p *core.Pool) *core.Batch {
	if o.open == nil {
		o.open = p.Get()
		o.open.Kind, o.open.Channel, o.open.Epoch = core.KindRecords, o.Channel.ID, o.Epoch
	}
	return o.open
}

// control seals the open batch and appends a control input.
func (o *Out) control(p *core.Pool, c core.Control) {
	o.seal()
	b := o.batch(p)
	b.Kind = core.KindControl
	b.Control.Type, b.Control.ID = c.Type, c.ID
	b.Control.Body = append(b.Control.Body[:0], c.Body...)
	o.ended = o.ended || c.Type == core.CtlEnd
	o.seal()
}

// seal numbers the open batch and appends it to the log.
func (o *Out) seal() {
	b := o.open
	if b == nil || (b.Kind == core.KindRecords && b.Len() == 0) {
		return
	}
	o.open = nil
	if o.muted {
		b.Release()
		return
	}
	b.First, b.Count = o.next, 1
	if b.Kind == core.KindRecords {
		b.Count = b.Len()
	}
	o.next += uint64(b.Count)
	if b.Last() <= o.safe { // replayed output that is safe already
		b.Release()
		return
	}
	o.log = append(o.log, b)
	o.logBytes += b.SizeBytes()
}

// watchBound counts how often the log reaches its bound, with no room on disk either.
func (o *Out) watchBound(logBound int) {
	switch {
	case o.logBytes > logBound && !o.bounded && (o.spill == nil || o.spill.noRoom):
		o.bounded = true
		o.bounds++
	case o.logBytes < logBound/2:
		o.bounded = false
	}
}

// full says whether the task must stop consuming: more waits here than the receiver has room for, or the log has
// reached its bound.
func (o *Out) full(logBound int) bool {
	if o.logBytes > logBound {
		o.watchBound(logBound)
		return true
	}
	if o.Held || len(o.receivers) == 0 {
		return false
	}
	r := &o.receivers[0]
	room := uint64(core.MaxBatch)
	if r.synced && r.limit > r.consumed {
		room = max(min(r.limit-r.consumed, 2*core.MaxBatch), 64)
	}
	from := max(r.cursor, o.safe+1)
	return o.next > from && o.next-from > room
}

// sendBehind holds what is emitted from now on back until a gate is passed.
func (o *Out) sendBehind(g gate) {
	o.passGates()
	o.behind = append(o.behind, gateAt{g, o.next})
}

// passGates returns the number from which on a gate that is not passed holds back what is to be sent.
func (o *Out) passGates() uint64 {
	k := 0
	for k < len(o.behind) && o.behind[k].passed() {
		k++
	}
	if o.behind = o.behind[k:]; len(o.behind) > 0 {
		return o.behind[0].at
	}
	o.behind = nil
	return ^uint64(0)
}

// transmit sends what the receivers have room for.
func (o *Out) transmit(send func(node int, b *core.Batch)) {
	if o.Held {
		return
	}
	end := ^uint64(0)
	if len(o.behind) > 0 {
		end = o.passGates()
	}
	for i := range o.receivers {
		r := &o.receivers[i]
		if !r.synced || r.cursor >= o.next {
			continue
		}
		if o.spill != nil && !o.sendSpilled(i, end, send) {
			continue
		}
		for k := o.find(r.cursor); k < len(o.log); k++ {
			b := o.log[k]
			if b.First > r.limit || b.First >= end {
				break
			}
			send(r.node, b)
			r.cursor = b.Last() + 1
			if i == 0 {
				o.sent = max(o.sent, b.Last())
			}
		}
	}
}

// find returns the index of the first logged batch that ends at number n or later.
func (o *Out) find(n uint64) int {
	lo, hi := o.head, len(o.log)
	if hi > lo && o.log[hi-1].Last() < n {
		return hi
	}
	for lo < hi {
		if mid := (lo + hi) / 2; o.log[mid].Last() < n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// acknowledge takes an ack of the receiver and trims the log. It says whether the receiver misses inputs that the log no longer
// holds, which must not happen while it is trimmed only by what is safe, and whether the receiver begins anew without a past.
func (o *Out) acknowledge(a core.Ack) (lost, anew bool) {
	least := ^uint64(0)
	for i := range o.receivers {
		r := &o.receivers[i]
		if r.node == a.From {
			if a.Next == 0 {
				anew = o.begin(r, &a)
			}
			if a.Next < r.got {
				return false, false // overtaken: of a connection that broke
			}
			r.got = a.Next
			if a.Resync || !r.synced || o.Held {
				r.cursor, r.synced = a.Next, true
			}
			r.consumed, r.limit, r.safe = max(r.consumed, a.Consumed), max(r.limit, a.Limit), max(r.safe, a.Safe)
			r.done = max(r.done, a.Consumed)
			if i == 0 {
				o.cut = int(min(max((r.limit-r.consumed)/2, 16), core.MaxBatch))
			}
			lost = a.Next <= o.safe
		}
		if o.Held && r.cursor > 0 && o.hold == holdConsumed { // what has arrived from the primary is in the receiver's hands
			r.consumed = max(r.consumed, r.cursor-1)
		}
		if o.hold == holdSafe {
			least = min(least, r.safe)
		} else {
			least = min(least, r.consumed)
		}
	}
	if (o.holds() != holdCheckpoint || o.forgets) && len(o.receivers) > 0 && least != ^uint64(0) {
		if !o.Held {
			least = min(least, o.next-1)
		}
		o.safe = max(o.safe, least)
	}
	o.trim()
	return lost && !o.Held, anew
}

// begin answers a receiver that takes whatever comes: it gets what was not sent to its predecessor. It turns the ack into
// one that knows the number, and says whether the receiver asked for the first time.
func (o *Out) begin(r *receiver, a *core.Ack) (first bool) {
	if first = r.openedAt == 0; first {
		r.openedAt = max(o.sent, o.safe) + 1
		if o.replays {
			r.openedAt = o.safe + 1
		}
		r.got = r.openedAt
	}
	a.Next, a.Consumed, a.Safe, a.Resync = r.openedAt, r.openedAt-1, r.openedAt-1, !r.synced
	a.Limit += a.Consumed
	return first
}

// cover trims a log that waits for checkpoints: one up to number upto is complete.
func (o *Out) cover(upto uint64) {
	if o.hold == holdCheckpoint {
		o.safe = max(o.safe, upto)
		o.trim()
	}
}

func (o *Out) trim() {
	if o.spill != nil {
		o.spill.trim(o.safe)
	}
	o.release(o.safe)
}

// release takes the inputs up to number upto out of the log in memory.
func (o *Out) release(upto uint64) {
	for o.head < len(o.log) && o.log[o.head].Last() <= upto {
		b := o.log[o.head]
		o.logBytes -= b.SizeBytes()
		o.log[o.head] = nil
		b.Release()
		o.head++
	}
	if o.head == len(o.log) {
		o.log, o.head = o.log[:0], 0
	} else if o.head > 256 && o.head*2 > len(o.log) {
		o.log = append(o.log[:0], o.log[o.head:]...)
		o.head = 0
	}
}

// close gives all batches back.
func (o *Out) close() {
	o.safe = ^uint64(0)
	o.trim()
	if o.spill != nil {
		o.spill.close()
	}
	if o.open != nil {
		o.open.Release()
		o.open = nil
	}
}

// takeOver sets the position of a promoted task's primary receiver, which has told what it expects next; other
// receivers will ask.
func (o *Out) takeOver(next uint64) {
	for i := range o.receivers {
		r := &o.receivers[i]
		r.synced = false
		if i == 0 && next > 0 {
			r.cursor, r.synced, r.consumed, r.limit = next, true, max(r.consumed, next-1), next+firstWindowRecords
			o.sent = max(o.sent, next-1)
		}
	}
	for _, b := range o.log[o.head:] {
		b.Epoch = o.Epoch
	}
	if o.spill != nil { // what was read back is of the old epoch
		o.spill.dropPiece()
	}
	o.trim()
}
