package model

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrParameter marks a number outside the range a formula is defined for. The
// message around it names the parameter and what would be right.
var ErrParameter = errors.New("parameter out of range")

// State tells whether a queue has a steady state.
type State uint8

const (
	// Stable: work arrives more slowly than it can be served.
	Stable State = iota
	// Unstable: arrivals reach or exceed capacity, so no mean delay exists.
	Unstable
)

// String returns "stable" or "unstable".
func (s State) String() string {
	if s == Unstable {
		return "unstable"
	}
	return "stable"
}

// Station is a service centre with one queue in front of equal servers.
type Station struct {
	Servers          int     // number of servers c, at least 1
	ServicePerSecond float64 // rate μ of one server, above 0
}

// QueueMetrics are the steady-state means of one station. The means are behind
// methods because they exist only while the station is stable.
type QueueMetrics struct {
	State            State
	ArrivalPerSecond float64 // λ, also the throughput while stable
	Utilisation      float64 // offered load of one server, λ/(cμ); 1 or more when unstable

	waitProbability float64
	queue           float64
	serviceSeconds  float64
	waitSeconds     float64
}

// WaitProbability is the chance that an arrival has to wait (Erlang C), and
// false when the station is unstable.
func (m QueueMetrics) WaitProbability() (float64, bool) {
	return m.waitProbability, m.State == Stable
}

// Queue is the mean number waiting, not counting those in service, and false
// when the station is unstable.
func (m QueueMetrics) Queue() (float64, bool) { return m.queue, m.State == Stable }

// Jobs is the mean number waiting or in service, and false when the station is
// unstable.
func (m QueueMetrics) Jobs() (float64, bool) {
	return m.queue + m.ArrivalPerSecond*m.serviceSeconds, m.State == Stable
}

// Wait is the mean time before service, and false when the station is unstable.
func (m QueueMetrics) Wait() (time.Duration, bool) {
	return seconds(m.waitSeconds), m.State == Stable
}

// Response is the mean time from arrival to the end of service, and false when
// the station is unstable.
func (m QueueMetrics) Response() (time.Duration, bool) {
	return seconds(m.waitSeconds + m.serviceSeconds), m.State == Stable
}

// ResponseText is the mean response for a reader: a duration, or "unstable".
func (m QueueMetrics) ResponseText() string {
	if r, ok := m.Response(); ok {
		return r.String()
	}
	return m.State.String()
}

// MM1 gives the steady state of a single-server queue with Poisson arrivals
// and exponential service: response 1/(μ−λ). Errors wrap ErrParameter.
//
// Source: Kleinrock, Queueing Systems I (1975), sec. 3.2.
func MM1(arrivalPerSecond, servicePerSecond float64) (QueueMetrics, error) {
	return MMC(arrivalPerSecond, Station{Servers: 1, ServicePerSecond: servicePerSecond})
}

// MMC gives the steady state of an M/M/c queue. The mean wait is
// C(c, λ/μ)/(cμ−λ) with C from ErlangC. Errors wrap ErrParameter.
//
// Source: Kleinrock, Queueing Systems I (1975), sec. 3.5.
func MMC(arrivalPerSecond float64, s Station) (QueueMetrics, error) {
	if err := s.check(); err != nil {
		return QueueMetrics{}, err
	}
	if !(arrivalPerSecond >= 0) || math.IsInf(arrivalPerSecond, 1) {
		return QueueMetrics{}, fmt.Errorf("arrival rate %v per second: want a finite number of at least 0: %w", arrivalPerSecond, ErrParameter)
	}
	capacity := float64(s.Servers) * s.ServicePerSecond
	m := QueueMetrics{
		ArrivalPerSecond: arrivalPerSecond,
		Utilisation:      arrivalPerSecond / capacity,
		serviceSeconds:   1 / s.ServicePerSecond,
	}
	if arrivalPerSecond >= capacity {
		m.State = Unstable
		return m, nil
	}
	m.waitProbability = erlangC(s.Servers, arrivalPerSecond/s.ServicePerSecond)
	m.waitSeconds = m.waitProbability / (capacity - arrivalPerSecond)
	m.queue = m.waitSeconds * arrivalPerSecond
	return m, nil
}

// ErlangC is the probability that an arrival finds all servers of an M/M/c
// queue busy; offeredLoad is λ/μ in Erlangs. It needs offeredLoad < servers and
// errors, wrapping ErrParameter, otherwise.
//
// Source: Erlang's delay formula; computed from the Erlang B recursion
// B(c) = aB(c−1)/(c+aB(c−1)), which neither overflows nor cancels.
func ErlangC(servers int, offeredLoad float64) (float64, error) {
	if servers < 1 || !(offeredLoad >= 0) || offeredLoad >= float64(servers) {
		return 0, fmt.Errorf("load %v on %d servers has no Erlang C: want 0 ≤ load < servers: %w", offeredLoad, servers, ErrParameter)
	}
	return erlangC(servers, offeredLoad), nil
}

func erlangC(servers int, load float64) float64 {
	blocking := 1.0
	for c := 1; c <= servers; c++ {
		blocking = load * blocking / (float64(c) + load*blocking)
	}
	rho := load / float64(servers)
	return blocking / (1 - rho*(1-blocking))
}

func (s Station) check() error {
	if s.Servers < 1 {
		return fmt.Errorf("%d servers: want at least 1: %w", s.Servers, ErrParameter)
	}
	if !(s.ServicePerSecond > 0) || math.IsInf(s.ServicePerSecond, 1) {
		return fmt.Errorf("service rate %v per second: want a finite number above 0: %w", s.ServicePerSecond, ErrParameter)
	}
	return nil
}

// seconds saturates, because a stable queue near capacity can have a mean above
// the 292 years of a time.Duration and a conversion would wrap to a negative.
func seconds(s float64) time.Duration {
	ns := math.Round(s * float64(time.Second))
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
