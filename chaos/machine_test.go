package chaos

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func sure(f Fault, t Trigger, lasts time.Duration) Rule {
	return Rule{Fault: f, Trigger: t, For: lasts, Probability: 1}
}

func freeze(node int) Fault { return Fault{Kind: Freeze, Target: OnNode(node)} }
func kill(node int) Fault   { return Fault{Kind: Kill, Target: OnNode(node)} }

func machine(t testing.TB, rules ...Rule) *Machine {
	t.Helper()
	m, err := NewMachine(&Schedule{Seed: 1, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// told writes actions one a line, as: time op rule/occurrence fault (reason).
func told(actions []Action) string {
	var b strings.Builder
	for _, a := range actions {
		fmt.Fprintf(&b, "%v %s %d/%d %s", a.Due, a.Op, a.Rule, a.Occurrence, a.Fault)
		if a.Reason != "" {
			fmt.Fprintf(&b, " (%s)", a.Reason)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func expect(t *testing.T, got []Action, want string) {
	t.Helper()
	want = strings.TrimLeft(strings.ReplaceAll(want, "\t", ""), "\n")
	if g := told(got); g != want {
		t.Errorf("actions:\n%swant:\n%s", g, want)
	}
}

func TestTriggers(t *testing.T) {
	m := machine(t,
		sure(kill(1), Trigger{Event: "checkpoint-begin", N: 2}, 0),
		sure(freeze(2), Trigger{Event: "round-begin", ID: 7, After: 5 * ms}, 10*ms),
		Rule{Fault: kill(3), Trigger: Trigger{Event: "restored", N: 2}, Probability: 1, Repeat: 2},
		sure(kill(4), Trigger{After: 30 * ms}, 0),
	)
	var got []Action
	for i, e := range []Event{
		{Kind: "checkpoint-begin"}, {Kind: "checkpoint-complete"}, {Kind: "checkpoint-begin"}, {Kind: "checkpoint-begin"},
		{Kind: "round-begin", ID: 6}, {Kind: "round-begin", ID: 7}, {Kind: "restored"},
		{Kind: "restored", Count: 5}, // stands for the 2nd to the 6th, of which two fire
		{Kind: "restored"},
	} {
		got = m.Step(time.Duration(i+1)*ms, e, got)
	}
	if next, ok := m.Next(); !ok || next != 11*ms {
		t.Errorf("next at %v %v, want 11ms", next, ok)
	}
	got = m.Step(time.Second, Event{}, got)
	expect(t, got, `
		3ms inject 0/1 kill of worker 1
		8ms inject 2/1 kill of worker 3
		8ms inject 2/2 kill of worker 3
		11ms inject 1/1 freeze of worker 2
		21ms heal 1/1 freeze of worker 2
		30ms inject 3/1 kill of worker 4
	`)
	if next, ok := m.Next(); ok {
		t.Errorf("something is due at %v after the end", next)
	}
}

func TestOverlapIsOrderedOrRefused(t *testing.T) {
	m := machine(t,
		sure(freeze(1), Trigger{After: 10 * ms}, 20*ms),
		sure(Fault{Kind: Slow, Target: OnNode(1), Factor: 4}, Trigger{After: 15 * ms}, 10*ms), // waits until 30
		sure(freeze(1), Trigger{Event: "x"}, 0),                                               // waits until 40, lasts
		sure(freeze(1), Trigger{Event: "x", N: 2}, 5*ms),                                      // cannot happen
		sure(freeze(2), Trigger{After: 12 * ms}, 5*ms),                                        // another target
		sure(kill(1), Trigger{After: 90 * ms}, 0),
	)
	got := m.Step(20*ms, Event{Kind: "x"}, nil)
	got = m.Step(21*ms, Event{Kind: "x"}, got)
	got = m.Step(100*ms, Event{}, got)
	expect(t, got, `
		10ms inject 0/1 freeze of worker 1
		12ms inject 4/1 freeze of worker 2
		17ms heal 4/1 freeze of worker 2
		30ms heal 0/1 freeze of worker 1
		30ms inject 1/1 slow of worker 1 (due at 15ms, it waited for the end of freeze)
		40ms heal 1/1 slow of worker 1
		40ms inject 2/1 freeze of worker 1 (due at 20ms, it waited for the end of slow)
		40ms refuse 3/1 freeze of worker 1 (worker 1 is under freeze until the end)
		90ms inject 5/1 kill of worker 1
		90ms heal 2/1 freeze of worker 1 (its process was killed)
	`)
}

func TestStopHealsTheLatestFirstAndEnds(t *testing.T) {
	m := machine(t,
		sure(freeze(1), Trigger{}, 0),
		sure(Fault{Kind: Cut, Target: OnLink(2, 1)}, Trigger{After: ms}, time.Second),
		sure(Fault{Kind: Stall, Target: OnLink(1, 2)}, Trigger{After: 2 * ms}, time.Second),
		sure(kill(2), Trigger{Event: "x"}, 0),
	)
	m.Step(3*ms, Event{}, nil)
	expect(t, m.Stop(5*ms, nil), `
		5ms refuse 2/1 stall of link 1-2 (the run ends)
		5ms heal 1/1 cut of link 1-2 (the run ends)
		5ms heal 0/1 freeze of worker 1 (the run ends)
	`)
	expect(t, m.Step(6*ms, Event{Kind: "x"}, m.Stop(6*ms, nil)), "")
}

func TestProbability(t *testing.T) {
	hits := func(seed uint64, p float64, n int) (out []int) {
		s := &Schedule{Seed: seed, Rules: []Rule{{Fault: kill(1), Trigger: Trigger{Event: "x"}, Probability: p, Repeat: n}}}
		m, err := NewMachine(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range m.Step(0, Event{Kind: "x", Count: uint64(n)}, nil) {
			out = append(out, a.Occurrence)
		}
		return out
	}
	if got := hits(1, 0, 10_000); len(got) != 0 {
		t.Errorf("probability 0 gave %d faults", len(got))
	}
	if got := hits(1, 1, 10_000); len(got) != 10_000 {
		t.Errorf("probability 1 gave %d of 10000 faults", len(got))
	}
	// Binomial: 3000 ± 5 σ, σ = √(10000·0.3·0.7) = 46.
	a := hits(1, 0.3, 10_000)
	if len(a) < 2770 || len(a) > 3230 {
		t.Errorf("probability 0.3 gave %d of 10000 faults", len(a))
	}
	if !slices.Equal(a, hits(1, 0.3, 10_000)) {
		t.Error("the same seed gives other faults")
	}
	if slices.Equal(a, hits(2, 0.3, 10_000)) {
		t.Error("another seed gives the same faults")
	}
}

func TestLinksThatNeedAProxy(t *testing.T) {
	cut := func(a, b int, p float64) Rule {
		return Rule{Fault: Fault{Kind: Cut, Target: OnLink(a, b)}, Trigger: Trigger{Event: "x"}, For: ms, Probability: p}
	}
	s := &Schedule{Seed: 3, Rules: []Rule{cut(3, 1, 1), cut(1, 2, 0), sure(freeze(1), Trigger{}, ms), cut(1, 3, 1), cut(0, 2, 1)}}
	if got, want := s.Links(), []Link{{0, 2}, {1, 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("links %v, want %v: one with probability 0 needs none", got, want)
	}
}

// A fuzzed schedule does the same in however many steps time is told, keeps at most one lasting fault on a target, and
// heals exactly what it injected.
func TestMachineInvariants(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, events := randomSchedule(rng)
		run := func(fine bool) []Action {
			m, err := NewMachine(s)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			var got []Action
			for at := time.Duration(0); at < 200; at++ {
				if e := events[at]; fine || e.Kind != "" {
					got = m.Step(at, e, got)
				}
			}
			return m.Stop(1000, m.Step(1000, Event{}, got))
		}
		got := run(true)
		if coarse := run(false); !reflect.DeepEqual(got, coarse) {
			t.Fatalf("seed %d: in single steps\n%sin big ones\n%s", seed, told(got), told(coarse))
		}
		under := map[string]string{}
		for _, a := range got {
			id, slot := fmt.Sprint(a.Rule, a.Occurrence), a.Fault.Target.String()
			switch {
			case a.Op == Inject && a.Fault.Kind != Kill && under[slot] != "":
				t.Fatalf("seed %d: two faults at once on %s\n%s", seed, slot, told(got))
			case a.Op == Inject && a.Fault.Kind != Kill:
				under[slot] = id
			case a.Op == Heal && under[slot] != id:
				t.Fatalf("seed %d: healed what was not there on %s\n%s", seed, slot, told(got))
			case a.Op == Heal:
				delete(under, slot)
			}
		}
		if len(under) != 0 {
			t.Fatalf("seed %d: left %v\n%s", seed, under, told(got))
		}
	}
}

func randomSchedule(rng *rand.Rand) (*Schedule, map[time.Duration]Event) {
	s := &Schedule{Seed: rng.Uint64()}
	for range 2 + rng.IntN(10) {
		r := Rule{Fault: freeze(rng.IntN(2)), For: time.Duration(1 + rng.IntN(30)), Probability: rng.Float64()}
		switch rng.IntN(4) {
		case 0:
			r.Fault, r.For = kill(rng.IntN(2)), 0
		case 1:
			r.Fault = Fault{Kind: Cut, Target: OnLink(rng.IntN(2), 2)}
		}
		r.Trigger.After = time.Duration(rng.IntN(100))
		if rng.IntN(2) == 0 {
			r.Trigger.Event, r.Trigger.N, r.Repeat = "x", uint64(rng.IntN(3)), rng.IntN(4)
			if rng.IntN(4) == 0 && r.Kind != Kill {
				r.For = 0
			}
		}
		s.Rules = append(s.Rules, r)
	}
	events := map[time.Duration]Event{}
	for range 5 {
		events[time.Duration(rng.IntN(200))] = Event{Kind: "x", Count: uint64(rng.IntN(3))}
	}
	return s, events
}

func TestCheckNamesFieldAndFix(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{sure(Fault{Kind: "explode", Target: OnNode(1)}, Trigger{}, 0), `kind: unknown fault "explode"; write one of kill freeze slow cut stall slow-link`},
		{sure(Fault{Kind: Cut, Target: OnNode(1)}, Trigger{}, 0), "target: cut cannot hit worker 1; name a link"},
		{sure(Fault{Kind: Kill, Target: OnLink(1, 2)}, Trigger{}, 0), "target: kill cannot hit link 1-2; name a worker or a task"},
		{sure(Fault{Kind: Cut, Target: OnLink(1, 1)}, Trigger{}, 0), "joins a node to itself"},
		{sure(Fault{Kind: Slow, Target: OnNode(1), Factor: 1}, Trigger{}, 0), "factor: 1 does not slow"},
		{sure(Fault{Kind: Kill, Target: OnNode(1), Factor: 2}, Trigger{}, 0), "factor: kill has none"},
		{sure(Fault{Kind: SlowLink, Target: OnLink(1, 2)}, Trigger{}, 0), "both are 0"},
		{sure(Fault{Kind: Cut, Target: OnLink(1, 2), Latency: ms}, Trigger{}, 0), "cut has none"},
		{sure(Fault{Kind: SlowLink, Target: OnLink(1, 2), Latency: -ms}, Trigger{}, 0), "negative"},
		{sure(kill(1), Trigger{}, ms), "for: kill is not undone; leave it out"},
		{sure(freeze(1), Trigger{}, -ms), "for, after: -1ms"},
		{Rule{Fault: kill(1), Probability: 1.5}, "probability: 1.5 is not in 0 … 1"},
		{Rule{Fault: kill(1), Probability: 1, Repeat: 2}, "there is one start only"},
		{Rule{Fault: kill(1), Trigger: Trigger{Event: "x"}, Repeat: -1}, "repeat: -1"},
	} {
		s := &Schedule{Rules: []Rule{sure(kill(9), Trigger{}, 0), c.rule}}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "faults[1].") {
			t.Errorf("%+v: %v, want %q", c.rule, err, c.want)
		}
	}
	s := &Schedule{Rules: []Rule{sure(freeze(1), Trigger{}, 0), sure(freeze(1), Trigger{After: ms}, ms)}}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "faults[1].target: worker 1 is under freeze (faults[0]) until the end") {
		t.Errorf("a fault that can never happen: %v", err)
	}
}
