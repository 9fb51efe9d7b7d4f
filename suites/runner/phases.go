package runner

import (
	"fmt"

	"github.com/weir-bench/weir/chaos"
	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/suites/spec"
)

// phase is a moment of the protocols at which a fault can happen.
type phase struct {
	// name is what suites write.
	name string
	// told says whether a trace of the coordinator tells it.
	told func(coord.Trace) bool
	// byID says that the number behind the name is that of the checkpoint, not how often it happened.
	byID bool
	// own says that a fault waits until its own target is the one that is there: the task that it names, or one on the worker.
	own bool
}

// phases lists the moments by their own names. Beside them, a fault can wait for any trace that measurements are made
// from, see triggers.
func phases() []phase {
	kind := func(kind string) func(coord.Trace) bool { return func(tr coord.Trace) bool { return tr.Kind == kind } }
	return []phase{
		{name: "barrier-injected", told: kind(coord.TraceCheckpoint), byID: true},
		{name: "snapshot-taken", told: kind(coord.TraceCut), byID: true, own: true}, // and not acknowledged
		{name: "snapshot-acknowledged", told: kind(coord.TraceSnapshot), byID: true, own: true},
		{name: "restoring", told: kind(coord.TraceRestartEnd)},
		{name: "replaying", told: replays},
		{name: "round", told: kind(coord.TraceRound)},
		{name: "migration-began", told: kind(coord.TraceMigration)},
	}
}

// replays says whether inputs are about to be read again: of a task that was taken over, a region, or the whole job.
func replays(tr coord.Trace) bool {
	switch tr.Kind {
	case coord.TraceReplaying:
		return true
	case coord.TraceRestored:
		return tr.Node == 0
	case coord.TraceStarted:
		return tr.Detail == regionStarted
	}
	return false
}

func phaseOf(name string) (phase, bool) {
	for _, p := range phases() {
		if p.name == name {
			return p, true
		}
	}
	return phase{}, false
}

// trigger turns the event that a fault waits for into one of package chaos.
func trigger(on *spec.Trigger, target spec.Target) chaos.Trigger {
	t := chaos.Trigger{Event: on.Event, N: uint64(on.N)}
	p, ok := phaseOf(on.Event)
	if !ok {
		return t
	}
	if p.byID {
		t.ID, t.N = uint64(on.N), 1
	}
	if p.own {
		switch target.Kind {
		case spec.TargetTask:
			t.Event += atTask(target.Operator, target.Task)
		case spec.TargetWorker:
			t.Event += atWorker(target.Worker)
		}
	}
	return t
}

func atTask(operator string, task int) string { return fmt.Sprintf(" of task %s/%d", operator, task) }

func atWorker(worker int) string { return fmt.Sprintf(" on worker %d", worker) }

// chaosEvents lists what a trace is for faults: itself, the phases that it tells, and those for the task that it is about
// and the worker that has it.
func (t *trial) chaosEvents(tr coord.Trace, worker func(task int) int) []chaos.Event {
	var events []chaos.Event
	if _, same := phaseOf(tr.Kind); !same {
		events = append(events, chaos.Event{Kind: tr.Kind, ID: tr.ID})
	}
	for _, p := range phases() {
		if !p.told(tr) {
			continue
		}
		events = append(events, chaos.Event{Kind: p.name, ID: tr.ID})
		if !p.own || tr.Task < 0 || tr.Task >= len(t.graph.Tasks) {
			continue
		}
		info := t.graph.Tasks[tr.Task]
		events = append(events, chaos.Event{Kind: p.name + atTask(t.job.Operators[info.Operator].Name, info.Index), ID: tr.ID})
		if w := worker(tr.Task); w > 0 {
			events = append(events, chaos.Event{Kind: p.name + atWorker(w), ID: tr.ID})
		}
	}
	return events
}

// triggers lists the events that faults can wait for: the phases, and what else the coordinator tells.
func triggers() []string {
	var names []string
	for _, p := range phases() {
		names = append(names, p.name)
	}
	return append(names, coord.TraceStarted, coord.TraceCheckpoint, coord.TraceSnapshot, coord.TraceComplete, coord.TraceAborted,
		coord.TraceMigration, coord.TraceRound, coord.TraceRoundDone, coord.TraceMigrated, coord.TraceDetected,
		coord.TraceRestartEnd, coord.TraceRestored, coord.TracePromoted, coord.TraceReplayed)
}

// holders is which of the suite's workers has each task; it is used on the event loop.
type holders struct {
	epoch  uint32 // of the last look
	worker []int  // by task, from 1; 0: nobody
}

// look reads the places anew when they have changed.
func (h *holders) look(c *coord.Coordinator, workers int) {
	if c.Epoch() == h.epoch && h.worker != nil {
		return
	}
	h.epoch = c.Epoch()
	h.worker = make([]int, len(c.Places()))
	for task, place := range c.Places() {
		for slot := range workers {
			if place.Node > 0 && c.NodeOfSlot(slot) == place.Node {
				h.worker[task] = slot + 1
			}
		}
	}
}

func (h *holders) of(task int) int {
	if task < len(h.worker) {
		return h.worker[task]
	}
	return 0
}
