package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// Options say how to read a trace file.
type Options struct {
	Format string // compact, csv, jsonl; empty: by the file's name
	// Names of the columns; in compact files their numbers. Empty: the trace
	// has no such column. Compact files have their times in column 0 whatever
	// Time says.
	Key, Time, Value, Size string
	// Unit of the times: ns, us, ms (also if empty), s.
	Unit string
	// SkipBad leaves bad rows out and counts them; else they are an error.
	SkipBad bool
}

// Trace is a recorded trace as columns of equal length. Columns that were not
// asked for are nil. It is not changed after it has been read.
type Trace struct {
	Rows    int
	Times   []int64  // ns since the first row, not decreasing
	Ranks   []uint32 // index into Keys
	Keys    []uint64 // key of each rank, most frequent first
	Names   []string // of each rank; nil if keys are the trace's own numbers
	Values  []int64
	Sizes   []uint32 // bytes
	Skipped int      // bad rows that were left out
}

// RowError says what is wrong with a row.
type RowError struct {
	Path   string
	Line   int // of a text file; row, from 1, of a compact one
	Reason string
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason) }

// Errors that Read returns, wrapped with the file's name and details.
var (
	ErrNoColumn = errors.New("no such column")
	ErrEmpty    = errors.New("no rows")
	ErrFormat   = errors.New("not a trace in the compact format")
)

// FormatOf returns the format that a file's name stands for, empty if none.
func FormatOf(path string) string {
	name := strings.TrimSuffix(strings.ToLower(path), ".gz")
	for _, f := range []struct{ suffix, format string }{
		{".trc", "compact"}, {".csv", "csv"}, {".jsonl", "jsonl"}, {".ndjson", "jsonl"},
	} {
		if strings.HasSuffix(name, f.suffix) {
			return f.format
		}
	}
	return ""
}

// Read reads the trace file at path. Errors are a *RowError for a bad row, or
// wrap the sentinels above or the file system's.
func Read(path string, o Options) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	defer f.Close()
	return ReadFrom(f, path, o)
}

// ReadFrom is Read from an open file; path is for messages and the format.
func ReadFrom(r io.Reader, path string, o Options) (*Trace, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	r = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("read trace %s: %w", path, err)
		}
		r = z
	}
	format := cmp.Or(o.Format, FormatOf(path))
	b := &builder{path: path, o: o, t: &Trace{}, ids: map[string]uint32{}}
	if err := b.unit(); err != nil {
		return nil, err
	}
	var err error
	switch format {
	case "compact":
		err = b.compact(r)
	case "csv":
		err = b.csv(r)
	case "jsonl":
		err = b.jsonl(r)
	default:
		err = fmt.Errorf("read trace %s: format %q is unknown; want compact (.trc), csv or jsonl", path, format)
	}
	if err != nil {
		return nil, err
	}
	return b.finish()
}

// builder collects rows.
type builder struct {
	path    string
	o       Options
	t       *Trace
	scale   float64 // ns a unit
	ids     map[string]uint32
	names   []string
	numbers []uint64 // compact: the key numbers themselves
	start   float64
}

func (b *builder) unit() error {
	units := map[string]time.Duration{
		"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "": time.Millisecond, "s": time.Second,
	}
	unit, ok := units[b.o.Unit]
	if !ok {
		return fmt.Errorf("read trace %s: time unit %q is unknown; want ns, us, ms or s", b.path, b.o.Unit)
	}
	b.scale = float64(unit)
	return nil
}

// row is one row of a text format: the fields asked for, by column role.
type row struct {
	line                   int
	key, time, value, size string
}

// add appends a row, or counts it as skipped, or returns a *RowError.
func (b *builder) add(r row) error {
	if reason := b.append(r); reason != "" {
		return b.bad(r.line, reason)
	}
	return nil
}

func (b *builder) bad(line int, reason string) error {
	if b.o.SkipBad {
		b.t.Skipped++
		return nil
	}
	return &RowError{b.path, line, reason}
}

// append adds a row whose fields are all good; else it adds nothing and returns
// the reason.
func (b *builder) append(r row) string {
	t := b.t
	var at, value int64
	var size uint64
	var err error
	if b.o.Time != "" {
		v, err := strconv.ParseFloat(r.time, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprintf("column %q: %q is not a number of time units", b.o.Time, r.time)
		}
		if t.Rows == 0 {
			b.start = v
		}
		ns := math.Round((v - b.start) * b.scale)
		if math.Abs(ns) > 1<<62 {
			return fmt.Sprintf("column %q: %s is too far from the first row's time", b.o.Time, r.time)
		}
		if at = int64(ns); t.Rows > 0 && at < t.Times[t.Rows-1] {
			return fmt.Sprintf("column %q: time %s is before that of the row before; times must not decrease", b.o.Time, r.time)
		}
	}
	if b.o.Key != "" && r.key == "" {
		return fmt.Sprintf("column %q: the key is empty", b.o.Key)
	}
	if b.o.Value != "" {
		if value, err = strconv.ParseInt(r.value, 10, 64); err != nil {
			return fmt.Sprintf("column %q: %q is not a whole number", b.o.Value, r.value)
		}
	}
	if b.o.Size != "" {
		if size, err = strconv.ParseUint(r.size, 10, 30); err != nil {
			return fmt.Sprintf("column %q: %q is not a size from 0 to 2^30 bytes", b.o.Size, r.size)
		}
	}
	if b.o.Time != "" {
		t.Times = append(t.Times, at)
	}
	if b.o.Key != "" {
		t.Ranks = append(t.Ranks, b.idOf(r.key))
	}
	if b.o.Value != "" {
		t.Values = append(t.Values, value)
	}
	if b.o.Size != "" {
		t.Sizes = append(t.Sizes, uint32(size))
	}
	t.Rows++
	return ""
}

func (b *builder) idOf(name string) uint32 {
	id, ok := b.ids[name]
	if !ok {
		name = strings.Clone(name)
		id = uint32(len(b.names))
		b.ids[name], b.names = id, append(b.names, name)
	}
	return id
}

// finish numbers the keys by falling frequency and gives them 64-bit keys.
func (b *builder) finish() (*Trace, error) {
	t := b.t
	if t.Rows == 0 {
		return nil, fmt.Errorf("read trace %s: %w (bad ones skipped: %d)", b.path, ErrEmpty, t.Skipped)
	}
	if t.Ranks == nil {
		return t, nil
	}
	n := max(len(b.names), len(b.numbers))
	counts, order := make([]int, n), make([]uint32, n)
	for _, id := range t.Ranks {
		counts[id]++
	}
	for id := range order {
		order[id] = uint32(id)
	}
	slices.SortStableFunc(order, func(x, y uint32) int { return counts[y] - counts[x] })
	rank := make([]uint32, n)
	for r, id := range order {
		rank[id] = uint32(r)
		if b.numbers != nil {
			t.Keys = append(t.Keys, b.numbers[id])
			continue
		}
		t.Names = append(t.Names, b.names[id])
		t.Keys = append(t.Keys, core.HashBytes([]byte(b.names[id])))
	}
	for i, id := range t.Ranks {
		t.Ranks[i] = rank[id]
	}
	return t, b.unique()
}

// unique checks that no two names have the same 64-bit key.
func (b *builder) unique() error {
	if b.t.Names == nil {
		return nil
	}
	seen := make(map[uint64]int, len(b.t.Keys))
	for r, key := range b.t.Keys {
		if other, taken := seen[key]; taken {
			return fmt.Errorf("read trace %s: keys %q and %q have the same hash; rename one", b.path, b.t.Names[other], b.t.Names[r])
		}
		seen[key] = r
	}
	return nil
}
