package task

import (
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// roundClock notes how far a task's part in a round has got, on its node's clock; 0: not yet. It measures only: nothing that
// a task does depends on it, so that a standby, which goes through the same rounds at other times, ends in the same state.
type roundClock struct {
	markedNS   int64 // the first marker
	freeNS     int64 // the state may go, or the first of it has come
	lastByteNS int64 // the last of it has gone or come
	install    time.Duration
	sent       int64
	undrained  int // key groups whose waiting records are not all worked on
	finished   bool
}

// mark notes the first marker.
func (c *roundClock) mark(nowNS int64) {
	if c.markedNS == 0 {
		c.markedNS = nowNS
	}
}

// chunk notes a chunk of state that has gone or come.
func (c *roundClock) chunk(beganNS, endedNS int64) {
	if c.freeNS == 0 {
		c.freeNS = beganNS
	}
	c.lastByteNS = endedNS
}

// report tells the coordinator of a round in which nothing is left to do and no record waits any more.
func (m *moves) report(t *Task, r *round) {
	c := &r.clock
	if !c.finished || c.undrained > 0 {
		return
	}
	p := &core.RoundReport{LastByteNS: c.lastByteNS, Install: c.install, Suspended: m.blocked.take(t.w.Clock())}
	if c.freeNS > 0 {
		p.Transfer = time.Duration(c.lastByteNS - c.freeNS)
		if c.markedNS > 0 {
			p.Freeze = time.Duration(max(0, c.freeNS-c.markedNS))
		}
		if r.waited > 0 {
			p.Drain = time.Duration(max(0, t.w.Clock()-c.lastByteNS))
		}
	}
	if t.Role == core.RolePrimary {
		t.w.say(core.Msg{Type: core.MsgRound, Task: t.info.ID, Epoch: t.Epoch, ID: r.version, Bytes: r.bytes + c.sent, Records: r.waited, Round: p})
	}
}

// blocked adds up the time in which a task was paused, or in which records of its key groups waited for their state.
type blocked struct {
	waiting int // records
	paused  bool
	sinceNS int64
	total   time.Duration
}

// set changes what blocks the task.
func (b *blocked) set(waiting int, paused bool, nowNS int64) {
	was, is := b.waiting > 0 || b.paused, waiting > 0 || paused
	b.waiting, b.paused = waiting, paused
	switch {
	case is && !was:
		b.sinceNS = nowNS
	case was && !is:
		b.total += time.Duration(nowNS - b.sinceNS)
	}
}

// take returns the time that was not taken yet.
func (b *blocked) take(nowNS int64) time.Duration {
	if b.waiting > 0 || b.paused {
		b.total += time.Duration(nowNS - b.sinceNS)
		b.sinceNS = nowNS
	}
	d := b.total
	b.total = 0
	return d
}

// throttle is a token bucket: it bounds the bytes a second that a task sends of its state.
type throttle struct{ nextNS int64 }

// throttleBurst is how much the bucket holds, as time: what a late wake-up lost is made good up to so much.
const throttleBurst = int64(10 * time.Millisecond)

// ready says whether something may be sent now; if not, the task is to be woken when it may.
func (b *throttle) ready(nowNS int64, e *Effects) bool {
	if nowNS < b.nextNS {
		e.wake(b.nextNS)
		return false
	}
	return true
}

// sent takes n bytes out of the bucket, also more than there are: what is larger than the bucket goes in one piece.
func (b *throttle) sent(n int, bytesPerS uint64, nowNS int64) {
	b.nextNS = max(b.nextNS, nowNS-throttleBurst) + int64(float64(n)/float64(bytesPerS)*1e9)
}
