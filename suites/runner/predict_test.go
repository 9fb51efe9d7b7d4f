package runner

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/model"
	"github.com/weir-bench/weir/suites/spec"
)

const ms = time.Millisecond

// move is n groups of random sizes and loads that go from task 0 to 1.
func someMoves(seed uint64, n int) ([]core.Move, meters) {
	r := rand.New(rand.NewPCG(seed, 2))
	m := newMeters(make([]int32, n))
	var moves []core.Move
	for g := range n {
		m.bytes[g], m.rate[g] = 1000+r.Int64N(100_000), r.Float64()*100
		moves = append(moves, core.Move{Group: uint32(g), From: 0, To: 1})
	}
	m.load = slices.Clone(m.rate)
	return moves, m
}

// The rounds that are predicted are those that the strategy makes of the request, and they are even.
func TestDealtRoundsAreTheStrategysAndEven(t *testing.T) {
	strategy, err := migration.Lookup("async-rounds")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ groups, rounds int }{{1, 1}, {7, 3}, {256, 1}, {256, 31}, {1000, 8}, {256, 256}} {
		moves, m := someMoves(*seedFlag, c.groups)
		want := dealt(moves, m, c.rounds)
		got := roundsOf(strategy, migration.Request{Moves: slices.Concat(want...), Rounds: c.rounds})
		if len(got) != c.rounds || !slices.EqualFunc(got, want, func(a, b []core.Move) bool { return slices.Equal(a, b) }) {
			t.Fatalf("%d groups in %d rounds: the strategy makes other rounds of them; -seed=%d", c.groups, c.rounds, *seedFlag)
		}
		sizes := make([]float64, len(got))
		for i, r := range got {
			sizes[i] = float64(sizeOf(m, r))
		}
		mean := float64(sizeOf(m, moves)) / float64(c.rounds)
		if c.groups >= 16*c.rounds && slices.Max(sizes) > 1.05*mean {
			t.Errorf("%d groups in %d rounds: the largest has %.0f bytes, the mean is %.0f; -seed=%d", c.groups, c.rounds, slices.Max(sizes), mean, *seedFlag)
		}
	}
}

func TestFitFindsTheLine(t *testing.T) {
	r := rand.New(rand.NewPCG(*seedFlag, 3))
	cal := &calibration{}
	for _, n := range []int{1, 8, 64} {
		for i := range 4 + 16/n {
			bandwidth := 300e6
			if i < 2 {
				bandwidth = 600e6
			}
			took := 700*time.Microsecond + time.Duration(float64(n)*80_000/bandwidth*float64(time.Second)*(0.95+0.1*r.Float64()))
			if i == 3 && n < 64 { // a hiccup
				took += 20 * ms
			}
			cal.points = append(cal.points, roundCost{n, int64(n) * 80_000, took, i < 2})
		}
	}
	cal.fit()
	if !cal.ok() || math.Abs(cal.bandwidth/300e6-1) > 0.1 || math.Abs(cal.first/600e6-1) > 0.1 || cal.sync < 600*time.Microsecond || cal.sync > 800*time.Microsecond {
		t.Errorf("%v: %.0f bytes a second, first %.0f, and %v a round, want about 300 and 600 million and 700 µs; -seed=%d", cal.why, cal.bandwidth, cal.first, cal.sync, *seedFlag)
	}
	none := &calibration{}
	if none.fit(); none.ok() {
		t.Errorf("a line through nothing: %+v", none)
	}
	// Without a line, what was measured counts in full.
	for name, points := range map[string][]roundCost{"one size": {{1, 1000, ms, true}, {1, 1000, 2 * ms, false}, {1, 1000, 3 * ms, false}},
		"no slope": {{1, 1000, 2 * ms, false}, {1, 1000, 2 * ms, true}, {4, 4000, 2 * ms, false}}} {
		c := &calibration{points: points}
		largest := points[len(points)-1].bytes
		if c.fit(); !c.ok() || !c.rough || c.sync != 2*ms || math.Abs(c.bandwidth*0.002/float64(largest)-1) > 1e-9 {
			t.Errorf("%s: %+v, want 2 ms a round, and the state of the largest in 2 ms", name, c)
		}
	}
	for groups, want := range map[int][]int{512: {1, 5, 32}, 64: {1, 2, 4}, 3: {1, 3}, 1: {1}, 0: nil} {
		if got := probeSizes(groups); !slices.Equal(got, want) {
			t.Errorf("of %d groups, rounds of %v are tried, want %v", groups, got, want)
		}
	}
}

func TestProbeKeepsItsTraces(t *testing.T) {
	p := &probe{over: make(chan struct{})}
	for _, tr := range []coord.Trace{{Kind: coord.TraceMigration}, {Kind: coord.TraceRound, AtNS: 10}, {Kind: coord.TraceRoundDone, AtNS: 30}, {Kind: coord.TraceMigrated}} {
		if isClosed(p.over) {
			t.Fatalf("over before %s", tr.Kind)
		}
		if !p.take(tr) {
			t.Errorf("%s is told to others", tr.Kind)
		}
	}
	if p.take(coord.Trace{Kind: coord.TraceDetected}) {
		t.Error("a lost worker is not told")
	}
	if !p.take(coord.Trace{Kind: coord.TraceSuspended}) {
		t.Error("the last words are told to others")
	}
	if p.take(coord.Trace{Kind: coord.TraceMigration}) || p.take(coord.Trace{Kind: coord.TraceSuspended}) {
		t.Error("the next move's are kept")
	}
	if !isClosed(p.over) || !slices.Equal(p.took, []time.Duration{20}) {
		t.Errorf("over %v, rounds %v", isClosed(p.over), p.took)
	}
}

// plain is a model of 100 MB at 1 GB/s in rounds of 1 ms each.
func plainSplit(moves []core.Move, m meters) *split {
	return &split{model: model.Migration{StateBytes: sizeOf(m, moves), BandwidthBytesPerSecond: 1e9, SyncCost: ms, ArrivalPerSecond: 1e5,
		MovingShare: 0.5, Utilisation: 0.5, Groups: len(moves), LargestGroupBytes: slices.Max(m.bytes)}}
}

func TestRoundsForAPeakKeepIt(t *testing.T) {
	moves, m := someMoves(*seedFlag, 300)
	for _, peak := range []time.Duration{2 * ms, 5 * ms, 15 * ms} {
		s := plainSplit(moves, m)
		if err := s.choose(&spec.Migration{Peak: peak}, m, moves); err != nil {
			t.Fatal(err)
		}
		if got := longest(s.predict(m, dealt(moves, m, s.recommended))); got > peak {
			t.Errorf("peak %v: %d rounds, of which one takes %v", peak, s.recommended, got)
		}
		if n := s.recommended - 1; n > 0 && longest(s.predict(m, dealt(moves, m, n))) <= peak {
			t.Errorf("peak %v: %d rounds, although %d would do", peak, s.recommended, n)
		}
	}
	s := plainSplit(moves, m)
	m.bytes[17], m.bytes[250] = 3e6, 4e6
	s.model.StateBytes, s.model.LargestGroupBytes = sizeOf(m, moves), 4e6
	err := s.choose(&spec.Migration{Peak: 3500 * time.Microsecond}, m, moves)
	if !errors.Is(err, model.ErrPeakTarget) || !strings.Contains(err.Error(), "2 key groups: 17 (3000000 bytes), 250 (4000000 bytes)") {
		t.Errorf("two groups that are too large are not named: %v", err)
	}
	s.nameLarge(m, moves, 30)
	if !slices.Equal(s.tooLarge[:2], []uint32{250, 17}) {
		t.Errorf("too large for a round of 30: %v, want 250 and 17 first", s.tooLarge)
	}
}

func TestPredictedPercentile(t *testing.T) {
	one := []roundLoad{{bytes: 1, rate: 50_000, takes: 200 * ms}}
	// Half of the records of the first interval wait between 200 and 150 ms; the slowest fiftieth of these are 1 % of all.
	if got := peakP99(one, 100_000, 50*ms, ms, 2*ms); math.Abs(got.Seconds()-0.200) > 0.0001 {
		t.Errorf("one round of 200 ms: %v, want 200 ms: 1 ms less of the slowest, and 1 ms on the way", got)
	}
	many := make([]roundLoad, 100)
	for i := range many {
		many[i] = roundLoad{bytes: 1, rate: 500, takes: 2 * ms}
	}
	if got := peakP99(many, 100_000, 50*ms, ms, 3*ms); got != 3*ms {
		t.Errorf("a hundredth of half of the records waits: %v, want the level before", got)
	}
	if got := excess(one, 0.5); math.Abs(got-50_000*0.2*0.2) > 1e-6 {
		t.Errorf("Σ of waits %v, want %v record-seconds", got, 50_000*0.2*0.2)
	}
	if d := duration(many); d != 200*ms {
		t.Errorf("duration %v, want 200 ms", d)
	}
}
