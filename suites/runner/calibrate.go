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
	bandwidth float64       // b, bytes a second of packing, sending and installing together, of a round that follows another
	// first is b of the first round of a move: the tasks of later ones are still at work on what the round before held up.
	first float64
	rough bool   // what was moved was too little to tell the two apart
	why   string // there is none
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
	// probeShare bounds the largest bundle, as a share of the giving task's groups: what has been moved once has left warm
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
	for _, n := range probeSizes(len(groups)) {
		rounds := min(max(4, probeRounds/n), len(groups)/n)
		bundle := bundleOf(groups, n*rounds, from, to)
		if t.now()+2*(cal.expect(m, bundle)+t.probePause()) > end {
			break
		}
		if ok, err := t.outAndBack(ctx, op, m, bundle, rounds, cal); err != nil || !ok {
			return err
		}
	}
	cal.fit()
	return nil
}

// probeSizes are the numbers of groups in a round that are tried, of so many groups: one, the most, and one between. Few
// groups are tried all the same, as two sizes make a line.
func probeSizes(groups int) []int {
	most := max(int(float64(groups)*probeShare), min(4, groups))
	sizes := []int{1, int(math.Sqrt(float64(most))), most}
	return slices.Compact(slices.DeleteFunc(sizes, func(n int) bool { return n < 1 || n > groups }))
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
	for _, way := range [][]core.Move{moves, back} {
		if err := t.until(ctx, t.now()+t.probePause()); err != nil {
			return false, err
		}
		points, why, err := t.probeMove(ctx, op, m, way, rounds)
		cal.points = append(cal.points, points...)
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
	if err := t.ask(ctx, rec, func() { t.probe = p }); err != nil {
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
	if p.lost != "" {
		return nil, "a move of the calibration was lost: " + p.lost, nil
	}
	for i, moves := range roundsOf(strategy, rec.request) {
		points = append(points, roundCost{len(moves), sizeOf(m, moves), p.took[i], i == 0})
	}
	return points, "", nil
}

// leastSync keeps a cost of rounds above nothing, as rounds that cost nothing have no best number.
const leastSync = 20 * time.Microsecond

// fit draws a line through the medians of rounds of each number of groups, since a single one may have met a hiccup. It
// goes through those of a single group: of their time nearly all is c. When what was moved is too little to see the line, all
// of the time counts for both: rounds are then expected to take longer than they will.
func (c *calibration) fit() {
	if len(c.points) == 0 {
		c.why = "the warm-up was too short, or the operator had no state in it, to move a key group out and back"
		return
	}
	slope, sync := c.line(false)
	if slope <= 0 || sync <= 0 {
		c.rough = true
		by := func(a, b roundCost) int { return cmp.Compare(a.bytes, b.bytes) }
		least, most := slices.MinFunc(c.points, by), slices.MaxFunc(c.points, by)
		slope, sync = c.typical(most.groups).took.Seconds()/float64(most.bytes), c.typical(least.groups).took.Seconds()
	}
	c.bandwidth, c.sync = 1/slope, max(leastSync, time.Duration(sync*float64(time.Second)))
	c.first = c.bandwidth
	if slope, _ := c.line(true); slope > 0 && !c.rough {
		c.first = 1 / slope
	}
}

// typical is the round of so many groups that took the median time.
func (c *calibration) typical(groups int) roundCost {
	of := slices.DeleteFunc(slices.Clone(c.points), func(p roundCost) bool { return p.groups != groups })
	slices.SortFunc(of, func(a, b roundCost) int { return cmp.Compare(a.took, b.took) })
	return of[len(of)/2]
}

// line is that of the first rounds of moves, or of the others: seconds a byte, and seconds of none; no slope if there is no
// line.
func (c *calibration) line(first bool) (slope, sync float64) {
	byGroups := map[int][2][]float64{}
	var sizes []int
	for _, p := range c.points {
		if p.first != first {
			continue
		}
		both, seen := byGroups[p.groups]
		if !seen {
			sizes = append(sizes, p.groups)
		}
		byGroups[p.groups] = [2][]float64{append(both[0], float64(p.bytes)), append(both[1], p.took.Seconds())}
	}
	if len(sizes) < 2 {
		return 0, 0
	}
	slices.Sort(sizes)
	least := byGroups[sizes[0]]
	b0, t0 := median(least[0]), median(least[1])
	up, across := 0.0, 0.0
	for _, n := range sizes[1:] {
		b, t := median(byGroups[n][0])-b0, median(byGroups[n][1])-t0
		up += b * t
		across += b * b
	}
	if across == 0 {
		return 0, 0
	}
	slope = up / across
	return slope, t0 - slope*b0
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
		rounds = append(rounds, map[string]any{"groups": p.groups, "bytes": p.bytes, "ms": runlog.MS(p.took), "first": p.first})
	}
	d["rounds"] = rounds
	if c.ok() {
		d["sync_cost_ms"], d["bandwidth_bytes_per_second"] = runlog.MS(c.sync), c.bandwidth
		d["first_round_bandwidth_bytes_per_second"], d["rough"] = c.first, c.rough
	} else {
		d["why"] = c.why
	}
	t.log.emit(runlog.Event{Kind: Calibrated, Detail: d}, int64(t.now()))
}
