package task

import "github.com/weir-bench/weir/engine/core"

// In is the receiving end of a channel. It accepts inputs in the order of their numbers, drops what it has seen, asks
// for what it misses and refuses what a fenced sender sends. It is owned by one event loop.
type In struct {
	Channel core.Channel
	// Epoch is the deployment epoch of the sender that is accepted; older ones are fenced.
	Epoch uint32
	// Senders are the nodes of the sending task (primary first); acks go to all of them.
	Senders []int

	next     uint64 // the number that must come next
	consumed uint64 // the last number consumed
	queue    []waiting
	head     int // index in queue of the first batch
	off      int // inputs of the first batch already consumed
	queued   uint64

	silent bool   // the task is not there yet: nothing is asked for or acknowledged
	closed bool   // the task is a copy that only has a base: it acknowledges that, and takes nothing
	open   bool   // the task has no past: it takes whatever comes next
	bases  bool   // what is safe is told by keep, else what is consumed is
	kept   uint64 // number up to which nothing is needed again
	bytes  int    // of the batches consumed since the task's base was last cut
	wanted uint64 // the sender needs a base that covers this number, 0: none does
	held   uint64 // what came before this number is here, and perhaps not in the log of a sender that took over since

	blocked bool // waits for the other channels' barriers
	paused  bool // waits for the end of a round of mode MovePause
	prompt  bool // a tick was consumed: the sender waits to hear of it
	barrier bool // its barrier of the pending checkpoint has come
	ended   bool

	window                window
	acked                 uint64 // consumed as last told to the sender
	limit                 uint64
	Fenced, Dups, Missing uint64
	asked                 uint64 // the gap that was last asked for
	// gap says that inputs may be missing: ones before what arrived last, or all since the sender's connection came
	// anew. Until something arrives in order the sender is asked again and again, as the asking may be lost too.
	gap bool
}

// waiting is an arrived batch of which the first skip inputs had been seen before. The batch itself may be shared with
// the sender's log, so it is never cut.
type waiting struct {
	b    *core.Batch
	skip int
}

// NewIn returns the receiving end that expects number next.
func NewIn(c core.Channel, epoch uint32, next uint64, senders []int, job *core.Job) *In {
	in := &In{Channel: c, Epoch: epoch, next: next, consumed: next - 1, Senders: senders}
	in.acked = in.consumed
	in.window.init(job)
	return in
}

// seek lets the receiving end, which must be empty, expect number next.
func (in *In) seek(next uint64) {
	in.next, in.consumed, in.acked, in.kept, in.limit = next, next-1, next-1, next-1, 0
}

// Next returns the number that is expected next; all before it have arrived.
func (in *In) Next() uint64 { return in.next }

// Consumed returns the number of the last consumed input.
func (in *In) Consumed() uint64 { return in.consumed }

// Queued returns how many inputs wait.
func (in *In) Queued() uint64 { return in.queued }

// Accept takes an arriving batch and says whether the sender must send again from Next on. The caller keeps its own
// reference.
func (in *In) Accept(b *core.Batch, bugSkipFence, bugSkipDedup bool) (resync bool) {
	if b.Epoch < in.Epoch && !bugSkipFence {
		in.Fenced++
		return false
	}
	if b.Epoch > in.Epoch {
		// The sender was redeployed and its announcement is still under way: it will be asked to send again.
		in.Missing++
		return false
	}
	if in.closed || in.silent {
		return false
	}
	if in.open {
		in.seek(b.First)
		in.open = false
	}
	if b.First > in.next {
		in.Missing++
		in.gap = true
		if in.asked == in.next {
			return false // asked already; the answer is under way
		}
		in.asked = in.next
		return true
	}
	if b.Last() < in.next && !bugSkipDedup {
		in.Dups++
		return false
	}
	skip := 0
	if b.First < in.next && !bugSkipDedup {
		in.Dups++
		skip = int(in.next - b.First)
	}
	in.next, in.gap = b.Last()+1, false
	in.push(b.Retain(), skip)
	return false
}

func (in *In) push(b *core.Batch, skip int) {
	if in.head > 64 && in.head*2 > len(in.queue) {
		in.queue = append(in.queue[:0], in.queue[in.head:]...)
		in.head = 0
	}
	if in.head == len(in.queue) {
		in.off = skip
	}
	in.queue = append(in.queue, waiting{b, skip})
	in.queued += uint64(b.Count - skip)
}

// peek returns the first waiting batch and how many of its inputs are consumed already.
func (in *In) peek() (*core.Batch, int) {
	if in.head == len(in.queue) {
		return nil, 0
	}
	return in.queue[in.head].b, in.off
}

// take consumes n inputs of the first batch.
func (in *In) take(n int) {
	b := in.queue[in.head].b
	in.off += n
	in.consumed += uint64(n)
	in.queued -= uint64(n)
	in.window.consumed += uint64(n)
	in.prompt = in.prompt || b.Control.Type == core.CtlTick
	if in.off < b.Count {
		return
	}
	in.off = 0
	in.bytes += b.SizeBytes()
	in.queue[in.head].b = nil
	in.head++
	b.Release()
	if in.head == len(in.queue) {
		in.queue, in.head = in.queue[:0], 0
		return
	}
	in.off = in.queue[in.head].skip
}

// close gives all waiting batches back.
func (in *In) close() {
	for b, _ := in.peek(); b != nil; b, _ = in.peek() {
		in.take(b.Count - in.off)
	}
}

// ack returns what to tell the sender, and whether it is worth a frame now: a quarter of the window was consumed, or the
// window has grown by half.
func (in *In) ack(nowNS int64) (core.Ack, bool) {
	if in.closed {
		return core.Ack{Next: in.next, Consumed: in.consumed, Safe: in.consumed, Limit: in.consumed}, false
	}
	w := in.window.size(nowNS)
	if in.open {
		return core.Ack{Limit: w}, false
	}
	worth := in.consumed-in.acked >= w/4+1 || in.consumed+w > in.limit+w/2
	in.limit = max(in.limit, in.consumed+w)
	if worth {
		in.acked = in.consumed
	}
	a := core.Ack{Next: in.next, Consumed: in.consumed, Safe: in.consumed, Limit: in.limit}
	if in.bases {
		a.Safe = in.kept
	}
	return a, worth
}

// window sizes the room that is granted to a sender so that about `delay` of work waits in the channel: a fixed size
// would be seconds of work for a slow task, and barriers and moves would wait behind it.
type window struct {
	max, low  uint64
	delayNS   int64
	consumed  uint64 // since sinceNS
	sinceNS   int64
	ratePerNS float64
	records   uint64
}

const (
	firstWindowRecords = 4096
	rateSpanNS         = 10e6
)

func (w *window) init(job *core.Job) {
	w.max, w.delayNS = uint64(job.WindowRecords), int64(job.WindowDelay)
	w.low = min(256, w.max)
	w.records = min(firstWindowRecords, w.max)
}

func (w *window) size(nowNS int64) uint64 {
	if w.sinceNS == 0 {
		w.sinceNS = nowNS
	}
	if span := nowNS - w.sinceNS; span >= rateSpanNS {
		rate := float64(w.consumed) / float64(span)
		w.ratePerNS += (rate - w.ratePerNS) / 2
		w.consumed, w.sinceNS = 0, nowNS
		w.records = min(max(uint64(w.ratePerNS*float64(w.delayNS)), w.low), w.max)
	}
	return w.records
}
