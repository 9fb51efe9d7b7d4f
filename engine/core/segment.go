package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// segmentHeaderBytes is the size of a segment's header:
//
//	0  u32 magic                16 u64 number of the first input
//	4  u32 channel              24 u64 number of the last input
//	8  u64 number of the        32 u32 CRC-32C of the 32 bytes before
//	   segment                  36 u32 reserved, 0
//
// Behind it come the frames of the batches, each behind its size and its CRC-32C, both u32.
const (
	segmentHeaderBytes = 40
	segmentRecordBytes = 8
	segmentMagic       = 0x31505357 // "WSP1"
)

// ErrBadSegment says that bytes are not the segment of a sender log that they should be.
var ErrBadSegment = errors.New("damaged segment")

// Segment names a part of a sender log that is kept outside of memory: inputs First to Last of a channel.
type Segment struct {
	// ID is the number of the segment among those of its worker, from 1 on.
	ID          uint64
	Channel     int
	First, Last uint64
}

func segmentSum(p []byte) uint32 { return crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)) }

// BeginSegment appends room for a segment's header to dst, which must be empty.
func BeginSegment(dst []byte) []byte { return append(dst, make([]byte, segmentHeaderBytes)...) }

// AppendToSegment appends a batch to the segment that dst holds.
func AppendToSegment(dst []byte, b *Batch) []byte {
	at := len(dst)
	dst = AppendFrame(append(dst, make([]byte, segmentRecordBytes)...), b)
	frame := dst[at+segmentRecordBytes:]
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(frame)))
	binary.LittleEndian.PutUint32(dst[at+4:], segmentSum(frame))
	return dst
}

// EndSegment fills in the header of the segment that p holds.
func EndSegment(p []byte, s Segment) {
	le := binary.LittleEndian
	le.PutUint32(p, segmentMagic)
	le.PutUint32(p[4:], uint32(s.Channel))
	le.PutUint64(p[8:], s.ID)
	le.PutUint64(p[16:], s.First)
	le.PutUint64(p[24:], s.Last)
	le.PutUint32(p[32:], segmentSum(p[:32]))
}

// DecodeSegment returns the batches of the segment want, which p must hold whole; the caller releases them. An error matches
// ErrBadSegment. With unchecked set, which is a planted bug, the frames' checksums are not looked at.
func DecodeSegment(pool *Pool, p []byte, want Segment, unchecked bool) (batches []*Batch, err error) {
	defer func() {
		if err != nil {
			for _, b := range batches {
				b.Release()
			}
			batches = nil
		}
	}()
	head := BeginSegment(nil)
	EndSegment(head, want)
	if len(p) < len(head) || string(p[:len(head)]) != string(head) {
		return nil, fmt.Errorf("%w: it is not segment %d with inputs %d to %d of channel %d", ErrBadSegment, want.ID, want.First, want.Last, want.Channel)
	}
	next := want.First
	for at := len(head); at < len(p); {
		rest := p[at:]
		if len(rest) < segmentRecordBytes {
			return batches, fmt.Errorf("%w: %d bytes behind input %d", ErrBadSegment, len(rest), next-1)
		}
		size, sum := uint64(binary.LittleEndian.Uint32(rest)), binary.LittleEndian.Uint32(rest[4:])
		if rest = rest[segmentRecordBytes:]; size > uint64(len(rest)) {
			return batches, fmt.Errorf("%w: a frame of %d bytes behind input %d, and %d are left", ErrBadSegment, size, next-1, len(rest))
		}
		frame := rest[:size]
		if segmentSum(frame) != sum && !unchecked {
			return batches, fmt.Errorf("%w: the checksum behind input %d is wrong", ErrBadSegment, next-1)
		}
		b := pool.Get()
		batches = append(batches, b)
		if err := DecodeFrame(b, frame); err != nil {
			return batches, fmt.Errorf("%w: behind input %d: %w", ErrBadSegment, next-1, err)
		}
		if b.Channel != want.Channel || b.First != next || b.Kind != KindRecords && b.Kind != KindControl {
			return batches, fmt.Errorf("%w: input %d of channel %d where %d of %d should be", ErrBadSegment, b.First, b.Channel, next, want.Channel)
		}
		next = b.Last() + 1
		at += segmentRecordBytes + int(size)
	}
	if next != want.Last+1 {
		return batches, fmt.Errorf("%w: it ends behind input %d, not %d", ErrBadSegment, next-1, want.Last)
	}
	return batches, nil
}
