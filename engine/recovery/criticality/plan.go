package criticality

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// ExhaustiveTasks is the largest job that the planner "exhaustive" takes.
const ExhaustiveTasks = 20

// ErrTooLarge marks a job that the exhaustive planner refuses.
var ErrTooLarge = errors.New("too many tasks for the exhaustive planner")

// Selection is a planner's choice.
type Selection struct {
	Planner string
	Tasks   []int // protected, in ascending order
	Worth   Worth
	// Regret is the share of the best value that the choice gives away, 0 … 1.
	// It is unknown outside Compare.
	Regret      float64
	RegretKnown bool
}

// Planner chooses tasks under a budget.
type Planner struct {
	Name string
	// Plan errors with ErrGraph, ErrCycle or ErrTooLarge.
	Plan func(Problem) (Selection, error)
}

// Planners lists all planners; the first is the default.
func Planners() []Planner {
	list := []Planner{
		{"trees", planWith("trees", trees)},
		{"marginal", planWith("marginal", marginal)},
		{"random", planWith("random", random)},
	}
	for _, m := range Measures() {
		switch m.Name {
		case "pagerank", "degree", "traffic", "betweenness":
			list = append(list, Planner{m.Name, planWith(m.Name, ranked(m))})
		}
	}
	return append(list, Planner{"exhaustive", planWith("exhaustive", exhaustive)})
}

// Compare runs all planners. Regret is against the exhaustive optimum where it
// exists. For larger jobs there is no such row, bestIsOptimal is false, and
// regret is against the best of the others. Where no set is worth anything, no
// choice is regretted. Errors are those of the planners but ErrTooLarge.
func Compare(p Problem) (rows []Selection, bestIsOptimal bool, err error) {
	best := 0.0
	for _, planner := range Planners() {
		s, err := planner.Plan(p)
		if errors.Is(err, ErrTooLarge) {
			continue
		}
		if err != nil {
			return nil, false, fmt.Errorf("planner %s: %w", planner.Name, err)
		}
		bestIsOptimal = bestIsOptimal || planner.Name == "exhaustive"
		best = max(best, s.Worth.Value)
		rows = append(rows, s)
	}
	for i := range rows {
		rows[i].RegretKnown = true
		if best > 0 {
			rows[i].Regret = max(0, 1-rows[i].Worth.Value/best)
		}
	}
	return rows, bestIsOptimal, nil
}

func planWith(name string, choose func(*valuer) ([]bool, error)) func(Problem) (Selection, error) {
	return func(p Problem) (Selection, error) {
		v, err := newValuer(p)
		if err != nil {
			return Selection{}, err
		}
		protected, err := choose(v)
		if err != nil {
			return Selection{}, err
		}
		s := Selection{Planner: name, Worth: v.worth(protected)}
		for t, yes := range protected {
			if yes {
				s.Tasks = append(s.Tasks, t)
			}
		}
		return s, nil
	}
}

// take protects tasks in the given order as far as each fits the budget.
func (v *valuer) take(order []int) []bool {
	protected := make([]bool, len(v.Tasks))
	spent := 0.0
	for _, t := range order {
		if v.affords(spent + v.Tasks[t].Cost) {
			protected[t] = true
			spent += v.Tasks[t].Cost
		}
	}
	return protected
}

func ranked(m Measure) func(*valuer) ([]bool, error) {
	return func(v *valuer) ([]bool, error) {
		score, err := m.Score(v.Graph)
		if err != nil {
			return nil, err
		}
		return v.take(Rank(score)), nil
	}
}

func random(v *valuer) ([]bool, error) {
	return v.take(rand.New(rand.NewPCG(v.problem.Seed, 0)).Perm(len(v.Tasks))), nil
}

// marginal adds the task with the greatest gain in value for its cost, until
// none fits. It cannot see that several tasks may gain together.
func marginal(v *valuer) ([]bool, error) {
	protected := make([]bool, len(v.Tasks))
	v.fill(protected)
	return protected, nil
}

// fill adds single tasks by gain for cost, also those that gain nothing.
func (v *valuer) fill(protected []bool) {
	for {
		now := v.worth(protected)
		var candidates [][]int
		for t, yes := range protected {
			if !yes {
				candidates = append(candidates, []int{t})
			}
		}
		best, _ := v.densest(protected, now, candidates)
		if best == nil {
			return
		}
		for _, t := range best {
			protected[t] = true
		}
	}
}

// densest returns the affordable candidate set with the greatest gain for its
// cost, the first among equals, or nil.
func (v *valuer) densest(protected []bool, now Worth, candidates [][]int) (best []int, gain float64) {
	bestDensity := -1.0
	for _, set := range candidates {
		cost := 0.0
		for _, t := range set {
			cost += v.Tasks[t].Cost
		}
		if !v.affords(now.Cost + cost) {
			continue
		}
		for _, t := range set {
			protected[t] = true
		}
		g := max(0, v.worth(protected).Value-now.Value)
		for _, t := range set {
			protected[t] = false
		}
		// A free set counts as all but free, so that gain still decides.
		if density := g / (cost + 1e-9); best == nil || density > bestDensity*(1+1e-9)+1e-15 {
			best, bestDensity, gain = set, density, g
		}
	}
	return best, gain
}

// exhaustive tries all sets.
func exhaustive(v *valuer) ([]bool, error) {
	n := len(v.Tasks)
	if n > ExhaustiveTasks {
		return nil, fmt.Errorf("%d tasks, want at most %d: %w", n, ExhaustiveTasks, ErrTooLarge)
	}
	// More never protects less, so only sets that leave no room are looked at.
	cheapest := func(set uint32) (cost, rest float64) {
		rest = -1
		for t, task := range v.Tasks {
			if set>>t&1 == 1 {
				cost += task.Cost
			} else if rest < 0 || task.Cost < rest {
				rest = task.Cost
			}
		}
		return cost, rest
	}
	protected, best := make([]bool, n), make([]bool, n)
	var bestWorth Worth
	first := true
	for set := range uint32(1) << n {
		cost, rest := cheapest(set)
		if !v.affords(cost) || rest >= 0 && v.affords(cost+rest) {
			continue
		}
		clear(protected)
		for s := set; s != 0; s &= s - 1 {
			protected[bits.TrailingZeros32(s)] = true
		}
		if w := v.worth(protected); first || w.better(bestWorth) {
			first, bestWorth = false, w
			best = slices.Clone(protected)
		}
	}
	return best, nil
}
