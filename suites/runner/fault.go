package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-bench/weir/chaos"
	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// faults are a trial's faults under way: a driver of package chaos, its journal, and what it did.
type faults struct {
	driver  *chaos.Driver
	journal *os.File
	err     error // of the driver, once it was stopped
}

// injection is a fault that was done.
type injection struct {
	kind   chaos.Kind
	target string
	at     time.Duration // on the trial's axis, just before it was done
}

// stormy returns the cell with the faults of its storm, if it has one, as the trial's seed draws them.
func stormy(c *spec.Cell, seed uint64) *spec.Cell {
	if c.Storm == nil {
		return c
	}
	drawn := *c
	drawn.Faults = append(slices.Clone(c.Faults), c.Storm.Draw(seed, c.Job.Workers, Known().Faults)...)
	return &drawn
}

// openProxy makes the links that faults of the cell may hit. Which process gets which tasks is not known before they
// run, so each pair of processes has one, and the harness, which is node 0, too.
func (t *trial) openProxy() error {
	wanted := false
	for _, f := range t.cell.Faults {
		wanted = wanted || f.Target.Kind == spec.TargetLink
	}
	if !wanted {
		return nil
	}
	var links []chaos.Link
	nodes := t.cell.Job.Workers + t.cell.Job.Spares
	for a := 0; a <= nodes; a++ {
		for b := a + 1; b <= nodes; b++ {
			links = append(links, chaos.Between(a, b))
		}
	}
	var err error
	t.proxy, err = chaos.NewProxy(links)
	return err
}

// address has the form of host.Config.Address.
func (t *trial) address(from, to int, real string) string {
	if t.proxy == nil {
		return real
	}
	return t.proxy.Address(from, to, real)
}

// startFaults begins to wait for the times and events at which faults happen. The job runs.
func (t *trial) startFaults() error {
	if len(t.cell.Faults) == 0 {
		return nil
	}
	s := &chaos.Schedule{Seed: t.plan.Seed}
	for i := range t.cell.Faults {
		r, err := t.rule(&t.cell.Faults[i])
		if err != nil {
			return err
		}
		s.Rules = append(s.Rules, r)
	}
	machine, err := chaos.NewMachine(s)
	if err != nil {
		return fmt.Errorf("cell %s: %w", t.cell.Name, err)
	}
	dir := filepath.Join(t.log.writer.Dir(), "faults")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for the journals of faults: %w", err)
	}
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("trial-%d.jsonl", t.plan.Index+1)))
	if err != nil {
		return fmt.Errorf("make the journal of faults: %w", err)
	}
	journal, err := chaos.NewJournal(f, chaos.Header{Run: t.o.Suite.Name + "/" + t.cell.Name, Started: time.Now().UTC()})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	in := chaos.NewInjector(chaos.Targets{Process: t.process, Holder: t.holder, Proxy: t.proxy}, journal, t.now)
	d := chaos.Drive(machine, in, t.now, t.record)
	t.mu.Lock()
	t.faults = &faults{driver: d, journal: f}
	t.mu.Unlock()
	return nil
}

// rule turns a fault of the suite into one of package chaos. Times there are those of the trial's axis.
func (t *trial) rule(f *spec.Fault) (chaos.Rule, error) {
	r := chaos.Rule{Fault: chaos.Fault{Kind: chaos.Kind(f.Kind)}, For: f.For, Probability: 1}
	if r.Kind == chaos.Slow {
		r.Factor = f.Factor
	}
	if f.On != nil {
		r.Trigger = trigger(f.On, f.Target)
	} else {
		r.Trigger.After = t.cell.Timing.Warmup + t.cell.EventTime(f.At)
	}
	switch f.Target.Kind {
	case spec.TargetWorker:
		r.Target = chaos.OnNode(f.Target.Worker)
	case spec.TargetTask:
		r.Target = chaos.OnTask(fmt.Sprintf("%s/%d", f.Target.Operator, f.Target.Task))
	case spec.TargetLink:
		a, err := t.nodeOf(f.Target.Worker)
		if err != nil {
			return r, err
		}
		b, err := t.nodeOf(f.Target.Peer)
		if err != nil {
			return r, err
		}
		r.Target = chaos.OnLink(a, b)
	}
	return r, nil
}

// nodeOf returns the node that has the tasks of a worker, whose numbers count from 1; 0 is the harness.
func (t *trial) nodeOf(worker int) (node int, err error) {
	if worker == 0 {
		return 0, nil
	}
	if worker > t.job.Workers {
		return 0, fmt.Errorf("worker %d is a spare without tasks, which no fault can name", worker)
	}
	if err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) { node = c.NodeOfSlot(worker - 1) }); err != nil {
		return 0, err
	}
	if node <= 0 {
		return 0, fmt.Errorf("worker %d: nobody has its tasks now", worker)
	}
	return node, nil
}

// process has the form of chaos.Targets.Process, where nodes are the suite's workers. Whoever is going to be hit, the
// collector looks for the first output of their successors.
func (t *trial) process(worker int) (chaos.Process, error) {
	node, err := t.nodeOf(worker)
	if err != nil {
		return chaos.Process{}, err
	}
	if err := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) { t.lookAtPlaces(c); t.armFirst(c, node) }); err != nil {
		return chaos.Process{}, err
	}
	return chaos.Identify(t.h.Pid(node))
}

// holder has the form of chaos.Targets.Holder: it returns the suite's worker that has a task.
func (t *trial) holder(task string) (worker int, err error) {
	err = fmt.Errorf("there is no task %s", task)
	doErr := t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		for id, info := range t.graph.Tasks {
			if fmt.Sprintf("%s/%d", t.job.Operators[info.Operator].Name, info.Index) != task {
				continue
			}
			for slot := range t.job.Workers {
				if c.NodeOfSlot(slot) == c.Places()[id].Node {
					worker, err = slot+1, nil
				}
			}
		}
	})
	return worker, errors.Join(err, doErr)
}

// armFirst makes the collector look for the first output of the keys whose tasks are on a node. It runs on the event
// loop.
func (t *trial) armFirst(c *coord.Coordinator, node int) {
	if len(c.Places()) == 0 || t.col.first.failed != nil || t.col.query != nil {
		return // the first fault counts; and the keys of a query's outputs are others than those of its state
	}
	for op := range t.job.Operators {
		if k, ok := operator.Lookup(t.job.Operators[op].Kind); !ok || !k.Keyed {
			continue
		}
		set := newGroupSet(t.job.Operators[op].Groups)
		found := false
		for g, task := range c.Routes(op).Task {
			if c.Places()[t.graph.OpTasks[op][task]].Node == node {
				set.in[g], found = true, true
			}
		}
		if found {
			t.col.first = firstOutput{armed: true, failed: set, epoch: c.Epoch()}
			return
		}
	}
}

func newGroupSet(groups uint32) *groupSet { return &groupSet{groups: groups, in: make([]bool, groups)} }

// record notes what the driver did; it runs on the driver's goroutine.
func (t *trial) record(records []chaos.Record) {
	for _, r := range records {
		detail := map[string]any{"fault": r.Kind, "target": r.Target}
		for name, text := range map[string]string{"why": r.Reason, "error": r.Error} {
			if text != "" {
				detail[name] = text
			}
		}
		if r.Evidence != nil {
			detail["evidence"] = r.Evidence
		}
		kind := runlog.Warning
		switch {
		case r.Op == chaos.Inject && r.Error == "":
			kind = runlog.FaultInjected
			t.mu.Lock()
			t.injected = append(t.injected, injection{kind: r.Kind, target: r.Target, at: time.Duration(r.AtNS)})
			t.mu.Unlock()
		case r.Op == chaos.Heal && r.Error == "":
			kind = runlog.FaultHealed
		}
		t.log.emit(runlog.Event{Kind: kind, Detail: detail}, r.AtNS)
	}
}

// tellFaults passes a trace on to the triggers. It runs on the event loop.
func (t *trial) tellFaults(tr coord.Trace) {
	t.mu.Lock()
	f := t.faults
	t.mu.Unlock()
	if f != nil {
		for _, e := range t.chaosEvents(tr, t.holders.of) {
			f.driver.Event(e)
		}
	}
}

// stopFaults heals what lasts and lets nothing happen any more. It may be called again.
func (t *trial) stopFaults() {
	t.mu.Lock()
	f := t.faults
	t.mu.Unlock()
	if f == nil {
		return
	}
	f.err = f.driver.Stop()
}

// closeFaults ends the journal and the proxy.
func (t *trial) closeFaults() error {
	t.stopFaults()
	var err error
	if t.faults != nil {
		err = t.faults.journal.Close()
	}
	if t.proxy != nil {
		err = errors.Join(err, t.proxy.Close())
	}
	return err
}

// faultTrouble says which planned faults did not take effect: figures of such a trial mean nothing.
func (t *trial) faultTrouble() string {
	if t.faults == nil {
		return ""
	}
	if t.faults.err != nil {
		return "a fault did not take effect: " + t.faults.err.Error()
	}
	if n := len(t.injected); n < len(t.cell.Faults) {
		why := fmt.Sprintf("%d of %d faults did not happen", len(t.cell.Faults)-n, len(t.cell.Faults))
		var waited []string
		for _, f := range t.cell.Faults {
			if f.On != nil {
				waited = append(waited, fmt.Sprintf("%s of %s on %s", f.Kind, f.Target, f.On))
			}
		}
		if len(waited) > 0 {
			why += "; those that wait for an event are: " + strings.Join(waited, ", ")
		}
		return why
	}
	return ""
}
