package stats

import (
	"math"
	"testing"
	"time"
)

// settling is a recorder with one record a millisecond: 1 ms of delay, and from 1,000 ms up to an end more.
func settling(until time.Duration, slow func(due time.Duration) time.Duration) *Recorder {
	r := NewRecorder(RecorderOptions{Interval: 50 * time.Millisecond, Expect: 4 * time.Second})
	for due := time.Duration(0); due < 4*time.Second; due += time.Millisecond {
		delay := time.Millisecond
		if due >= time.Second && due < until {
			delay = slow(due)
		}
		r.Record(due, due+delay)
	}
	return r
}

func analyse(r *Recorder, trigger, complete time.Duration) Settle {
	s := r.Series()
	sp := AnalyseSpike(s, time.Second, SpikeOptions{Hold: 500 * time.Millisecond})
	return AnalyseSettle(s, sp, trigger, complete, 0)
}

func TestSettleFindsTheFirstStableMoment(t *testing.T) {
	// 100 ms of delay for 300 ms, a calm of 200 ms, which is no hold time, and 100 ms more.
	r := settling(1600*time.Millisecond, func(due time.Duration) time.Duration {
		if due >= 1300*time.Millisecond && due < 1500*time.Millisecond {
			return time.Millisecond
		}
		return 100 * time.Millisecond
	})
	got := analyse(r, time.Second, 1400*time.Millisecond)
	if !got.IsStable || got.Stable != 600*time.Millisecond || got.Until != 1600*time.Millisecond {
		t.Errorf("stable %v after %v, window to %v; want 600 ms and 1.6 s", got.IsStable, got.Stable, got.Until)
	}
	if got.PeakIs != Measured || math.Abs(got.Peak.Seconds()-0.1) > 0.001 {
		t.Errorf("peak %v, want 100 ms", got.Peak)
	}
	// 400 of 600 records took 100 ms, the others 1 ms.
	if want := (400*0.1 + 200*0.001) / 600; math.Abs(got.Mean.Seconds()-want) > 1e-6 {
		t.Errorf("mean %v, want %.4f s", got.Mean, want)
	}
	if want := 400 * 0.099; !got.Counted || math.Abs(got.Excess-want) > 1e-6 {
		t.Errorf("excess %v (%v), want %v", got.Excess, got.Counted, want)
	}
	if want := 400*0.1 + 2600*0.001; math.Abs(got.Total-want) > 1e-6 {
		t.Errorf("total %v, want %v", got.Total, want)
	}
}

func TestSettleOfWhatNobodyFelt(t *testing.T) {
	got := analyse(settling(0, nil), time.Second, 1200*time.Millisecond)
	if !got.IsStable || got.Stable != 0 || got.Until != 1200*time.Millisecond {
		t.Errorf("stable %v after %v, window to %v; want at once, and the window up to the end of the move", got.IsStable, got.Stable, got.Until)
	}
	if math.Abs(got.Excess) > 1e-9 {
		t.Errorf("excess %v, want none", got.Excess)
	}
}

func TestSettleThatNeverIs(t *testing.T) {
	got := analyse(settling(4*time.Second, func(time.Duration) time.Duration { return 100 * time.Millisecond }), time.Second, -1)
	if got.IsStable || got.Reason == "" || got.Until < 4*time.Second {
		t.Errorf("%+v, want no stable moment and a reason", got)
	}
	r := settling(0, nil)
	r.Unanswered(2*time.Second, 1)
	if got := analyse(r, time.Second, -1); got.Counted || got.Reason == "" {
		t.Errorf("%+v, want no total when a record never came", got)
	}
}
