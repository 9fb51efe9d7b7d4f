package planner

import (
	"cmp"
	"math"
	"slices"
)

// priorityExponent is β of the migration priority index γ = load^β/bytes; 1.5 is
// what Fang et al. use.
const priorityExponent = 1.5

// fang is the state shared by the planners of Fang et al.: groups are taken off
// tasks into a candidate set and dealt again by least load.
type fang struct {
	*problem
	owner    []int32
	load     []float64
	priority []float64 // γ by group
	queue    []int32   // candidates, by rising load
}

func newFang(p *problem) *fang {
	f := &fang{problem: p, owner: slices.Clone(p.route), load: p.loads(p.route), priority: make([]float64, len(p.load))}
	for g, l := range p.load {
		switch {
		case l == 0:
		case p.bytes[g] == 0:
			f.priority[g] = math.Inf(1)
		default:
			f.priority[g] = math.Pow(l, priorityExponent) / float64(p.bytes[g])
		}
	}
	return f
}

// byPriority sorts groups by falling γ.
func (f *fang) byPriority(groups []int32) {
	slices.SortFunc(groups, func(a, b int32) int {
		if c := cmp.Compare(f.priority[b], f.priority[a]); c != 0 {
			return c
		}
		return int(a - b)
	})
}

func (f *fang) take(g int32) {
	f.load[f.owner[g]] -= f.problem.load[g]
	f.owner[g] = -1
	at, _ := slices.BinarySearchFunc(f.queue, g, func(a, b int32) int {
		if f.problem.load[a] < f.problem.load[b] {
			return -1
		}
		return 1
	})
	f.queue = slices.Insert(f.queue, at, g)
}

func (f *fang) put(g int32, d int) {
	f.owner[g] = int32(d)
	f.load[d] += f.problem.load[g]
}

// prepare (phase II) takes groups off overloaded tasks in the order of γ.
func (f *fang) prepare() {
	for d, groups := range f.movable(f.owner) {
		f.byPriority(groups)
		for _, g := range groups {
			if f.load[d] <= f.capOf(d) {
				break
			}
			f.take(g)
		}
	}
}

// deal (phase III) is Least-Load Fit Decreasing: the heaviest candidate goes to
// the least loaded task that has room, or that gets room by giving up lighter
// groups, which become candidates in turn. A group that no task can take goes
// to the least loaded one.
func (f *fang) deal() {
	order := make([]int, f.tasks)
	for d := range order {
		order[d] = d
	}
	for len(f.queue) > 0 {
		g := f.queue[len(f.queue)-1]
		f.queue = f.queue[:len(f.queue)-1]
		slices.SortFunc(order, func(a, b int) int {
			if c := cmp.Compare(f.load[a], f.load[b]); c != 0 {
				return c
			}
			return a - b
		})
		last := -1
		done := false
		for _, d := range order {
			if !f.allowed(g, d) {
				continue
			}
			if last < 0 {
				last = d
			}
			if done = f.fits(g, d, f.load[d]) || f.exchange(g, d); done {
				f.put(g, d)
				break
			}
		}
		if !done {
			f.put(g, last)
		}
	}
}

// exchange gives up groups of a task lighter than g, in the order of γ, when
// that makes room for it.
func (f *fang) exchange(g int32, d int) bool {
	var lighter []int32
	for x, owner := range f.owner {
		if int(owner) == d && !f.fixed[x] && f.problem.load[x] > 0 && f.problem.load[x] < f.problem.load[g] {
			lighter = append(lighter, int32(x))
		}
	}
	f.byPriority(lighter)
	need := f.load[d] + f.problem.load[g] - f.capOf(d)
	for i, x := range lighter {
		if need -= f.problem.load[x]; need <= 0 {
			for _, out := range lighter[:i+1] {
				f.take(out)
			}
			return true
		}
	}
	return false
}

func (f *fang) tableSize() int {
	n := 0
	for g, d := range f.owner {
		if d != f.home[g] {
			n++
		}
	}
	return n
}
