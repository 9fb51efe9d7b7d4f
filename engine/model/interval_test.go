package model

import (
	"errors"
	"math"
	"testing"
	"time"
)

func method(t *testing.T, name string) func(IntervalInput) (Interval, error) {
	t.Helper()
	for _, m := range IntervalMethods() {
		if m.Name == name {
			return m.Interval
		}
	}
	t.Fatalf("no interval method %q", name)
	return nil
}

func TestIntervalsPublished(t *testing.T) {
	for _, c := range []struct {
		method string
		cost   time.Duration
		mtbf   time.Duration
		want   float64 // minutes
	}{
		{"daly", 5 * time.Minute, 24 * time.Hour, 116.69},
		{"daly", 5 * time.Minute, 6 * time.Hour, 56.71},
		{"daly", 5 * time.Minute, 15 * time.Minute, 9.14},
		{"young", 5 * time.Minute, 24 * time.Hour, 120},
		{"young", 5 * time.Minute, 6 * time.Hour, 60},
		{"young", 5 * time.Minute, 15 * time.Minute, 12.25},
		{"daly-first", 5 * time.Minute, 24 * time.Hour, 115},
		{"daly-first", 5 * time.Minute, 6 * time.Hour, 55},
		{"daly-first", 5 * time.Minute, 15 * time.Minute, 7.25},
		// From c ≥ 2M on, the interval is M.
		{"daly", 31 * time.Minute, 15 * time.Minute, 15},
		{"daly", 30 * time.Minute, 15 * time.Minute, 15},
		{"daly-first", 31 * time.Minute, 15 * time.Minute, 15},
	} {
		got, err := method(t, c.method)(IntervalInput{Cost: c.cost, MTBF: c.mtbf, Lower: time.Millisecond})
		if err != nil || got.Outcome != Computed {
			t.Errorf("%s(%v, %v): %v, %v", c.method, c.cost, c.mtbf, got, err)
		}
		near(t, c.method, got.Length.Minutes(), c.want, 0.005)
	}
}

func TestGraphLabInterval(t *testing.T) {
	mtbf, err := MTBFOfParts(365*24*time.Hour, 64)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Young(IntervalInput{Cost: 2 * time.Minute, MTBF: mtbf, Lower: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "GraphLab hours", got.Length.Hours(), 3.02, 0.005)
}

// No formula may leave through a zero, a NaN or an infinity.
func TestIntervalEdges(t *testing.T) {
	const low, high = time.Second, time.Hour
	for _, m := range IntervalMethods() {
		if m.Name == "fixed" {
			continue
		}
		for _, c := range []struct {
			name string
			in   IntervalInput
			want Interval
		}{
			{"free checkpoint", IntervalInput{0, time.Hour, low, high, 0}, Interval{low, AtLower}},
			{"no failures", IntervalInput{time.Second, 0, low, high, 0}, Interval{high, AtUpper}},
			{"no failures, no bound", IntervalInput{time.Second, 0, low, 0, 0}, Interval{0, NoCheckpoint}},
			{"neither", IntervalInput{0, 0, low, high, 0}, Interval{high, AtUpper}},
			{"very rare failures", IntervalInput{time.Minute, 1e6 * time.Hour, low, high, 0}, Interval{high, AtUpper}},
		} {
			got, err := m.Interval(c.in)
			if err != nil || got != c.want {
				t.Errorf("%s, %s: %v, %v, want %v", m.Name, c.name, got, err, c.want)
			}
		}
		for _, bad := range []IntervalInput{
			{-1, time.Hour, low, high, 0}, {1, -1, low, high, 0}, {1, time.Hour, 0, high, 0}, {1, time.Hour, high, low, 0},
		} {
			if _, err := m.Interval(bad); !errors.Is(err, ErrParameter) {
				t.Errorf("%s(%+v): %v, want ErrParameter", m.Name, bad, err)
			}
		}
	}
	if s := (Interval{Outcome: NoCheckpoint}).String(); s != "none" {
		t.Errorf("no checkpoint is shown as %q", s)
	}
	if got, err := FixedInterval(IntervalInput{Lower: low, Fixed: 10 * time.Second}); err != nil || got.Length != 10*time.Second {
		t.Errorf("fixed: %v, %v", got, err)
	}
	if _, err := FixedInterval(IntervalInput{Lower: low}); !errors.Is(err, ErrParameter) {
		t.Errorf("fixed interval 0: %v, want ErrParameter", err)
	}
}

// The closed form has to be the maximum of the utilisation it was derived from,
// over thirteen decades of c/M, and whatever the restart costs.
func TestJayasekaraMaximisesUtilisation(t *testing.T) {
	const mtbf = 1000 * time.Hour
	for k := 1e-11; k < 20; k *= 3.7 {
		cost := time.Duration(k * float64(mtbf))
		best, err := Jayasekara(IntervalInput{Cost: cost, MTBF: mtbf, Lower: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, restart := range []time.Duration{0, time.Hour} {
			at := func(f float64) float64 {
				u, err := Utilisation(time.Duration(f*float64(best.Length)), cost, mtbf, restart)
				if err != nil {
					t.Fatal(err)
				}
				return u
			}
			if top := at(1); !(top > at(0.98)) || !(top > at(1.02)) {
				t.Errorf("c/M = %.3g, restart %v: U(%v) = %.12g is no maximum (%.12g, %.12g)", k, restart, best.Length, top, at(0.98), at(1.02))
			}
		}
		// x + e^(−x) = 1 + k, the identity of the Lambert form.
		x := best.Length.Seconds() / mtbf.Seconds()
		if k > 1e-3 {
			near(t, "identity", x+math.Exp(-x), 1+k, 1e-9*(1+k))
		}
	}
}

// For cheap checkpoints all formulas agree: T − c tends to √(2cM).
func TestIntervalsAgreeInTheLimit(t *testing.T) {
	in := IntervalInput{Cost: time.Second, MTBF: 20000 * time.Hour, Lower: 1}
	young, err := Young(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range IntervalMethods()[1:] {
		got, err := m.Interval(in)
		if err != nil {
			t.Fatal(err)
		}
		near(t, m.Name, got.Length.Seconds()/young.Length.Seconds(), 1, 2e-4)
	}
}

func TestUtilisationEdges(t *testing.T) {
	if u, err := Utilisation(time.Second, time.Second, time.Hour, 0); err != nil || u != 0 {
		t.Errorf("interval = cost: %v, %v, want 0", u, err)
	}
	if _, err := Utilisation(0, 0, time.Hour, 0); !errors.Is(err, ErrParameter) {
		t.Errorf("interval 0: %v", err)
	}
}

func TestRecoveryArithmetic(t *testing.T) {
	// λ 500, μ 1000, c 1 s each 10 s: μ_eff 900. D 2 s, A 4 s:
	// replay 2000/900 s, recovery (1800+2000)/400 = 9.5 s.
	r := Recovery{ArrivalPerSecond: 500, ServicePerSecond: 1000, CheckpointCost: time.Second, Outage: 2 * time.Second}
	if mu, err := r.EffectiveRate(10 * time.Second); err != nil || math.Abs(mu-900) > 1e-9 {
		t.Errorf("effective rate %v, %v, want 900", mu, err)
	}
	replay, state, err := r.Replay(4*time.Second, 10*time.Second)
	if err != nil || state != Stable {
		t.Fatal(state, err)
	}
	near(t, "replay", replay.Seconds(), 2000.0/900, 1e-9)
	total, state, err := r.RecoveryTime(4*time.Second, 10*time.Second)
	if err != nil || state != Stable {
		t.Fatal(state, err)
	}
	near(t, "recovery", total.Seconds(), 9.5, 1e-9)
}

// A discrete fluid queue, stepped in 1 ms, has to drain when the formula says.
func TestRecoveryTimeAgainstSteppedFluid(t *testing.T) {
	for _, r := range []Recovery{
		{ArrivalPerSecond: 500, ServicePerSecond: 1000, CheckpointCost: 100 * time.Millisecond, Outage: 2 * time.Second},
		{ArrivalPerSecond: 900, ServicePerSecond: 1000, CheckpointCost: 10 * time.Millisecond, Outage: time.Second},
		{ArrivalPerSecond: 10, ServicePerSecond: 1000, Outage: 5 * time.Second},
	} {
		const interval, age, step = 10 * time.Second, 3 * time.Second, 0.001
		want, _, err := r.RecoveryTime(age, interval)
		if err != nil {
			t.Fatal(err)
		}
		mu, err := r.EffectiveRate(interval)
		if err != nil {
			t.Fatal(err)
		}
		backlog, now := r.ArrivalPerSecond*age.Seconds(), 0.0
		for now == 0 || backlog > 0 {
			backlog += r.ArrivalPerSecond * step
			if now >= r.Outage.Seconds() {
				backlog -= mu * step
			}
			now += step
		}
		near(t, "drained after", now, want.Seconds(), 0.01)
	}
}

func TestMeanExcessDelayByHand(t *testing.T) {
	// c 1, T 10, λ/μ 0.5: pause 1/(20·0.5) = 0.1. μ_eff 900, ρ 5/9.
	// f 0.01, D 2, d 1: (8² + 100/12)·0.01/(2·4/9) = 0.81375.
	r := Recovery{
		ArrivalPerSecond: 500, ServicePerSecond: 1000, CheckpointCost: time.Second,
		Outage: 2 * time.Second, Durable: time.Second, FailuresPerSecond: 0.01,
	}
	j, state, err := r.MeanExcessDelay(10 * time.Second)
	if err != nil || state != Stable {
		t.Fatal(state, err)
	}
	near(t, "J", j.Seconds(), 0.91375, 1e-9)
	r.Transactional = true
	if j, _, err = r.MeanExcessDelay(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	near(t, "J transactional", j.Seconds(), 6.91375, 1e-9)
}

func TestRecoveryUnstableIsNamed(t *testing.T) {
	r := Recovery{ArrivalPerSecond: 900, ServicePerSecond: 1000, CheckpointCost: time.Second, FailuresPerSecond: 1}
	// μ_eff = λ at T = c/(1−λ/μ) = 10 s.
	for _, interval := range []time.Duration{time.Millisecond, time.Second, 10 * time.Second} {
		if d, s, err := r.RecoveryTime(time.Second, interval); err != nil || s != Unstable || d != 0 {
			t.Errorf("recovery at %v: %v %v %v, want unstable", interval, d, s, err)
		}
		if d, s, err := r.MeanExcessDelay(interval); err != nil || s != Unstable || d != 0 {
			t.Errorf("J at %v: %v %v %v, want unstable", interval, d, s, err)
		}
	}
	o, err := r.Minimise(time.Second, 9*time.Second)
	if err != nil || o.State != Unstable {
		t.Errorf("bracket below the sustainable: %+v, %v, want unstable", o, err)
	}
	o, err = r.Minimise(time.Second, time.Hour)
	if err != nil || o.State != Stable || o.Low <= 10*time.Second || o.Length <= o.Low {
		t.Errorf("bracket across the sustainable: %+v, %v, want an interval above 10 s", o, err)
	}
	r.ArrivalPerSecond = 1000
	if o, err = r.Minimise(time.Second, time.Hour); err != nil || o.State != Unstable {
		t.Errorf("λ = μ: %+v, %v, want unstable", o, err)
	}
	for _, bad := range []Recovery{{}, {ServicePerSecond: math.NaN()}, {ServicePerSecond: 1, Outage: -1}, {ServicePerSecond: math.Inf(1)}} {
		if _, err := bad.Minimise(time.Second, time.Hour); !errors.Is(err, ErrParameter) {
			t.Errorf("%+v: %v, want ErrParameter", bad, err)
		}
	}
}

// The minimum found is not beaten by a fine grid, for ordinary and odd models.
func TestMinimiseAgainstGrid(t *testing.T) {
	for i, r := range []Recovery{
		{ArrivalPerSecond: 500, ServicePerSecond: 1000, CheckpointCost: 50 * time.Millisecond, Outage: time.Second, FailuresPerSecond: 1e-4},
		{ArrivalPerSecond: 950, ServicePerSecond: 1000, CheckpointCost: 500 * time.Millisecond, Outage: time.Second, Durable: time.Second, FailuresPerSecond: 1e-3},
		{ArrivalPerSecond: 500, ServicePerSecond: 1000, CheckpointCost: 500 * time.Millisecond, FailuresPerSecond: 1e-5, Transactional: true},
		{ArrivalPerSecond: 1, ServicePerSecond: 1000, CheckpointCost: time.Millisecond, FailuresPerSecond: 1},
	} {
		o, err := r.Minimise(time.Millisecond, 24*time.Hour)
		if err != nil || o.Outcome != Computed {
			t.Fatalf("model %d: %+v, %v", i, o, err)
		}
		for x := math.Log(o.Low.Seconds()); x <= math.Log(o.High.Seconds()); x += 1e-3 {
			if j := r.excess(math.Exp(x)); j < r.excess(o.Length.Seconds())*(1-1e-9) {
				t.Fatalf("model %d: J(%.6g s) = %.9g is below J(%v)", i, math.Exp(x), j, o.Length)
			}
		}
	}
}

// With no outage and little load J is c²/2T + f·T²/6, least at T³ = 3c²/2f.
func TestMinimiseClosedForm(t *testing.T) {
	r := Recovery{ArrivalPerSecond: 1e-6, ServicePerSecond: 1000, CheckpointCost: 100 * time.Millisecond, FailuresPerSecond: 1e-3}
	o, err := r.Minimise(time.Millisecond, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "T*", o.Length.Seconds(), math.Cbrt(3*0.01/(2*1e-3)), 1e-4)
}

func TestMinimiseAtItsBounds(t *testing.T) {
	r := Recovery{ArrivalPerSecond: 500, ServicePerSecond: 1000, CheckpointCost: 50 * time.Millisecond, Outage: time.Second}
	o, err := r.Minimise(time.Second, time.Hour)
	if err != nil || o.Interval != (Interval{time.Hour, AtUpper}) {
		t.Errorf("no failures: %v, %v, want the upper bound", o.Interval, err)
	}
	r.FailuresPerSecond, r.CheckpointCost = 1e-3, 0
	o, err = r.Minimise(time.Second, time.Hour)
	if err != nil || o.Interval != (Interval{time.Second, AtLower}) {
		t.Errorf("free checkpoint: %v, %v, want the lower bound", o.Interval, err)
	}
	if o, err = r.Minimise(time.Second, time.Second); err != nil || o.Length != time.Second {
		t.Errorf("bracket of one point: %v, %v", o, err)
	}
	if _, err = r.Minimise(time.Second, time.Millisecond); !errors.Is(err, ErrParameter) {
		t.Errorf("bracket upside down: %v", err)
	}
}
