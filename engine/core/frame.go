package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// headerBytes is the size of a frame's header:
//
//	0  u32 size of the frame with its header     24 u64 first number | ack: next
//	4  u8  kind                                  32 u32 count
//	5  u8  columns present                       36 u32 order bytes
//	6  u8  control type | ack: resync            40 u64 order after | ack: consumed
//	7  u8  reserved, 0                           48 u64 control id | ack: limit
//	8  u32 channel                               56 u32 payload bytes (Ext or control body)
//	12 u32 epoch                                 60 u32 CRC-free reserved, 0
//	16 u64 from node of an ack                   32 u64 ack: safe
//
// Columns follow in the machine's own (little-endian) layout, so that encoding and decoding are plain copies: the
// encoded form is the memory form.
const headerBytes = 64

// MaxFrameBytes bounds one frame; a longer one is refused as corrupt.
const MaxFrameBytes = 64 << 20

const (
	hasVals = 1 << iota
	hasOff
	columnBits = hasVals | hasOff
)

// ErrBadFrame says that bytes are not a frame of this protocol.
var ErrBadFrame = errors.New("bad frame")

// AppendFrame appends the encoding of b to dst. It does not allocate when dst has room.
func AppendFrame(dst []byte, b *Batch) []byte {
	start := len(dst)
	var head [headerBytes]byte
	h := head[:]
	le := binary.LittleEndian
	h[4], h[6] = byte(b.Kind), byte(b.Control.Type)
	le.PutUint32(h[8:], uint32(b.Channel))
	le.PutUint32(h[12:], b.Epoch)
	le.PutUint64(h[24:], b.First)
	le.PutUint32(h[32:], uint32(b.Count))
	le.PutUint32(h[36:], uint32(len(b.Order)))
	le.PutUint64(h[40:], b.OrderAfter)
	le.PutUint64(h[48:], b.Control.ID)
	payload := b.Ext
	switch b.Kind {
	case KindControl:
		payload = b.Control.Body
	case KindAck:
		if b.Ack.Resync {
			h[6] = 1
		}
		le.PutUint64(h[16:], uint64(b.Ack.From))
		le.PutUint64(h[24:], b.Ack.Next)
		le.PutUint64(h[32:], b.Ack.Safe)
		le.PutUint64(h[40:], b.Ack.Consumed)
		le.PutUint64(h[48:], b.Ack.Limit)
	}
	le.PutUint32(h[56:], uint32(len(payload)))
	dst = append(dst, h...)
	if b.Kind == KindRecords {
		dst = append(dst, bytesOf(b.Keys)...)
		dst = append(dst, bytesOf(b.Times)...)
		if len(b.Vals) > 0 {
			dst[start+5] |= hasVals
			dst = append(dst, bytesOf(b.Vals)...)
		}
		if len(b.Off) > 0 {
			dst[start+5] |= hasOff
			dst = append(dst, bytesOf(b.Off)...)
		}
	}
	dst = append(dst, payload...)
	dst = append(dst, b.Order...)
	le.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// FrameSize returns the size of the frame at the head of p: 0 when p is too short to tell.
func FrameSize(p []byte) (int, error) {
	if len(p) < 4 {
		return 0, nil
	}
	n := binary.LittleEndian.Uint32(p)
	if n < headerBytes || n > MaxFrameBytes {
		return 0, fmt.Errorf("%w: size of %d bytes, want %d to %d", ErrBadFrame, n, headerBytes, MaxFrameBytes)
	}
	return int(n), nil
}

// DecodeFrame fills b, which must be empty, from one whole frame. It copies: p may be reused at once.
func DecodeFrame(b *Batch, p []byte) error {
	if n, err := FrameSize(p); err != nil || n == 0 || n != len(p) {
		return fmt.Errorf("%w: %d bytes given, header says %d", ErrBadFrame, len(p), n)
	}
	le := binary.LittleEndian
	cols := p[5]
	b.Kind, b.Channel, b.Epoch = Kind(p[4]), int(int32(le.Uint32(p[8:]))), le.Uint32(p[12:])
	b.First, b.Count = le.Uint64(p[24:]), int(le.Uint32(p[32:]))
	orderBytes, payloadBytes := int(le.Uint32(p[36:])), int(le.Uint32(p[56:]))
	rest := p[headerBytes:]
	switch b.Kind {
	case KindRecords:
		if b.Count < 1 || b.Count > MaxBatch || cols&^columnBits != 0 {
			return fmt.Errorf("%w: records: count %d, columns %#x", ErrBadFrame, b.Count, cols)
		}
		var err error
		if rest, err = decodeColumns(b, cols, rest); err != nil {
			return err
		}
	case KindControl:
		b.Control.Type, b.Control.ID = ControlType(p[6]), le.Uint64(p[48:])
		if b.Count != 1 || b.Control.Type == 0 || b.Control.Type >= ctlEnd || cols != 0 {
			return fmt.Errorf("%w: control %d, count %d", ErrBadFrame, p[6], b.Count)
		}
	case KindAck:
		b.Ack = Ack{Next: b.First, Consumed: le.Uint64(p[40:]), Safe: le.Uint64(p[32:]), Limit: le.Uint64(p[48:]), Resync: p[6] == 1,
			From: int(le.Uint64(p[16:]))}
		b.First, b.Count, orderBytes = 0, 0, 0
	case KindShip:
		b.Control.ID, b.OrderAfter = le.Uint64(p[48:]), le.Uint64(p[40:])
	case KindMessage, KindOrder:
	default:
		return fmt.Errorf("%w: kind %d", ErrBadFrame, b.Kind)
	}
	if payloadBytes < 0 || orderBytes < 0 || payloadBytes+orderBytes != len(rest) {
		return fmt.Errorf("%w: %d bytes behind the columns, header says %d + %d", ErrBadFrame, len(rest), payloadBytes, orderBytes)
	}
	if b.Kind == KindControl {
		b.Control.Body = append(b.Control.Body[:0], rest[:payloadBytes]...)
	} else {
		b.Ext = append(b.Ext[:0], rest[:payloadBytes]...)
	}
	if b.Kind == KindRecords || b.Kind == KindControl || b.Kind == KindOrder {
		b.OrderAfter = le.Uint64(p[40:])
		b.Order = append(b.Order[:0], rest[payloadBytes:]...)
	}
	return checkOffsets(b)
}

func decodeColumns(b *Batch, cols byte, rest []byte) ([]byte, error) {
	n := b.Count
	need := 16 * n
	if cols&hasVals != 0 {
		need += 8 * n
	}
	if cols&hasOff != 0 {
		need += 4 * (n + 1)
	}
	if len(rest) < need {
		return nil, fmt.Errorf("%w: %d bytes for %d records, want %d", ErrBadFrame, len(rest), n, need)
	}
	b.Keys, rest = appendColumn(b.Keys, rest, n)
	b.Times, rest = appendColumn(b.Times, rest, n)
	if cols&hasVals != 0 {
		b.Vals, rest = appendColumn(b.Vals, rest, n)
	}
	if cols&hasOff != 0 {
		b.Off, rest = appendColumn(b.Off, rest, n+1)
	}
	return rest, nil
}

// checkOffsets refuses payload offsets that would index outside the payload.
func checkOffsets(b *Batch) error {
	if len(b.Off) == 0 {
		return nil
	}
	last := b.Off[0]
	for _, o := range b.Off {
		if o < last {
			return fmt.Errorf("%w: payload offsets run backwards", ErrBadFrame)
		}
		last = o
	}
	if int(last) > len(b.Ext) {
		return fmt.Errorf("%w: payload offset %d of %d bytes", ErrBadFrame, last, len(b.Ext))
	}
	return nil
}

type word interface{ ~uint64 | ~int64 | ~uint32 }

func bytesOf[T word](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// appendColumn copies n words from the head of p to dst and returns what is left of p.
func appendColumn[T word](dst []T, p []byte, n int) ([]T, []byte) {
	at := len(dst)
	if cap(dst) < at+n {
		dst = append(make([]T, 0, max(at+n, MaxBatch+1)), dst...)
	}
	dst = dst[:at+n]
	size := n * int(unsafe.Sizeof(dst[0]))
	copy(bytesOf(dst[at:]), p[:size])
	return dst, p[size:]
}
