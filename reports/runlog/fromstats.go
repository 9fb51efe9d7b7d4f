package runlog

import (
	"time"

	"github.com/weir-bench/weir/reports/stats"
)

// MS is a duration in milliseconds.
func MS(d time.Duration) float64 { return float64(d) / 1e6 }

// PercentileMetric is a percentile of h in milliseconds, or missing with the reason.
func PercentileMetric(h *stats.Histogram, percent float64) Metric {
	d, is := h.Percentile(percent)
	return durationMetric(d, is)
}

func durationMetric(d time.Duration, is stats.Standing) Metric {
	switch is {
	case stats.Measured:
		return Value(MS(d), "ms")
	case stats.BeyondRange:
		return AtLeast(MS(stats.HighestDelay), "ms", "above the range of the histogram")
	case stats.NeverCame:
		return AtLeast(MS(d), "ms", "falls on records that were never answered")
	}
	return Missing("ms", "no samples")
}

// CountsOf accounts for the samples of h.
func CountsOf(h *stats.Histogram) *DelayCounts {
	return &DelayCounts{Samples: h.Samples(), AboveRange: h.AboveRange, Negative: h.Negative, OffAxis: h.OffAxis,
		Unanswered: h.Unanswered, RangeMS: MS(stats.HighestDelay)}
}

// SpikeMetrics puts the figures of a spike into metrics (spike_peak_ms, spike_max_ms, spike_length_ms, spike_area_ms_s)
// and returns the evidence for Repetition.Spike.
func SpikeMetrics(sp stats.Spike, metrics map[string]Metric) *Spike {
	reason := orElse(sp.Reason, "not determined")
	metrics["spike_peak_ms"] = durationMetric(sp.Peak, sp.PeakIs)
	metrics["spike_max_ms"] = durationMetric(sp.Max, sp.MaxIs)
	switch {
	case !sp.HasBaseline:
		metrics["spike_length_ms"] = Missing("ms", reason)
		metrics["spike_area_ms_s"] = Missing("ms·s", reason)
	case !sp.Settled:
		metrics["spike_length_ms"] = AtLeast(MS(sp.Observed), "ms", reason)
		metrics["spike_area_ms_s"] = AtLeast(sp.Area, "ms·s", reason)
	default:
		metrics["spike_length_ms"] = Value(MS(sp.Length), "ms")
		metrics["spike_area_ms_s"] = Value(sp.Area, "ms·s")
	}
	out := &Spike{EventMS: MS(sp.Event), IntervalMS: MS(sp.Interval), Axis: "due", BaselineFromMS: MS(sp.BaselineFrom),
		BaselineToMS: MS(sp.BaselineTo), HoldMS: MS(sp.Hold), Settled: sp.Settled, ObservedMS: MS(sp.Observed), Reason: sp.Reason}
	if sp.HasBaseline {
		base, low, high := MS(sp.BaselineP99), MS(sp.BandLow), MS(sp.BandHigh)
		out.BaselineP99MS, out.BandLowMS, out.BandHighMS = &base, &low, &high
	}
	return out
}

// TimelineOf returns the rows of timeline.csv for one repetition.
func TimelineOf(cell string, repetition int, s stats.Series) []TimelineRow {
	perSecond := 1 / s.Interval.Seconds()
	ms := func(d time.Duration, is stats.Standing) *float64 {
		if is != stats.Measured {
			return nil
		}
		v := MS(d)
		return &v
	}
	rows := make([]TimelineRow, 0, len(s.Points))
	for _, p := range s.Points {
		rows = append(rows, TimelineRow{Cell: cell, Repetition: repetition, StartMS: MS(p.Start), Count: p.Count,
			Unanswered: p.Unanswered, P50MS: ms(p.P50, p.P50Is), P90MS: ms(p.P90, p.P90Is), P99MS: ms(p.P99, p.P99Is),
			MaxMS: ms(p.Max, p.MaximumIs), DuePerS: float64(p.Count+p.Unanswered) * perSecond, ArrivedPerS: float64(p.Arrived) * perSecond})
	}
	return rows
}

// WriteDelays writes everything r recorded to the delay log and the timeline: one repetition that began offset after the
// start of the run. The log gets one line per logEvery (0 means 1 s), the timeline one per interval of r.
func (w *Writer) WriteDelays(cell string, repetition int, offset, logEvery time.Duration, r *stats.Recorder) error {
	if logEvery <= 0 {
		logEvery = time.Second
	}
	step := max(1, int(logEvery/r.Interval()))
	tag := Tag(cell, repetition)
	h := stats.NewHistogram()
	for i := 0; i < r.Intervals(); i += step {
		h.Reset()
		for j := i; j < min(i+step, r.Intervals()); j++ {
			r.AddTo(h, j)
		}
		start := offset + time.Duration(i)*r.Interval()
		if err := w.latency.Write(tag, start, time.Duration(step)*r.Interval(), h); err != nil {
			return err
		}
	}
	return w.Timeline(TimelineOf(cell, repetition, r.Series()))
}
