package queries

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// Options are what can be varied of a query: how parallel it is, and the times of its windows.
type Options struct {
	// Sources and Tasks are the parallelism of the source and of keyed operators; Groups the key groups of the latter.
	Sources, Tasks int
	Groups         uint32
	// Window, Slide and Gap are the sizes of windows: Slide of q5, Gap of q11.
	Window, Slide, Gap time.Duration
	// Bound is how far a watermark is behind the highest event time, Step what it advances by (0: a tenth of Bound), and
	// Lateness how much longer a window waits for late records.
	Bound, Step, Lateness time.Duration
}

// DefaultOptions returns windows of 10 s, a slide of 5 s, a gap of 10 s and a bound of 3 s, on one source and two tasks
// an operator.
func DefaultOptions() Options {
	return Options{Sources: 1, Tasks: 2, Groups: 128, Window: 10 * time.Second, Slide: 5 * time.Second, Gap: 10 * time.Second, Bound: 3 * time.Second}
}

func (o Options) step(bound time.Duration) time.Duration {
	if o.Step > 0 {
		return o.Step
	}
	return max(bound, o.Window) / 10
}

// Query is a query of a workload.
type Query struct {
	Name, Workload string
	// Doc says which operators it is made of.
	Doc    string
	build  func(p *pipeline)
	golden func(records *core.Columns, o Options) ([]Answer, uint64, error)
}

// Operators returns the operators of a job that answers the query. Its outputs are as ParseAnswer says.
func (q Query) Operators(o Options) []core.OperatorSpec {
	p := &pipeline{o: o}
	q.build(p)
	p.add("out", "sink", o.Tasks, nil)
	return p.ops
}

// Queries lists all queries.
func Queries() []Query { return append(append(nexmarkQueries(), ysbQuery()), shuffleQuery()) }

// ErrQuery is returned for a query that does not exist.
var ErrQuery = errors.New("no such query")

// Lookup returns the query with the given name, or ErrQuery, wrapped with the names that there are.
func Lookup(name string) (Query, error) {
	var names []string
	for _, q := range Queries() {
		if q.Name == name {
			return q, nil
		}
		names = append(names, q.Name)
	}
	return Query{}, fmt.Errorf("%w: %q; there are %s", ErrQuery, name, strings.Join(names, ", "))
}

// pipeline is a chain of operators under construction.
type pipeline struct {
	o   Options
	ops []core.OperatorSpec
}

type params map[string]string

// add appends an operator that reads the one before it. A stateless one is as parallel as what it reads.
func (p *pipeline) add(name, kind string, tasks int, ps params) {
	op := core.OperatorSpec{Name: name, Kind: kind, Parallelism: tasks, Params: ps}
	if n := len(p.ops); n > 0 {
		op.Inputs = []string{p.ops[n-1].Name}
	}
	p.ops = append(p.ops, op)
}

// source begins the pipeline: event times are `at` of the layout; they are up to bound out of order.
func (p *pipeline) source(layout, at string, bound time.Duration) {
	p.add("in", "source", p.o.Sources, params{"layout": layout, "time": at, "bound": bound.String(), "step": p.o.step(bound).String()})
}

func (p *pipeline) mapping(name string, ps params) {
	p.add(name, "map", p.ops[len(p.ops)-1].Parallelism, ps)
}

func (p *pipeline) keyed(name, kind string, ps params) {
	p.add(name, kind, p.o.Tasks, ps)
	p.ops[len(p.ops)-1].Groups = p.o.Groups
}

// timed adds a keyed operator that waits for late records.
func (p *pipeline) timed(name, kind string, ps params) {
	ps["lateness"] = p.o.Lateness.String()
	p.keyed(name, kind, ps)
}

// Answer is one output of a query; what its fields hold is in docs/queries.md.
type Answer struct {
	Key  uint64
	Time int64 // event time, ns; of windows the end
	Val  int64
	Text string
}

// Hash returns a number that equal answers share; different ones do with a chance of 2^-64.
func (a Answer) Hash() uint64 {
	h := core.Mix64(a.Key + 0x9e3779b97f4a7c15) // so that nothing stays 0
	h = core.Mix64(h ^ uint64(a.Time))
	h = core.Mix64(h ^ uint64(a.Val))
	for i := range len(a.Text) {
		h = (h ^ uint64(a.Text[i])) * 0x100000001b3 // as in FNV-1a
	}
	return core.Mix64(h)
}

// Compare orders answers by key, time, value and text.
func Compare(a, b Answer) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Time, b.Time), cmp.Compare(a.Val, b.Val), cmp.Compare(a.Text, b.Text))
}

// ParseAnswer reads an output, whose payload is the time and the text: `time i64@0, text text@8`. Those of shufflebench have no payload, and so no time and text.
func ParseAnswer(key uint64, val int64, payload []byte) (Answer, error) {
	a := Answer{Key: key, Val: val}
	if len(payload) == 0 {
		return a, nil
	}
	if len(payload) < 9 || len(payload) != 9+int(payload[8]) {
		return a, fmt.Errorf("an output of %d bytes is not a time and a text", len(payload))
	}
	a.Time, a.Text = int64(binary.LittleEndian.Uint64(payload)), string(payload[9:])
	return a, nil
}

// Golden returns the answers to the query over records of its workload in record order, sorted, and how many events came
// too late for a window; both by an evaluation that shares nothing with the engine. With several sources a job finds the
// same if no event is later than o.Bound.
func (q Query) Golden(records *core.Columns, o Options) (answers []Answer, late uint64, err error) {
	answers, late, err = q.golden(records, o)
	slices.SortFunc(answers, Compare)
	return answers, late, err
}
