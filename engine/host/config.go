package host

import (
	"errors"
	"io"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// ErrUnsupported says that this operating system has no host world.
var ErrUnsupported = errors.New("the host world needs Linux (epoll); use containers, or the simulator, on this system")

// ErrClosed says that the harness was closed.
var ErrClosed = errors.New("the harness is closed")

// ErrNoProcess says that a node has no running process.
var ErrNoProcess = errors.New("no such process")

// Config is a run. All functions in it are called on the harness's event loop and must return soon.
//
// The external stores that Job names are asked before anything starts. What they hold under Job.ID is removed then and in
// the end, so runs at the same time need names or prefixes of their own.
type Config struct {
	Job  core.Job
	Feed task.FeedSource
	// Due sets due[s] to how many records of split s are due at the given time since the run's start (Harness.Now),
	// and returns when the next one is; a time that has passed means at once. nil: everything is due always.
	Due func(elapsed time.Duration, due []uint64) (next time.Duration)
	// Bounds ends split s after Bounds[s] records; 0 or missing: no end.
	Bounds []uint64
	// Collect is given the outputs; nothing of an Output may be kept.
	Collect func(task.Output)
	// Spares is how many workers without tasks stand by.
	Spares int
	// Routes sets initial route tables: operator index → task of each key group.
	Routes map[int][]int32
	// Dir is where checkpoints go, a folder or URL (storage.ParseAddress); empty: there are none. NoSync leaves writing
	// back to the operating system. Storage opens it, in this process; workers have their own. nil: folders only.
	Dir     string
	NoSync  bool
	Storage storage.Opener
	// StateDir is where workers keep state that is on disk: in a folder of their own in it, which is removed in the end.
	// Empty: the system's folder for temporary files.
	StateDir string
	// SpillDir is where workers put what their sender logs do not keep in memory (core.Job.SpillBytes): in a folder of their
	// own in it, which is removed in the end, and of a worker that is lost when its process has ended. Empty: StateDir.
	SpillDir string
	// Command starts a worker, which has to call WorkerMain; nil: this program without arguments. Env is added to
	// its environment, of which it has to pass on WEIR_WORKER.
	Command []string
	Env     []string
	// Stderr is given what workers print; nil: only the end of it is kept for messages. It must be safe for
	// concurrent use.
	Stderr io.Writer
	// Listen is the harness's own address and WorkerListen that of workers, as ip:port; empty: 127.0.0.1:0.
	Listen, WorkerListen string
	// Address returns the address under which node from reaches node to, whose own is real: the place for a proxy.
	// nil: the real one.
	Address func(from, to int, real string) string
	// MemoryBytes is the soft limit of each worker's heap; 0: 2 GiB.
	MemoryBytes int64
	// ProfileDir is where workers write processor profiles (worker-<node>.cpu.pprof) as they end; empty: nowhere.
	ProfileDir string
	OnTrace    func(coord.Trace)
	// OnTick is called every few milliseconds and may ask the coordinator for migrations.
	OnTick func(*coord.Coordinator, *coord.Effects)
	// OnLag is told that n records were sent lagNS nanoseconds or less behind their intended times. Records that had to
	// wait for the job (its windows were full) are not the harness's fault and do not count, nor do replayed ones.
	OnLag func(lagNS int64, n int)
}

// Usage is what a process has used, as the operating system counts it.
type Usage struct {
	UserCPU, SystemCPU time.Duration
	// RSSBytes is the memory in use now, PeakBytes the most there was.
	RSSBytes, PeakBytes int64
}

// Metrics are the harness's own cost.
type Metrics struct {
	// LoopCPU is the processor time of the event loop's thread.
	LoopCPU time.Duration
	// BatchesMade counts batches ever allocated, Turns the turns of the loop.
	BatchesMade int
	Turns       uint64
	Wire        WireMetrics
}

func (c *Config) fill() {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.WorkerListen == "" {
		c.WorkerListen = "127.0.0.1:0"
	}
	if c.MemoryBytes == 0 {
		c.MemoryBytes = 2 << 30
	}
	if c.Address == nil {
		c.Address = func(_, _ int, real string) string { return real }
	}
	if c.OnTrace == nil {
		c.OnTrace = func(coord.Trace) {}
	}
	if c.Collect == nil {
		c.Collect = func(task.Output) {}
	}
}
