package runner

import (
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
)

// groupLoad is the load and state of a key group at a task, as the meters have it.
type groupLoad struct {
	operator, task int // task is that of the job's graph
	group          uint32
	records        uint64
	bytes          int64
}

// groupLoads copies the newest meters. It runs on the event loop.
func groupLoads(c *coord.Coordinator, _ *core.Job) []groupLoad {
	var out []groupLoad
	for id, m := range c.Meters() {
		op := c.Graph().Tasks[id].Operator
		for i, g := range m.Groups {
			out = append(out, groupLoad{op, id, g, m.Loads[i], m.StateBytes[i]})
		}
	}
	return out
}

// meters are an operator's key groups over a stretch of time.
type meters struct {
	load  []float64 // what a planner balances, a second; of records, unless the suite wants another signal
	rate  []float64 // records a second
	bytes []int64
	route []int32
}

// newMeters has no load.
func newMeters(route []int32) meters {
	n := len(route)
	return meters{rate: make([]float64, n), load: make([]float64, n), bytes: make([]int64, n), route: route}
}

// window subtracts what the meters showed at its beginning; a task's count of a key group goes on where it was when the
// group comes back. A group that the meters have not shown has no load.
func (t *trial) window(op int, before, after []groupLoad, span time.Duration, route []int32) meters {
	m := newMeters(route)
	type place struct {
		task  int
		group uint32
	}
	was := map[place]uint64{}
	for _, l := range before {
		was[place{l.task, l.group}] = l.records
	}
	for _, l := range after {
		if l.operator != op {
			continue
		}
		n := l.records
		if b := was[place{l.task, l.group}]; b <= n { // else the task was deployed anew and counts from 0
			n -= b
		}
		m.rate[l.group] += float64(n) / span.Seconds()
		if t.graph.Tasks[l.task].Index == int(route[l.group]) {
			m.bytes[l.group] = l.bytes
		}
	}
	m.load = slices.Clone(m.rate)
	return m
}

// byTask sums what groups have over the tasks that own them.
func byTask(of []float64, route []int32, tasks int) []float64 {
	out := make([]float64, tasks)
	for g, d := range route {
		out[d] += of[g]
	}
	return out
}

// theta is the imbalance of tasks: the highest load over the mean, less 1; 0 without load.
func theta(load []float64) float64 {
	total := 0.0
	for _, l := range load {
		total += l
	}
	if total <= 0 {
		return 0
	}
	return slices.Max(load)*float64(len(load))/total - 1
}

// rateMeter makes even samples of the records of an operator's key groups out of the reports of its tasks. Each task
// reports at moments of its own, so that what was counted since the last look covers a stretch of another length for each
// of them: without that taken into account, the task that happened to report twice would look twice as loaded.
type rateMeter struct {
	tasks   []taskRate // by index in the operator
	counts  []float64  // by group: what Take has not given yet
	bytes   []int64    // by group
	takenAt time.Duration
}

// taskRate is what is known of a task.
type taskRate struct {
	last    []uint64 // by group: the count of the newest report
	report  *uint64  // the newest report; reports are decoded into fresh memory each
	at      time.Duration
	known   bool      // there was a report, so that the next one has a length
	pending []float64 // by group: counted since covered began
	covered time.Duration
	rate    []float64 // by group: records a second of the stretch that was taken last
}

func newRateMeter(tasks, groups int) *rateMeter {
	m := &rateMeter{tasks: make([]taskRate, tasks), counts: make([]float64, groups), bytes: make([]int64, groups)}
	for i := range m.tasks {
		m.tasks[i] = taskRate{last: make([]uint64, groups), pending: make([]float64, groups), rate: make([]float64, groups)}
	}
	return m
}

// look takes the newest meters of the task with an index; at is now. A report that was seen before changes nothing.
func (m *rateMeter) look(index int, r *core.Meters, at time.Duration) {
	if len(r.Loads) == 0 {
		return
	}
	t := &m.tasks[index]
	if t.report == &r.Loads[0] {
		return
	}
	t.report = &r.Loads[0]
	for i, g := range r.Groups {
		n := r.Loads[i]
		if n >= t.last[g] { // else the task was deployed anew
			n -= t.last[g]
		}
		t.last[g] = r.Loads[i]
		m.bytes[g] = r.StateBytes[i]
		if t.known {
			t.pending[g] += float64(n)
		}
	}
	if t.known {
		t.covered += at - t.at
	}
	t.known, t.at = true, at
}

// staleAfter is how many times as long as a sample a task may be silent before it counts as idle.
const staleAfter = 10

// take fills records, by group, with those of the time since the last call. A task that has not reported since goes on as
// it was.
func (m *rateMeter) take(now time.Duration, records []int64) {
	span := (now - m.takenAt).Seconds()
	for i := range m.tasks {
		t := &m.tasks[i]
		switch {
		case t.covered > 0:
			for g, n := range t.pending {
				t.rate[g] = n / t.covered.Seconds()
				t.pending[g] = 0
			}
			t.covered = 0
		case now-t.at > staleAfter*(now-m.takenAt):
			clear(t.rate)
		}
		for g, r := range t.rate {
			if r > 0 {
				m.counts[g] += r * span
			}
		}
	}
	m.takenAt = now
	for g, n := range m.counts {
		records[g] = int64(n)
		m.counts[g] -= float64(records[g]) // the rest belongs to the next sample
	}
}
