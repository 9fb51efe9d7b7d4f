package core

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 0, "seed of randomised tests (0: fresh)")

func newRand(t *testing.T) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repro: go test ./engine/core -run %s -seed %d", t.Name(), seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// TestOrderLog checks the run-length coded log against a plain list of inputs.
func TestOrderLog(t *testing.T) {
	r := newRand(t)
	for round := 0; round < 200; round++ {
		var l, held OrderLog
		var plain []int
		trimmed := 0
		for step := 0; step < 100; step++ {
			switch r.IntN(4) {
			case 0, 1:
				in, n := r.IntN(3), 1+r.IntN(5)
				l.Add(in, uint64(n))
				for i := 0; i < n; i++ {
					plain = append(plain, in)
				}
			case 2: // somebody who holds a part is sent the rest, sometimes with an overlap
				after := max(held.To(), uint64(trimmed))
				if after > uint64(trimmed) && r.IntN(2) == 0 {
					after -= r.Uint64N(after - uint64(trimmed) + 1)
				}
				if err := held.Merge(after, l.AppendSince(nil, after)); err != nil {
					if after <= held.To() {
						t.Fatal(err)
					}
					held.Reset(after)
				}
			case 3:
				if len(plain) > trimmed && held.To() > uint64(trimmed) {
					trimmed += r.IntN(int(held.To()) - trimmed + 1)
					l.Trim(uint64(trimmed))
				}
			}
			check(t, &l, plain)
			check(t, &held, plain)
		}
	}
}

func check(t *testing.T, l *OrderLog, plain []int) {
	t.Helper()
	pos := l.From()
	for _, run := range l.Runs() {
		for i := uint64(0); i < run.N; i++ {
			if plain[pos] != run.In {
				t.Fatalf("position %d: input %d, want %d", pos, run.In, plain[pos])
			}
			pos++
		}
	}
	if pos != l.To() {
		t.Fatalf("runs end at %d, To says %d", pos, l.To())
	}
}

func TestOrderLogRefusesAGap(t *testing.T) {
	var a, b OrderLog
	a.Add(0, 10)
	a.Trim(5)
	if err := b.Merge(5, a.AppendSince(nil, 5)); err == nil || b.To() != 0 {
		t.Errorf("a part that begins behind what is held was taken: %v, to %d", err, b.To())
	}
}

func sample(r *rand.Rand) *Batch {
	b := &Batch{Channel: r.IntN(100), Epoch: r.Uint32(), First: r.Uint64() >> 8, OrderAfter: r.Uint64() >> 8}
	switch r.IntN(4) {
	case 0:
		b.Kind, b.Count = KindControl, 1
		b.Control = Control{Type: ControlType(1 + r.IntN(int(ctlEnd)-1)), ID: r.Uint64(), Body: []byte("body"[:r.IntN(5)])}
		b.Order = []byte{1, 2, 3}
		return b
	case 1:
		b.Kind, b.First, b.OrderAfter = KindAck, 0, 0
		b.Ack = Ack{Next: r.Uint64(), Consumed: r.Uint64(), Limit: r.Uint64(), Resync: r.IntN(2) == 0, From: r.IntN(9)}
		return b
	case 2:
		b.Kind, b.OrderAfter = KindMessage, 0
		b.Ext = []byte(`{"Type":"hello"}`)
		return b
	}
	b.Kind = KindRecords
	n := 1 + r.IntN(20)
	vals, ext := r.IntN(2) == 0, r.IntN(2) == 0
	for i := 0; i < n; i++ {
		b.Keys, b.Times = append(b.Keys, r.Uint64()), append(b.Times, r.Int64())
		if vals {
			b.Vals = append(b.Vals, r.Int64())
		}
		if ext {
			b.AppendPayload(bytes.Repeat([]byte{byte(i)}, r.IntN(4)))
		}
	}
	b.Count = n
	return b
}

func TestFrameRoundTrip(t *testing.T) {
	r := newRand(t)
	var p Pool
	for i := 0; i < 2000; i++ {
		want := sample(r)
		frame := AppendFrame([]byte("before"), want)[len("before"):]
		got := p.Get()
		if err := DecodeFrame(got, frame); err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		if again := AppendFrame(nil, got); !bytes.Equal(again, frame) {
			t.Fatalf("kind %d: encoding what was decoded gives other bytes", want.Kind)
		}
		if got.Len() != want.Len() || got.Ack != want.Ack || got.Control.ID != want.Control.ID || got.First != want.First {
			t.Fatalf("decoded %+v, want %+v", got, want)
		}
		for k := range want.Keys {
			if !bytes.Equal(got.Payload(k), want.Payload(k)) || got.Keys[k] != want.Keys[k] || got.Times[k] != want.Times[k] {
				t.Fatalf("record %d differs", k)
			}
		}
		got.Release()
	}
	if p.Made != 1 {
		t.Errorf("the pool made %d batches for one at a time", p.Made)
	}
}

func FuzzDecodeFrame(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := 0; i < 20; i++ {
		f.Add(AppendFrame(nil, sample(r)))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		var b Batch
		if err := DecodeFrame(&b, p); err != nil {
			return
		}
		for i := range b.Keys {
			_ = b.Payload(i)
		}
		var c Batch
		if err := DecodeFrame(&c, AppendFrame(nil, &b)); err != nil {
			t.Fatalf("what was decoded does not survive encoding: %v", err)
		}
	})
}

func FuzzRouteChange(f *testing.F) {
	f.Add(AppendRouteChange(nil, &RouteChange{Version: 3, Operator: 1, Moves: []Move{{5, 0, 1}, {9, 1, 0}}}))
	f.Fuzz(func(t *testing.T, p []byte) {
		c, err := DecodeRouteChange(p)
		if err != nil {
			return
		}
		again, err := DecodeRouteChange(AppendRouteChange(nil, c))
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("%+v came back as %+v, %v", c, again, err)
		}
	})
}

func FuzzOrderMerge(f *testing.F) {
	f.Add(uint64(0), []byte{0, 3, 1, 200, 1})
	f.Fuzz(func(t *testing.T, after uint64, p []byte) {
		var l OrderLog
		l.Reset(after)
		if l.Merge(after, p) == nil && l.To() >= l.From() && !bytes.Equal(l.AppendSince(nil, after), l.AppendSince(nil, l.From())) {
			t.Fatal("two encodings of one log")
		}
	})
}

// TestKeyGroupArithmetic checks the published arithmetic of dealing groups to workers in ranges.
func TestKeyGroupArithmetic(t *testing.T) {
	for _, c := range []struct {
		groups, tasks int
		want          map[int]int // groups owned → tasks that own so many
	}{
		{256, 100, map[int]int{3: 56, 2: 44}},
		{256, 170, map[int]int{2: 86, 1: 84}},
		{128, 129, map[int]int{1: 128, 0: 1}},
		{128, 200, map[int]int{1: 128, 0: 72}},
	} {
		r := NewRoutes(uint32(c.groups), c.tasks)
		got := map[int]int{}
		for task := 0; task < c.tasks; task++ {
			got[len(r.Owned(task))]++
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d groups on %d tasks: %v, want %v", c.groups, c.tasks, got, c.want)
		}
	}
	if r := NewRoutes(720, 20); r.Task[193] != 5 || r.Owned(5)[0] != 180 || r.Owned(5)[35] != 215 {
		t.Errorf("group 193 of 720 on 20 tasks belongs to %d", r.Task[193])
	}
}

// TestHashIsTheSameInEveryProcess routes the same keys in two fresh processes.
func TestHashIsTheSameInEveryProcess(t *testing.T) {
	if os.Getenv("WEIR_PRINT_HASH") != "" {
		for i := 0; i < 1000; i++ {
			fmt.Println(KeyGroup(HashBytes(fmt.Appendf(nil, "key-%d", i)), 720))
		}
		return
	}
	run := func() []byte {
		cmd := exec.Command(os.Args[0], "-test.run", "TestHashIsTheSameInEveryProcess")
		cmd.Env = append(os.Environ(), "WEIR_PRINT_HASH=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Split(out, []byte("PASS"))[0]
	}
	if a, b := run(), run(); !bytes.Equal(a, b) || bytes.Count(a, []byte("\n")) < 1000 {
		t.Error("two processes route the same keys to different groups")
	}
}

func TestRoutesApply(t *testing.T) {
	r := NewRoutes(8, 2)
	if err := r.Apply(&RouteChange{Version: 1, Moves: []Move{{0, 0, 1}, {7, 1, 0}}}); err != nil || r.Task[0] != 1 || r.Task[7] != 0 {
		t.Fatalf("apply: %v, %v", err, r.Task)
	}
	before := r.Clone()
	for _, c := range []*RouteChange{
		{Version: 1, Moves: []Move{{1, 0, 1}}},            // not the next version
		{Version: 2, Moves: []Move{{0, 0, 1}}},            // not the owner any more
		{Version: 2, Moves: []Move{{99, 0, 1}}},           // no such group
		{Version: 2, Moves: []Move{{1, 0, 1}, {1, 1, 0}}}, // the second part does not fit
	} {
		if err := r.Apply(c); err == nil || !reflect.DeepEqual(r, before) {
			t.Errorf("%+v was applied: %v", c, r.Task)
		}
	}
}

func TestBuildGraphRefuses(t *testing.T) {
	kinds := func(k string) (KindInfo, bool) {
		m := map[string]KindInfo{"source": {Source: true}, "count": {Keyed: true}, "sink": {Sink: true}}
		i, ok := m[k]
		return i, ok
	}
	good := Job{Workers: 2, Operators: []OperatorSpec{{Name: "a", Kind: "source", Parallelism: 1},
		{Name: "b", Kind: "count", Parallelism: 2, Groups: 4, Inputs: []string{"a"}}, {Name: "c", Kind: "sink", Parallelism: 2, Inputs: []string{"b"}}}}
	g, err := BuildGraph(good, kinds)
	if err != nil || len(g.Tasks) != 5 {
		t.Fatal(err)
	}
	for what, breakIt := range map[string]func(j *Job){
		"unknown kind":      func(j *Job) { j.Operators[0].Kind = "x" },
		"no parallelism":    func(j *Job) { j.Operators[0].Parallelism = 0 },
		"too few groups":    func(j *Job) { j.Operators[1].Groups = 1 },
		"unknown input":     func(j *Job) { j.Operators[1].Inputs = []string{"z"} },
		"same name":         func(j *Job) { j.Operators[1].Name = "a" },
		"source with input": func(j *Job) { j.Operators[0].Inputs = []string{"c"} },
		"count without":     func(j *Job) { j.Operators[1].Inputs = nil },
		"place":             func(j *Job) { j.Operators[1].Place = []int{0, 2} },
		"places":            func(j *Job) { j.Operators[1].Place = []int{0} },
	} {
		var j Job
		raw, _ := json.Marshal(good)
		if err := json.Unmarshal(raw, &j); err != nil {
			t.Fatal(err)
		}
		breakIt(&j)
		if _, err := BuildGraph(j, kinds); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
