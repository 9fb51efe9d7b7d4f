package workloads

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// badSpec is a spec and the fields whose problems are to be found, in order.
type badSpec struct {
	spec Spec
	want []string
}

func badSpecs() map[string]badSpec {
	f := func(v float64) *float64 { return &v }
	return map[string]badSpec{
		"good": {Spec{Keys: 1, Rate: 1}, nil},
		"nan exponent, no keys, inf rate": {
			Spec{Kind: KindZipf, Exponent: math.NaN(), Rate: math.Inf(1)}, []string{"keys", "exponent", "rate"},
		},
		"inf exponent":      {Spec{Kind: KindZipf, Keys: 5, Exponent: math.Inf(1), Rate: 1}, []string{"exponent"}},
		"negative exponent": {Spec{Kind: KindZipf, Keys: 5, Exponent: -1, Rate: 1}, []string{"exponent"}},
		"nan rate":          {Spec{Keys: 5, Rate: math.NaN()}, []string{"rate"}},
		"rate 0":            {Spec{Keys: 5}, []string{"rate"}},
		"negative rate":     {Spec{Keys: 5, Rate: -3}, []string{"rate"}},
		"rate of none":      {Spec{Keys: 5, Rate: 3, Arrivals: Arrivals{Kind: ArriveNone}}, []string{"rate"}},
		"kind":              {Spec{Kind: "zip", Keys: 5, Rate: 1}, []string{"kind"}},
		"misplaced":         {Spec{Keys: 5, Exponent: 1, HotLoad: 1, Shares: []float64{1}, Rate: 1}, []string{"exponent", "hotKeys", "shares"}},
		"keys of a book":    {Spec{Kind: KindBook, Keys: 5, Rate: 1}, []string{"keys"}},
		"hot set":           {Spec{Kind: KindHotSet, Keys: 5, HotKeys: 1.5, HotLoad: math.NaN(), Rate: 1}, []string{"hotKeys", "hotLoad"}},
		"shares over 1":     {Spec{Kind: KindShares, Keys: 5, Shares: []float64{0.7, 0.7}, Rate: 1}, []string{"shares"}},
		"shares under 1":    {Spec{Kind: KindShares, Keys: 2, Shares: []float64{0.7, 0.2}, Rate: 1}, []string{"shares"}},
		"too many shares":   {Spec{Kind: KindShares, Keys: 1, Shares: []float64{0.7, 0.3}, Rate: 1}, []string{"shares"}},
		"bad share":         {Spec{Kind: KindShares, Keys: 3, Shares: []float64{-0.1, 0.5}, Rate: 1}, []string{"shares[0]"}},
		"changes": {Spec{Kind: KindZipf, Keys: 5, Exponent: 1, Rate: 1, Changes: []Change{
			{Kind: ChangeStep, Exponent: math.Inf(1)}, {}, {Kind: "jump"}, {Kind: ChangeFlash, Key: 9}, {Kind: ChangeSwap, At: -1},
			{Kind: ChangeGrow, For: time.Second, From: 6}, {Kind: ChangeDrift},
		}}, []string{
			"changes[0].exponent", "changes[1].kind", "changes[2].kind", "changes[3].for", "changes[3].share", "changes[3].key",
			"changes[4].at", "changes[4].every", "changes[5].from", "changes[6].for",
		}},
		"grow of a hot set": {
			Spec{Kind: KindHotSet, Keys: 5, HotKeys: 0.5, HotLoad: 0.5, Rate: 1, Changes: []Change{{Kind: ChangeGrow, For: 1, From: 1}}},
			[]string{"changes[0].kind"},
		},
		"square":         {Spec{Keys: 5, Rate: 1, Arrivals: Arrivals{Kind: ArriveSquare}}, []string{"arrivals.high", "arrivals.period"}},
		"no load at all": {Spec{Keys: 5, Rate: 1, Arrivals: Arrivals{Kind: ArriveSine, Period: time.Second, Low: f(0), Peak: f(0)}}, []string{"arrivals.peak"}},
		"peak too high":  {Spec{Keys: 5, Rate: 1e9, Arrivals: Arrivals{Kind: ArriveFlash, High: time.Second}}, []string{"arrivals.peak"}},
		"fast sine": {
			Spec{Keys: 5, Rate: 1, Arrivals: Arrivals{Kind: ArriveSine, Period: time.Second, Steps: 5000}}, []string{"arrivals.steps"},
		},
		"hurst, shape":  {Spec{Keys: 5, Rate: 1, Arrivals: Arrivals{Kind: ArriveSelfSimilar, Hurst: 1.2, Spacing: "odd"}}, []string{"arrivals.spacing", "arrivals.hurst"}},
		"catch up":      {Spec{Keys: 5, Rate: 1, CatchUp: CatchUp{Policy: CatchUpLimit}}, []string{"catchUp.factor"}},
		"catch up name": {Spec{Keys: 5, Rate: 1, CatchUp: CatchUp{Policy: "never"}}, []string{"catchUp.policy"}},
		"value":         {Spec{Keys: 5, Rate: 1, Value: Value{Kind: "uniform"}}, []string{"value.max"}},
		"measures": {
			Spec{
				Keys: 5, Rate: 1, Payload: Measure{Kind: "constant", Mean: -1, By: "load"}, State: Measure{Kind: "pareto", Shape: 2},
				Service: Measure{Kind: "fast"},
			},
			[]string{"payload.by", "payload.mean", "state.scale", "state.shape", "service.kind"},
		},
		"replay without a path": {Spec{Kind: KindReplay}, []string{"replay.path", "replay.key", "replay.time"}},
		"path without a replay": {Spec{Keys: 1, Rate: 1, Replay: Replay{Path: "x"}}, []string{"replay.path"}},
		"replay": {
			Spec{Kind: KindReplay, Rate: 1, Replay: Replay{Path: "x", Key: "k", Unit: "h", OnBadRow: "x", Speed: -1}},
			[]string{"replay.format", "replay.unit", "replay.onBadRow", "replay.speed"},
		},
		"rate of a replay":    {Spec{Keys: 5, Rate: 1, Arrivals: Arrivals{Kind: ArriveReplay, Replay: Replay{Path: "x.trc"}}}, []string{"rate"}},
		"trace without times": {Spec{Keys: 5, Arrivals: Arrivals{Kind: ArriveReplay, Replay: Replay{Path: "x.csv"}}}, []string{"arrivals.replay.time"}},
		"times not replayed":  {Spec{Keys: 5, Rate: 1, Arrivals: Arrivals{Replay: Replay{Path: "x.csv"}}}, []string{"arrivals.replay"}},
		"fields that are not used": {
			Spec{
				Keys: 5, Rate: 1, Arrivals: Arrivals{Peak: f(2), Hurst: 0.7}, Value: Value{Max: 3}, State: Measure{Kind: "constant", Mean: 1, Sigma: 2},
				Changes: []Change{{Kind: ChangeSwap, Every: time.Second, Share: 0.5}}, CatchUp: CatchUp{Factor: 2},
			},
			[]string{"changes[0].share", "arrivals.peak", "arrivals.hurst", "catchUp.factor", "value.max", "state.sigma"},
		},
		"replayed and made": {
			Spec{Kind: KindReplay, Replay: Replay{Path: "x.trc", Key: "1", Value: "2", Size: "2"}, Value: Value{Kind: "one"}, Payload: Measure{Kind: "constant", Mean: 1}},
			[]string{"value.kind", "payload.kind"},
		},
		"preset":             {Spec{Preset: "ycbs"}, []string{"preset"}},
		"columns of nexmark": {Spec{Kind: KindNEXMark, Rate: 1, Scramble: true, Value: Value{Kind: "one"}}, []string{"value.kind", "scramble"}},
	}
}

func TestEveryProblemIsReported(t *testing.T) {
	for name, c := range badSpecs() {
		var got []string
		for _, e := range Validate(c.spec) {
			got = append(got, e.Field)
			if e.Problem == "" || e.Want == "" {
				t.Errorf("%s: %+v lacks a problem or what would be right", name, e)
			}
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: problems in %v, want %v", name, Validate(c.spec), c.want)
		}
		_, err := Open(c.spec)
		var problems SpecError
		if len(c.want) > 0 && (!errors.As(err, &problems) || len(problems) != len(c.want)) {
			t.Errorf("%s: Open gives %v, want a SpecError with %d problems", name, err, len(c.want))
		}
	}
}

func TestPresetFieldsCanBeOverridden(t *testing.T) {
	w := mustOpen(t, Spec{Preset: "ycsb", Rate: 77, Payload: Measure{Mean: 5}})
	s := w.Spec()
	if s.Rate != 77 || s.Exponent != 0.99 || s.Payload.Mean != 5 || s.Payload.Kind != "constant" {
		t.Errorf("overridden preset is %+v", s)
	}
	s = mustOpen(t, Spec{Preset: "ycsb", Kind: KindHotSet, HotKeys: 0.2, HotLoad: 0.8, Arrivals: Arrivals{Kind: ArrivePoisson}}).Spec()
	if s.Keys != 1_000_000 || s.Exponent != 0 || s.Arrivals.Kind != ArrivePoisson {
		t.Errorf("preset with another kind is %+v", s)
	}
	if s := mustOpen(t, Spec{Preset: "ycsb", Arrivals: Arrivals{Kind: ArriveNone}}); s.Scheduled(time.Hour) != 0 {
		t.Errorf("arrivals none schedule %d records", s.Scheduled(time.Hour))
	}
}
