package task

import (
	"fmt"
	"slices"
	"sort"

	"github.com/weir-bench/weir/engine/core"
)

// SegmentOp says what a SegmentRequest asks for.
type SegmentOp uint8

// The operations on segments.
const (
	SegmentWrite  SegmentOp = 1 + iota // Data into a file of its own
	SegmentRead                        // the whole file into Data
	SegmentRemove                      // the file is needed no more; there is no answer
)

// SegmentRequest asks the world for something about a segment of a sender log, a file on the worker's own disk. The world
// carries a worker's requests out in their order, beside the event loop, and answers with Worker.SegmentDone. Data belongs to it
// until then. A worker has at most one of each under way a channel. What is written need not outlive the process.
type SegmentRequest struct {
	Op SegmentOp
	core.Segment
	Data []byte
}

// spill is the part of a sender log that is on disk: its oldest inputs, in segments, which are removed whole. They have been
// consumed once and come back only in a replay, a segment at a time. The batches of a segment stay in memory until it is
// written, so that a failing disk loses nothing.
type spill struct {
	w            *Worker
	bound        int64     // bytes on disk
	fromBytes    int       // of the log in memory: what is more is written, so that nobody has to wait at the bound
	segmentBytes int       // about the size of a segment
	segments     []segment // oldest first; behind the last one the log in memory goes on
	onDisk       int64     // bytes, with those of the segment being written
	writing      segment   // number 0: none
	reading      uint64    // the segment that is being read back, 0: none
	piece        []*core.Batch
	pieceOf      uint64 // the segment that piece is, 0: none
	noRoom       bool   // the next batch does not fit into the bound
	total        uint64 // bytes ever written
	began        uint64 // how often there was nothing on disk, and then something
	early, skips bool   // planted bugs: a segment is removed when its first input is safe; a replay begins behind what is on disk
	unchecked    bool   // planted bug: checksums are not looked at
}

type segment struct {
	core.Segment
	bytes int64
}

// maxSegmentBytes bounds a segment, which is encoded in one go on the event loop and read back whole.
const maxSegmentBytes = 1 << 20

// newSpill returns what a channel's log needs to go to disk; nil when it may not, or never waits for anything.
func newSpill(w *Worker, c core.Channel) *spill {
	job := &w.graph.Job
	if job.SpillBytes == 0 || c.To < 0 || !w.graph.Protection(c.To).Ordered() {
		return nil
	}
	return &spill{w: w, bound: job.SpillBytes, fromBytes: job.LogBytes / 2, segmentBytes: min(job.LogBytes/4, maxSegmentBytes),
		early: job.Bug("spill-trimmed-early"), skips: job.Bug("replay-skips-spill"), unchecked: job.Bug("spill-unchecked")}
}

// last returns the number of the last input on disk, 0 when there is none.
func (s *spill) last() uint64 {
	if len(s.segments) == 0 {
		return 0
	}
	return s.segments[len(s.segments)-1].Last
}

// find returns the first segment that ends at number n or later; n must not be beyond the last.
func (s *spill) find(n uint64) *segment {
	return &s.segments[sort.Search(len(s.segments), func(i int) bool { return s.segments[i].Last >= n })]
}

func (s *spill) ask(op SegmentOp, g core.Segment, data []byte) {
	s.w.e.Segments = append(s.w.e.Segments, SegmentRequest{op, g, data})
}

func (s *spill) remove(g *segment) {
	s.ask(SegmentRemove, g.Segment, nil)
	s.onDisk -= g.bytes
	s.noRoom = false
}

// trim removes the segments of which nothing beyond number safe is needed.
func (s *spill) trim(safe uint64) {
	n := 0
	for n < len(s.segments) && (s.segments[n].Last <= safe || s.early && s.segments[n].First <= safe) {
		if s.segments[n].ID == s.pieceOf {
			s.dropPiece()
		}
		s.remove(&s.segments[n])
		n++
	}
	s.segments = slices.Delete(s.segments, 0, n)
}

func (s *spill) dropPiece() {
	for _, b := range s.piece {
		b.Release()
	}
	clear(s.piece)
	s.piece, s.pieceOf = s.piece[:0], 0
}

// close removes everything, also what is still being written.
func (s *spill) close() {
	s.trim(^uint64(0))
	if s.writing.ID > 0 {
		s.remove(&s.writing)
	}
	s.dropPiece()
	s.writing, s.reading = segment{}, 0
}

// spillOldest writes the oldest inputs to disk when the log in memory has grown large. Only those go that the receiver has
// consumed: it asks for them again only if it is lost.
func (o *Out) spillOldest(logBound int) {
	s := o.spill
	if s == nil || s.writing.ID > 0 || s.noRoom || o.logBytes <= s.fromBytes || o.local || len(o.receivers) == 0 {
		return
	}
	upto, n, size := o.receivers[0].consumed, 0, 0
	for _, b := range o.log[o.head:] {
		if b.Last() > upto || size >= s.segmentBytes {
			break
		}
		n++
		size += b.SizeBytes()
	}
	if n == 0 || size < s.segmentBytes/2 && o.logBytes <= logBound {
		return // more comes soon, and one file of it is better than several
	}
	g := core.Segment{Channel: o.Channel.ID, First: o.log[o.head].First}
	data := core.BeginSegment(s.w.segmentBuffer())
	for _, b := range o.log[o.head : o.head+n] {
		fits := len(data)
		if data = core.AppendToSegment(data, b); s.onDisk+int64(len(data)) > s.bound {
			data = data[:fits]
			break
		}
		g.Last = b.Last()
	}
	if g.Last == 0 {
		s.noRoom = true
		s.w.keepBuffer(data)
		return
	}
	s.w.segmentID++
	g.ID = s.w.segmentID
	core.EndSegment(data, g)
	if s.onDisk == 0 {
		s.began++
	}
	s.writing = segment{g, int64(len(data))}
	s.onDisk += s.writing.bytes
	s.ask(SegmentWrite, g, data)
}

// written says that the segment that was being written is on disk: its inputs leave the memory.
func (o *Out) written() {
	s := o.spill
	g := s.writing
	s.writing = segment{}
	s.total += uint64(g.bytes)
	s.segments = append(s.segments, g)
	o.release(g.Last)
	s.trim(o.safe) // it may be needed no more
}

// sendSpilled sends receiver i what it wants of what is on disk, as far as that was read back. It says whether the receiver is
// behind all of it.
func (o *Out) sendSpilled(i int, end uint64, send func(node int, b *core.Batch)) bool {
	s, r := o.spill, &o.receivers[i]
	for r.cursor <= s.last() && !s.skips {
		g := s.find(r.cursor)
		if from := max(r.cursor, g.First); from > r.limit || from >= end {
			return false
		}
		if s.pieceOf != g.ID {
			if s.reading == 0 {
				s.reading = g.ID
				s.ask(SegmentRead, g.Segment, nil)
			}
			return false
		}
		for _, b := range s.piece {
			if b.Last() < r.cursor {
				continue
			}
			if b.First > r.limit || b.First >= end {
				return false
			}
			send(r.node, b)
			r.cursor = b.Last() + 1
			if i == 0 {
				o.sent = max(o.sent, b.Last())
			}
		}
		if !slices.ContainsFunc(o.receivers, func(r receiver) bool { return r.synced && g.First <= r.cursor && r.cursor <= g.Last }) {
			s.dropPiece()
		}
	}
	return true
}

// SegmentDone says that r, which the worker asked for, was carried out, or why not.
func (w *Worker) SegmentDone(r *SegmentRequest, err error, e *Effects) {
	w.e = e
	defer w.keepBuffer(r.Data)
	if r.Channel >= len(w.outs) || w.outs[r.Channel] == nil || w.outs[r.Channel].spill == nil {
		return // of an earlier deployment
	}
	o := w.outs[r.Channel]
	s, did := o.spill, "write"
	switch {
	case r.Op == SegmentWrite && r.ID == s.writing.ID:
		if err == nil {
			o.written()
		}
	case r.Op == SegmentRead && r.ID == s.reading:
		did, s.reading = "read back", 0
		if err == nil {
			err = o.readBack(r)
		}
	default:
		return
	}
	if err != nil {
		w.tasks[o.Channel.From].fail(fmt.Errorf("%s inputs %d to %d of the sender log of channel %d, spilled to disk: %w", did, r.First, r.Last, r.Channel, err))
		return
	}
	o.transmit(w.send)
}

// readBack takes the content of a segment.
func (o *Out) readBack(r *SegmentRequest) error {
	s := o.spill
	if r.First <= o.safe && r.Last <= o.safe {
		return nil // it was needed no more meanwhile
	}
	batches, err := core.DecodeSegment(&s.w.pool, r.Data, r.Segment, s.unchecked)
	if err != nil {
		return err
	}
	s.dropPiece()
	s.piece, s.pieceOf = append(s.piece, batches...), r.ID
	for _, b := range s.piece {
		b.Epoch = o.Epoch // the task may have been promoted since
	}
	return nil
}

// spillOldest moves what sender logs may not keep in memory to disk.
func (w *Worker) spillOldest() {
	if w.graph == nil || w.graph.Job.SpillBytes == 0 {
		return
	}
	for _, t := range w.local {
		for _, o := range t.outs {
			o.spillOldest(w.graph.Job.LogBytes)
		}
	}
}

// segmentBuffers is how many buffers for segments are kept for the next ones.
const segmentBuffers = 4

func (w *Worker) segmentBuffer() []byte {
	n := len(w.buffers)
	if n == 0 {
		return nil
	}
	p := w.buffers[n-1]
	w.buffers = w.buffers[:n-1]
	return p
}

func (w *Worker) keepBuffer(p []byte) {
	if cap(p) > 0 && cap(p) <= 2*maxSegmentBytes && len(w.buffers) < segmentBuffers {
		w.buffers = append(w.buffers, p[:0])
	}
}
