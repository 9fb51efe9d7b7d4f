package sim

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
)

// TestLogBound comes near the bound of the sender logs. Checkpoints come earlier then, and nothing else changes; a window that
// is longer than the bound has room for ends the job, which says so, counts it and tells what would help.
func TestLogBound(t *testing.T) {
	c := windowJob(2, "checkpoint:task")
	plain, err := RunJob(c)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := windowRows(t, c)
	c.Job.LogBytes = 16 << 10
	near, err := RunJob(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := windowRows(t, c); got != want {
		t.Error("the bound changes the output")
	}
	if a, b := count(near.Traces, coord.TraceCheckpoint), count(plain.Traces, coord.TraceCheckpoint); a <= b {
		t.Errorf("%d checkpoints near the bound, %d far from it, want more", a, b)
	}
	c = windowJob(2, core.RecoveryUpstream)
	c.Job.LogBytes = core.MinLogBytes
	c.Job.Operators[1].Params["size"], c.Job.Operators[1].Params["slide"] = "10s", "10s"
	if _, err = RunJob(c); !errors.Is(err, coord.ErrLogBound) || !strings.Contains(err.Error(), "want a larger bound") {
		t.Errorf("windows longer than the bound has room for give %v", err)
	}
}

func count(traces []coord.Trace, kind string) (n int) {
	for _, tr := range traces {
		if tr.Kind == kind {
			n++
		}
	}
	return n
}
