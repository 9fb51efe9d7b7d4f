package model

import (
	"fmt"
	"math"
	"time"
)

// Outcome tells how an interval came about.
type Outcome uint8

const (
	// Computed: the formula's own value.
	Computed Outcome = iota
	// AtLower: the lower bound, because the formula asks for less (for
	// instance when a checkpoint costs nothing).
	AtLower
	// AtUpper: the upper bound, because the formula asks for more (for
	// instance when failures are very rare).
	AtUpper
	// NoCheckpoint: nothing ever fails and no upper bound was given, so no
	// checkpoint pays. The length is then 0 and means nothing.
	NoCheckpoint
)

// String names the outcome for a report.
func (o Outcome) String() string {
	return [...]string{"computed", "at lower bound", "at upper bound", "none"}[o]
}

// IntervalInput is what the classical interval formulas need.
type IntervalInput struct {
	Cost time.Duration // c, what one checkpoint takes from processing; 0 or more
	MTBF time.Duration // M, mean time between failures of the whole job; 0 means that nothing fails
	// Lower and Upper bound the answer. Lower has to be above 0, as an interval
	// of 0 is no interval. Upper 0 means unbounded.
	Lower, Upper time.Duration
	Fixed        time.Duration // the answer of the method "fixed"
}

// Interval is a checkpoint interval and how it was found.
type Interval struct {
	Length  time.Duration
	Outcome Outcome
}

// String is the length, with a remark when it is not the formula's own value.
func (i Interval) String() string {
	switch i.Outcome {
	case Computed:
		return i.Length.String()
	case NoCheckpoint:
		return i.Outcome.String()
	}
	return fmt.Sprintf("%v (%v)", i.Length, i.Outcome)
}

// IntervalMethod is a named interval formula. Reports print Name and Formula,
// since "Daly" alone is ambiguous.
type IntervalMethod struct {
	Name     string
	Formula  string
	Interval func(IntervalInput) (Interval, error)
}

// IntervalMethods lists the baselines beside the recovery model.
func IntervalMethods() []IntervalMethod {
	return []IntervalMethod{
		{"fixed", "T", FixedInterval},
		{"young", "√(2cM)", Young},
		{"daly-first", "√(2cM) − c", DalyFirst},
		{"daly", "√(2cM)·[1 + ⅓√(c/2M) + c/18M] − c", Daly},
		{"jayasekara", "(1 + cλ + W₀(−e^(−1−cλ)))/λ", Jayasekara},
	}
}

// MTBFOfParts is the mean time between failures of a job of n parts that each
// fail independently and exponentially with the given mean. Errors wrap
// ErrParameter.
func MTBFOfParts(each time.Duration, n int) (time.Duration, error) {
	if n < 1 || each < 0 {
		return 0, fmt.Errorf("%d parts with mean time between failures %v: want at least 1 part and no negative time: %w", n, each, ErrParameter)
	}
	return each / time.Duration(n), nil
}

// FixedInterval returns in.Fixed, which has to be above 0; the bounds still
// hold. Errors wrap ErrParameter.
func FixedInterval(in IntervalInput) (Interval, error) {
	if err := in.check(); err != nil {
		return Interval{}, err
	}
	if in.Fixed <= 0 {
		return Interval{}, fmt.Errorf("fixed interval %v: want above 0: %w", in.Fixed, ErrParameter)
	}
	return in.bounded(in.Fixed.Seconds()), nil
}

// Young is the first-order optimum √(2cM), the working time between two
// checkpoints. Errors wrap ErrParameter.
//
// Source: Young, A First Order Approximation to the Optimum Checkpoint
// Interval, CACM 17 (1974).
func Young(in IntervalInput) (Interval, error) {
	return in.classical(func(c, m float64) float64 { return math.Sqrt(2 * c * m) })
}

// DalyFirst is the first-order optimum less the checkpoint itself, √(2cM) − c,
// and M from c ≥ 2M on, where that would be negative. Errors wrap ErrParameter.
//
// Source: Daly, A higher order estimate of the optimum checkpoint interval for
// restart dumps, FGCS 22 (2006), the first-order model.
func DalyFirst(in IntervalInput) (Interval, error) {
	return in.classical(func(c, m float64) float64 {
		if c >= 2*m {
			return m
		}
		return math.Sqrt(2*c*m) - c
	})
}

// Daly is the higher-order optimum
// √(2cM)·[1 + ⅓·√(c/2M) + ⅑·(c/2M)] − c for c < 2M, and M otherwise. Errors wrap
// ErrParameter.
//
// Source: Daly (2006), eq. 37.
func Daly(in IntervalInput) (Interval, error) {
	return in.classical(func(c, m float64) float64 {
		if c >= 2*m {
			return m
		}
		x := c / (2 * m)
		return math.Sqrt(2*c*m)*(1+math.Sqrt(x)/3+x/9) - c
	})
}

// Jayasekara is the interval that maximises Utilisation, checkpoint included:
// T* = (1 + cλ + W₀(−e^(−1−cλ)))/λ with λ = 1/M. Errors wrap ErrParameter.
//
// Source: Jayasekara, Harwood, Karunasekera, A Utilization Model for
// Optimization of Checkpoint Intervals in Distributed Stream Processing
// Systems, FGCS 110 (2020), arXiv 1911.11915, whose abstract states that the
// optimum depends on c and λ alone. The form here is derived from that model:
// dU/dT = 0 gives x + e^(−x) = 1 + cλ with x = λT, which is solved directly
// because W₀ loses half its digits next to its branch point −1/e, where cλ is
// small, as it nearly always is.
func Jayasekara(in IntervalInput) (Interval, error) {
	return in.classical(func(c, m float64) float64 { return m * solveUtilisation(c/m) })
}

// Utilisation is the share of time left for useful work when checkpoints of
// the given cost are taken each interval (cost included), failures are Poisson
// with mean distance mtbf, and each failure costs restart (detection and
// restart) besides the lost work: U = (T−c)/((M+R)(e^(T/M)−1)). It is 0 when
// the interval does not exceed the cost. Errors wrap ErrParameter.
//
// Source: the quantity of arXiv 1911.11915 with detection and restart in one
// term and no barrier depth. A segment of length T needs (M+R)(e^(T/M)−1) on
// average when it starts anew after each failure (renewal argument; a failure
// during the restart is left out), and T−c of it is useful.
func Utilisation(interval, cost, mtbf, restart time.Duration) (float64, error) {
	if interval <= 0 || cost < 0 || mtbf <= 0 || restart < 0 {
		return 0, fmt.Errorf("utilisation of interval %v, cost %v, mtbf %v, restart %v: want interval and mtbf above 0, the others not negative: %w", interval, cost, mtbf, restart, ErrParameter)
	}
	if interval <= cost {
		return 0, nil
	}
	t, m := interval.Seconds(), mtbf.Seconds()
	return (t - cost.Seconds()) / ((m + restart.Seconds()) * math.Expm1(t/m)), nil
}

// solveUtilisation returns the x > 0 with x + e^(−x) − 1 = k by Newton's method.
// The left side is convex and rising, so the iteration is monotone from its
// second step.
func solveUtilisation(k float64) float64 {
	x := k + math.Sqrt(2*k)
	for range 64 {
		var g float64
		if x < 1e-3 {
			// x + expm1(−x) cancels here; four terms are exact to 1e-16.
			g = x * x * (0.5 - x*(1.0/6-x*(1.0/24-x/120)))
		} else {
			g = x + math.Expm1(-x)
		}
		step := (g - k) / -math.Expm1(-x)
		x -= step
		if math.Abs(step) <= 1e-15*x {
			break
		}
	}
	return x
}

func (in IntervalInput) check() error {
	switch {
	case in.Cost < 0 || in.MTBF < 0:
		return fmt.Errorf("checkpoint cost %v, mean time between failures %v: want neither negative: %w", in.Cost, in.MTBF, ErrParameter)
	case in.Lower <= 0:
		return fmt.Errorf("lower bound %v of the interval: want above 0: %w", in.Lower, ErrParameter)
	case in.Upper != 0 && in.Upper < in.Lower:
		return fmt.Errorf("upper bound %v of the interval: want at least the lower bound %v, or 0 for none: %w", in.Upper, in.Lower, ErrParameter)
	}
	return nil
}

func (in IntervalInput) classical(f func(c, m float64) float64) (Interval, error) {
	if err := in.check(); err != nil {
		return Interval{}, err
	}
	if in.MTBF == 0 {
		if in.Upper == 0 {
			return Interval{Outcome: NoCheckpoint}, nil
		}
		return Interval{in.Upper, AtUpper}, nil
	}
	if in.Cost == 0 {
		return Interval{in.Lower, AtLower}, nil
	}
	return in.bounded(f(in.Cost.Seconds(), in.MTBF.Seconds())), nil
}

func (in IntervalInput) bounded(s float64) Interval {
	length := seconds(s)
	if length < in.Lower {
		return Interval{in.Lower, AtLower}
	}
	if in.Upper != 0 && length > in.Upper {
		return Interval{in.Upper, AtUpper}
	}
	return Interval{length, Computed}
}
