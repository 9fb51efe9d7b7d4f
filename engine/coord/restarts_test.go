package coord

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestRestartsBackOff says that the first recovery of a row waits for nothing, the next ones 100 ms doubling to 10 s, that a
// calm time begins a new row, and that a row has an end which names the last cause.
func TestRestartsBackOff(t *testing.T) {
	var r restarts
	now := int64(time.Hour)
	for i, want := range []time.Duration{0, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000} {
		r.holdUntilNS = now
		if err := r.another(now, 10, "a crash"); err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(r.holdUntilNS - now); got != want*time.Millisecond {
			t.Errorf("recovery %d waits %v, want %v", i+1, got, want*time.Millisecond)
		}
		now += int64(time.Second)
	}
	err := r.another(now, 10, "the last straw")
	if !errors.Is(err, ErrRestarts) || !strings.Contains(err.Error(), "the last straw") || !strings.Contains(err.Error(), "10 ") {
		t.Errorf("recovery 11 of 10 gives %v", err)
	}
	now += int64(calm) + 1
	r.holdUntilNS = now
	if err := r.another(now, 10, "a crash"); err != nil || r.holdUntilNS != now {
		t.Errorf("after %v of running: %v, waits %v", calm, err, time.Duration(r.holdUntilNS-now))
	}
}
