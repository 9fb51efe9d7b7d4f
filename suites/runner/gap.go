package runner

import (
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/suites/verify"
	"github.com/weir-bench/weir/workloads"
)

// placed is where tasks and key groups were when it was last looked at, so that what a lost node had is known after the
// coordinator has given it to others. It is used on the event loop.
type placed struct {
	nodes  []int // by task
	routes [][]int32
}

func (t *trial) lookAtPlaces(c *coord.Coordinator) {
	p := placed{}
	for _, pl := range c.Places() {
		p.nodes = append(p.nodes, pl.Node)
	}
	for op := range t.job.Operators {
		var route []int32
		if r := c.Routes(op); r != nil {
			route = append(route, r.Task...)
		}
		p.routes = append(p.routes, route)
	}
	t.placed = p
}

// stateLost tells the oracles whose state went with a node: that of the key groups of its tasks that nothing protects. It
// runs on the event loop.
func (t *trial) stateLost(node int) {
	if verify.Promise(t.graph).Output != recovery.Gap {
		return // the job starts again from a whole state: no count may begin again
	}
	var sets []*groupSet
	for op, route := range t.placed.routes {
		if k, ok := operator.Lookup(t.job.Operators[op].Kind); !ok || !k.Keyed {
			continue
		}
		set, found := newGroupSet(t.job.Operators[op].Groups), false
		for g, task := range route {
			id := t.graph.OpTasks[op][task]
			if t.placed.nodes[id] == node && t.graph.Protection(id).Strategy == core.RecoveryNone {
				set.in[g], found = true, true
			}
		}
		if found {
			sets = append(sets, set)
		}
	}
	if len(sets) == 0 {
		return
	}
	for _, o := range t.col.oracles {
		o.StateLost(func(key uint64) bool {
			for _, s := range sets {
				if s.has(key) {
					return true
				}
			}
			return false
		})
	}
}

// outageSlack is how long before a failure records may have been sent that are still under way when it happens, and how
// long after the take-over channels need to find together again.
const outageSlack = 250 * time.Millisecond

// outages are the times, on the trial's axis, in which loss is what a gap promises: from each fault until its tasks run
// again.
func (t *trial) outages() (out [][2]time.Duration) {
	for _, inj := range t.injected {
		end := t.length
		for _, tr := range t.traces {
			at := t.onAxis(tr)
			if at > inj.at && (tr.Kind == coord.TracePromoted || tr.Kind == coord.TraceStarted) {
				end = at
				break
			}
		}
		out = append(out, [2]time.Duration{inj.at - outageSlack, end + outageSlack})
	}
	return out
}

// unconfined counts what was lost although it was due outside of every outage; only a gap may lose anything at all.
func (t *trial) unconfined(golden *workloads.Tally) (n uint64) {
	if verify.Promise(t.graph).Output != recovery.Gap {
		return 0
	}
	outages, outage := t.outages(), &workloads.Tally{}
	t.eachRecord(func(key uint64, due time.Duration) {
		for _, o := range outages {
			if due >= o[0] && due <= o[1] {
				outage.Add(key, 1)
				return
			}
		}
	})
	for i, e := range t.expect {
		n += t.col.oracles[i].Unconfined(golden, outage, e.Times)
	}
	return n
}

// eachRecord calls f for every record that was emitted, split by split, with its due time on the trial's axis.
func (t *trial) eachRecord(f func(key uint64, due time.Duration)) {
	var cols core.Columns
	for s, n := range t.seen.emitted {
		for from := uint64(0); from < n; from += core.MaxBatch {
			cols.Reset()
			t.feed.splits[s].Fill(&cols, from, int(min(core.MaxBatch, n-from)))
			for i, key := range cols.Keys {
				f(key, time.Duration(cols.Times[i]))
			}
		}
	}
}
