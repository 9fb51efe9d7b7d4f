package spec

import (
	"fmt"
	"time"
)

// trigger checks what begins a move.
func (c *cellChecker) trigger(m *Migration) {
	if m.Trigger != "detect" {
		if c.has("migration.detect") {
			c.fail("migration.detect", "has no effect, because the trigger is "+m.Trigger, "add 'trigger: detect', or remove it")
		}
		return
	}
	for _, f := range []string{"at", "back"} {
		if c.has("migration." + f) {
			c.fail("migration."+f, "has no effect, because the detector decides when to move", "remove it, or write 'trigger: time'")
		}
	}
	d, bad := m.Detect, func(field string) bool { return c.bad("migration.detect." + field) }
	if d.Theta <= 0 && !bad("theta") {
		c.fail("migration.detect.theta", "is "+trimFloat(d.Theta)+", so that any difference would count as skew", "write a number above 0, such as 0.2")
	}
	if d.Window < time.Millisecond && !bad("window") {
		c.fail("migration.detect.window", "is "+d.Window.String(), "write at least 1ms, such as 100ms")
	}
	if d.Smoothing < time.Millisecond && !bad("smoothing") {
		c.fail("migration.detect.smoothing", "is "+d.Smoothing.String(), "write at least 1ms, such as 500ms")
	}
	for _, x := range []struct {
		name string
		d    time.Duration
	}{{"hold", d.Hold}, {"window", d.Window}, {"smoothing", d.Smoothing}} {
		if x.d > time.Hour && !bad(x.name) {
			c.fail("migration.detect."+x.name, "is "+x.d.String(), "write at most 1h")
		}
	}
}

// watched checks a cell in which the detector runs but nothing moves.
func (c *cellChecker) watched(m *Migration) {
	op := c.migratedOperator(m)
	if op != nil && op.Parallelism < 2 {
		c.fail("migration", fmt.Sprintf("%s has one task only, so there is no skew to detect", op.Name), fmt.Sprintf("set the parallelism of %s to 2 or more", op.Name))
	}
}

// leastProbing is the shortest warm-up in which rounds can be timed: workers report their state only now and then.
const leastProbing = 400 * time.Millisecond

// split checks how the number of rounds is chosen. op may be nil.
func (c *cellChecker) split(m *Migration, info MigrationInfo, op *Operator) {
	for _, f := range []string{"peak", "wait"} {
		at := "migration." + f
		switch {
		case !c.has(at):
		case !info.Rounds:
			c.fail(at, fmt.Sprintf("%s does not split a move into rounds", m.Strategy), "remove it")
		case !m.Rounds.Auto && !c.bad("migration.rounds"):
			c.fail(at, fmt.Sprintf("has no effect, because rounds is %s", m.Rounds), "remove it, or write 'rounds: auto'")
		case f == "wait" && m.Peak > 0:
			c.fail(at, "has no effect, because the peak decides on the rounds", "keep one: peak, or wait")
		}
	}
	if warmup := c.cfg.Timing.Warmup; info.Rounds && m.Rounds.Auto && warmup < leastProbing && !c.bad("timing.warmup", "migration.rounds") {
		c.fail("timing.warmup", fmt.Sprintf("is %s, too short to time rounds in, which rounds: auto does", warmup),
			fmt.Sprintf("write at least %s, or a number of rounds", leastProbing))
	}
	if m.Peak <= 0 || op == nil {
		return
	}
	// A key group travels whole, and with it the state of each of its keys.
	if least := op.State.BytesPerKey; m.Bandwidth > 0 && least > 0 {
		if takes := time.Duration(float64(least) / float64(m.Bandwidth) * float64(time.Second)); takes > m.Peak {
			c.fail("migration.peak", fmt.Sprintf("is %s, but the %s of one key alone take %s at %s a second, so no number of rounds can meet it",
				m.Peak, least, takes.Round(time.Microsecond), m.Bandwidth), "raise peak or bandwidth")
		}
	}
}
