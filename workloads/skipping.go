package workloads

import (
	"slices"
	"sort"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// Skipping is a stream from which records were left out because they were overdue: the skip policy of catching up. Its
// record j is the j-th that was not left out. What was offered before a skip keeps its number, so a source can still
// seek anywhere. It serves one goroutine.
type Skipping struct {
	of      Stream
	cuts    []skipCut // in order
	skipped uint64
}

// skipCut says that from record `from` of the thinned stream on, shift records before it were left out in all.
type skipCut struct{ from, shift uint64 }

// NewSkipping returns a stream from which nothing was left out yet.
func NewSkipping(of Stream) *Skipping { return &Skipping{of: of.Clone()} }

// Skip leaves out the n records that would come next after the first at records. at must not decrease.
func (s *Skipping) Skip(at, n uint64) {
	if n == 0 {
		return
	}
	if k := len(s.cuts) - 1; k >= 0 && at < s.cuts[k].from {
		panic("workloads: records that were offered already cannot be skipped")
	}
	s.skipped += n
	s.cuts = append(s.cuts, skipCut{at, s.skipped})
}

// Skipped returns how many records were left out.
func (s *Skipping) Skipped() uint64 { return s.skipped }

// Of returns the whole stream.
func (s *Skipping) Of() Stream { return s.of }

// shift returns how many records were left out before record j, and how many records from j on have the same shift.
func (s *Skipping) shift(j uint64) (shift, run uint64) {
	k := sort.Search(len(s.cuts), func(i int) bool { return s.cuts[i].from > j })
	run = 1<<64 - 1 - j
	if k < len(s.cuts) {
		run = s.cuts[k].from - j
	}
	if k > 0 {
		shift = s.cuts[k-1].shift
	}
	return shift, run
}

// Fill implements Stream.
func (s *Skipping) Fill(dst *core.Columns, from uint64, n int) {
	for n > 0 {
		shift, run := s.shift(from)
		m := int(min(run, uint64(n)))
		s.of.Fill(dst, from+shift, m)
		from += uint64(m)
		n -= m
	}
}

// FillStrided implements Stream.
func (s *Skipping) FillStrided(dst *core.Columns, from, stride uint64, n int) {
	for range n {
		s.Fill(dst, from, 1)
		from += stride
	}
}

// Due implements Stream, for times from the last skip on.
func (s *Skipping) Due(t time.Duration) uint64 { return s.less(s.of.Due(t)) }

// Scheduled implements Stream, for times from the last skip on.
func (s *Skipping) Scheduled(d time.Duration) uint64 { return s.less(s.of.Scheduled(d)) }

func (s *Skipping) less(n uint64) uint64 { return n - min(n, s.skipped) }

// Clone implements Stream.
func (s *Skipping) Clone() Stream {
	return &Skipping{of: s.of.Clone(), cuts: slices.Clone(s.cuts), skipped: s.skipped}
}
