package planner

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// small draws an instance that can be enumerated. Some of them have oversize
// groups, fixed groups, closed targets, groups without load or state, and more
// moves than the table may hold.
func small(rng *rand.Rand, tasks, groups int) Input {
	in := Input{
		Tasks: tasks, Load: make([]float64, groups), StateBytes: make([]int64, groups),
		Route: make([]int32, groups), Theta: 0.4 * rng.Float64(),
	}
	exponent := 1.2 * rng.Float64()
	for rank, g := range rng.Perm(groups) {
		in.Load[g] = math.Pow(float64(rank+1), -exponent) * (0.5 + rng.Float64())
		in.StateBytes[g] = int64(rng.IntN(1000))
		in.Route[g] = int32(rng.IntN(tasks))
		if rng.IntN(12) == 0 {
			in.Load[g] = 0
		}
	}
	if rng.IntN(3) == 0 {
		in.Fixed = make([]bool, groups)
		for g := range in.Fixed {
			in.Fixed[g] = rng.IntN(4) == 0
		}
	}
	if rng.IntN(3) == 0 {
		in.Targets = make([]bool, tasks)
		for d := range in.Targets {
			in.Targets[d] = rng.IntN(3) > 0
		}
	}
	return in
}

// enumerate tries every route and returns the fewest bytes that keep the rule.
func enumerate(t *testing.T, in Input) (int64, bool) {
	p, err := newProblem(in)
	if err != nil {
		t.Fatal(err)
	}
	route := slices.Clone(in.Route)
	best := int64(math.MaxInt64)
	var try func(g int)
	try = func(g int) {
		if g == len(route) {
			if p.keepsRule(route) {
				best = min(best, p.movedBytes(route))
			}
			return
		}
		for d := range in.Tasks {
			if p.allowed(int32(g), d) {
				route[g] = int32(d)
				try(g + 1)
			}
		}
		route[g] = in.Route[g]
	}
	try(0)
	return best, best < math.MaxInt64
}

func TestExactAndBoundAgainstEnumeration(t *testing.T) {
	solved := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 11))
		in := small(rng, 2+rng.IntN(2), 4+rng.IntN(5))
		want, ok := enumerate(t, in)
		exact := mustPlan(t, "exact", in)
		checkPlan(t, in, exact, seed)
		if exact.Proven != ok {
			t.Errorf("seed %d: exact proven %v, enumeration finds a plan %v", seed, exact.Proven, ok)
			continue
		}
		greedy := mustPlan(t, "greedy", in)
		checkPlan(t, in, greedy, seed)
		if !ok {
			continue
		}
		solved++
		if exact.MovedBytes != want {
			t.Errorf("seed %d: exact moves %d bytes, enumeration %d", seed, exact.MovedBytes, want)
		}
		if greedy.LowerBoundBytes > want {
			t.Errorf("seed %d: bound %d is above the optimum %d", seed, greedy.LowerBoundBytes, want)
		}
	}
	if solved < 200 {
		t.Errorf("only %d of 400 instances have a plan: the generator tests too little", solved)
	}
}

func TestGreedyAgainstExact(t *testing.T) {
	gap, n, planned := 0.0, 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 12))
		in := small(rng, 4, 24)
		exact, greedy := mustPlan(t, "exact", in), mustPlan(t, "greedy", in)
		if !exact.Proven || exact.MovedBytes == 0 {
			continue
		}
		n++
		if greedy.LowerBoundBytes > exact.MovedBytes {
			t.Errorf("seed %d: bound %d is above the optimum %d", seed, greedy.LowerBoundBytes, exact.MovedBytes)
		}
		if greedy.GapKnown {
			planned++
			gap += float64(greedy.MovedBytes)/float64(exact.MovedBytes) - 1
		}
	}
	t.Logf("%d optima, %d planned, mean gap %.3f %%", n, planned, 100*gap/float64(planned))
	if n < 50 || planned < n*95/100 || gap/float64(planned) > 0.02 {
		t.Errorf("%d optima known, %d planned, mean gap %.2f %%: want at least 50, 95 %% of them, 2 %%", n, planned, 100*gap/float64(planned))
	}
}

func TestMinCoverAgainstEnumeration(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 13))
		n := 1 + rng.IntN(10)
		p := &problem{load: make([]float64, n), bytes: make([]int64, n)}
		var groups []int32
		total := 0.0
		for g := range n {
			p.load[g], p.bytes[g] = rng.Float64(), int64(rng.IntN(50))
			total += p.load[g]
			groups = append(groups, int32(g))
		}
		need := rng.Float64() * total
		want := int64(math.MaxInt64)
		for set := range 1 << n {
			load, bytes := 0.0, int64(0)
			for g := range n {
				if set>>g&1 == 1 {
					load += p.load[g]
					bytes += p.bytes[g]
				}
			}
			if load >= need {
				want = min(want, bytes)
			}
		}
		got := p.minCover(groups, need, func(g int32) int64 { return p.bytes[g] }, 1<<20)
		if got.bytes != want || got.bound != want {
			t.Fatalf("seed %d: cover of %d bytes, bound %d, enumeration %d", seed, got.bytes, got.bound, want)
		}
		if limited := p.minCover(groups, need, func(g int32) int64 { return p.bytes[g] }, 2); limited.bound > want || limited.bytes < want {
			t.Fatalf("seed %d: with a limit, %d ≤ %d ≤ %d does not hold", seed, limited.bound, want, limited.bytes)
		}
	}
}

func TestAssignAgainstEnumeration(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 14))
		rows := 1 + rng.IntN(4)
		columns := rows + rng.IntN(3)
		cost := make([][]float64, rows)
		for i := range cost {
			for range columns {
				c := float64(rng.IntN(40) - 10)
				if rng.IntN(4) == 0 {
					c = math.Inf(1)
				}
				cost[i] = append(cost[i], c)
			}
		}
		want := math.Inf(1)
		used := make([]bool, columns)
		var try func(i int, sum float64)
		try = func(i int, sum float64) {
			if i == rows {
				want = min(want, sum)
				return
			}
			for j := range columns {
				if !used[j] {
					used[j] = true
					try(i+1, sum+cost[i][j])
					used[j] = false
				}
			}
		}
		try(0, 0)
		column, total := assign(cost)
		sum, seen := 0.0, map[int]bool{}
		for i, j := range column {
			sum += cost[i][j]
			if seen[j] {
				t.Fatalf("seed %d: column %d given twice", seed, j)
			}
			seen[j] = true
		}
		if total != want || sum != total {
			t.Fatalf("seed %d: assignment of cost %v (stated %v), enumeration %v", seed, sum, total, want)
		}
	}
}

// What holds of every planner: a true statement of its plan, the same plan
// twice, and an input left as it was.
func TestEveryPlannerIsTruthfulAndDeterministic(t *testing.T) {
	for seed := uint64(1); seed <= 25; seed++ {
		in := instance(seed)
		if seed%5 == 0 {
			in = small(rand.New(rand.NewPCG(seed, 15)), 3, 12)
		}
		for _, p := range List() {
			loads, route := slices.Clone(in.Load), slices.Clone(in.Route)
			plan, err := p.Plan(in)
			if errors.Is(err, ErrTooLarge) && p.Name == "exact" {
				continue
			}
			if err != nil {
				t.Fatalf("%s, seed %d: %v", p.Name, seed, err)
			}
			checkPlan(t, in, plan, seed)
			again, _ := p.Plan(in)
			if !slices.Equal(plan.Moves, again.Moves) {
				t.Errorf("%s, seed %d: two runs differ", p.Name, seed)
			}
			if !slices.Equal(loads, in.Load) || !slices.Equal(route, in.Route) {
				t.Fatalf("%s, seed %d: the input was changed", p.Name, seed)
			}
		}
	}
}

// The ranking the field reports: all balance, the default moves least, a full
// re-balance by far the most.
func TestPlannersBalanceAndRank(t *testing.T) {
	bytes := map[string]int64{}
	n := 0
	for seed := uint64(1); seed <= 60; seed++ {
		in := instance(seed)
		if p, _ := newProblem(in); p.maxLoad(p.route) <= p.cap {
			continue
		}
		greedy := mustPlan(t, "greedy", in)
		if len(greedy.Oversize) > 0 {
			continue
		}
		n++
		for _, name := range []string{"greedy", "mixed", "minmig", "rebalance", "readj"} {
			plan := mustPlan(t, name, in)
			if !plan.Balanced && name != "readj" {
				t.Errorf("%s, seed %d: %s", name, seed, plan.Verdict())
			}
			if plan.Balanced && plan.MovedBytes*1001/1000 < greedy.MovedBytes {
				t.Errorf("seed %d: %s moves %d bytes, greedy %d", seed, name, plan.MovedBytes, greedy.MovedBytes)
			}
			bytes[name] += plan.MovedBytes
		}
	}
	t.Logf("%d instances, bytes moved: %v", n, bytes)
	if n < 10 || bytes["minmig"] < bytes["greedy"] || bytes["rebalance"] < 3*bytes["minmig"] {
		t.Errorf("over %d instances: %v", n, bytes)
	}
}

func TestScalingLoadsChangesNothing(t *testing.T) {
	for seed := uint64(1); seed <= 15; seed++ {
		in := instance(seed)
		for _, p := range List() {
			if p.Name == "exact" {
				continue
			}
			plan := mustPlan(t, p.Name, in)
			for _, factor := range []float64{0x1p-30, 0.001, 4, 1e9} {
				scaled := in
				scaled.Load = slices.Clone(in.Load)
				for g := range scaled.Load {
					scaled.Load[g] *= factor
				}
				if got := mustPlan(t, p.Name, scaled); !slices.Equal(got.Route, plan.Route) {
					t.Errorf("%s, seed %d: loads times %v give another plan (%d bytes, not %d)", p.Name, seed, factor, got.MovedBytes, plan.MovedBytes)
				}
			}
		}
	}
}

func TestBalancedInputMovesNothing(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		in := instance(seed)
		balanced := mustPlan(t, "greedy", in)
		if !balanced.Balanced {
			continue
		}
		in.Route = balanced.Route
		for _, p := range List() {
			if p.Name == "exact" || p.Name == "hash" {
				continue
			}
			if plan := mustPlan(t, p.Name, in); len(plan.Moves) != 0 || !plan.Balanced || !plan.GapKnown || plan.LowerBoundBytes != 0 {
				t.Errorf("%s, seed %d: %d moves of a balanced route, %s", p.Name, seed, len(plan.Moves), plan.Verdict())
			}
		}
	}
	idle := Input{Tasks: 3, Load: make([]float64, 6), StateBytes: []int64{1, 2, 3, 4, 5, 6}, Route: make([]int32, 6)}
	for _, p := range List() {
		if p.Name == "hash" {
			continue
		}
		if plan := mustPlan(t, p.Name, idle); len(plan.Moves) != 0 || !plan.Balanced || plan.Theta != 0 {
			t.Errorf("%s without load: %+v", p.Name, plan)
		}
	}
}

// Tasks have no meaning but their number, so renaming them renames the plan.
func TestRelabellingTasks(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		in := instance(seed)
		plan := mustPlan(t, "greedy", in)
		perm := rand.New(rand.NewPCG(seed, 16)).Perm(in.Tasks)
		renamed := in
		renamed.Route = make([]int32, len(in.Route))
		for g, d := range in.Route {
			renamed.Route[g] = int32(perm[d])
		}
		got := mustPlan(t, "greedy", renamed)
		if math.Abs(float64(got.MovedBytes-plan.MovedBytes)) > 1e-3*float64(plan.MovedBytes) || got.Balanced != plan.Balanced ||
			math.Abs(float64(got.LowerBoundBytes-plan.LowerBoundBytes)) > 1e-3*float64(plan.LowerBoundBytes) {
			t.Errorf("seed %d: %d bytes (bound %d) become %d (%d) by renaming tasks", seed, plan.MovedBytes, plan.LowerBoundBytes, got.MovedBytes, got.LowerBoundBytes)
		}
	}
}

// Applying a plan leaves nothing to do, and undoing it restores the route.
func TestPlanIsIdempotent(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		in := instance(seed)
		plan := mustPlan(t, "greedy", in)
		undo := slices.Clone(plan.Route)
		for _, m := range plan.Moves {
			undo[m.Group] = m.From
		}
		if !slices.Equal(undo, in.Route) {
			t.Fatalf("seed %d: moves do not lead back", seed)
		}
		in.Route = plan.Route
		if again := mustPlan(t, "greedy", in); again.MovedBytes != 0 {
			t.Errorf("seed %d: a second plan moves %d bytes more", seed, again.MovedBytes)
		}
	}
}

func TestOversizeGroup(t *testing.T) {
	// Group 0 carries half of the load of 4 tasks: twice the mean alone.
	in := Input{
		Tasks: 4, Load: []float64{8, 1, 1, 1, 1, 1, 1, 1, 1}, StateBytes: []int64{900, 10, 10, 10, 10, 10, 10, 10, 10},
		Route: []int32{0, 0, 0, 1, 1, 2, 2, 3, 3}, Theta: 0.2,
	}
	for _, name := range []string{"greedy", "exact"} {
		plan := mustPlan(t, name, in)
		if plan.Balanced || !slices.Equal(plan.Oversize, []int32{0}) || math.Abs(plan.ReachableTheta-1) > 1e-9 || math.Abs(plan.Theta-1) > 1e-9 {
			t.Errorf("%s: %+v, want group 0 oversize and θ 1 reached", name, plan)
		}
		if plan.MovedBytes != 20 || plan.LowerBoundBytes != 20 || plan.Gap != 0 || !plan.GapKnown {
			t.Errorf("%s: %d bytes, bound %d, want the two light groups moved away for 20", name, plan.MovedBytes, plan.LowerBoundBytes)
		}
		if v := plan.Verdict(); !strings.Contains(v, "infeasible") || !strings.Contains(v, "reachable θ = 1,") {
			t.Errorf("%s: verdict %q", name, v)
		}
	}
	// With light groups of much state, it is the oversize group that moves.
	in.StateBytes = []int64{5, 900, 900, 900, 900, 10, 10, 900, 900}
	if plan := mustPlan(t, "greedy", in); plan.MovedBytes != 25 || plan.Route[0] != 2 {
		t.Errorf("moves %v for %d bytes, want groups 5 and 6 out of task 2 and group 0 in for 25", plan.Moves, plan.MovedBytes)
	}
	// More equal groups than tasks leave two of them together.
	in = Input{Tasks: 3, Load: []float64{1, 1, 1, 1}, StateBytes: []int64{1, 1, 1, 1}, Route: []int32{0, 0, 0, 0}, Theta: 0.1}
	if plan := mustPlan(t, "greedy", in); math.Abs(plan.ReachableTheta-0.5) > 1e-9 || math.Abs(plan.Theta-0.5) > 1e-6 {
		t.Errorf("four equal groups on three tasks: θ %v, reachable %v, want 0.5", plan.Theta, plan.ReachableTheta)
	}
}

func TestMixedKeepsTableLimit(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		in := instance(seed)
		// Adjust twice, so that entries of the table have become useless.
		in.Route = mustPlan(t, "minmig", in).Route
		rng := rand.New(rand.NewPCG(seed, 17))
		rng.Shuffle(len(in.Load), func(a, b int) { in.Load[a], in.Load[b] = in.Load[b], in.Load[a] })
		free := mustPlan(t, "minmig", in)
		in.TableLimit = max(1, free.TableSize/2)
		limited := mustPlan(t, "mixed", in)
		if len(free.Moves) == 0 {
			continue // balanced as it is, so the table is left alone
		}
		fresh := in
		fresh.Route = HashRoute(len(in.Load), in.Tasks)
		least := mustPlan(t, "minmig", fresh).TableSize
		if limited.TableSize > max(in.TableLimit, least) {
			t.Errorf("seed %d: table of %d entries, limit %d, %d when all go back first", seed, limited.TableSize, in.TableLimit, least)
		}
	}
}

func TestHashRoutePublished(t *testing.T) {
	for _, c := range []struct {
		groups, tasks int
		owners        map[int]int // groups owned → tasks that own as many
	}{
		{256, 100, map[int]int{3: 56, 2: 44}},
		{256, 170, map[int]int{2: 86, 1: 84}},
		{128, 129, map[int]int{1: 128, 0: 1}},
		{128, 200, map[int]int{1: 128, 0: 72}},
	} {
		count := make([]int, c.tasks)
		for _, d := range HashRoute(c.groups, c.tasks) {
			count[d]++
		}
		got := map[int]int{}
		for _, n := range count {
			got[n]++
		}
		for n, tasks := range c.owners {
			if got[n] != tasks || len(got) != len(c.owners) {
				t.Errorf("%d groups on %d tasks: %v, want %v", c.groups, c.tasks, got, c.owners)
			}
		}
	}
	if d := HashRoute(720, 20)[193]; d != 5 {
		t.Errorf("group 193 of 720 on 20 tasks belongs to %d, want 5", d)
	}
	// 3 groups against a mean of 2.56: skew without any skewed key.
	if theta := PlacementTheta(HashRoute(256, 100), 100); math.Abs(theta-(3/2.56-1)) > 1e-12 {
		t.Errorf("placement θ %v, want %v", theta, 3/2.56-1)
	}
}

func TestInputRefused(t *testing.T) {
	good := func() Input {
		return Input{Tasks: 2, Load: []float64{1, 2, 3}, StateBytes: []int64{1, 1, 1}, Route: []int32{0, 1, 1}, Theta: 0.1}
	}
	for name, c := range map[string]struct {
		spoil func(*Input)
		says  string
	}{
		"one task":         {func(in *Input) { in.Tasks = 1 }, "at least 2"},
		"too many tasks":   {func(in *Input) { in.Tasks = 4 }, "at least one group a task"},
		"negative theta":   {func(in *Input) { in.Theta = -0.1 }, "theta"},
		"NaN theta":        {func(in *Input) { in.Theta = math.NaN() }, "theta"},
		"negative load":    {func(in *Input) { in.Load[1] = -1 }, "load of group 1"},
		"NaN load":         {func(in *Input) { in.Load[2] = math.NaN() }, "load of group 2"},
		"infinite load":    {func(in *Input) { in.Load[0] = math.Inf(1) }, "load of group 0"},
		"negative state":   {func(in *Input) { in.StateBytes[0] = -5 }, "state of group 0"},
		"huge state":       {func(in *Input) { in.StateBytes[0], in.StateBytes[1] = math.MaxInt64, 1 }, "2^63"},
		"foreign route":    {func(in *Input) { in.Route[0] = 2 }, "route of group 0"},
		"short route":      {func(in *Input) { in.Route = in.Route[:2] }, "2 route entries"},
		"foreign default":  {func(in *Input) { in.Default = []int32{0, 0, -1} }, "default owner of group 2"},
		"short targets":    {func(in *Input) { in.Targets = []bool{true} }, "1 target flags"},
		"negative table":   {func(in *Input) { in.TableLimit = -1 }, "table limit"},
		"short fixed list": {func(in *Input) { in.Fixed = []bool{true} }, "1 fixed flags"},
	} {
		for _, p := range List() {
			in := good()
			c.spoil(&in)
			if _, err := p.Plan(in); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v, want ErrInput that says %q", p.Name, name, err, c.says)
			}
		}
	}
	if _, err := ByName("simplex"); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "greedy mixed") {
		t.Errorf("unknown planner: %v", err)
	}
	large := instance(1)
	if _, err := planExact(large); !errors.Is(err, ErrTooLarge) {
		t.Errorf("exact planner on %d groups: %v", len(large.Load), err)
	}
}

func BenchmarkGreedy1024(b *testing.B) {
	var in Input
	for seed := uint64(1); len(in.Load) != 1024; seed++ {
		in = instance(seed)
	}
	for b.Loop() {
		mustPlan(b, "greedy", in)
	}
}
