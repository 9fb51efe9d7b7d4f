package model

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrNoSteadyState marks routing that multiplies or traps work for ever, so
// that the traffic equations have no finite non-negative solution.
var ErrNoSteadyState = errors.New("routing has no steady state")

// Network is an open network of queues.
type Network struct {
	Stations         []Station
	ArrivalPerSecond []float64 // from outside, one a station
	// Routing[i][j] is the mean number of jobs sent to j for each job finished
	// at i. Rows that sum to at most 1 are probabilities, and what is missing
	// to 1 leaves the network. A row may sum to more than 1 for an operator that
	// emits several records for one; the traffic stays exact, the delays then
	// are an approximation because the network has no product form.
	Routing [][]float64
}

// NetworkMetrics are the steady-state means of a network.
type NetworkMetrics struct {
	Stations         []QueueMetrics // in the order of Network.Stations
	ArrivalPerSecond float64        // total from outside

	jobs float64
}

// State is Unstable when any station is.
func (m NetworkMetrics) State() State {
	for _, s := range m.Stations {
		if s.State == Unstable {
			return Unstable
		}
	}
	return Stable
}

// Jobs is the mean number of jobs in the whole network, and false when any
// station is unstable.
func (m NetworkMetrics) Jobs() (float64, bool) { return m.jobs, m.State() == Stable }

// Response is the mean time a job spends in the network (Little's law: jobs
// inside over outside arrivals). It is false when a station is unstable or
// nothing arrives.
func (m NetworkMetrics) Response() (time.Duration, bool) {
	if m.State() == Unstable || m.ArrivalPerSecond == 0 {
		return 0, false
	}
	return seconds(m.jobs / m.ArrivalPerSecond), true
}

// Bottleneck is the index of the station with the highest utilisation, the
// lowest index among equals, or −1 for an empty network.
func (m NetworkMetrics) Bottleneck() int {
	best := -1
	for i, s := range m.Stations {
		if best < 0 || s.Utilisation > m.Stations[best].Utilisation {
			best = i
		}
	}
	return best
}

// Solve solves the traffic equations λ = γ + Pᵀλ, feedback included, and
// gives each station its M/M/c means. Errors wrap ErrParameter for malformed
// input and ErrNoSteadyState for routing that traps or multiplies work.
//
// Source: Jackson, Networks of Waiting Lines, Operations Research 5 (1957).
func (n Network) Solve() (NetworkMetrics, error) {
	if err := n.check(); err != nil {
		return NetworkMetrics{}, err
	}
	rates, err := n.Throughput()
	if err != nil {
		return NetworkMetrics{}, err
	}
	total := 0.0
	for _, a := range n.ArrivalPerSecond {
		total += a
	}
	return stationsAt(n.Stations, rates, total)
}

// SolveVisits gives the means of a network described by how often a job visits
// each station rather than by routing: λᵢ = rate · visitsᵢ. Errors wrap
// ErrParameter.
//
// Source: forced flow law, Lazowska et al., Quantitative System Performance
// (1984), ch. 3.
func SolveVisits(ratePerSecond float64, visits []float64, stations []Station) (NetworkMetrics, error) {
	if len(visits) != len(stations) {
		return NetworkMetrics{}, fmt.Errorf("%d visit counts for %d stations: want one a station: %w", len(visits), len(stations), ErrParameter)
	}
	rates := make([]float64, len(visits))
	for i, v := range visits {
		rates[i] = ratePerSecond * v
	}
	return stationsAt(stations, rates, ratePerSecond)
}

func stationsAt(stations []Station, rates []float64, total float64) (NetworkMetrics, error) {
	m := NetworkMetrics{Stations: make([]QueueMetrics, len(stations)), ArrivalPerSecond: total}
	for i, s := range stations {
		q, err := MMC(rates[i], s)
		if err != nil {
			return NetworkMetrics{}, fmt.Errorf("station %d: %w", i, err)
		}
		m.Stations[i] = q
		if jobs, ok := q.Jobs(); ok {
			m.jobs += jobs
		}
	}
	return m, nil
}

// Throughput solves the traffic equations alone and returns λ of each station,
// per second. Stations that no arrival can reach get 0 and take no part in the
// system, so an idle closed loop does no harm. Errors are as for Solve.
func (n Network) Throughput() ([]float64, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	live := n.reachable()
	size := len(live)
	a := make([][]float64, size)
	b := make([]float64, size)
	for row, j := range live {
		a[row] = make([]float64, size)
		b[row] = n.ArrivalPerSecond[j]
		for col, i := range live {
			a[row][col] = -n.Routing[i][j]
		}
		a[row][row]++
	}
	x, ok := solveLinear(a, b)
	rates := make([]float64, len(n.Stations))
	for row, j := range live {
		// A non-negative solution bounds every partial sum of γ + Pᵀγ + …, so
		// it exists exactly when the work in the network stays finite.
		if !ok || !(x[row] >= 0) || math.IsInf(x[row], 1) {
			return nil, fmt.Errorf("traffic of station %d: work never leaves or multiplies on a loop: %w", j, ErrNoSteadyState)
		}
		rates[j] = x[row]
	}
	return rates, nil
}

func (n Network) check() error {
	size := len(n.Stations)
	if len(n.ArrivalPerSecond) != size || len(n.Routing) != size {
		return fmt.Errorf("%d stations, %d arrival rates, %d routing rows: want as many of each: %w", size, len(n.ArrivalPerSecond), len(n.Routing), ErrParameter)
	}
	for i, s := range n.Stations {
		if err := s.check(); err != nil {
			return fmt.Errorf("station %d: %w", i, err)
		}
		if a := n.ArrivalPerSecond[i]; !(a >= 0) || math.IsInf(a, 1) {
			return fmt.Errorf("station %d: arrival rate %v per second: want a finite number of at least 0: %w", i, a, ErrParameter)
		}
		if len(n.Routing[i]) != size {
			return fmt.Errorf("station %d: %d routing entries: want %d: %w", i, len(n.Routing[i]), size, ErrParameter)
		}
		for j, p := range n.Routing[i] {
			if !(p >= 0) || math.IsInf(p, 1) {
				return fmt.Errorf("routing from station %d to %d is %v: want a finite number of at least 0: %w", i, j, p, ErrParameter)
			}
		}
	}
	return nil
}

// reachable lists, in ascending order, the stations that outside work reaches.
func (n Network) reachable() []int {
	seen := make([]bool, len(n.Stations))
	var stack []int
	visit := func(i int) {
		if !seen[i] {
			seen[i] = true
			stack = append(stack, i)
		}
	}
	for i, a := range n.ArrivalPerSecond {
		if a > 0 {
			visit(i)
		}
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for j, p := range n.Routing[i] {
			if p > 0 {
				visit(j)
			}
		}
	}
	var live []int
	for i, s := range seen {
		if s {
			live = append(live, i)
		}
	}
	return live
}

// solveLinear solves ax = b by Gaussian elimination with partial pivoting,
// overwriting both. It is false when a is singular to working precision.
func solveLinear(a [][]float64, b []float64) ([]float64, bool) {
	const singular = 1e-12
	n := len(b)
	for col := range n {
		pivot := col
		for row := col + 1; row < n; row++ {
			if math.Abs(a[row][col]) > math.Abs(a[pivot][col]) {
				pivot = row
			}
		}
		if math.Abs(a[pivot][col]) < singular {
			return nil, false
		}
		a[col], a[pivot] = a[pivot], a[col]
		b[col], b[pivot] = b[pivot], b[col]
		for row := col + 1; row < n; row++ {
			f := a[row][col] / a[col][col]
			for k := col; k < n; k++ {
				a[row][k] -= f * a[col][k]
			}
			b[row] -= f * b[col]
		}
	}
	x := make([]float64, n)
	for row := n - 1; row >= 0; row-- {
		sum := b[row]
		for k := row + 1; k < n; k++ {
			sum -= a[row][k] * x[k]
		}
		x[row] = sum / a[row][row]
	}
	return x, true
}
