package core

// MaxBatch is the largest number of records in one batch.
const MaxBatch = 4096

// Kind says what a batch holds.
type Kind uint8

// The kinds of batches and frames.
const (
	KindRecords Kind = 1 + iota // Count numbered records, in columns
	KindControl                 // one numbered control input
	KindAck                     // not numbered: what the receiver of a channel has and wants
	KindMessage                 // not numbered: control plane, a JSON body in Ext
	KindOrder                   // not numbered: a part of the sending task's order log
	KindShip                    // not numbered: a part of a task's state and position for its standby, or an answer
	kindEnd
)

// Batch is how inputs travel and are worked on: Count inputs of one channel, numbered First, First+1, …. Where a batch
// is cut never changes a result.
//
// A batch comes from a Pool and is counted by reference within one event loop: whoever keeps it calls Retain, and
// Release when done. It is not safe for concurrent use.
type Batch struct {
	Kind    Kind
	Channel int
	// Epoch is the deployment epoch of the sending task (of the receiving task for an ack); older ones are fenced.
	Epoch uint32
	First uint64
	Count int
	// Control is set when Kind is KindControl.
	Control Control
	// Ack is set when Kind is KindAck.
	Ack Ack
	// OrderAfter and Order carry a task's order log from position OrderAfter on, when Kind is KindOrder. When it is
	// KindShip, First is the number of the ship, OrderAfter that of the part and Control.ID says what the part is.
	OrderAfter uint64
	Order      []byte
	Columns
	// ArrivedNS is when the batch reached this node, on the node's clock; it is not encoded.
	ArrivedNS int64

	refs int
	pool *Pool
}

// Last returns the number of the batch's last input.
func (b *Batch) Last() uint64 { return b.First + uint64(b.Count) - 1 }

// SizeBytes returns about how much memory the batch's content takes; it is what bounds of bytes count.
func (b *Batch) SizeBytes() int {
	return headerBytes + 8*(len(b.Keys)+len(b.Times)+len(b.Vals)) + 4*len(b.Off) + len(b.Ext) + len(b.Order) + len(b.Control.Body)
}

// Retain adds a reference.
func (b *Batch) Retain() *Batch { b.refs++; return b }

// Release gives one reference back; the last one returns the batch to its pool.
func (b *Batch) Release() {
	if b.refs--; b.refs > 0 {
		return
	}
	if b.refs < 0 {
		panic("core: batch released more often than retained")
	}
	if b.pool != nil {
		b.pool.put(b)
	}
}

// Pool recycles batches within one event loop. It is not safe for concurrent use. The zero value is ready.
type Pool struct {
	free []*Batch
	// Made counts the batches ever allocated: it stands still in steady state.
	Made int
}

// Get returns an empty batch with one reference.
func (p *Pool) Get() *Batch {
	n := len(p.free)
	if n == 0 {
		p.Made++
		return &Batch{refs: 1, pool: p}
	}
	b := p.free[n-1]
	p.free = p.free[:n-1]
	b.refs = 1
	return b
}

func (p *Pool) put(b *Batch) {
	b.Reset()
	b.Order = b.Order[:0]
	b.Kind, b.Count, b.First, b.Channel, b.OrderAfter = 0, 0, 0, 0, 0
	b.Control = Control{Body: b.Control.Body[:0]}
	b.Ack = Ack{}
	const keepExtBytes = 1 << 20 // a rare huge payload must not stay in the pool for ever
	if cap(b.Ext) > keepExtBytes {
		b.Ext = nil
	}
	if cap(b.Control.Body) > keepExtBytes {
		b.Control.Body = nil
	}
	p.free = append(p.free, b)
}

// Ack is what the receiver of a channel tells the sender.
type Ack struct {
	// Next is the number the receiver expects next; all before it have arrived. 0: whatever was not sent yet.
	Next uint64
	// Consumed is the number of the last input the receiving task has consumed.
	Consumed uint64
	// Safe is the number up to which the receiver needs no input again, whatever happens to it.
	Safe uint64
	// Limit is the highest number the receiver has room for.
	Limit uint64
	// Resync asks the sender to send again from Next on.
	Resync bool
	// From is the node of the receiver.
	From int
}

// ControlType says what a control input does.
type ControlType uint8

// The control inputs. They are numbered like records and travel in the same channels, never by a side door.
const (
	CtlBarrier   ControlType = 1 + iota // ID: checkpoint; Body: BarrierUnaligned or nothing
	CtlRoute                            // ID: route version; Body: RouteChange; for the tasks that send to the operator
	CtlMarker                           // ID: route version; Body: RouteChange; follows the last record routed by the old table
	CtlState                            // ID: route version; Body: StateChunk; moves state between two tasks of an operator
	CtlWatermark                        // ID: event time, ns
	CtlTick                             // does nothing but be acknowledged at once
	CtlEnd                              // end of stream
	CtlPause                            // sources hold back records until CtlResume
	CtlResume
	CtlCopy  // ID: copy number; Body: RouteChange; the giving task sends (changes of) the state ahead
	CtlFetch // ID: route version; Body: group; the getting task needs this key group now
	ctlEnd
)

var controlNames = [...]string{"none", "barrier", "route", "marker", "state", "watermark", "tick", "end", "pause", "resume", "copy", "fetch"}

func (t ControlType) String() string {
	if int(t) < len(controlNames) {
		return controlNames[t]
	}
	return "unknown"
}

// BarrierUnaligned is the body of a barrier that blocks no channel.
const BarrierUnaligned = "unaligned"

// Unaligned says whether a barrier blocks no channel.
func Unaligned(c *Control) bool { return string(c.Body) == BarrierUnaligned }

// Control is a control input.
type Control struct {
	Type ControlType
	ID   uint64
	Body []byte
}
