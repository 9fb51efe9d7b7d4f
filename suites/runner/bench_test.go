//go:build linux

package runner

import (
	"context"
	"testing"
	"time"
)

// BenchmarkCapacity saturates a keyed count of uniform keys, every output returned and checked.
func BenchmarkCapacity(b *testing.B) {
	for b.Loop() {
		r, err := Capacity(context.Background(), CapacityOptions{Workers: 2, Parallelism: 2, Keys: 100_000, Duration: 2 * time.Second, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		n := r.RecordsPerS * r.Elapsed.Seconds()
		b.ReportMetric(r.RecordsPerS/1e6, "Mrecords/s")
		b.ReportMetric(float64(r.HarnessCPU.Nanoseconds())/n, "harness-ns/record")
		b.ReportMetric(float64(r.WorkerCPU.Nanoseconds())/n, "worker-ns/record")
	}
}
