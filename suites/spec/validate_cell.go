package spec

import (
	"fmt"
	"slices"
	"strings"
)

// cellChecker checks the strategies and faults of one cell against its job.
type cellChecker struct {
	checker
	cell *Cell
}

func (c *cellChecker) check() {
	if c.cell.Migration != nil {
		c.migration(c.cell.Migration)
	}
	c.recovery(&c.cell.Recovery)
	for i := range c.cell.Faults {
		c.fault(&c.cell.Faults[i], fmt.Sprintf("faults[%d]", i))
	}
	if c.cell.Storm != nil {
		c.storm(c.cell.Storm)
	}
}

func (c *cellChecker) findOperator(name string) *Operator {
	for i := range c.cfg.Job.Operators {
		if c.cfg.Job.Operators[i].Name == name {
			return &c.cfg.Job.Operators[i]
		}
	}
	return nil
}

func (c *cellChecker) operatorNames(roles ...Role) []string {
	var out []string
	for i := range c.cfg.Job.Operators {
		op := &c.cfg.Job.Operators[i]
		if len(roles) == 0 || slices.Contains(roles, c.role(op)) {
			out = append(out, op.Name)
		}
	}
	return out
}

func (c *cellChecker) migration(m *Migration) {
	info, found := c.d.known.migration(m.Strategy)
	if !found {
		return
	}
	c.trigger(m)
	if info.None {
		if m.Trigger == "detect" {
			c.watched(m)
		}
		return
	}
	op := c.migratedOperator(m)
	if m.Planner != "" && !c.has("migration.groups") {
		m.Groups = "plan"
	}
	if m.Groups == "plan" && m.Planner == "" {
		c.fail("migration", "groups is plan, but no planner is named", "add 'planner:' with one of "+strings.Join(c.d.known.Planners, ", "))
	}
	if m.Groups != "plan" && m.Planner != "" {
		c.fail("migration.planner", fmt.Sprintf("has no effect, because groups is %s", m.Groups), "remove it, or write 'groups: plan'")
	}
	if m.Groups != "plan" && m.Share == 0 && m.Count == 0 {
		c.fail("migration", "share and count are 0, so nothing would move", "write a share above 0, such as 0.5")
	}
	if !info.Rounds && c.has("migration.rounds") {
		c.fail("migration.rounds", fmt.Sprintf("%s does not split a move into rounds", m.Strategy), "remove it")
	}
	c.split(m, info, op)
	workers := c.cfg.Job.Workers
	if workers < 2 {
		c.fail("migration", "there is one worker only, so there is nowhere to move to", "set job.workers to 2 or more")
	} else {
		for _, e := range []struct {
			field  string
			worker int
		}{{"from", m.From}, {"to", m.To}} {
			if e.worker > workers {
				c.fail("migration."+e.field, fmt.Sprintf("there is no worker %d", e.worker), fmt.Sprintf("write %s, or 0 to let load decide", upTo(1, workers)))
			}
		}
	}
	if m.From != 0 && m.From == m.To {
		c.fail("migration.to", fmt.Sprintf("is %d, as is from", m.To), "name two different workers")
	}
	if op != nil {
		c.moved(m, op, info)
	}
}

// migratedOperator finds the operator that is adjusted, and fills it in when it
// is the only keyed one. It returns nil after an error.
func (c *cellChecker) migratedOperator(m *Migration) *Operator {
	if len(c.d.known.Kinds) == 0 || len(c.cfg.Job.Operators) == 0 {
		return nil
	}
	if len(c.operatorNames(RoleUnknown)) > 0 {
		return nil // a kind was refused: what is keyed is not known
	}
	keyed := c.operatorNames(RoleKeyed)
	if m.Operator == "" {
		switch len(keyed) {
		case 0:
			c.fail("migration", "the job has no keyed operator, so there is no state to move", "add one, such as kind count")
			return nil
		case 1:
			m.Operator = keyed[0]
		default:
			c.fail("migration", "the job has several keyed operators", "add 'operator:' with one of "+strings.Join(keyed, ", "))
			return nil
		}
	}
	op := c.findOperator(m.Operator)
	switch {
	case op == nil:
		c.fail("migration.operator", fmt.Sprintf("there is no operator %q", m.Operator), suggest(m.Operator, keyed))
		return nil
	case c.role(op) != RoleKeyed:
		c.fail("migration.operator", fmt.Sprintf("%s is not keyed, so it has no key groups to move", op.Name), "name a keyed operator: "+strings.Join(keyed, ", "))
		return nil
	}
	return op
}

func (c *cellChecker) moved(m *Migration, op *Operator, info MigrationInfo) {
	if op.Parallelism < 2 {
		c.fail("migration", fmt.Sprintf("%s has one task only, so its groups have nowhere to go", op.Name), fmt.Sprintf("set the parallelism of %s to 2 or more", op.Name))
	}
	if m.Count > op.KeyGroups {
		c.fail("migration.count", fmt.Sprintf("is %d, but %s has %d key groups", m.Count, op.Name, op.KeyGroups), fmt.Sprintf("write at most %d", op.KeyGroups))
	}
	most := op.KeyGroups
	if m.Groups != "plan" && m.Count > 0 {
		most = min(most, m.Count)
	}
	if m.Rounds.N > most {
		c.fail("migration.rounds", fmt.Sprintf("%d rounds for at most %d moving key groups", m.Rounds.N, most), fmt.Sprintf("write %s, all or auto", upTo(1, most)))
	}
	if info.External && op.State.Backend != "remote" {
		c.fail("migration.strategy", fmt.Sprintf("%s needs state outside the workers, but %s keeps it in %s", m.Strategy, op.Name, op.State.Backend),
			fmt.Sprintf("set the state.backend of %s to remote", op.Name))
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
	for i, o := range r.Overrides {
		at := fmt.Sprintf("recovery.overrides[%d]", i)
		c.needs(o.Strategy, at+".strategy")
		op := c.findOperator(o.Operator)
		if op == nil {
			if o.Operator != "" {
				c.fail(at+".operator", fmt.Sprintf("there is no operator %q", o.Operator), suggest(o.Operator, c.operatorNames()))
			}
			continue
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
	c.standbys(r)
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
	out := r.Strategy
	for _, o := range r.Overrides {
		if o.Operator == operator && o.Task == nil {
			out = o.Strategy
		}
	}
	for _, o := range r.Overrides {
		if o.Operator == operator && o.Task != nil && *o.Task == task {
			return o.Strategy
		}
	}
	return out
}

// standbys checks that the standbys fit. Sources and sinks hold no state of
// their own, so only keyed tasks have one.
func (c *cellChecker) standbys(r *Recovery) {
	tasks, standbys := 0, 0
	for i := range c.cfg.Job.Operators {
		op := &c.cfg.Job.Operators[i]
		tasks += op.Parallelism
		for t := range op.Parallelism {
			info, _ := c.d.known.recovery(r.StrategyOf(op.Name, t))
			if info.Standby && c.role(op) == RoleKeyed {
				standbys++
			}
		}
	}
	if r.Standbys > 0 && standbys > r.Standbys {
		c.fail("recovery.standbys", fmt.Sprintf("is %d, but %d tasks need one", r.Standbys, standbys), fmt.Sprintf("write at least %d, or 0 for as many as needed", standbys))
	}
	if slots := c.cfg.Job.Workers * c.cfg.Job.Slots; tasks <= slots && tasks+standbys > slots {
		c.fail("job.slots", fmt.Sprintf("%d tasks and %d standbys do not fit on %d workers of %d slots", tasks, standbys, c.cfg.Job.Workers, c.cfg.Job.Slots),
			fmt.Sprintf("write at least %d", (tasks+standbys+c.cfg.Job.Workers-1)/c.cfg.Job.Workers))
	}
}

func (c *cellChecker) fault(f *Fault, at string) {
	if f.At != nil && f.On != nil {
		c.fail(at, "has both at and on", "keep one: a time, or an event")
	}
	if f.On != nil && c.d.known.Triggers != nil && indexOf(c.d.known.Triggers, f.On.Event) < 0 {
		c.fail(at+".on", fmt.Sprintf("unknown event %q", f.On.Event), suggest(f.On.Event, c.d.known.Triggers))
	}
	for _, k := range c.d.known.Faults {
		if k.Name != f.Kind || f.Target.Kind == "" || len(k.Targets) == 0 {
			continue
		}
		allowed := make([]string, len(k.Targets))
		for i, t := range k.Targets {
			allowed[i] = string(t)
		}
		if indexOf(allowed, string(f.Target.Kind)) < 0 {
			c.fail(at+".target", fmt.Sprintf("%s cannot hit a %s", f.Kind, f.Target.Kind), "name a "+strings.Join(allowed, " or a "))
			return
		}
	}
	c.target(f.Target, at+".target")
}

func (c *cellChecker) target(t Target, at string) {
	workers := c.cfg.Job.Workers + c.cfg.Job.Spares
	fix := "write " + upTo(1, workers)
	switch t.Kind {
	case TargetWorker:
		if t.Worker > workers {
			c.fail(at, fmt.Sprintf("there is no worker %d", t.Worker), fix)
		}
	case TargetLink:
		if w := max(t.Worker, t.Peer); w > workers {
			c.fail(at, fmt.Sprintf("there is no worker %d", w), fix+", or 0 for the harness")
		}
	case TargetTask:
		op := c.findOperator(t.Operator)
		if op == nil {
			c.fail(at, fmt.Sprintf("there is no operator %q", t.Operator), suggest(t.Operator, c.operatorNames()))
		} else if t.Task >= op.Parallelism {
			c.fail(at, fmt.Sprintf("%s has no task %d", op.Name, t.Task), "write "+upTo(0, op.Parallelism-1))
		}
	}
}
