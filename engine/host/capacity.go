package host

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/task"
)

// CapacityConfig is a measurement of what the engine can carry.
type CapacityConfig struct {
	// Keys is the number of different keys, uniformly drawn.
	Keys uint64
	// Workers is the number of worker processes: each has a source, a count and a sink task.
	Workers int
	// Warm goes by before Measure is measured.
	Warm, Measure time.Duration
	// Recovery, Checkpoint and Dir are those of the job; Dir may be empty without checkpoints.
	Recovery   string
	Checkpoint time.Duration
	Dir        string
	// ProfileDir is as in Config.
	ProfileDir string
}

// CapacityResult is what came of it.
type CapacityResult struct {
	RecordsPerSec float64
	// Wrong counts outputs that were not the next count of their key.
	Wrong uint64
	// HarnessCPU and WorkerCPU are the processor time of the harness's loop and of each worker's over Elapsed.
	HarnessCPU time.Duration
	WorkerCPU  []time.Duration
	Elapsed    time.Duration
	Harness    Metrics
	Workers    []WorkerMetrics
}

// Capacity saturates a keyed count: every record is returned to this process, which checks its count. The feed is read
// as fast as the windows allow.
func Capacity(cfg CapacityConfig) (CapacityResult, error) {
	var res CapacityResult
	par := cfg.Workers
	job := core.Job{ID: "capacity", Seed: 1, Workers: cfg.Workers, Checkpoint: cfg.Checkpoint, Operators: []core.OperatorSpec{
		{Name: "in", Kind: "source", Parallelism: par, Recovery: cfg.Recovery},
		{Name: "count", Kind: "count", Inputs: []string{"in"}, Parallelism: par, Groups: 1024, ValueBytes: 8, Recovery: cfg.Recovery},
		{Name: "out", Kind: "sink", Inputs: []string{"count"}, Parallelism: par, Recovery: cfg.Recovery},
	}}
	check := &countCheck{last: make([]uint32, cfg.Keys)}
	started := make(chan struct{}, 1)
	h, err := Start(Config{Job: job, Feed: spreadFeed{cfg.Keys}, Collect: check.collect, Dir: cfg.Dir, NoSync: true, ProfileDir: cfg.ProfileDir, OnTrace: func(t coord.Trace) {
		if t.Kind == coord.TraceStarted {
			select {
			case started <- struct{}{}:
			default:
			}
		}
	}})
	if err != nil {
		return res, err
	}
	defer h.Close()
	select {
	case <-started:
	case <-h.Done():
		return res, fmt.Errorf("measure capacity: %w", h.Err())
	}
	time.Sleep(cfg.Warm)
	before, err := h.sample(check, cfg.Workers)
	if err != nil {
		return res, err
	}
	time.Sleep(cfg.Measure)
	after, err := h.sample(check, cfg.Workers)
	if err != nil {
		return res, err
	}
	res.Elapsed = after.at - before.at
	res.RecordsPerSec = float64(after.outputs-before.outputs) / res.Elapsed.Seconds()
	res.Wrong = after.wrong
	res.Harness, res.HarnessCPU = after.harness, after.harness.LoopCPU-before.harness.LoopCPU
	res.Workers = after.workers
	for i := range after.workers {
		res.WorkerCPU = append(res.WorkerCPU, time.Duration(after.workers[i].LoopCPUNS-before.workers[i].LoopCPUNS))
	}
	return res, nil
}

type capacitySample struct {
	at             time.Duration
	outputs, wrong uint64
	harness        Metrics
	workers        []WorkerMetrics
}

func (h *Harness) sample(c *countCheck, workers int) (s capacitySample, err error) {
	for node := 1; node <= workers; node++ {
		m, err := h.WorkerMetrics(node, 10*time.Second)
		if err != nil {
			return s, err
		}
		s.workers = append(s.workers, m)
	}
	s.harness = h.Metrics()
	err = h.Do(func(*coord.Coordinator, *coord.Effects) { s.at, s.outputs, s.wrong = h.Now(), c.outputs, c.wrong })
	return s, err
}

// spreadFactor maps an index to a key that looks like any 64-bit key and back: it is odd, hence invertible modulo 2^64.
const spreadFactor = 0x9e3779b97f4a7c15

// spreadInverse is the inverse of spreadFactor modulo 2^64, by Newton's iteration: each step doubles the correct bits.
func spreadInverse() uint64 {
	x := uint64(spreadFactor)
	for range 5 {
		x *= 2 - spreadFactor*x
	}
	return x
}

// spreadFeed draws keys uniformly from keys different ones.
type spreadFeed struct{ keys uint64 }

func (f spreadFeed) Fill(dst *core.Columns, split, splits int, from uint64, n int) {
	at := len(dst.Keys)
	dst.Keys = slices.Grow(dst.Keys, n)[:at+n]
	dst.Times = slices.Grow(dst.Times, n)[:at+n]
	clear(dst.Times[at:])
	out := dst.Keys[at:]
	base := from*uint64(splits) + uint64(split)
	for i := range out {
		index, _ := bits.Mul64(core.Mix64(base+uint64(i*splits)), f.keys)
		out[i] = index * spreadFactor
	}
}

// countCheck checks that the counts of each key come one after the other.
type countCheck struct {
	last           []uint32
	outputs, wrong uint64
}

func (c *countCheck) collect(o task.Output) {
	inverse := spreadInverse()
	wrong := uint64(0)
	for i, key := range o.Columns.Keys {
		n := &c.last[key*inverse]
		*n++
		if int64(*n) != o.Columns.Vals[i] {
			wrong++
			*n = uint32(o.Columns.Vals[i])
		}
	}
	c.wrong += wrong
	c.outputs += uint64(len(o.Columns.Keys))
}
