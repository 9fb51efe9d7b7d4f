package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble"
)

// formOf is what belongs to the tables of a cut: with them it is the state. Encoded it is a version, and then numbers as
// unsigned varints, keys with their length before them.
type formOf struct {
	epoch  uint32 // of the cut
	seq    uint64 // number of the last write
	groups []groupSize
	dead   []deadKey
	tables []table
}

type groupSize struct {
	group    uint32
	owned    bool
	n, bytes uint64
}

const (
	formVersion   = 1
	maxKeyBytes   = 64 // of an internal key
	levels        = 7
	maxTableBytes = 1 << 50
	maxSeq        = 1<<56 - 2 // Pebble keeps numbers in 56 bits, and the largest to itself
)

var errForm = errors.New("not a description of tables")

func appendForm(b []byte, f *formOf) []byte {
	b = append(b, formVersion)
	for _, v := range []uint64{uint64(f.epoch), f.seq, uint64(len(f.groups)), uint64(len(f.dead)), uint64(len(f.tables))} {
		b = binary.AppendUvarint(b, v)
	}
	for _, g := range f.groups {
		owned := uint64(0)
		if g.owned {
			owned = 1
		}
		b = binary.AppendUvarint(b, uint64(g.group)<<1|owned)
		b = binary.AppendUvarint(binary.AppendUvarint(b, g.n), g.bytes)
	}
	for _, d := range f.dead {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(d.group)), d.key)
		b = binary.AppendUvarint(b, uint64(d.epoch))
	}
	for i := range f.tables {
		b = appendTable(b, &f.tables[i])
	}
	return b
}

func appendTable(b []byte, t *table) []byte {
	for _, v := range []uint64{uint64(t.level), t.number, t.bytes} {
		b = binary.AppendUvarint(b, v)
	}
	for _, key := range [][]byte{t.smallest, t.largest} {
		b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, t.oldest), t.newest)
}

// formReader reads numbers up to a bound; what is wrong makes it bad, and then all are 0.
type formReader struct {
	b   []byte
	bad bool
}

func (r *formReader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if r.bad || n <= 0 || v > most {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads how many things of at least some bytes follow.
func (r *formReader) count(bytes int) int { return int(r.number(uint64(len(r.b) / bytes))) }

// internalKey reads a key of Pebble's: a user key and an eight-byte trailer.
func (r *formReader) internalKey() []byte {
	n := int(r.number(maxKeyBytes))
	if r.bad = r.bad || n < 8 || n > len(r.b); r.bad {
		return nil
	}
	key := r.b[:n:n]
	r.b = r.b[n:]
	return key
}

// parseForm reads what appendForm wrote, of a store with so many groups. Errors wrap errForm.
func parseForm(b []byte, groups uint32) (*formOf, error) {
	if len(b) == 0 || b[0] != formVersion {
		return nil, fmt.Errorf("%w of version %d", errForm, formVersion)
	}
	r := &formReader{b: b[1:]}
	f := &formOf{epoch: uint32(r.number(1<<31 - 2)), seq: r.number(maxSeq)}
	f.groups, f.dead = make([]groupSize, r.count(1)), nil
	dead, tables := r.count(1), r.count(1)
	next := uint64(0)
	for i := range f.groups {
		head := r.number(1<<33 - 1)
		g := &f.groups[i]
		*g = groupSize{uint32(head >> 1), head&1 == 1, r.number(1 << 50), r.number(1 << 60)}
		if uint64(g.group) < next || g.group >= groups || g.n == 0 {
			r.bad = true
		}
		next = uint64(g.group) + 1
	}
	for i := 0; i < dead && !r.bad; i++ {
		f.dead = append(f.dead, deadKey{uint32(r.number(uint64(groups) - 1)), r.number(^uint64(0)), uint32(r.number(1<<31 - 1))})
	}
	f.tables = make([]table, 0, min(tables, len(r.b)))
	numbers := map[uint64]bool{}
	for i := 0; i < tables && !r.bad; i++ {
		t := table{level: int(r.number(levels - 1)), number: r.number(1 << 60), bytes: r.number(maxTableBytes)}
		t.smallest, t.largest = r.internalKey(), r.internalKey()
		t.oldest, t.newest = r.number(maxSeq), r.number(f.seq)
		r.bad = r.bad || numbers[t.number] || t.number == 0
		numbers[t.number] = true
		f.tables = append(f.tables, t)
	}
	if r.bad || len(r.b) > 0 || len(f.tables) == 0 {
		return nil, fmt.Errorf("%w: %d bytes before its end", errForm, len(r.b))
	}
	return f, nil
}

// Tags of a version edit, a record of the MANIFEST, as LevelDB, RocksDB and Pebble have them.
const (
	tagComparer   = 1
	tagNextFile   = 3
	tagLastSeq    = 4
	tagTable      = 100
	freeFileAfter = 16 // numbers that are left for files that are not tables
)

// appendEdit makes the version edit that says that a store consists of tables.
func appendEdit(b []byte, f *formOf) []byte {
	next := uint64(0)
	for _, t := range f.tables {
		next = max(next, t.number)
	}
	name := pebble.DefaultComparer.Name
	b = append(binary.AppendUvarint(append(b, tagComparer), uint64(len(name))), name...)
	b = binary.AppendUvarint(append(b, tagNextFile), next+freeFileAfter)
	b = binary.AppendUvarint(append(b, tagLastSeq), f.seq)
	for i := range f.tables {
		b = appendTable(append(b, tagTable), &f.tables[i])
	}
	return b
}
