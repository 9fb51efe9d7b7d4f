package queries

import (
	"encoding/binary"
	"errors"
	"fmt"
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

// Query is a query of a workload.
type Query struct {
	Name, Workload string
	// Doc says which operators it is made of.
	Doc   string
	build func(p *pipeline)
}

// Operators returns the operators of a job that answers the query. Its outputs are as ParseRow says.
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
	step := p.o.Step
	if step == 0 {
		step = max(bound, p.o.Window) / 10
	}
	p.add("in", "source", p.o.Sources, params{"layout": layout, "time": at, "bound": bound.String(), "step": step.String()})
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

// Row is what the payload of an output says: a time (of windows the end) and a text. An answer is that with the output's
// key and value.
type Row struct {
	Time int64 // event time, ns
	Text string
}

// rowLayout is the layout of an output's payload.
const rowLayout = "time i64@0, text text@8"

// ParseRow reads the payload of an output; an output of shufflebench has none and is the zero Row.
func ParseRow(payload []byte) (Row, error) {
	if len(payload) == 0 {
		return Row{}, nil
	}
	if len(payload) < 9 || len(payload) != 9+int(payload[8]) {
		return Row{}, fmt.Errorf("an output of %d bytes is not a time and a text", len(payload))
	}
	return Row{int64(binary.LittleEndian.Uint64(payload)), string(payload[9:])}, nil
}
