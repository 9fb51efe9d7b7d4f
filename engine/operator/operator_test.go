package operator

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

const testGroups = 4

// bench runs one operator as a task does.
type bench struct {
	op   Operator
	spec core.OperatorSpec
	c    Context
}

func newBench(t *testing.T, kind string, ps map[string]string) *bench {
	t.Helper()
	b := &bench{spec: core.OperatorSpec{Name: "op", Kind: kind, Params: ps, ValueBytes: 8, Groups: testGroups}}
	if err := Check(&core.Job{Operators: []core.OperatorSpec{b.spec}}); err != nil {
		t.Fatal(err)
	}
	k, _ := Lookup(kind)
	b.op = k.New(&b.spec)
	b.c = Context{Groups: testGroups, Loads: make([]uint64, testGroups)}
	if k.Blob {
		b.c.Blob = state.NewBlob(testGroups)
	} else {
		b.c.State = state.NewHeap(testGroups, 8)
	}
	return b
}

// rec is a record with a payload of numbers.
type rec struct {
	key      uint64
	due, val int64
	row      []int64
}

func columns(recs []rec) *core.Columns {
	c := &core.Columns{}
	for _, r := range recs {
		c.Keys, c.Times, c.Vals = append(c.Keys, r.key), append(c.Times, r.due), append(c.Vals, r.val)
		var p []byte
		for _, n := range r.row {
			p = binary.LittleEndian.AppendUint64(p, uint64(n))
		}
		c.AppendPayload(p)
	}
	return c
}

// feed gives records one run at a time, each of at most n.
func (b *bench) feed(n int, recs ...rec) {
	for chunk := range slices.Chunk(recs, n) {
		b.op.Process(&b.c, columns(chunk))
	}
}

func (b *bench) watermark(wm int64) {
	for g := uint32(0); g < testGroups; g++ {
		b.op.(Timed).Watermark(&b.c, g, wm)
	}
}

// out takes what was emitted since, sorted.
func (b *bench) out() []string {
	var out []string
	for i, k := range b.c.Out.Keys {
		s := fmt.Sprintf("%d:%d", k, b.c.Out.Vals[i])
		for p := b.c.Out.Payload(i); len(p) >= 8; p = p[8:] {
			s += fmt.Sprintf(" %d", int64(binary.LittleEndian.Uint64(p)))
		}
		out = append(out, fmt.Sprintf("%s @%d", s, b.c.Out.Times[i]))
	}
	slices.Sort(out)
	b.c.Out.Reset()
	return out
}

func (b *bench) late() (n uint64) {
	for g := uint32(0); g < testGroups; g++ {
		n += b.c.Late(g)
	}
	return n
}

// moved returns a bench with the state of b, carried over chunk by chunk.
func (b *bench) moved(t *testing.T) *bench {
	t.Helper()
	n := newBench(t, b.spec.Kind, b.spec.Params)
	snap := b.c.Blob.Cut([]uint32{0, 1, 2, 3})
	defer snap.Release()
	for {
		chunk, g, _, done := snap.Next(nil, 64)
		if done {
			return n
		}
		if err := n.c.Blob.Install(g, chunk); err != nil {
			t.Fatal(err)
		}
	}
}

const rowTime = "time i64@0, n i64@8"

func at(time int64) []int64 { return []int64{time} }

// TestWindowEdges tells the story of each timed operator: a window has its beginning and not its end.
func TestWindowEdges(t *testing.T) {
	big := headerKey // a key like any other, although its value holds the group's header
	for _, c := range []struct {
		name, kind string
		ps         map[string]string
		recs       []rec
		wm         int64
		want       []string
		after      []string // at the end of time
	}{
		{"tumbling", "tumbling", map[string]string{"layout": rowTime, "time": "time", "size": "10ns"},
			[]rec{{1, 3, 5, at(0)}, {1, 2, 5, at(9)}, {1, 4, 5, at(10)}, {big, 9, 5, at(9)}}, 10,
			[]string{"18446744073709551615:1 10 0 @9", "1:2 10 0 @3"}, []string{"1:1 20 10 @4"}},
		{"before the end", "tumbling", map[string]string{"layout": rowTime, "time": "time", "size": "10ns"},
			[]rec{{1, 3, 5, at(0)}}, 9, nil, []string{"1:1 10 0 @3"}},
		{"allowed lateness", "tumbling", map[string]string{"layout": rowTime, "time": "time", "size": "10ns", "lateness": "5ns"},
			[]rec{{1, 3, 5, at(0)}}, 14, nil, []string{"1:1 10 0 @3"}},
		{"below zero", "tumbling", map[string]string{"layout": rowTime, "time": "time", "size": "10ns"},
			[]rec{{1, 3, 5, at(-1)}, {1, 3, 5, at(-10)}, {1, 3, 5, at(-11)}}, 0, []string{"1:1 -10 -20 @3", "1:2 0 -10 @3"}, nil},
		{"sliding", "sliding", map[string]string{"layout": rowTime, "time": "time", "size": "10ns", "slide": "5ns", "function": "sum"},
			[]rec{{1, 1, 5, at(4)}, {1, 1, 7, at(5)}, {1, 1, 9, at(100)}}, 10, []string{"1:12 10 0 @1", "1:5 5 -5 @1"},
			[]string{"1:7 15 5 @1", "1:9 105 95 @1", "1:9 110 100 @1"}},
		{"session", "session", map[string]string{"layout": rowTime, "time": "time", "gap": "10ns"},
			[]rec{{1, 1, 0, at(20)}, {1, 1, 0, at(0)}, {1, 7, 0, at(9)}, {1, 1, 0, at(30)}}, 30,
			[]string{"1:1 30 20 @1", "1:2 19 0 @7"}, []string{"1:1 40 30 @1"}},
		{"a bridge between sessions", "session", map[string]string{"layout": rowTime, "time": "time", "gap": "10ns", "function": "max"},
			[]rec{{1, 1, 4, at(0)}, {1, 1, 6, at(18)}, {1, 1, 5, at(9)}}, 27, nil, []string{"1:6 28 0 @1"}},
		{"average at the end", "aggregate", map[string]string{"function": "avg"},
			[]rec{{1, 1, 4, nil}, {1, 1, 7, nil}, {2, 1, 1, nil}}, 1 << 60, nil,
			[]string{"1:5 9223372036854775807 9223372036854775806 @1", "2:1 9223372036854775807 9223372036854775806 @1"}},
		{"top 2 with a tie at the last place", "top-k", map[string]string{"layout": rowTime, "end": "time", "order": "-value", "k": "2"},
			[]rec{{1, 1, 4, []int64{10, 1}}, {1, 1, 9, []int64{10, 2}}, {1, 1, 4, []int64{10, 3}}, {1, 1, 3, []int64{10, 4}}, {1, 1, 1, []int64{11, 5}}}, 10,
			[]string{"1:4 10 10 1 @1", "1:4 10 10 3 @1", "1:9 10 10 2 @1"}, []string{"1:1 11 11 5 @1"}},
		{"top 2 with a tie at the first", "top-k", map[string]string{"layout": rowTime, "end": "time", "order": "-value", "k": "2"},
			[]rec{{1, 1, 4, []int64{10, 1}}, {1, 1, 9, []int64{10, 2}}, {1, 1, 9, []int64{10, 3}}, {1, 1, 9, []int64{10, 3}}}, 10,
			[]string{"1:9 10 10 2 @1", "1:9 10 10 3 @1", "1:9 10 10 3 @1"}, nil},
		{"top 1 exactly", "top-k", map[string]string{"layout": rowTime, "end": "time", "order": "-value; n", "ties": "first"},
			[]rec{{1, 1, 9, []int64{10, 3}}, {1, 1, 9, []int64{10, 2}}, {1, 1, 4, []int64{10, 1}}}, 10, []string{"1:9 10 10 2 @1"}, nil},
		{"over the last 2 in event time", "over", map[string]string{"layout": rowTime, "end": "time", "n": "2", "order": "n", "function": "sum"},
			[]rec{{1, 1, 1, []int64{10, 2}}, {1, 1, 10, []int64{10, 1}}, {1, 1, 100, []int64{5, 1}}, {1, 1, 1000, []int64{11, 1}}}, 10,
			[]string{"1:100 5 1 @1", "1:11 10 2 @1", "1:110 10 1 @1"}, []string{"1:1001 11 1 @1"}},
		{"window join", "join", map[string]string{"layout": rowTime, "left": "value == 1", "time": "time", "size": "10ns", "on": "l.n != r.n", "row": "l.n; r.n", "value": "l.value + r.value"},
			[]rec{{1, 1, 2, []int64{0, 7}}, {1, 1, 1, []int64{9, 8}}, {1, 5, 2, []int64{9, 9}}, {1, 1, 2, []int64{9, 8}}, {1, 1, 2, []int64{10, 9}}, {2, 1, 2, []int64{5, 9}}}, 10,
			[]string{"1:3 8 7 @1", "1:3 8 9 @5"}, nil},
		{"semi join", "join", map[string]string{"layout": rowTime, "left": "value == 1", "mode": "semi", "time": "time", "size": "10ns", "row": "l.n"},
			[]rec{{1, 6, 2, []int64{0, 7}}, {1, 1, 1, []int64{9, 8}}, {1, 5, 2, []int64{9, 9}}, {1, 1, 1, []int64{10, 9}}}, 10, []string{"1:1 8 @6"}, nil},
		{"join as they come", "join", map[string]string{"layout": rowTime, "left": "value == 1", "unique": "left", "row": "l.n; r.n"},
			[]rec{{1, 1, 2, []int64{0, 7}}, {1, 3, 1, []int64{9, 8}}, {1, 2, 2, []int64{5, 9}}, {2, 2, 2, []int64{5, 9}}}, NoWatermark + 1,
			[]string{"1:1 8 7 @3", "1:1 8 9 @3"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.kind, c.ps)
			b.feed(1, c.recs...)
			b.watermark(c.wm)
			if got := b.out(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("at %d: %q, want %q", c.wm, got, c.want)
			}
			b = b.moved(t)
			b.watermark(c.wm) // again changes nothing
			b.watermark(EndOfTime)
			if got := b.out(); !reflect.DeepEqual(got, c.after) {
				t.Errorf("at the end: %q, want %q", got, c.after)
			}
			if b.late() != 0 {
				t.Errorf("%d late", b.late())
			}
		})
	}
}

func TestLateRecordsAreDroppedAndCountedOnceAWindow(t *testing.T) {
	for _, c := range []struct {
		kind string
		ps   map[string]string
		late uint64
	}{
		{"tumbling", map[string]string{"size": "10ns"}, 2},
		{"sliding", map[string]string{"size": "20ns", "slide": "10ns"}, 3}, // the second window of the later one is open
		{"session", map[string]string{"gap": "5ns"}, 2},
		{"join", map[string]string{"size": "10ns", "left": "1", "row": "1"}, 2},
		{"top-k", map[string]string{"size": "10ns", "order": "value"}, 2},
	} {
		c.ps["layout"], c.ps["time"] = rowTime, "time"
		b := newBench(t, c.kind, c.ps)
		b.watermark(20)
		b = b.moved(t) // the watermark goes with the state
		b.feed(10, rec{1, 0, 0, at(20)}, rec{1, 0, 0, at(10)}, rec{1, 0, 0, at(1)})
		if b.late() != c.late {
			t.Errorf("%s: %d late, want %d", c.kind, b.late(), c.late)
		}
	}
	b := newBench(t, "join", map[string]string{"layout": rowTime, "left": "value == 1", "until-left": "time", "row": "1"})
	b.watermark(20)
	b.feed(10, rec{1, 0, 1, at(20)}, rec{1, 0, 2, at(0)}, rec{1, 0, 1, at(21)})
	if b.late() != 1 || len(b.out()) != 1 {
		t.Errorf("join without windows: %d late, want 1", b.late())
	}
}

// TestSlidingAgainstPlainEvaluation compares with windows filled one by one, with watermarks and moves at random places and
// runs cut at random places.
func TestSlidingAgainstPlainEvaluation(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		r := rand.New(rand.NewPCG(seed, 1))
		slide := 1 + r.Int64N(5)
		size, lateness := slide*(1+r.Int64N(4)), r.Int64N(5)
		b := newBench(t, "sliding", map[string]string{"layout": rowTime, "time": "time", "function": "max",
			"size": fmt.Sprintf("%dns", size), "slide": fmt.Sprintf("%dns", slide), "lateness": fmt.Sprintf("%dns", lateness)})
		type cell struct {
			key uint64
			end int64
		}
		best := map[cell]int64{}
		wm, late := int64(NoWatermark), uint64(0)
		for step := 0; step < 60; step++ {
			if r.IntN(4) == 0 {
				wm = max(wm, int64(step)+r.Int64N(30)-5)
				b.watermark(wm)
				if r.IntN(2) == 0 {
					out := b.c.Out
					b = b.moved(t)
					b.c.Out = out
				}
				continue
			}
			x := rec{key: r.Uint64N(3), val: r.Int64N(100), row: at(r.Int64N(40) + int64(step))}
			b.feed(1, x)
			for end := floor(x.row[0], slide) + slide; end <= floor(x.row[0], slide)+size; end += slide {
				if wm != NoWatermark && end+lateness <= wm {
					late++
				} else if c := (cell{x.key, end}); x.val >= best[c] {
					best[c] = x.val
				}
			}
		}
		b.watermark(EndOfTime)
		got := map[cell]int64{}
		for i, k := range b.c.Out.Keys {
			c := cell{k, int64(binary.LittleEndian.Uint64(b.c.Out.Payload(i)))}
			if _, twice := got[c]; twice {
				t.Fatalf("seed %d: window %v came twice", seed, c)
			}
			got[c] = b.c.Out.Vals[i]
		}
		if !reflect.DeepEqual(got, best) || b.late() != late {
			t.Fatalf("seed %d: %v and %d late, want %v and %d", seed, got, b.late(), best, late)
		}
	}
}

// TestRunsDoNotMatter cuts the same records into runs of several sizes.
func TestRunsDoNotMatter(t *testing.T) {
	specs := []core.OperatorSpec{
		{Kind: "map", Params: map[string]string{"layout": rowTime, "where": "time % 3 > 0", "key": "n", "row": "key; time"}},
		{Kind: "filter", Params: map[string]string{"where": "value > 3"}},
		{Kind: "every", Params: map[string]string{"n": "3"}},
		{Kind: "sliding", Params: map[string]string{"layout": rowTime, "time": "time", "size": "10ns", "slide": "5ns"}},
		{Kind: "session", Params: map[string]string{"layout": rowTime, "time": "time", "gap": "3ns"}},
		{Kind: "top-k", Params: map[string]string{"layout": rowTime, "time": "time", "size": "10ns", "order": "value", "k": "2"}},
		{Kind: "over", Params: map[string]string{"layout": rowTime, "end": "time", "n": "3"}},
		{Kind: "join", Params: map[string]string{"layout": rowTime, "left": "value > 3", "row": "l.n; r.n", "until-right": "time"}},
	}
	r := rand.New(rand.NewPCG(3, 4))
	recs := make([]rec, 200)
	for i := range recs {
		recs[i] = rec{r.Uint64N(5), int64(i), r.Int64N(8), []int64{r.Int64N(60), r.Int64N(9)}}
	}
	for _, s := range specs {
		var want []string
		for _, n := range []int{1, 7, 200} {
			b := newBench(t, s.Kind, s.Params)
			b.feed(n, recs...)
			if _, timed := b.op.(Timed); timed {
				b.watermark(40)
				b.watermark(EndOfTime)
			}
			switch got := b.out(); {
			case n == 1:
				want = got
			case !slices.Equal(got, want) || len(want) == 0:
				t.Errorf("%s in runs of %d: %d outputs, %d in runs of one", s.Kind, n, len(got), len(want))
			}
		}
	}
}

func TestWatermarksOfASource(t *testing.T) {
	w := NewWatermarks(&core.OperatorSpec{Kind: "source", Params: map[string]string{"layout": rowTime, "time": "time", "bound": "5ns", "step": "10ns"}})
	var recs []rec
	for _, time := range []int64{3, 24, 26, 11, 25, 40, 26} {
		recs = append(recs, rec{row: at(time)})
	}
	for _, n := range []int{1, 3, len(recs)} {
		*w = Watermarks{time: w.time, bound: w.bound, step: w.step, highest: NoWatermark, last: NoWatermark}
		var got []string
		seen := 0
		for chunk := range slices.Chunk(recs, n) {
			c := columns(chunk)
			for from := 0; from < c.Len(); {
				to, wm, advanced := w.Next(c, from)
				if from = to; advanced {
					got = append(got, fmt.Sprintf("%d after %d", wm, seen+to))
				}
			}
			seen += len(chunk)
		}
		if want := []string{"-10 after 1", "10 after 2", "20 after 3", "30 after 6"}; !slices.Equal(got, want) {
			t.Errorf("runs of %d: %q, want %q", n, got, want)
		}
	}
	if NewWatermarks(&core.OperatorSpec{Kind: "source"}) != nil {
		t.Error("a source without event time makes watermarks")
	}
}

func TestBadParameters(t *testing.T) {
	for _, c := range []struct {
		kind string
		ps   map[string]string
		want string
	}{
		{"map", map[string]string{"where": "tme > 3"}, `parameter where: expression "tme > 3": no field "tme"`},
		{"map", map[string]string{"key": "'a'"}, "gives a text, want a number"},
		{"map", map[string]string{"size": "3"}, "a map has no such parameter; it has where"},
		{"map", map[string]string{"layout": "time i32@0"}, `type "i32", want u8, i64 or text`},
		{"map", map[string]string{"layout": "key i64@0"}, "the name is taken"},
		{"tumbling", nil, "parameter size: a tumbling needs it"},
		{"tumbling", map[string]string{"size": "-3s"}, "want at least"},
		{"sliding", map[string]string{"size": "10s", "slide": "3s"}, "multiple of the slide"},
		{"session", map[string]string{"gap": "soon"}, "parameter gap"},
		{"aggregate", map[string]string{"function": "median"}, `"median", want one of count, sum, max, min, avg`},
		{"top-k", map[string]string{"size": "1s"}, "parameter order"},
		{"top-k", map[string]string{"size": "1s", "order": "value", "k": "0"}, "want 1 to"},
		{"top-k", map[string]string{"size": "1s", "end": "value", "order": "value"}, "either a size or a named end"},
		{"join", map[string]string{"left": "1", "row": "1", "mode": "semi"}, "a semi join needs windows"},
		{"join", map[string]string{"left": "1", "row": "x.key"}, `no field "x.key"`},
		{"join", map[string]string{"left": "1", "row": "1", "size": "1s", "unique": "left"}, "belong to joins without windows"},
		{"over", map[string]string{"end": "due"}, "parameter n"},
		{"every", nil, "parameter n"},
		{"filter", map[string]string{"share": "NaN"}, "from 0 to 1"},
		{"source", map[string]string{"bound": "3s"}, "parameter time"},
		{"nothing", nil, `unknown kind "nothing"`},
	} {
		err := Check(&core.Job{Operators: []core.OperatorSpec{{Name: "op", Kind: c.kind, Params: c.ps}}})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "operator op: ") {
			t.Errorf("%s %v: %v, want %q", c.kind, c.ps, err, c.want)
		}
	}
}
