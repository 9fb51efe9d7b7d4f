package runner

import (
	"fmt"
	"strings"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/suites/spec"
)

// Check reports what the cells of a plan ask for that the engine cannot do, all at once and before anything starts. Its
// errors wrap spec.ErrInvalid.
func Check(s *spec.Suite, plan []spec.Trial) error {
	var problems []string
	seen := map[int]bool{}
	for _, t := range plan {
		if seen[t.Cell] {
			continue
		}
		seen[t.Cell] = true
		for _, p := range unsupported(&s.Cells[t.Cell]) {
			problems = append(problems, fmt.Sprintf("%s: cell %s: %s", s.File, t.Name, p))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", spec.ErrInvalid, strings.Join(problems, "\n"))
}

func unsupported(c *spec.Cell) []string {
	var out []string
	say := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	say(c.Checkpoint.Interval.Auto, "checkpoint.interval: auto is not available; write a time, such as 1s")
	say(c.Workload.CatchUp.Policy == "skip" && c.Job.Query != nil, "workload.catchUp: skip is not available with a query; write burst or limit")
	say(c.Workload.Splits > 0, "workload.splits is not available; leave it out: one split for each source task")
	out = append(append(append(out, plannerTrouble(c)...), profileTrouble(c)...), append(preloadTrouble(c), idleTrouble(c)...)...)
	if m := c.Migration; m != nil {
		s, err := migration.Lookup(m.Strategy)
		say(m.Bandwidth > 0 && err == nil && !s.Sends, "migration.bandwidth has no effect on %s, whose state is not sent from task to task; leave it out", m.Strategy)
	}
	out = append(append(out, traceTrouble(c)...), queryTrouble(c)...)
	parallelism := 0
	for _, op := range c.Job.Operators {
		if k, ok := operator.Lookup(op.Kind); ok && k.Source {
			say(parallelism > 0, "job: a second source is not available, as all records come from one workload; use one source with several readers")
			parallelism = op.Parallelism
		}
	}
	return out
}

// buildJob gives the engine's description of a cell's job.
func buildJob(c *spec.Cell, seed uint64) core.Job {
	job := core.Job{
		ID: jobName, Seed: seed, Workers: c.Job.Workers,
		Checkpoint: c.Checkpoint.Interval.D, CheckpointTimeout: c.Checkpoint.Timeout, Retain: c.Checkpoint.Retain,
		Heartbeat: c.Detection.Heartbeat, Lease: c.Detection.Lease,
	}
	for _, op := range c.Job.Operators {
		o := core.OperatorSpec{
			Name: op.Name, Kind: op.Kind, Inputs: op.Inputs, Parallelism: op.Parallelism,
			Service:       core.Service{Mode: core.ServiceMode(op.Service.Mode), Distribution: op.Service.Distribution, Mean: op.Service.Mean, Sigma: op.Service.Sigma},
			Transactional: op.Sink == "transactional",
		}
		if op.Service.Mode == "none" {
			o.Service = core.Service{}
		}
		if k, ok := operator.Lookup(op.Kind); ok && k.Keyed {
			// The operator's own count takes the first eight bytes.
			o.Groups, o.ValueBytes = uint32(op.KeyGroups), max(8, int(op.State.BytesPerKey))
		} else if ok && !k.Sink {
			o.Transactional = false
		}
		for _, w := range op.Placement {
			o.Place = append(o.Place, w-1)
		}
		withPreload(&o, &op)
		job.Operators = append(job.Operators, o)
	}
	withQuery(&job, c.Job.Query)
	withRecovery(&job, c)
	withProfile(&job, c)
	withStores(&job, c)
	withBackends(&job, c)
	return job
}

// sourceTasks is the number of splits of the workload.
func sourceTasks(job *core.Job) int {
	for _, op := range job.Operators {
		if k, ok := operator.Lookup(op.Kind); ok && k.Source {
			return op.Parallelism
		}
	}
	return 0
}

// operatorIndex returns the index of a job's operator, or −1.
func operatorIndex(job *core.Job, name string) int {
	for i, op := range job.Operators {
		if op.Name == name {
			return i
		}
	}
	return -1
}
