package runner

import (
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/suites/spec"
)

// checkRecovery has the form of spec.Known.CheckRecovery: the engine says whether the strategies go together.
func checkRecovery(c *spec.Cell) []spec.Problem {
	job := buildJob(c, 1)
	g, err := core.BuildGraph(job, operator.Info)
	if err != nil {
		return []spec.Problem{problemOf(err)}
	}
	if err := recovery.Check(g, operator.Horizon); err != nil {
		return []spec.Problem{problemOf(err)}
	}
	return nil
}
