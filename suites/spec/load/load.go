package load

import (
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/workloads"
)

// Spec gives the generators' description of a suite's workload. What the suite
// leaves out stays zero, so that a preset or the generators' defaults fill it.
// seed makes the stream: that of the trial.
func Spec(w spec.Workload, seed uint64) workloads.Spec {
	out := workloads.Spec{
		Preset: w.Preset, Kind: w.Kind, Seed: seed,
		Keys: int64(w.Keys), Exponent: w.Exponent, HotKeys: w.HotKeys, HotLoad: w.HotLoad,
		Shares: append([]float64(nil), w.Shares...), Scramble: w.Scramble,
		Rate: float64(w.Rate),
		Arrivals: workloads.Arrivals{
			Kind: w.Arrivals.Kind, Spacing: w.Arrivals.Spacing, Low: w.Arrivals.Low, Peak: w.Arrivals.Peak,
			At: w.Arrivals.At, High: w.Arrivals.High, Period: w.Arrivals.Period, Steps: w.Arrivals.Steps,
			Hurst: w.Arrivals.Hurst, Shape: w.Arrivals.Shape, Replay: replay(w.Arrivals.Replay),
		},
		CatchUp: workloads.CatchUp{Policy: w.CatchUp.Policy, Factor: w.CatchUp.Factor, After: w.CatchUp.After},
		Value:   workloads.Value{Kind: w.Value.Kind, Max: int64(w.Value.Max), Share: w.Value.Share},
		Payload: measure(w.Payload), State: measure(w.State), Service: measure(w.Service),
		Replay: replay(w.Replay),
	}
	for _, c := range w.Changes {
		out.Changes = append(out.Changes, workloads.Change{
			Kind: c.Kind, At: c.At, For: c.For, Every: c.Every, Exponent: c.Exponent, HotKeys: c.HotKeys,
			HotLoad: c.HotLoad, By: int64(c.By), Key: int64(c.Key), Share: c.Share, From: int64(c.From),
		})
	}
	return out
}

func replay(r spec.Replay) workloads.Replay {
	return workloads.Replay{Path: r.Path, Format: r.Format, Key: r.Key, Time: r.Time, Value: r.Value, Size: r.Size,
		Unit: r.Unit, Speed: r.Speed, Loop: r.Loop, Scale: int64(r.Scale), OnBadRow: r.OnBadRow}
}

func measure(m spec.Measure) workloads.Measure {
	out := workloads.Measure{Kind: m.Kind, Mean: m.Mean, Sigma: m.Sigma, Location: m.Location, Scale: m.Scale,
		Shape: m.Shape, Min: m.Min, Max: m.Max, By: m.By}
	if m.Plus != nil {
		plus := measure(*m.Plus)
		out.Plus = &plus
	}
	return out
}

// Check gives what the generators find wrong with a workload. It has the form of
// spec.Known.ValidateWorkload.
func Check(w spec.Workload) []spec.Problem {
	var out []spec.Problem
	for _, e := range workloads.Validate(Spec(w, 1)) {
		out = append(out, spec.Problem{Field: e.Field, Problem: e.Problem, Fix: "write " + e.Want})
	}
	return out
}

// Fill adds what the generators know to the lists that suites are checked
// against.
func Fill(k spec.Known) spec.Known {
	k.Workloads = names(workloads.Kinds())
	k.Arrivals = names(workloads.ArrivalKinds())
	k.Presets = nil
	for _, p := range workloads.Presets() {
		k.Presets = append(k.Presets, p.Name)
	}
	k.ValidateWorkload = Check
	return k
}

func names(choices []workloads.Choice) []string {
	out := make([]string, len(choices))
	for i, c := range choices {
		out[i] = c.Name
	}
	return out
}
