package coord

import (
	"fmt"
	"time"
)

// restarts bounds crash loops: each recovery that follows another one too soon waits, twice as long each time, and so many
// in a row end the job.
type restarts struct {
	count       int
	lastNS      int64
	holdUntilNS int64
}

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 10 * time.Second
	// calm is how long the job must have run for its failures to count as a new row.
	calm = 30 * time.Second
)

// another counts a recovery and says whether there may be one more. The first of a row is not held back.
func (r *restarts) another(nowNS int64, limit int, why string) error {
	if r.count > 0 && nowNS-r.lastNS > int64(calm) {
		r.count = 0
	}
	r.count++
	r.lastNS = nowNS
	if r.count > limit {
		return fmt.Errorf("%w: %d without %v of running in between; the last: %s", ErrRestarts, limit, calm, why)
	}
	if r.count > 1 {
		wait := min(firstBackoff<<min(r.count-2, 20), maxBackoff)
		r.holdUntilNS = nowNS + int64(wait)
	}
	return nil
}
