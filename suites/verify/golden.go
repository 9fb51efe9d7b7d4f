package verify

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/workloads"
)

// Expectation is what a sink has to give.
type Expectation struct {
	// Operator is the index of the sink in the job.
	Operator int
	Kind     Kind
	// Times is how often each record of the workload reaches the sink: once for each way through the graph.
	Times uint64
}

// Expect derives from a job's graph what each of its sinks has to give. It errors where no golden answer is known; the
// verdict of such a run is unknown.
func Expect(job *core.Job) ([]Expectation, error) {
	index := map[string]int{}
	kinds, times := make([]Kind, len(job.Operators)), make([]uint64, len(job.Operators))
	var out []Expectation
	for i, op := range job.Operators {
		index[op.Name] = i
		k, ok := operator.Lookup(op.Kind)
		if !ok {
			return nil, fmt.Errorf("operator %s: no golden answer is known for kind %q", op.Name, op.Kind)
		}
		kinds[i], times[i] = PassedOn, 1
		if !k.Source {
			times[i] = 0
			for _, in := range op.Inputs {
				times[i] += times[index[in]]
			}
			if len(op.Inputs) == 1 {
				kinds[i] = kinds[index[op.Inputs[0]]]
			}
		}
		switch {
		case op.Kind == "count" || op.Kind == "sized-count":
			kinds[i] = RunningCount
		case k.Keyed:
			return nil, fmt.Errorf("operator %s: no golden answer is known for kind %q", op.Name, op.Kind)
		case op.Params["share"] != "" && op.Params["share"] != "1":
			return nil, fmt.Errorf("operator %s: no golden answer is known for a filter", op.Name)
		}
		if k.Sink {
			out = append(out, Expectation{Operator: i, Kind: kinds[i], Times: times[i]})
		}
	}
	return out, nil
}

// Golden returns the number of records a key among the first emitted[s] records of each split s.
func Golden(splits []workloads.Stream, emitted []uint64) *workloads.Tally {
	if len(emitted) == 1 {
		return workloads.Counts(splits[0], emitted[0])
	}
	sum := &workloads.Tally{}
	for s, n := range emitted {
		for key, count := range workloads.Counts(splits[s], n).All() {
			sum.Add(key, count)
		}
	}
	return sum
}
