package criticality

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/graph/flow"
	"gonum.org/v1/gonum/graph/network"
	"gonum.org/v1/gonum/graph/simple"
)

// Damping is the damping factor of the PageRank measure.
const Damping = 0.85

// Measure scores each task; more is more critical.
type Measure struct {
	Name string
	Does string
	// Score returns one score a task. Errors wrap ErrGraph or ErrCycle.
	Score func(Graph) ([]float64, error)
}

// Measures lists all measures; the first is the default.
func Measures() []Measure {
	return []Measure{
		{"pagerank", "personalised PageRank of the reversed traffic from the sinks, times risk", measured(pagerankRisk)},
		{"articulation", "1 for tasks whose loss splits the job", measured(articulation)},
		{"dominators", "share of the output whose every path from a source runs through the task", measured(dominance)},
		{"min-cut", "1/size for members of a smallest set of tasks that parts sources from sinks", measured(minCut)},
		{"critical-path", "heaviest path through the task by risk, as a share of the heaviest of all", measured(criticalPath)},
		{"degree", "number of channels", measured(degree)},
		{"traffic", "records per second in and out", measured(traffic)},
		{"betweenness", "share of shortest paths through the task", measured(betweenness)},
	}
}

// Rank returns the task indices by falling score, the lower index first among
// equals.
func Rank(score []float64) []int {
	order := make([]int, len(score))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	return order
}

func measured(f func(*topology) ([]float64, error)) func(Graph) ([]float64, error) {
	return func(g Graph) ([]float64, error) {
		t, err := newTopology(g)
		if err != nil {
			return nil, err
		}
		return f(t)
	}
}

// pagerankRisk walks from the output back to what produced it, by traffic, so
// that the rank of a task is the share of output that depends on it, fading
// with distance. Sources end the walk; their rank follows the restart vector,
// that is, the sinks.
func pagerankRisk(t *topology) ([]float64, error) {
	var edges []WeightedEdge
	for v := range t.Tasks {
		for _, l := range t.in[v] {
			edges = append(edges, WeightedEdge{v, l.task, l.rate})
		}
		if t.selfRate[v] > 0 {
			edges = append(edges, WeightedEdge{v, v, t.selfRate[v]})
		}
	}
	var restart []float64
	if len(t.sinks) > 0 {
		restart = t.sinkWeights()
	}
	rank, err := PageRank(len(t.Tasks), edges, restart, Damping, SinksRestart)
	if err != nil {
		return nil, fmt.Errorf("rank of tasks: %w", err)
	}
	for v, task := range t.Tasks {
		rank[v] *= task.RiskSeconds()
	}
	return rank, nil
}

// articulation finds the articulation points of the undirected graph by
// depth-first search.
//
// Source: Hopcroft and Tarjan, CACM 16 (1973), algorithm 447.
func articulation(t *topology) ([]float64, error) {
	n := len(t.Tasks)
	score, depth, low := make([]float64, n), make([]int, n), make([]int, n)
	var visit func(v, parent, level int)
	visit = func(v, parent, level int) {
		depth[v], low[v] = level, level
		children := 0
		for _, links := range [...][]link{t.in[v], t.out[v]} {
			for _, l := range links {
				if depth[l.task] > 0 {
					if l.task != parent {
						low[v] = min(low[v], depth[l.task])
					}
					continue
				}
				children++
				visit(l.task, v, level+1)
				low[v] = min(low[v], low[l.task])
				if parent >= 0 && low[l.task] >= level {
					score[v] = 1
				}
			}
		}
		if parent < 0 && children > 1 {
			score[v] = 1
		}
	}
	for v := range n {
		if depth[v] == 0 {
			visit(v, -1, 1)
		}
	}
	return score, nil
}

// dominance sums the shares of the sinks that a task dominates, seen from a
// root in front of all sources. Every task dominates itself.
func dominance(t *topology) ([]float64, error) {
	n := len(t.Tasks)
	g := t.directed(1)
	for _, s := range t.sources {
		g.SetEdge(simple.Edge{F: simple.Node(n), T: simple.Node(s)})
	}
	tree := flow.Dominators(simple.Node(n), g)
	score, weight := make([]float64, n), t.sinkWeights()
	for _, s := range t.sinks {
		score[s] += weight[s]
		for d := tree.DominatorOf(int64(s)); d != nil && int(d.ID()) < n; d = tree.DominatorOf(d.ID()) {
			score[d.ID()] += weight[s]
		}
	}
	return score, nil
}

// minCut gives the members of smallest vertex cuts. A task is in one exactly
// when the maximum flow through unit tasks falls by one without it. Sources and
// sinks may be members.
func minCut(t *topology) ([]float64, error) {
	n := len(t.Tasks)
	// Task v is the arc v → n+v; the ends are 2n and 2n+1.
	through := func(without int) float64 {
		g := simple.NewWeightedDirectedGraph(0, 0)
		for v := range 2*n + 2 {
			g.AddNode(simple.Node(v))
		}
		arc := func(from, to int, capacity float64) {
			g.SetWeightedEdge(simple.WeightedEdge{F: simple.Node(from), T: simple.Node(to), W: capacity})
		}
		for v := range n {
			if v != without {
				arc(v, n+v, 1)
			}
			for _, l := range t.out[v] {
				arc(n+v, l.task, float64(n))
			}
		}
		for _, s := range t.sources {
			arc(2*n, s, float64(n))
		}
		for _, s := range t.sinks {
			arc(n+s, 2*n+1, float64(n))
		}
		return network.MaxFlowDinic(g, simple.Node(2*n), simple.Node(2*n+1), -1)
	}
	size := through(-1)
	score := make([]float64, n)
	for v := range n {
		if size > 0 && through(v) < size-0.5 {
			score[v] = 1 / size
		}
	}
	return score, nil
}

// criticalPath weighs paths by the sum of the risks of their tasks.
func criticalPath(t *topology) ([]float64, error) {
	order, err := t.order()
	if err != nil {
		return nil, err
	}
	n := len(t.Tasks)
	before, after, score := make([]float64, n), make([]float64, n), make([]float64, n)
	heaviest := 0.0
	for _, v := range order {
		for _, l := range t.in[v] {
			before[v] = max(before[v], before[l.task]+t.Tasks[l.task].RiskSeconds())
		}
	}
	for _, v := range slices.Backward(order) {
		for _, l := range t.out[v] {
			after[v] = max(after[v], after[l.task]+t.Tasks[l.task].RiskSeconds())
		}
		score[v] = before[v] + t.Tasks[v].RiskSeconds() + after[v]
		heaviest = max(heaviest, score[v])
	}
	for v := range score {
		if heaviest > 0 {
			// Sums in another order differ in their last digits, which must not
			// break a tie.
			score[v] = settle(score[v] / heaviest)
		}
	}
	return score, nil
}

func degree(t *topology) ([]float64, error) {
	score := make([]float64, len(t.Tasks))
	for v := range score {
		score[v] = float64(len(t.in[v]) + len(t.out[v]))
	}
	return score, nil
}

func traffic(t *topology) ([]float64, error) {
	score := make([]float64, len(t.Tasks))
	for v := range score {
		score[v] = t.inRate[v] + t.outRate[v]
	}
	return score, nil
}

// betweenness is gonum's, as a share of the ordered pairs of other tasks.
func betweenness(t *topology) ([]float64, error) {
	n := len(t.Tasks)
	score := make([]float64, n)
	between := network.Betweenness(t.directed(0))
	for v := range score {
		if n > 2 {
			score[v] = settle(between[int64(v)] / float64((n-1)*(n-2)))
		}
	}
	return score, nil
}

// settle drops the digits in which sums over Go maps differ from run to run.
func settle(x float64) float64 { return math.Round(x*1e12) / 1e12 }
