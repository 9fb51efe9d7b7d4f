package criticality

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// ErrGraph marks a task graph or budget that cannot be ranked; ErrCycle one
// that has a loop of several tasks, where paths and trees are not defined.
var (
	ErrGraph = errors.New("bad task graph")
	ErrCycle = errors.New("task graph has a cycle")
)

// Task is a vertex: one parallel instance of an operator.
type Task struct {
	Name string
	// Operator groups the instances of one operator; "" makes the task an
	// operator of its own. Only joins look at it.
	Operator string
	// Join needs input from every upstream operator at once. Without it, inputs
	// are a union, and each counts by its rate.
	Join bool
	// Cost of a standby, in any unit of resource; 0 or more.
	Cost float64
	// FailureProbability over the time looked at, 0 … 1, and Recovery the
	// expected time to recover without a standby. Their product is the risk.
	FailureProbability float64
	Recovery           time.Duration
}

// Edge carries records from one task to another, given by their indices.
// Parallel edges add up, self-loops take no part in paths.
type Edge struct {
	From, To         int
	RecordsPerSecond float64
}

// Graph is a job's tasks and channels. Tasks without input are sources, tasks
// without output are sinks; a lone task is both.
type Graph struct {
	Tasks []Task
	Edges []Edge
}

// RiskSeconds is the expected time a task is down: failure probability times
// expected recovery time.
func (t Task) RiskSeconds() float64 { return t.FailureProbability * t.Recovery.Seconds() }

type link struct {
	task int
	rate float64
}

// topology is a checked graph with merged edges, in and out by rising index.
type topology struct {
	Graph
	in, out  [][]link
	selfRate []float64 // by task, rate of its self-loop
	sources  []int
	sinks    []int
	inRate   []float64 // by task, without self-loops
	outRate  []float64
}

func newTopology(g Graph) (*topology, error) {
	n := len(g.Tasks)
	if n == 0 {
		return nil, fmt.Errorf("no tasks: want at least 1: %w", ErrGraph)
	}
	for i, t := range g.Tasks {
		if !(t.Cost >= 0) || math.IsInf(t.Cost, 1) || !(t.FailureProbability >= 0 && t.FailureProbability <= 1) || t.Recovery < 0 {
			return nil, fmt.Errorf("task %d %q: cost %v, failure probability %v, recovery %v: want a finite cost and no negative, a probability of 0 … 1: %w",
				i, t.Name, t.Cost, t.FailureProbability, t.Recovery, ErrGraph)
		}
	}
	t := &topology{
		Graph: g, in: make([][]link, n), out: make([][]link, n), selfRate: make([]float64, n),
		inRate: make([]float64, n), outRate: make([]float64, n),
	}
	rates := make([][]float64, n)
	for i, e := range g.Edges {
		if e.From < 0 || e.From >= n || e.To < 0 || e.To >= n {
			return nil, fmt.Errorf("edge %d from %d to %d: want tasks 0 … %d: %w", i, e.From, e.To, n-1, ErrGraph)
		}
		if !(e.RecordsPerSecond >= 0) || math.IsInf(e.RecordsPerSecond, 1) {
			return nil, fmt.Errorf("edge %d from %d to %d: %v records per second: want finite and not negative: %w", i, e.From, e.To, e.RecordsPerSecond, ErrGraph)
		}
		if rates[e.From] == nil {
			rates[e.From] = make([]float64, n)
			for to := range rates[e.From] {
				rates[e.From][to] = -1
			}
		}
		rates[e.From][e.To] = max(rates[e.From][e.To], 0) + e.RecordsPerSecond
	}
	for from, row := range rates {
		for to, rate := range row {
			switch {
			case rate < 0:
			case from == to:
				t.selfRate[from] = rate
			default:
				t.out[from] = append(t.out[from], link{to, rate})
				t.in[to] = append(t.in[to], link{from, rate})
				t.outRate[from] += rate
				t.inRate[to] += rate
			}
		}
	}
	for v := range n {
		if len(t.in[v]) == 0 {
			t.sources = append(t.sources, v)
		}
		if len(t.out[v]) == 0 {
			t.sinks = append(t.sinks, v)
		}
	}
	return t, nil
}

// directed is the graph for gonum, without self-loops; extra vertices follow
// the tasks.
func (t *topology) directed(extra int) *simple.DirectedGraph {
	g := simple.NewDirectedGraph()
	for v := range len(t.Tasks) + extra {
		g.AddNode(simple.Node(v))
	}
	for v, links := range t.out {
		for _, l := range links {
			g.SetEdge(simple.Edge{F: simple.Node(v), T: simple.Node(l.task)})
		}
	}
	return g
}

// order sorts the tasks so that channels lead forward.
func (t *topology) order() ([]int, error) {
	byID := func(nodes []graph.Node) {
		for i := 1; i < len(nodes); i++ {
			for j := i; j > 0 && nodes[j].ID() < nodes[j-1].ID(); j-- {
				nodes[j], nodes[j-1] = nodes[j-1], nodes[j]
			}
		}
	}
	nodes, err := topo.SortStabilized(t.directed(0), byID)
	if err != nil {
		return nil, fmt.Errorf("order of tasks: %w: %w", ErrCycle, err)
	}
	order := make([]int, len(nodes))
	for i, v := range nodes {
		order[i] = int(v.ID())
	}
	return order, nil
}

// sinkWeights are the shares of output by sink: by input rate, or equal when no
// sink receives anything.
func (t *topology) sinkWeights() []float64 {
	w := make([]float64, len(t.Tasks))
	total := 0.0
	for _, s := range t.sinks {
		w[s] = t.inRate[s]
		total += w[s]
	}
	for _, s := range t.sinks {
		if total > 0 {
			w[s] /= total
		} else {
			w[s] = 1 / float64(len(t.sinks))
		}
	}
	return w
}
