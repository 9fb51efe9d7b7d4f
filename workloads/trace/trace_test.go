package trace

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/internal/need"
	"github.com/weir-bench/weir/workloads"
	"github.com/weir-bench/weir/workloads/replay"
)

// record turns the first n records of a workload into a trace.
func record(t *testing.T, spec workloads.Spec, n int) *replay.Trace {
	t.Helper()
	w, err := workloads.Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	var c core.Columns
	w.Fill(&c, 0, n)
	gaps, keys, sizes := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	for i := range n {
		if i > 0 {
			gaps[i] = uint64(c.Times[i] - c.Times[i-1])
		}
		keys[i] = c.Keys[i]
		sizes[i] = uint64(len(c.Payload(i)))
	}
	tr, err := replay.ReadFrom(bytes.NewReader(replay.Encode(gaps, keys, sizes)), "t.trc", replay.Options{Key: "1", Size: "2", Unit: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestDescriptionFindsWhatWasGenerated(t *testing.T) {
	for _, s := range []float64{0.6, 1, 1.5} {
		d := Describe(record(t, workloads.Spec{
			Kind: workloads.KindZipf, Keys: 5000, Exponent: s, Rate: 2000, Arrivals: workloads.Arrivals{Kind: workloads.ArrivePoisson},
			Payload: workloads.Measure{Kind: "constant", Mean: 70},
		}, 600_000))
		if math.Abs(d.Rate/2000-1) > 0.02 || d.Sizes.Mean < 69.99 || d.Sizes.Mean > 70.01 || d.Sizes.Sigma > 1e-6 {
			t.Errorf("s=%g: rate %g, sizes %+v", s, d.Rate, d.Sizes)
		}
		if math.Abs(d.Skew.Fit.Likeliest-s) > 0.05 || d.Skew.Fit.Distance > 0.03 || math.Abs(d.Skew.Fit.Slope-s) > 0.15 {
			t.Errorf("s=%g: fit %+v", s, d.Skew.Fit)
		}
		if i := d.Bursts.index(); math.Abs(i-1) > 0.3 || math.Abs(d.Bursts.HurstVariance-0.5) > 0.15 {
			t.Errorf("s=%g: a Poisson process has dispersion %g, Hurst %g", s, i, d.Bursts.HurstVariance)
		}
	}
}

func TestDriftOfTheHotSetShows(t *testing.T) {
	spec := workloads.Spec{Kind: workloads.KindZipf, Keys: 1000, Exponent: 1.2, Rate: 10_000}
	still := Describe(record(t, spec, 100_000)).Skew.Overlap
	spec.Changes = []workloads.Change{{Kind: workloads.ChangeSwap, At: time.Second, Every: time.Second, By: 100}}
	moving := Describe(record(t, spec, 100_000)).Skew.Overlap
	if still[9] < 0.8 || moving[0] != 1 || moving[9] > 0.2 {
		t.Errorf("overlaps %v and %v, want the second to fall to about 0", still, moving)
	}
}

func TestLongMemoryIsTold(t *testing.T) {
	low := Describe(record(t, workloads.Spec{Keys: 9, Rate: 150, Arrivals: workloads.Arrivals{Kind: workloads.ArrivePoisson}}, 300_000))
	high := Describe(record(t, workloads.Spec{Keys: 9, Rate: 150, Arrivals: workloads.Arrivals{Kind: workloads.ArriveSelfSimilar, Hurst: 0.85}}, 300_000))
	// The estimator is biased downward for long memory, as it has to estimate
	// the mean as well; package arrivals has a test with the true mean.
	if low.Bursts.HurstVariance > 0.6 || high.Bursts.HurstVariance < 0.68 || high.Bursts.HurstVariance > 0.99 {
		t.Errorf("Hurst exponents %g (Poisson) and %g (self-similar 0.85)", low.Bursts.HurstVariance, high.Bursts.HurstVariance)
	}
}

func realTrace(t *testing.T, name string, o replay.Options) *replay.Trace {
	t.Helper()
	tr, err := replay.Read(need.Traces(t, name), o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestRealTraces checks published figures of three traces, and that each
// imitation, measured the same way, resembles its model.
func TestRealTraces(t *testing.T) {
	for _, c := range []struct {
		name                 string
		o                    replay.Options
		rows                 int
		index, hurst, hurst2 float64 // 0: not given
	}{
		{"twitter52_1m.trc.gz", replay.Options{Key: "1", Size: "2"}, 1_000_000, 8.8, 0, 0},
		{"azure_llm_code.trc.gz", replay.Options{Size: "1", Unit: "us"}, 8819, 13.2, 0.72, 0.79},
		{"azure_llm_conv.trc.gz", replay.Options{Size: "1", Unit: "us"}, 19_366, 1.39, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Describe(realTrace(t, c.name, c.o))
			if d.Rows != c.rows || math.Abs(d.Bursts.index()-c.index) > 0.02*c.index {
				t.Errorf("%d rows, dispersion %g; want %d, %g", d.Rows, d.Bursts.index(), c.rows, c.index)
			}
			if c.hurst > 0 && (math.Abs(d.Bursts.HurstVariance-c.hurst) > 0.01 || math.Abs(d.Bursts.HurstRS-c.hurst2) > 0.01) {
				t.Errorf("Hurst %g and %g, want %g and %g", d.Bursts.HurstVariance, d.Bursts.HurstRS, c.hurst, c.hurst2)
			}
			if s := d.Skew; s != nil && (s.Keys != 143_542 || math.Abs(s.Hottest-0.059) > 0.001 || math.Abs(s.TopTen-0.227) > 0.001 ||
				math.Abs(s.Fit.Likeliest-0.96) > 0.01 || math.Abs(s.Fit.Slope-1) > 0.01 || s.Overlap[9] < 0.8) {
				t.Errorf("skew %+v", s)
			}
			imitation := d.Imitation()
			imitation.Seed = 3
			again := Describe(record(t, imitation, min(d.Rows, 450_000)))
			if r := again.Rate / d.Rate; r < 0.7 || r > 1.4 {
				t.Errorf("the imitation has rate %g, the trace %g", again.Rate, d.Rate)
			}
			if r := again.Bursts.index() / d.Bursts.index(); r < 0.5 || r > 2 {
				t.Errorf("the imitation has dispersion %g, the trace %g", again.Bursts.index(), d.Bursts.index())
			}
			if s := d.Skew; s != nil && (math.Abs(again.Skew.Hottest-s.Hottest) > 0.03 || math.Abs(again.Skew.TopTen-s.TopTen) > 0.05) {
				t.Errorf("the imitation has skew %+v, the trace %+v", again.Skew, s)
			}
		})
	}
}

func TestPresetReadsBack(t *testing.T) {
	d := Describe(record(t, workloads.Spec{
		Kind: workloads.KindZipf, Keys: 500, Exponent: 1.1, Rate: 1000, Payload: workloads.Measure{Kind: "exponential", Mean: 90},
		Arrivals: workloads.Arrivals{Kind: workloads.ArriveMMPP, High: 2 * time.Second, Period: 7 * time.Second},
	}, 300_000))
	want := d.Imitation()
	if want.Arrivals.Kind != workloads.ArriveMMPP {
		t.Errorf("arrivals %+v, want mmpp", want.Arrivals)
	}
	var out bytes.Buffer
	if err := WritePreset(&out, "imitates a test", want); err != nil {
		t.Fatal(err)
	}
	// A Spec has its rate as a plain number, a suite file with its unit.
	if !strings.Contains(out.String(), "/s\n") {
		t.Errorf("the rate has no unit:\n%s", out.String())
	}
	var file struct{ Workload workloads.Spec }
	dec := yaml.NewDecoder(strings.NewReader(strings.ReplaceAll(out.String(), "/s\n", "\n")))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		t.Fatal(err)
	}
	got := file.Workload
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read back %+v, want %+v", got, want)
	}
	if problems := workloads.Validate(got); problems != nil {
		t.Errorf("the preset is invalid: %v", problems)
	}
}

func TestTinyTracesAreDescribed(t *testing.T) {
	for name, data := range map[string]string{
		"one row":      "k,t\na,5\n",
		"same times":   "k,t\na,5\nb,5\na,5\n",
		"two rows":     "k,t\na,5\nb,9\n",
		"a few rows":   "k,t\na,5\nb,9\na,10\na,11\na,12\nb,13\n",
		"only one key": "k,t\n" + strings.Repeat("a,1\n", 50) + "a,400\n",
	} {
		tr, err := replay.ReadFrom(strings.NewReader(data), "t.csv", replay.Options{Key: "k", Time: "t"})
		if err != nil {
			t.Fatal(err)
		}
		d := Describe(tr)
		var out bytes.Buffer
		if err := d.Write(&out); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
			t.Errorf("%s: described as\n%s", name, out.String())
		}
		if problems := workloads.Validate(d.Imitation()); problems != nil {
			t.Errorf("%s: imitation %+v is invalid: %v", name, d.Imitation(), problems)
		}
	}
}
