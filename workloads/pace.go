package workloads

import "time"

// Catch-up policies, for CatchUp.Policy.
const (
	CatchUpBurst = "burst" // send all that is due at once
	CatchUpLimit = "limit" // send at most Factor times the scheduled rate
	CatchUpSkip  = "skip"  // drop what is overdue by more than After, and count it
)

// Pacer decides what a feed sends after a stall of the harness. It is a pure
// state machine: times come in as arguments. Always
// scheduled = emitted + skipped + pending, where scheduled is Stream.Due.
//
// A value serves one goroutine.
type Pacer struct {
	policy           CatchUp
	stream           Stream
	emitted, skipped uint64
	credit           float64 // records that limit allows now
	last             time.Duration
}

// NewPacer returns a pacer for a stream (a split, usually), of which it keeps a
// clone.
func NewPacer(policy CatchUp, stream Stream) *Pacer {
	return &Pacer{policy: policy, stream: stream.Clone(), last: -1}
}

// limitWindow bounds what the limit policy lets through at once: a backlog never
// goes faster than Factor times the schedule over this time.
const limitWindow = 10 * time.Millisecond

// Next tells what to do at time now, which must not decrease: first leave out
// skip records, then send the next send ones. The records to send are
// [from, from+send). most bounds send (0: no bound), as a batch does; what it
// holds back is offered again. Under the limit policy it is to be called at
// least every 10 ms, for a longer gap counts as a stall.
func (p *Pacer) Next(now time.Duration, most uint64) (from, skip, send uint64) {
	due := p.stream.Due(now)
	at := p.emitted + p.skipped
	if p.policy.Policy == CatchUpSkip {
		if stale := p.stream.Due(now - p.policy.After - 1); stale > at {
			skip = stale - at
		}
	}
	send = due - min(due, at+skip)
	if p.policy.Policy == CatchUpLimit {
		send = min(send, p.allowance(now))
	}
	if most > 0 {
		send = min(send, most)
	}
	if p.policy.Policy == CatchUpLimit {
		p.credit -= float64(send)
	}
	p.skipped += skip
	p.emitted += send
	return at + skip, skip, send
}

// allowance adds the credit earned since the last call and returns the whole
// records it allows. Each record that fell due since earns Factor records, and
// so does, in a gap of the schedule, the mean rate of the last second. A stall
// itself earns no more than limitWindow does.
func (p *Pacer) allowance(now time.Duration) uint64 {
	due := p.stream.Due(now)
	rate := float64(due - p.stream.Due(now-time.Second)) // records/s
	fresh := float64(due - p.stream.Due(p.last))
	earned := p.policy.Factor * max(fresh, rate*(now-p.last).Seconds())
	recent := float64(due - p.stream.Due(now-limitWindow))
	// Here a stall's credit is cut to that of limitWindow.
	p.credit = min(p.credit+earned, p.policy.Factor*max(recent, rate*limitWindow.Seconds())+1)
	p.last = now
	return uint64(p.credit)
}

// Counts returns how many records were scheduled by now, and what became of
// them: scheduled = emitted + skipped + pending.
func (p *Pacer) Counts(now time.Duration) (scheduled, emitted, skipped, pending uint64) {
	scheduled = max(p.stream.Due(now), p.emitted+p.skipped)
	return scheduled, p.emitted, p.skipped, scheduled - p.emitted - p.skipped
}
