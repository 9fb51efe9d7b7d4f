package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	suiteNameRE = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	opNameRE    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	cellNameRE  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:/=+-]{0,199}$`)
)

// validate checks what single fields cannot tell, and fills in what follows from
// other fields. Every message has its place through the decoder.
func validate(s *Suite, d *decoder) {
	if d.has("name") && s.Name != "" && !suiteNameRE.MatchString(s.Name) {
		d.fail("name", fmt.Sprintf("%q is not a name of a suite", s.Name), "use at most 64 lower-case letters, digits and dashes")
	}
	if d.has("cells") && len(s.Cells) == 0 {
		d.fail("cells", "has no cell", "add at least one, such as '- name: baseline'")
	}
	if len(s.Cells) == 0 {
		(&checker{d: d, cfg: &s.Config, at: ""}).config()
	}
	names := map[string]int{}
	list := make([]string, len(s.Cells))
	for i := range s.Cells {
		c := &s.Cells[i]
		at := fmt.Sprintf("cells[%d]", i)
		list[i] = c.Name
		if first, dup := names[c.Name]; dup && c.Name != "" {
			d.fail(at+".name", fmt.Sprintf("a second cell named %q", c.Name), fmt.Sprintf("the first is number %d; give each its own name", first+1))
		} else if c.Name != "" && !cellNameRE.MatchString(c.Name) {
			d.fail(at+".name", fmt.Sprintf("%q is not a name of a cell", c.Name), "begin with a letter; use letters, digits and _ . : / = + -")
		}
		names[c.Name] = i
		(&checker{d: d, cfg: &c.Config, at: at + "."}).config()
		cc := &cellChecker{checker: checker{d: d, cfg: &c.Config, at: at + "."}, cell: c}
		cc.check()
		cc.stores(s.Runtime)
	}
	for i, o := range s.Objectives {
		if o.left == nil {
			continue // it could not be read, which was said
		}
		if err := o.check(list); err != nil {
			d.fail(fmt.Sprintf("objectives[%d]", i), err.problem, err.fix)
		}
	}
	validateDeadline(s, d)
}

func validateDeadline(s *Suite, d *decoder) {
	if s.Deadline == 0 || len(s.Cells) == 0 {
		return
	}
	plan, err := Plan(s, nil)
	if err != nil {
		return // a suite without cells, which was said
	}
	if total := Total(plan); total > s.Deadline {
		d.fail("deadline", fmt.Sprintf("is %s, but the %d trials take about %s", s.Deadline, len(plan), total.Round(time.Second)),
			"raise it, or lower repeat or the times in timing")
	}
}

// upTo gives a range in words: "1 to 4", or "1" when there is no other.
func upTo(lo, hi int) string {
	if hi <= lo {
		return strconv.Itoa(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// checker checks one configuration; at is its path with a dot at the end.
type checker struct {
	d   *decoder
	cfg *Config
	at  string
}

func (c *checker) fail(path, problem, fix string) { c.d.fail(c.at+path, problem, fix) }

func (c *checker) has(path string) bool { return c.d.has(c.at + path) }

func (c *checker) config() {
	switch {
	case c.has("job.query"):
		c.query()
	case c.has("job.operators"):
		c.operators()
		c.graph()
	case c.has("job"):
		c.fail("job", "has no operators", "add 'operators:' with a list, or 'query:' with the name of a query")
	}
	c.workload()
	c.timing()
	c.checkpoint()
	if det := c.cfg.Detection; det.Heartbeat <= 0 {
		c.fail("detection.heartbeat", "is "+det.Heartbeat.String(), "write a time above 0, such as 20ms")
	} else if det.Lease <= det.Heartbeat && !c.bad("detection.lease", "detection.heartbeat") {
		c.fail("detection.lease", fmt.Sprintf("is %s, not longer than the heartbeat of %s", det.Lease, det.Heartbeat),
			fmt.Sprintf("write at least %s, or a healthy worker counts as dead", 3*det.Heartbeat))
	}
}

func (c *checker) role(op *Operator) Role { return c.d.known.role(op.Kind) }

func (c *checker) operators() {
	seen := map[string]bool{}
	total := 0
	for i := range c.cfg.Job.Operators {
		op := &c.cfg.Job.Operators[i]
		at := fmt.Sprintf("job.operators[%d]", i)
		if op.Name != "" && !opNameRE.MatchString(op.Name) {
			c.fail(at+".name", fmt.Sprintf("%q is not a name of an operator", op.Name), "begin with a letter; use letters, digits, _ and -")
		}
		if seen[op.Name] && op.Name != "" {
			c.fail(at+".name", fmt.Sprintf("a second operator named %q", op.Name), "give each its own name")
		}
		seen[op.Name] = true
		total += op.Parallelism
		c.operator(op, at)
		c.service(op, at)
	}
	c.slots(total)
}

func (c *checker) slots(total int) {
	if slots := c.cfg.Job.Workers * c.cfg.Job.Slots; total > slots {
		c.fail("job.slots", fmt.Sprintf("%d tasks do not fit on %d workers of %d slots", total, c.cfg.Job.Workers, c.cfg.Job.Slots),
			fmt.Sprintf("write at least %d, or use more workers", (total+c.cfg.Job.Workers-1)/c.cfg.Job.Workers))
	}
}

func (c *checker) operator(op *Operator, at string) {
	role := c.role(op)
	limit := c.d.known.maxKeyGroups()
	switch {
	case op.KeyGroups > limit:
		c.fail(at+".keyGroups", fmt.Sprintf("is %d", op.KeyGroups), fmt.Sprintf("write at most %d", limit))
	case role == RoleKeyed && op.Parallelism > op.KeyGroups:
		c.fail(at+".parallelism", fmt.Sprintf("%d tasks share %d key groups, so some would be idle", op.Parallelism, op.KeyGroups),
			fmt.Sprintf("write at most %d, or raise keyGroups", op.KeyGroups))
	}
	if role != "" && role != RoleKeyed {
		for _, f := range []string{"keyGroups", "state"} {
			if c.has(at + "." + f) {
				c.fail(at+"."+f, fmt.Sprintf("an operator of kind %s has no keyed state", op.Kind), "remove it, or use a keyed kind")
			}
		}
	}
	if role != "" && role != RoleSink && c.has(at+".sink") {
		c.fail(at+".sink", fmt.Sprintf("an operator of kind %s is no sink", op.Kind), "remove it, or give it to the sink")
	}
	c.state(op, at)
	if role == RoleSink && op.Sink == "transactional" && !c.checkpoints() {
		place := at + ".sink"
		c.fail(place, "a transactional sink releases output only when a checkpoint is complete, and there are none",
			"set checkpoint.interval, such as 1s, or use an eager sink")
	}
	c.standbyPlacement(op, at)
	if !c.has(at + ".placement") {
		return
	}
	if len(op.Placement) != op.Parallelism {
		c.fail(at+".placement", fmt.Sprintf("names %d workers for %d tasks", len(op.Placement), op.Parallelism), "name one worker for each task")
	}
	for j, w := range op.Placement {
		if w < 1 || w > c.cfg.Job.Workers {
			c.fail(fmt.Sprintf("%s.placement[%d]", at, j), fmt.Sprintf("there is no worker %d", w), "write "+upTo(1, c.cfg.Job.Workers))
		}
	}
}

func (c *checker) service(op *Operator, at string) {
	sv := op.Service
	switch {
	case sv.Mode != "none" && sv.Mean <= 0 && !c.has(at+".service.mean"):
		c.fail(at+".service", "has a mode but no mean", "add 'mean: 5us'")
	case sv.Mode == "none" && sv.Mean > 0 && !c.has(at+".service.mode"):
		c.fail(at+".service", "has a mean but no mode", "add 'mode: busy' (burns the core) or 'mode: timed' (does not)")
	case sv.Mean > 10*time.Second:
		c.fail(at+".service.mean", "is "+sv.Mean.String(), "write at most 10s")
	}
}

// bad tells whether a field's own value was refused, so that it still has its
// default and says nothing about the file.
func (c *checker) bad(paths ...string) bool {
	for _, p := range paths {
		if c.d.bad[c.at+p] {
			return true
		}
	}
	return false
}

func (c *checker) checkpoints() bool {
	i := c.cfg.Checkpoint.Interval
	return c.bad("checkpoint.interval") || i.Auto || i.D > 0
}

func (c *checker) timing() {
	t := c.cfg.Timing
	if t.Interval < time.Millisecond || t.Interval > time.Minute {
		c.fail("timing.interval", "is "+t.Interval.String(), "write 1ms to 1m")
		return
	}
	if t.Steady < t.Interval && !c.bad("timing.steady", "timing.interval") {
		c.fail("timing.steady", fmt.Sprintf("is %s, shorter than one measuring interval of %s", t.Steady, t.Interval),
			"write several intervals, such as 2s: the level before the event is measured there")
	}
	if t.After < t.Interval && !c.bad("timing.after", "timing.interval") {
		c.fail("timing.after", fmt.Sprintf("is %s, shorter than one measuring interval of %s", t.After, t.Interval), "write a time such as 4s")
	} else if t.Hold > t.After && !c.bad("timing.hold", "timing.after") {
		c.fail("timing.hold", fmt.Sprintf("is %s, longer than after, %s, so delay could never settle", t.Hold, t.After), "write at most "+t.After.String())
	}
	for _, x := range []struct {
		name string
		d    time.Duration
	}{{"warmup", t.Warmup}, {"steady", t.Steady}, {"after", t.After}, {"capacity", t.Capacity}, {"drain", t.Drain}} {
		if x.d > 24*time.Hour {
			c.fail("timing."+x.name, "is "+x.d.String(), "write at most 24h")
		}
	}
}

func (c *checker) checkpoint() {
	k := c.cfg.Checkpoint
	if !k.Interval.Auto && k.Interval.D > 0 && k.Interval.D < time.Millisecond {
		c.fail("checkpoint.interval", "is "+k.Interval.D.String(), "write at least 1ms, 0s for none, or auto")
	}
	if k.Timeout <= 0 {
		c.fail("checkpoint.timeout", "is "+k.Timeout.String(), "write a time above 0, such as 10s")
	}
	c.storage()
}

func (c *checker) workload() {
	w := c.cfg.Workload
	if c.has("workload.keys") && w.Keys == 0 {
		c.fail("workload.keys", "is 0", "write at least 1")
	}
	ownRate := w.Preset != "" || w.Arrivals.Kind == "replay" || w.Arrivals.Kind == "none"
	if c.has("workload") && !c.has("workload.rate") && !ownRate {
		c.fail("workload", "has no rate", "add 'rate: 50000/s'")
	}
	sum := 0.0
	for i, s := range w.Shares {
		if s < 0 || s > 1 {
			c.fail(fmt.Sprintf("workload.shares[%d]", i), "is "+trimFloat(s), "write 0 to 1")
		}
		sum += s
	}
	if sum > 1+1e-9 {
		c.fail("workload.shares", "add up to "+trimFloat(sum), "shares add up to at most 1")
	}
	if c.d.known.ValidateWorkload == nil || !c.has("workload") {
		return
	}
	for path := range c.d.bad {
		if strings.HasPrefix(path, c.at+"workload") {
			return // the generators would only repeat it, or see a default
		}
	}
	for _, p := range c.d.known.ValidateWorkload(w) {
		c.fail(strings.TrimSuffix("workload."+p.Field, "."), p.Problem, p.Fix)
	}
}
