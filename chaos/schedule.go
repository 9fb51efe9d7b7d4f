package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Event is something that happened in the job, as the caller reports it.
type Event struct {
	// Kind is its name, such as checkpoint-begin, round-begin or restored.
	Kind string
	// ID is its number in the job (of the checkpoint, of the round).
	ID uint64
	// Count is how many occurrences are reported at once; 0 means one.
	Count uint64
}

// Trigger says when a fault happens: After the start of the run if Event is empty, else After the Nth event of that
// name.
type Trigger struct {
	Event string
	// ID restricts the events to those with this number; 0: any.
	ID uint64
	// N counts the events from 1; 0 means 1.
	N     uint64
	After time.Duration
}

// String describes t.
func (t Trigger) String() string {
	if t.Event == "" {
		return t.After.String() + " after the start"
	}
	s := fmt.Sprintf("%s #%d", t.Event, max(t.N, 1))
	if t.ID != 0 {
		s += fmt.Sprintf(" of id %d", t.ID)
	}
	if t.After > 0 {
		s += " + " + t.After.String()
	}
	return s
}

// matcher counts the events of a trigger.
type matcher struct {
	Trigger
	times uint64 // it fires at occurrences N … N+times-1
	seen  uint64
	// fired is how often it has fired.
	fired uint64
}

// feed returns how many times the trigger fires now.
func (m *matcher) feed(e Event) uint64 {
	if m.Event == "" || e.Kind != m.Event || (m.ID != 0 && e.ID != m.ID) {
		return 0
	}
	before := m.fired
	m.seen += max(e.Count, 1)
	if n := max(m.N, 1); m.seen >= n {
		m.fired = min(m.seen-n+1, m.times)
	}
	return m.fired - before
}

// Rule is one line of a schedule.
type Rule struct {
	Fault
	Trigger Trigger
	// For is how long the fault lasts; 0: until the run ends. Kill has none.
	For time.Duration
	// Probability that the fault happens at an occurrence of its trigger. At 0, also where it is left out, there is no
	// fault and no proxy for it.
	Probability float64
	// Repeat is at how many occurrences in a row, from the Nth, the rule fires; 0 means 1.
	Repeat int
}

// maxRepeat bounds what a schedule draws in advance.
const maxRepeat = 1 << 16

// Schedule is all that goes wrong in a run. What happens is a function of the seed and the events alone.
type Schedule struct {
	Seed  uint64
	Rules []Rule
}

// Check returns all that is wrong with s, joined, each with the rule's index, the field and what would be right.
func (s *Schedule) Check() error {
	var errs []error
	for i, r := range s.Rules {
		bad := func(err error) { errs = append(errs, fmt.Errorf("faults[%d].%w", i, err)) }
		for _, err := range r.check() {
			bad(err)
		}
		if !(r.Probability >= 0 && r.Probability <= 1) {
			bad(fmt.Errorf("probability: %v is not in 0 … 1", r.Probability))
		}
		if r.For < 0 || r.Trigger.After < 0 {
			bad(fmt.Errorf("for, after: %v and %v; neither can be negative", r.For, r.Trigger.After))
		}
		if k, ok := r.Kind.info(); ok && !k.Heals && r.For != 0 {
			bad(fmt.Errorf("for: %s is not undone; leave it out", r.Kind))
		}
		if r.Repeat < 0 || r.Repeat > maxRepeat {
			bad(fmt.Errorf("repeat: %d; write 1 … %d", r.Repeat, maxRepeat))
		}
		if r.Trigger.Event == "" && (r.Repeat > 1 || r.Trigger.N > 1 || r.Trigger.ID != 0) {
			bad(errors.New("repeat, n, id: there is one start only; name an event"))
		}
		for j := range i {
			if other := s.Rules[j]; shadows(other, r) {
				bad(fmt.Errorf("target: %s is under %s (faults[%d]) until the end; give that one a time, or drop this one", r.Target, other.Kind, j))
			}
		}
	}
	return errors.Join(errs...)
}

// shadows says that b can never happen, as a lasts on the same target until the end: both are sure and at set times.
// Where events decide, the machine does.
func shadows(a, b Rule) bool {
	info, ok := b.Kind.info()
	if !ok || !info.Heals || a.slot() != b.slot() || a.Trigger.Event != "" || b.Trigger.Event != "" || a.Kind == Kill {
		return false
	}
	return a.For == 0 && a.Probability == 1 && b.Probability > 0 && a.Trigger.After <= b.Trigger.After
}

// draw decides in advance at which occurrences a rule happens. Each rule has its own random sequence, so that adding
// one changes no other.
func (s *Schedule) draw(i int) []bool {
	r := s.Rules[i]
	rng := rand.New(rand.NewPCG(s.Seed, uint64(i)))
	hits := make([]bool, max(r.Repeat, 1))
	for j := range hits {
		hits[j] = rng.Float64() < r.Probability // never below 0, always below 1
	}
	return hits
}

// Links returns the links that a fault will or may hit, sorted: those that need a proxy.
func (s *Schedule) Links() []Link {
	var links []Link
	for i, r := range s.Rules {
		if l := r.Target.Link; l != nil && slices.Contains(s.draw(i), true) && !slices.Contains(links, Between(l.A, l.B)) {
			links = append(links, Between(l.A, l.B))
		}
	}
	slices.SortFunc(links, func(x, y Link) int {
		if x.A != y.A {
			return x.A - y.A
		}
		return x.B - y.B
	})
	return links
}
