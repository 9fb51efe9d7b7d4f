package detect

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrConfig marks a setting out of range, ErrSample a sample that does not fit
// the detector. The message around them names the field and what would be
// right.
var (
	ErrConfig = errors.New("bad detector setting")
	ErrSample = errors.New("bad load sample")
)

// Signal is the meter that counts as load.
type Signal uint8

const (
	// Records counts records worked on.
	Records Signal = iota
	// CPU counts processing time, which also sees records of unequal cost.
	CPU
	// State weighs the bytes of state held, for balance of memory.
	State
)

// String names the signal.
func (s Signal) String() string { return [...]string{"records", "cpu", "state"}[s] }

// Config are the settings of a detector. DefaultConfig fills all but Tasks and
// Groups.
type Config struct {
	Tasks, Groups int
	Signal        Signal
	// Threshold is the imbalance θ above which a task is skewed, and Release the
	// one below which it is calm again; Release ≤ Threshold.
	Threshold, Release float64
	// Hold is how long a change of mind has to last before it counts.
	Hold time.Duration
	// HalfLife is the age at which a count weighs half.
	HalfLife time.Duration
	// Sigmas keeps chance out: an imbalance also has to exceed as many standard
	// deviations of the decayed record counts, taken as Poisson. It matters at
	// low rates only. It does not apply to State, which is no count.
	Sigmas float64
	// TwoSided also takes tasks with too little load as skewed. The default is
	// tasks with too much only: they are what delays records, and what a planner
	// can always act on.
	TwoSided bool
}

// DefaultConfig detects a step to Zipf 1.2 within 2 s, at θ = 0.2, wherever the
// placement of the hot keys makes a task's true imbalance at least 0.25 and
// there are about 1,000 records a second and task. With fewer it takes longer,
// as it then takes longer to tell skew from chance.
func DefaultConfig(tasks, groups int) Config {
	return Config{
		Tasks: tasks, Groups: groups, Threshold: 0.2, Release: 0.15,
		Hold: 500 * time.Millisecond, HalfLife: 500 * time.Millisecond, Sigmas: 5,
	}
}

// Sample is what the meters gained since the sample before. The detector reads
// it during Step and keeps nothing of it.
type Sample struct {
	At         time.Duration   // since any fixed start; rises from sample to sample
	Records    []int64         // by group, since the sample before
	CPU        []time.Duration // by group, since the sample before; may be nil unless Signal is CPU
	StateBytes []int64         // by group, held now; may be nil unless Signal is State
	Route      []int32         // owner by group, now
}

// Phase is where the detector stands.
type Phase uint8

const (
	// Calm: no imbalance.
	Calm Phase = iota
	// Rising: went above the threshold and has not been back below the release
	// level since, but not yet for the hold time.
	Rising
	// Skewed: the alarm was given and skew lasts.
	Skewed
	// Falling: below the release level, not yet for the hold time.
	Falling
)

// String names the phase.
func (p Phase) String() string { return [...]string{"calm", "rising", "skewed", "falling"}[p] }

// Status is the outcome of one step.
type Status struct {
	At    time.Duration
	Phase Phase
	// Alarm is true in the one step in which the phase becomes Skewed.
	Alarm bool
	// Since is when the present run above the threshold (Rising, Skewed) or
	// below the release level (Falling) began; At while calm.
	Since time.Duration
	// Imbalance is θ_d = |L_d − L̄|/L̄ by task. The slice is the detector's own
	// and holds until the next step.
	Imbalance []float64
	// Worst is the task that decides, and Theta its imbalance: the most loaded
	// one, or with TwoSided the one farthest from the mean.
	Worst int
	Theta float64
	// Noise is the imbalance of Worst that chance alone explains.
	Noise float64
}

// Detector is a pure state machine; it must not be used concurrently.
type Detector struct {
	cfg     Config
	started bool
	at      time.Duration
	phase   Phase
	since   time.Duration

	records []float64 // by group, decayed
	squares []float64 // by group, decayed at twice the rate: the variance of records
	cpu     []float64 // by group, decayed seconds
	state   []float64 // by group, decayed mean of bytes
	weight  float64   // decayed time, what decayed sums are divided by

	load, count, variance, imbalance []float64 // by task
}

// New makes a detector. Errors wrap ErrConfig.
func New(cfg Config) (*Detector, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	groups, tasks := func() []float64 { return make([]float64, cfg.Groups) }, func() []float64 { return make([]float64, cfg.Tasks) }
	return &Detector{
		cfg: cfg, records: groups(), squares: groups(), cpu: groups(), state: groups(),
		load: tasks(), count: tasks(), variance: tasks(), imbalance: tasks(),
	}, nil
}

func (c Config) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, ErrConfig)...)
	}
	switch {
	case c.Tasks < 2:
		return bad("tasks = %d: skew needs at least 2", c.Tasks)
	case c.Groups < c.Tasks:
		return bad("groups = %d for %d tasks: want at least one a task", c.Groups, c.Tasks)
	case c.Signal > State:
		return bad("signal = %d: want records, cpu or state", c.Signal)
	case !(c.Threshold > 0) || math.IsInf(c.Threshold, 1):
		return bad("threshold = %v: want a finite number above 0", c.Threshold)
	case !(c.Release >= 0 && c.Release <= c.Threshold):
		return bad("release = %v: want 0 … threshold %v", c.Release, c.Threshold)
	case c.Hold < 0:
		return bad("hold = %v: want 0 or more", c.Hold)
	case c.HalfLife <= 0:
		return bad("half-life = %v: want above 0", c.HalfLife)
	case !(c.Sigmas >= 0) || math.IsInf(c.Sigmas, 1):
		return bad("sigmas = %v: want a finite number of at least 0", c.Sigmas)
	}
	return nil
}

// Step takes one sample and says where things stand. The first sample only
// sets the clock, as what it covers has no known length. Errors wrap ErrSample,
// and a refused sample changes nothing.
func (d *Detector) Step(s Sample) (Status, error) {
	if err := d.check(s); err != nil {
		return Status{}, err
	}
	if d.started {
		d.meter(s)
	}
	d.started, d.at = true, s.At
	status := d.judge(s.Route)
	d.advance(&status)
	return status, nil
}

// Rearm returns to Calm without forgetting the meters, so that skew which a
// migration left behind gives a new alarm after another hold time.
func (d *Detector) Rearm() { d.phase, d.since = Calm, d.at }

// LoadPerSecond appends the decayed load of each group to dst, in the signal's
// unit a second (for State: bytes). It is what a planner wants as load.
func (d *Detector) LoadPerSecond(dst []float64) []float64 {
	for g := range d.records {
		switch {
		case d.weight == 0:
			dst = append(dst, 0)
		case d.cfg.Signal == CPU:
			dst = append(dst, d.cpu[g]/d.weight)
		case d.cfg.Signal == State:
			dst = append(dst, d.state[g]/d.weight)
		default:
			dst = append(dst, d.records[g]/d.weight)
		}
	}
	return dst
}

func (d *Detector) check(s Sample) error {
	if d.started && s.At <= d.at {
		return fmt.Errorf("sample at %v after one at %v: want rising times: %w", s.At, d.at, ErrSample)
	}
	for _, l := range [...]struct {
		name     string
		got      int
		optional bool
	}{
		{"record counts", len(s.Records), false}, {"CPU times", len(s.CPU), d.cfg.Signal != CPU},
		{"state sizes", len(s.StateBytes), d.cfg.Signal != State}, {"route entries", len(s.Route), false},
	} {
		if l.got != d.cfg.Groups && !(l.optional && l.got == 0) {
			return fmt.Errorf("sample at %v: %d %s, want %d: %w", s.At, l.got, l.name, d.cfg.Groups, ErrSample)
		}
	}
	for g := range s.Records {
		switch {
		case s.Records[g] < 0 || len(s.CPU) > 0 && s.CPU[g] < 0 || len(s.StateBytes) > 0 && s.StateBytes[g] < 0:
			return fmt.Errorf("sample at %v, group %d: a meter went down: %w", s.At, g, ErrSample)
		case s.Route[g] < 0 || int(s.Route[g]) >= d.cfg.Tasks:
			return fmt.Errorf("sample at %v, group %d: owner %d, want 0 … %d: %w", s.At, g, s.Route[g], d.cfg.Tasks-1, ErrSample)
		}
	}
	return nil
}

func (d *Detector) meter(s Sample) {
	span := (s.At - d.at).Seconds()
	keep := math.Exp2(-span / d.cfg.HalfLife.Seconds())
	d.weight = d.weight*keep + span
	for g, n := range s.Records {
		d.records[g] = d.records[g]*keep + float64(n)
		d.squares[g] = d.squares[g]*keep*keep + float64(n)
		if len(s.CPU) > 0 {
			d.cpu[g] = d.cpu[g]*keep + s.CPU[g].Seconds()
		}
		if len(s.StateBytes) > 0 {
			d.state[g] = d.state[g]*keep + span*float64(s.StateBytes[g])
		}
	}
}

func (d *Detector) judge(route []int32) Status {
	for t := range d.load {
		d.load[t], d.count[t], d.variance[t] = 0, 0, 0
	}
	total, counted := 0.0, 0.0
	for g, t := range route {
		l := d.records[g]
		switch d.cfg.Signal {
		case CPU:
			l = d.cpu[g]
		case State:
			l = d.state[g]
		}
		d.load[t] += l
		d.variance[t] += d.squares[g]
		total += l
		counted += d.records[g]
	}
	s := Status{At: d.at, Imbalance: d.imbalance}
	tasks := float64(d.cfg.Tasks)
	worst := math.Inf(-1)
	for t, l := range d.load {
		off := 0.0
		if total > 0 {
			off = l*tasks/total - 1
		}
		d.imbalance[t] = math.Abs(off)
		if d.cfg.TwoSided {
			off = math.Abs(off)
		}
		if off > worst {
			worst, s.Worst = off, t
		}
	}
	s.Theta = d.imbalance[s.Worst]
	if counted > 0 && d.cfg.Signal != State {
		// At least the variance of an average task: an idle one has none of its own.
		expected := 0.0
		for _, v := range d.variance {
			expected += v / tasks
		}
		s.Noise = d.cfg.Sigmas * math.Sqrt(max(d.variance[s.Worst], expected)) * tasks / counted
	}
	return s
}

func (d *Detector) advance(s *Status) {
	above := s.Theta > d.cfg.Threshold && s.Theta > s.Noise
	below := s.Theta <= d.cfg.Release
	become := func(p Phase) { d.phase, d.since = p, d.at }
	switch d.phase {
	case Calm:
		if above {
			become(Rising)
		}
	case Rising:
		// The run only has to stay above the release level: near the threshold
		// noise would break it again and again.
		if below {
			become(Calm)
		}
	case Skewed:
		if below {
			become(Falling)
		}
	case Falling:
		if !below {
			become(Skewed)
		}
	}
	if held := d.at-d.since >= d.cfg.Hold; held {
		switch d.phase {
		case Rising:
			d.phase = Skewed
			s.Alarm = true
		case Falling:
			become(Calm)
		}
	}
	if d.phase == Calm {
		d.since = d.at
	}
	s.Phase, s.Since = d.phase, d.since
}
