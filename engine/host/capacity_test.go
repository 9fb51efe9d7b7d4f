//go:build linux

package host

import (
	"os"
	"testing"
	"time"
)

// TestNoAllocationOnTheRecordPath saturates a keyed count: in steady state no batch is made anew, and what is allocated
// belongs to heartbeats and metrics, far fewer objects than batches.
func TestNoAllocationOnTheRecordPath(t *testing.T) {
	feed := spreadFeed{1000}
	check := &countCheck{last: make([]uint32, 1000)}
	r := start(t, Config{Job: countJob("steady", "", false), Feed: feed, Collect: check.collect})
	outputs := func() (n uint64) {
		s, err := r.sample(check, 0)
		if err != nil {
			t.Fatal(err)
		}
		return s.outputs
	}
	for deadline := time.Now().Add(patience); outputs() < 2_000_000; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("2000000 outputs did not come")
		}
	}
	// The windows and the depth of the queues still breathe with the load of the machine; a span in which nothing was
	// made must come, and it must be one in which much was carried.
	var last string
	for range 20 {
		before, err := r.sample(check, 2)
		if err != nil {
			t.Fatal(err)
		}
		for target := outputs() + 1_000_000; outputs() < target; {
		}
		after, err := r.sample(check, 2)
		if err != nil {
			t.Fatal(err)
		}
		if last = steady(before, after); last == "" {
			if after.wrong > 0 {
				t.Errorf("%d wrong counts", after.wrong)
			}
			return
		}
	}
	t.Error(last)
}

// steady says what was allocated in a span, or nothing.
func steady(before, after capacitySample) string {
	if n := after.harness.BatchesMade - before.harness.BatchesMade; n > 0 {
		return "the harness makes new batches"
	}
	for i := range after.workers {
		a, b := after.workers[i], before.workers[i]
		if a.BatchesMade > b.BatchesMade {
			return "a worker makes new batches"
		}
		frames := a.Wire.FramesReceived - b.Wire.FramesReceived
		if objects := a.Mallocs - b.Mallocs; objects > uint64(frames)/4+200 {
			return "a worker allocates with the frames it carries"
		}
	}
	return ""
}

// profileVariable is the environment variable with the directory for the workers' profiles.
const profileVariable = "WEIR_PROFILE_DIR"

// BenchmarkCapacity reports what two workers carry on this machine, harness included.
func BenchmarkCapacity(b *testing.B) {
	for b.Loop() {
		r, err := Capacity(CapacityConfig{Keys: 100_000, Workers: 2, Warm: time.Second, Measure: 3 * time.Second, ProfileDir: os.Getenv(profileVariable)})
		if err != nil {
			b.Fatal(err)
		}
		if r.Wrong > 0 {
			b.Fatalf("%d wrong counts", r.Wrong)
		}
		perRecord := func(d time.Duration) float64 {
			return float64(d.Nanoseconds()) / (r.RecordsPerSec * r.Elapsed.Seconds())
		}
		b.ReportMetric(r.RecordsPerSec/1e6, "Mrecords/s")
		b.ReportMetric(perRecord(r.HarnessCPU), "harness-ns/record")
		b.ReportMetric(perRecord(r.WorkerCPU[0]+r.WorkerCPU[1]), "worker-ns/record")
		b.Logf("harness %+v", r.Harness)
		b.Logf("workers %+v", r.Workers)
	}
}
