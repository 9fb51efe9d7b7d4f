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
	"github.com/weir-bench/weir/engine/task"
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

// Rounds cost 700 µs and 300 MB/s each; large ones 6 ms and 600 MB/s; the first of a move 200 µs more. Some meet a hiccup.
func TestFitFindsTheLines(t *testing.T) {
	r := rand.New(rand.NewPCG(*seedFlag, 3))
	cal := &calibration{rest: ms}
	for _, size := range []probeSize{{1, 16}, {5, 4}, {32, 4}, {128, 1}} {
		bytes := int64(size.groups) * 80_000
		for range 2 {
			for i := range size.rounds {
				seconds := min(700e-6+float64(bytes)/300e6, 6e-3+float64(bytes)/600e6)
				took := time.Duration(seconds * (0.98 + 0.04*r.Float64()) * float64(time.Second))
				if i == 0 {
					took += 200 * time.Microsecond
				}
				if i == 3 && size.groups < 32 {
					took += 20 * ms
				}
				cal.points = append(cal.points, roundCost{size.groups, bytes, took, i == 0})
			}
			cal.trains = append(cal.trains, train{groups: size.groups, rounds: size.rounds, bytes: bytes})
		}
	}
	cal.fit()
	if !cal.ok() || math.Abs(cal.bandwidth/300e6-1) > 0.1 || cal.sync < 600*time.Microsecond || cal.sync > 800*time.Microsecond {
		t.Errorf("%v: %.0f bytes a second and %v a round, want about 300 million and 700 µs; -seed=%d", cal.why, cal.bandwidth, cal.sync, *seedFlag)
	}
	if d := cal.round(37e6); math.Abs(d.Seconds()/(6e-3+37e6/600e6)-1) > 0.15 {
		t.Errorf("37 MB in one round: %v, want about 67.7 ms: f = %v, B = %.0f; -seed=%d", d, cal.streamSync, cal.stream, *seedFlag)
	}
	if cal.first < 100*time.Microsecond || cal.first > 700*time.Microsecond {
		t.Errorf("the first of a move takes %v more, want about 200 µs; -seed=%d", cal.first, *seedFlag)
	}
	none := &calibration{}
	if none.fit(); none.ok() {
		t.Errorf("a line through nothing: %+v", none)
	}
}

func TestFitWithoutALine(t *testing.T) {
	// What was measured counts in full.
	for name, points := range map[string][]roundCost{"one size": {{1, 1000, ms, true}, {1, 1000, 2 * ms, false}, {1, 1000, 3 * ms, false}},
		"no slope": {{1, 1000, 2 * ms, false}, {1, 1000, 2 * ms, true}, {4, 4000, 2 * ms, false}}} {
		c := &calibration{points: points}
		largest := points[len(points)-1].bytes
		if c.fit(); !c.ok() || !c.rough || c.sync != 2*ms || math.Abs(c.bandwidth*0.002/float64(largest)-1) > 1e-9 {
			t.Errorf("%s: %+v, want 2 ms a round, and the state of the largest in 2 ms", name, c)
		}
	}
	// A large round that takes more than the line says is no pipeline.
	c := &calibration{trains: []train{{groups: 1, rounds: 4}, {groups: 4, rounds: 4}, {groups: 16, rounds: 1}},
		points: []roundCost{{1, 1e6, 2 * ms, false}, {4, 4e6, 5 * ms, false}, {16, 16e6, 30 * ms, true}}}
	if c.fit(); c.rough || c.stream != 0 || c.round(16e6) != 17*ms {
		t.Errorf("%+v: 16 MB take %v, want 17 ms by the one line there is", c, c.round(16e6))
	}
	for groups, want := range map[int][]probeSize{512: {{1, 16}, {5, 4}, {32, 4}, {128, 1}}, 64: {{1, 16}, {2, 8}, {4, 4}, {16, 1}}, 3: {{1, 3}, {3, 1}}, 1: {{1, 1}}, 0: nil} {
		if got := probeSizes(groups); !slices.Equal(got, want) {
			t.Errorf("of %d groups, rounds of %v are tried, want %v", groups, got, want)
		}
	}
}

// Rounds take 1 ms + 1 ms a MB; at rest half of the records take 1 ms.
func TestFitOfDelays(t *testing.T) {
	above := func(base time.Duration, z, sigmaMS float64) time.Duration {
		return base + time.Duration(z*sigmaMS*float64(ms))
	}
	c := &calibration{bandwidth: 1e9, sync: ms, rest: ms, trains: []train{
		{rounds: 16, bytes: 1e6, longest: above(3*ms, 1.7691, 2), seen: true},
		{rounds: 4, bytes: 4e6, longest: above(6*ms, 1.0491, 3), seen: true},
		{rounds: 4, bytes: 4e6, longest: above(6*ms, 1.0491, 10), seen: true},              // a hiccup: 16.49 ms
		{rounds: 4, bytes: 4e6, longest: 2 * ms, seen: true},                               // less than the round: 0
		{rounds: 4, bytes: 4e6, longest: above(6*ms, 1.0491, 100), seen: true, back: true}, // not looked at
		{rounds: 4, bytes: 4e6}, // nothing was due
		{rounds: 1, bytes: 16e6, longest: 9 * ms, seen: true},
	}}
	c.fitDelays()
	if d := c.jitter - 2500*time.Microsecond; d.Abs() > 10*time.Microsecond {
		t.Errorf("σ = %v, want the middle of 0, 2, 3 and 10 ms: 2.5 ms", c.jitter)
	}
	if d := c.stall - 15491*time.Microsecond; d.Abs() > 10*time.Microsecond {
		t.Errorf("others are held up for %v, want 15.491 ms, which is above the 1 ms at rest", c.stall)
	}
}

func TestDelayWindows(t *testing.T) {
	w := &delayWindows{}
	moving := newGroupSet(8)
	moving.in[core.KeyGroup(7, 8)] = true
	w.open(100, nil)
	w.open(200, moving)
	w.close(300)
	w.close(400) // is closed already
	w.open(500, moving)
	o := task.Output{CommittedNS: 1600, Columns: &core.Columns{}}
	stay := uint64(1)
	for core.KeyGroup(stay, 8) == core.KeyGroup(7, 8) {
		stay++
	}
	for _, x := range []struct {
		due int64
		key uint64
	}{{50, stay}, {100, 7}, {199, stay}, {200, stay}, {210, 7}, {299, stay}, {300, stay}, {350, stay}, {500, stay}} {
		o.Columns.Times, o.Columns.Keys = append(o.Columns.Times, 1000+x.due), append(o.Columns.Keys, x.key)
	}
	w.note(&o, 1000)
	for i, want := range []struct {
		n       int64
		longest time.Duration
	}{{2, 500}, {2, 400}, {1, 100}} {
		if got, _ := w.of[i].delays.Max(); w.of[i].delays.Samples() != want.n || got != want.longest {
			t.Errorf("window %d: %d records, the longest %v; want %d and %v", i, w.of[i].delays.Samples(), got, want.n, want.longest)
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

// alone is a round of one key group.
func alone(rate float64, takes time.Duration) roundLoad {
	return roundLoad{bytes: 1, rate: rate, takes: takes, parts: []roundPart{{rate, takes}}}
}

func TestPredictedPercentile(t *testing.T) {
	one, before := []roundLoad{alone(50_000, 200*ms)}, level{ms, 2 * ms}
	// Half of the records of the first interval wait between 200 and 150 ms; the slowest fiftieth of these are 1 % of all.
	if got := peakP99(one, 100_000, 50*ms, 0, before); math.Abs(got.Seconds()-0.200) > 0.0001 {
		t.Errorf("one round of 200 ms: %v, want 200 ms: 1 ms less of the slowest, and 1 ms on the way", got)
	}
	many := make([]roundLoad, 100)
	for i := range many {
		many[i] = alone(500, 2*ms)
	}
	if got := peakP99(many, 100_000, 50*ms, 0, level{ms, 3 * ms}); got != 3*ms {
		t.Errorf("a hundredth of half of the records waits: %v, want the level before", got)
	}
	// All are held up for 10 ms: of the 50 ms, those of the last 0.5 ms wait longer than 9.5 ms.
	if got := peakP99(many, 100_000, 50*ms, 10*ms, before); math.Abs(got.Seconds()-0.0105) > 0.0001 {
		t.Errorf("all held up for 10 ms: %v, want 9.5 ms, and 1 ms on the way", got)
	}
	if got := excess(one, 0.5); math.Abs(got-50_000*0.2*0.2) > 1e-6 {
		t.Errorf("Σ of waits %v, want %v record-seconds", got, 50_000*0.2*0.2)
	}
	if d := duration(many); d != 200*ms {
		t.Errorf("duration %v, want 200 ms", d)
	}
}

// Four groups of 10, 10, 20 and 40 MB at 1 GB/s and 20 ms a round are here after 1/8, 1/4, 1/2 and all of 100 ms.
func TestGroupsWaitForTheirOwnState(t *testing.T) {
	m := newMeters(make([]int32, 4))
	copy(m.bytes, []int64{10e6, 10e6, 20e6, 40e6})
	copy(m.rate, []float64{100, 200, 300, 400})
	var moves []core.Move
	for g := range uint32(4) {
		moves = append(moves, core.Move{Group: g, From: 0, To: 1})
	}
	s := plainSplit(moves, m)
	s.model.SyncCost, s.model.Jitter, s.first = 20*ms, 2*ms, 5*ms
	s.rounds = s.predict(m, [][]core.Move{moves[:0], moves})
	want := []roundPart{{100, 12500 * time.Microsecond}, {200, 25 * ms}, {300, 50 * ms}, {400, 100 * ms}}
	if !slices.Equal(s.rounds[1].parts, want) || s.rounds[0].takes != 25*ms || s.rounds[1].takes != 100*ms {
		t.Errorf("%+v, want parts of %v behind a first round of 25 ms", s.rounds, want)
	}
	if got := excess(s.rounds[1:], 0.5); math.Abs(got-(100*.0125*.0125+200*.025*.025+300*.05*.05+400*.1*.1)) > 1e-9 {
		t.Errorf("Σ of waits is %v record-seconds", got)
	}
	// Due in the second round's 20 ms from 30 ms on, that is 55 to 75 ms: longer than 45 ms wait those of the last group due until 55 + 25.
	if got := waitingLonger(s.rounds, 55*ms, 75*ms, 45*ms); math.Abs(got-400*0.02) > 1e-9 {
		t.Errorf("%v records wait longer than 45 ms, want those of the last group: 8", got)
	}
	if got, want := s.wait(), 100*ms+time.Duration(2*0.5895*float64(ms)); (got - want).Abs() > 10*time.Microsecond {
		t.Errorf("longest wait %v, want %v: of two rounds with σ = 2 ms", got, want)
	}
	if s.stalled() != 0 {
		t.Error("others are held up, though that was not measured")
	}
	if s.stall = 7 * ms; s.stalled() != 7*ms+s.jitter() {
		t.Errorf("others are held up for %v, want 7 ms and the jitter", s.stalled())
	}
}

// A target below the machine's own jitter holds for the rounds themselves.
func TestJitterDoesNotRefuseATarget(t *testing.T) {
	moves, m := someMoves(*seedFlag, 300)
	calm, s := plainSplit(moves, m), plainSplit(moves, m)
	s.model.Jitter = 50 * ms
	for _, x := range []*split{calm, s} {
		if err := x.choose(&spec.Migration{Peak: 3 * ms}, m, moves); err != nil {
			t.Fatal(err)
		}
	}
	if s.recommended != calm.recommended {
		t.Errorf("%d rounds with jitter, %d without; want the same; -seed=%d", s.recommended, calm.recommended, *seedFlag)
	}
}
