package planner

import (
	"errors"
	"fmt"
	"math"
)

// ErrInput marks an input that cannot be planned for. The message around it
// names the field and what would be right.
var ErrInput = errors.New("bad planner input")

// ErrTooLarge marks an instance that the exact planner refuses.
var ErrTooLarge = errors.New("instance too large for the exact planner")

// Input is one planning problem. The planner reads it during the call and keeps
// nothing of it. Slices are indexed by key group unless said otherwise.
type Input struct {
	Tasks      int
	Load       []float64 // any unit; only proportions count
	StateBytes []int64
	Route      []int32 // present owner, 0 … Tasks−1
	// Theta is the imbalance allowed: max load ≤ (1+θ)·mean.
	Theta float64

	// Default is the owner of a group that has no entry in the routing table;
	// nil stands for HashRoute.
	Default []int32
	// Fixed groups stay where they are; nil fixes none.
	Fixed []bool
	// Targets tells, by task, whether it may receive groups; nil allows all.
	Targets []bool
	// TableLimit is the largest routing table the planner "mixed" aims for;
	// 0 stands for a quarter of the groups. The other planners do not look at it.
	TableLimit int
}

// Move sends one group from one task to another.
type Move struct {
	Group    int32
	From, To int32
}

// Plan is the outcome of a planner. Its slices belong to the caller.
type Plan struct {
	Planner    string
	Route      []int32 // by group
	Moves      []Move  // in ascending order of group
	MovedBytes int64
	Theta      float64 // max load / mean − 1 under Route
	Balanced   bool    // Theta is within the input's θ
	TableSize  int     // groups whose owner differs from the default

	// LowerBoundBytes is a proven minimum of the bytes moved by any plan that
	// keeps the rule: each task at or below the cap, except for a task that
	// holds nothing but one oversize group.
	LowerBoundBytes int64
	// Gap is MovedBytes/LowerBoundBytes − 1. It is unknown when the plan does
	// not keep the rule or the bound is 0 and the plan moves something.
	Gap      float64
	GapKnown bool
	// Proven is set by the exact planner when no plan moves fewer bytes.
	Proven bool

	// Oversize lists the groups whose load alone exceeds the cap. While there
	// is one, θ is infeasible.
	Oversize []int32
	// ReachableTheta is a proven minimum of θ over all plans, at most the
	// input's θ unless that is infeasible.
	ReachableTheta float64
}

// Verdict says in one line whether θ was reached, and if not, why and what
// could be.
func (p Plan) Verdict() string {
	switch {
	case p.Balanced:
		return fmt.Sprintf("balanced: θ = %.4g", p.Theta)
	case len(p.Oversize) > 0:
		return fmt.Sprintf("infeasible: %d key groups, the first is %d, exceed the cap alone; reachable θ = %.4g, planned θ = %.4g",
			len(p.Oversize), p.Oversize[0], p.ReachableTheta, p.Theta)
	}
	return fmt.Sprintf("not reached: planned θ = %.4g, no plan gets below %.4g", p.Theta, p.ReachableTheta)
}

// Planner is a named planning algorithm.
type Planner struct {
	Name   string
	Source string
	// Plan errors with ErrInput or, in the exact planner, ErrTooLarge. A θ that
	// cannot be reached is no error: the plan says so.
	Plan func(Input) (Plan, error)
}

// List holds every planner; the first is the default.
func List() []Planner {
	return []Planner{
		{"greedy", "minimum knapsack covers, packed and repaired", planWith("greedy", greedy)},
		{"mixed", "Mixed, Fang et al., arXiv 1610.05121", planWith("mixed", mixed)},
		{"minmig", "MinMig, Fang et al., arXiv 1610.05121", planWith("minmig", minMig)},
		{"readj", "Readj, Gedik, VLDB Journal 23 (2014)", planWith("readj", readj)},
		{"rebalance", "longest processing time first, Graham (1969)", planWith("rebalance", rebalance)},
		{"hash", "the default placement, no routing table", planWith("hash", hashed)},
		{"exact", "branch and bound, small instances", planExact},
	}
}

// ByName finds a planner of List; the error names the known ones.
func ByName(name string) (Planner, error) {
	known := ""
	for _, p := range List() {
		if p.Name == name {
			return p, nil
		}
		known += " " + p.Name
	}
	return Planner{}, fmt.Errorf("unknown planner %q: want one of%s: %w", name, known, ErrInput)
}

// planWith wraps an algorithm that returns a route by group.
func planWith(name string, route func(*problem) []int32) func(Input) (Plan, error) {
	return func(in Input) (Plan, error) {
		p, err := newProblem(in)
		if err != nil {
			return Plan{}, err
		}
		next := p.route
		if name == "hash" || p.maxLoad(p.route) > p.cap {
			next = route(p)
		}
		return p.finish(name, next), nil
	}
}

// HashRoute deals groups to tasks in contiguous ranges, group g to
// ⌊g·tasks/groups⌋. With groups not a multiple of tasks some tasks own one more.
func HashRoute(groups, tasks int) []int32 {
	route := make([]int32, groups)
	for g := range route {
		route[g] = int32(int64(g) * int64(tasks) / int64(groups))
	}
	return route
}

// PlacementTheta is the imbalance that the dealing of groups alone causes, as
// if all groups were equally loaded: max groups of a task / mean − 1. What θ
// exceeds it by is key skew. The route's entries have to be in 0 … tasks−1.
func PlacementTheta(route []int32, tasks int) float64 {
	count := make([]int, tasks)
	most := 0
	for _, d := range route {
		count[d]++
		most = max(most, count[d])
	}
	if most == 0 {
		return 0
	}
	return float64(most*tasks)/float64(len(route)) - 1
}

func (in Input) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, ErrInput)...)
	}
	groups := len(in.Load)
	if in.Tasks < 2 {
		return bad("tasks = %d: moving needs at least 2", in.Tasks)
	}
	if groups < in.Tasks {
		return bad("%d key groups for %d tasks: want at least one group a task", groups, in.Tasks)
	}
	if !(in.Theta >= 0) || math.IsInf(in.Theta, 1) {
		return bad("theta = %v: want a finite number of at least 0", in.Theta)
	}
	if in.TableLimit < 0 {
		return bad("table limit = %d: want 0 or more", in.TableLimit)
	}
	for _, l := range []struct {
		name      string
		got, want int
		optional  bool
	}{
		{"state sizes", len(in.StateBytes), groups, false}, {"route entries", len(in.Route), groups, false},
		{"default owners", len(in.Default), groups, true}, {"fixed flags", len(in.Fixed), groups, true},
		{"target flags", len(in.Targets), in.Tasks, true},
	} {
		if l.got != l.want && !(l.optional && l.got == 0) {
			return bad("%d %s: want %d", l.got, l.name, l.want)
		}
	}
	total := 0.0
	var bytes int64
	for g := range groups {
		total += in.Load[g]
		bytes += in.StateBytes[g]
		switch {
		case !(in.Load[g] >= 0) || math.IsInf(total, 1):
			return bad("load of group %d = %v: want not negative and a finite sum", g, in.Load[g])
		case in.StateBytes[g] < 0 || bytes < 0:
			return bad("state of group %d = %d bytes: want not negative and a sum below 2^63", g, in.StateBytes[g])
		case in.Route[g] < 0 || int(in.Route[g]) >= in.Tasks:
			return bad("route of group %d = %d: want 0 … %d", g, in.Route[g], in.Tasks-1)
		case in.Default != nil && (in.Default[g] < 0 || int(in.Default[g]) >= in.Tasks):
			return bad("default owner of group %d = %d: want 0 … %d", g, in.Default[g], in.Tasks-1)
		}
	}
	return nil
}
