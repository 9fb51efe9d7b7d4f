package task

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// bench is one worker with a keyed count that reads two sources elsewhere.
type bench struct {
	w   *Worker
	now int64
	e   Effects
	// next number and channel of each source's channel to the count
	ch   []int
	next []uint64
}

const (
	countTask = 2
	otherNode = 9
)

func newBench(t testing.TB, change func(j *core.Job)) *bench {
	t.Helper()
	job := core.Job{ID: "t", Workers: 2, Operators: []core.OperatorSpec{
		{Name: "a", Kind: "source", Parallelism: 1}, {Name: "b", Kind: "source", Parallelism: 1},
		{Name: "count", Kind: "count", Parallelism: 1, Groups: 4, ValueBytes: 8, Inputs: []string{"a", "b"}},
		{Name: "out", Kind: "sink", Parallelism: 1, Inputs: []string{"count"}}}}
	if change != nil {
		change(&job)
	}
	b := &bench{now: 1}
	b.w = NewWorker(1, func() int64 { return b.now })
	places := []core.Place{{Task: 0, Node: otherNode, Standby: -1, Epoch: 1}, {Task: 1, Node: otherNode, Standby: -1, Epoch: 1},
		{Task: 2, Node: 1, Standby: -1, Epoch: 1}, {Task: 3, Node: otherNode, Standby: -1, Epoch: 1}}
	routes := []*core.Routes{nil, nil, core.NewRoutes(job.Operators[2].Groups, 1), nil}
	b.w.Message(&core.Msg{Type: core.MsgDeploy, Epoch: 1, Job: &job, Places: places, Routes: routes,
		Tasks: []core.Deployment{{Task: countTask, Role: core.RolePrimary, Epoch: 1}}}, &b.e)
	b.w.Message(&core.Msg{Type: core.MsgStart, Epoch: 1}, &b.e)
	for _, c := range b.w.graph.Channels {
		if c.Kind == core.ChanData && c.To == countTask {
			b.ch, b.next = append(b.ch, c.ID), append(b.next, 1)
		}
	}
	if len(b.ch) != 2 {
		t.Fatalf("%d channels into the count, want 2", len(b.ch))
	}
	out := b.w.tasks[countTask].outs[0]
	out.acknowledge(core.Ack{Next: 1, Limit: 1 << 20, From: otherNode, Resync: true})
	return b
}

// records sends n records of one key on source s's channel.
func (b *bench) records(s, n int) {
	m := b.w.pool.Get()
	m.Kind, m.Channel, m.Epoch, m.First, m.Count, m.ArrivedNS = core.KindRecords, b.ch[s], 1, b.next[s], n, b.now
	for i := 0; i < n; i++ {
		m.Keys, m.Times = append(m.Keys, 7), append(m.Times, b.now)
	}
	b.next[s] += uint64(n)
	b.w.Frame(m, &b.e)
	m.Release()
}

func (b *bench) control(s int, c core.Control) {
	m := b.w.pool.Get()
	m.Kind, m.Channel, m.Epoch, m.First, m.Count, m.Control = core.KindControl, b.ch[s], 1, b.next[s], 1, c
	b.next[s]++
	b.w.Frame(m, &b.e)
	m.Release()
}

func (b *bench) count(t *testing.T) uint64 {
	t.Helper()
	v, ok := b.w.tasks[countTask].ctx.State.Get(core.KeyGroup(7, 4), 7)
	if !ok {
		return 0
	}
	return binary.LittleEndian.Uint64(v)
}

// TestAlignment is the barrier arithmetic that users ask about: input 1 gives 3 records, a barrier and 4 more at once,
// input 2 is slow with 5 records and its barrier. Aligned, the snapshot holds 8 and the run ends at 12.
func TestAlignment(t *testing.T) {
	b := newBench(t, nil)
	b.records(0, 3)
	b.control(0, core.Control{Type: core.CtlBarrier, ID: 1})
	b.records(0, 4)
	b.w.Run(&b.e)
	if got := b.count(t); got != 3 {
		t.Fatalf("count %d before the second barrier, want 3: the aligned input waits", got)
	}
	b.records(1, 5)
	b.control(1, core.Control{Type: core.CtlBarrier, ID: 1})
	b.w.Run(&b.e)
	if len(b.e.Snapshots) != 1 {
		t.Fatalf("%d snapshots, want 1", len(b.e.Snapshots))
	}
	snap := b.e.Snapshots[0]
	if got := b.count(t); got != 12 {
		t.Errorf("final count %d, want 12", got)
	}
	chunks := [][]byte{}
	for {
		chunk, _, _, done := snap.State.Next(nil, 1<<16)
		if done {
			break
		}
		chunks = append(chunks, append([]byte(nil), chunk...))
	}
	replay := newBench(t, nil)
	for g, c := range chunks {
		if err := replay.w.tasks[countTask].ctx.State.Install(uint32(g), c); err != nil {
			t.Fatal(err)
		}
	}
	if got := replay.count(t); got != 8 {
		t.Errorf("the snapshot holds %d, want 8", got)
	}
	// After a crash the records behind the barriers come again.
	replay.records(0, 4)
	replay.w.Run(&replay.e)
	if got := replay.count(t); got != 12 {
		t.Errorf("after the replay %d, want 12", got)
	}
}

// TestInAcceptsByNumber drops what was seen, cuts what was seen in part, asks once for what is missing and refuses what
// is fenced.
func TestInAcceptsByNumber(t *testing.T) {
	var p core.Pool
	job := core.Job{}.WithDefaults()
	in := NewIn(core.Channel{ID: 1, Kind: core.ChanData}, 2, 1, []int{9}, &job)
	batch := func(epoch uint32, first uint64, n int) *core.Batch {
		b := p.Get()
		b.Kind, b.Epoch, b.First, b.Count = core.KindRecords, epoch, first, n
		for i := 0; i < n; i++ {
			b.Keys, b.Times = append(b.Keys, first+uint64(i)), append(b.Times, 0)
		}
		return b
	}
	give := func(epoch uint32, first uint64, n int) bool {
		b := batch(epoch, first, n)
		defer b.Release()
		return in.Accept(b, false, false)
	}
	steps := []struct {
		epoch        uint32
		first        uint64
		n            int
		resync       bool
		next, queued uint64
	}{
		{2, 1, 3, false, 4, 3}, // fresh
		{2, 1, 3, false, 4, 3}, // seen
		{2, 3, 3, false, 6, 5}, // seen in part
		{2, 9, 1, true, 6, 5},  // a gap: ask
		{2, 10, 1, false, 6, 5},
		{1, 6, 4, false, 6, 5}, // fenced
		{3, 6, 4, false, 6, 5}, // a deployment that is not known yet
		{2, 6, 4, false, 10, 9},
	}
	for i, s := range steps {
		if resync := give(s.epoch, s.first, s.n); resync != s.resync || in.next != s.next || in.queued != s.queued {
			t.Fatalf("step %d: resync %v, next %d, queued %d; want %+v", i, resync, in.next, in.queued, s)
		}
	}
	if in.Fenced != 1 || in.Dups != 2 {
		t.Errorf("fenced %d, dups %d, want 1 and 2", in.Fenced, in.Dups)
	}
	want := uint64(1)
	for b, off := in.peek(); b != nil; b, off = in.peek() {
		if b.Keys[off] != want {
			t.Fatalf("consumed %d, want %d", b.Keys[off], want)
		}
		want++
		in.take(1)
	}
	if want != 10 || in.Consumed() != 9 {
		t.Errorf("consumed to %d, want 9", in.Consumed())
	}
}

// TestOutIsBounded says that a sender without a receiver's room becomes full, and that acks make room again.
func TestOutIsBounded(t *testing.T) {
	var p core.Pool
	o := NewOut(core.Channel{ID: 1, Kind: core.ChanData}, 1, 1)
	o.SetReceivers([]int{5})
	fill := func() (n int) {
		for !o.full(1 << 30) {
			b := o.batch(&p)
			b.Keys, b.Times = append(b.Keys, 1), append(b.Times, 1)
			o.seal()
			if n++; n > 1<<20 {
				t.Fatal("never full")
			}
		}
		return n
	}
	fill()
	sent := 0
	send := func(int, *core.Batch) { sent++ }
	o.transmit(send)
	if sent > 0 {
		t.Fatal("sent to a receiver that has not said what it wants")
	}
	o.acknowledge(core.Ack{Next: 1, Limit: 100, From: 5, Resync: true})
	o.transmit(send)
	if sent != 100 {
		t.Errorf("sent %d inputs into a window of 100", sent)
	}
	o.acknowledge(core.Ack{Next: 101, Consumed: 100, Limit: 1 << 20, From: 5})
	o.transmit(send)
	if o.full(1<<30) || o.log[o.head].First != 101 {
		t.Errorf("still full, or consumed inputs are kept")
	}
	if !o.full(o.logBytes - 1) {
		t.Error("the bound in bytes does not hold")
	}
}

// TestServiceTimes checks the distributions' means: they decide load.
func TestServiceTimes(t *testing.T) {
	for _, d := range []core.Service{{Distribution: "constant"}, {Distribution: "exponential"}, {Distribution: "lognormal", Sigma: 0.8}} {
		d.Mean = 20 * time.Microsecond
		var sum float64
		const n = 200_000
		for i := uint64(0); i < n; i++ {
			v := serviceNS(&d, 42, i%1000, i)
			if v < 0 || v != serviceNS(&d, 42, i%1000, i) {
				t.Fatal("negative, or not a function of its arguments")
			}
			sum += float64(v)
		}
		if mean := sum / n; math.Abs(mean-20_000) > 300 {
			t.Errorf("%s: mean %.0f ns, want 20000", d.Distribution, mean)
		}
	}
}

// TestTimedServiceIsAQueue says that a timed task is a single server: n records that arrive together leave one mean
// apart, however late it is woken.
func TestTimedServiceIsAQueue(t *testing.T) {
	b := newBench(t, func(j *core.Job) {
		j.Operators[2].Service = core.Service{Mode: core.ServiceTimed, Distribution: "constant", Mean: time.Millisecond}
	})
	b.records(0, 10)
	b.e.Reset()
	b.w.Run(&b.e)
	if b.count(t) != 0 || b.e.WakeNS != 1+int64(time.Millisecond) {
		t.Fatalf("count %d, wake at %d before any service time has passed", b.count(t), b.e.WakeNS)
	}
	for _, step := range []struct {
		at   time.Duration
		want uint64
	}{{time.Millisecond, 1}, {3500 * time.Microsecond, 3}, {9 * time.Millisecond, 9}, {50 * time.Millisecond, 10}} {
		b.now = 1 + int64(step.at)
		b.e.Reset()
		b.w.Run(&b.e)
		if got := b.count(t); got != step.want {
			t.Errorf("after %v: %d served, want %d", step.at, got, step.want)
		}
	}
}

// TestNoAllocationABatch says that a task in steady state allocates nothing for the batches it works on.
func TestNoAllocationABatch(t *testing.T) {
	b := newBench(t, nil)
	out := b.w.tasks[countTask].outs[0]
	step := func() {
		b.e.Reset()
		b.records(0, 100)
		b.records(1, 100)
		b.w.Run(&b.e)
		out.acknowledge(core.Ack{Next: out.next, Consumed: out.next - 1, Limit: out.next + 1<<16, From: otherNode})
		for _, s := range b.e.Sends {
			s.B.Release()
		}
		b.now += 1000
	}
	for i := 0; i < 100; i++ {
		step()
	}
	if n := testing.AllocsPerRun(500, step); n > 0 {
		t.Errorf("%.1f allocations a step of two batches, want 0", n)
	}
}
