package runner

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/model"
)

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
	slope, sync := c.line()
	if slope <= 0 || sync <= 0 {
		c.rough = true
		by := func(a, b roundCost) int { return cmp.Compare(a.bytes, b.bytes) }
		least, most := slices.MinFunc(c.points, by), slices.MaxFunc(c.points, by)
		slope, sync = c.typical(most.groups).took.Seconds()/float64(most.bytes), c.typical(least.groups).took.Seconds()
	}
	c.bandwidth, c.sync = 1/slope, max(leastSync, time.Duration(sync*float64(time.Second)))
	if !c.rough {
		c.fitStream()
		c.first = c.firstTakesMore()
	}
	c.fitDelays()
}

// round is the time of a round as the lines have it.
func (c *calibration) round(bytes int64) time.Duration {
	return model.Migration{BandwidthBytesPerSecond: c.bandwidth, SyncCost: c.sync, StreamBandwidthBytesPerSecond: c.stream,
		StreamSyncCost: c.streamSync}.Round(bytes)
}

// fitStream draws the line of large rounds, through the median of those of the last size that was timed in several rounds and
// of the single one that is larger. It is one only if it rises, and less steeply than that of the others.
func (c *calibration) fitStream() {
	several, single := 0, 0
	for _, tr := range c.trains {
		if tr.rounds > 1 {
			several = max(several, tr.groups)
		} else {
			single = max(single, tr.groups)
		}
	}
	if several == 0 || single <= several {
		return
	}
	b0, t0 := c.middle(several, false)
	b1, t1 := c.middle(single, true)
	if t1 <= t0 || b1 <= b0 {
		return
	}
	slope := (t1 - t0) / (b1 - b0)
	fixed := t0 - slope*b0
	if slope < 1/c.bandwidth && fixed > c.sync.Seconds() {
		c.stream, c.streamSync = 1/slope, time.Duration(fixed*float64(time.Second))
	}
}

// middle is the median size and time of rounds of so many groups that were the first of their move, or were not.
func (c *calibration) middle(groups int, first bool) (bytes, seconds float64) {
	var of, took []float64
	for _, p := range c.points {
		if p.groups == groups && p.first == first {
			of, took = append(of, float64(p.bytes)), append(took, p.took.Seconds())
		}
	}
	if len(of) == 0 {
		return 0, 0
	}
	return median(of), median(took)
}

// firstTakesMore is the median of what the first rounds of trains of several took above the line.
func (c *calibration) firstTakesMore() time.Duration {
	var more []float64
	for _, p := range c.points {
		if p.first && slices.ContainsFunc(c.trains, func(tr train) bool { return tr.groups == p.groups && tr.rounds > 1 }) {
			more = append(more, (p.took - c.round(p.bytes)).Seconds())
		}
	}
	if len(more) == 0 {
		return 0
	}
	return max(0, time.Duration(median(more)*float64(time.Second)))
}

// fitDelays looks at the longest delay of each train on its way out, which finds the new owner's memory as cold as the measured
// move will; the way back does not. Above the median at rest it is the maximum over the train's rounds of a round's time and of
// what else went on: so much above the time as σ times the expected maximum of so many normal variables. σ is the median of
// what the trains tell of it.
func (c *calibration) fitDelays() {
	var sigma []float64
	for _, tr := range c.trains {
		if !tr.seen || tr.back {
			continue
		}
		above := max(0, tr.longest-c.rest)
		c.stall = max(c.stall, above)
		if tr.rounds > 1 {
			sigma = append(sigma, max(0, (above-c.round(tr.bytes)).Seconds())/model.NormalMaximum(tr.rounds))
		}
	}
	if len(sigma) > 0 {
		c.jitter = time.Duration(median(sigma) * float64(time.Second))
	}
}

// typical is the round of so many groups that took the median time.
func (c *calibration) typical(groups int) roundCost {
	of := slices.DeleteFunc(slices.Clone(c.points), func(p roundCost) bool { return p.groups != groups })
	slices.SortFunc(of, func(a, b roundCost) int { return cmp.Compare(a.took, b.took) })
	return of[len(of)/2]
}

// line is that of rounds which follow another: seconds a byte, and seconds of none; no slope if there is no line.
func (c *calibration) line() (slope, sync float64) {
	byGroups := map[int][2][]float64{}
	var sizes []int
	for _, p := range c.points {
		if p.first {
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
