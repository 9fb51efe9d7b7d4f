package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/recovery"
)

// Mixed, as a trial's recovery, draws a strategy for each operator or task, of those that go together: standbys with
// replays from senders' logs, or with checkpoints in scope task. A strategy with a colon names its scope as well, as in
// "checkpoint:task".
const Mixed = "mixed"

// recoveries are what a trial draws from.
func recoveries() []string {
	return []string{"checkpoint", "checkpoint:task", "checkpoint:region", "active", "passive", "upstream", "none", Mixed}
}

// protect gives a trial's operators their recovery. The stateful one cannot be made again from a part of its input, so that
// with upstream it is passive.
func protect(job *core.Job, name string, r *rand.Rand) {
	strategy, scope, _ := strings.Cut(name, ":")
	set := func(op *core.OperatorSpec, strategy, scope string) {
		op.Recovery = strategy
		if strategy == core.RecoveryCheckpoint {
			op.Scope = scope
		}
	}
	if strategy != Mixed {
		for i := range job.Operators {
			op := &job.Operators[i]
			set(op, strategy, scope)
			if strategy == core.RecoveryUpstream && op.Groups > 0 {
				set(op, core.RecoveryPassive, "")
			}
		}
		return
	}
	bases := r.IntN(2) == 0
	draw := func(stateful bool) string {
		switch {
		case bases:
			return pick(r, core.RecoveryActive, core.RecoveryCheckpoint)
		case stateful:
			return pick(r, core.RecoveryActive, core.RecoveryPassive)
		}
		return pick(r, core.RecoveryActive, core.RecoveryPassive, core.RecoveryUpstream)
	}
	for i := range job.Operators {
		op := &job.Operators[i]
		set(op, draw(op.Groups > 0), core.ScopeTask)
		if r.IntN(2) == 0 {
			for range op.Parallelism {
				s := draw(op.Groups > 0)
				op.TaskRecovery = append(op.TaskRecovery, s)
				if s == core.RecoveryCheckpoint {
					op.Scope = core.ScopeTask
				}
			}
		}
		used := op.TaskRecovery
		if len(used) == 0 {
			used = []string{op.Recovery}
		}
		if !slices.Contains(used, core.RecoveryCheckpoint) {
			op.Scope = ""
		}
	}
	if bases {
		job.Checkpoint = pick(r, 30*time.Millisecond, 80*time.Millisecond)
	}
}

// fitting takes back what does not go together with the protection that a trial has drawn.
func fitting(job *core.Job) {
	for i := range job.Operators {
		if job.Operators[i].Scope == core.ScopeTask {
			job.Unaligned = false
		}
	}
}

// twoPipelines adds a second pipeline with operators of its own, so that a rollback of what is connected leaves something
// alone.
func twoPipelines(job *core.Job) {
	for _, op := range job.Operators {
		op.Name += "2"
		var ins []string
		for _, in := range op.Inputs {
			ins = append(ins, in+"2")
		}
		op.Inputs = ins
		job.Operators = append(job.Operators, op)
	}
}

// outages are the spans in which something may be lost without protection, in simulated time: from before the loss of a
// worker was noticed until its tasks ran again.
func (w *World) outages(leadNS int64) (spans [][2]int64) {
	open := false
	for _, t := range w.Traces {
		switch t.Kind {
		case "failure-detected":
			spans = append(spans, [2]int64{t.AtNS - leadNS, t.AtNS + leadNS})
			open = true
		case "taken-over", "started":
			if open {
				spans[len(spans)-1][1] = t.AtNS + leadNS
			}
			open = false
		}
	}
	return spans
}

// emission remembers when records of the feed were sent first.
type emission struct {
	steps [][]emitted // by split
}

type emitted struct {
	upto uint64
	atNS int64
}

func (e *emission) note(split int, sent uint64, nowNS int64) {
	for len(e.steps) <= split {
		e.steps = append(e.steps, nil)
	}
	s := &e.steps[split]
	if n := len(*s); n == 0 || (*s)[n-1].upto < sent {
		*s = append(*s, emitted{sent, nowNS})
	}
}

// at returns when record i of all was sent.
func (e *emission) at(i int) int64 {
	split, number := i%len(e.steps), uint64(i/len(e.steps))+1
	for _, s := range e.steps[split] {
		if s.upto >= number {
			return s.atNS
		}
	}
	return -1
}

// weakest returns what a job promises, which the table in recovery says; nothing of a job that the coordinator refuses.
func weakest(job core.Job, kinds func(string) (core.KindInfo, bool)) recovery.Guarantee {
	g, err := core.BuildGraph(job, kinds)
	if err != nil {
		return recovery.Guarantee{}
	}
	return recovery.Weakest(g)
}
