package spec

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"time"
)

// Trial is one repetition of one cell.
type Trial struct {
	Index      int // place in the plan, from 0
	Cell       int // index in Suite.Cells
	Name       string
	Repetition int    // from 0
	Seed       uint64 // of the workload and all chances: the same in every cell of a repetition
	Estimate   time.Duration
}

// Startup is what an estimate adds to the phases of a trial for starting its
// workers, draining and checking.
const Startup = 700 * time.Millisecond

// Plan lays out the trials of the cells whose name matches only (nil: all), in
// their order. It is a function of the suite alone. All cells of a repetition
// share a seed, so that they see the same load and a difference between them is
// the strategy's.
func Plan(s *Suite, only *regexp.Regexp) ([]Trial, error) {
	var cells []int
	for i, c := range s.Cells {
		if only == nil || only.MatchString(c.Name) {
			cells = append(cells, i)
		}
	}
	if len(cells) == 0 {
		names := make([]string, len(s.Cells))
		for i, c := range s.Cells {
			names[i] = c.Name
		}
		return nil, fmt.Errorf("%w: no cell matches %q; %s", ErrInvalid, only, suggest(only.String(), names))
	}
	seeds := rand.New(rand.NewPCG(s.Seed, 0x7365656473))
	order := rand.New(rand.NewPCG(s.Seed, 0x6f72646572))
	var plan []Trial
	for rep := range s.Repeat {
		block := make([]Trial, 0, len(cells))
		seed := seeds.Uint64()
		for _, i := range cells {
			c := &s.Cells[i]
			block = append(block, Trial{Cell: i, Name: c.Name, Repetition: rep, Seed: seed, Estimate: c.Duration() + Startup})
		}
		if s.Order == "interleaved" {
			shuffle(order, block)
		}
		plan = append(plan, block...)
	}
	switch s.Order {
	case "random":
		shuffle(order, plan)
	case "blocked":
		plan = byCell(plan, len(cells), s.Repeat)
	}
	for i := range plan {
		plan[i].Index = i
	}
	return plan, nil
}

func shuffle(r *rand.Rand, t []Trial) {
	r.Shuffle(len(t), func(i, j int) { t[i], t[j] = t[j], t[i] })
}

// byCell turns repetition-major order into cell-major order.
func byCell(plan []Trial, cells, repeat int) []Trial {
	out := make([]Trial, 0, len(plan))
	for c := range cells {
		for r := range repeat {
			out = append(out, plan[r*cells+c])
		}
	}
	return out
}

// Total is the estimate of a plan's time.
func Total(plan []Trial) time.Duration {
	var d time.Duration
	for _, t := range plan {
		d += t.Estimate
	}
	return d
}

// Duration is the time that a trial of the cell takes by its phases.
func (c *Cell) Duration() time.Duration {
	return c.Timing.Warmup + c.LastEvent() + c.Timing.After + c.Timing.Capacity
}

// LastEvent is the time of the last planned event, from the end of the warm-up;
// at least the steady phase. Events that wait for a trigger count as its end.
func (c *Cell) LastEvent() time.Duration {
	last := c.Timing.Steady
	if m := c.Migration; m != nil {
		at := c.EventTime(m.At)
		if m.Back != nil {
			at += *m.Back
		}
		last = max(last, at)
		if m.Trigger == "detect" { // what is to be detected begins with a change of the keys
			for _, ch := range c.Workload.Changes {
				last = max(last, ch.At-c.Timing.Warmup)
			}
		}
	}
	for _, f := range c.Faults {
		last = max(last, c.EventTime(f.At)+f.For)
	}
	if c.Storm != nil {
		last = max(last, c.Storm.To+c.Storm.For)
	}
	return last
}

// EventTime gives the time of an event from the end of the warm-up: its own, or
// the end of the steady phase.
func (c *Cell) EventTime(at *time.Duration) time.Duration {
	if at == nil {
		return c.Timing.Steady
	}
	return *at
}
