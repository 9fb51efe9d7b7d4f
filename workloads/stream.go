package workloads

import (
	"math"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// Stream is a replayable open-loop log: record i (from 0) is a function of the
// workload's seed and i. A value serves one goroutine; Clone makes another.
type Stream interface {
	// Fill appends the n records [from, from+n) to dst, which keeps what it
	// holds. It does not allocate while dst's capacity suffices. All records of
	// a stream have the same columns: those the stream lacks stay nil.
	Fill(dst *core.Columns, from uint64, n int)
	// FillStrided appends the n records from, from+stride, from+2·stride, …
	// (stride >= 1).
	FillStrided(dst *core.Columns, from, stride uint64, n int)
	// Due returns how many records have an intended time <= t: records
	// [0, Due(t)) are to be sent by time t.
	Due(t time.Duration) uint64
	// Scheduled returns how many records have an intended time < d: the
	// records of a run of length d.
	Scheduled(d time.Duration) uint64
	// Clone returns an independent stream of the same records.
	Clone() Stream
}

// Split returns split s of splits: record j of it is record j·splits + s of
// the stream. The splits of a stream are disjoint and together are the stream.
// The split works on a clone. It panics unless 0 <= s < splits.
func Split(stream Stream, s, splits int) Stream {
	if s < 0 || s >= splits {
		panic("workloads: split out of range")
	}
	if splits == 1 {
		return stream.Clone()
	}
	return &split{stream.Clone(), uint64(s), uint64(splits)}
}

type split struct {
	of        Stream
	s, splits uint64
}

func (p *split) Fill(dst *core.Columns, from uint64, n int) { p.FillStrided(dst, from, 1, n) }

func (p *split) FillStrided(dst *core.Columns, from, stride uint64, n int) {
	p.of.FillStrided(dst, from*p.splits+p.s, stride*p.splits, n)
}

func (p *split) Due(t time.Duration) uint64 { return p.share(p.of.Due(t)) }

func (p *split) Scheduled(d time.Duration) uint64 { return p.share(p.of.Scheduled(d)) }

// share returns how many of the stream's first n records are in the split.
func (p *split) share(n uint64) uint64 {
	if n <= p.s {
		return 0
	}
	return (n-p.s-1)/p.splits + 1
}

func (p *split) Clone() Stream { return &split{p.of.Clone(), p.s, p.splits} }

// before adapts an arrival process to Due: records with intended time <= t.
func before(b interface{ Before(int64) uint64 }, t time.Duration) uint64 {
	if t == math.MaxInt64 {
		return b.Before(math.MaxInt64)
	}
	return b.Before(int64(t) + 1)
}
