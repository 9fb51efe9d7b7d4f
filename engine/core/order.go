package core

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrOrderGap says that a part of an order log does not join what is already held.
var ErrOrderGap = errors.New("order log has a gap")

// Run says that a task consumed N inputs in a row from its input channel number In (an index into the task's inputs).
type Run struct {
	In int
	N  uint64
}

// OrderLog is the run-length coded order in which a task consumed its inputs. Positions count consumed inputs over all
// channels since the job began: the log holds positions (From, To]. With it and the inputs themselves a task replays
// exactly. The zero value is an empty log at position 0.
type OrderLog struct {
	from, to uint64
	runs     []Run
	head     int // runs before it are forgotten
}

// From returns the position before the first held input.
func (l *OrderLog) From() uint64 { return l.from }

// To returns the position of the last held input.
func (l *OrderLog) To() uint64 { return l.to }

// Runs returns the held runs; the slice is owned by the log.
func (l *OrderLog) Runs() []Run { return l.runs[l.head:] }

// Reset empties the log and sets its position.
func (l *OrderLog) Reset(at uint64) { l.from, l.to, l.runs, l.head = at, at, l.runs[:0], 0 }

// Add appends n inputs consumed from input in.
func (l *OrderLog) Add(in int, n uint64) {
	l.to += n
	if k := len(l.runs) - 1; k >= l.head && l.runs[k].In == in {
		l.runs[k].N += n
		return
	}
	l.runs = append(l.runs, Run{in, n})
}

// Trim forgets positions up to and including upto.
func (l *OrderLog) Trim(upto uint64) {
	for l.head < len(l.runs) && l.from < upto {
		r := &l.runs[l.head]
		n := min(r.N, upto-l.from)
		l.from += n
		if r.N -= n; r.N == 0 {
			l.head++
		}
	}
	if l.head == len(l.runs) {
		l.runs, l.head = l.runs[:0], 0
	} else if l.head > 64 && l.head*2 > len(l.runs) {
		l.runs = append(l.runs[:0], l.runs[l.head:]...)
		l.head = 0
	}
	if l.from < upto { // nothing held up to there: move on
		l.from, l.to = upto, max(l.to, upto)
	}
}

// AppendSince appends the encoding of positions (after, To] to dst: pairs of uvarints, channel and count.
// after must not lie before From.
func (l *OrderLog) AppendSince(dst []byte, after uint64) []byte {
	if after < l.from {
		panic(fmt.Sprintf("order log: positions after %d asked, held from %d", after, l.from))
	}
	k, sum, need := len(l.runs), uint64(0), l.to-after
	for sum < need {
		k--
		sum += l.runs[k].N
	}
	skip := sum - need // the first run may begin before after
	for ; k < len(l.runs); k++ {
		dst = binary.AppendUvarint(dst, uint64(l.runs[k].In))
		dst = binary.AppendUvarint(dst, l.runs[k].N-skip)
		skip = 0
	}
	return dst
}

// Merge adds an encoded part that covers positions (after, …]. What is already held is passed over; a part that begins
// behind To is ErrOrderGap and changes nothing.
func (l *OrderLog) Merge(after uint64, enc []byte) error {
	if after > l.to {
		return fmt.Errorf("%w: held to %d, part begins after %d", ErrOrderGap, l.to, after)
	}
	pos := after
	for len(enc) > 0 {
		in, a := binary.Uvarint(enc)
		if a <= 0 {
			return errors.New("order log: bad channel varint")
		}
		n, b := binary.Uvarint(enc[a:])
		if b <= 0 || n == 0 || in > 1<<20 {
			return errors.New("order log: bad count varint")
		}
		enc = enc[a+b:]
		if pos+n > l.to {
			skip := uint64(0)
			if pos < l.to {
				skip = l.to - pos
			}
			l.Add(int(in), n-skip)
		}
		pos += n
	}
	return nil
}
