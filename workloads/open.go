package workloads

import (
	"fmt"
	"math"
	"time"

	"github.com/weir-bench/weir/workloads/arrivals"
	"github.com/weir-bench/weir/workloads/keys"
	"github.com/weir-bench/weir/workloads/measure"
	"github.com/weir-bench/weir/workloads/replay"
	"github.com/weir-bench/weir/workloads/rng"
	"github.com/weir-bench/weir/workloads/text"
)

// Labels of the independent random sequences of a workload.
const (
	labelKeys = iota + 1
	labelScramble
	labelArrivals
	labelShape
	labelValue
	labelPayload
	labelState
	labelService
	labelReplay
	labelGenerator
	labelChange = 100 // and up: one a change
)

// Workload is an open stream and what is known about it. Its methods besides
// those of Stream are safe for concurrent use.
type Workload struct {
	Stream
	spec    Spec
	dist    keys.Dist // nil for whole-event generators
	ids     keys.IDs
	name    func(key uint64) (string, bool)
	state   measure.Dist
	service measure.Dist
	notes   []string
	ends    uint64 // records of a stream that ends, else 0
}

// Open validates spec and builds its stream. It returns a SpecError with every
// problem found, or an error that names the trace file, line and reason.
func Open(spec Spec) (*Workload, error) {
	if problems := Validate(spec); len(problems) > 0 {
		return nil, SpecError(problems)
	}
	spec, _ = spec.complete()
	b := builder{spec: spec, w: &Workload{spec: spec, ids: keys.Dense{}}}
	if err := b.build(); err != nil {
		return nil, err
	}
	return b.w, nil
}

// builder holds what the parts of a workload share while it is built.
type builder struct {
	spec  Spec
	w     *Workload
	trace *replay.Trace // of the spec's replay; nil if nothing uses it
}

func (b *builder) seed(label uint64) uint64 { return rng.Derive(b.spec.Seed, label) }

func (b *builder) build() error {
	if err := b.readTrace(); err != nil {
		return err
	}
	process, err := b.arrivals()
	if err != nil {
		return err
	}
	b.w.state = b.spec.State.dist()
	b.w.service = b.spec.Service.dist()
	if events := b.events(process); events != nil {
		b.w.Stream = &eventStream{arrivals: process, events: events}
		return nil
	}
	if err := b.keys(); err != nil {
		return err
	}
	b.w.dist = b.changes(b.w.dist)
	c := &composed{
		arrivals: process, dist: b.w.dist, ids: b.w.ids,
		value: b.spec.Value, seed: b.spec.Seed,
	}
	if size := b.spec.Payload.dist(); size != nil {
		c.payload = newPayload(size, b.seed(labelPayload))
	}
	if b.spec.Kind == KindReplay {
		b.recorded(c)
	}
	c.limit = b.w.ends
	b.w.Stream = c
	return nil
}

// keys sets the distribution, IDs and names.
func (b *builder) keys() error {
	s, w := &b.spec, b.w
	if s.Scramble {
		w.ids = keys.Scrambled{Seed: b.seed(labelScramble)}
	}
	if s.Kind == KindBook {
		book := text.Opticks()
		w.dist, w.ids, w.name = keys.Sequence(book.Ranks()), keys.Listed(book.Keys()), book.Name
		return nil
	}
	if s.Kind == KindReplay {
		return b.recordedKeys()
	}
	w.dist = b.synthetic(uint64(s.Keys))
	return nil
}

// synthetic returns the distribution over n keys of a kind that has a free
// number of them.
func (b *builder) synthetic(n uint64) keys.Dist {
	s, seed := &b.spec, b.seed(labelKeys)
	switch s.Kind {
	case KindUniform:
		return keys.Uniform(seed, n)
	case KindZipf:
		return keys.Zipf(seed, n, s.Exponent)
	case KindHotSet:
		return hotSet(seed, n, s.HotKeys, s.HotLoad)
	case KindShares:
		return keys.Shares(seed, n, s.Shares)
	case KindCycle:
		return keys.Cycle(n)
	}
	panic(fmt.Sprintf("workloads: kind %q passed validation", s.Kind))
}

func hotSet(seed, n uint64, share, load float64) keys.Dist {
	hot := min(n, max(1, uint64(math.Round(share*float64(n)))))
	if hot == n {
		load = 1
	}
	return keys.HotSet(seed, n, hot, load)
}

// changes puts the spec's changes around a distribution: first those of the
// shares, then swaps, then flash crowds.
func (b *builder) changes(d keys.Dist) keys.Dist {
	for pass := range 3 {
		for i := range b.spec.Changes {
			c := &b.spec.Changes[i]
			seed := b.seed(labelChange + uint64(i))
			switch {
			case pass == 0:
				d = b.reshape(d, c, seed)
			case pass == 1 && c.Kind == ChangeSwap:
				by := uint64(c.By)
				if by == 0 {
					by = max(1, d.Keys()/10)
				}
				d = keys.Swap(d, by, int64(c.At), int64(c.Every))
			case pass == 2 && c.Kind == ChangeFlash:
				d = keys.Flash(d, min(uint64(c.Key), d.Keys()-1), c.Share, int64(c.At), int64(c.At+c.For), seed)
			}
		}
	}
	return d
}

// reshape applies a change of the shares; other changes leave d as it is.
func (b *builder) reshape(d keys.Dist, c *Change, seed uint64) keys.Dist {
	target := func() keys.Dist {
		if c.HotLoad > 0 {
			return hotSet(rng.Derive(seed, 1), d.Keys(), c.HotKeys, c.HotLoad)
		}
		return keys.Zipf(rng.Derive(seed, 1), d.Keys(), c.Exponent)
	}
	switch c.Kind {
	case ChangeStep:
		return keys.Step(d, target(), int64(c.At))
	case ChangeDrift:
		return keys.Drift(d, target(), int64(c.At), int64(c.For), rng.Derive(seed, 2))
	case ChangeGrow:
		return keys.Grow(uint64(c.From), uint64(b.spec.Keys), int64(c.At), int64(c.For), b.synthetic)
	}
	return d
}

// factors returns Low and Peak or their defaults.
func (a *Arrivals) factors() (low, peak float64) {
	low, peak = 0, 2
	switch a.Kind {
	case ArriveRamp:
		peak = 1
	case ArriveFlash, ArriveMMPP:
		low, peak = 1, 5
	}
	if a.Low != nil {
		low = *a.Low
	}
	if a.Peak != nil {
		peak = *a.Peak
	}
	return low, peak
}

func (b *builder) arrivals() (arrivals.Process, error) {
	a, rate := &b.spec.Arrivals, b.spec.Rate
	if a.Kind == ArriveReplay {
		return b.recordedArrivals()
	}
	if a.Kind == ArrivePareto {
		gap := float64(time.Second) / rate * (1 - a.Shape) // scale for that mean
		return arrivals.Renewal(measure.Pareto{Scale: gap, Shape: a.Shape}, b.seed(labelArrivals)), nil
	}
	shape := b.shape()
	random := a.Kind == ArrivePoisson || a.Kind == ArriveMMPP || a.Kind == ArriveSelfSimilar
	if a.Spacing == "poisson" || (random && a.Spacing == "") {
		return arrivals.Poisson(shape, b.seed(labelArrivals)), nil
	}
	return arrivals.Even(shape), nil
}

func (b *builder) shape() arrivals.Shape {
	a, rate := &b.spec.Arrivals, b.spec.Rate
	low, peak := a.factors()
	low, peak = low*rate, peak*rate
	switch a.Kind {
	case ArriveSquare:
		return arrivals.Square(peak, low, a.High, a.Period-a.High)
	case ArriveSine:
		steps := a.Steps
		if steps == 0 {
			steps = min(256, max(2, int(a.Period/time.Millisecond)))
		}
		return arrivals.Sine(low, peak, a.Period, steps)
	case ArriveRamp:
		return arrivals.Ramp(low, peak, a.At, a.High)
	case ArriveFlash:
		return arrivals.Flash(low, peak, a.At, a.High, a.Period)
	case ArriveMMPP:
		return arrivals.MMPP(low, peak, a.Period-a.High, a.High, b.seed(labelShape))
	case ArriveSelfSimilar:
		return arrivals.SelfSimilar(rate, a.Hurst, b.seed(labelShape))
	case ArriveNone:
		return arrivals.Constant(0)
	}
	return arrivals.Constant(rate)
}

// dist returns the distribution, nil for none.
func (m *Measure) dist() measure.Dist {
	var d measure.Dist
	switch m.Kind {
	case "", "none":
		return nil
	case "constant":
		d = measure.Constant(m.Mean)
	case "uniform":
		d = measure.Uniform{Min: m.Min, Max: m.Max}
	case "exponential":
		d = measure.Exponential{Mean: m.Mean}
	case "lognormal":
		d = measure.LogNormal{Mean: m.Mean, Sigma: m.Sigma}
	case "pareto":
		d = measure.Pareto{Location: m.Location, Scale: m.Scale, Shape: m.Shape}
	case "gev":
		d = measure.GEV{Location: m.Location, Scale: m.Scale, Shape: m.Shape}
	}
	if m.Kind != "uniform" && (m.Min > 0 || m.Max > 0) {
		high := m.Max
		if high == 0 {
			high = math.MaxFloat64
		}
		d = measure.Clamped{Of: d, Min: m.Min, Max: high}
	}
	if m.Plus != nil {
		if more := m.Plus.dist(); more != nil {
			d = measure.Sum{d, more}
		}
	}
	return d
}
