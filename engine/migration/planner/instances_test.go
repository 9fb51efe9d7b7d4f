package planner

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	seedFlag      = flag.Uint64("seed", 0, "plan only the random instance with this seed")
	instancesFlag = flag.Int("instances", 1000, "number of random instances to plan")
)

// instance draws a skewed problem: 4–32 tasks, 128–4,096 groups, Zipf 0.5–1.5
// loads in random order, state sizes either independent of the load or growing
// with it, θ 0.05–0.3, and a route that is the default or has been adjusted.
func instance(seed uint64) Input {
	rng := rand.New(rand.NewPCG(seed, 0x7765697))
	tasks := 4 + rng.IntN(29)
	groups := 128 << rng.IntN(6)
	exponent := 0.5 + rng.Float64()
	in := Input{
		Tasks: tasks, Load: make([]float64, groups), StateBytes: make([]int64, groups),
		Route: HashRoute(groups, tasks), Theta: 0.05 + 0.25*rng.Float64(),
	}
	correlated, shuffled := rng.IntN(2) == 0, rng.IntN(2) == 0
	for rank, g := range rng.Perm(groups) {
		in.Load[g] = 1e6 * math.Pow(float64(rank+1), -exponent)
		if correlated {
			in.StateBytes[g] = int64(in.Load[g] * (50 + 100*rng.Float64()))
		} else {
			in.StateBytes[g] = int64(1e4 * math.Exp(2*rng.NormFloat64()))
		}
		if shuffled {
			in.Route[g] = int32(rng.IntN(tasks))
		}
	}
	return in
}

func mustPlan(t testing.TB, planner string, in Input) Plan {
	t.Helper()
	p, err := ByName(planner)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// The default planner on random instances: the mean gap to the bound, and the
// time at 1,024 groups.
func TestGreedyGapOnRandomInstances(t *testing.T) {
	var gaps, feasibleGaps, worst float64
	var known, infeasible, unbalanced, timed int
	var slowest, spent time.Duration
	worstSeed := uint64(0)
	count := *instancesFlag
	if testing.Short() {
		count = min(count, 100)
	}
	for i := range count {
		seed := uint64(i + 1)
		if *seedFlag != 0 {
			seed = *seedFlag
		}
		in := instance(seed)
		start := time.Now()
		plan := mustPlan(t, "greedy", in)
		took := time.Since(start)
		if len(in.Load) == 1024 {
			timed++
			spent += took
			slowest = max(slowest, took)
		}
		checkPlan(t, in, plan, seed)
		switch {
		case len(plan.Oversize) > 0:
			infeasible++
		case !plan.Balanced:
			unbalanced++
			t.Errorf("not balanced: %s; go test -run TestGreedyGap -seed=%d", plan.Verdict(), seed)
		}
		if plan.GapKnown {
			known++
			gaps += plan.Gap
			if len(plan.Oversize) == 0 {
				feasibleGaps += plan.Gap
			}
			if plan.Gap > worst {
				worst, worstSeed = plan.Gap, seed
			}
		} else {
			t.Errorf("no gap: %s; go test -run TestGreedyGap -seed=%d", plan.Verdict(), seed)
		}
		if *seedFlag != 0 {
			t.Logf("seed %d: %d tasks, %d groups, θ %.3f, gap %.2f%%, %d moves, %v, %s", seed, in.Tasks, len(in.Load), in.Theta, 100*plan.Gap, len(plan.Moves), took, plan.Verdict())
			return
		}
	}
	mean, feasible := gaps/float64(known), feasibleGaps/float64(known-infeasible)
	t.Logf("%d instances, %d with oversize groups, %d unbalanced: mean gap %.3f %%, of the feasible alone %.3f %%, worst %.2f %% (seed %d); at 1,024 groups mean %v, slowest %v",
		count, infeasible, unbalanced, 100*mean, 100*feasible, 100*worst, worstSeed, spent/time.Duration(max(timed, 1)), slowest)
	if each := spent / time.Duration(max(timed, 1)); each > 20*time.Millisecond {
		t.Errorf("planning 1,024 groups takes %v on average, want at most 20 ms", each)
	}
	if mean > 0.02 || feasible > 0.02 {
		t.Errorf("mean gap %.3f %%, of the feasible alone %.3f %%, want at most 2 %%", 100*mean, 100*feasible)
	}
}

// checkPlan tests what has to hold of any plan whatever its quality.
func checkPlan(t testing.TB, in Input, plan Plan, seed uint64) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: "+format+"; go test -run %s -seed=%d", append(append([]any{plan.Planner}, args...), t.Name(), seed)...)
	}
	loads := make([]float64, in.Tasks)
	total, bytes, moves := 0.0, int64(0), 0
	for g, d := range plan.Route {
		if d < 0 || int(d) >= in.Tasks {
			fail("group %d is routed to %d", g, d)
			return
		}
		loads[d] += in.Load[g]
		total += in.Load[g]
		if d == in.Route[g] {
			continue
		}
		if moves >= len(plan.Moves) || plan.Moves[moves] != (Move{int32(g), in.Route[g], d}) {
			fail("move of group %d from %d to %d is not listed", g, in.Route[g], d)
			return
		}
		if in.Fixed != nil && in.Fixed[g] || in.Targets != nil && !in.Targets[d] {
			fail("group %d must not move to %d", g, d)
		}
		bytes += in.StateBytes[g]
		moves++
	}
	if moves != len(plan.Moves) || bytes != plan.MovedBytes {
		fail("%d moves of %d bytes, but %d of %d are stated", moves, bytes, len(plan.Moves), plan.MovedBytes)
	}
	most := 0.0
	for _, l := range loads {
		most = max(most, l)
	}
	if theta := most/(total/float64(in.Tasks)) - 1; math.Abs(theta-plan.Theta) > 1e-9 {
		fail("θ is %v, stated %v", theta, plan.Theta)
	}
	if plan.Theta < plan.ReachableTheta-1e-9 {
		fail("θ %v is below the proven minimum %v", plan.Theta, plan.ReachableTheta)
	}
	if plan.GapKnown && plan.MovedBytes < plan.LowerBoundBytes {
		fail("%d bytes moved are below the bound %d", plan.MovedBytes, plan.LowerBoundBytes)
	}
	if plan.Balanced != (plan.Theta <= in.Theta+1e-6) && math.Abs(plan.Theta-in.Theta) > 1e-6 {
		fail("balanced is %v at θ %v of %v", plan.Balanced, plan.Theta, in.Theta)
	}
}
