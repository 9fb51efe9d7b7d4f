package runner

import (
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/suites/spec"
)

// withBackends says which operators keep their state on disk, with how much of it in memory.
func withBackends(job *core.Job, c *spec.Cell) {
	for i, op := range c.Job.Operators {
		if op.State.Backend == core.BackendPebble {
			o := &job.Operators[i]
			o.Backend, o.StoreCacheBytes = core.BackendPebble, max(1, int64(op.State.Cache)) // 0 would be the engine's default
		}
	}
}
