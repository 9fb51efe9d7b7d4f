package host

import (
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// A worker's heap is mostly state without pointers, which costs the collector nothing to mark, and little garbage. Pacing by
// a percentage of the heap would let gigabytes of garbage pile up beside gigabytes of state; so the percentage follows the
// heap, and what a task gives away is returned to the system.
const (
	// mostGarbagePercent is for small heaps: collect when they have grown to five times what was alive.
	mostGarbagePercent = 400
	// garbageBytes bounds the garbage beside a large heap.
	garbageBytes = 128 << 20
	// returnBytes and returnShare: memory is returned when that much, and that share of the heap, has been given away.
	returnBytes = 16 << 20
	returnShare = 0.02
	memoryEvery = 20 * time.Millisecond
)

// memory keeps the collector's pace and returns what was given away, on a goroutine of its own.
type memory struct {
	freed  atomic.Int64 // state given away since the start
	done   int64        // of it, what has been returned
	pace   int
	sample []metrics.Sample
	stop   chan struct{}
}

func newMemory(limit int64) *memory {
	debug.SetMemoryLimit(limit)
	debug.SetGCPercent(mostGarbagePercent)
	m := &memory{pace: mostGarbagePercent, sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, stop: make(chan struct{})}
	go m.run()
	return m
}

func (m *memory) run() {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-tick.C:
			m.turn()
		}
	}
}

func (m *memory) turn() {
	metrics.Read(m.sample)
	live := int64(m.sample[0].Value.Uint64())
	if freed := m.freed.Load(); freed-m.done > max(returnBytes, int64(returnShare*float64(live))) {
		m.done = freed
		debug.FreeOSMemory() // collects first
		return
	}
	pace := pacePercent(live)
	if d := pace - m.pace; d > m.pace/8 || -d > m.pace/8 {
		m.pace = pace
		debug.SetGCPercent(pace) // waits for a collection under way, which the loop does not have to
	}
}

// pacePercent is how much a heap may grow until the next collection.
func pacePercent(liveBytes int64) int {
	return int(min(mostGarbagePercent, max(2, 100*garbageBytes/max(liveBytes, 1))))
}

func (m *memory) close() { close(m.stop) }
