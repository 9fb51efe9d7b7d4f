package chaos

import (
	"errors"
	"sync"
	"time"
)

const (
	slowPeriod   = 20 * time.Millisecond
	slowMinSlice = 200 * time.Microsecond
	slowMaxSlice = 5 * time.Millisecond
)

// SlowSlices returns how long a process that is slowed by factor runs and stands in turn: a period of 20 ms where it
// can be, slices of 0.2 to 5 ms (factor 2: 5 and 5; 10: 2 and 18; 100: 0.2 and 19.8; 1000: 0.2 and 200 ms).
//
// Delays below a pause are made by this granularity, not by a slow processor, and a lease shorter than a pause expires.
// Timers come late by some 0.1 ms; the share of time is kept on average, by longer or shorter pauses, and what it was
// is in the evidence.
func SlowSlices(factor float64) (run, stand time.Duration) {
	run = time.Duration(float64(slowPeriod) / factor)
	run = min(max(run, slowMinSlice), slowMaxSlice)
	return run, time.Duration(float64(run) * (factor - 1))
}

// pause returns how long to stand next, from how long the process ran and stood so far. A pause is at most twice the
// usual one: after a hiccup of ours what is missing is spread over several.
func pause(factor float64, ran, stood time.Duration) time.Duration {
	_, stand := SlowSlices(factor)
	return max(0, min(time.Duration(float64(ran)*(factor-1))-stood, 2*stand))
}

// throttle stops and resumes a process in turn, on a goroutine that ends with end.
type throttle struct {
	h      *handle
	factor float64
	quit   chan struct{}
	once   sync.Once
	gone   sync.WaitGroup

	// To be read after end.
	ran, stood, longest time.Duration
	pauses              int
	err                 error
}

// throttled slows a process that stands already.
func throttled(h *handle, factor float64) *throttle {
	t := &throttle{h: h, factor: factor, quit: make(chan struct{})}
	t.gone.Go(t.run)
	return t
}

// end stops the slicing and lets the process run. It may be called again.
func (t *throttle) end() error {
	t.once.Do(func() { close(t.quit) })
	t.gone.Wait()
	return errors.Join(t.err, t.h.resume())
}

func (t *throttle) run() {
	slice, stand := SlowSlices(t.factor)
	timer := time.NewTimer(stand)
	defer timer.Stop()
	// after waits, adds what it took to sum and says whether to go on.
	after := func(d time.Duration, sum *time.Duration) (took time.Duration, ok bool) {
		begin := time.Now()
		timer.Reset(d)
		select {
		case <-timer.C:
			ok = true
		case <-t.quit:
		}
		took = time.Since(begin)
		*sum += took
		return took, ok
	}
	for {
		took, ok := after(stand, &t.stood)
		t.pauses++
		t.longest = max(t.longest, took)
		if !ok {
			return
		}
		if t.err = t.h.resume(); t.err != nil {
			return
		}
		for stand = 0; stand == 0; stand = pause(t.factor, t.ran, t.stood) {
			if _, ok = after(slice, &t.ran); !ok {
				return
			}
		}
		if t.err = t.h.stop(); t.err != nil {
			return
		}
	}
}

// evidence tells what the slicing was.
func (t *throttle) evidence() Evidence {
	e := Evidence{Pauses: t.pauses, LongestPauseNS: int64(t.longest)}
	if all := t.ran + t.stood; all > 0 {
		e.Ran = float64(t.ran) / float64(all)
	}
	return e
}
