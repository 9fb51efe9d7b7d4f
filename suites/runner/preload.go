package runner

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/suites/spec"
)

// preloadTrouble says why the state of a cell's operators cannot be there from the start as it asks for.
func preloadTrouble(c *spec.Cell) []string {
	var out []string
	for _, op := range c.Job.Operators {
		say := func(when bool, format string, args ...any) {
			if when && op.State.Preload > 0 {
				out = append(out, fmt.Sprintf("state.preload of operator %s: ", op.Name)+fmt.Sprintf(format, args...))
			}
		}
		say(op.Kind != "count", "its kind is %s; leave it out, or write kind: count", op.Kind)
		say(c.Workload.Scramble, "workload.scramble gives keys of other numbers; write scramble: false")
		say(c.Workload.Preset != "", "the workload's preset may have keys of other numbers; write its kind instead of preset: %s", c.Workload.Preset)
		say(given(c.Workload.State), "workload.state gives each key a size that only its first record tells; use the operator's bytesPerKey")
		say(c.Workload.Keys > 0 && op.State.Preload > c.Workload.Keys, "the workload has %d keys only; write at most that", c.Workload.Keys)
	}
	return out
}

// withPreload tells an operator which keys are there from the start.
func withPreload(o *core.OperatorSpec, op *spec.Operator) {
	if p := preloaded(int64(op.State.Preload)); p != nil {
		o.Params = p
	}
}

// preloaded are the parameters of a count whose first n keys are there from the start; nil when there are none.
func preloaded(n int64) map[string]string {
	if n == 0 {
		return nil
	}
	return map[string]string{"preload": strconv.FormatInt(n, 10)}
}

// preloadPerS is how many keys a worker enters a second at least, on a busy machine.
const preloadPerS = 5e6

// patience is how long the workers may take to start.
func (t *trial) patience() time.Duration {
	d := startLimit
	for _, op := range t.cell.Job.Operators {
		d += time.Duration(float64(op.State.Preload) / preloadPerS * float64(time.Second))
	}
	return d
}

// idleTrouble says why tasks cannot be idle as a cell asks for.
func idleTrouble(c *spec.Cell) []string {
	var out []string
	for _, op := range c.Job.Operators {
		switch k, ok := operator.Lookup(op.Kind); {
		case op.Idle == 0 || !ok:
		case !k.Keyed:
			out = append(out, fmt.Sprintf("idle of operator %s: only keyed operators have key groups; leave it out", op.Name))
		case op.Idle >= op.Parallelism:
			out = append(out, fmt.Sprintf("idle of operator %s: %d of %d tasks, so nobody would own its key groups; write at most %d", op.Name, op.Idle, op.Parallelism, op.Parallelism-1))
		}
	}
	return out
}

// idleRoutes gives the initial routes of operators with idle tasks, by the operators' index.
func idleRoutes(c *spec.Cell) map[int][]int32 {
	routes := map[int][]int32{}
	for i, op := range c.Job.Operators {
		if op.Idle > 0 {
			routes[i] = core.NewRoutes(uint32(op.KeyGroups), op.Parallelism-op.Idle).Task
		}
	}
	return routes
}
