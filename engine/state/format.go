package state

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A chunk is a part of a key group on its way: a header, deleted keys, entries. All
// numbers are little-endian.
//
//	0  kind (1 fixed-size values, 2 blobs)
//	1  version
//	2  flags: 1 = empty the group first
//	3  zero
//	4  key group (32 bits)
//	8  value size in bytes (32 bits; 0 for blobs)
//	12 number of deleted keys (32 bits)
//	16 number of entries (32 bits)
//	20 zero (32 bits)
//	24 deleted keys (64 bits each), then entries
//
// An entry of a fixed-size store is its key (64 bits) and its value, padded with
// zeros to a multiple of eight bytes; an entry of a blob store is its key, the length
// of the value (32 bits) and the value.
const (
	chunkHeaderBytes = 24
	chunkVersion     = 1
	kindFixed        = 1
	kindBlob         = 2
	flagReplace      = 1
)

// ErrChunk is what every error of Install wraps: the chunk is damaged or belongs
// to another group or kind of store. The store is unchanged then.
var ErrChunk = errors.New("bad state chunk")

// ChunkFormat is what the chunks of a store have in common. Stores of the same format can install each other's chunks,
// wherever they keep their state.
type ChunkFormat struct {
	Groups     uint32
	ValueBytes int  // of fixed-size values
	Fixed      bool // values have ValueBytes bytes
}

func (s *store) format() ChunkFormat {
	return ChunkFormat{uint32(len(s.groups)), s.valueBytes, s.fixed}
}

func (s ChunkFormat) kind() byte {
	if s.Fixed {
		return kindFixed
	}
	return kindBlob
}

// Begin appends the header of a chunk to dst. Deleted keys have to be appended next, then entries, then FinishChunk be
// called.
func (s ChunkFormat) Begin(dst []byte, group uint32, replace bool) []byte {
	var header [chunkHeaderBytes]byte
	header[0], header[1] = s.kind(), chunkVersion
	if replace {
		header[2] = flagReplace
	}
	binary.LittleEndian.PutUint32(header[4:], group)
	binary.LittleEndian.PutUint32(header[8:], uint32(s.ValueBytes))
	return append(dst, header[:]...)
}

// AppendDeleted appends a deleted key.
func (s ChunkFormat) AppendDeleted(chunk []byte, key uint64) []byte {
	return binary.LittleEndian.AppendUint64(chunk, key)
}

// EntryBytes returns the encoded size of an entry whose value has n bytes.
func (s ChunkFormat) EntryBytes(n int) int {
	if s.Fixed {
		return 8 + (n+7)&^7
	}
	return 12 + n
}

// AppendEntry appends an entry.
func (s ChunkFormat) AppendEntry(chunk []byte, key uint64, val []byte) []byte {
	chunk = binary.LittleEndian.AppendUint64(chunk, key)
	if !s.Fixed {
		chunk = binary.LittleEndian.AppendUint32(chunk, uint32(len(val)))
		return append(chunk, val...)
	}
	var zeros [8]byte
	chunk = append(chunk, val...)
	return append(chunk, zeros[:-len(val)&7]...)
}

// FinishChunk says in the header of a chunk what it holds.
func FinishChunk(chunk []byte, deleted, entries int) {
	binary.LittleEndian.PutUint32(chunk[12:], uint32(deleted))
	binary.LittleEndian.PutUint32(chunk[16:], uint32(entries))
}

// Chunk is a chunk whose header and lengths have been checked. It shares the chunk's memory.
type Chunk struct {
	// Replace says that the group is empty before this.
	Replace         bool
	format          ChunkFormat
	deleted         []byte
	entries         []byte
	deletedN, count int
}

// Len returns how many deleted keys and how many entries the chunk has.
func (c *Chunk) Len() (deleted, entries int) { return c.deletedN, c.count }

// Deleted visits the deleted keys.
func (c *Chunk) Deleted(visit func(key uint64)) {
	for d := c.deleted; len(d) > 0; d = d[8:] {
		visit(binary.LittleEndian.Uint64(d))
	}
}

// Entries visits the entries; val is valid during the call.
func (c *Chunk) Entries(visit func(key uint64, val []byte)) {
	for e := c.entries; len(e) > 0; {
		key := binary.LittleEndian.Uint64(e)
		if c.format.Fixed {
			visit(key, e[8:8+c.format.ValueBytes])
			e = e[8+(c.format.ValueBytes+7)&^7:]
			continue
		}
		size := int(binary.LittleEndian.Uint32(e[8:]))
		visit(key, e[12:12+size])
		e = e[12+size:]
	}
}

// Parse checks a chunk against the format and the group. Errors wrap ErrChunk.
func (s ChunkFormat) Parse(group uint32, chunk []byte) (Chunk, error) {
	v := Chunk{format: s}
	bad := func(format string, args ...any) (Chunk, error) {
		return Chunk{}, fmt.Errorf("install chunk of key group %d: %w: %s", group, ErrChunk, fmt.Sprintf(format, args...))
	}
	if group >= s.Groups {
		return bad("the store has %d groups", s.Groups)
	}
	if len(chunk) < chunkHeaderBytes {
		return bad("%d bytes, a header has %d", len(chunk), chunkHeaderBytes)
	}
	le := binary.LittleEndian
	if chunk[0] != s.kind() || chunk[1] != chunkVersion {
		return bad("kind %d version %d, want kind %d version %d", chunk[0], chunk[1], s.kind(), chunkVersion)
	}
	if chunk[2]&^flagReplace != 0 || chunk[3] != 0 || le.Uint32(chunk[20:]) != 0 {
		return bad("unknown flags or non-zero reserved bytes")
	}
	if got := le.Uint32(chunk[4:]); got != group {
		return bad("it holds key group %d", got)
	}
	if got := le.Uint32(chunk[8:]); int64(got) != int64(s.ValueBytes) {
		return bad("values of %d bytes, the store has %d", got, s.ValueBytes)
	}
	v.Replace = chunk[2]&flagReplace != 0
	v.deletedN, v.count = int(le.Uint32(chunk[12:])), int(le.Uint32(chunk[16:]))
	body := chunk[chunkHeaderBytes:]
	if len(body)/8 < v.deletedN {
		return bad("%d deleted keys in %d bytes", v.deletedN, len(body))
	}
	v.deleted, v.entries = body[:8*v.deletedN], body[8*v.deletedN:]
	if problem := s.checkEntries(v.entries, v.count); problem != "" {
		return bad("%s", problem)
	}
	return v, nil
}

// checkEntries says what is wrong with count encoded entries, or nothing.
func (s ChunkFormat) checkEntries(data []byte, count int) string {
	if !s.Fixed {
		for i := range count {
			if len(data) < 12 {
				return fmt.Sprintf("entry %d of %d is cut off", i, count)
			}
			size := int(binary.LittleEndian.Uint32(data[8:]))
			if len(data)-12 < size {
				return fmt.Sprintf("entry %d of %d: value of %d bytes, %d left", i, count, size, len(data)-12)
			}
			data = data[12+size:]
		}
		if len(data) > 0 {
			return fmt.Sprintf("%d bytes after the last entry", len(data))
		}
		return ""
	}
	size := 8 + (s.ValueBytes+7)&^7
	if len(data)/size != count || len(data)%size != 0 {
		return fmt.Sprintf("%d entries of %d bytes in %d bytes", count, size, len(data))
	}
	if padding := -s.ValueBytes & 7; padding > 0 {
		for i := range count {
			for _, b := range data[(i+1)*size-padding : (i+1)*size] {
				if b != 0 {
					return fmt.Sprintf("entry %d: non-zero padding", i)
				}
			}
		}
	}
	return ""
}

// ChunkGroup returns the key group that a chunk from Next says it belongs to. Only the header's length is checked;
// Install checks the rest.
func ChunkGroup(chunk []byte) (uint32, error) {
	if len(chunk) < chunkHeaderBytes {
		return 0, fmt.Errorf("%w: %d bytes, a header has %d", ErrChunk, len(chunk), chunkHeaderBytes)
	}
	return binary.LittleEndian.Uint32(chunk[4:]), nil
}
