package runner

import (
	"fmt"
	"strconv"

	"github.com/weir-bench/weir/engine/core"
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
	if op.State.Preload > 0 {
		o.Params = map[string]string{"preload": strconv.FormatInt(int64(op.State.Preload), 10)}
	}
}
