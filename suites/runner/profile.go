package runner

import (
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/workloads"
)

// A workload may give each key a state size and a service time of its own. They travel with the records, in the value
// column (core.Profile), so that a worker needs to know nothing of the workload.

func given(m spec.Measure) bool { return m.Kind != "" && m.Kind != "none" }

func profiled(c *spec.Cell) bool { return given(c.Workload.State) || given(c.Workload.Service) }

// profileTrouble says what does not go together with sizes and times by key.
func profileTrouble(c *spec.Cell) []string {
	if !profiled(c) {
		return nil
	}
	var out []string
	if v := c.Workload.Value.Kind; v != "" && v != "none" {
		out = append(out, "workload.value is not available together with workload.state or workload.service, which use the value column; leave one out")
	}
	if c.Job.Query != nil {
		out = append(out, "workload.state and workload.service are not available with a query; leave them out")
	}
	counts, served := 0, 0
	for _, op := range c.Job.Operators {
		if op.Kind == "count" {
			counts++
			if op.Service.Mode != "" && op.Service.Mode != "none" {
				served++
			}
		}
	}
	if counts == 0 {
		out = append(out, "workload.state and workload.service are for an operator of kind count, and the job has none; leave them out")
	}
	if given(c.Workload.Service) && served < counts {
		out = append(out, "workload.service needs to know how the time is spent; give each count a service with mode: busy or mode: timed")
	}
	return out
}

// withProfile makes the counts of a job take state sizes and service times from the records.
func withProfile(job *core.Job, c *spec.Cell) {
	for i := range job.Operators {
		op := &job.Operators[i]
		if k, ok := operator.Lookup(op.Kind); !ok || !k.Keyed || op.Kind != "count" {
			continue
		}
		if given(c.Workload.State) {
			op.Kind = "sized-count"
		}
		if given(c.Workload.Service) {
			op.Service.Distribution = core.ByRecord
		}
	}
}

// profileOf gives the value of a key's records, or nil when the workload has no sizes and times by key.
func profileOf(w *workloads.Workload, c *spec.Cell) func(key uint64) int64 {
	if !profiled(c) {
		return nil
	}
	known := map[uint64]int64{} // a key's profile never changes
	return func(key uint64) int64 {
		v, ok := known[key]
		if !ok {
			v = core.Profile(w.ServiceTime(key), w.StateBytes(key))
			known[key] = v
		}
		return v
	}
}
