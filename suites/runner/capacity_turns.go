package runner

import (
	"context"
	"time"
)

// CapacityTurn is two periods of one run, one after the other.
type CapacityTurn struct {
	// With is the rate of answers in the period that began with a checkpoint, Without in the one after it, in records/s.
	With, Without float64
	// WithCPU and WithoutCPU are the processor time of workers and harness a record.
	WithCPU, WithoutCPU time.Duration
}

// alternate measures pairs of periods, each pair from the beginning of a checkpoint to that of the next. What the first
// checkpoint needs for the first time, memory before all, is not counted.
func (m *capacityRun) alternate(ctx context.Context) error {
	period := m.o.Checkpoint
	if err := m.nextCheckpoint(ctx); err != nil {
		return err
	}
	if err := m.nextCheckpoint(ctx); err != nil {
		return err
	}
	first, err := m.mark()
	if err != nil {
		return err
	}
	for start := first; len(m.res.Turns) < int(m.o.Duration/(2*period)); {
		if err := m.wait(ctx, "measure", start.at+period); err != nil {
			return err
		}
		half, err := m.mark()
		if err != nil {
			return err
		}
		if err := m.nextCheckpoint(ctx); err != nil {
			return err
		}
		end, err := m.mark()
		if err != nil {
			return err
		}
		var turn CapacityTurn
		turn.With, turn.WithCPU = half.since(start)
		turn.Without, turn.WithoutCPU = end.since(half)
		m.res.Turns = append(m.res.Turns, turn)
		m.res.Elapsed = end.at - first.at
		m.res.RecordsPerS, _ = end.since(first)
		m.res.WorkerCPU, m.res.HarnessCPU = end.workers-first.workers, end.harness-first.harness
		start = end
	}
	return nil
}

// nextCheckpoint waits for a checkpoint to begin.
func (m *capacityRun) nextCheckpoint(ctx context.Context) error { return until(ctx, m.h, m.begun) }

// since returns the rate of answers in records/s and the processor time of each.
func (c capacityMark) since(before capacityMark) (perS float64, cpu time.Duration) {
	n := c.answered - before.answered
	if n == 0 {
		return 0, 0
	}
	return float64(n) / (c.at - before.at).Seconds(), (c.workers + c.harness - before.workers - before.harness) / time.Duration(n)
}
