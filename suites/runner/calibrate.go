package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/reports/runlog"
)

// Calibrated is the kind of the run-log event that holds what the probing of the running engine found.
const Calibrated = "calibrated"

// probeStrategy moves what a probe moves, in one round each.
const probeStrategy = "async-rounds"

// calibration is the cost of rounds, measured in the warm-up on the running engine: some key groups are moved out and back,
// few and many, and time against size is fitted by a line.
type calibration struct {
	points    []roundCost
	sync      time.Duration // c: what a round costs whatever its size
	bandwidth float64       // b, bytes a second of packing, sending and installing together
	why       string        // there is none
}

// roundCost is a round that was timed, from the route change until all tasks said that they have their state.
type roundCost struct {
	groups int
	bytes  int64
	took   time.Duration
}

func (c *calibration) ok() bool { return c != nil && c.why == "" }

// probe is a move of the calibration under way. Its traces are no part of what is measured. It is used on the event loop
// only, but for over and took, which is to be read once over is closed.
type probe struct {
	beganNS int64
	took    time.Duration
	lost    string
	over    chan struct{}
}

// take keeps the trace to itself if it is the probe's.
func (p *probe) take(tr coord.Trace) bool {
	switch tr.Kind {
	case coord.TraceRound:
		p.beganNS = tr.AtNS
	case coord.TraceRoundDone:
		p.took = time.Duration(tr.AtNS - p.beganNS)
	case traceMoved:
		close(p.over)
	case coord.TraceMigrationLost:
		p.lost = tr.Detail
		close(p.over)
	case coord.TraceMigration, coord.TraceCopy:
	default:
		return isRoundDetail(tr.Kind)
	}
	return true
}

// calibrates says whether the cell needs the cost model. A cell with faults and a fixed number of rounds does not: its
// faults may wait for the rounds of the move.
func (t *trial) calibrates() bool {
	m := t.cell.Migration
	if m == nil || isControl(m) {
		return false
	}
	s, err := migration.Lookup(m.Strategy)
	return err == nil && s.UsesRounds && (m.Rounds.Auto || len(t.cell.Faults) == 0)
}

// probeReserve is the part of the warm-up behind the calibration in which delay calms down.
const probeReserve = 0.15

// calibrate moves bundles of key groups of the most loaded task out and back, each four times as large as the one before,
// for as long as the warm-up has time for it.
func (t *trial) calibrate(ctx context.Context) error {
	cal := &calibration{}
	t.calibration = cal
	defer func() { t.noteCalibration(cal) }()
	op := operatorIndex(&t.job, t.cell.Migration.Operator)
	var loads []groupLoad
	var route []int32
	if err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		loads = groupLoads(c, &t.job)
		route = slices.Clone(c.Routes(op).Task)
	}); err != nil {
		return t.over()
	}
	m := t.window(op, nil, loads, max(t.now(), time.Millisecond), route)
	from, to := t.endpoints(op, m)
	groups := slices.DeleteFunc((&core.Routes{Task: route}).Owned(from), func(g uint32) bool { return m.bytes[g] == 0 })
	if len(groups) == 0 {
		cal.why = fmt.Sprintf("no key group of task %d had state in the warm-up", from)
		return nil
	}
	slices.SortFunc(groups, func(a, b uint32) int { return cmp.Or(cmp.Compare(m.bytes[a], m.bytes[b]), cmp.Compare(a, b)) })
	end := time.Duration(float64(t.cell.Timing.Warmup) * (1 - probeReserve))
	for n := 1; ; n *= 4 {
		n = min(n, max(1, len(groups)/2))
		bundle := bundleOf(groups, n, from, to)
		times := 2
		if n > 1 {
			times = 1
		}
		for range times {
			if t.now()+2*cal.expect(m, bundle) > end {
				return cal.fit(len(cal.points) > 0)
			}
			if ok, err := t.outAndBack(ctx, op, m, bundle, cal); err != nil || !ok {
				return errors.Join(err, cal.fit(true))
			}
		}
		if n >= len(groups)/2 {
			return cal.fit(true)
		}
	}
}

// bundleOf takes n of the groups, evenly spread, so that sizes are mixed as they are in all of them.
func bundleOf(groups []uint32, n, from, to int) []core.Move {
	var out []core.Move
	for i := range n {
		out = append(out, core.Move{Group: groups[(2*i+1)*len(groups)/(2*n)], From: from, To: to})
	}
	return out
}

// expect is how long a round is likely to take: at most as if time grew with size.
func (c *calibration) expect(m meters, moves []core.Move) time.Duration {
	if len(c.points) == 0 {
		return 0
	}
	last := c.points[len(c.points)-1]
	return time.Duration(float64(last.took) * max(1, float64(sizeOf(m, moves))/float64(max(1, last.bytes))))
}

func sizeOf(m meters, moves []core.Move) (n int64) {
	for _, mv := range moves {
		n += m.bytes[mv.Group]
	}
	return n
}

// outAndBack moves a bundle there and back again. It is not ok when the engine did not do so.
func (t *trial) outAndBack(ctx context.Context, op int, m meters, moves []core.Move, cal *calibration) (ok bool, err error) {
	back := make([]core.Move, len(moves))
	for i, mv := range moves {
		back[i] = core.Move{Group: mv.Group, From: mv.To, To: mv.From}
	}
	for _, way := range [][]core.Move{moves, back} {
		took, why, err := t.probeMove(ctx, op, way)
		if err != nil {
			return false, err
		}
		if why != "" {
			cal.why = why
			return false, nil
		}
		cal.points = append(cal.points, roundCost{len(moves), sizeOf(m, moves), took})
	}
	return true, nil
}

// probeMove makes one move and waits for it. why says that the engine refused it or lost it.
func (t *trial) probeMove(ctx context.Context, op int, list []core.Move) (took time.Duration, why string, err error) {
	strategy, err := migration.Lookup(probeStrategy)
	if err != nil {
		return 0, "", err
	}
	rec := &moveRecord{strategy: strategy, request: migration.Request{Operator: op, Moves: list, Rounds: 1}}
	p := &probe{over: make(chan struct{})}
	if err := t.ask(ctx, rec, func() { t.probe = p }); err != nil {
		return 0, "", err
	}
	if rec.refused != "" {
		return 0, rec.refused, nil
	}
	select {
	case <-p.over:
		return p.took, p.lost, nil
	case <-t.h.Done():
		return 0, "", t.over()
	case <-ctx.Done():
		return 0, "", ctx.Err()
	}
}

// leastSync keeps a cost of rounds above nothing, as rounds that cost nothing have no best number.
const leastSync = 20 * time.Microsecond

// fit draws the line: the slope is the median of those between points of different sizes (Theil 1950; Sen 1968), since a
// single round may have met a hiccup; c is what is left of the rounds, their median.
func (c *calibration) fit(measured bool) error {
	if c.why != "" {
		return nil
	}
	if !measured || len(c.points) == 0 {
		c.why = "the warm-up was over before a key group had moved out and back"
		return nil
	}
	var slopes []float64 // seconds a byte
	for i, a := range c.points {
		for _, b := range c.points[:i] {
			if a.bytes >= 2*b.bytes || b.bytes >= 2*a.bytes {
				slopes = append(slopes, (a.took-b.took).Seconds()/float64(a.bytes-b.bytes))
			}
		}
	}
	if len(slopes) == 0 {
		c.why = "the warm-up had no time for moves of different sizes"
		return nil
	}
	slope := median(slopes)
	if slope <= 0 { // what was moved is too little to be seen in the time
		largest := slices.MaxFunc(c.points, func(a, b roundCost) int { return cmp.Compare(a.bytes, b.bytes) })
		slope = largest.took.Seconds() / float64(largest.bytes) / 10
	}
	var rest []float64
	for _, p := range c.points {
		rest = append(rest, p.took.Seconds()-slope*float64(p.bytes))
	}
	c.bandwidth = 1 / slope
	c.sync = max(leastSync, time.Duration(median(rest)*float64(time.Second)))
	return nil
}

func median(of []float64) float64 {
	slices.Sort(of)
	n := len(of)
	if n%2 == 1 {
		return of[n/2]
	}
	return (of[n/2-1] + of[n/2]) / 2
}

func (t *trial) noteCalibration(c *calibration) {
	d := map[string]any{}
	var rounds []map[string]any
	for _, p := range c.points {
		rounds = append(rounds, map[string]any{"groups": p.groups, "bytes": p.bytes, "ms": runlog.MS(p.took)})
	}
	d["rounds"] = rounds
	if c.ok() {
		d["sync_cost_ms"], d["bandwidth_bytes_per_second"] = runlog.MS(c.sync), c.bandwidth
	} else {
		d["why"] = c.why
	}
	t.log.emit(runlog.Event{Kind: Calibrated, Detail: d}, int64(t.now()))
}
