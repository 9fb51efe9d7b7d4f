package model

import (
	"fmt"
	"math"
	"time"
)

// Recovery is the fluid model of a task that checkpoints, fails and catches up.
type Recovery struct {
	ArrivalPerSecond  float64       // λ, 0 or more
	ServicePerSecond  float64       // μ without checkpoints, above λ for any interval to exist
	CheckpointCost    time.Duration // c, processing time lost to one checkpoint
	Outage            time.Duration // D, failure to first record: detection, restart and restore
	Durable           time.Duration // d, from the cut to the moment it is durable
	FailuresPerSecond float64       // f, 0 or more
	// Transactional sinks hold output until the checkpoint is durable, which
	// adds d+T/2 to every record.
	Transactional bool
}

// EffectiveRate is μ(1−c/T), the service rate left beside checkpoints each
// interval, per second; it is 0 when the interval does not exceed the cost.
// Errors wrap ErrParameter.
func (r Recovery) EffectiveRate(interval time.Duration) (float64, error) {
	if err := r.check(interval); err != nil {
		return 0, err
	}
	return r.effective(interval.Seconds()), nil
}

// Replay is the time λA/μ_eff to work again on the input since the last
// durable cut, of the given age A. Unstable means that the task cannot keep up
// at this interval; the duration is then 0 and means nothing. Errors wrap
// ErrParameter.
func (r Recovery) Replay(age, interval time.Duration) (time.Duration, State, error) {
	mu, state, err := r.rates(age, interval)
	if err != nil || state == Unstable {
		return 0, state, err
	}
	return seconds(r.ArrivalPerSecond * age.Seconds() / mu), Stable, nil
}

// RecoveryTime is (μ_eff·D + λA)/(μ_eff − λ), from the failure until the
// backlog is gone: during R−D the task works off λA to replay and λR that
// arrived. Unstable and errors are as for Replay.
func (r Recovery) RecoveryTime(age, interval time.Duration) (time.Duration, State, error) {
	mu, state, err := r.rates(age, interval)
	if err != nil || state == Unstable {
		return 0, state, err
	}
	lambda := r.ArrivalPerSecond
	return seconds((mu*r.Outage.Seconds() + lambda*age.Seconds()) / (mu - lambda)), Stable, nil
}

// MeanExcessDelay is J(T), the mean delay a record gains by checkpointing each
// interval T and by failures:
//
//	c²/(2T(1−λ/μ)) + f·[(D+d+T/2)² + T²/12]/(2(1−ρ)),  ρ = λ/μ_eff(T),
//
// plus d+T/2 for transactional sinks. The first term is the triangle of delay
// behind each pause c; the second is the triangle behind a failure, whose
// height is the outage plus the age of the cut, uniform on d … d+T. Using
// μ_eff in ρ makes J grow without bound at the shortest interval the task can
// sustain. Unstable and errors are as for Replay.
func (r Recovery) MeanExcessDelay(interval time.Duration) (time.Duration, State, error) {
	_, state, err := r.rates(0, interval)
	if err != nil || state == Unstable {
		return 0, state, err
	}
	return seconds(r.excess(interval.Seconds())), Stable, nil
}

// ShortestStable is c/(1−λ/μ): at longer intervals the task keeps up. It is
// false when no interval is long enough because λ ≥ μ.
func (r Recovery) ShortestStable() (time.Duration, bool) {
	if !(r.ArrivalPerSecond < r.ServicePerSecond) {
		return 0, false
	}
	return seconds(r.CheckpointCost.Seconds() / (1 - r.ArrivalPerSecond/r.ServicePerSecond)), true
}

// Optimum is the interval with the least mean excess delay within a bracket.
type Optimum struct {
	Interval
	MeanExcessDelay time.Duration
	Low, High       time.Duration // the bracket searched, after raising Low to a sustainable interval
	State           State         // Unstable when no interval of the bracket can be sustained
}

// Minimise finds the interval of low … high with the least MeanExcessDelay, to
// a relative 1e-6. The bracket's lower end is raised to just above
// ShortestStable. The search scans 256 points evenly spaced in log T, which
// tells the right valley from any other, and refines it by golden section. An
// optimum at an end says so in Outcome: without failures the longest interval
// wins, with a free checkpoint the shortest. Errors wrap ErrParameter.
func (r Recovery) Minimise(low, high time.Duration) (Optimum, error) {
	if low <= 0 || high < low {
		return Optimum{}, fmt.Errorf("interval bracket %v … %v: want 0 < low ≤ high: %w", low, high, ErrParameter)
	}
	if err := r.check(low); err != nil {
		return Optimum{}, err
	}
	shortest, ok := r.ShortestStable()
	if sustainable := shortest + shortest/1000 + 1; shortest > 0 && low < sustainable {
		low = sustainable
	}
	o := Optimum{Low: low, High: high}
	if !ok || low > high {
		o.State = Unstable
		o.Low = min(low, high)
		return o, nil
	}
	a, b := math.Log(low.Seconds()), math.Log(high.Seconds())
	x := minimiseUnivariate(func(x float64) float64 { return r.excess(math.Exp(x)) }, a, b)
	switch {
	case b-x < 1e-6:
		o.Interval = Interval{high, AtUpper}
	case x-a < 1e-6:
		o.Interval = Interval{low, AtLower}
	default:
		o.Interval = Interval{seconds(math.Exp(x)), Computed}
	}
	o.MeanExcessDelay = seconds(r.excess(o.Length.Seconds()))
	return o, nil
}

// minimiseUnivariate scans [a, b] and refines the best cell by golden section.
// It returns an end exactly when the scan's best point is that end and the
// refinement does not leave it.
func minimiseUnivariate(f func(float64) float64, a, b float64) float64 {
	const points, phi = 256, 0.6180339887498949
	at := func(i int) float64 { return a + (b-a)*float64(i)/points }
	best := 0
	for i := 1; i <= points; i++ {
		if f(at(i)) < f(at(best)) {
			best = i
		}
	}
	lo, hi := at(max(best-1, 0)), at(min(best+1, points))
	c, d := hi-phi*(hi-lo), lo+phi*(hi-lo)
	fc, fd := f(c), f(d)
	for hi-lo > 1e-7 {
		if fc <= fd {
			hi, d, fd = d, c, fc
			c = hi - phi*(hi-lo)
			fc = f(c)
		} else {
			lo, c, fc = c, d, fd
			d = lo + phi*(hi-lo)
			fd = f(d)
		}
	}
	x := (lo + hi) / 2
	for _, end := range [...]float64{a, b} {
		if f(end) <= f(x) {
			x = end
		}
	}
	return x
}

func (r Recovery) effective(t float64) float64 {
	return r.ServicePerSecond * max(0, 1-r.CheckpointCost.Seconds()/t)
}

func (r Recovery) excess(t float64) float64 {
	c, outage, durable := r.CheckpointCost.Seconds(), r.Outage.Seconds(), r.Durable.Seconds()
	pause := c * c / (2 * t * (1 - r.ArrivalPerSecond/r.ServicePerSecond))
	height := outage + durable + t/2
	failure := 0.0
	if r.FailuresPerSecond > 0 {
		rho := r.ArrivalPerSecond / r.effective(t)
		failure = r.FailuresPerSecond * (height*height + t*t/12) / (2 * (1 - rho))
	}
	if r.Transactional {
		return pause + failure + durable + t/2
	}
	return pause + failure
}

// rates returns μ_eff and whether it exceeds λ.
func (r Recovery) rates(age, interval time.Duration) (float64, State, error) {
	if err := r.check(interval); err != nil {
		return 0, Stable, err
	}
	if age < 0 {
		return 0, Stable, fmt.Errorf("age %v of the last durable cut: want 0 or more: %w", age, ErrParameter)
	}
	mu := r.effective(interval.Seconds())
	if mu <= r.ArrivalPerSecond {
		return mu, Unstable, nil
	}
	return mu, Stable, nil
}

func (r Recovery) check(interval time.Duration) error {
	if interval <= 0 {
		return fmt.Errorf("checkpoint interval %v: want above 0: %w", interval, ErrParameter)
	}
	if r.CheckpointCost < 0 || r.Outage < 0 || r.Durable < 0 {
		return fmt.Errorf("checkpoint cost %v, outage %v, durable after %v: want none negative: %w", r.CheckpointCost, r.Outage, r.Durable, ErrParameter)
	}
	if !(r.ArrivalPerSecond >= 0) || !(r.FailuresPerSecond >= 0) || !(r.ServicePerSecond > 0) ||
		math.IsInf(r.ArrivalPerSecond+r.FailuresPerSecond+r.ServicePerSecond, 1) {
		return fmt.Errorf("rates per second: arrivals %v, failures %v, service %v: want finite, the first two not negative, the last above 0: %w", r.ArrivalPerSecond, r.FailuresPerSecond, r.ServicePerSecond, ErrParameter)
	}
	return nil
}
