package workloads

import (
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/workloads/arrivals"
	"github.com/weir-bench/weir/workloads/nexmark"
	"github.com/weir-bench/weir/workloads/shufflebench"
	"github.com/weir-bench/weir/workloads/ysb"
)

// appender makes whole records: record i, with intended time at, is appended to
// the columns of dst. Implementations are immutable.
type appender interface {
	Append(dst *core.Columns, i uint64, at int64)
}

// eventStream is a stream of a whole-event generator.
type eventStream struct {
	arrivals arrivals.Process
	events   appender
	times    []int64 // scratch
}

func (s *eventStream) Fill(dst *core.Columns, from uint64, n int) { s.FillStrided(dst, from, 1, n) }

func (s *eventStream) FillStrided(dst *core.Columns, from, stride uint64, n int) {
	s.times = slices.Grow(s.times[:0], n)[:n]
	s.arrivals.Fill(s.times, from, stride)
	for _, at := range s.times {
		s.events.Append(dst, from, at)
		from += stride
	}
}

func (s *eventStream) Due(t time.Duration) uint64 { return before(s.arrivals, t) }

func (s *eventStream) Scheduled(d time.Duration) uint64 { return s.arrivals.Before(int64(d)) }

func (s *eventStream) Clone() Stream {
	return &eventStream{arrivals: s.arrivals.Clone(), events: s.events}
}

// events returns the spec's whole-event generator, nil if it has none.
func (b *builder) events(process arrivals.Process) appender {
	s, seed := &b.spec, b.seed(labelGenerator)
	switch s.Kind {
	case KindNEXMark:
		rate := s.Rate
		if rate == 0 { // replayed arrivals: take their first minute
			rate = max(1, float64(process.Before(int64(time.Minute)))/time.Minute.Seconds())
		}
		return nexmark.New(nexmark.DefaultConfig(seed, rate))
	case KindYSB:
		c := ysb.DefaultConfig(seed)
		if s.Keys > 0 {
			c.Ads = uint64(s.Keys)
		}
		return ysb.New(c)
	case KindShuffleBench:
		c := shufflebench.DefaultConfig(seed)
		if s.Keys > 0 {
			c.Rules = uint64(s.Keys)
		}
		return shufflebench.New(c)
	}
	return nil
}
