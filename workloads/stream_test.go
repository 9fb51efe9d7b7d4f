package workloads

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

func mustOpen(t testing.TB, spec Spec) *Workload {
	t.Helper()
	w, err := Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// specs are small workloads of every kind that needs no file.
func specs() map[string]Spec {
	return map[string]Spec{
		"uniform": {Kind: KindUniform, Keys: 1000, Rate: 5000, Seed: 1, Arrivals: Arrivals{Kind: ArriveConstant}},
		"square":  {Keys: 10, Rate: 5000, Arrivals: Arrivals{Kind: ArriveSquare, High: 100 * time.Millisecond, Period: 300 * time.Millisecond}},
		"ramp":    {Keys: 10, Rate: 5000, Arrivals: Arrivals{Kind: ArriveRamp, High: 2 * time.Second}},
		"step":    {Keys: 300, Rate: 5000, Changes: []Change{{Kind: ChangeStep, At: time.Second, HotKeys: 0.1, HotLoad: 0.9}}},
		"zipf":    {Kind: KindZipf, Keys: 100_000, Exponent: 0.99, Rate: 5000, Seed: 2, Scramble: true},
		"hotset":  {Kind: KindHotSet, Keys: 1000, HotKeys: 0.2, HotLoad: 0.8, Rate: 5000, Arrivals: Arrivals{Kind: ArrivePoisson}},
		"shares":  {Kind: KindShares, Keys: 5, Shares: []float64{0.5, 0.3}, Rate: 5000, Value: Value{Kind: "uniform", Max: 9}},
		"cycle":   {Kind: KindCycle, Keys: 12, Rate: 5000, Value: Value{Kind: "index"}},
		"book":    {Kind: KindBook, Rate: 50_000, Value: Value{Kind: "one"}},
		"payload": {Keys: 10, Rate: 5000, Payload: Measure{Kind: "exponential", Mean: 40}, Value: Value{Kind: "flag", Share: 0.3}},
		"changes": {Kind: KindZipf, Keys: 500, Exponent: 0.5, Rate: 5000, Changes: []Change{
			{Kind: ChangeFlash, At: time.Second, For: time.Second, Key: 3, Share: 0.4},
			{Kind: ChangeDrift, At: 200 * time.Millisecond, For: 2 * time.Second, Exponent: 1.5},
			{Kind: ChangeSwap, At: 0, Every: 300 * time.Millisecond},
		}},
		"grow": {Kind: KindUniform, Keys: 900, Rate: 5000, Arrivals: Arrivals{Kind: ArriveFlash, High: time.Second, At: time.Second},
			Changes: []Change{{Kind: ChangeGrow, From: 10, For: 2 * time.Second}}},
		"mmpp":         {Keys: 10, Rate: 1000, Arrivals: Arrivals{Kind: ArriveMMPP, High: 100 * time.Millisecond, Period: time.Second}},
		"self-similar": {Keys: 10, Rate: 5000, Arrivals: Arrivals{Kind: ArriveSelfSimilar, Hurst: 0.8}},
		"pareto":       {Keys: 10, Rate: 5000, Arrivals: Arrivals{Kind: ArrivePareto, Shape: 0.15}},
		"nexmark":      {Kind: KindNEXMark, Rate: 5000},
		"ysb":          {Kind: KindYSB, Rate: 5000},
		"shufflebench": {Kind: KindShuffleBench, Rate: 5000},
		"sine":         {Keys: 10, Rate: 5000, Arrivals: Arrivals{Kind: ArriveSine, Period: time.Second}},
	}
}

func equal(a, b *core.Columns) error {
	switch {
	case !slices.Equal(a.Keys, b.Keys):
		return fmt.Errorf("keys differ")
	case !slices.Equal(a.Times, b.Times):
		return fmt.Errorf("times differ")
	case !slices.Equal(a.Vals, b.Vals):
		return fmt.Errorf("values differ")
	case len(a.Off) != len(b.Off):
		return fmt.Errorf("%d payload offsets against %d", len(a.Off), len(b.Off))
	}
	for i := range a.Len() {
		if !slices.Equal(a.Payload(i), b.Payload(i)) {
			return fmt.Errorf("payload %d differs", i)
		}
	}
	return nil
}

// TestStreamIsAFunctionOfTheRecordNumber reads each stream in order, in odd
// pieces, by splits, and after a second Open.
func TestStreamIsAFunctionOfTheRecordNumber(t *testing.T) {
	const n = 12_000
	for name, spec := range specs() {
		w := mustOpen(t, spec)
		var all core.Columns
		w.Fill(&all, 0, n)
		if all.Len() != n || len(all.Times) != n || !slices.IsSorted(all.Times) {
			t.Fatalf("%s: %d keys, %d times, sorted %t", name, all.Len(), len(all.Times), slices.IsSorted(all.Times))
		}
		if len(all.Off) != 0 && len(all.Off) != n+1 {
			t.Fatalf("%s: %d payload offsets", name, len(all.Off))
		}
		for _, at := range []int{11_000, 3, 5000} {
			var part, want core.Columns
			again := mustOpen(t, spec)
			again.Fill(&part, uint64(at), 100)
			again.Fill(&part, uint64(at+100), 1)
			for i := at; i < at+101; i++ {
				want.Append(&all, i)
			}
			if err := equal(&part, &want); err != nil {
				t.Errorf("%s: records from %d: %v", name, at, err)
			}
		}
		for _, splits := range []int{1, 3} {
			for s := range splits {
				sp := Split(Split(w, 0, 1), s, splits)
				var part, want core.Columns
				sp.Fill(&part, 0, n/splits)
				for i := s; i < n; i += splits {
					want.Append(&all, i)
				}
				if err := equal(&part, &want); err != nil {
					t.Errorf("%s: split %d of %d: %v", name, s, splits, err)
				}
			}
		}
	}
}

func TestSplitsShareTheSchedule(t *testing.T) {
	for name, spec := range specs() {
		w := mustOpen(t, spec)
		for _, at := range []time.Duration{-1, 0, 1, time.Millisecond, 777 * time.Millisecond, 3 * time.Second} {
			var due, scheduled uint64
			for s := range 3 {
				sp := Split(w, s, 3)
				due += sp.Due(at)
				scheduled += sp.Scheduled(at)
			}
			if due != w.Due(at) || scheduled != w.Scheduled(at) {
				t.Errorf("%s at %v: splits have due %d, scheduled %d; the stream %d, %d", name, at, due, scheduled, w.Due(at), w.Scheduled(at))
			}
		}
	}
}

// TestDueAgreesWithTimes holds for each record: not due before its time, due at
// it.
func TestDueAgreesWithTimes(t *testing.T) {
	for name, spec := range specs() {
		w := mustOpen(t, spec)
		var c core.Columns
		w.Fill(&c, 0, 4000)
		for i := 0; i < 4000; i += 37 {
			at := time.Duration(c.Times[i])
			if got := w.Due(at); got <= uint64(i) {
				t.Fatalf("%s: Due(%d) = %d, but record %d is due then", name, at, got, i)
			}
			if got := w.Scheduled(at); got > uint64(i) {
				t.Fatalf("%s: Scheduled(%d) = %d, but record %d is due only then", name, at, got, i)
			}
		}
	}
}

func TestFillDoesNotAllocate(t *testing.T) {
	for name, spec := range specs() {
		w := mustOpen(t, spec)
		var c core.Columns
		at := uint64(0)
		for range 40 { // until the payload column has its capacity
			c.Reset()
			w.Fill(&c, at, 512)
			at += 512
		}
		allocs := testing.AllocsPerRun(50, func() {
			c.Reset()
			w.Fill(&c, at%20_000, 512)
			at += 512
		})
		if allocs > 0.5 {
			t.Errorf("%s: Fill allocates %g times a batch", name, allocs)
		}
	}
}

func TestCountsAreThoseOfAMap(t *testing.T) {
	for name, spec := range specs() {
		w := mustOpen(t, spec)
		const n = 30_001
		var c core.Columns
		w.Fill(&c, 0, n)
		want := map[uint64]uint64{}
		for _, key := range c.Keys {
			want[key]++
		}
		tally := Counts(w, n)
		if tally.Len() != len(want) || tally.Total() != n {
			t.Errorf("%s: %d keys, total %d; want %d, %d", name, tally.Len(), tally.Total(), len(want), n)
		}
		last := int64(-1)
		for key, count := range tally.All() {
			if count != want[key] || tally.Count(key) != count {
				t.Errorf("%s: key %d has %d, want %d", name, key, count, want[key])
			}
			if last >= 0 && key <= uint64(last) {
				t.Errorf("%s: keys out of order: %d after %d", name, key, last)
			}
			last = int64(key)
			if key > math.MaxInt64 {
				last = -1
			}
		}
		if top := tally.Top(3); tally.Count(top[0]) < tally.Count(top[1]) {
			t.Errorf("%s: Top(3) = %v is out of order", name, top)
		}
	}
	if got := new(Tally).Count(7); got != 0 {
		t.Errorf("an empty tally counts %d", got)
	}
}

func TestBookIsReadInALoop(t *testing.T) {
	w := mustOpen(t, specs()["book"])
	const words = 99_935
	var c core.Columns
	w.Fill(&c, words-1, 3)
	if got := []string{w.KeyName(c.Keys[0]), w.KeyName(c.Keys[1]), w.KeyName(c.Keys[2])}; !slices.Equal(got, []string{"themselves", "produced", "by"}) {
		t.Errorf("words around the end: %q", got)
	}
	tally := Counts(w, 2*words)
	if tally.Len() != 4208 {
		t.Errorf("%d distinct words, want 4208", tally.Len())
	}
	for key, count := range tally.All() {
		if want := w.Share(key, 0) * 2 * words; math.Abs(float64(count)-want) > 1e-6 {
			t.Fatalf("%q: %d times in two passes, want %g", w.KeyName(key), count, want)
		}
	}
	if hot := w.Truth(time.Second)[0].Hot; w.KeyName(hot[0]) != "the" || w.KeyName(hot[1]) != "of" {
		t.Errorf("hottest words %q, %q; want \"the\", \"of\"", w.KeyName(hot[0]), w.KeyName(hot[1]))
	}
}

func BenchmarkFill(b *testing.B) {
	for name, spec := range map[string]Spec{
		"uniform100k": {Keys: 100_000, Rate: 1e6, Scramble: true},
		"zipf100k":    {Kind: KindZipf, Keys: 100_000, Exponent: 0.99, Rate: 1e6, Scramble: true},
		"zipf10M":     {Kind: KindZipf, Keys: 10_000_000, Exponent: 0.99, Rate: 1e6, Scramble: true},
		"zipfPoisson": {Kind: KindZipf, Keys: 100_000, Exponent: 0.99, Rate: 1e6, Arrivals: Arrivals{Kind: ArrivePoisson}},
		"book":        {Kind: KindBook, Rate: 1e6},
		"nexmark":     {Kind: KindNEXMark, Rate: 1e6},
		"ysb":         {Kind: KindYSB, Rate: 1e6},
	} {
		b.Run(name, func(b *testing.B) {
			w := mustOpen(b, spec)
			var c core.Columns
			at := uint64(0)
			for b.Loop() {
				c.Reset()
				w.Fill(&c, at, 1024)
				at += 1024
			}
			b.ReportMetric(float64(b.N)*1024/b.Elapsed().Seconds()/1e6, "Mrecords/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func BenchmarkCounts(b *testing.B) {
	for name, spec := range map[string]Spec{
		"uniform100k": {Keys: 100_000, Rate: 1e6, Scramble: true},
		"zipf10M":     {Kind: KindZipf, Keys: 10_000_000, Exponent: 0.99, Rate: 1e6, Scramble: true},
		"book":        {Kind: KindBook, Rate: 1e6},
	} {
		b.Run(name, func(b *testing.B) {
			w := mustOpen(b, spec)
			const n = 2_000_000
			for b.Loop() {
				Counts(w, n)
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mrecords/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestScheduledIsExact holds for what a suite can ask for.
func TestScheduledIsExact(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		run  time.Duration
		want uint64
	}{
		"10,000/s":     {Spec{Keys: 1, Rate: 10_000}, 10 * time.Second, 100_000},
		"half a rec/s": {Spec{Keys: 1, Rate: 0.5}, 10 * time.Second, 5},
		"nothing":      {Spec{Keys: 1, Arrivals: Arrivals{Kind: ArriveNone}}, 10 * time.Second, 0},
		"burst of 5x for 2 s": {
			Spec{Keys: 1, Rate: 1000, Arrivals: Arrivals{Kind: ArriveFlash, At: 30 * time.Second, High: 2 * time.Second}}, time.Minute, 68_000,
		},
	} {
		w := mustOpen(t, c.spec)
		if got := w.Scheduled(c.run); got != c.want {
			t.Errorf("%s for %v: %d scheduled, want %d", name, c.run, got, c.want)
		}
		if n := w.Scheduled(c.run); n > 0 && w.Due(c.run-1) != n {
			t.Errorf("%s: %d due just before %v, want %d", name, w.Due(c.run-1), c.run, n)
		}
	}
}

func TestScramblingSpreadsHotKeysAndChangesNoShare(t *testing.T) {
	const n, groups = 100_000, 1024
	spec := Spec{Kind: KindZipf, Keys: 10_000, Exponent: 1, Rate: 1000}
	plain := Counts(mustOpen(t, spec), n)
	spec.Scramble = true
	w := mustOpen(t, spec)
	scrambled := Counts(w, n)
	if plain.Len() != scrambled.Len() {
		t.Fatalf("%d keys scrambled, %d plain", scrambled.Len(), plain.Len())
	}
	for key, count := range scrambled.All() {
		rank, _ := w.ids.Rank(key)
		if plain.Count(rank) != count {
			t.Fatalf("rank %d has %d records plain and %d scrambled", rank, plain.Count(rank), count)
		}
	}
	seen := map[uint32]bool{}
	for _, key := range scrambled.Top(100) {
		seen[core.KeyGroup(key, groups)] = true
	}
	// 100 balls in 1,024 boxes hit 95.4 of them on average.
	if len(seen) < 88 {
		t.Errorf("the 100 hottest keys are in %d key groups, want about 95", len(seen))
	}
}

func TestClonesMayRunAtOnce(t *testing.T) {
	for name, spec := range specs() {
		w := mustOpen(t, spec)
		var want core.Columns
		w.Fill(&want, 100, 3000)
		const readers = 3
		got := make([]core.Columns, readers)
		var wg sync.WaitGroup
		for r := range readers {
			clone := w.Clone()
			wg.Go(func() {
				clone.Fill(&got[r], 100, 3000)
				clone.Due(time.Second)
				w.Truth(time.Second)
			})
		}
		wg.Wait()
		for r := range got {
			if err := equal(&got[r], &want); err != nil {
				t.Errorf("%s: clone %d: %v", name, r, err)
			}
		}
	}
}

func TestEveryKindIsTested(t *testing.T) {
	kinds, arrive, change := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range specs() {
		if s.Kind == "" {
			s.Kind = KindUniform
		}
		kinds[s.Kind], arrive[s.Arrivals.Kind] = true, true
		for _, c := range s.Changes {
			change[c.Kind] = true
		}
	}
	// These have tests of their own, as they need a file or send nothing.
	kinds[KindReplay], arrive[ArriveReplay], arrive[ArriveNone] = true, true, true
	for _, c := range Kinds() {
		if !kinds[c.Name] {
			t.Errorf("no spec of kind %s is tested", c.Name)
		}
	}
	for _, c := range ArrivalKinds() {
		if !arrive[c.Name] {
			t.Errorf("no spec with arrivals %s is tested", c.Name)
		}
	}
	for _, c := range ChangeKinds() {
		if !change[c.Name] {
			t.Errorf("no spec with change %s is tested", c.Name)
		}
	}
}
