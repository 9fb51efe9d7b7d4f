package detect

import (
	"fmt"
	"slices"
	"time"
)

// Episode is a stretch of true skew, known to the generator.
type Episode struct {
	Start, End time.Duration // End is exclusive
}

// Result is how a detector did against the truth.
type Result struct {
	Episodes    int
	Detected    int
	Misses      int             // episodes without an alarm
	FalseAlarms int             // alarms outside all episodes
	Repeats     int             // further alarms within an episode
	Delays      []time.Duration // from start to first alarm, of the detected episodes in order
}

// MeanDelay is false when nothing was detected.
func (r Result) MeanDelay() (time.Duration, bool) {
	if len(r.Delays) == 0 {
		return 0, false
	}
	var sum time.Duration
	for _, d := range r.Delays {
		sum += d
	}
	return sum / time.Duration(len(r.Delays)), true
}

// MaxDelay is false when nothing was detected.
func (r Result) MaxDelay() (time.Duration, bool) {
	if len(r.Delays) == 0 {
		return 0, false
	}
	return slices.Max(r.Delays), true
}

// Score compares alarms with the truth. An alarm up to grace after an episode's
// end still belongs to it, since meters remember. Episodes must be in order and
// apart, alarms in order; errors wrap ErrSample.
func Score(truth []Episode, alarms []time.Duration, grace time.Duration) (Result, error) {
	for i, e := range truth {
		if e.End <= e.Start || i > 0 && e.Start < truth[i-1].End {
			return Result{}, fmt.Errorf("episode %d from %v to %v: want episodes in order, apart and not empty: %w", i, e.Start, e.End, ErrSample)
		}
	}
	if !slices.IsSorted(alarms) || grace < 0 {
		return Result{}, fmt.Errorf("%d alarms with grace %v: want alarms in order and no negative grace: %w", len(alarms), grace, ErrSample)
	}
	r := Result{Episodes: len(truth)}
	next := 0
	for i, e := range truth {
		until := e.End + grace
		if i+1 < len(truth) {
			until = min(until, truth[i+1].Start)
		}
		for ; next < len(alarms) && alarms[next] < e.Start; next++ {
			r.FalseAlarms++
		}
		first := next
		for ; next < len(alarms) && alarms[next] < until; next++ {
			if next > first {
				r.Repeats++
			}
		}
		if next == first {
			r.Misses++
			continue
		}
		r.Detected++
		r.Delays = append(r.Delays, alarms[first]-e.Start)
	}
	r.FalseAlarms += len(alarms) - next
	return r, nil
}
