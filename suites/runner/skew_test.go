package runner

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration/detect"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/workloads"
)

var seedFlag = flag.Uint64("seed", 1, "seed of the random tests")

// reporting is an operator whose tasks are simulated: records fall to key groups by chance, and each task reports its meters
// at moments of its own, as workers do.
type reporting struct {
	tasks  int
	route  []int32
	counts []uint64 // by group, since the start
	offset []time.Duration
	meters []core.Meters // the newest report of each task
	zipf   []float64     // cumulative shares of keys; nil: uniform over groups
	group  []uint32      // of each key
	rng    *rand.Rand
}

const (
	simGroups  = 256
	reportTime = 80 * time.Millisecond
	lookTime   = 20 * time.Millisecond
)

func newReporting(seed uint64, tasks int) *reporting {
	r := &reporting{tasks: tasks, route: core.NewRoutes(simGroups, tasks).Task, counts: make([]uint64, simGroups),
		meters: make([]core.Meters, tasks), rng: rand.New(rand.NewPCG(seed, 1))}
	for range tasks {
		r.offset = append(r.offset, time.Duration(r.rng.Int64N(int64(reportTime))).Truncate(lookTime))
	}
	return r
}

// skew makes the keys Zipf from here on.
func (r *reporting) skew(exponent float64) {
	sum := 0.0
	for k := 1; k <= 10_000; k++ {
		sum += math.Pow(float64(k), -exponent)
		r.zipf = append(r.zipf, sum)
		r.group = append(r.group, core.KeyGroup(r.rng.Uint64(), simGroups))
	}
}

// pass lets n records come.
func (r *reporting) pass(n int) {
	for range n {
		if r.zipf == nil {
			r.counts[r.rng.IntN(simGroups)]++
			continue
		}
		r.counts[r.group[sort.SearchFloat64s(r.zipf, r.rng.Float64()*r.zipf[len(r.zipf)-1])]]++
	}
}

// report lets the tasks report whose time it is.
func (r *reporting) report(now time.Duration) {
	for d := range r.tasks {
		if (now+r.offset[d])%reportTime != 0 {
			continue
		}
		m := core.Meters{Task: d}
		for g, owner := range r.route {
			if int(owner) == d {
				m.Groups, m.Loads, m.StateBytes = append(m.Groups, uint32(g)), append(m.Loads, r.counts[g]), append(m.StateBytes, 1000)
			}
		}
		r.meters[d] = m
	}
}

// watching runs the default detector of suites over simulated meters for a time and returns its alarms.
func watching(t *testing.T, r *reporting, perSecond float64, from, to time.Duration, d *detect.Detector, m *rateMeter) (alarms []time.Duration) {
	t.Helper()
	var def spec.Migration
	window := migrationDefaults(t, &def).Detect.Window
	records := make([]int64, simGroups)
	due := 0.0
	for now := from + lookTime; now <= to; now += lookTime {
		due += perSecond * lookTime.Seconds()
		r.pass(int(due))
		due -= math.Floor(due)
		r.report(now)
		for i := range r.meters {
			m.look(i, &r.meters[i], now)
		}
		if now%window != 0 {
			continue
		}
		m.take(now, records)
		s, err := d.Step(detect.Sample{At: now, Records: records, Route: r.route})
		if err != nil {
			t.Fatal(err)
		}
		if s.Alarm {
			alarms = append(alarms, now)
		}
	}
	return alarms
}

// migrationDefaults fills m with what a suite that says nothing of its detector gets.
func migrationDefaults(t *testing.T, m *spec.Migration) *spec.Migration {
	t.Helper()
	s, _ := parse(t, tiny, "cells.quiet.migration={strategy: none, trigger: detect}")
	for _, c := range s.Cells {
		if c.Name == "quiet" {
			*m = *c.Migration
		}
	}
	return m
}

func defaultDetector(t *testing.T, tasks int) *detect.Detector {
	t.Helper()
	var m spec.Migration
	d, err := detect.New(detectConfig(migrationDefaults(t, &m).Detect, tasks, simGroups))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSuiteDefaultsAreTheDetectors(t *testing.T) {
	var m spec.Migration
	if got, want := detectConfig(migrationDefaults(t, &m).Detect, 4, 128), detect.DefaultConfig(4, 128); got != want {
		t.Errorf("a suite that says nothing gets %+v, the detector's own are %+v", got, want)
	}
}

func TestNoFalseAlarmInAnHourOfReports(t *testing.T) {
	length := time.Hour
	if testing.Short() {
		length = 5 * time.Minute
	}
	const tasks = 4
	if got := watching(t, newReporting(*seedFlag, tasks), 1500, 0, length, defaultDetector(t, tasks), newRateMeter(tasks, simGroups)); len(got) > 0 {
		t.Errorf("false alarms at %v; go test -run TestNoFalseAlarm -seed=%d", got, *seedFlag)
	}
}

func TestSkewIsDetectedFromReports(t *testing.T) {
	const tasks, start = 4, 5 * time.Second
	skewed := 0
	for seed := *seedFlag; seed < *seedFlag+12; seed++ {
		r, d, m := newReporting(seed, tasks), defaultDetector(t, tasks), newRateMeter(tasks, simGroups)
		early := watching(t, r, 10_000, 0, start, d, m)
		r.skew(1.2)
		share, before := make([]float64, tasks), 0.0
		for k, sum := range r.zipf {
			share[r.route[r.group[k]]] += sum - before
			before = sum
		}
		if theta(share) < 0.25 { // chance has spread the hot keys
			continue
		}
		skewed++
		got := watching(t, r, 10_000, start, start+3*time.Second, d, m)
		if len(early) > 0 || len(got) != 1 || got[0]-start > 2*time.Second {
			t.Errorf("θ %.2f: alarms %v before and %v after %v, want one within 2 s; go test -run TestSkewIsDetected -seed=%d", theta(share), early, got, start, seed)
		}
	}
	if skewed < 6 {
		t.Errorf("only %d of 12 placements are skewed", skewed)
	}
}

// A task that reports twice between two looks is not twice as loaded, and one that was deployed anew not idle.
func TestRatesTakeTheLengthOfReportsIntoAccount(t *testing.T) {
	m := newRateMeter(2, 2)
	at := func(task int, group uint32, count uint64, now time.Duration) {
		m.look(task, &core.Meters{Groups: []uint32{group}, Loads: []uint64{count}, StateBytes: []int64{7}}, now)
	}
	const s = time.Second
	at(0, 0, 1000, s)
	at(1, 1, 1000, s)
	at(0, 0, 1100, s+100*time.Millisecond)
	at(0, 0, 1200, s+200*time.Millisecond)
	at(1, 1, 1100, s+100*time.Millisecond)
	got := make([]int64, 2)
	m.takenAt = s
	if m.take(s+200*time.Millisecond, got); !slices.Equal(got, []int64{200, 200}) {
		t.Errorf("got %v records, want 200 each: both had 1,000 a second", got)
	}
	at(1, 1, 100, s+200*time.Millisecond) // the count begins again
	if m.take(s+300*time.Millisecond, got); got[1] != 100 {
		t.Errorf("got %v records, want 100 of the task that began again", got)
	}
	if m.take(s+5*time.Second, got); m.tasks[0].rate[0] != 1000 {
		t.Errorf("rate %v, want the last one known", m.tasks[0].rate)
	}
	for now := 10 * s; now < 20*s; now += s {
		m.take(now, got)
	}
	if !slices.Equal(got, []int64{0, 0}) {
		t.Errorf("got %v records of tasks that fell silent long ago", got)
	}
}

func TestSegmentsFollowTheTruth(t *testing.T) {
	const s = time.Second
	onsets := []workloads.Onset{{Kind: "start"}, {Kind: workloads.ChangeFlash, Begin: 3 * s, End: 4 * s}, {Kind: workloads.ChangeDrift, Begin: 6 * s, End: 8 * s}}
	got := segments(onsets, []time.Duration{5 * s}, 10*s)
	want := []segment{{from: 0, to: 3 * s}, {from: 3 * s, to: 4 * s}, {from: 4 * s, to: 5 * s}, {from: 5 * s, to: 6 * s}, {from: 6 * s, to: 8 * s, gradual: true}, {from: 8 * s, to: 10 * s}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for i, th := range []float64{0.5, 0.01, 0.21, 0.5, 0.6, 0.1} {
		got[i].theta = th
	}
	tr := judgeSegments(got, 0.2, s)
	if want := []detect.Episode{{Start: s, End: 3 * s}, {Start: 5 * s, End: 8 * s}}; !slices.Equal(tr.skewed, want) {
		t.Errorf("skewed %v, want %v: from the end of the warm-up, and what touches is one", tr.skewed, want)
	}
	if want := []detect.Episode{{Start: 4 * s, End: 5 * s}}; !slices.Equal(tr.unclear, want) {
		t.Errorf("unclear %v, want %v", tr.unclear, want)
	}
}

func TestKeysOfOperatorsThatChangeThem(t *testing.T) {
	job := core.Job{Operators: []core.OperatorSpec{{Name: "s", Kind: "source"}, {Name: "f", Kind: "forward", Inputs: []string{"s"}},
		{Name: "a", Kind: "count", Inputs: []string{"f"}}, {Name: "m", Kind: "map", Inputs: []string{"a"}}, {Name: "b", Kind: "count", Inputs: []string{"m"}}}}
	if !keyTravels(&job, 2) || keyTravels(&job, 4) {
		t.Errorf("keys reach a: %v, want true; b, behind a map: %v, want false", keyTravels(&job, 2), keyTravels(&job, 4))
	}
}
