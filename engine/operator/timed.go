package operator

import (
	"encoding/binary"

	"github.com/weir-bench/weir/engine/state"
)

// All that a timed operator knows of a key group is in the group's state, so that it moves, is snapshot and comes back
// with it; there are no timers beside it. A header tells when something in the group is next due, and only then is the
// group looked through.

// header is what a group knows of time.
type header struct {
	wm   int64  // its watermark
	next int64  // the watermark at which something in it is due, or before: EndOfTime at the latest
	late uint64 // how often a record came too late
}

// headerKey is the key whose value begins with the group's header. Records may have that key as well.
const (
	headerKey   = ^uint64(0)
	headerBytes = 24
)

func readHeader(b *state.Blob, group uint32) header {
	v, ok := b.Get(group, headerKey)
	if !ok {
		return header{wm: NoWatermark, next: EndOfTime}
	}
	return decodeHeader(v)
}

func decodeHeader(v []byte) header {
	le := binary.LittleEndian
	return header{wm: int64(le.Uint64(v)), next: int64(le.Uint64(v[8:])), late: le.Uint64(v[16:])}
}

func (h header) append(dst []byte) []byte {
	le := binary.LittleEndian
	return le.AppendUint64(le.AppendUint64(le.AppendUint64(dst, uint64(h.wm)), uint64(h.next)), h.late)
}

func writeHeader(b *state.Blob, group uint32, h header) {
	var rest []byte
	if v, ok := b.Get(group, headerKey); ok {
		rest = v[headerBytes:]
	}
	b.Put(group, headerKey, append(h.append(make([]byte, 0, headerBytes+len(rest))), rest...))
}

// getValue returns the value of a key, nil when there is none.
func getValue(b *state.Blob, group uint32, key uint64) []byte {
	v, _ := b.Get(group, key)
	if key == headerKey && v != nil {
		return v[headerBytes:]
	}
	return v
}

// putValue sets the value of a key, which the store takes over; an empty one removes the key.
func putValue(b *state.Blob, group uint32, key uint64, v []byte) {
	switch {
	case key == headerKey:
		h := readHeader(b, group)
		b.Put(group, key, append(h.append(make([]byte, 0, headerBytes+len(v))), v...))
	case len(v) == 0:
		b.Delete(group, key)
	default:
		b.Put(group, key, v)
	}
}

// eachValue visits the keys of a group that have a value.
func eachValue(b *state.Blob, group uint32, visit func(key uint64, v []byte)) {
	b.Range(group, func(key uint64, v []byte) bool {
		if key == headerKey {
			v = v[headerBytes:]
		}
		if len(v) > 0 {
			visit(key, v)
		}
		return true
	})
}

// Late returns how many records of a group came too late, since the beginning of the job.
func (c *Context) Late(group uint32) uint64 {
	if c.Blob == nil {
		return 0
	}
	return readHeader(c.Blob, group).late
}

// advance moves a group's watermark. When something is due, fire is given the watermark before and returns when the next
// thing will be.
func advance(b *state.Blob, group uint32, wm int64, fire func(before int64) (next int64)) {
	h := readHeader(b, group)
	if wm <= h.wm {
		return
	}
	if h.next <= wm {
		next := fire(h.wm)
		h = readHeader(b, group)
		h.next = next
	}
	h.wm = wm
	writeHeader(b, group, h)
}

// later returns t + d, EndOfTime when that is beyond it.
func later(t, d int64) int64 {
	if t > EndOfTime-d {
		return EndOfTime
	}
	return t + d
}

// closed says that what ends at the given watermark is over.
func (h *header) closed(at int64) bool { return h.wm != NoWatermark && at <= h.wm }
