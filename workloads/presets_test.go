package workloads

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// harmonic is the sum of k^-s for k from 1 to n.
func harmonic(n int, s float64) float64 {
	sum := 0.0
	for k := n; k >= 1; k-- {
		sum += math.Pow(float64(k), -s)
	}
	return sum
}

// TestPresetsHaveWhatTheyName draws from each preset and measures the shares,
// sizes and burstiness that its source names.
func TestPresetsHaveWhatTheyName(t *testing.T) {
	zipf := func(keys int, s float64) [2]float64 {
		return [2]float64{1 / harmonic(keys, s), harmonic(10, s) / harmonic(keys, s)}
	}
	cases := []struct {
		name   string
		top    [2]float64 // shares of the hottest key and the top ten; 0: not named
		bytes  float64    // mean payload
		rate   float64    // mean over the time `over`
		over   time.Duration
		index  float64 // of dispersion at 100 ms; negative: burstier than −index
		state  int     // bytes a key
		marked float64 // share of records with value 1
	}{
		{name: "nexmark", bytes: (200 + 3*500 + 46*100) / 50.0, rate: 10_000, over: 600 * time.Second},
		{name: "ysb", top: [2]float64{0.001, 0.01}, bytes: 34, rate: 10_000, over: time.Second, marked: 1.0 / 3},
		{name: "ycsb", top: zipf(1_000_000, 0.99), bytes: 1000, rate: 10_000, over: time.Second},
		{name: "ycsb-hotspot", top: [2]float64{0.8 / 200_000, 8.0 / 200_000}, bytes: 1000, rate: 10_000, over: time.Second},
		{name: "shufflebench", bytes: 1024, rate: 250_000, over: time.Second},
		{name: "theodolite-uc1", top: [2]float64{1e-4, 1e-3}, rate: 10_000, over: time.Second},
		{name: "theodolite-uc2", top: [2]float64{1e-4, 1e-3}, rate: 10_000, over: time.Second},
		{name: "theodolite-uc3", top: [2]float64{1e-4, 1e-3}, rate: 10_000, over: time.Second},
		{name: "theodolite-uc4", top: [2]float64{1e-4, 1e-3}, rate: 10_000, over: time.Second},
		{name: "megaphone", top: [2]float64{1 / 256e6, 10 / 256e6}, rate: 250_000, over: time.Second},
		{name: "spacker", top: zipf(32_768, 1), rate: 40_000, over: time.Second, state: 32 << 10},
		{name: "drrs", top: zipf(4096, 1.5), rate: 5000, over: time.Second, state: 7_500_000},
		{name: "twitter-hot", top: zipf(1_000_000, 2.1), bytes: 55, rate: 26_400, over: 20 * time.Second, index: 1},
		{name: "twitter-typical", top: zipf(1_000_000, 1.21), bytes: 293, rate: 24_300, over: 20 * time.Second, index: 1},
		{name: "twitter-write", top: zipf(3_000_000, 0.3), bytes: 1074, rate: 20_000, over: 20 * time.Second, index: 1, marked: 0.8},
		{name: "twitter-counter", top: zipf(1_000_000, 0.27), bytes: 259, rate: 20_000, over: 20 * time.Second, index: 1, marked: 0.3},
		{
			name: "fb-etc", top: zipf(1_000_000, 1), rate: 52_717, over: 20 * time.Second,
			bytes: 214.476/(1-0.348238) + 30.7984 + 8.20449*(math.Gamma(1-0.078688)-1)/0.078688,
			// A renewal process tends to the squared coefficient of variation
			// of its gaps, 1/(1 − 2·shape).
			index: 1 / (1 - 2*0.154971),
		},
		{name: "linear-road", rate: 1700.0 / 2, over: 3 * time.Hour},
		{name: "self-similar", top: [2]float64{1e-4, 1e-3}, rate: 10_000, over: 600 * time.Second, index: -10},
	}
	if len(cases) != len(Presets()) {
		t.Errorf("%d presets are tested, there are %d", len(cases), len(Presets()))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := mustOpen(t, Spec{Preset: c.name, Seed: 5})
			checkTop(t, w, c.top)
			if c.state > 0 && w.StateBytes(w.Truth(1)[0].Hot[0]) != c.state {
				t.Errorf("state is %d bytes, want %d", w.StateBytes(w.Truth(1)[0].Hot[0]), c.state)
			}
			slack := 0.01
			if c.index < 0 {
				slack = 0.25 // such traffic is far from its mean for long
			}
			if got := float64(w.Scheduled(c.over)) / c.over.Seconds(); math.Abs(got/c.rate-1) > slack {
				t.Errorf("mean rate %g, want %g", got, c.rate)
			}
			checkDispersion(t, w, c.index)
			checkColumns(t, w, c.bytes, c.marked)
		})
	}
}

func checkTop(t *testing.T, w *Workload, top [2]float64) {
	t.Helper()
	if top[0] == 0 {
		return
	}
	const n = 200_000
	tally, drawn := Counts(w, n), uint64(0)
	hot, sum := tally.Top(10), 0.0
	if truth := w.Truth(1); truth != nil {
		hot = truth[0].Hot
	}
	for _, key := range hot {
		sum += w.Share(key, 0)
		drawn += tally.Count(key)
	}
	if w.Truth(1) != nil && (math.Abs(w.Share(hot[0], 0)/top[0]-1) > 1e-6 || math.Abs(sum/top[1]-1) > 1e-6) {
		t.Errorf("states shares %g and %g, want %g and %g", w.Share(hot[0], 0), sum, top[0], top[1])
	}
	if got := float64(tally.Count(hot[0])) / n; math.Abs(got-top[0]) > 0.005 {
		t.Errorf("hottest key has share %g of %d draws, want %g ± 0.005", got, n, top[0])
	}
	if got := float64(drawn) / n; math.Abs(got-top[1]) > 0.01 {
		t.Errorf("top ten have share %g of %d draws, want %g ± 0.01", got, n, top[1])
	}
}

func checkDispersion(t *testing.T, w *Workload, want float64) {
	t.Helper()
	if want == 0 {
		return
	}
	const windows, width = 1000, 100 * time.Millisecond
	var counts []float64
	mean := 0.0
	for k := range time.Duration(windows) {
		n := float64(w.Scheduled((k+1)*width) - w.Scheduled(k*width))
		counts = append(counts, n)
		mean += n / windows
	}
	index := 0.0
	for _, n := range counts {
		index += (n - mean) * (n - mean) / mean / (windows - 1)
	}
	if want > 0 && math.Abs(index/want-1) > 0.2 {
		t.Errorf("index of dispersion %g, want %g", index, want)
	}
	if want < 0 && index < -want {
		t.Errorf("index of dispersion %g, want above %g", index, -want)
	}
}

func checkColumns(t *testing.T, w *Workload, bytes, marked float64) {
	t.Helper()
	const n = 20_000
	var c core.Columns
	w.Fill(&c, 0, n)
	if got := float64(len(c.Ext)) / n; math.Abs(got-bytes) > 0.05*bytes {
		t.Errorf("mean payload %g bytes, want %g", got, bytes)
	}
	ones := 0
	for _, v := range c.Vals {
		if v == 1 {
			ones++
		}
	}
	if marked > 0 && math.Abs(float64(ones)/n-marked) > 0.02 {
		t.Errorf("value 1 has share %g, want %g", float64(ones)/n, marked)
	}
}

func TestMostKeysOfTwitterWriteOccurOnce(t *testing.T) {
	w := mustOpen(t, Spec{Preset: "twitter-write", Payload: Measure{Kind: "none"}})
	tally := Counts(w, w.Scheduled(time.Minute))
	once := 0
	for _, n := range tally.All() {
		if n == 1 {
			once++
		}
	}
	if got := float64(once) / float64(tally.Len()); math.Abs(got-0.81) > 0.02 {
		t.Errorf("%.3f of the keys occur once, want 0.81", got)
	}
}

func TestLinearRoadReportsEachCarEvery30s(t *testing.T) {
	w := mustOpen(t, Spec{Preset: "linear-road"})
	// At the end of the ramp 30 s hold each of the 51,000 cars once.
	var c core.Columns
	w.Fill(&c, w.Scheduled(3*time.Hour), 51_000)
	if took := time.Duration(c.Times[50_999] - c.Times[0]); math.Abs(took.Seconds()-30) > 0.1 {
		t.Errorf("51,000 reports take %v, want 30 s", took)
	}
	slices.Sort(c.Keys)
	if distinct := len(slices.Compact(c.Keys)); distinct != 51_000 {
		t.Errorf("%d cars report, want 51000", distinct)
	}
}

func TestPresetsNameTheirSources(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Presets() {
		if p.Name == "" || len(p.Source) < 10 || seen[p.Name] {
			t.Errorf("preset %q lacks a name or a source, or is there twice", p.Name)
		}
		seen[p.Name] = true
		if problems := Validate(p.Spec); problems != nil {
			t.Errorf("preset %s: %v", p.Name, problems)
		}
	}
}
