package chaos

import (
	"fmt"
	"slices"
	"time"
)

// Op is what an action does.
type Op string

// The operations of actions.
const (
	Inject Op = "inject"
	Heal   Op = "heal"
	Refuse Op = "refuse" // the fault will not happen; Reason says why
)

// Action is one thing to do. Rule and Occurrence (from 1) identify the fault that it begins or ends.
type Action struct {
	Op         Op
	Rule       int
	Occurrence int
	Fault      Fault
	// Due is when it was meant to happen, on the clock given to Step.
	Due time.Duration
	// Reason says why it does not happen, or happens at another time than the rule says.
	Reason string
}

// Machine decides what happens when. It is pure: no clock, no goroutine, and the same steps give the same actions.
// Times are from the start of the run. It is not safe for concurrent use.
//
// A process or a link is under one lasting fault at a time: a second one waits until the first is healed, in order of
// its time and then of the schedule, and is refused if the first lasts until the end. Kill waits for nothing; it ends
// the lasting fault of its process.
type Machine struct {
	rules    []Rule
	hits     [][]bool
	matchers []matcher
	pending  []plan // sorted by due, rule, occurrence
	waiting  []plan // in the order in which they came due
	active   []plan // in the order of injection; due is when it is to be healed
	stopped  bool
}

type plan struct {
	due        time.Duration
	rule       int
	occurrence int
	endless    bool
}

func (p plan) compare(q plan) int {
	switch {
	case p.due != q.due:
		return int(min(max(p.due-q.due, -1), 1))
	case p.rule != q.rule:
		return p.rule - q.rule
	}
	return p.occurrence - q.occurrence
}

// NewMachine returns a machine at time 0. It keeps nothing of s. The error is that of Check.
func NewMachine(s *Schedule) (*Machine, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	m := &Machine{rules: slices.Clone(s.Rules)}
	for i, r := range m.rules {
		m.hits = append(m.hits, s.draw(i))
		m.matchers = append(m.matchers, matcher{Trigger: r.Trigger, times: uint64(max(r.Repeat, 1))})
		if r.Trigger.Event == "" && m.hits[i][0] {
			m.plan(plan{due: r.Trigger.After, rule: i, occurrence: 1})
		}
	}
	return m, nil
}

func (m *Machine) plan(p plan) {
	at, _ := slices.BinarySearchFunc(m.pending, p, plan.compare)
	m.pending = slices.Insert(m.pending, at, p)
}

// Step tells the machine that it is now and that e happened (a zero Event: only time went by), and appends what is to
// be done to dst, in order. In what steps time is told does not change the actions. An event may be reported late, with
// its own time as now: its triggers count from there.
func (m *Machine) Step(now time.Duration, e Event, dst []Action) []Action {
	if m.stopped {
		return dst
	}
	dst = m.advance(now, dst)
	if e.Kind == "" {
		return dst
	}
	for i := range m.matchers {
		first := int(m.matchers[i].fired)
		for k := range int(m.matchers[i].feed(e)) {
			if m.hits[i][first+k] {
				m.plan(plan{due: now + m.rules[i].Trigger.After, rule: i, occurrence: first + k + 1})
			}
		}
	}
	return m.advance(now, dst)
}

// Next returns when Step has to be called at the latest, false if only an event can bring anything.
func (m *Machine) Next() (time.Duration, bool) {
	next, ok := m.nextHeal()
	if len(m.pending) > 0 && (!ok || m.pending[0].due < next) {
		return m.pending[0].due, true
	}
	return next, ok
}

// Stop appends the healings of all faults that last, the latest first, and refuses those that still wait for them.
// Nothing happens afterwards.
func (m *Machine) Stop(now time.Duration, dst []Action) []Action {
	for _, w := range m.waiting {
		dst = append(dst, m.action(Refuse, w, now, "the run ends"))
	}
	for _, a := range slices.Backward(m.active) {
		dst = append(dst, m.action(Heal, a, now, "the run ends"))
	}
	m.active, m.pending, m.waiting, m.stopped = nil, nil, nil, true
	return dst
}

func (m *Machine) action(op Op, p plan, due time.Duration, reason string) Action {
	return Action{Op: op, Rule: p.rule, Occurrence: p.occurrence, Fault: m.rules[p.rule].Fault, Due: due, Reason: reason}
}

func (m *Machine) nextHeal() (next time.Duration, ok bool) {
	for _, a := range m.active {
		if !a.endless && (!ok || a.due < next) {
			next, ok = a.due, true
		}
	}
	return next, ok
}

// advance does all that is due, one after the other in the order of time, a healing before an injection.
func (m *Machine) advance(now time.Duration, dst []Action) []Action {
	for {
		heal, ok := m.nextHeal()
		inject := len(m.pending) > 0 && m.pending[0].due <= now
		switch {
		case ok && heal <= now && (!inject || heal <= m.pending[0].due):
			i := slices.IndexFunc(m.active, func(a plan) bool { return !a.endless && a.due == heal })
			dst = m.heal(i, heal, "", dst)
		case inject:
			p := m.pending[0]
			m.pending = slices.Delete(m.pending, 0, 1)
			dst = m.inject(p, p.due, "", dst)
		default:
			return dst
		}
	}
}

// holder returns the index of the lasting fault that p's target is under, or -1.
func (m *Machine) holder(p plan) int {
	slot := m.rules[p.rule].slot()
	return slices.IndexFunc(m.active, func(a plan) bool { return m.rules[a.rule].slot() == slot })
}

func (m *Machine) inject(p plan, at time.Duration, reason string, dst []Action) []Action {
	r := m.rules[p.rule]
	by := m.holder(p)
	if r.Kind == Kill {
		dst = append(dst, m.action(Inject, p, at, reason))
		if by >= 0 {
			dst = m.heal(by, at, "its process was killed", dst)
		}
		return dst
	}
	if by >= 0 {
		if a := m.active[by]; a.endless {
			return append(dst, m.action(Refuse, p, at, fmt.Sprintf("%s is under %s until the end", r.Target, m.rules[a.rule].Kind)))
		}
		m.waiting = append(m.waiting, p)
		return dst
	}
	dst = append(dst, m.action(Inject, p, at, reason))
	m.active = append(m.active, plan{due: at + r.For, rule: p.rule, occurrence: p.occurrence, endless: r.For == 0})
	return dst
}

// heal ends the i-th active fault and begins the one that waits for its target.
func (m *Machine) heal(i int, at time.Duration, reason string, dst []Action) []Action {
	a := m.active[i]
	m.active = slices.Delete(m.active, i, i+1)
	dst = append(dst, m.action(Heal, a, at, reason))
	slot := m.rules[a.rule].slot()
	w := slices.IndexFunc(m.waiting, func(p plan) bool { return m.rules[p.rule].slot() == slot })
	if w < 0 {
		return dst
	}
	p := m.waiting[w]
	m.waiting = slices.Delete(m.waiting, w, w+1)
	dst = m.inject(p, at, fmt.Sprintf("due at %v, it waited for the end of %s", p.due, m.rules[a.rule].Kind), dst)
	if m.rules[p.rule].For != 0 {
		return dst
	}
	// What still waits for this target would wait for ever.
	m.waiting = slices.DeleteFunc(m.waiting, func(q plan) bool {
		if m.rules[q.rule].slot() != slot {
			return false
		}
		dst = m.inject(q, at, "", dst)
		return true
	})
	return dst
}
