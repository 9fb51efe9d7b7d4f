package detect

import (
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 1, "first seed of the generated load")

const (
	groups = 1024
	period = 100 * time.Millisecond
)

// source draws records of keys dealt to groups at random, uniform or Zipf.
type source struct {
	rng     *rand.Rand
	group   []int32   // by key
	zipf    []float64 // cumulative by key
	perStep float64
}

func newSource(seed uint64, perSecond float64, exponent float64) *source {
	const keys = 100_000
	s := &source{rng: rand.New(rand.NewPCG(seed, 5)), group: make([]int32, keys), zipf: make([]float64, keys), perStep: perSecond * period.Seconds()}
	sum := 0.0
	for k := range keys {
		s.group[k] = int32(s.rng.IntN(groups))
		sum += math.Pow(float64(k+1), -exponent)
		s.zipf[k] = sum
	}
	return s
}

// step returns the records of one period, a Poisson number of them.
func (s *source) step(skewed bool, records []int64) {
	clear(records)
	for t := s.rng.ExpFloat64(); t < s.perStep; t += s.rng.ExpFloat64() {
		if skewed {
			k := sort.SearchFloat64s(s.zipf, s.rng.Float64()*s.zipf[len(s.zipf)-1])
			records[s.group[k]]++
		} else {
			records[s.rng.IntN(groups)]++
		}
	}
}

// theta is the true imbalance of the hottest task while skewed.
func (s *source) theta(route []int32, tasks int) float64 {
	load := make([]float64, tasks)
	before := 0.0
	for k, sum := range s.zipf {
		load[route[s.group[k]]] += sum - before
		before = sum
	}
	return slices.Max(load)*float64(tasks)/before - 1
}

func dealt(tasks int) []int32 {
	route := make([]int32, groups)
	for g := range route {
		route[g] = int32(g * tasks / groups)
	}
	return route
}

func must(t *testing.T, cfg Config) *Detector {
	t.Helper()
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// alarms runs the detector over a truth and returns its alarms.
func alarms(t *testing.T, d *Detector, s *source, route []int32, length time.Duration, truth []Episode) []time.Duration {
	t.Helper()
	var out []time.Duration
	records := make([]int64, groups)
	for at := period; at <= length; at += period {
		skewed := slices.ContainsFunc(truth, func(e Episode) bool { return at > e.Start && at <= e.End })
		s.step(skewed, records)
		status, err := d.Step(Sample{At: at, Records: records, Route: route})
		if err != nil {
			t.Fatal(err)
		}
		if status.Alarm {
			out = append(out, at)
		}
	}
	return out
}

func TestNoFalseAlarmInAnHourOfUniformLoad(t *testing.T) {
	length := time.Hour
	if testing.Short() {
		length = 10 * time.Minute // for runs with -race
	}
	for _, c := range []struct {
		tasks     int
		perSecond float64
	}{{4, 2000}, {16, 1000}, {2, 20}} {
		d := must(t, DefaultConfig(c.tasks, groups))
		got := alarms(t, d, newSource(*seedFlag, c.perSecond, 1.2), dealt(c.tasks), length, nil)
		if len(got) != 0 {
			t.Errorf("%d tasks, %v records/s: false alarms at %v; go test -run TestNoFalseAlarm -seed=%d", c.tasks, c.perSecond, got, *seedFlag)
		}
	}
}

func TestStepToZipfDetectedWithinTwoSeconds(t *testing.T) {
	const start, length = 10 * time.Second, 20 * time.Second
	for _, c := range []struct {
		tasks     int
		perSecond float64
	}{{4, 4000}, {4, 50_000}, {8, 10_000}} {
		var slowest time.Duration
		skewed := 0
		for seed := *seedFlag; seed < *seedFlag+20; seed++ {
			// Hashing may spread the hot keys so well that no task is hot.
			if newSource(seed, c.perSecond, 1.2).theta(dealt(c.tasks), c.tasks) < 0.25 {
				continue
			}
			skewed++
			truth := []Episode{{start, length}}
			d := must(t, DefaultConfig(c.tasks, groups))
			r, err := Score(truth, alarms(t, d, newSource(seed, c.perSecond, 1.2), dealt(c.tasks), length, truth), 0)
			if err != nil {
				t.Fatal(err)
			}
			worst, ok := r.MaxDelay()
			if !ok || worst > 2*time.Second || r.FalseAlarms > 0 || r.Misses > 0 {
				t.Errorf("%d tasks, %v records/s: %+v, want one alarm within 2 s; go test -run TestStepToZipf -seed=%d", c.tasks, c.perSecond, r, seed)
			}
			slowest = max(slowest, worst)
		}
		t.Logf("%d tasks, %v records/s: slowest of %d detections %v", c.tasks, c.perSecond, skewed, slowest)
		if skewed < 10 {
			t.Errorf("%d tasks: only %d of 20 placements are skewed", c.tasks, skewed)
		}
	}
}

func TestEpisodesComeAndGo(t *testing.T) {
	truth := []Episode{{10 * time.Second, 20 * time.Second}, {40 * time.Second, 55 * time.Second}, {80 * time.Second, 90 * time.Second}}
	d := must(t, DefaultConfig(4, groups))
	r, err := Score(truth, alarms(t, d, newSource(*seedFlag, 5000, 1.2), dealt(4), 2*time.Minute, truth), 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.Detected != 3 || r.Misses != 0 || r.FalseAlarms != 0 || r.Repeats != 0 {
		t.Errorf("%+v, want each of 3 episodes detected once", r)
	}
}

// two feeds two groups on two tasks with the given shares, without noise.
func two(t *testing.T, d *Detector, at time.Duration, a, b int64) Status {
	t.Helper()
	s, err := d.Step(Sample{At: at, Records: []int64{a, b}, Route: []int32{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func plain() Config {
	return Config{Tasks: 2, Groups: 2, Threshold: 0.2, Release: 0.1, Hold: time.Second, HalfLife: time.Millisecond}
}

func TestImbalanceIsPerTask(t *testing.T) {
	d := must(t, Config{Tasks: 4, Groups: 4, Threshold: 0.2, Release: 0.1, HalfLife: time.Second})
	sample := Sample{At: time.Second, Records: []int64{70, 30, 40, 60}, Route: []int32{0, 1, 2, 3}}
	if _, err := d.Step(sample); err != nil {
		t.Fatal(err)
	}
	sample.At = 2 * time.Second
	s, err := d.Step(sample)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.4, 0.4, 0.2, 0.2} {
		if math.Abs(s.Imbalance[i]-want) > 1e-12 {
			t.Errorf("θ of task %d = %v, want %v", i, s.Imbalance[i], want)
		}
	}
	if s.Worst != 0 || math.Abs(s.Theta-0.4) > 1e-12 || !s.Alarm {
		t.Errorf("%+v, want an alarm for task 0 at θ 0.4", s)
	}
}

func TestHysteresisAndHold(t *testing.T) {
	d := must(t, plain())
	phases := []struct {
		a, b  int64
		phase Phase
		alarm bool
	}{
		{50, 50, Calm, false},      // 0.5 s, sets the clock
		{50, 50, Calm, false},      // 1.0
		{70, 30, Rising, false},    // 1.5
		{50, 50, Calm, false},      // 2.0: too short, forgotten
		{70, 30, Rising, false},    // 2.5
		{70, 30, Rising, false},    // 3.0
		{70, 30, Skewed, true},     // 3.5: held a second
		{70, 30, Skewed, false},    // 4.0: once
		{57, 43, Skewed, false},    // 4.5: θ 0.14, between release and threshold
		{52, 48, Falling, false},   // 5.0
		{57, 43, Skewed, false},    // 5.5: back above release
		{52, 48, Falling, false},   // 6.0
		{52, 48, Falling, false},   // 6.5
		{52, 48, Calm, false},      // 7.0
		{57, 43, Calm, false},      // 7.5: below the threshold
		{30, 70, Rising, false},    // 8.0
		{30, 70, Rising, false},    // 8.5
		{100, 0, Skewed, true},     // 9.0: the hot task may change
		{0, 0, Skewed, false},      // 9.5: without records meters only fade
		{500, 500, Falling, false}, // 10
	}
	for i, p := range phases {
		at := time.Duration(i+1) * 500 * time.Millisecond
		if s := two(t, d, at, p.a, p.b); s.Phase != p.phase || s.Alarm != p.alarm {
			t.Errorf("%v, %d:%d: %v, alarm %v (θ %.3f), want %v, %v", at, p.a, p.b, s.Phase, s.Alarm, s.Theta, p.phase, p.alarm)
		}
	}
}

func TestRearmGivesAnotherAlarm(t *testing.T) {
	d := must(t, plain())
	var got []time.Duration
	for at := 500 * time.Millisecond; at <= 6*time.Second; at += 500 * time.Millisecond {
		if two(t, d, at, 80, 20).Alarm {
			got = append(got, at)
		}
		if at == 3*time.Second {
			d.Rearm()
		}
	}
	if want := []time.Duration{2 * time.Second, 4500 * time.Millisecond}; !slices.Equal(got, want) {
		t.Errorf("alarms at %v, want %v", got, want)
	}
}

// Meters belong to groups, so a new route shows at once, without new records.
func TestRouteChangeShowsAtOnce(t *testing.T) {
	d := must(t, Config{Tasks: 2, Groups: 4, Threshold: 0.2, Release: 0.1, HalfLife: time.Hour})
	s := Sample{At: time.Second, Records: []int64{10, 10, 10, 10}, Route: []int32{0, 0, 0, 1}}
	for range 3 {
		s.At += time.Second
		if _, err := d.Step(s); err != nil {
			t.Fatal(err)
		}
	}
	s.At, s.Route, s.Records = s.At+1, []int32{0, 0, 1, 1}, make([]int64, 4)
	got, err := d.Step(s)
	if err != nil || got.Theta > 1e-9 {
		t.Errorf("after moving a group θ = %v, %v, want 0", got.Theta, err)
	}
}

func TestSignals(t *testing.T) {
	sample := Sample{
		Records: []int64{50, 50}, CPU: []time.Duration{3 * time.Millisecond, time.Millisecond}, StateBytes: []int64{100, 900}, Route: []int32{0, 1},
	}
	for _, c := range []struct {
		signal Signal
		theta  float64
		worst  int
		load   float64 // of group 0, a second
	}{{Records, 0, 0, 50}, {CPU, 0.5, 0, 0.003}, {State, 0.8, 1, 100}} {
		cfg := plain()
		cfg.Signal = c.signal
		d := must(t, cfg)
		var got Status
		for i := range 3 {
			sample.At = time.Duration(i) * time.Second
			var err error
			if got, err = d.Step(sample); err != nil {
				t.Fatal(err)
			}
		}
		if math.Abs(got.Theta-c.theta) > 1e-9 || got.Worst != c.worst {
			t.Errorf("%v: θ %v at task %d, want %v at %d", c.signal, got.Theta, got.Worst, c.theta, c.worst)
		}
		if l := d.LoadPerSecond(nil); math.Abs(l[0]-c.load) > 1e-6*c.load {
			t.Errorf("%v: load of group 0 is %v a second, want %v", c.signal, l[0], c.load)
		}
	}
}

func TestOneSidedByDefault(t *testing.T) {
	sample := Sample{Records: []int64{110, 110, 110, 110, 110, 50}, Route: []int32{0, 1, 2, 3, 4, 5}}
	for _, twoSided := range []bool{false, true} {
		d := must(t, Config{Tasks: 6, Groups: 6, Threshold: 0.2, Release: 0.1, HalfLife: time.Second, TwoSided: twoSided})
		alarm := false
		for i := range 4 {
			sample.At = time.Duration(i) * time.Second
			s, err := d.Step(sample)
			if err != nil {
				t.Fatal(err)
			}
			alarm = alarm || s.Alarm
		}
		if alarm != twoSided {
			t.Errorf("one task at half the load, two-sided %v: alarm %v", twoSided, alarm)
		}
	}
}

// Few records are no evidence: 8 of 10 on one side is chance, 800 of 1,000 not.
func TestNoiseGuard(t *testing.T) {
	for _, c := range []struct {
		scale int64
		want  Phase
	}{{1, Calm}, {100, Skewed}} {
		cfg := plain()
		cfg.Sigmas = 5
		d := must(t, cfg)
		var s Status
		for i := range 10 {
			s = two(t, d, time.Duration(i)*time.Second, 8*c.scale, 2*c.scale)
		}
		if s.Phase != c.want {
			t.Errorf("%d:%d a sample: %v with noise %.2f, want %v", 8*c.scale, 2*c.scale, s.Phase, s.Noise, c.want)
		}
	}
}

func TestBadConfigAndSamples(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"tasks": func(c *Config) { c.Tasks = 1 }, "groups": func(c *Config) { c.Groups = 1 },
		"threshold": func(c *Config) { c.Threshold = 0 }, "release": func(c *Config) { c.Release = 0.3 },
		"hold": func(c *Config) { c.Hold = -1 }, "half-life": func(c *Config) { c.HalfLife = 0 },
		"sigmas": func(c *Config) { c.Sigmas = math.NaN() }, "signal": func(c *Config) { c.Signal = 9 },
	} {
		cfg := plain()
		spoil(&cfg)
		if _, err := New(cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want ErrConfig that names it", name, err)
		}
	}
	d := must(t, plain())
	two(t, d, time.Second, 1, 1)
	for name, s := range map[string]Sample{
		"time stands still": {At: time.Second, Records: []int64{1, 1}, Route: []int32{0, 1}},
		"short records":     {At: 2 * time.Second, Records: []int64{1}, Route: []int32{0, 1}},
		"negative records":  {At: 2 * time.Second, Records: []int64{1, -1}, Route: []int32{0, 1}},
		"foreign task":      {At: 2 * time.Second, Records: []int64{1, 1}, Route: []int32{0, 2}},
		"short state":       {At: 2 * time.Second, Records: []int64{1, 1}, StateBytes: []int64{1}, Route: []int32{0, 1}},
	} {
		if _, err := d.Step(s); !errors.Is(err, ErrSample) {
			t.Errorf("%s: %v, want ErrSample", name, err)
		}
	}
	if s := two(t, d, 2*time.Second, 1, 1); s.Phase != Calm {
		t.Errorf("refused samples left a trace: %+v", s)
	}
}

func TestScore(t *testing.T) {
	const s = time.Second
	truth := []Episode{{10 * s, 20 * s}, {30 * s, 40 * s}, {41 * s, 50 * s}}
	r, err := Score(truth, []time.Duration{5 * s, 11 * s, 15 * s, 21 * s, 25 * s, 42 * s, 60 * s}, 2*s)
	if err != nil {
		t.Fatal(err)
	}
	if r.Detected != 2 || r.Misses != 1 || r.FalseAlarms != 3 || r.Repeats != 2 || !slices.Equal(r.Delays, []time.Duration{s, s}) {
		t.Errorf("%+v, want 2 detected after 1 s, 1 missed, 3 false, 2 repeats", r)
	}
	none, err := Score(truth, nil, 0)
	if err != nil || none.Misses != 3 || second(none.MeanDelay()) || second(none.MaxDelay()) {
		t.Errorf("no alarms: %+v, %v, want 3 misses and no delay", none, err)
	}
	if _, err := Score([]Episode{{2, 1}}, nil, 0); !errors.Is(err, ErrSample) {
		t.Errorf("episode upside down: %v", err)
	}
	if _, err := Score(nil, []time.Duration{2, 1}, 0); !errors.Is(err, ErrSample) {
		t.Errorf("alarms out of order: %v", err)
	}
}

func second[T any](_ T, ok bool) bool { return ok }

func TestStepDoesNotAllocate(t *testing.T) {
	d := must(t, DefaultConfig(4, groups))
	s := Sample{Records: make([]int64, groups), Route: dealt(4)}
	if n := testing.AllocsPerRun(100, func() {
		s.At += period
		if _, err := d.Step(s); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a step, want 0", n)
	}
}
