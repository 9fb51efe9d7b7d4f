package host

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A worker's heap is mostly state without pointers, which costs the collector nothing to mark, and little garbage. Pacing by
// a percentage of the heap would let gigabytes of garbage pile up beside gigabytes of state; so the percentage follows the
// heap. What a task gives away goes back to the system at once, without a collection: one in the middle of a move would stop
// the loop for as long as a busy machine lets the collector wait.
const (
	// mostGarbagePercent is for small heaps: collect when they have grown to five times what was alive.
	mostGarbagePercent = 400
	// garbageBytes and garbagePercent bound the garbage beside a large heap: so much, or that share of it.
	garbageBytes   = 128 << 20
	garbagePercent = 8
	// tidyBytes: so much state of tasks that were thrown away is worth a collection, as others take their place.
	tidyBytes   = 16 << 20
	memoryEvery = 20 * time.Millisecond
	// collectorNice is the priority of all threads but the loop: ahead of other programs, since a collector that waits for
	// a processor makes the loop wait, and behind the loop.
	collectorNice = loopNice / 2
)

// memory keeps the collector's pace, and tidies up behind tasks that were thrown away, on a goroutine of its own.
type memory struct {
	freed  atomic.Int64 // state thrown away since the start
	tidied int64
	pace   int
	sample []metrics.Sample
	stop   chan struct{}
}

func newMemory(limit int64) *memory {
	threadsAheadOfOthers()
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
	if freed := m.freed.Load(); freed-m.tidied >= tidyBytes {
		m.tidied = freed
		debug.FreeOSMemory()
		return
	}
	pace := pacePercent(int64(m.sample[0].Value.Uint64()))
	if d := pace - m.pace; d > m.pace/8 || -d > m.pace/8 {
		m.pace = pace
		debug.SetGCPercent(pace) // waits for a collection under way, which the loop does not have to
	}
}

// pacePercent is how much a heap may grow until the next collection.
func pacePercent(liveBytes int64) int {
	return int(min(mostGarbagePercent, max(garbagePercent, 100*garbageBytes/max(liveBytes, 1))))
}

func (m *memory) close() { close(m.stop) }

// giveBack returns the whole pages of mem to the system. They read as zeros afterwards, which is what the collector, whose
// they still are, does not mind: it does not look into memory without pointers.
func giveBack(mem []byte) {
	page := os.Getpagesize()
	if len(mem) < page {
		return
	}
	skip := int(-uintptr(unsafe.Pointer(&mem[0])) & uintptr(page-1))
	if n := (len(mem) - skip) &^ (page - 1); n > 0 {
		_ = unix.Madvise(mem[skip:skip+n], unix.MADV_DONTNEED) // kept, if the kernel does not want it
	}
}

// threadsAheadOfOthers gives all threads of the process, and those that they start, the collector's priority, if it may.
func threadsAheadOfOthers() {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return // then they run as others do
	}
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil && tid != unix.Gettid() {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, collectorNice)
		}
	}
}
