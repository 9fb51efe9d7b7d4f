package runner

import (
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/task"
	"github.com/weir-bench/weir/reports/stats"
	"github.com/weir-bench/weir/suites/verify"
)

// collector takes the outputs of a job: it checks each answer and records the delay of those that came for the first
// time. It is used on the harness's event loop; after the harness was closed, by whoever analyses.
type collector struct {
	originNS int64 // of the time axis
	endNS    int64 // records due later (those of the burst) are checked but no delay of theirs is recorded
	oracles  []*verify.Oracle
	query    *query // instead of them; nil: the job answers none
	byTask   []int  // oracle of each sink task, by task id
	// delays of the keys that stay and, once a migration has begun, of those that move.
	delays [2]*stats.Recorder
	moving *groupSet
	first  firstOutput
	// windows notes delays while the calibration moves key groups; nil: it does not.
	windows *delayWindows
	// handOverNS is when answers of keys that were handed over have to be in order again; 0: no hand-over has ended.
	handOverNS int64
}

// The classes of keys.
const (
	staying = iota
	moves
)

// groupSet is a set of key groups.
type groupSet struct {
	groups uint32
	in     []bool
}

func (s *groupSet) has(key uint64) bool { return s.in[core.KeyGroup(key, s.groups)] }

// firstOutput waits for the first output of a failed task's keys that its successor gave.
type firstOutput struct {
	armed      bool
	failed     *groupSet
	epoch      uint32 // outputs of a later deployment are the successor's
	promotedNS int64  // and so are those after a standby took over; 0: it has not
	atNS       int64  // 0: none yet
}

func newCollector(expect []verify.Expectation, graph *core.Graph, keys int, interval, length time.Duration) *collector {
	c := &collector{byTask: make([]int, len(graph.Tasks)), endNS: int64(length)}
	for i, e := range expect {
		c.oracles = append(c.oracles, verify.New(e.Kind, keys))
		for _, id := range graph.OpTasks[e.Operator] {
			c.byTask[id] = i
		}
	}
	for i := range c.delays {
		c.delays[i] = stats.NewRecorder(stats.RecorderOptions{Interval: interval, Expect: length + 5*time.Second})
	}
	return c
}

// handOverSlack is how long after a migration answers of the old owners may still be under way.
const handOverSlack = time.Second

func (c *collector) handOverEnds(atNS int64) { c.handOverNS = atNS + int64(handOverSlack) }

func (c *collector) collect(o task.Output) {
	if c.handOverNS != 0 && o.CommittedNS > c.handOverNS {
		c.handOverNS = 0
		for _, o := range c.oracles {
			o.HandOver(nil)
		}
	}
	var repeats []int
	switch {
	case c.query != nil:
		c.query.check(&o)
	case len(c.oracles) > 0:
		repeats = c.oracles[c.byTask[o.Task]].Check(o.Channel, o.Epoch, o.Columns.Keys, o.Columns.Vals)
	}
	if c.first.armed {
		c.watch(o)
	}
	if c.windows != nil {
		c.windows.note(&o, c.originNS)
	}
	if len(repeats) == 0 && c.moving == nil {
		c.record(o.Columns.Times, o.CommittedNS)
		return
	}
	arrival := time.Duration(o.CommittedNS - c.originNS)
	for i, t := range o.Columns.Times {
		if len(repeats) > 0 && repeats[0] == i {
			repeats = repeats[1:]
			continue
		}
		due := t - c.originNS
		if due >= c.endNS {
			continue
		}
		class := staying
		if c.moving != nil && c.moving.has(o.Columns.Keys[i]) {
			class = moves
		}
		c.delays[class].Record(time.Duration(due), arrival)
	}
}

func (c *collector) record(times []int64, committedNS int64) {
	arrival, rec := time.Duration(committedNS-c.originNS), c.delays[staying]
	for _, t := range times {
		if due := t - c.originNS; due < c.endNS {
			rec.Record(time.Duration(due), arrival)
		}
	}
}

// watch looks for the first output of the failed keys.
func (c *collector) watch(o task.Output) {
	f := &c.first
	if o.Epoch <= f.epoch && (f.promotedNS == 0 || o.CommittedNS < f.promotedNS) {
		return // it may have been under way when the task failed
	}
	for _, k := range o.Columns.Keys {
		if f.failed.has(k) {
			f.atNS, f.armed = o.CommittedNS, false
			return
		}
	}
}

// answered returns how many different answers came, over all sinks.
func (c *collector) answered() (n uint64) {
	for _, o := range c.oracles {
		n += o.Distinct()
	}
	return n
}

// all returns the delays of all keys.
func (c *collector) all() *stats.Recorder {
	c.delays[staying].Merge(c.delays[moves])
	return c.delays[staying]
}
