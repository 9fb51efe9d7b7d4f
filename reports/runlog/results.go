package runlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// SchemaVersion is the version of results.json and manifest.json that this package writes. It changes when a reader
// that knows the old version could misread the new one; new optional fields do not change it.
const SchemaVersion = 1

// Verdict says whether the answers of a repetition or cell kept what the strategy promises.
type Verdict string

// The three verdicts, best last. Unknown is for everything that could not be judged: the check did not run, the harness
// could not keep its schedule, the repetition was interrupted.
const (
	Invalid Verdict = "invalid"
	Unknown Verdict = "unknown"
	Valid   Verdict = "valid"
)

// Worse returns the verdict that outweighs the other: invalid before unknown before valid.
func (v Verdict) Worse(o Verdict) Verdict {
	rank := func(x Verdict) int { return slices.Index([]Verdict{Invalid, Unknown, Valid}, x) }
	if rank(o) < rank(v) {
		return o
	}
	return v
}

// Results is results.json.
type Results struct {
	SchemaVersion int    `json:"schema_version"`
	Suite         string `json:"suite"`
	Seed          uint64 `json:"seed"`
	// Partial is true until every planned repetition has ended.
	Partial       bool   `json:"partial"`
	PartialReason string `json:"partial_reason,omitempty"`
	Cells         []Cell `json:"cells"`
}

// Cell is one row of the comparison: one combination of strategy, fault and workload.
type Cell struct {
	// Name is unique in the results.
	Name string `json:"name"`
	// Labels say what the cell is, for instance strategy, fault, workload, kind.
	Labels map[string]string `json:"labels"`
	// Verdict is the worst of the repetitions' verdicts; see Results.Summarise.
	Verdict       Verdict            `json:"verdict"`
	VerdictReason string             `json:"verdict_reason,omitempty"`
	Repetitions   []Repetition       `json:"repetitions"`
	Summary       map[string]Summary `json:"summary"`
}

// Repetition is one trial of a cell.
type Repetition struct {
	// Repetition counts from 1 within the cell.
	Repetition int `json:"repetition"`
	// Trial counts from 1 in the order of execution over the whole suite.
	Trial         int     `json:"trial"`
	Verdict       Verdict `json:"verdict"`
	VerdictReason string  `json:"verdict_reason,omitempty"`
	// Promised is what the strategies promise of outputs (gap, rollback or precise), Observed the strongest of these that
	// the answers keep; empty when they were not compared.
	Promised string `json:"promised,omitempty"`
	Observed string `json:"observed,omitempty"`
	// Partial is true when the repetition was interrupted; its figures enter no summary.
	Partial bool              `json:"partial"`
	Answers Answers           `json:"answers"`
	Metrics map[string]Metric `json:"metrics"`
	// Delay accounts for every delay sample; nil when none could be taken.
	Delay *DelayCounts `json:"delay,omitempty"`
	// Spike holds the settings and the evidence behind the spike_ metrics; nil when no event was injected.
	Spike *Spike `json:"spike,omitempty"`
}

// Answers counts records against the golden answer. A nil count was not determined, which differs from 0; use N.
type Answers struct {
	Scheduled  *int64 `json:"scheduled"`
	Emitted    *int64 `json:"emitted"`
	NotEmitted *int64 `json:"not_emitted"`
	// Skipped is the part of NotEmitted that the catch-up policy left out on purpose; absent under other policies.
	Skipped    *int64 `json:"skipped,omitempty"`
	Expected   *int64 `json:"expected"`
	Answered   *int64 `json:"answered"`
	Lost       *int64 `json:"lost"`
	Duplicated *int64 `json:"duplicated"`
	Wrong      *int64 `json:"wrong"`
	Reordered  *int64 `json:"reordered"`
	Orphaned   *int64 `json:"orphaned,omitempty"`
	Late       *int64 `json:"late,omitempty"`
	Tentative  *int64 `json:"tentative,omitempty"`
	// Reason says why counts are null.
	Reason string `json:"reason,omitempty"`
}

// N returns a pointer to a copy of n, for the counts of Answers.
func N(n int64) *int64 { return &n }

// DelayCounts is the account of delay samples: Samples + AboveRange + Negative + OffAxis are the records delivered.
type DelayCounts struct {
	Samples    int64 `json:"samples"`
	AboveRange int64 `json:"above_range"`
	Negative   int64 `json:"negative"`
	OffAxis    int64 `json:"off_axis"`
	// Unanswered records count as infinitely late in every percentile.
	Unanswered int64 `json:"unanswered"`
	// RangeMS is the highest delay a histogram holds, in milliseconds; what is above is counted in AboveRange.
	RangeMS float64 `json:"range_ms"`
}

// Spike is the evidence behind the spike_ metrics. All times are milliseconds.
type Spike struct {
	EventMS        float64  `json:"event_ms"`
	IntervalMS     float64  `json:"interval_ms"`
	Axis           string   `json:"axis"`
	BaselineFromMS float64  `json:"baseline_from_ms"`
	BaselineToMS   float64  `json:"baseline_to_ms"`
	BaselineP99MS  *float64 `json:"baseline_p99_ms"`
	BandLowMS      *float64 `json:"band_low_ms"`
	BandHighMS     *float64 `json:"band_high_ms"`
	HoldMS         float64  `json:"hold_ms"`
	Settled        bool     `json:"settled"`
	ObservedMS     float64  `json:"observed_ms"`
	Reason         string   `json:"reason,omitempty"`
}

// Metric is one measured value with its unit, or null with the reason why there is none. AtLeast gives a bound that is
// known although the value is not ("> 30000 ms, not settled"); it is never to be used as the value.
type Metric struct {
	Value   *float64 `json:"value"`
	Unit    string   `json:"unit"`
	Reason  string   `json:"reason,omitempty"`
	AtLeast *float64 `json:"at_least,omitempty"`
}

// Value returns a measured metric. A value that is not a finite number becomes a missing one: no NaN or infinity ever
// reaches a file.
func Value(v float64, unit string) Metric {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Missing(unit, "not a finite number")
	}
	return Metric{Value: &v, Unit: unit}
}

// Missing returns a metric that was not measured, with the reason, which must not be empty.
func Missing(unit, reason string) Metric {
	if reason == "" {
		panic("runlog: a missing metric needs a reason")
	}
	return Metric{Unit: unit, Reason: reason}
}

// AtLeast returns a metric of which only a lower bound is known, for instance because the trial ended first.
func AtLeast(bound float64, unit, reason string) Metric {
	m := Missing(unit, reason)
	if !math.IsNaN(bound) && !math.IsInf(bound, 0) {
		m.AtLeast = &bound
	}
	return m
}

// Summary is a metric over the repetitions of a cell. N of Of repetitions gave a value. A repetition of which only a
// lower bound is known sorts last, and a median or max that falls on it is null.
type Summary struct {
	Median *float64 `json:"median"`
	Min    *float64 `json:"min"`
	Max    *float64 `json:"max"`
	Unit   string   `json:"unit"`
	N      int      `json:"n"`
	Of     int      `json:"of"`
	Reason string   `json:"reason,omitempty"`
	// AtLeast is the least of the known lower bounds when the median is not known.
	AtLeast *float64 `json:"at_least,omitempty"`
}

// MarshalJSON writes null for a value that is not finite, as encoding/json would otherwise refuse the whole file.
func (m Metric) MarshalJSON() ([]byte, error) {
	type plain Metric
	m.Value, m.AtLeast = finite(m.Value), finite(m.AtLeast)
	if m.Value == nil && m.Reason == "" {
		m.Reason = "no value was recorded"
	}
	return json.Marshal(plain(m))
}

func finite(p *float64) *float64 {
	if p == nil || math.IsNaN(*p) || math.IsInf(*p, 0) {
		return nil
	}
	return p
}

// Summarise fills Verdict and Summary of every cell from its repetitions. Partial repetitions enter no summary and make
// the cell at best unknown; so does a cell without repetitions.
func (r *Results) Summarise() {
	for i := range r.Cells {
		r.Cells[i].summarise()
	}
}

func (c *Cell) summarise() {
	c.Verdict, c.VerdictReason = Valid, ""
	names := map[string]bool{}
	whole := make([]Repetition, 0, len(c.Repetitions))
	for _, rep := range c.Repetitions {
		v, why := rep.Verdict, rep.VerdictReason
		if rep.Partial && v == Valid {
			v, why = Unknown, "interrupted"
		}
		if w := c.Verdict.Worse(v); w != c.Verdict {
			c.Verdict, c.VerdictReason = w, fmt.Sprintf("repetition %d: %s", rep.Repetition, orElse(why, "no reason given"))
		}
		if rep.Partial {
			continue
		}
		whole = append(whole, rep)
		for name := range rep.Metrics {
			names[name] = true
		}
	}
	if len(c.Repetitions) == 0 {
		c.Verdict, c.VerdictReason = Unknown, "no repetition has ended"
	}
	c.Summary = make(map[string]Summary, len(names))
	for name := range names {
		c.Summary[name] = summarise(name, whole)
	}
}

func orElse(s, alternative string) string {
	if s == "" {
		return alternative
	}
	return s
}

// summarise orders the repetitions' values with lower bounds last, as they are at least as large as the trial was long.
func summarise(name string, reps []Repetition) Summary {
	s := Summary{Of: len(reps)}
	var values []float64
	censored := 0
	for _, rep := range reps {
		m, ok := rep.Metrics[name]
		if !ok {
			continue
		}
		s.Unit = m.Unit
		switch v, bound := finite(m.Value), finite(m.AtLeast); {
		case v != nil:
			values = append(values, *v)
		case bound != nil:
			censored++
			if s.AtLeast == nil || *bound < *s.AtLeast {
				s.AtLeast = bound
			}
			s.Reason = m.Reason
		case s.Reason == "":
			s.Reason = m.Reason
		}
	}
	sort.Float64s(values)
	s.N = len(values)
	total := len(values) + censored
	if s.N < s.Of {
		s.Reason = orElse(s.Reason, "not measured")
	}
	if s.N == 0 {
		return s
	}
	s.Min = &values[0]
	if censored == 0 {
		s.Max = &values[s.N-1]
	}
	if hi := total / 2; hi < s.N {
		med := values[hi]
		if total%2 == 0 {
			med = values[hi-1]/2 + values[hi]/2
		}
		s.Median, s.AtLeast = &med, nil
	}
	return s
}

// fill replaces nil collections, which JSON would show as null, and verdicts that nobody gave.
func (r *Results) fill() {
	if r.Cells == nil {
		r.Cells = []Cell{}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		if c.Repetitions == nil {
			c.Repetitions = []Repetition{}
		}
		for j := range c.Repetitions {
			rep := &c.Repetitions[j]
			if rep.Metrics == nil {
				rep.Metrics = map[string]Metric{}
			}
			if rep.Verdict == "" {
				rep.Verdict, rep.VerdictReason = Unknown, "no verdict was given"
			}
		}
		if c.Summary == nil || c.Verdict == "" {
			c.summarise()
		}
	}
}

// Validate reports everything in r that breaks the contract beyond what the JSON Schema can say; all at once, joined.
func (r *Results) Validate() error {
	var errs []error
	seen := map[string]bool{}
	for i, c := range r.Cells {
		at := fmt.Sprintf("cells[%d] %q", i, c.Name)
		if seen[c.Name] {
			errs = append(errs, fmt.Errorf("%s: name is used twice; each cell needs its own", at))
		}
		seen[c.Name] = true
		for _, rep := range c.Repetitions {
			a := rep.Answers
			if a.Scheduled != nil && a.Emitted != nil && a.NotEmitted != nil && *a.Scheduled != *a.Emitted+*a.NotEmitted {
				errs = append(errs, fmt.Errorf("%s repetition %d: scheduled %d is not emitted %d + not_emitted %d",
					at, rep.Repetition, *a.Scheduled, *a.Emitted, *a.NotEmitted))
			}
			if rep.Verdict != Valid && rep.VerdictReason == "" {
				errs = append(errs, fmt.Errorf("%s repetition %d: verdict %s without a verdict_reason", at, rep.Repetition, rep.Verdict))
			}
		}
	}
	return errors.Join(errs...)
}
