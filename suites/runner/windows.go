package runner

import (
	"math"
	"time"

	"github.com/weir-bench/weir/engine/task"
	"github.com/weir-bench/weir/reports/stats"
)

// delayWindows are the delays of the records that were due in stretches of time, one after the other. They are used on the
// harness's event loop.
type delayWindows struct{ of []*delayWindow }

// delayWindow is one of them.
type delayWindow struct {
	fromNS, toNS int64     // on the trial's axis
	without      *groupSet // whose records are not meant; nil: all are
	delays       *stats.Histogram
}

// open begins a window and ends the one before, if that is open.
func (w *delayWindows) open(nowNS int64, without *groupSet) {
	w.close(nowNS)
	w.of = append(w.of, &delayWindow{fromNS: nowNS, toNS: math.MaxInt64, without: without, delays: stats.NewHistogram()})
}

func (w *delayWindows) close(nowNS int64) {
	if n := len(w.of); n > 0 {
		w.of[n-1].toNS = min(w.of[n-1].toNS, nowNS)
	}
}

// note takes the delays of answers, which may come long after their window has ended.
func (w *delayWindows) note(o *task.Output, originNS int64) {
	for i, t := range o.Columns.Times {
		due := t - originNS
		for k := len(w.of) - 1; k >= 0; k-- {
			if x := w.of[k]; due >= x.fromNS {
				if due < x.toNS && (x.without == nil || !x.without.has(o.Columns.Keys[i])) {
					x.delays.Record(time.Duration(o.CommittedNS-t), 1)
				}
				break
			}
		}
	}
}
