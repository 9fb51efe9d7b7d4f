package runner

import (
	"cmp"
	"context"
	"math"
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
// few and many in a round, and time against size is fitted by a line.
type calibration struct {
	points    []roundCost
	sync      time.Duration // c: what a round costs whatever its size
	bandwidth float64       // b, bytes a second of packing, sending and installing one after the other
	// streamSync and stream are f and B of rounds so large that these overlap; 0: no such line was seen.
	streamSync time.Duration
	stream     float64
	first      time.Duration // what the first round of a move takes more than the others: nothing is warm yet
	trains     []train
	rest       time.Duration // median delay before the first of them
	jitter     time.Duration // σ of the longest delay of a round about its time
	// stall is the longest time that rounds held up the records of key groups that stayed, whose tasks, cores and queues they
	// share; 0: not measured.
	stall time.Duration
	rough bool   // what was moved was too little to tell the costs apart
	why   string // there is none
}

// train is the rounds of one move of the calibration.
type train struct {
	groups, rounds int
	bytes          int64         // of a round, on average
	longest        time.Duration // delay of a record of the groups that stayed, of those due meanwhile
	seen           bool          // there was one
	back           bool          // to where the groups had come from
}

// roundCost is a round that was timed, from the route change until all tasks said that they have their state.
type roundCost struct {
	groups int
	bytes  int64
	took   time.Duration
	first  bool // of its move
}

func (c *calibration) ok() bool { return c != nil && c.why == "" }

// probe is a move of the calibration under way. Its traces are no part of what is measured. It is used on the event loop
// only, but for what it found, which is to be read once over is closed.
type probe struct {
	beganNS int64
	took    []time.Duration // of each round
	lost    string
	over    chan struct{}
	past    bool // another move has begun since
}

// take keeps the trace to itself if it is the probe's.
func (p *probe) take(tr coord.Trace) bool {
	if isClosed(p.over) { // the tasks' last words come behind the end
		p.past = p.past || tr.Kind == coord.TraceMigration
		return !p.past && isRoundDetail(tr.Kind)
	}
	switch tr.Kind {
	case coord.TraceRound:
		p.beganNS = tr.AtNS
	case coord.TraceRoundDone:
		p.took = append(p.took, time.Duration(tr.AtNS-p.beganNS))
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

// calibrates says whether the cell times rounds in its warm-up: each that moves something does, whatever its strategy, so
// that cells that are compared have done the same before. A cell with faults only does so when it has to, as its faults may
// wait for the rounds of the move.
func (t *trial) calibrates() bool {
	m := t.cell.Migration
	if m == nil || isControl(m) {
		return false
	}
	s, err := migration.Lookup(m.Strategy)
	return err == nil && !s.External && (len(t.cell.Faults) == 0 || s.UsesRounds && m.Rounds.Auto)
}

// The calibration has this part of the warm-up: behind most of it, as workers that have just built up their state are still
// busy with their memory, and with time left for delay to calm down.
const probeFrom, probeTo = 0.6, 0.9

const (
	// probeRounds is how many rounds of a single key group are timed on each way.
	probeRounds = 16
	// streamRounds is how many of the largest rounds go into one more, which shows what a byte adds to a large round. Its key
	// groups have all been moved before.
	streamRounds = 4
	// probeShare bounds the largest bundle of several rounds, as a share of the giving task's groups: what has been moved once has left warm
	// memory behind, which the measured move is not to find.
	probeShare = 1.0 / 16
)

// calibrate moves key groups of the most loaded task out and back: first some in a round each, for the cost of a round,
// then larger bundles, for as long as the warm-up has time.
func (t *trial) calibrate(ctx context.Context) error {
	cal := &calibration{}
	t.calibration = cal
	defer func() { t.noteCalibration(cal) }()
	op := operatorIndex(&t.job, t.cell.Migration.Operator)
	now, err := t.readLoads(op)
	if err != nil {
		return err
	}
	m := t.window(op, nil, now.loads, max(now.at, time.Millisecond), now.route)
	from, to := t.endpoints(op, m)
	groups := slices.DeleteFunc((&core.Routes{Task: now.route}).Owned(from), func(g uint32) bool { return m.bytes[g] == 0 })
	slices.SortFunc(groups, func(a, b uint32) int { return cmp.Or(cmp.Compare(m.bytes[a], m.bytes[b]), cmp.Compare(a, b)) })
	end := time.Duration(float64(t.cell.Timing.Warmup) * probeTo)
	windows, err := t.openWindows()
	if err != nil {
		return err
	}
	defer t.closeWindows()
	for _, s := range probeSizes(len(groups)) {
		n, rounds := s.groups, s.rounds
		bundle := bundleOf(groups, n*rounds, from, to)
		if t.now()+2*(cal.expect(m, bundle)+t.probePause()) > end {
			break
		}
		if ok, err := t.outAndBack(ctx, op, m, bundle, rounds, cal); err != nil || !ok {
			return err
		}
	}
	if err := t.until(ctx, t.now()+t.probePause()); err != nil { // the last answers are under way
		return err
	}
	if err := t.readWindows(windows, cal); err != nil {
		return err
	}
	cal.fit()
	return nil
}

// openWindows begins to note the delays that probing leads to; the first window is of none.
func (t *trial) openWindows() (w *delayWindows, err error) {
	w = &delayWindows{}
	if err := t.h.Do(func(*coord.Coordinator, *coord.Effects) {
		w.open(int64(t.now()), nil)
		t.col.windows = w
	}); err != nil {
		return nil, t.over()
	}
	return w, nil
}

func (t *trial) closeWindows() {
	_ = t.h.Do(func(*coord.Coordinator, *coord.Effects) { t.col.windows = nil }) // no harness, no collector
}

// readWindows gives each train its longest delay.
func (t *trial) readWindows(w *delayWindows, cal *calibration) error {
	if err := t.h.Do(func(*coord.Coordinator, *coord.Effects) {
		cal.rest, _ = w.of[0].delays.MeasuredPercentile(50)
		for i := range min(len(cal.trains), len(w.of)-1) {
			cal.trains[i].longest, cal.trains[i].seen = w.of[i+1].delays.Max()
		}
	}); err != nil {
		return t.over()
	}
	return nil
}

// probeSize is how many groups are in each of how many rounds.
type probeSize struct{ groups, rounds int }

// probeSizes are the rounds that are tried, of so many groups: of one, of the most, and of some between; and at last one round
// that is larger still. Few groups are tried all the same, as two sizes make a line.
func probeSizes(groups int) (out []probeSize) {
	most := max(int(float64(groups)*probeShare), min(4, groups))
	sizes := []int{1, int(math.Sqrt(float64(most))), most}
	for _, n := range slices.Compact(slices.DeleteFunc(sizes, func(n int) bool { return n < 1 || n > groups })) {
		out = append(out, probeSize{n, min(max(streamRounds, probeRounds/n), groups/n)})
	}
	if large := streamRounds * most; large <= groups && most > 0 {
		out = append(out, probeSize{large, 1})
	}
	return out
}

// probePause lets the tasks work off what a move held up, so that the next one finds them as the measured one will.
func (t *trial) probePause() time.Duration { return t.cell.Detection.Heartbeat }

// bundleOf takes n of the groups, evenly spread, so that sizes are mixed as they are in all of them.
func bundleOf(groups []uint32, n, from, to int) []core.Move {
	var out []core.Move
	for i := range n {
		out = append(out, core.Move{Group: groups[(2*i+1)*len(groups)/(2*n)], From: from, To: to})
	}
	return out
}

// expect is how long a move is likely to take: as if time grew with size.
func (c *calibration) expect(m meters, moves []core.Move) time.Duration {
	took, bytes := time.Duration(0), int64(0)
	for _, p := range c.points {
		took += p.took
		bytes += p.bytes
	}
	return time.Duration(float64(took) * float64(sizeOf(m, moves)) / float64(max(1, bytes)))
}

func sizeOf(m meters, moves []core.Move) (n int64) {
	for _, mv := range moves {
		n += m.bytes[mv.Group]
	}
	return n
}

// outAndBack moves a bundle there and back again, in rounds. It is not ok when the engine did not do so.
func (t *trial) outAndBack(ctx context.Context, op int, m meters, moves []core.Move, rounds int, cal *calibration) (ok bool, err error) {
	back := make([]core.Move, len(moves))
	for i, mv := range moves {
		back[i] = core.Move{Group: mv.Group, From: mv.To, To: mv.From}
	}
	for i, way := range [][]core.Move{moves, back} {
		if err := t.until(ctx, t.now()+t.probePause()); err != nil {
			return false, err
		}
		points, why, err := t.probeMove(ctx, op, m, way, rounds)
		cal.points = append(cal.points, points...)
		if n := len(points); n > 0 {
			cal.trains = append(cal.trains, train{groups: len(way) / n, rounds: n, bytes: sizeOf(m, way) / int64(n), back: i == 1})
		}
		if err != nil || why != "" {
			cal.why = why
			return false, err
		}
	}
	return true, nil
}

// probeMove makes one move and waits for it. why says that the engine refused it or lost it.
func (t *trial) probeMove(ctx context.Context, op int, m meters, list []core.Move, rounds int) (points []roundCost, why string, err error) {
	strategy, err := migration.Lookup(probeStrategy)
	if err != nil {
		return nil, "", err
	}
	rec := &moveRecord{strategy: strategy, request: migration.Request{Operator: op, Moves: list, Rounds: rounds}}
	p := &probe{over: make(chan struct{})}
	moving := newGroupSet(t.job.Operators[op].Groups)
	for _, mv := range list {
		moving.in[mv.Group] = true
	}
	if t.col.query != nil { // the keys of a query's outputs are others than those of its state
		moving = nil
	}
	if err := t.ask(ctx, rec, func() {
		t.probe = p
		t.col.windows.open(int64(t.now()), moving)
	}); err != nil {
		return nil, "", err
	}
	if rec.refused != "" {
		return nil, rec.refused, nil
	}
	select {
	case <-p.over:
	case <-t.h.Done():
		return nil, "", t.over()
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	if err := t.h.Do(func(*coord.Coordinator, *coord.Effects) { t.col.windows.close(int64(t.now())) }); err != nil {
		return nil, "", t.over()
	}
	if p.lost != "" {
		return nil, "a move of the calibration was lost: " + p.lost, nil
	}
	for i, moves := range roundsOf(strategy, rec.request) {
		points = append(points, roundCost{len(moves), sizeOf(m, moves), p.took[i], i == 0})
	}
	return points, "", nil
}

func (t *trial) noteCalibration(c *calibration) {
	d := map[string]any{}
	var rounds []map[string]any
	for _, p := range c.points {
		rounds = append(rounds, map[string]any{"groups": p.groups, "bytes": p.bytes, "ms": runlog.MS(p.took), "first": p.first})
	}
	d["rounds"] = rounds
	var moves []map[string]any
	for _, tr := range c.trains {
		moves = append(moves, map[string]any{"groups": tr.groups, "rounds": tr.rounds, "bytes": tr.bytes, "longest_delay_ms": runlog.MS(tr.longest), "back": tr.back})
	}
	d["moves"] = moves
	if c.ok() {
		d["sync_cost_ms"], d["bandwidth_bytes_per_second"] = runlog.MS(c.sync), c.bandwidth
		d["first_round_extra_ms"], d["rough"] = runlog.MS(c.first), c.rough
		d["jitter_ms"], d["stall_ms"], d["delay_at_rest_ms"] = runlog.MS(c.jitter), runlog.MS(c.stall), runlog.MS(c.rest)
		if c.stream > 0 {
			d["stream_sync_cost_ms"], d["stream_bandwidth_bytes_per_second"] = runlog.MS(c.streamSync), c.stream
		}
	} else {
		d["why"] = c.why
	}
	t.log.emit(runlog.Event{Kind: Calibrated, Detail: d}, int64(t.now()))
}
