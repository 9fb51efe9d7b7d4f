package stats

import (
	"fmt"
	"slices"
	"time"
)

// SpikeOptions sets how a delay spike is judged. The settings used are part of every result.
type SpikeOptions struct {
	// Baseline is how long before the event the level is taken; 0 means 5 s, less if the trial is younger.
	Baseline time.Duration
	// Hold is how long the interval p99 has to stay in the band to count as settled; 0 means 1 s.
	Hold time.Duration
	// Slack widens the band above the highest interval p99 seen in the baseline window, as a fraction of the baseline;
	// 0 means 0.25. A spike shorter than that is noise.
	Slack float64
	// End is where the observation ends; later intervals are ignored. 0 means the end of the series.
	End time.Duration
}

// Spike is the reaction of the delay to an event. Lengths and peaks without ok are not known.
type Spike struct {
	Event, Interval          time.Duration
	BaselineFrom, BaselineTo time.Duration
	Hold                     time.Duration
	BaselineP99              time.Duration // median of the interval p99s before the event
	BandLow, BandHigh        time.Duration // the interval p99s before the event lay between, with the slack above
	HasBaseline              bool
	Peak                     time.Duration // highest interval p99 from the event on
	PeakIs                   Standing
	Max                      time.Duration // highest single delay from the event on
	MaxIs                    Standing
	Area                     float64 // Σ max(0, p99 − baseline)·interval, in ms·s
	AreaOK                   bool
	Length                   time.Duration // from the event to the first interval of the hold
	Settled                  bool
	Observed                 time.Duration // from the event to the end of the observation
	Reason                   string        // why a figure is missing
}

// AnalyseSpike measures the spike that follows an event at time event on the axis of s.
//
// The level before is the median of the interval p99s in the window before the event; the band reaches up to the highest
// of them plus the slack. Peak is the highest interval p99 afterwards, Max the highest single delay. Area sums the excess
// of the interval p99 over the level up to settling. Length is the time from the event until the p99, after its peak, is
// back in the band for a whole Hold; the search begins at the peak because many events show late (a lease has to expire
// first) and a calm second before the storm is not its end. An interval whose p99 falls on records that never came is out
// of the band; one in which nothing was due says nothing and is skipped. When no hold time is completed, Settled is false and Length has no value; Observed is then a lower bound.
func AnalyseSpike(s Series, event time.Duration, o SpikeOptions) Spike {
	o = o.withDefaults()
	sp := Spike{Event: event, Interval: s.Interval, Hold: o.Hold, BaselineFrom: max(0, event-o.Baseline), BaselineTo: event}
	before, after := split(s, sp.BaselineFrom, event, o.End)
	if len(after) == 0 {
		sp.Reason = "no record was due after the event"
		return sp
	}
	sp.Observed = after[len(after)-1].Start + s.Interval - event
	top := sp.peaks(after)
	if !sp.baseline(before, o.Slack) {
		return sp
	}
	sp.settle(after, top)
	sp.area(after)
	return sp
}

func (o SpikeOptions) withDefaults() SpikeOptions {
	if o.Baseline <= 0 {
		o.Baseline = 5 * time.Second
	}
	if o.Hold <= 0 {
		o.Hold = time.Second
	}
	if o.Slack <= 0 {
		o.Slack = 0.25
	}
	return o
}

// split returns the intervals with records that lie wholly in the baseline window, and those that end after the event.
// The interval that contains the event counts as after it.
func split(s Series, from, event, end time.Duration) (before, after []Point) {
	for _, p := range s.Points {
		stop := p.Start + s.Interval
		switch {
		case p.Count+p.Unanswered == 0:
		case stop <= event && p.Start >= from:
			before = append(before, p)
		case stop > event && (end == 0 || stop <= end):
			after = append(after, p)
		}
	}
	return before, after
}

// peaks returns the index of the interval with the highest p99.
func (sp *Spike) peaks(after []Point) int {
	top := 0
	for i, p := range after {
		// A standing of NeverCame is worse than BeyondRange, which is worse than Measured.
		if p.P99Is > sp.PeakIs || p.P99Is == sp.PeakIs && p.P99 > sp.Peak {
			sp.Peak, sp.PeakIs, top = p.P99, p.P99Is, i
		}
		if p.MaximumIs > sp.MaxIs || p.Max > sp.Max {
			sp.Max, sp.MaxIs = p.Max, max(sp.MaxIs, p.MaximumIs)
		}
		if p.Unanswered > 0 {
			sp.MaxIs = NeverCame
		}
	}
	if sp.PeakIs == NeverCame {
		sp.Reason = "records due after the event were never answered"
	}
	return top
}

func (sp *Spike) baseline(before []Point, slack float64) bool {
	var levels []time.Duration
	for _, p := range before {
		if p.P99Is != Measured {
			sp.Reason = "records due before the event were never answered"
			return false
		}
		levels = append(levels, p.P99)
	}
	const least = 3 // fewer intervals give a band by chance
	if len(levels) < least {
		sp.Reason = fmt.Sprintf("only %d intervals with records before the event, want at least %d", len(levels), least)
		return false
	}
	slices.Sort(levels)
	sp.BaselineP99 = levels[len(levels)/2]
	if len(levels)%2 == 0 {
		sp.BaselineP99 = (levels[len(levels)/2-1] + levels[len(levels)/2]) / 2
	}
	sp.BandLow = levels[0]
	sp.BandHigh = levels[len(levels)-1] + time.Duration(slack*float64(sp.BaselineP99))
	sp.HasBaseline = true
	return true
}

// settle finds the first interval, not before the peak, from which the p99 stays in the band for the hold time. A delay
// below the band is better than before and counts as in it.
func (sp *Spike) settle(after []Point, top int) {
	if sp.PeakIs == Measured && sp.Peak <= sp.BandHigh {
		top = 0 // the event cannot be seen in the delay at all
	}
	start := time.Duration(-1)
	for _, p := range after[top:] {
		if p.P99Is != Measured || p.P99 > sp.BandHigh {
			start = -1
			continue
		}
		if start < 0 {
			start = p.Start
		}
		if p.Start+sp.Interval-start >= sp.Hold {
			sp.Settled, sp.Length = true, max(0, start-sp.Event)
			return
		}
	}
	if sp.Reason == "" {
		sp.Reason = fmt.Sprintf("not settled within %v after the event (p99 in the band for %v)", sp.Observed.Round(time.Millisecond), sp.Hold)
	}
}

// area sums up to settling, so that a longer observation does not add noise. Until it settled it is only a lower bound.
func (sp *Spike) area(after []Point) {
	end := sp.Event + sp.Observed
	if sp.Settled {
		end = sp.Event + sp.Length
	}
	sp.AreaOK = sp.Settled
	for _, p := range after {
		if p.Start >= end {
			break
		}
		if p.P99Is == Measured && p.P99 > sp.BaselineP99 {
			sp.Area += float64(p.P99-sp.BaselineP99) / 1e6 * sp.Interval.Seconds()
		}
	}
}
