//go:build linux

package host

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/task"
)

// BenchmarkDelay reports delays of a keyed count far below capacity, from intended time to arrival, and the lag of the
// harness's own sends.
func BenchmarkDelay(b *testing.B) {
	for _, rate := range []float64{5e3, 50e3, 500e3} {
		b.Run(time.Duration(float64(time.Second)/rate/2).String()+"/record", func(b *testing.B) {
			for b.Loop() {
				delays(b, uniformFeed{keys: 100_000, perSec: rate})
			}
		})
	}
}

func delays(b *testing.B, feed uniformFeed) {
	const warmNS, endNS = 500e6, 2500e6
	var all, lags []int64
	over, told := make(chan struct{}), false
	h, err := Start(Config{Job: countJob("delay", "", false), Feed: feed, Due: feed.paced,
		Collect: func(o task.Output) {
			for _, at := range o.Columns.Times {
				if at >= warmNS {
					all = append(all, o.CommittedNS-at)
				}
			}
		},
		OnLag: func(lagNS int64, n int) { lags = append(lags, lagNS) },
		OnTick: func(c *coord.Coordinator, _ *coord.Effects) {
			if c.Clock() > endNS && !told {
				close(over)
				told = true
			}
		}})
	if err != nil {
		b.Fatal(err)
	}
	<-over
	u1, err1 := h.Usage(1)
	u2, err2 := h.Usage(2)
	m := h.Metrics()
	if err := h.Close(); err != nil || err1 != nil || err2 != nil {
		b.Fatal(err, err1, err2)
	}
	at := func(s []int64, q float64) float64 {
		slices.Sort(s)
		return float64(s[int(q*float64(len(s)-1))]) / 1e3
	}
	b.ReportMetric(at(all, 0.5), "p50-us")
	b.ReportMetric(at(all, 0.99), "p99-us")
	b.ReportMetric(at(all, 1), "max-us")
	b.ReportMetric(at(lags, 0.99), "lag-p99-us")
	b.ReportMetric(m.LoopCPU.Seconds()/h.Now().Seconds()*100, "harness-cpu%")
	b.ReportMetric((u1.UserCPU+u1.SystemCPU+u2.UserCPU+u2.SystemCPU).Seconds()/h.Now().Seconds()*100, "workers-cpu%")
}
