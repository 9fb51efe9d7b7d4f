package runner

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/model"
	"github.com/weir-bench/weir/suites/spec"
)

const (
	// spikeWeight is how much a second of waiting counts against a second of duration when the cost model weighs the two.
	spikeWeight = 100
	// fullest is the utilisation that the model is given for a task at or above capacity, which never drains.
	fullest = 0.98
)

// split is how a move was divided into rounds, and what is expected of it.
type split struct {
	model       model.Migration
	first       time.Duration // what the first round takes more than the others
	stall       time.Duration // longest time that a round holds up the records of other groups; 0: not known
	how         string        // where the model's figures come from
	utilisation float64       // as measured; the model's is below 1
	recommended int           // N of the model; 0: it has no figures
	ideal       float64
	tooLarge    []uint32 // groups whose state alone takes longer than a round should
	rounds      []roundLoad
	why         string // there is no model
}

// roundLoad is what a round moves.
type roundLoad struct {
	bytes int64
	rate  float64 // records a second of its groups
	takes time.Duration
	parts []roundPart
}

// roundPart is a key group of a round: its records wait until its own state has come, and no longer.
type roundPart struct {
	rate  float64
	ready time.Duration // from the round's beginning
}

// cost is the model of a move. A task that takes part is as occupied as it was before the move.
func (t *trial) cost(m meters, moves []core.Move, busy float64) model.Migration {
	cal := t.calibration
	c := model.Migration{BandwidthBytesPerSecond: cal.bandwidth, SyncCost: cal.sync, StreamBandwidthBytesPerSecond: cal.stream,
		StreamSyncCost: cal.streamSync, Jitter: cal.jitter, Groups: len(moves)}
	if limit := float64(t.cell.Migration.Bandwidth); limit > 0 {
		c.BandwidthBytesPerSecond, c.StreamBandwidthBytesPerSecond = min(c.BandwidthBytesPerSecond, limit), min(c.StreamBandwidthBytesPerSecond, limit)
	}
	if c.StreamBandwidthBytesPerSecond <= c.BandwidthBytesPerSecond { // the limit is all there is to see
		c.StreamBandwidthBytesPerSecond, c.StreamSyncCost = 0, 0
	}
	moving := 0.0
	for _, mv := range moves {
		moving += m.rate[mv.Group]
		c.StateBytes += m.bytes[mv.Group]
		c.LargestGroupBytes = max(c.LargestGroupBytes, m.bytes[mv.Group])
	}
	for _, r := range m.rate {
		c.ArrivalPerSecond += r
	}
	if c.ArrivalPerSecond > 0 {
		c.MovingShare = min(1, moving/c.ArrivalPerSecond)
	}
	c.Utilisation = min(busy, fullest)
	return c
}

// choose is the number of rounds that the cost model recommends. With a target for the peak it is the fewest that keep it;
// that none does is an error that wraps model.ErrPeakTarget.
func (s *split) choose(of *spec.Migration, m meters, moves []core.Move) error {
	var c model.RoundChoice
	var err error
	switch {
	case of.Peak > 0:
		if c, err = s.model.RoundsForPeak(of.Peak); errors.Is(err, model.ErrPeakTarget) && s.model.Jitter > 0 {
			// The target may be below what the machine does at times, moving or not. It then holds for the rounds' own time.
			calm := s.model
			calm.Jitter = 0
			c, err = calm.RoundsForPeak(of.Peak)
		}
	case of.Wait == "all":
		c, err = s.model.RoundsAllWait()
	default:
		c, err = s.model.RoundsMovingWait(spikeWeight, 1)
	}
	if err != nil {
		if errors.Is(err, model.ErrPeakTarget) {
			return fmt.Errorf("migration.peak: %w%s", err, s.tooLargeText(m, moves, of.Peak))
		}
		return fmt.Errorf("the cost model: %w", err)
	}
	s.recommended, s.ideal = c.Rounds, c.Ideal
	if of.Peak > 0 {
		// The closed form takes groups as alike. They are dealt to rounds whole, so some round may be longer.
		for s.recommended < len(moves) && longest(s.predict(m, dealt(moves, m, s.recommended))) > of.Peak {
			s.recommended++
		}
	}
	return nil
}

// tooLargeText names the groups that no number of rounds helps.
func (s *split) tooLargeText(m meters, moves []core.Move, limit time.Duration) string {
	var sizes []int64
	for _, mv := range moves {
		sizes = append(sizes, m.bytes[mv.Group])
	}
	above, err := s.model.GroupsAbovePeak(sizes, limit)
	if err != nil || len(above) == 0 || limit <= s.model.SyncCost {
		return "" // or it is no group's fault
	}
	var names []string
	for _, i := range above[:min(len(above), 10)] {
		names = append(names, fmt.Sprintf("%d (%d bytes)", moves[i].Group, sizes[i]))
	}
	return fmt.Sprintf("; too large alone: %d key groups: %s", len(above), strings.Join(names, ", "))
}

// nameLarge notes the groups whose state is more than a round's share, so that their round is longer than the others.
func (s *split) nameLarge(m meters, moves []core.Move, rounds int) {
	share := s.model.StateBytes / int64(rounds)
	for _, mv := range moves {
		if rounds < len(moves) && m.bytes[mv.Group] > share || m.bytes[mv.Group] > 2*share && share > 0 {
			s.tooLarge = append(s.tooLarge, mv.Group)
		}
	}
	slices.SortFunc(s.tooLarge, func(a, b uint32) int { return cmp.Or(cmp.Compare(m.bytes[b], m.bytes[a]), cmp.Compare(a, b)) })
}

// roundsOf are the moves of each round of a strategy, from its own machine.
func roundsOf(s migration.Strategy, r migration.Request) (out [][]core.Move) {
	machine := s.New(r)
	for acts := machine.Step(migration.Begin, 0); ; acts = machine.Step(migration.RoundDone, 0) {
		more := false
		for _, a := range acts {
			if a.Do == migration.Route {
				out, more = append(out, a.Moves), true
			}
		}
		if !more {
			return out
		}
	}
}

// predict is what rounds take, one after the other. Their key groups come in their order, each when its share of the state
// has.
func (s *split) predict(m meters, rounds [][]core.Move) []roundLoad {
	out := make([]roundLoad, len(rounds))
	for i, moves := range rounds {
		r := &out[i]
		for _, mv := range moves {
			r.bytes += m.bytes[mv.Group]
			r.rate += m.rate[mv.Group]
		}
		r.takes = s.model.Round(r.bytes)
		if i == 0 {
			r.takes += s.first
		}
		come := int64(0)
		for j, mv := range moves {
			come += m.bytes[mv.Group]
			ready := r.takes
			if j < len(moves)-1 && r.bytes > 0 {
				ready = time.Duration(float64(r.takes) * float64(come) / float64(r.bytes))
			}
			r.parts = append(r.parts, roundPart{m.rate[mv.Group], ready})
		}
	}
	return out
}

// longest is the longest mean time of a round.
func longest(rounds []roundLoad) (d time.Duration) {
	for _, r := range rounds {
		d = max(d, r.takes)
	}
	return d
}

// wait is the longest wait that the rounds lead to: that of a record which comes as the longest begins and whose state comes
// last, and what jitter adds to the longest of so many.
func (s *split) wait() time.Duration { return longest(s.rounds) + s.jitter() }

// jitter is what the longest of all rounds takes above the mean of its kind.
func (s *split) jitter() time.Duration {
	if len(s.rounds) == 0 {
		return 0
	}
	return time.Duration(float64(s.model.Jitter) * model.NormalMaximum(len(s.rounds)))
}

// stalled is how long the rounds hold up the records of groups that stay: as long as a round is at work in their tasks and on
// their cores, but not longer than any was seen to; and what jitter adds. Where that was not measured it is 0.
func (s *split) stalled() time.Duration {
	if s.stall == 0 {
		return 0
	}
	return min(longest(s.rounds), s.stall) + s.jitter()
}

// duration is that of all rounds, one after the other.
func duration(rounds []roundLoad) (d time.Duration) {
	for _, r := range rounds {
		d += r.takes
	}
	return d
}

// excess is Σ of the waits of all records for their state, in record-seconds: of each key group the triangle of the time until
// its state has come and of the time until its backlog is gone.
func excess(rounds []roundLoad, utilisation float64) (sum float64) {
	for _, r := range rounds {
		for _, p := range r.parts {
			sum += p.rate * p.ready.Seconds() * p.ready.Seconds() / (2 * (1 - utilisation))
		}
	}
	return sum
}

// level is the delay before a move: half of all records took p50, the slowest of a hundred p99.
type level struct{ p50, p99 time.Duration }

// peakP99 is the highest 99th percentile of an interval that the rounds lead to. The records of a round's groups wait until
// their state has come. Once in an interval, all are held up for stalled. Of an interval, those that wait longer than w are
// few when rounds are short and their groups have a small share of the load, so many short waits are not seen in the
// percentile at all.
func peakP99(rounds []roundLoad, total float64, interval, stalled time.Duration, before level) time.Duration {
	end := duration(rounds)
	if total <= 0 || interval <= 0 {
		return before.p99
	}
	worst := time.Duration(0)
	for from := time.Duration(0); from < end; from += interval {
		low, high := time.Duration(0), max(longest(rounds), stalled)
		for range 40 {
			w := (low + high) / 2
			waiting := waitingLonger(rounds, from, from+interval, w) + total*max(0, min(interval, stalled-w)).Seconds()
			if waiting/(total*interval.Seconds()) > 0.01 {
				low = w
			} else {
				high = w
			}
		}
		worst = max(worst, low)
	}
	if worst == 0 {
		return before.p99
	}
	return max(before.p99, before.p50+worst)
}

// waitingLonger counts the records due in [from, to) that wait longer than w; the first round begins at 0.
func waitingLonger(rounds []roundLoad, from, to, w time.Duration) (n float64) {
	at := time.Duration(0)
	for _, r := range rounds {
		if at >= to {
			break
		}
		if at+r.takes-w > from {
			for _, p := range r.parts {
				if span := min(to, at+p.ready-w) - max(from, at); span > 0 {
					n += p.rate * span.Seconds()
				}
			}
		}
		at += r.takes
	}
	return n
}

// bin is a round that is being filled.
type bin struct {
	index, room int
	bytes       int64
	moves       []core.Move
}

type bins []*bin

func (b bins) Len() int { return len(b) }
func (b bins) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(b[i].bytes, b[j].bytes), cmp.Compare(b[i].index, b[j].index)) < 0
}
func (b bins) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b *bins) Push(x any)   { *b = append(*b, x.(*bin)) }
func (b *bins) Pop() any {
	old := *b
	x := old[len(old)-1]
	*b = old[:len(old)-1]
	return x
}

// dealt divides moves into n rounds of nearly equal numbers of groups, as strategies cut them, so that the rounds have
// nearly the same state and load: the largest first, each to the round with the least state that still has room (longest
// processing time, Graham 1969). Within a round the groups with the most load come first.
func dealt(moves []core.Move, m meters, n int) [][]core.Move {
	n = max(1, min(n, len(moves)))
	sorted := slices.Clone(moves)
	slices.SortStableFunc(sorted, func(a, b core.Move) int {
		return cmp.Or(cmp.Compare(m.bytes[b.Group], m.bytes[a.Group]), falling(m.rate[a.Group], m.rate[b.Group]))
	})
	open := make(bins, n)
	out := make([][]core.Move, n)
	all := make([]*bin, n)
	for i := range open {
		open[i] = &bin{index: i, room: (i+1)*len(moves)/n - i*len(moves)/n}
		all[i] = open[i]
	}
	heap.Init(&open)
	for _, mv := range sorted {
		b := open[0]
		b.moves = append(b.moves, mv)
		b.bytes += m.bytes[mv.Group]
		if b.room--; b.room == 0 {
			heap.Pop(&open)
		} else {
			heap.Fix(&open, 0)
		}
	}
	for i, b := range all {
		out[i] = hottestFirst(b.moves, m)
	}
	return out
}

// percentOff is how far a prediction is from what was measured, in percent of the latter.
func percentOff(predicted, measured float64) (float64, bool) {
	if measured <= 0 || math.IsNaN(predicted) {
		return 0, false
	}
	return (predicted/measured - 1) * 100, true
}
