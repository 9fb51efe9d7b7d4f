package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/durable"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// spillPlan says how small logs are in a trial and what goes wrong with the disks that they spill to.
type spillPlan struct {
	LogBytes int
	Bytes    int64 // 0: nothing is spilled
	// Fault is "full", "damaged" or "slow"; empty: the disks do what they should.
	Fault string
	// AtNS is when the fault begins, in simulated time, ForNS how long it lasts.
	AtNS, ForNS int64
}

// spillFaults are what a trial draws from.
func spillFaults() []string { return []string{"", "", "", "full", "damaged", "slow"} }

// spills says whether sender logs of a job wait for something but their reader.
func spills(job core.Job) bool {
	g, err := core.BuildGraph(job, operator.Info)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(g.Tasks, func(t core.TaskInfo) bool { return g.Protection(t.ID).Ordered() })
}

// drawSpill decides whether sender logs are small and have a disk. It has a stream of its own, so that seeds without that stay as
// they were; checks, which name their strategy, have it only when they say so.
func drawSpill(p *plan, c Config) {
	r := rand.New(rand.NewPCG(c.Seed, 3))
	drawn := r.IntN(3) == 0
	s := spillPlan{LogBytes: pick(r, 4<<10, 8<<10, 16<<10), Bytes: 1 << 20, Fault: pick(r, spillFaults()...),
		AtNS: startNS + r.Int64N(max(p.spanNS(), 1)), ForNS: 20*ms + r.Int64N(150*ms)}
	switch {
	case c.Spill != nil:
		s.LogBytes, s.Bytes, s.Fault = c.Spill.LogBytes, c.Spill.Bytes, c.Spill.Fault
		if s.Fault == "damaged" { // only a replay reads, and when it comes is not known here
			s.AtNS, s.ForNS = 0, deadlineNS
		}
	case c.Recovery != "" || !drawn || !spills(p.job):
		return
	}
	p.spill = s
	p.job.LogBytes, p.job.SpillBytes = s.LogBytes, s.Bytes
}

// spillDisk is the disk of one worker for what its sender logs spill.
type spillDisk struct {
	fs     *storage.MemFS
	freeNS int64 // when what was asked for is done
}

// spillDirectory is the folder on it.
const spillDirectory = "spill"

func newSpillDisk() spillDisk {
	d := spillDisk{fs: storage.NewMemFS()}
	if err := d.fs.MkdirAll(spillDirectory); err != nil {
		panic(err) // nothing was injected
	}
	return d
}

// segment carries out what a worker asks of a segment: one after the other, each in its time.
func (w *World) segment(k *worker, r task.SegmentRequest) {
	d := &k.spill
	delay := 200_000 + w.rng.Int64N(ms)
	if w.spillFault("slow") {
		delay += 10*ms + w.rng.Int64N(40*ms)
	}
	d.freeNS = max(d.freeNS, w.nowNS) + delay
	w.at(d.freeNS, func() {
		w.on(k, func() {
			if r.Op == task.SegmentRead && w.spillFault("damaged") {
				w.damageSegment(d, r.ID)
			}
			d.fs.Heal()
			if w.spillFault("full") {
				d.fs.LimitSpace(w.rng.Int64N(1024))
			}
			err := durable.DoSegment(d.fs, spillDirectory, &r)
			if r.Op == task.SegmentRemove {
				return
			}
			w.we.Reset()
			k.w.SegmentDone(&r, err, &w.we)
			for i := range w.we.Msgs {
				w.spillFailed = w.spillFailed || w.we.Msgs[i].Type == core.MsgTaskFailed
			}
			w.perform(k)
			w.wake(k, 0)
		})
	})
}

// spillFault says whether a fault of the disks is under way.
func (w *World) spillFault(kind string) bool {
	p := &w.spilling
	return p.Fault == kind && w.nowNS >= p.AtNS && w.nowNS < p.AtNS+p.ForNS
}

func (w *World) damageSegment(d *spillDisk, id uint64) {
	d.fs.Damage(fmt.Sprintf("%s/segment-%d", spillDirectory, id), func(b []byte) []byte {
		b[w.rng.IntN(len(b))] ^= 0x40
		return b
	})
}

// spillChecks are those of sender logs that do not fit into memory.
func spillChecks() []Check {
	small := func(s uint64, recovery, fault string) Config {
		return Config{Seed: s, Recovery: recovery, Migration: "none", Transactional: no(), Faults: 1, Kinds: []string{"crash"}, Records: 2500,
			Spill: &spillPlan{LogBytes: 4 << 10, Bytes: 1 << 20, Fault: fault}}
	}
	strategies := []string{"upstream", "passive", "checkpoint:task"}
	return []Check{
		{"spill", "sender logs that are mostly on disk, under one crash: as if nothing had happened", 300, func(s uint64) Config {
			return small(s, strategies[s%3], "")
		}},
		{"spill-damaged", "segments of sender logs are damaged on disk before a replay reads them: the job goes back, and no answer is wrong", 300, func(s uint64) Config {
			return small(s, strategies[s%3], "damaged")
		}},
		{"spill-faults", "the disk of sender logs is full or slow for a while, under one crash: nothing is lost, no answer is wrong", 300, func(s uint64) Config {
			return small(s, strategies[s%3], []string{"full", "slow"}[s/3%2])
		}},
		{"small-bound-standby", "active standbys, one of them made again, with sender logs of a few batches, under one crash: as if nothing had happened", 200, func(s uint64) Config {
			c := small(s, "active", "")
			c.Records, c.Spill.LogBytes, c.Spill.Bytes = 1200, 2*core.MinLogBytes, 0
			return c
		}},
		{"small-bound-moves", "migrations and a crash with sender logs of a few batches: bases stand still while state moves, and everything goes on all the same", 300, func(s uint64) Config {
			c := small(s, append(strategies, "active")[s%4], "")
			c.Migration, c.Faults, c.Records, c.Spill.Bytes = []string{"async-rounds", "pause-move", "pre-copy"}[s/4%3], int(s/12%2), 1200, 0
			return c
		}},
		{"small-bound", "sender logs of a few batches, and no disk: the checkpoint that frees them comes all the same", 200, func(s uint64) Config {
			c := small(s, "checkpoint:task", "")
			c.Records, c.Faults, c.Spill.LogBytes, c.Spill.Bytes = 800, 0, core.MinLogBytes, 0
			return c
		}},
	}
}
