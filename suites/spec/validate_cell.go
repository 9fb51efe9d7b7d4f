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
	c.fits()
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
