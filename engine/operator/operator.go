package operator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

// Context is what an operator works with. It belongs to one task and is not safe for concurrent use.
type Context struct {
	// Groups is the number of key groups; 0 for operators without state.
	Groups uint32
	// State is the keyed state of operators with values of a fixed size, Blob of those with values of any size; nil for
	// others.
	State *state.Heap
	Blob  *state.Blob
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
	// Blob says that the keyed state has values of any size.
	Blob bool
	// Resizes says that other numbers of records may come out than go in, or records of another size.
	Resizes bool
	// New makes the operator of one task. It panics on parameters that Check refuses.
	New func(spec *core.OperatorSpec) Operator
	// check says what is wrong with a spec's parameters; nil: the kind ignores them.
	check func(spec *core.OperatorSpec) error
}

// parsed fills New and check of a kind from the function that reads its parameters.
func parsed[T Operator](k Kind, parse func(*core.OperatorSpec) (T, error)) Kind {
	k.New = func(spec *core.OperatorSpec) Operator {
		o, err := parse(spec)
		return must(o, err)
	}
	k.check = func(spec *core.OperatorSpec) error {
		_, err := parse(spec)
		return err
	}
	k.Resizes = true
	return k
}

// keyed describes a kind whose state has values of any size.
func keyed(name, doc string) Kind {
	return Kind{Name: name, KindInfo: core.KindInfo{Keyed: true}, Blob: true, Doc: doc}
}

// Kinds lists the built-in operators.
func Kinds() []Kind {
	return []Kind{
		{Name: "source", KindInfo: core.KindInfo{Source: true}, Doc: "reads a split of the feed; makes watermarks where it is told the event time", New: newForward, check: checkSource},
		{Name: "forward", Doc: "passes records on (a stateless map)", New: newForward},
		{Name: "filter", Doc: "passes on the records whose key hashes below a share, or for which an expression holds", Resizes: true, New: newFilter, check: checkFilter},
		parsed(Kind{Name: "map", Doc: "gives each record for which an expression holds a new key, value and payload"}, parseMapping),
		{Name: "count", KindInfo: core.KindInfo{Keyed: true}, Doc: "counts the records of each key; emits the count so far", New: newCount, check: checkPreload},
		{Name: "sized-count", KindInfo: core.KindInfo{Keyed: true}, Blob: true, Doc: "counts as count does; the state of each key has the size that its first record's value says (core.Profile)", New: newSizedCount},
		{Name: "sum", KindInfo: core.KindInfo{Keyed: true}, Doc: "sums the values of each key; emits the sum so far", New: newSum},
		parsed(Kind{Name: "every", KindInfo: core.KindInfo{Keyed: true}, Doc: "counts the records of each key; emits the count at each n-th"}, parseEvery),
		parsed(keyed("aggregate", "count, sum, max, min or avg of each key, when the stream ends"), parsePanes),
		parsed(keyed("tumbling", "the same by windows that follow each other"), parsePanes),
		parsed(keyed("sliding", "the same by windows that overlap"), parsePanes),
		parsed(keyed("session", "the same by sessions, which a gap ends"), parseSession),
		parsed(keyed("top-k", "the first k records of each key and window in an order, with ties"), parseTopK),
		parsed(keyed("over", "count, sum, max, min or avg of each key's last n records in the order of event time"), parseOver),
		parsed(keyed("join", "joins two streams by key, by windows or as they come"), parseJoin),
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

func checkSource(spec *core.OperatorSpec) error {
	_, err := parseWatermarks(spec)
	return err
}

type filter struct{ below uint64 }

func newFilter(spec *core.OperatorSpec) Operator {
	if spec.Params["where"] != "" {
		return must(parseWhere(spec))
	}
	below, err := parseShare(spec)
	if err != nil {
		panic("operator: unchecked " + err.Error())
	}
	return filter{below}
}

func checkFilter(spec *core.OperatorSpec) error {
	if spec.Params["where"] != "" {
		_, err := parseWhere(spec)
		return err
	}
	_, err := parseShare(spec)
	return err
}

func parseWhere(spec *core.OperatorSpec) (*mapping, error) {
	p := readParams(spec, "where")
	return &mapping{where: p.num("where", p.layout.names())}, p.err
}

// parseShare returns the bound below which 53 bits of a key's hash must lie.
func parseShare(spec *core.OperatorSpec) (uint64, error) {
	p := readParams(spec, "share")
	share := 1.0
	if s := spec.Params["share"]; s != "" {
		v, err := strconv.ParseFloat(s, 64)
		if err == nil && !(v >= 0 && v <= 1) {
			err = errShare
		}
		if err != nil {
			p.fail("share", fmt.Errorf("%q: %w", s, err))
		}
		share = v
	}
	return uint64(share * float64(1<<53)), p.err
}

var errShare = errors.New("a share is from 0 to 1")

func must[T Operator](o T, err error) Operator {
	if err != nil {
		panic("operator: unchecked " + err.Error())
	}
	return o
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
	for from := 0; from < len(in.Keys); from += state.WarmKeys {
		keys := in.Keys[from:min(from+state.WarmKeys, len(in.Keys))]
		c.State.Warm(keys)
		for _, k := range keys {
			g := uint32((core.Mix64(k) >> 32) * groups >> 32)
			c.Loads[g]++
			p := c.State.Word(g, k)
			*p++
			out.Vals = append(out.Vals, int64(*p))
		}
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

// every keeps the number of records of each key in the first 8 bytes of its state.
type every struct{ n uint64 }

func parseEvery(spec *core.OperatorSpec) (every, error) {
	p := readParams(spec, "n")
	p.require("n")
	return every{uint64(p.integer("n", 1))}, p.err
}

func (o every) Process(c *Context, in *core.Columns) {
	out := &c.Out
	for i, k := range in.Keys {
		g := core.KeyGroup(k, c.Groups)
		c.Loads[g]++
		v, _ := c.State.Ref(g, k)
		n := binary.LittleEndian.Uint64(v) + 1
		binary.LittleEndian.PutUint64(v, n)
		if n%o.n == 0 {
			out.Keys = append(out.Keys, k)
			out.Times = append(out.Times, in.Times[i])
			out.Vals = append(out.Vals, int64(n))
		}
	}
}
