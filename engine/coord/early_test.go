package coord

import (
	"testing"
	"time"
)

// A checkpoint comes early as late as may be, and not too late.
func TestACheckpointComesEarlyWhenALogWouldReachItsBound(t *testing.T) {
	const bound, beat = 1000, int64(50 * time.Millisecond)
	at := func(bytes int64, ms int) logSize { return logSize{bytes, int64(time.Duration(ms) * time.Millisecond)} }
	for _, c := range []struct {
		name      string
		took      time.Duration
		last, now logSize
		want      bool
	}{
		{"no checkpoint yet, below half", 0, at(400, 100), at(500, 150), false},
		{"no checkpoint yet, above half", 0, at(400, 100), at(501, 150), true},
		{"grows slowly", 50 * time.Millisecond, at(590, 100), at(600, 150), false}, // 640 when it would be complete
		{"grows fast", 50 * time.Millisecond, at(450, 100), at(600, 150), true},    // 1200 then
		{"just in time", 50 * time.Millisecond, at(500, 100), at(600, 150), false}, // 1000 then
		{"a slow checkpoint", 60 * time.Millisecond, at(500, 100), at(600, 150), true},
		{"three quarters, and still", 50 * time.Millisecond, at(751, 100), at(751, 150), true},
		{"was trimmed", 50 * time.Millisecond, at(700, 100), at(100, 150), false},
		{"first report", 50 * time.Millisecond, logSize{}, at(600, 150), false},
	} {
		e := early{tookNS: int64(c.took)}
		if got := e.fills(c.last, c.now, bound, beat); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
