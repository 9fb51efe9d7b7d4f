package criticality

import (
	"fmt"
	"math"
)

// Problem asks which tasks get a standby.
type Problem struct {
	Graph  Graph
	Budget float64 // of Task.Cost; 0 protects tasks that cost nothing
	// CorrelatedShare, 0 … 1, weighs the two things a plan is good for: what
	// still comes out when all unprotected tasks fail together, and the expected
	// loss avoided when tasks fail one at a time.
	CorrelatedShare float64
	Seed            uint64 // of the planner "random"
}

// Worth is what a set of protected tasks is good for.
type Worth struct {
	Cost float64
	// Fidelity is the share of output that comes from protected tasks alone, all
	// the way from the sources.
	Fidelity float64
	// LossSeconds is the expected output lost to failures of single unprotected
	// tasks, in seconds of the whole output: Σ risk · share of output lost.
	LossSeconds float64
	// Value is CorrelatedShare·Fidelity + (1−CorrelatedShare)·(share of the loss
	// avoided), 0 … 1.
	Value float64
}

// valuer computes worth; it reuses its buffers and is not for concurrent use.
type valuer struct {
	*topology
	problem  Problem
	sequence []int // tasks, channels lead forward
	weight   []float64
	groups   [][][]link // by join, its inputs by upstream operator
	loss     []float64  // by task, risk · share of output lost without it
	total    float64    // Σ loss
	flow     []float64
}

func newValuer(p Problem) (*valuer, error) {
	t, err := newTopology(p.Graph)
	if err != nil {
		return nil, err
	}
	if !(p.Budget >= 0) || !(p.CorrelatedShare >= 0 && p.CorrelatedShare <= 1) {
		return nil, fmt.Errorf("budget %v, correlated share %v: want a budget of at least 0 and a share of 0 … 1: %w", p.Budget, p.CorrelatedShare, ErrGraph)
	}
	sequence, err := t.order()
	if err != nil {
		return nil, err
	}
	n := len(t.Tasks)
	v := &valuer{
		topology: t, problem: p, sequence: sequence, weight: t.sinkWeights(),
		groups: make([][][]link, n), loss: make([]float64, n), flow: make([]float64, n),
	}
	for i := range n {
		v.groups[i] = v.inputs(i)
	}
	all := make([]bool, n)
	for i := range all {
		all[i] = true
	}
	for i, task := range t.Tasks {
		all[i] = false
		v.loss[i] = task.RiskSeconds() * max(0, 1-v.fidelity(all))
		v.total += v.loss[i]
		all[i] = true
	}
	return v, nil
}

// inputs groups the input of a join by upstream operator, and puts all input
// of other tasks into one group.
func (v *valuer) inputs(task int) [][]link {
	if len(v.in[task]) == 0 {
		return nil
	}
	if !v.Tasks[task].Join {
		return [][]link{v.in[task]}
	}
	var groups [][]link
	place := map[string]int{}
	for _, l := range v.in[task] {
		name := v.Tasks[l.task].Operator
		at, known := place[name]
		if !known || name == "" {
			at = len(groups)
			groups = append(groups, nil)
			place[name] = at
		}
		groups[at] = append(groups[at], l)
	}
	return groups
}

// fidelity follows the share of intact records from sources to sinks when the
// tasks that are not alive produce nothing. A union passes on the mean of its
// inputs by rate, a join the product over its upstream operators.
//
// Source: output fidelity under correlated failures as in Su and Zhou,
// Tolerating Correlated Failures in Massively Parallel Stream Processing
// Engines, ICDE 2016, with rates instead of information loss by operator.
func (v *valuer) fidelity(alive []bool) float64 {
	out := 0.0
	for _, t := range v.sequence {
		if !alive[t] {
			v.flow[t] = 0
			continue
		}
		share := 1.0
		for _, group := range v.groups[t] {
			intact, all, plain := 0.0, 0.0, 0.0
			for _, l := range group {
				intact += l.rate * v.flow[l.task]
				all += l.rate
				plain += v.flow[l.task]
			}
			if all > 0 {
				share *= intact / all
			} else {
				share *= plain / float64(len(group))
			}
		}
		v.flow[t] = share
		out += v.weight[t] * share
	}
	return out
}

func (v *valuer) worth(protected []bool) Worth {
	w := Worth{Fidelity: v.fidelity(protected)}
	for t, p := range protected {
		if p {
			w.Cost += v.Tasks[t].Cost
		} else {
			w.LossSeconds += v.loss[t]
		}
	}
	avoided := 0.0
	if v.total > 0 {
		avoided = 1 - w.LossSeconds/v.total
	}
	w.Value = v.problem.CorrelatedShare*w.Fidelity + (1-v.problem.CorrelatedShare)*avoided
	return w
}

// affords allows for the rounding of summed costs.
func (v *valuer) affords(cost float64) bool {
	return cost <= v.problem.Budget*(1+1e-12) || math.IsInf(v.problem.Budget, 1)
}

// better compares worths: more value, then less cost. Differences in the last
// digits are ties.
func (w Worth) better(than Worth) bool {
	const rounding = 1e-12
	switch {
	case w.Value > than.Value+rounding:
		return true
	case w.Value < than.Value-rounding:
		return false
	}
	return w.Cost < than.Cost-rounding*(1+than.Cost)
}
