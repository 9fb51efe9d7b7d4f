package runner

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// leastMemory is the limit of a worker's heap when nothing is known of the machine.
const leastMemory = 2 << 30

// workerMemory is the soft limit of each worker's heap: four fifths of what the machine has to spare, in equal parts for the
// workers and the harness, and at least leastMemory. What state needs it may take; this only says when the collector of
// garbage has to try harder.
func workerMemory(c *spec.Cell) int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return leastMemory
	}
	for line := range strings.Lines(string(data)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kb); err == nil {
			return max(leastMemory, kb<<10/5*4/int64(c.Job.Workers+c.Job.Spares+1))
		}
	}
	return leastMemory
}

// memoryWatch samples the resident memory of all workers together while a migration lasts.
type memoryWatch struct {
	before, peak int64
	stop         chan struct{}
	gone         chan struct{}
	over         atomic.Bool
}

// memoryEvery is the time between two samples, each of which reads a few small files of /proc.
const memoryEvery = 10 * time.Millisecond

// watchMemory begins to sample. It ends by itself when the trial's migrations are over.
func (t *trial) watchMemory() {
	if t.memory != nil {
		return
	}
	w := &memoryWatch{stop: make(chan struct{}), gone: make(chan struct{})}
	t.memory = w
	w.before = t.resident()
	w.peak = w.before
	go func() {
		defer close(w.gone)
		tick := time.NewTicker(memoryEvery)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-t.h.Done():
				return
			case <-tick.C:
				w.peak = max(w.peak, t.resident())
			}
		}
	}()
}

// resident returns the memory of the workers that have tasks, 0 when one of them cannot be read.
func (t *trial) resident() (sum int64) {
	var nodes []int
	if err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		for s := range t.job.Workers {
			nodes = append(nodes, c.NodeOfSlot(s))
		}
	}); err != nil {
		return 0
	}
	for _, n := range nodes {
		u, err := t.h.Usage(n)
		if err != nil {
			return 0
		}
		sum += u.RSSBytes
	}
	return sum
}

// endMemory stops the sampling.
func (t *trial) endMemory() {
	if w := t.memory; w != nil && w.over.CompareAndSwap(false, true) {
		close(w.stop)
		<-w.gone
	}
}

// memoryMetrics give the highest resident memory of all workers from the trigger on, and how it compares with before.
func (t *trial) memoryMetrics(m map[string]runlog.Metric) {
	w := t.memory
	if w == nil || w.before == 0 {
		return
	}
	m["move_rss_bytes"] = runlog.Value(float64(w.peak), "bytes")
	m["move_rss_ratio"] = runlog.Value(float64(w.peak)/float64(w.before), "×")
}
