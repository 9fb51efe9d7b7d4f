package runner

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration/detect"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/workloads"
)

// segment is a stretch of a trial in which neither the shares of the keys nor the routes change, or in which they change
// all the time towards what they are at its end.
type segment struct {
	from, to time.Duration
	gradual  bool
	theta    float64 // imbalance of the tasks, of the records that are due; at the end of a gradual one
}

// segments cuts [0, length) where the workload changes, and at cuts.
func segments(onsets []workloads.Onset, cuts []time.Duration, length time.Duration) []segment {
	marks := append([]time.Duration{0, length}, cuts...)
	for _, o := range onsets {
		marks = append(marks, o.Begin)
		if o.End > o.Begin {
			marks = append(marks, o.End)
		}
	}
	slices.Sort(marks)
	marks = slices.Compact(marks)
	var out []segment
	for i := 1; i < len(marks); i++ {
		from, to := marks[i-1], marks[i]
		if from < 0 || to > length {
			continue
		}
		s := segment{from: from, to: to}
		for _, o := range onsets {
			if o.Begin <= from && to <= o.End && o.Kind != workloads.ChangeFlash {
				s.gradual = true
			}
		}
		out = append(out, s)
	}
	return out
}

// unclear is how far from the threshold, as a share of it, the true imbalance has to be for anything to be right or wrong:
// what lies between may be taken either way.
const unclear = 0.25

// truth is when tasks were skewed.
type truth struct {
	skewed, unclear []detect.Episode
	why             string // there is none
}

// judgeSegments turns segments into episodes, of which those that touch are one.
func judgeSegments(list []segment, threshold float64, from time.Duration) truth {
	var out truth
	add := func(to *[]detect.Episode, s segment) {
		if n := len(*to); n > 0 && (*to)[n-1].End == s.from {
			(*to)[n-1].End = s.to
			return
		}
		*to = append(*to, detect.Episode{Start: s.from, End: s.to})
	}
	for _, s := range list {
		s.from = max(s.from, from)
		switch {
		case s.from >= s.to:
		case s.theta > threshold*(1+unclear):
			add(&out.skewed, s)
		case s.theta > threshold*(1-unclear):
			add(&out.unclear, s)
		}
	}
	return out
}

// truthWindow and truthRecords bound how many records tell the imbalance of a segment.
const (
	truthWindow  = 2 * time.Second
	truthRecords = 400_000
)

// truth says when tasks were skewed, from the records that the workload has due, whether or not anybody worked on them.
// The harness is closed.
func (t *trial) truth() truth {
	w, m := t.watch, t.cell.Migration
	switch {
	case t.col.query != nil || !keyTravels(&t.job, w.op):
		return truth{why: "the operator's keys are others than those of the workload, which knows of its own skew only"}
	case len(w.routes) == 0:
		return truth{why: "the trial ended before the first look"}
	case m.Detect.Signal == "state" || m.Detect.Signal == "cpu" && t.cell.Workload.Service.Kind != "":
		return truth{why: "the workload knows the skew of records only"}
	}
	onsets := t.w.Truth(t.length)
	if onsets == nil {
		return truth{why: "the workload does not say when its skew begins"}
	}
	var cuts []time.Duration
	if tr, ok := t.find(traceMoved, t.migrationAt()); ok {
		cuts = append(cuts, t.onAxis(tr))
	}
	list := segments(onsets, cuts, t.length)
	for i := range list {
		s := &list[i]
		from, to := s.from, min(s.to, s.from+truthWindow)
		if s.gradual {
			from, to = max(s.from, s.to-truthWindow), s.to
		}
		s.theta = theta(byTask(t.dueByGroup(from, to), w.routeAt(s.from), w.tasks))
	}
	return judgeSegments(list, m.Detect.Theta, w.from)
}

// routeAt is the table at a time; of a time before the first look, the first one.
func (w *watch) routeAt(at time.Duration) []int32 {
	i, _ := slices.BinarySearchFunc(w.routes, at, func(r routeAt, at time.Duration) int { return cmp.Compare(r.at, at+1) })
	return w.routes[max(0, i-1)].route
}

// dueByGroup counts the records due in a stretch of time by the key groups of the operator that is watched.
func (t *trial) dueByGroup(from, to time.Duration) []float64 {
	groups := t.job.Operators[t.watch.op].Groups
	out := make([]float64, groups)
	var cols core.Columns
	for _, split := range t.feed.splits {
		first, end := split.Scheduled(from), split.Scheduled(to)
		end = min(end, first+uint64(truthRecords/len(t.feed.splits)))
		for at := first; at < end; at += core.MaxBatch {
			cols.Reset()
			split.Fill(&cols, at, int(min(core.MaxBatch, end-at)))
			for _, key := range cols.Keys {
				out[core.KeyGroup(key, groups)]++
			}
		}
	}
	return out
}

// detectionMetrics compare the alarms with the truth.
func (t *trial) detectionMetrics(m map[string]runlog.Metric) {
	w := t.watch
	if w == nil {
		return
	}
	if t.skew.why != "" {
		m["detection_delay_ms"] = runlog.Missing("ms", t.skew.why)
		m["false_alarms"], m["misses"] = runlog.Missing("alarms", t.skew.why), runlog.Missing("episodes", t.skew.why)
		return
	}
	d := t.cell.Migration.Detect
	// The meters remember skew for some half-lives after its end.
	r, err := detect.Score(t.skew.skewed, w.alarms, d.Hold+4*d.Smoothing)
	if err != nil {
		panic(err) // segments and samples are in order
	}
	for _, a := range w.alarms {
		for _, e := range t.skew.unclear {
			if a >= e.Start && a < e.End && !slices.ContainsFunc(t.skew.skewed, func(s detect.Episode) bool { return a >= s.Start && a < s.End }) {
				r.FalseAlarms = max(0, r.FalseAlarms-1)
			}
		}
	}
	m["false_alarms"], m["misses"] = runlog.Value(float64(r.FalseAlarms), "alarms"), runlog.Value(float64(r.Misses), "episodes")
	switch mean, ok := r.MeanDelay(); {
	case ok:
		m["detection_delay_ms"] = runlog.Value(runlog.MS(mean), "ms")
	case r.Episodes == 0:
		m["detection_delay_ms"] = runlog.Missing("ms", "no task was skewed")
	default:
		m["detection_delay_ms"] = runlog.AtLeast(runlog.MS(t.length-t.skew.skewed[0].Start), "ms", "skew was not detected within the trial")
	}
}
