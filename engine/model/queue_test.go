package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %.8g, want %.8g ± %g", what, got, want, tolerance)
	}
}

// value unpacks a mean that has to exist.
func value(t *testing.T, what string) func(float64, bool) float64 {
	return func(v float64, ok bool) float64 {
		t.Helper()
		if !ok {
			t.Fatalf("%s: unstable", what)
		}
		return v
	}
}

func secondsOf(t *testing.T, what string) func(time.Duration, bool) float64 {
	return func(d time.Duration, ok bool) float64 {
		t.Helper()
		return value(t, what)(d.Seconds(), ok)
	}
}

func TestMMCPublished(t *testing.T) {
	for _, c := range []struct {
		servers               int
		wait, queue, response float64
	}{
		{2, 0.8526, 7.674, 1.0526},
		{4, 0.1285, 0.1052, 0.2117},
	} {
		m, err := MMC(9, Station{c.servers, 5})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "P(wait)", value(t, "P(wait)")(m.WaitProbability()), c.wait, 5e-5)
		near(t, "queue", value(t, "queue")(m.Queue()), c.queue, 5e-4)
		near(t, "response", secondsOf(t, "response")(m.Response()), c.response, 5e-5)
		near(t, "utilisation", m.Utilisation, 9/(5*float64(c.servers)), 1e-12)
	}
}

func TestUnstableIsNamed(t *testing.T) {
	for _, c := range []struct {
		rate float64
		s    Station
	}{{5, Station{1, 5}}, {11, Station{2, 5}}, {1e9, Station{3, 1e-9}}} {
		m, err := MMC(c.rate, c.s)
		if err != nil {
			t.Fatal(err)
		}
		if m.State != Unstable || m.ResponseText() != "unstable" {
			t.Errorf("λ=%v on %+v: %v, shown as %q, want unstable", c.rate, c.s, m.State, m.ResponseText())
		}
		for what, ok := range map[string]bool{
			"response": second(m.Response()), "wait": second(m.Wait()), "queue": second(m.Queue()),
			"jobs": second(m.Jobs()), "P(wait)": second(m.WaitProbability()),
		} {
			if ok {
				t.Errorf("λ=%v on %+v: %s claims to exist", c.rate, c.s, what)
			}
		}
	}
}

func second[T any](_ T, ok bool) bool { return ok }

func TestIdleStation(t *testing.T) {
	m, err := MMC(0, Station{3, 4})
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := m.Response(); !ok || r != 250*time.Millisecond || m.Utilisation != 0 {
		t.Errorf("idle: response %v (%v), utilisation %v, want 250ms and 0", r, ok, m.Utilisation)
	}
}

// The delay close to capacity is longer than a time.Duration can hold.
func TestResponseSaturates(t *testing.T) {
	m, err := MM1(math.Nextafter(1e-6, 0), 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := m.Response(); !ok || r <= 0 {
		t.Errorf("response next to capacity = %v (%v), want the longest duration", r, ok)
	}
}

// M/M/c against its birth-death chain summed directly.
func TestMMCAgainstBirthDeathChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		c := 1 + rng.IntN(12)
		load := float64(c) * (0.05 + 0.85*rng.Float64())
		m, err := MMC(load*3, Station{c, 3})
		if err != nil {
			t.Fatal(err)
		}
		p, sum, jobs := 1.0, 1.0, 0.0
		for k := 1; k < 4000; k++ {
			p *= load / float64(min(k, c))
			sum += p
			jobs += float64(k) * p
		}
		if got := value(t, "jobs")(m.Jobs()); math.Abs(got-jobs/sum) > 1e-6*jobs/sum {
			t.Fatalf("M/M/%d at load %v: jobs %v, chain gives %v", c, load, got, jobs/sum)
		}
	}
}

func TestErlangCManyServers(t *testing.T) {
	// Factorials of 2,000 servers overflow; the recursion has to stay a probability.
	p, err := ErlangC(2000, 1950)
	if err != nil || !(p > 0 && p < 1) {
		t.Errorf("Erlang C of 1,950 on 2,000 = %v, %v", p, err)
	}
	if _, err := ErlangC(2, 2); !errors.Is(err, ErrParameter) {
		t.Errorf("Erlang C at capacity: %v, want ErrParameter", err)
	}
}

func TestJacksonPublished(t *testing.T) {
	n := Network{
		Stations:         []Station{{1, 1 / 0.04}, {1, 1 / 0.03}, {1, 1 / 0.06}, {1, 1 / 0.05}},
		ArrivalPerSecond: []float64{0, 0, 0, 4},
		Routing:          [][]float64{{0, .5, .5, 0}, {1, 0, 0, 0}, {.6, 0, 0, 0}, {1, 0, 0, 0}},
	}
	m, err := n.Solve()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ rate, utilisation, response, jobs float64 }{
		{20, .8, .2, 4}, {10, .3, .0429, .4286}, {10, .6, .15, 1.5}, {4, .2, .0625, .25},
	} {
		s := m.Stations[i]
		near(t, "throughput", s.ArrivalPerSecond, want.rate, 1e-9)
		near(t, "utilisation", s.Utilisation, want.utilisation, 1e-9)
		near(t, "response", secondsOf(t, "response")(s.Response()), want.response, 5e-5)
		near(t, "jobs", value(t, "jobs")(s.Jobs()), want.jobs, 5e-5)
	}
	near(t, "network response", secondsOf(t, "network")(m.Response()), 1.5446, 5e-5)
	if m.Bottleneck() != 0 {
		t.Errorf("bottleneck %d, want 0", m.Bottleneck())
	}
}

func TestSolveVisitsPublished(t *testing.T) {
	m, err := SolveVisits(0.3, []float64{121, 70, 50}, []Station{{1, 1 / 0.005}, {1, 1 / 0.030}, {1, 1 / 0.027}})
	if err != nil {
		t.Fatal(err)
	}
	s := m.Stations[0]
	near(t, "utilisation", s.Utilisation, 0.1815, 1e-9)
	near(t, "throughput", s.ArrivalPerSecond, 36.3, 1e-9)
	near(t, "jobs", value(t, "jobs")(s.Jobs()), 0.222, 5e-4)
}

func TestTrafficEquations(t *testing.T) {
	one := Station{1, 1000}
	for _, c := range []struct {
		name     string
		arrivals []float64
		routing  [][]float64
		want     []float64 // nil: no steady state
	}{
		{"self-loop", []float64{3, 0}, [][]float64{{.25, .75}, {0, 0}}, []float64{4, 3}},
		{"one record becomes three", []float64{2, 0}, [][]float64{{0, 3}, {0, 0}}, []float64{2, 6}},
		{"trapped", []float64{1, 0}, [][]float64{{0, 1}, {1, 0}}, nil},
		{"trapped in thirds", []float64{1, 0, 0}, [][]float64{{1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3}}, nil},
		{"multiplying loop", []float64{1, 0}, [][]float64{{0, 2}, {.6, 0}}, nil},
		{"idle closed loop", []float64{5, 0, 0}, [][]float64{{0, 0, 0}, {0, 0, 1}, {0, 1, 0}}, []float64{5, 0, 0}},
	} {
		n := Network{ArrivalPerSecond: c.arrivals, Routing: c.routing}
		for range c.arrivals {
			n.Stations = append(n.Stations, one)
		}
		got, err := n.Throughput()
		if c.want == nil {
			if !errors.Is(err, ErrNoSteadyState) {
				t.Errorf("%s: %v, %v, want ErrNoSteadyState", c.name, got, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i := range got {
			near(t, c.name, got[i], c.want[i], 1e-9)
		}
	}
}

// Flow is conserved: what enters from outside leaves again.
func TestRandomNetworksConserveFlow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		size := 1 + rng.IntN(12)
		n := Network{Stations: make([]Station, size), ArrivalPerSecond: make([]float64, size), Routing: make([][]float64, size)}
		in := 0.0
		for i := range size {
			n.Stations[i] = Station{1, 1e6}
			n.ArrivalPerSecond[i] = rng.Float64()
			in += n.ArrivalPerSecond[i]
			n.Routing[i] = make([]float64, size)
			for j := range size {
				n.Routing[i][j] = 0.95 * rng.Float64() / float64(size)
			}
		}
		rates, err := n.Throughput()
		if err != nil {
			t.Fatal(err)
		}
		out := 0.0
		for i, r := range rates {
			stay := 0.0
			for _, p := range n.Routing[i] {
				stay += p
			}
			out += r * (1 - stay)
		}
		if math.Abs(out-in) > 1e-9*in {
			t.Fatalf("%d stations: %v enters, %v leaves; network %+v", size, in, out, n)
		}
	}
}

func TestNetworkRefusesBadInput(t *testing.T) {
	good := func() Network {
		return Network{[]Station{{1, 1}}, []float64{0.5}, [][]float64{{0}}}
	}
	for name, spoil := range map[string]func(*Network){
		"no server":        func(n *Network) { n.Stations[0].Servers = 0 },
		"no service":       func(n *Network) { n.Stations[0].ServicePerSecond = 0 },
		"NaN arrival":      func(n *Network) { n.ArrivalPerSecond[0] = math.NaN() },
		"negative arrival": func(n *Network) { n.ArrivalPerSecond[0] = -1 },
		"negative routing": func(n *Network) { n.Routing[0][0] = -0.1 },
		"ragged":           func(n *Network) { n.Routing[0] = nil },
		"lengths":          func(n *Network) { n.ArrivalPerSecond = nil },
	} {
		n := good()
		spoil(&n)
		if _, err := n.Solve(); !errors.Is(err, ErrParameter) {
			t.Errorf("%s: %v, want ErrParameter", name, err)
		}
	}
	unstable := good()
	unstable.ArrivalPerSecond[0] = 2
	m, err := unstable.Solve()
	if err != nil || m.State() != Unstable || second(m.Response()) || second(m.Jobs()) {
		t.Errorf("overloaded network: %v, %v, want unstable without means", m.State(), err)
	}
}
