package stats

import "time"

// Settle is the delay between the trigger of an adjustment and its end, as the field defines them.
type Settle struct {
	Trigger, Complete time.Duration
	// Stable is the first moment from the trigger on from which the interval p99 stays in the band for a whole hold time,
	// counted from the trigger; with IsStable false there was none.
	Stable   time.Duration
	IsStable bool
	// Until is the end of the window that Peak and Mean are about: the later one of complete and stable, or the end of the
	// observation when it never became stable.
	Until  time.Duration
	Peak   time.Duration // highest interval p99 of the window
	PeakIs Standing
	Mean   time.Duration // of all records due in the window
	// Total is Σ delay of all records due from the trigger to the end of the observation, and Excess what of it exceeds
	// the mean before the event, both in record-seconds. They have no value when a record never came.
	Total, Excess float64
	Counted       bool
	Reason        string // why a figure is missing
}

// AnalyseSettle measures an adjustment that was triggered at one time and complete at another (negative: never) on the axis
// of s. Level and band are those of sp, the analysis of the event behind it; end is where the observation ends, 0 for the
// end of the series. The interval that contains the trigger counts as after it.
func AnalyseSettle(s Series, sp Spike, trigger, complete, end time.Duration) Settle {
	out := Settle{Trigger: trigger, Complete: complete, Reason: sp.Reason}
	_, after := split(s, trigger, trigger, end)
	if len(after) == 0 {
		out.Reason = "no record was due after the trigger"
		return out
	}
	out.Until = after[len(after)-1].Start + s.Interval
	if sp.HasBaseline {
		out.stable(after, sp, s.Interval)
	}
	out.sums(s, sp, after)
	return out
}

// stable finds the hold time, and with it the window's end.
func (o *Settle) stable(after []Point, sp Spike, width time.Duration) {
	start := time.Duration(-1)
	for _, p := range after {
		if p.P99Is != Measured || p.P99 > sp.BandHigh {
			start = -1
			continue
		}
		if start < 0 {
			start = p.Start
		}
		if p.Start+width-start >= sp.Hold {
			o.IsStable, o.Stable = true, max(0, start-o.Trigger)
			if o.Complete >= 0 {
				o.Until = min(o.Until, max(o.Complete, o.Trigger+o.Stable))
			}
			return
		}
	}
	if o.Reason == "" {
		o.Reason = "the p99 did not stay in the band for a hold time after the trigger"
	}
}

// sums adds up the delays of the window and of the whole observation.
func (o *Settle) sums(s Series, sp Spike, after []Point) {
	before := 0.0
	records := int64(0)
	for _, p := range s.Points {
		if p.Start >= sp.BaselineFrom && p.Start+s.Interval <= sp.BaselineTo {
			before += p.Sum
			records += p.InRange
		}
	}
	if records > 0 {
		before /= float64(records)
	}
	o.Counted = records > 0
	sum, n := 0.0, int64(0)
	for i, p := range after {
		o.Total += p.Sum
		o.Excess += p.Sum - before*float64(p.InRange)
		if p.Unanswered > 0 || p.Count > p.InRange {
			o.Counted = false
		}
		if i > 0 && p.Start >= o.Until {
			continue
		}
		if p.P99Is > o.PeakIs || p.P99Is == o.PeakIs && p.P99 > o.Peak {
			o.Peak, o.PeakIs = p.P99, p.P99Is
		}
		sum += p.Sum
		n += p.InRange
	}
	if n > 0 {
		o.Mean = time.Duration(sum / float64(n) * float64(time.Second))
	}
	if !o.Counted && o.Reason == "" {
		o.Reason = "records were never answered"
	}
}
