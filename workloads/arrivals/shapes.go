package arrivals

import (
	"math"
	"time"

	"github.com/weir-bench/weir/workloads/rng"
)

// script is a shape that is a list of spans, then a cycle of spans for ever.
type script struct {
	lead, cycle []step
	n           int
}

type step struct {
	rate   float64
	length int64
}

func (s *script) Next() (float64, int64) {
	n := s.n
	s.n++
	if n < len(s.lead) {
		return s.lead[n].rate, s.lead[n].length
	}
	x := s.cycle[(n-len(s.lead))%len(s.cycle)]
	return x.rate, x.length
}

func (s *script) Clone() Shape {
	c := *s
	return &c
}

func forever(rate float64) []step { return []step{{rate, Never}} }

// Constant has one rate (records/s) for ever. Rate 0 schedules nothing.
func Constant(rate float64) Shape { return &script{cycle: forever(rate)} }

// Square alternates between rate high for a time highFor and rate low for a
// time lowFor, from high on. Times are positive.
func Square(high, low float64, highFor, lowFor time.Duration) Shape {
	return &script{cycle: []step{{high, int64(highFor)}, {low, int64(lowFor)}}}
}

// Sine swings between low and high with the given period, from the mean upward,
// in equal steps each with the sine's mean over the step, so that a whole
// period has exactly the records of the sine.
func Sine(low, high float64, period time.Duration, steps int) Shape {
	mean, amplitude := (low+high)/2, (high-low)/2
	s := &script{}
	for k := range steps {
		a, b := float64(k)/float64(steps)*2*math.Pi, float64(k+1)/float64(steps)*2*math.Pi
		s.cycle = append(s.cycle, step{
			mean + amplitude*(math.Cos(a)-math.Cos(b))/(b-a),
			int64(period)*int64(k+1)/int64(steps) - int64(period)*int64(k)/int64(steps),
		})
	}
	return s
}

// rampSteps is the number of equal steps that imitate a ramp.
const rampSteps = 256

// Ramp has rate from until time at, then goes in a straight line (in 256 equal
// steps) to rate to within the time over, and stays there.
func Ramp(from, to float64, at, over time.Duration) Shape {
	s := &script{cycle: forever(to)}
	if at > 0 {
		s.lead = append(s.lead, step{from, int64(at)})
	}
	for k := range int64(rampSteps) {
		length := int64(over)*(k+1)/rampSteps - int64(over)*k/rampSteps
		if length > 0 {
			s.lead = append(s.lead, step{from + (to-from)*(float64(k)+0.5)/rampSteps, length})
		}
	}
	return s
}

// Flash has rate base, but peak from time at on for the time lasts; with a
// positive period (≥ at + lasts) it does so again every period.
func Flash(base, peak float64, at, lasts, period time.Duration) Shape {
	once := []step{{peak, int64(lasts)}}
	if at > 0 {
		once = []step{{base, int64(at)}, {peak, int64(lasts)}}
	}
	if period <= 0 {
		return &script{lead: once, cycle: forever(base)}
	}
	if rest := period - at - lasts; rest > 0 {
		once = append(once, step{base, int64(rest)})
	}
	return &script{cycle: once}
}

// MMPP is a Markov-modulated rate with two states: it stays in each for an
// exponential time of the given mean, and has that state's rate meanwhile. It
// starts in the low state. With Poisson spacing it is a two-state
// Markov-modulated Poisson process (Fischer, Meier-Hellstern: "The
// Markov-modulated Poisson process cookbook", 1993).
func MMPP(low, high float64, lowFor, highFor time.Duration, seed uint64) Shape {
	return &mmpp{rates: [2]float64{low, high}, means: [2]float64{float64(lowFor), float64(highFor)}, seed: seed}
}

type mmpp struct {
	rates, means [2]float64
	seed, n      uint64
}

func (m *mmpp) Next() (float64, int64) {
	state := m.n & 1
	length := m.means[state] * rng.Exp(rng.At(m.seed, m.n))
	m.n++
	return m.rates[state], max(1, int64(length))
}

func (m *mmpp) Clone() Shape {
	c := *m
	return &c
}
