package runner

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// injection is a fault of the cell and what became of it.
type injection struct {
	fault  *spec.Fault
	node   int
	at     time.Duration // just before it was done
	done   bool
	healed bool
	failed bool // the keys of failed tasks are known
}

// inject carries out a fault. A fault that hits nobody, as its worker is gone already, is told and not counted.
func (t *trial) inject(inj *injection) error {
	f := inj.fault
	if err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		inj.node = targetNode(c, f.Target)
		if inj.node > 0 {
			inj.failed = t.armFirst(c, inj.node)
		}
	}); err != nil {
		return t.over()
	}
	detail := map[string]any{"fault": f.Kind, "target": f.Target.String(), "worker": inj.node}
	inj.at = t.now()
	var err error
	switch {
	case inj.node <= 0:
		err = errors.New("nobody is there")
	case f.Kind == "kill":
		err = t.h.Kill(inj.node)
	case f.Kind == "freeze":
		err = t.h.Freeze(inj.node)
	default:
		err = fmt.Errorf("fault %s is not available for processes", f.Kind)
	}
	if err != nil {
		detail["why"] = "the fault did not happen: " + err.Error()
		t.log.emit(runlog.Event{Kind: runlog.Warning, Detail: detail}, int64(inj.at))
		return nil
	}
	inj.done = true
	t.injected = append(t.injected, inj)
	t.log.emit(runlog.Event{Kind: runlog.FaultInjected, Detail: detail}, int64(inj.at))
	return nil
}

// heal ends a fault that lasts.
func (t *trial) heal(inj *injection) error {
	if !inj.done || inj.healed || inj.fault.Kind != "freeze" {
		return nil
	}
	inj.healed = true
	detail := map[string]any{"fault": inj.fault.Kind, "target": inj.fault.Target.String(), "worker": inj.node}
	if err := t.h.Thaw(inj.node); err != nil {
		detail["why"] = err.Error() // it may have been killed meanwhile
	}
	t.log.emit(runlog.Event{Kind: runlog.FaultHealed, Detail: detail}, int64(t.now()))
	return nil
}

// healAll ends what lasts until the end of the measured phases.
func (t *trial) healAll() error {
	for _, inj := range t.injected {
		if err := t.heal(inj); err != nil {
			return err
		}
	}
	return nil
}

// targetNode returns the node that a fault hits, 0 or less when there is none. It runs on the event loop.
func targetNode(c *coord.Coordinator, target spec.Target) int {
	switch target.Kind {
	case spec.TargetWorker:
		if target.Worker <= c.Graph().Job.Workers {
			return c.NodeOfSlot(target.Worker - 1)
		}
	case spec.TargetTask:
		if op := operatorIndex(&c.Graph().Job, target.Operator); op >= 0 && target.Task < len(c.Graph().OpTasks[op]) {
			return c.Places()[c.Graph().OpTasks[op][target.Task]].Node
		}
	}
	return 0
}

// armFirst makes the collector look for the first output of the keys whose tasks are on a node. It says whether there
// are such, and runs on the event loop.
func (t *trial) armFirst(c *coord.Coordinator, node int) bool {
	for op := range t.job.Operators {
		if k, ok := operator.Lookup(t.job.Operators[op].Kind); !ok || !k.Keyed {
			continue
		}
		set, any := &groupSet{groups: t.job.Operators[op].Groups, in: make([]bool, t.job.Operators[op].Groups)}, false
		for g, task := range c.Routes(op).Task {
			if c.Places()[t.graph.OpTasks[op][task]].Node == node {
				set.in[g], any = true, true
			}
		}
		if any {
			t.col.first = firstOutput{armed: true, failed: set, epoch: c.Epoch()}
			return true
		}
	}
	return false
}
