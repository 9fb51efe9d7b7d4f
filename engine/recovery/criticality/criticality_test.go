package criticality

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// job makes n equal tasks (cost 1, 1 % to fail, 10 s to recover) and channels
// of the given rates.
func job(n int, channels ...[3]float64) Graph {
	g := Graph{}
	for i := range n {
		g.Tasks = append(g.Tasks, Task{Name: fmt.Sprint(i), Cost: 1, FailureProbability: 0.01, Recovery: 10 * time.Second})
	}
	for _, c := range channels {
		g.Edges = append(g.Edges, Edge{int(c[0]), int(c[1]), c[2]})
	}
	return g
}

// layered draws a job of 2–4 layers, with joins, skewed rates and risks.
func layered(seed uint64, limit int) Graph {
	rng := rand.New(rand.NewPCG(seed, 31))
	g := Graph{}
	var before []int
	for layer := range 2 + rng.IntN(3) {
		var now []int
		for range 1 + rng.IntN(3) {
			if len(g.Tasks) == limit {
				break
			}
			now = append(now, len(g.Tasks))
			g.Tasks = append(g.Tasks, Task{
				Name: fmt.Sprint(len(g.Tasks)), Operator: fmt.Sprintf("%d/%d", layer, rng.IntN(2)), Join: rng.IntN(4) == 0,
				Cost: 1 + float64(rng.IntN(3)), FailureProbability: 0.1 * rng.Float64(), Recovery: time.Duration(1+rng.IntN(30)) * time.Second,
			})
		}
		for _, v := range now {
			for _, u := range before {
				if rng.IntN(3) > 0 || u == before[0] {
					g.Edges = append(g.Edges, Edge{u, v, math.Floor(1000 * math.Pow(rng.Float64(), 3))})
				}
			}
		}
		before = now
	}
	return g
}

func score(t *testing.T, measure string, g Graph) []float64 {
	t.Helper()
	for _, m := range Measures() {
		if m.Name == measure {
			s, err := m.Score(g)
			if err != nil {
				t.Fatalf("%s: %v", measure, err)
			}
			return s
		}
	}
	t.Fatalf("no measure %q", measure)
	return nil
}

func choose(t *testing.T, planner string, p Problem) Selection {
	t.Helper()
	for _, pl := range Planners() {
		if pl.Name == planner {
			s, err := pl.Plan(p)
			if err != nil {
				t.Fatalf("%s: %v", planner, err)
			}
			return s
		}
	}
	t.Fatalf("no planner %q", planner)
	return Selection{}
}

func TestMeasuresByHand(t *testing.T) {
	// 0 → 1 → {2, 3} → 4, and 4 → 5; most records take the way through 2.
	g := job(6, [3]float64{0, 1, 100}, [3]float64{1, 2, 90}, [3]float64{1, 3, 10}, [3]float64{2, 4, 90}, [3]float64{3, 4, 10}, [3]float64{4, 5, 100})
	g.Tasks[3].FailureProbability = 0.05
	for measure, want := range map[string][]float64{
		"articulation":  {0, 1, 0, 0, 1, 0},
		"dominators":    {1, 1, 0, 0, 1, 1},
		"min-cut":       {1, 1, 0, 0, 1, 1},
		"critical-path": {1, 1, 5. / 9, 1, 1, 1},
		"degree":        {1, 3, 2, 2, 3, 1},
		"traffic":       {100, 200, 180, 20, 200, 100},
		// Of 20 ordered pairs, 4 pass task 1, 4 pass 4, and half of 4 pass 2.
		"betweenness": {0, .2, .1, .1, .2, 0},
	} {
		got := score(t, measure, g)
		for v := range want {
			if math.Abs(got[v]-want[v]) > 1e-9 {
				t.Errorf("%s: %v, want %v", measure, got, want)
				break
			}
		}
	}
	rank := score(t, "pagerank", g)
	if order := Rank(rank); order[0] != 5 || order[1] != 4 || rank[2] <= rank[3]*1.5 {
		t.Errorf("pagerank %v: want the sink first, then 4, and 2 well before 3 in spite of its risk", rank)
	}
}

// Articulation, dominance and cuts against their definitions, by deletion.
func TestStructureAgainstDeletion(t *testing.T) {
	for seed := range uint64(60) {
		g := layered(seed, 10)
		top, err := newTopology(g)
		if err != nil {
			t.Fatal(err)
		}
		n := len(g.Tasks)
		art, dom, cut := score(t, "articulation", g), score(t, "dominators", g), score(t, "min-cut", g)
		weight := top.sinkWeights()
		smallest := n
		var minimal []int // sets of the smallest size that part sources from sinks
		for set := range 1 << n {
			size := 0
			for v := range n {
				size += set >> v & 1
			}
			if size > smallest || reaches(top, set) != 0 {
				continue
			}
			if size < smallest {
				smallest, minimal = size, nil
			}
			minimal = append(minimal, set)
		}
		for v := range n {
			if got, want := art[v] == 1, components(top, 1<<v) > components(top, 0)-isolated(top, v); got != want {
				t.Errorf("seed %d: task %d articulation %v, deletion says %v", seed, v, got, want)
			}
			lost := 0.0
			for _, s := range top.sinks {
				if reaches(top, 1<<v)>>s&1 == 0 {
					lost += weight[s]
				}
			}
			if math.Abs(dom[v]-lost) > 1e-12 {
				t.Errorf("seed %d: task %d dominates %v of the output, deletion loses %v", seed, v, dom[v], lost)
			}
			member := slices.ContainsFunc(minimal, func(set int) bool { return set>>v&1 == 1 })
			if (cut[v] > 0) != member || member && math.Abs(cut[v]-1/float64(smallest)) > 1e-12 {
				t.Errorf("seed %d: task %d cut score %v, member of a smallest cut (of %d) %v", seed, v, cut[v], smallest, member)
			}
		}
	}
}

// reaches is the set of sinks still fed when the tasks of a set are gone.
func reaches(t *topology, gone int) int {
	seen := 0
	var visit func(v int)
	visit = func(v int) {
		if (seen|gone)>>v&1 == 1 {
			return
		}
		seen |= 1 << v
		for _, l := range t.out[v] {
			visit(l.task)
		}
	}
	for _, s := range t.sources {
		visit(s)
	}
	fed := 0
	for _, s := range t.sinks {
		fed |= seen & (1 << s)
	}
	return fed
}

func components(t *topology, gone int) int {
	seen, n := gone, 0
	var visit func(v int)
	visit = func(v int) {
		if seen>>v&1 == 1 {
			return
		}
		seen |= 1 << v
		for _, links := range [...][]link{t.in[v], t.out[v]} {
			for _, l := range links {
				visit(l.task)
			}
		}
	}
	for v := range t.Tasks {
		if seen>>v&1 == 0 {
			n++
			visit(v)
		}
	}
	return n
}

func isolated(t *topology, v int) int {
	if len(t.in[v])+len(t.out[v]) == 0 {
		return 1
	}
	return 0
}

func TestFidelityByHand(t *testing.T) {
	// Sources 0 and 1 into 2, which goes to sinks 3 (30 records/s) and 4 (70).
	g := job(5, [3]float64{0, 2, 60}, [3]float64{1, 2, 40}, [3]float64{2, 3, 30}, [3]float64{2, 4, 70})
	for _, c := range []struct {
		join      bool
		protected []int
		want      float64
	}{
		{false, nil, 0}, {false, []int{0, 2}, 0}, {false, []int{0, 4}, 0}, {false, []int{0, 2, 4}, 0.42},
		{false, []int{0, 1, 2, 3}, 0.3}, {false, []int{0, 1, 2, 3, 4}, 1},
		{true, []int{0, 2, 4}, 0}, {true, []int{0, 1, 2, 4}, 0.7},
	} {
		g.Tasks[2].Join = c.join
		v, err := newValuer(Problem{Graph: g, CorrelatedShare: 1})
		if err != nil {
			t.Fatal(err)
		}
		protected := make([]bool, 5)
		for _, p := range c.protected {
			protected[p] = true
		}
		if w := v.worth(protected); math.Abs(w.Fidelity-c.want) > 1e-12 || w.Cost != float64(len(c.protected)) {
			t.Errorf("join %v, %v protected: %+v, want fidelity %v", c.join, c.protected, w, c.want)
		}
	}
	// Instances of one operator are alternatives even in a join.
	g.Tasks[2].Join = true
	g.Tasks[0].Operator, g.Tasks[1].Operator = "left", "left"
	v, err := newValuer(Problem{Graph: g, CorrelatedShare: 1})
	if err != nil {
		t.Fatal(err)
	}
	if w := v.worth([]bool{true, false, true, true, true}); math.Abs(w.Fidelity-0.6) > 1e-12 {
		t.Errorf("one of two instances of the only operator: fidelity %v, want 0.6", w.Fidelity)
	}
}

// Half a protected path protects nothing: the scattered choice of the ranking
// loses against a whole tree.
func TestWholeTreesBeatScatteredTasks(t *testing.T) {
	// Two chains of four; the heads of both are the riskiest.
	g := job(8, [3]float64{0, 1, 50}, [3]float64{1, 2, 50}, [3]float64{2, 3, 50}, [3]float64{4, 5, 50}, [3]float64{5, 6, 50}, [3]float64{6, 7, 50})
	for _, v := range []int{0, 1, 4, 5} {
		g.Tasks[v].FailureProbability = 0.5
	}
	p := Problem{Graph: g, Budget: 4, CorrelatedShare: 1}
	got := choose(t, "trees", p)
	if got.Worth.Fidelity != 0.5 || !slices.Equal(got.Tasks, []int{0, 1, 2, 3}) {
		t.Errorf("trees: %+v, want one whole chain", got)
	}
	if scattered := choose(t, "pagerank", p); scattered.Worth.Fidelity != 0 {
		t.Errorf("ranking: %+v, want a scattered choice of no fidelity", scattered)
	}
}

func TestTreesComeNearTheOptimum(t *testing.T) {
	sum := map[string]float64{}
	n := 0
	for seed := range uint64(120) {
		g := layered(seed, 12)
		total := 0.0
		for _, task := range g.Tasks {
			total += task.Cost
		}
		for _, share := range []float64{0, 0.5, 1} {
			p := Problem{Graph: g, Budget: math.Floor(total * 0.5), CorrelatedShare: share, Seed: seed}
			rows, optimal, err := Compare(p)
			if err != nil || !optimal {
				t.Fatal(optimal, err)
			}
			n++
			for _, r := range rows {
				if !r.RegretKnown || r.Regret < 0 || r.Regret > 1 || r.Worth.Cost > p.Budget {
					t.Errorf("seed %d, share %v: %+v", seed, share, r)
				}
				if r.Planner == "exhaustive" && r.Regret != 0 {
					t.Errorf("seed %d, share %v: %+v, but another planner is better", seed, share, r)
				}
				sum[r.Planner] += r.Regret
			}
		}
	}
	for _, p := range Planners() {
		t.Logf("%-11s mean regret %.2f %%", p.Name, 100*sum[p.Name]/float64(n))
		if p.Name != "trees" && p.Name != "exhaustive" && sum[p.Name] < sum["trees"] {
			t.Errorf("%s regrets less than trees", p.Name)
		}
	}
	if mean := sum["trees"] / float64(n); mean > 0.03 {
		t.Errorf("mean regret of trees %.2f %%, want at most 3 %%", 100*mean)
	}
}

func TestBudgets(t *testing.T) {
	for seed := range uint64(20) {
		g := layered(seed, 12)
		for _, planner := range Planners() {
			before := -1.0
			for _, budget := range []float64{0, 2, 5, 1000, math.Inf(1)} {
				s, err := planner.Plan(Problem{Graph: g, Budget: budget, CorrelatedShare: 0.5})
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case s.Worth.Cost > budget:
					t.Errorf("%s, seed %d: cost %v of budget %v", planner.Name, seed, s.Worth.Cost, budget)
				case budget == 0 && len(s.Tasks) != 0:
					t.Errorf("%s, seed %d: budget 0 protects %v", planner.Name, seed, s.Tasks)
				case budget >= 1000 && (len(s.Tasks) != len(g.Tasks) || math.Abs(s.Worth.Fidelity-1) > 1e-12 && !starved(g)):
					t.Errorf("%s, seed %d: budget for all gives %+v", planner.Name, seed, s)
				case planner.Name == "exhaustive" && s.Worth.Value < before-1e-12:
					t.Errorf("seed %d: a larger budget is worth less", seed)
				}
				before = s.Worth.Value
			}
		}
	}
}

// starved tells whether rates of zero leave some flow undefined.
func starved(g Graph) bool {
	return slices.ContainsFunc(g.Edges, func(e Edge) bool { return e.RecordsPerSecond == 0 })
}

func TestDeterministicTies(t *testing.T) {
	// A fully symmetric job: every choice is a tie.
	g := job(9)
	for u := range 3 {
		for v := 3; v < 6; v++ {
			g.Edges = append(g.Edges, Edge{u, v, 10}, Edge{v, v + 3, 30})
		}
	}
	for _, m := range Measures() {
		first := score(t, m.Name, g)
		for range 20 {
			if again := score(t, m.Name, g); !slices.Equal(first, again) {
				t.Errorf("%s: %v, then %v", m.Name, first, again)
			}
		}
		for layer := range 3 {
			if order := Rank(first); !less(order, 3*layer, 3*layer+1) || !less(order, 3*layer+1, 3*layer+2) {
				t.Errorf("%s: order %v of %v, want the lower index first", m.Name, order, first)
			}
		}
	}
	for _, p := range Planners() {
		first := choose(t, p.Name, Problem{Graph: g, Budget: 4, CorrelatedShare: 0.5, Seed: 1})
		for range 5 {
			if again := choose(t, p.Name, Problem{Graph: g, Budget: 4, CorrelatedShare: 0.5, Seed: 1}); !slices.Equal(first.Tasks, again.Tasks) {
				t.Errorf("%s: %v, then %v", p.Name, first.Tasks, again.Tasks)
			}
		}
	}
}

func less(order []int, a, b int) bool { return slices.Index(order, a) < slices.Index(order, b) }

func TestOddGraphs(t *testing.T) {
	alone := job(1)
	loop := job(2, [3]float64{0, 0, 5}, [3]float64{0, 1, 5})
	double := job(2, [3]float64{0, 1, 2}, [3]float64{0, 1, 3})
	apart := job(4, [3]float64{0, 1, 1}, [3]float64{2, 3, 1})
	for name, g := range map[string]Graph{"alone": alone, "self-loop": loop, "parallel edges": double, "two chains": apart} {
		for _, m := range Measures() {
			for v, s := range score(t, m.Name, g) {
				if math.IsNaN(s) || math.IsInf(s, 0) || s < 0 {
					t.Errorf("%s, %s: score of %d is %v", name, m.Name, v, s)
				}
			}
		}
		s := choose(t, "trees", Problem{Graph: g, Budget: 99, CorrelatedShare: 1})
		if s.Worth.Fidelity != 1 || len(s.Tasks) != len(g.Tasks) {
			t.Errorf("%s: %+v, want all protected", name, s)
		}
	}
	if got := score(t, "traffic", double); got[0] != 5 {
		t.Errorf("parallel edges: traffic %v, want 5", got)
	}
	if got := score(t, "degree", loop); got[0] != 1 {
		t.Errorf("self-loop: degree %v, want 1", got)
	}
	cycle := job(3, [3]float64{0, 1, 1}, [3]float64{1, 2, 1}, [3]float64{2, 1, 1})
	if _, err := Planners()[0].Plan(Problem{Graph: cycle}); !errors.Is(err, ErrCycle) {
		t.Errorf("cycle: %v, want ErrCycle", err)
	}
	for v, s := range score(t, "pagerank", cycle) {
		if math.IsNaN(s) || s <= 0 {
			t.Errorf("cycle: rank of %d is %v", v, s)
		}
	}
}

func TestGraphRefused(t *testing.T) {
	for name, c := range map[string]struct {
		g    Graph
		says string
	}{
		"empty":    {Graph{}, "no tasks"},
		"far edge": {job(2, [3]float64{0, 2, 1}), "edge 0 from 0 to 2"},
		"NaN rate": {job(2, [3]float64{0, 1, math.NaN()}), "NaN records per second"},
		"cost":     {Graph{Tasks: []Task{{Name: "a", Cost: -1}}}, `task 0 "a"`},
		"chance":   {Graph{Tasks: []Task{{FailureProbability: 1.5}}}, "failure probability 1.5"},
	} {
		for _, m := range Measures() {
			if _, err := m.Score(c.g); !errors.Is(err, ErrGraph) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v, want ErrGraph that says %q", name, m.Name, err, c.says)
			}
		}
	}
	for _, p := range []Problem{{Graph: job(1), Budget: -1}, {Graph: job(1), Budget: math.NaN()}, {Graph: job(1), CorrelatedShare: 2}} {
		if _, err := Planners()[0].Plan(p); !errors.Is(err, ErrGraph) {
			t.Errorf("budget %v, share %v: %v, want ErrGraph", p.Budget, p.CorrelatedShare, err)
		}
	}
	large := job(ExhaustiveTasks + 1)
	rows, optimal, err := Compare(Problem{Graph: large, Budget: 3, CorrelatedShare: 0.5})
	if err != nil || optimal || len(rows) != len(Planners())-1 {
		t.Errorf("large job: %d rows, optimal %v, %v", len(rows), optimal, err)
	}
}
