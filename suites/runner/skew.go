package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration/detect"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// SkewDetected is the kind of the run-log event of a detector's alarm.
const SkewDetected = "skew_detected"

// watch looks at the meters of an operator all the time and lets the detector judge them.
type watch struct {
	op, tasks int
	service   bool // the operator's tasks tell how long they served
	signal    detect.Signal
	detector  *detect.Detector
	meter     *rateMeter

	every, window       time.Duration // between two looks, and between two samples
	nextLook, nextTaken time.Duration
	from                time.Duration // alarms count from here on
	armed               bool
	acting              bool // a look is under way, or what follows from it

	sample  detect.Sample
	totals  []totals // behind the last samples
	version uint64
	routes  []routeAt
	alarms  []time.Duration
	efforts []effort // the last ones, one for each effortEvery
}

// totals is what had been counted by group up to a sample.
type totals struct {
	at      time.Duration
	records []float64
	load    []float64 // in the detector's signal
}

// maxTotals bounds how far back a watch remembers.
const maxTotals = 64

// routeAt is a route table from a time on.
type routeAt struct {
	at    time.Duration
	route []int32
}

// effortEvery is how often a watch reads how much was worked.
const effortEvery = 500 * time.Millisecond

// detectConfig is the detector that a cell asks for.
func detectConfig(d spec.Detect, tasks, groups int) detect.Config {
	c := detect.DefaultConfig(tasks, groups)
	// The release level keeps its place relative to the threshold.
	c.Threshold, c.Release = d.Theta, d.Theta*c.Release/c.Threshold
	c.Hold, c.HalfLife = d.Hold, d.Smoothing
	c.Signal = map[string]detect.Signal{"records": detect.Records, "cpu": detect.CPU, "state": detect.State}[d.Signal]
	return c
}

// newWatch is nil for a cell whose moves are not begun by a detector.
func (t *trial) newWatch() (*watch, error) {
	m := t.cell.Migration
	if m == nil || m.Trigger != "detect" {
		return nil, nil
	}
	op := operatorIndex(&t.job, m.Operator)
	o := t.job.Operators[op]
	groups := int(o.Groups)
	cfg := detectConfig(m.Detect, o.Parallelism, groups)
	d, err := detect.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("cell %s: %w", t.cell.Name, err)
	}
	w := &watch{op: op, tasks: o.Parallelism, service: o.Service.Mode != "", signal: cfg.Signal, detector: d,
		meter: newRateMeter(o.Parallelism, groups), window: m.Detect.Window, from: t.cell.Timing.Warmup,
		every: min(m.Detect.Window, max(t.cell.Detection.Heartbeat, time.Millisecond))}
	w.sample.Records, w.sample.CPU = make([]int64, groups), make([]time.Duration, groups)
	return w, nil
}

// lookAround polls the watch if it is time to; an alarm begins the migration. It is called by until, all the time.
func (t *trial) lookAround(ctx context.Context) error {
	w := t.watch
	now := t.now()
	if w == nil || w.acting || now < w.nextLook || now >= t.length {
		return nil
	}
	w.acting = true
	defer func() { w.acting = false }()
	w.nextLook = now + w.every
	if err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		now = t.now()
		meters := c.Meters()
		for i, id := range t.graph.OpTasks[w.op] {
			w.meter.look(i, &meters[id], now)
		}
		if r := c.Routes(w.op); len(w.routes) == 0 || r.Version != w.version || !slices.Equal(r.Task, w.routes[len(w.routes)-1].route) {
			w.version = r.Version
			w.routes = append(w.routes, routeAt{now, slices.Clone(r.Task)})
		}
	}); err != nil {
		return t.over()
	}
	if now < w.nextTaken {
		return nil
	}
	w.nextTaken = now + w.window
	if n := len(w.efforts); n == 0 || now-w.efforts[n-1].at >= effortEvery || w.signal == detect.CPU {
		e, err := t.effort()
		if err != nil {
			return err
		}
		w.efforts = append(w.efforts, e)
		w.efforts = w.efforts[max(0, len(w.efforts)-16):]
	}
	return t.detectSkew(ctx, now)
}

// detectSkew gives the detector one sample.
func (t *trial) detectSkew(ctx context.Context, now time.Duration) error {
	w := t.watch
	if !w.armed && now >= w.from {
		w.detector.Rearm() // skew that was there before shows again after a hold time
		w.armed = true
	}
	w.meter.take(now, w.sample.Records)
	route := w.routes[len(w.routes)-1].route
	w.sample.At, w.sample.Route, w.sample.StateBytes = now, route, w.meter.bytes
	if w.signal == detect.CPU {
		t.spreadCPU(w)
	}
	w.add(now)
	status, err := w.detector.Step(w.sample)
	if err != nil {
		return fmt.Errorf("detect skew in cell %s: %w", t.cell.Name, err)
	}
	if !status.Alarm || !w.armed {
		return nil
	}
	w.alarms = append(w.alarms, now)
	acts := t.migration == nil && !isControl(t.cell.Migration)
	t.log.emit(runlog.Event{Kind: SkewDetected, Detail: map[string]any{"task": status.Worst, "theta": round4(status.Theta),
		"noise": round4(status.Noise), "since_ms": runlog.MS(status.Since), "acts": acts}}, int64(now))
	if !acts {
		return nil
	}
	from, to := w.fresh()
	return t.adjust(ctx, now, w.since(status.Since), from, to)
}

// add adds the newest sample to the totals.
func (w *watch) add(now time.Duration) {
	n := len(w.sample.Records)
	next := totals{now, make([]float64, n), make([]float64, n)}
	if k := len(w.totals); k > 0 {
		copy(next.records, w.totals[k-1].records)
		copy(next.load, w.totals[k-1].load)
		if k == maxTotals { // the oldest gives its memory away
			w.totals = append(w.totals[:0], w.totals[1:]...)
		}
	}
	for g, r := range w.sample.Records {
		next.records[g] += float64(r)
		if w.signal == detect.CPU {
			next.load[g] += w.sample.CPU[g].Seconds()
		}
	}
	w.totals = append(w.totals, next)
}

// since is the load of the groups from a time on, as far back as is known: what they had before skew began, which the
// detector's smoothed meters still hold in part, is no load to plan for.
func (w *watch) since(at time.Duration) meters {
	m := newMeters(slices.Clone(w.routes[len(w.routes)-1].route))
	copy(m.bytes, w.meter.bytes)
	last := w.totals[len(w.totals)-1]
	first := w.totals[0]
	for _, t := range w.totals {
		if t.at <= at {
			first = t
		}
	}
	span := (last.at - first.at).Seconds()
	for g := range m.rate {
		if span > 0 {
			m.rate[g] = (last.records[g] - first.records[g]) / span
		}
		switch {
		case w.signal == detect.State:
			m.load[g] = float64(m.bytes[g])
		case w.signal == detect.CPU && span > 0:
			m.load[g] = (last.load[g] - first.load[g]) / span
		default:
			m.load[g] = m.rate[g]
		}
	}
	return m
}

// spreadCPU divides the processor time of each task since the sample before among its groups by their records: meters have
// it by task only. A task without a service time has the share of its worker's time that it has of the inputs.
func (t *trial) spreadCPU(w *watch) {
	clear(w.sample.CPU)
	n := len(w.efforts)
	if n < 2 {
		return
	}
	from, to := w.efforts[n-2], w.efforts[n-1]
	records := make([]int64, w.tasks)
	for g, d := range w.sample.Route {
		records[d] += w.sample.Records[g]
	}
	used := make([]time.Duration, w.tasks)
	for i, id := range t.graph.OpTasks[w.op] {
		used[i] = t.cpuOf(id, from, to, w.service)
	}
	for g, d := range w.sample.Route {
		if records[d] > 0 {
			w.sample.CPU[g] = time.Duration(float64(used[d]) * float64(w.sample.Records[g]) / float64(records[d]))
		}
	}
}

// cpuOf is the time that a task was at work between two readings.
func (t *trial) cpuOf(task int, from, to effort, service bool) time.Duration {
	if service {
		return max(0, to.busy[task]-from.busy[task])
	}
	slot := t.graph.Tasks[task].Slot
	inputs, own := uint64(0), uint64(0)
	for id, other := range t.graph.Tasks {
		if other.Slot == slot && to.consumed[id] >= from.consumed[id] {
			inputs += to.consumed[id] - from.consumed[id]
			if id == task {
				own = to.consumed[id] - from.consumed[id]
			}
		}
	}
	if inputs == 0 || from.cpu[slot] < 0 {
		return 0
	}
	return time.Duration(float64(max(0, to.cpu[slot]-from.cpu[slot])) * float64(own) / float64(inputs))
}

// fresh is a window of effort that ends now and began not long before.
func (w *watch) fresh() (from, to effort) {
	if n := len(w.efforts); n > 0 {
		to = w.efforts[n-1]
		from = w.efforts[0]
		for _, e := range w.efforts {
			if to.at-e.at >= effortEvery {
				from = e
			}
		}
	}
	return from, to
}

// keyTravels says whether the operator that is watched sees the keys of the workload, so that what the workload knows of
// its skew is true of the operator.
func keyTravels(job *core.Job, op int) bool {
	o := job.Operators[op]
	for _, in := range o.Inputs {
		i := operatorIndex(job, in)
		switch kind := job.Operators[i].Kind; kind {
		case "source":
		case "forward", "count", "sum":
			if !keyTravels(job, i) {
				return false
			}
		default:
			return false
		}
	}
	return true
}
