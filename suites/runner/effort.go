package runner

import (
	"time"

	"github.com/weir-bench/weir/engine/coord"
)

// effort is how much had been worked at one moment.
type effort struct {
	at       time.Duration
	busy     []time.Duration // by task of the graph: service time
	consumed []uint64        // by task of the graph: inputs
	cpu      []time.Duration // by worker from 0: processor time; negative: it could not be read
}

// effort reads it. What a worker's process used has a resolution of 10 ms.
func (t *trial) effort() (effort, error) {
	var e effort
	var nodes []int
	if err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		e.at = t.now()
		for _, m := range c.Meters() {
			e.busy = append(e.busy, time.Duration(m.BusyNS))
			e.consumed = append(e.consumed, m.Consumed)
		}
		for s := range t.job.Workers {
			nodes = append(nodes, c.NodeOfSlot(s))
		}
	}); err != nil {
		return effort{}, t.over()
	}
	for _, n := range nodes {
		cpu := time.Duration(-1)
		if u, err := t.h.Usage(n); err == nil {
			cpu = u.UserCPU + u.SystemCPU
		}
		e.cpu = append(e.cpu, cpu)
	}
	return e, nil
}

// work is how much a task worked over a stretch of time.
type work struct {
	// Busy is the share of the time in which the task could not take another record, since it served one or since the
	// event loop of its worker was at work; it may exceed 1 by the resolution of the readings.
	busy float64
	// served is μ: the records a second that the task would take if it were never idle; 0 if it took none.
	served float64
}

// workOf compares two readings. For a task with a service time that is what it served. For any other one, all that its
// worker's event loop did counts, as the loop is what its records wait for; the worker's tasks share it.
func (t *trial) workOf(task int, from, to effort) work {
	span := (to.at - from.at).Seconds()
	if span <= 0 || len(from.busy) != len(to.busy) || len(from.cpu) != len(to.cpu) {
		return work{}
	}
	w := work{busy: max(0, (to.busy[task]-from.busy[task]).Seconds()/span)}
	slot := t.graph.Tasks[task].Slot
	if from.cpu[slot] >= 0 && to.cpu[slot] >= from.cpu[slot] {
		w.busy = max(w.busy, (to.cpu[slot]-from.cpu[slot]).Seconds()/span)
	}
	if n := to.consumed[task]; n > from.consumed[task] && w.busy > 0 {
		w.served = float64(n-from.consumed[task]) / span / w.busy
	}
	return w
}

// busiest is the most occupied of the tasks of an operator for which want is true.
func (t *trial) busiest(op int, from, to effort, want func(index int) bool) work {
	var most work
	for i, id := range t.graph.OpTasks[op] {
		if w := t.workOf(id, from, to); want(i) && w.busy >= most.busy {
			most = w
		}
	}
	return most
}
