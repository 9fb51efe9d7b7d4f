package spec

import (
	"fmt"
	"strings"
	"time"
)

// storage checks where checkpoints go.
func (c *checker) storage() {
	if !c.has("checkpoint.dir") || c.bad("checkpoint.dir") {
		return
	}
	c.cfg.Checkpoint.Where = c.d.place(c.at + "checkpoint.dir")
	if c.cfg.Checkpoint.Dir == "" {
		c.fail("checkpoint.dir", "is empty", "write a folder or URL, or remove it for a folder in the run directory")
		return
	}
	if c.d.known.CheckStorage == nil {
		return
	}
	for _, p := range c.d.known.CheckStorage(c.cfg.Checkpoint.Dir) {
		c.fail("checkpoint.dir", p.Problem, p.Fix)
	}
}

func (c *cellChecker) recovery(r *Recovery) {
	if r.Strategy == "" && len(c.d.known.Recoveries) > 0 && !c.has("recovery") && len(c.cell.Faults) > 0 {
		c.fail("faults", "the cell has faults but no recovery strategy", "add 'recovery: {strategy: NAME}' with one of "+strings.Join(c.d.known.Names("recoveries"), ", "))
	}
	if r.Strategy == "" {
		for _, k := range c.d.known.Recoveries {
			if k.None {
				r.Strategy = k.Name
			}
		}
	}
	place := "recovery"
	if c.has("recovery.strategy") {
		place = "recovery.strategy"
	}
	c.needs(r.Strategy, place)
	seen := map[string]bool{}
	for i := range r.Overrides {
		c.override(&r.Overrides[i], fmt.Sprintf("recovery.overrides[%d]", i), seen)
	}
	c.standbys(r)
	c.bounds(r)
}

// override checks another strategy for an operator or a task; seen are those that have one.
func (c *cellChecker) override(o *RecoveryOverride, at string, seen map[string]bool) {
	c.needs(o.Strategy, at+".strategy")
	if info, found := c.d.known.recovery(o.Strategy); o.Scope != "" && found {
		switch {
		case !info.Checkpoint:
			c.fail(at+".scope", fmt.Sprintf("has no effect, because %s does not roll back to checkpoints", o.Strategy), "remove it")
		case o.Task != nil:
			c.fail(at+".scope", "is that of a whole operator, but the override is of one task", "remove it, or remove task")
		}
	}
	op := c.findOperator(o.Operator)
	if op == nil {
		if o.Operator != "" {
			c.fail(at+".operator", fmt.Sprintf("there is no operator %q", o.Operator), suggest(o.Operator, c.operatorNames()))
		}
		return
	}
	key := o.Operator
	if o.Task != nil {
		key = fmt.Sprintf("%s/%d", o.Operator, *o.Task)
		if *o.Task >= op.Parallelism {
			c.fail(at+".task", fmt.Sprintf("%s has no task %d", op.Name, *o.Task), "write "+upTo(0, op.Parallelism-1))
		}
	}
	if seen[key] {
		c.fail(at, "a second override for "+key, "give one")
	}
	seen[key] = true
}

// ScopeOf gives what is rolled back when a task of an operator with strategy checkpoint is lost.
func (c *Cell) ScopeOf(operator string) string {
	for _, o := range c.Recovery.Overrides {
		if o.Operator == operator && o.Scope != "" {
			return o.Scope
		}
	}
	return c.Checkpoint.Scope
}

// needs checks what a strategy asks of the configuration.
func (c *cellChecker) needs(strategy, at string) {
	info, found := c.d.known.recovery(strategy)
	if !found {
		return
	}
	if info.Checkpoint && !c.checkpoints() {
		c.fail(at, fmt.Sprintf("%s restores from checkpoints, and there are none", strategy), "set checkpoint.interval, such as 1s")
	}
	if info.Standby && c.cfg.Job.Workers < 2 {
		c.fail(at, fmt.Sprintf("%s keeps a standby on another worker, and there is one worker only", strategy), "set job.workers to 2 or more")
	}
}

// StrategyOf gives the recovery strategy of a task: its own override, that of its
// operator, or the cell's.
func (r *Recovery) StrategyOf(operator string, task int) string {
	if i := r.OverrideOf(operator, task); i >= 0 {
		return r.Overrides[i].Strategy
	}
	return r.Strategy
}

// OverrideOf gives the index of the override that decides on a task's strategy, −1 when
// none does.
func (r *Recovery) OverrideOf(operator string, task int) int {
	whole := -1
	for i, o := range r.Overrides {
		switch {
		case o.Operator != operator:
		case o.Task == nil:
			whole = i
		case *o.Task == task:
			return i
		}
	}
	return whole
}

// standbyWorker gives the worker of a task's standby, and of the task itself.
func (c *cellChecker) standbyWorker(op *Operator, task int) (standby, primary int) {
	primary = task%c.cfg.Job.Workers + 1
	if task < len(op.Placement) {
		primary = op.Placement[task]
	}
	if task < len(op.StandbyPlacement) {
		return op.StandbyPlacement[task], primary
	}
	return primary%c.cfg.Job.Workers + 1, primary
}

// standbys checks that the standbys fit on the workers, each on another one than its task.
func (c *cellChecker) standbys(r *Recovery) {
	workers := c.cfg.Job.Workers
	tasks, standbys := 0, 0
	held := make([]int, workers+1) // tasks and standbys of each worker
	for i := range c.cfg.Job.Operators {
		op := &c.cfg.Job.Operators[i]
		tasks += op.Parallelism
		for t := range op.Parallelism {
			info, _ := c.d.known.recovery(r.StrategyOf(op.Name, t))
			standby, primary := c.standbyWorker(op, t)
			if standby < 1 || standby > workers || primary < 1 || primary > workers {
				return // which was said
			}
			held[primary]++
			if info.Standby {
				standbys++
				held[standby]++
			}
		}
	}
	if r.Standbys > 0 && standbys > r.Standbys {
		c.fail("recovery.standbys", fmt.Sprintf("is %d, but %d tasks need one", r.Standbys, standbys), fmt.Sprintf("write at least %d, or 0 for as many as needed", standbys))
	}
	slots := c.cfg.Job.Slots
	if tasks > workers*slots {
		return // which was said
	}
	if tasks+standbys > workers*slots {
		c.fail("job.slots", fmt.Sprintf("%d tasks and %d standbys do not fit on %d workers of %d slots", tasks, standbys, workers, slots),
			fmt.Sprintf("write at least %d", (tasks+standbys+workers-1)/workers))
		return
	}
	for w := 1; w <= workers; w++ {
		if standbys > 0 && held[w] > slots {
			c.fail("job.slots", fmt.Sprintf("%d tasks and standbys come to worker %d, which has %d slots", held[w], w, slots),
				fmt.Sprintf("write at least %d, or spread them with placement and standbyPlacement", held[w]))
			return
		}
	}
}

// standbyPlacement checks where an operator wants its standbys, whatever its strategy.
func (c *checker) standbyPlacement(op *Operator, at string) {
	if !c.has(at + ".standbyPlacement") {
		return
	}
	workers := c.cfg.Job.Workers
	if len(op.StandbyPlacement) != op.Parallelism {
		c.fail(at+".standbyPlacement", fmt.Sprintf("names %d workers for the standbys of %d tasks", len(op.StandbyPlacement), op.Parallelism), "name one worker for each task")
		return
	}
	for j, w := range op.StandbyPlacement {
		primary := j%workers + 1
		if j < len(op.Placement) {
			primary = op.Placement[j]
		}
		switch here := fmt.Sprintf("%s.standbyPlacement[%d]", at, j); {
		case w < 1 || w > workers:
			c.fail(here, fmt.Sprintf("there is no worker %d", w), "write "+upTo(1, workers))
		case w == primary:
			c.fail(here, fmt.Sprintf("worker %d has task %d itself, and its standby would be lost with it", w, j), "name another worker")
		}
	}
}

// bounds checks times and sizes that strategies go by.
func (c *cellChecker) bounds(r *Recovery) {
	if r.Every < time.Millisecond {
		c.fail("recovery.every", "is "+r.Every.String(), "write at least 1ms, such as 500ms")
	}
	least := c.batchBytes()
	for _, b := range []struct {
		field string
		is    Bytes
		holds string
	}{
		{"recovery.logBytes", r.LogBytes, "a sender log"},
		{"checkpoint.inFlight", c.cfg.Checkpoint.InFlight, "what an unaligned checkpoint keeps of the records under way"},
	} {
		if b.is < least {
			c.fail(b.field, fmt.Sprintf("is %s, and one batch takes up to %s, so %s could not even hold that", b.is, least, b.holds), "write at least "+least.String())
		}
	}
	switch s := &r.Spill; {
	case s.Bytes == 0 && s.Dir != "":
		c.fail("recovery.spill.dir", "has no effect, because sender logs have no room on disk", "set recovery.spill.bytes, such as 1GiB, or remove it")
	case s.Bytes > 0 && s.Bytes < least:
		c.fail("recovery.spill.bytes", fmt.Sprintf("is %s, and one batch takes up to %s, so a sender log's room on disk could not even hold that", s.Bytes, least), "write at least "+least.String()+", or 0B")
	}
}

// batchBytes is what a full batch of the workload takes.
func (c *cellChecker) batchBytes() Bytes {
	record := c.d.known.RecordBytes
	if p := c.cfg.Workload.Payload; p.Kind != "" && p.Kind != "none" {
		record += int(max(p.Mean, p.Max))
	}
	return Bytes(record) * Bytes(c.d.known.BatchRecords)
}

// fits asks the engine whether the strategies of the cell go together, when nothing simpler is wrong.
func (c *cellChecker) fits() {
	if c.d.known.CheckRecovery == nil || len(c.d.c.errs) > 0 {
		return
	}
	for _, p := range c.d.known.CheckRecovery(c.cell) {
		at := c.recoveryPlace()
		if p.Field != "" {
			at = p.Field
		}
		c.fail(at, p.Problem, p.Fix)
	}
}
