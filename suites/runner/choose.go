package runner

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration/planner"
	"github.com/weir-bench/weir/suites/spec"
)

// plannerTrouble says why a cell's planner cannot plan it. An operator has no more key groups with load than it has keys.
func plannerTrouble(c *spec.Cell) []string {
	m := c.Migration
	if m == nil || m.Groups != "plan" || m.Planner != "exact" {
		return nil
	}
	for _, op := range c.Job.Operators {
		if keys := int(c.Workload.Keys); op.Name == m.Operator && op.KeyGroups > planner.ExactGroups && (keys == 0 || keys > planner.ExactGroups) {
			return []string{fmt.Sprintf("migration.planner: exact plans at most %d key groups with load, and %s has %d; set its keyGroups to %d or less, or name another planner",
				planner.ExactGroups, op.Name, op.KeyGroups, planner.ExactGroups)}
		}
	}
	return nil
}

// choose decides what moves where, and notes what was decided from.
func (t *trial) choose(op int, rec *moveRecord) (moves []core.Move, err error) {
	s, m := t.cell.Migration, rec.meters
	tasks := t.job.Operators[op].Parallelism
	rec.input = planner.Input{Tasks: tasks, Load: m.load, StateBytes: m.bytes, Route: m.route, Theta: s.Theta, Targets: t.targets(op)}
	if s.Groups == "plan" {
		p, err := planner.ByName(s.Planner)
		if err != nil {
			return nil, err
		}
		plan, err := p.Plan(rec.input)
		if err != nil {
			return nil, err
		}
		for _, mv := range plan.Moves {
			moves = append(moves, core.Move{Group: uint32(mv.Group), From: int(mv.From), To: int(mv.To)})
		}
		rec.plan = &plan
		rec.verdict = fmt.Sprintf("%s; %d bytes, at least %d", plan.Verdict(), plan.MovedBytes, plan.LowerBoundBytes)
		return hottestFirst(moves, m), nil
	}
	from, to := t.endpoints(op, m)
	groups := (&core.Routes{Task: m.route}).Owned(from)
	t.order(groups, m)
	n := s.Count
	if n == 0 {
		n = int(s.Share*float64(len(groups)) + 0.5)
	}
	for _, g := range groups[:min(n, len(groups))] {
		moves = append(moves, core.Move{Group: g, From: from, To: to})
	}
	rec.verdict = fmt.Sprintf("%s groups of task %d", s.Groups, from)
	return hottestFirst(moves, m), nil
}

// hottestFirst orders moves so that the groups that load the most move first.
func hottestFirst(moves []core.Move, m meters) []core.Move {
	slices.SortStableFunc(moves, func(a, b core.Move) int { return falling(m.load[a.Group], m.load[b.Group]) })
	return moves
}

func falling(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// order sorts groups into the order in which they are chosen.
func (t *trial) order(groups []uint32, m meters) {
	switch t.cell.Migration.Groups {
	case "hottest":
		slices.SortStableFunc(groups, func(a, b uint32) int { return falling(m.load[a], m.load[b]) })
	case "coldest":
		slices.SortStableFunc(groups, func(a, b uint32) int { return falling(m.load[b], m.load[a]) })
	case "random":
		r := rand.New(rand.NewPCG(t.plan.Seed, 0x6d6f7665))
		r.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	}
}

// workerOf returns the worker, from 1, of each task of an operator.
func (t *trial) workerOf(op int) []int {
	var out []int
	for _, id := range t.graph.OpTasks[op] {
		out = append(out, t.graph.Tasks[id].Slot+1)
	}
	return out
}

// targets says which tasks may receive groups; nil: all.
func (t *trial) targets(op int) []bool {
	to := t.cell.Migration.To
	if to == 0 {
		return nil
	}
	var out []bool
	for _, w := range t.workerOf(op) {
		out = append(out, w == to)
	}
	return out
}

// endpoints returns the task that gives groups away and the one that receives them: the most and the least loaded of
// the workers that the suite names, or of the most and least loaded worker.
func (t *trial) endpoints(op int, m meters) (from, to int) {
	tasks, workers := t.job.Operators[op].Parallelism, t.workerOf(op)
	load, byWorker := byTask(m.load, m.route, tasks), make([]float64, t.job.Workers+1)
	for d, l := range load {
		byWorker[workers[d]] += l
	}
	pick := func(worker int, other int, better func(a, b float64) bool) int {
		best := -1
		for d := range tasks {
			if d == other || worker != 0 && workers[d] != worker {
				continue
			}
			if best < 0 || better(load[d], load[best]) || load[d] == load[best] && better(byWorker[workers[d]], byWorker[workers[best]]) {
				best = d
			}
		}
		return best
	}
	from = pick(t.cell.Migration.From, -1, func(a, b float64) bool { return a > b })
	from = max(from, 0)
	to = pick(t.cell.Migration.To, from, func(a, b float64) bool { return a < b })
	return from, max(to, 0)
}
