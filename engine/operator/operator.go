package operator

import (
	"encoding/binary"
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

// Context is what an operator works with. It belongs to one task and is not safe for concurrent use.
type Context struct {
	// Groups is the number of key groups; 0 for operators without state.
	Groups uint32
	// State is the keyed state; nil for operators without state.
	State *state.Heap
	// Out receives the outputs, in order.
	Out core.Columns
	// Loads counts the records of each key group since the task started.
	Loads []uint64
}

// Operator works on runs of records. Where a run is cut must not change what comes out.
type Operator interface {
	// Process consumes in and appends what it emits to c.Out. It must not keep in.
	Process(c *Context, in *core.Columns)
}

// Kind describes a built-in operator.
type Kind struct {
	Name string
	core.KindInfo
	// Doc is one line for people.
	Doc string
	// New makes the operator of one task. valueBytes is the state size of a key.
	New func(spec *core.OperatorSpec) Operator
}

// Kinds lists the built-in operators.
func Kinds() []Kind {
	return []Kind{
		{Name: "source", KindInfo: core.KindInfo{Source: true}, Doc: "reads a split of the feed", New: newForward},
		{Name: "forward", Doc: "passes records on (a stateless map)", New: newForward},
		{Name: "filter", Doc: "passes on the records whose key hashes below a share", New: newFilter},
		{Name: "count", KindInfo: core.KindInfo{Keyed: true}, Doc: "counts the records of each key; emits the count so far", New: newCount},
		{Name: "sum", KindInfo: core.KindInfo{Keyed: true}, Doc: "sums the values of each key; emits the sum so far", New: newSum},
		{Name: "sink", KindInfo: core.KindInfo{Sink: true}, Doc: "hands outputs to the collector", New: newForward},
	}
}

// Lookup returns the kind with the given name.
func Lookup(name string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// Info is Lookup in the form that core.BuildGraph wants.
func Info(name string) (core.KindInfo, bool) {
	k, ok := Lookup(name)
	return k.KindInfo, ok
}

type forward struct{}

func newForward(*core.OperatorSpec) Operator { return forward{} }

func (forward) Process(c *Context, in *core.Columns) { c.Out.AppendAll(in) }

type filter struct{ below uint64 }

func newFilter(spec *core.OperatorSpec) Operator {
	share := 1.0
	if s := spec.Params["share"]; s != "" {
		if _, err := fmt.Sscanf(s, "%g", &share); err != nil {
			share = 1 // validation refuses it long before
		}
	}
	return filter{uint64(share * float64(1<<53))}
}

func (f filter) Process(c *Context, in *core.Columns) {
	for i, k := range in.Keys {
		if core.Mix64(k)>>11 < f.below {
			c.Out.Append(in, i)
		}
	}
}

// count keeps the number of records of each key in the first 8 bytes of its state.
type count struct{ wide bool }

func newCount(spec *core.OperatorSpec) Operator { return count{spec.ValueBytes > 8} }

func (o count) Process(c *Context, in *core.Columns) {
	out, groups := &c.Out, uint64(c.Groups)
	out.Keys = append(out.Keys, in.Keys...)
	out.Times = append(out.Times, in.Times...)
	if o.wide {
		for _, k := range in.Keys {
			g := core.KeyGroup(k, c.Groups)
			c.Loads[g]++
			v, _ := c.State.Ref(g, k)
			n := binary.LittleEndian.Uint64(v) + 1
			binary.LittleEndian.PutUint64(v, n)
			out.Vals = append(out.Vals, int64(n))
		}
		return
	}
	for _, k := range in.Keys {
		g := uint32((core.Mix64(k) >> 32) * groups >> 32)
		c.Loads[g]++
		p := c.State.Word(g, k)
		*p++
		out.Vals = append(out.Vals, int64(*p))
	}
}

// sum keeps the sum of the values of each key; a record without a value counts as 1.
type sum struct{}

func newSum(*core.OperatorSpec) Operator { return sum{} }

func (sum) Process(c *Context, in *core.Columns) {
	out := &c.Out
	out.Keys = append(out.Keys, in.Keys...)
	out.Times = append(out.Times, in.Times...)
	for i, k := range in.Keys {
		g := core.KeyGroup(k, c.Groups)
		c.Loads[g]++
		v, _ := c.State.Ref(g, k)
		add := int64(1)
		if len(in.Vals) > 0 {
			add = in.Vals[i]
		}
		n := int64(binary.LittleEndian.Uint64(v)) + add
		binary.LittleEndian.PutUint64(v, uint64(n))
		out.Vals = append(out.Vals, n)
	}
}
