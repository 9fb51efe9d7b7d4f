package workloads

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-bench/weir/workloads/arrivals"
	"github.com/weir-bench/weir/workloads/replay"
)

// FieldError is one problem of a Spec.
type FieldError struct {
	Field   string // path of yaml names, as "changes[1].exponent"
	Problem string // what is wrong, with the value
	Want    string // what would be right
}

func (e FieldError) Error() string {
	return fmt.Sprintf("%s: %s; want %s", e.Field, e.Problem, e.Want)
}

// SpecError is all problems of a Spec, in the order of its fields. It is never
// empty.
type SpecError []FieldError

func (e SpecError) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.Error()
	}
	return "workload: " + strings.Join(lines, "\n")
}

// Validate returns every problem of spec that can be found without opening a
// file, or nil. A preset's values are checked too.
func Validate(spec Spec) []FieldError {
	full, err := spec.complete()
	if err != nil {
		return []FieldError{*err}
	}
	var c checker
	c.spec(&full)
	return c.errs
}

// checker collects problems.
type checker struct{ errs []FieldError }

func (c *checker) add(field, want, problem string, args ...any) {
	c.errs = append(c.errs, FieldError{field, fmt.Sprintf(problem, args...), want})
}

// number checks that v is finite and within [low, high].
func (c *checker) number(field string, v, low, high float64, want string) {
	if !(v >= low && v <= high) || math.IsInf(v, 0) {
		c.add(field, want, "is %v", v)
	}
}

// positive checks that v is finite and above 0.
func (c *checker) positive(field string, v float64, want string) {
	c.number(field, v, math.SmallestNonzeroFloat64, math.MaxFloat64, want)
}

func (c *checker) count(field string, v, low int64, want string) {
	if v < low {
		c.add(field, want, "is %d", v)
	}
}

func (c *checker) span(field string, d time.Duration, low time.Duration, want string) {
	if d < low {
		c.add(field, want, "is %v", d)
	}
}

// choice checks the kind of a section, of which v is the struct, and that no field
// is set that this kind does not use. The first choice is the default. It tells
// whether the kind is known.
func (c *checker) choice(prefix, kindField, kind string, v any, choices []Choice) bool {
	if !c.oneOf(prefix+kindField, kind, names(choices)...) {
		return false
	}
	at := max(0, slices.IndexFunc(choices, func(x Choice) bool { return x.Name == kind }))
	used := strings.Fields(choices[at].Fields)
	section := reflect.ValueOf(v)
	for i := range section.NumField() {
		name := section.Type().Field(i).Tag.Get("yaml")
		if name == kindField || slices.Contains(used, name) || section.Field(i).IsZero() {
			continue
		}
		want := "no such field"
		if len(used) > 0 {
			want = "only " + strings.Join(used, ", ")
		}
		c.add(prefix+name, fmt.Sprintf("%s with %s %s", want, kindField, choices[at].Name), "is set, but not used")
	}
	return true
}

// oneOf checks a name; empty counts as a default and is fine.
func (c *checker) oneOf(field, v string, names ...string) bool {
	if v == "" || slices.Contains(names, v) {
		return true
	}
	c.add(field, "one of "+strings.Join(names, ", "), "%q is unknown", v)
	return false
}

const maxKeys = 1 << 40

func (c *checker) spec(s *Spec) {
	if c.oneOf("kind", s.Kind, names(Kinds())...) {
		c.keys(s)
	}
	c.changes(s)
	c.rate(s)
	c.arrivals(s)
	c.catchUp(&s.CatchUp)
	c.value(&s.Value)
	c.measure("payload", &s.Payload, 1<<30)
	c.measure("state", &s.State, 1<<40)
	c.measure("service", &s.Service, float64(time.Hour))
	c.fixedColumns(s)
	c.replay(s)
}

// synthetic tells whether the number of keys of a kind is free.
func synthetic(kind string) bool {
	return slices.Contains([]string{KindUniform, KindZipf, KindHotSet, KindShares, KindCycle}, kind)
}

// generator tells whether a kind makes whole events by itself.
func generator(kind string) bool {
	return kind == KindNEXMark || kind == KindYSB || kind == KindShuffleBench
}

func (c *checker) keys(s *Spec) {
	if synthetic(s.Kind) || s.Kind == "" {
		c.count("keys", s.Keys, 1, "at least 1 key")
		if s.Keys > maxKeys {
			c.add("keys", "at most 2^40", "is %d", s.Keys)
		}
	}
	if s.Kind != KindZipf && s.Exponent != 0 {
		c.add("exponent", "kind: zipf", "is set, but kind is %q", s.Kind)
	}
	if s.Kind != KindHotSet && (s.HotKeys != 0 || s.HotLoad != 0) {
		c.add("hotKeys", "kind: hotset", "hotKeys or hotLoad is set, but kind is %q", s.Kind)
	}
	if s.Kind != KindShares && len(s.Shares) > 0 {
		c.add("shares", "kind: shares", "are set, but kind is %q", s.Kind)
	}
	if s.Keys != 0 && (s.Kind == KindBook || s.Kind == KindReplay || s.Kind == KindNEXMark) {
		c.add("keys", "no number: the keys follow from the kind", "is set, but kind is %q", s.Kind)
	}
	switch s.Kind {
	case KindZipf:
		c.number("exponent", s.Exponent, 0, 100, "a finite number from 0 (uniform) to 100")
	case KindHotSet:
		c.hotSet("", s.HotKeys, s.HotLoad)
	case KindShares:
		c.shares(s.Shares, s.Keys)
	case KindYSB, KindShuffleBench:
		c.count("keys", s.Keys, 0, "a number of at least 1, or none for the default")
		c.number("keys", float64(s.Keys), 0, 1<<31, "at most 2^31")
	}
}

func (c *checker) hotSet(prefix string, keys, load float64) {
	c.number(prefix+"hotKeys", keys, math.SmallestNonzeroFloat64, 1, "a share of the keys above 0, up to 1")
	c.number(prefix+"hotLoad", load, math.SmallestNonzeroFloat64, 1, "a share of the records above 0, up to 1")
	if keys == 1 && load > 0 && load < 1 {
		c.add(prefix+"hotLoad", "1, as all keys are hot", "is %v", load)
	}
}

func (c *checker) shares(shares []float64, keys int64) {
	if len(shares) == 0 {
		c.add("shares", "at least one share", "is empty")
	}
	if int64(len(shares)) > keys && keys > 0 {
		c.add("shares", fmt.Sprintf("at most one a key (keys: %d)", keys), "has %d entries", len(shares))
	}
	sum := 0.0
	for i, v := range shares {
		c.number(fmt.Sprintf("shares[%d]", i), v, 0, 1, "a share from 0 to 1")
		sum += v
	}
	const slack = 1e-6
	switch {
	case sum > 1+slack:
		c.add("shares", "a sum of at most 1", "add up to %g", sum)
	case sum < 1-slack && int64(len(shares)) >= keys:
		c.add("shares", "a sum of 1, or more keys that get the rest", "add up to %g and no key is left", sum)
	}
}

func (c *checker) changes(s *Spec) {
	for i := range s.Changes {
		ch := &s.Changes[i]
		at := fmt.Sprintf("changes[%d].", i)
		if ch.Kind == "" {
			c.add(at+"kind", "step, drift, swap, flash or grow", "is missing")
		}
		if !c.choice(at, "kind", ch.Kind, *ch, ChangeKinds()) {
			continue
		}
		if generator(s.Kind) {
			c.add(at+"kind", "no changes: the keys follow from the kind", "is %s, but kind is %q", ch.Kind, s.Kind)
			continue
		}
		c.span(at+"at", ch.At, 0, "a time of at least 0s")
		c.change(at, ch, s)
	}
}

func (c *checker) change(at string, ch *Change, s *Spec) {
	switch ch.Kind {
	case ChangeStep, ChangeDrift:
		if ch.HotLoad != 0 || ch.HotKeys != 0 {
			c.hotSet(at, ch.HotKeys, ch.HotLoad)
		}
		c.number(at+"exponent", ch.Exponent, 0, 100, "a finite number from 0 (uniform) to 100")
		if ch.Kind == ChangeDrift {
			c.span(at+"for", ch.For, 1, "a time above 0s")
		}
	case ChangeSwap:
		c.span(at+"every", ch.Every, time.Millisecond, "a time of at least 1ms")
		c.count(at+"by", ch.By, 0, "a number of keys of at least 1, or none for a tenth of the keys")
	case ChangeFlash:
		c.span(at+"for", ch.For, 1, "a time above 0s")
		c.number(at+"share", ch.Share, math.SmallestNonzeroFloat64, 1, "a share of the records above 0, up to 1")
		c.count(at+"key", ch.Key, 0, "a key number of at least 0")
		if synthetic(s.Kind) && ch.Key >= s.Keys && s.Keys > 0 {
			c.add(at+"key", fmt.Sprintf("a key number below keys (%d)", s.Keys), "is %d", ch.Key)
		}
	case ChangeGrow:
		if s.Kind != KindUniform && s.Kind != KindZipf && s.Kind != KindCycle {
			c.add(at+"kind", "kind uniform, zipf or cycle", "is grow, but kind is %q", s.Kind)
		}
		c.span(at+"for", ch.For, 1, "a time above 0s")
		c.count(at+"from", ch.From, 1, "at least 1 key")
		if ch.From > s.Keys {
			c.add(at+"from", fmt.Sprintf("at most keys (%d)", s.Keys), "is %d", ch.From)
		}
	}
}

func (c *checker) rate(s *Spec) {
	switch s.Arrivals.Kind {
	case ArriveNone:
		if s.Rate != 0 {
			c.add("rate", "no rate, or other arrivals", "is %v, but arrivals are none", s.Rate)
		}
	case ArriveReplay:
		if s.Rate != 0 {
			c.add("rate", "no rate: a replay has its own (see replay.speed)", "is %v", s.Rate)
		}
	default:
		c.number("rate", s.Rate, 1e-6, arrivals.MaxRate, "records/s above 0, up to 1e9 (arrivals: {kind: none} schedules nothing)")
	}
}

func (c *checker) arrivals(s *Spec) {
	a := &s.Arrivals
	if !c.choice("arrivals.", "kind", a.Kind, *a, ArrivalKinds()) {
		return
	}
	c.oneOf("arrivals.spacing", a.Spacing, "even", "poisson")
	low, peak := a.factors()
	c.factor("arrivals.low", low, s.Rate)
	c.factor("arrivals.peak", peak, s.Rate)
	c.span("arrivals.at", a.At, 0, "a time of at least 0s")
	switch a.Kind {
	case ArriveSquare, ArriveMMPP:
		c.span("arrivals.high", a.High, time.Millisecond, "a time of at least 1ms")
		c.span("arrivals.period", a.Period, a.High+time.Millisecond, "a time above high by at least 1ms")
		c.someRate(low+peak, "arrivals.peak")
	case ArriveSine:
		c.span("arrivals.period", a.Period, time.Millisecond, "a time of at least 1ms")
		c.someRate(low+peak, "arrivals.peak")
		if a.Steps < 0 || a.Steps == 1 || (a.Steps > 2 && a.Period/time.Duration(a.Steps) < time.Millisecond) {
			c.add("arrivals.steps", "2 or more steps of at least 1ms, or none for 256", "is %d", a.Steps)
		}
	case ArriveRamp:
		c.span("arrivals.high", a.High, time.Microsecond, "the ramp's length, at least 1µs")
	case ArriveFlash:
		c.span("arrivals.high", a.High, 1, "a time above 0s")
		c.someRate(low+peak, "arrivals.peak")
		if a.Period != 0 {
			c.span("arrivals.period", a.Period, max(a.At+a.High, time.Millisecond), "at least at + high, and 1ms")
		}
	case ArriveSelfSimilar:
		c.number("arrivals.hurst", a.Hurst, 0.501, 0.999, "a Hurst exponent above 0.5 and below 1")
	case ArrivePareto:
		c.number("arrivals.shape", a.Shape, 0, 0.499, "a shape from 0 to below 0.5")
	}
}

// factor checks a factor of the base rate.
func (c *checker) factor(field string, f, rate float64) {
	c.number(field, f, 0, math.MaxFloat64, "a finite factor of at least 0")
	if f > 0 && rate > 0 && rate <= arrivals.MaxRate && f*rate > arrivals.MaxRate {
		c.add(field, "at most 1e9 records/s", "makes %g records/s", f*rate)
	}
}

func (c *checker) someRate(sum float64, field string) {
	if sum == 0 {
		c.add(field, "low or peak above 0", "low and peak are both 0: nothing would ever arrive")
	}
}

func (c *checker) catchUp(u *CatchUp) {
	c.choice("catchUp.", "policy", u.Policy, *u, catchUpPolicies())
	switch u.Policy {
	case CatchUpLimit:
		c.number("catchUp.factor", u.Factor, 1, 1e6, "a factor of at least 1")
	case CatchUpSkip:
		c.span("catchUp.after", u.After, 0, "a time of at least 0s")
	}
}

func (c *checker) value(v *Value) {
	c.choice("value.", "kind", v.Kind, *v, valueKinds())
	switch v.Kind {
	case "uniform":
		c.count("value.max", v.Max, 1, "at least 1")
	case "flag":
		c.number("value.share", v.Share, 0, 1, "a share from 0 to 1")
	}
}

func (c *checker) measure(field string, m *Measure, highest float64) {
	if !c.choice(field+".", "kind", m.Kind, *m, measureKinds()) {
		return
	}
	c.oneOf(field+".by", m.By, "independent", "load", "inverse")
	if field == "payload" && m.By != "" {
		c.add("payload.by", "no by: a payload is a record's, not a key's", "is %q", m.By)
	}
	c.number(field+".min", m.Min, 0, highest, "a number of at least 0")
	c.number(field+".max", m.Max, 0, highest, fmt.Sprintf("a number from 0 (no bound) to %g", highest))
	if m.Plus != nil {
		c.measure(field+".plus", m.Plus, highest)
	}
	if m.Max > 0 && m.Min > m.Max {
		c.add(field+".min", "at most max", "is %v, but max is %v", m.Min, m.Max)
	}
	switch m.Kind {
	case "constant", "exponential", "lognormal":
		c.number(field+".mean", m.Mean, 0, highest, fmt.Sprintf("a number from 0 to %g", highest))
		c.number(field+".sigma", m.Sigma, 0, 10, "a number from 0 to 10")
	case "uniform":
		c.positive(field+".max", m.Max, "a number above 0")
	case "pareto", "gev":
		c.number(field+".location", m.Location, 0, highest, "a number of at least 0")
		c.positive(field+".scale", m.Scale, "a number above 0")
		c.number(field+".shape", m.Shape, 0, 0.999, "a number from 0 to below 1")
	}
}

// fixedColumns refuses columns that a whole-event generator sets itself.
func (c *checker) fixedColumns(s *Spec) {
	if !generator(s.Kind) {
		return
	}
	if s.Value.Kind != "" {
		c.add("value.kind", "no value: the events have their own", "is %q, but kind is %q", s.Value.Kind, s.Kind)
	}
	if s.Payload.Kind != "" {
		c.add("payload.kind", "no payload: the events have their own", "is %q, but kind is %q", s.Payload.Kind, s.Kind)
	}
	if s.Scramble {
		c.add("scramble", "false", "is true, but kind is %q", s.Kind)
	}
}

func (c *checker) replay(s *Spec) {
	keysFrom, timesFrom := s.Kind == KindReplay, s.Arrivals.Kind == ArriveReplay
	ownTimes := s.Arrivals.Replay.Path != ""
	if keysFrom && s.Replay.Value != "" && s.Value.Kind != "" {
		c.add("value.kind", "no value, or no replay.value", "is %q, but the values are replayed", s.Value.Kind)
	}
	if keysFrom && s.Replay.Size != "" && s.Payload.Kind != "" {
		c.add("payload.kind", "no payload, or no replay.size", "is %q, but the sizes are replayed", s.Payload.Kind)
	}
	if ownTimes && timesFrom {
		c.trace("arrivals.replay", &s.Arrivals.Replay, false, true)
		timesFrom = false
	}
	if keysFrom || timesFrom {
		c.trace("replay", &s.Replay, keysFrom, timesFrom)
	} else if s.Replay.Path != "" {
		c.add("replay.path", "kind: replay or arrivals: {kind: replay}", "is set, but nothing is replayed from it")
	}
}

// trace checks a trace that is replayed for its keys, its times or both.
func (c *checker) trace(at string, r *Replay, keysFrom, timesFrom bool) {
	if r.Path == "" {
		c.add(at+".path", "the path of a trace file", "is missing")
	}
	c.oneOf(at+".format", r.Format, "compact", "csv", "jsonl")
	format := cmp.Or(r.Format, replay.FormatOf(r.Path))
	if r.Path != "" && format == "" {
		c.add(at+".format", "compact, csv or jsonl, or a path that ends in .trc, .csv or .jsonl (and .gz)", "cannot be told from path %q", r.Path)
	}
	if keysFrom && r.Key == "" {
		c.add(at+".key", "the column with the key", "is missing")
	}
	if timesFrom && r.Time == "" && format != "compact" {
		c.add(at+".time", "the column with the time", "is missing, but the arrivals are replayed")
	}
	c.oneOf(at+".unit", r.Unit, "ns", "us", "ms", "s")
	c.oneOf(at+".onBadRow", r.OnBadRow, "fail", "skip")
	if r.Speed != 0 {
		c.number(at+".speed", r.Speed, 1e-6, 1e6, "a factor from 1e-6 to 1e6")
	}
	c.number(at+".scale", float64(r.Scale), 0, 1<<20, "a number of keys from 1 to 2^20")
}
