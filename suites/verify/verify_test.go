package verify

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/workloads"
)

// answer is one output of a keyed count.
type answer struct {
	key     uint64
	value   int64
	channel int
	epoch   uint32
}

// counted returns the right answers to a stream, in order, from one channel in epoch 1, and the golden counts.
func counted(keys, records uint64) ([]answer, *workloads.Tally) {
	golden := &workloads.Tally{}
	var out []answer
	for i := range records {
		key := i * 7 % keys
		golden.Add(key, 1)
		out = append(out, answer{key, int64(golden.Count(key)), 3, 1})
	}
	return out, golden
}

// check gives answers to an oracle one batch at a time and returns its count and the positions of repeats.
func check(kind Kind, golden *workloads.Tally, answers []answer) (Answers, int) {
	o, repeats := New(kind, 4), 0
	for from := 0; from < len(answers); {
		to := from
		var keys []uint64
		var values []int64
		for to < len(answers) && to < from+7 && answers[to].channel == answers[from].channel && answers[to].epoch == answers[from].epoch {
			keys, values = append(keys, answers[to].key), append(values, answers[to].value)
			to++
		}
		repeats += len(o.Check(answers[from].channel, answers[from].epoch, keys, values))
		from = to
	}
	return o.Answers(golden, 1), repeats
}

// plant is a way to make right answers wrong, and what must be found.
type plant struct {
	name string
	do   func(a []answer) []answer
	want Answers // beside Expected and Answered
	// breaks are the promises that it breaks.
	breaks []recovery.Promise
}

func plants() []plant {
	all := []recovery.Promise{recovery.Gap, recovery.Rollback, recovery.Precise}
	find := func(a []answer, key uint64, value int64) int {
		return slices.IndexFunc(a, func(x answer) bool { return x.key == key && x.value == value })
	}
	return []plant{
		{"nothing", func(a []answer) []answer { return a }, Answers{}, nil},
		{"one lost in the middle", func(a []answer) []answer { i := find(a, 5, 3); return slices.Delete(a, i, i+1) }, Answers{Lost: 1}, all[1:]},
		{"the last one lost", func(a []answer) []answer { return a[:len(a)-1] }, Answers{Lost: 1}, all[1:]},
		{"a key lost whole", func(a []answer) []answer {
			return slices.DeleteFunc(a, func(x answer) bool { return x.key == 5 })
		}, Answers{Lost: 20}, all[1:]},
		{"one twice in a row", func(a []answer) []answer { i := find(a, 5, 3); return slices.Insert(a, i, a[i]) }, Answers{Duplicated: 1}, all[2:]},
		{"replay in a new epoch", func(a []answer) []answer {
			replay := slices.Clone(a[100:])
			for i := range replay {
				replay[i].epoch = 2
			}
			return append(a[:150:150], replay...)
		}, Answers{Duplicated: 50}, all[2:]},
		{"replay in the same epoch", func(a []answer) []answer {
			return append(a[:150:150], a[100:]...)
		}, Answers{Duplicated: 50, Reordered: 1}, all},
		{"a count too high", func(a []answer) []answer { a[find(a, 5, 20)].value = 21; return a }, Answers{Lost: 1, Wrong: 1}, all},
		{"a count of zero", func(a []answer) []answer { a[find(a, 5, 3)].value = 0; return a }, Answers{Lost: 1, Wrong: 1}, all},
		{"a negative count", func(a []answer) []answer { a[find(a, 5, 3)].value = -3; return a }, Answers{Lost: 1, Wrong: 1}, all},
		{"a key nobody sent", func(a []answer) []answer { return append(a, answer{1 << 40, 1, 3, 1}) }, Answers{Wrong: 1}, all},
		{"state lost: counting begins anew", func(a []answer) []answer {
			for i := range a {
				if a[i].key == 5 && a[i].value > 15 {
					a[i].value -= 15
				}
			}
			return a
		}, Answers{Lost: 5, Duplicated: 5, Reordered: 1}, all},
		{"two of a key changed places", func(a []answer) []answer {
			i, j := find(a, 5, 3), find(a, 5, 4)
			a[i], a[j] = a[j], a[i]
			return a
		}, Answers{Reordered: 1}, all},
		{"two of a key changed places over two channels", func(a []answer) []answer {
			i, j := find(a, 5, 3), find(a, 5, 4)
			a[i], a[j] = a[j], a[i]
			a[i].channel = 4
			return a
		}, Answers{}, nil},
	}
}

// TestPlantedWrongAnswers shows that each kind of wrong answer is found, counted, and judged.
func TestPlantedWrongAnswers(t *testing.T) {
	for _, p := range plants() {
		t.Run(p.name, func(t *testing.T) {
			right, golden := counted(10, 200)
			if golden.Count(5) != 20 {
				t.Fatalf("key 5 comes %d times; the plants count on 20", golden.Count(5))
			}
			got, repeats := check(RunningCount, golden, p.do(right))
			if got.Expected != 200 || got.Answered+got.Lost != 200 || !got.OrderKnown {
				t.Errorf("the account does not add up: %+v", got)
			}
			if got.Lost != p.want.Lost || got.Duplicated != p.want.Duplicated || got.Wrong != p.want.Wrong {
				t.Errorf("got %+v, want %+v", got, p.want)
			}
			// How many answers of a replay lie before the one that came last depends on the keys; that there are some does not.
			if (got.Reordered > 0) != (p.want.Reordered > 0) {
				t.Errorf("%d reordered, want %d", got.Reordered, p.want.Reordered)
			}
			if uint64(repeats) < got.Duplicated {
				t.Errorf("%d repeats told, %d answers duplicated", repeats, got.Duplicated)
			}
			for _, promise := range []recovery.Promise{recovery.Gap, recovery.Rollback, recovery.Precise} {
				broken := Judge(promise, true, got)
				if (broken != "") != slices.Contains(p.breaks, promise) {
					t.Errorf("promise %s: %q", promise, broken)
				}
			}
		})
	}
}

// TestJudgeWithoutFailure shows that a weak promise is no licence while nothing fails.
func TestJudgeWithoutFailure(t *testing.T) {
	got := Judge(recovery.Gap, false, Answers{Expected: 10, Answered: 9, Lost: 1})
	if !strings.Contains(got, "1 lost of 10 answers") {
		t.Errorf("%q", got)
	}
}

// TestHandOver shows that answers out of order are counted apart while their key is handed over, and only then.
func TestHandOver(t *testing.T) {
	o := New(RunningCount, 4)
	put := func(key uint64, value int64) { o.Check(1, 1, []uint64{key}, []int64{value}) }
	for v := range int64(3) {
		put(7, v+1)
		put(8, v+1)
	}
	o.HandOver(func(key uint64) bool { return key == 7 })
	put(7, 5)
	put(7, 4) // the old owner's last answer comes behind the new owner's first
	put(8, 5)
	put(8, 4)
	o.HandOver(nil)
	put(7, 7)
	put(7, 6)
	golden := &workloads.Tally{}
	golden.Add(7, 7)
	golden.Add(8, 5)
	if a := o.Answers(golden, 1); a.AtHandOver != 1 || a.Reordered != 2 || a.Lost != 0 || a.Duplicated != 0 {
		t.Errorf("%+v, want one at the hand-over and two reordered", a)
	}
}

// TestAnyOrderOverChannels gives right answers by several channels in a random order between them: nothing is wrong.
func TestAnyOrderOverChannels(t *testing.T) {
	const seed = 11
	right, golden := counted(50, 5000)
	r := rand.New(rand.NewPCG(seed, 1))
	queues := make([][]answer, 4)
	for _, a := range right {
		a.channel = r.IntN(len(queues))
		queues[a.channel] = append(queues[a.channel], a)
	}
	var mixed []answer
	for len(mixed) < len(right) {
		q := r.IntN(len(queues))
		if n := min(len(queues[q]), 1+r.IntN(20)); n > 0 {
			mixed, queues[q] = append(mixed, queues[q][:n]...), queues[q][n:]
		}
	}
	got, repeats := check(RunningCount, golden, mixed)
	if want := (Answers{Expected: 5000, Answered: 5000, OrderKnown: true}); got != want || repeats != 0 {
		t.Errorf("%+v with %d repeats, want %+v (seed %d)", got, repeats, want, seed)
	}
}

func TestPassedOn(t *testing.T) {
	right, golden := counted(10, 200)
	got, _ := check(PassedOn, golden, right)
	if want := (Answers{Expected: 200, Answered: 200}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	got, _ = check(PassedOn, golden, append(right[1:], right[5], answer{1 << 40, 1, 3, 1}))
	if got.Lost != 1 && right[0].key != right[5].key || got.Wrong != 1 || got.Lost+got.Answered != 200 {
		t.Errorf("%+v", got)
	}
}

func TestExpect(t *testing.T) {
	op := func(name, kind string, inputs ...string) core.OperatorSpec {
		return core.OperatorSpec{Name: name, Kind: kind, Inputs: inputs, Parallelism: 1, Groups: 8}
	}
	job := &core.Job{Operators: []core.OperatorSpec{op("in", "source"), op("a", "forward", "in"), op("b", "forward", "in"),
		op("count", "count", "a", "b"), op("out", "sink", "count"), op("raw", "sink", "a")}}
	got, err := Expect(job)
	want := []Expectation{{4, RunningCount, 2}, {5, PassedOn, 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	job.Operators[3].Kind = "sum"
	if _, err := Expect(job); err == nil || !strings.Contains(err.Error(), "no golden answer") {
		t.Errorf("sum: %v", err)
	}
}

// TestGoldenOfSplits compares the counts of a stream with those of its splits.
func TestGoldenOfSplits(t *testing.T) {
	w, err := workloads.Open(workloads.Spec{Kind: workloads.KindZipf, Keys: 100, Exponent: 1, Rate: 1000, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	splits := []workloads.Stream{workloads.Split(w, 0, 3), workloads.Split(w, 1, 3), workloads.Split(w, 2, 3)}
	whole, parts := Golden([]workloads.Stream{w}, []uint64{3001}), Golden(splits, []uint64{1001, 1000, 1000})
	if whole.Total() != 3001 || parts.Total() != 3001 {
		t.Fatalf("totals %d and %d", whole.Total(), parts.Total())
	}
	for key, n := range whole.All() {
		if parts.Count(key) != n {
			t.Errorf("key %d: %d in the whole, %d in the parts", key, n, parts.Count(key))
		}
	}
}

// The promise of a job is that of its weakest task with the sinks that its loss reaches; what was observed is compared
// with it.
func TestPromise(t *testing.T) {
	for _, c := range []struct {
		in, count, scope string
		transactional    bool
		want             recovery.Promise
	}{
		{"none", "none", "", false, recovery.Gap},
		{"active", "active", "", false, recovery.Precise},
		{"active", "passive", "", false, recovery.Precise},
		{"active", "none", "", false, recovery.Gap},
		{"checkpoint", "checkpoint", "", false, recovery.Rollback},
		{"checkpoint", "checkpoint", "global", true, recovery.Precise},
		{"checkpoint", "checkpoint", "region", false, recovery.Rollback},
		{"checkpoint", "checkpoint", "task", false, recovery.Precise},
		{"checkpoint", "active", "", false, recovery.Rollback},
	} {
		op := func(name, kind, strategy string, inputs ...string) core.OperatorSpec {
			o := core.OperatorSpec{Name: name, Kind: kind, Inputs: inputs, Parallelism: 1, Recovery: strategy}
			if strategy == "checkpoint" {
				o.Scope = c.scope
			}
			return o
		}
		job := core.Job{Workers: 2, Operators: []core.OperatorSpec{op("in", "source", c.in), op("n", "count", c.count, "in"), op("out", "sink", c.in, "n")}}
		job.Operators[1].Groups, job.Operators[2].Transactional = 8, c.transactional
		g, err := core.BuildGraph(job, operator.Info)
		if err != nil {
			t.Fatal(err)
		}
		if got := Promise(g).Output; got != c.want {
			t.Errorf("%+v: promised %s", c, got)
		}
	}
	for want, a := range map[recovery.Promise]Answers{recovery.Precise: {Expected: 9, Answered: 9}, recovery.Rollback: {Duplicated: 1}, recovery.Gap: {Lost: 1, Duplicated: 1}} {
		if got := Observed(a); got != want {
			t.Errorf("%+v: observed %s, want %s", a, got, want)
		}
	}
}

// BenchmarkCheck is the record path of the oracle: uniform keys, every answer the next of its key.
func BenchmarkCheck(b *testing.B) {
	const keys, batch = 100_000, 4096
	o := New(RunningCount, keys)
	next := make([]int64, keys)
	ks, vs := make([]uint64, batch), make([]int64, batch)
	r := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for done := 0; b.Loop(); done += batch {
		b.StopTimer()
		for i := range ks {
			k := r.IntN(keys)
			next[k]++
			ks[i], vs[i] = core.Mix64(uint64(k)), next[k]
		}
		b.StartTimer()
		o.Check(1, 1, ks, vs)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/record")
}
