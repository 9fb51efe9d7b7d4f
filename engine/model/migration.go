package model

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrPeakTarget marks a peak delay that no number of rounds can keep.
var ErrPeakTarget = errors.New("peak target cannot be met")

// Migration is the cost model of moving state in N rounds. All its numbers are
// meant to be measured on the running engine.
type Migration struct {
	StateBytes              int64         // S, to move in all
	BandwidthBytesPerSecond float64       // b, of serialising, sending and installing together
	SyncCost                time.Duration // c, fixed cost of a round; above 0
	Utilisation             float64       // ρ = λ/μ of the waiting task, in [0, 1)
	ArrivalPerSecond        float64       // λ of the whole instance
	MovingShare             float64       // share of λ that goes to the moving groups, in [0, 1]
	Groups                  int           // number of groups to move, the upper limit of N
	// LargestGroupBytes is the state of the largest moving group, or 0 when
	// groups are alike. A group is never split, so no round with it is shorter.
	LargestGroupBytes int64
	// StreamBandwidthBytesPerSecond B and StreamSyncCost f are the line of rounds
	// so large that packing, sending and installing overlap in a pipeline: such a
	// round of S bytes takes f + S/B, a small one c + S/b, and any the lesser of
	// the two. B is the rate of the slowest stage, b that of all stages one after
	// the other, and f − c the time to fill the pipeline (Hennessy and Patterson,
	// Computer Architecture, appendix C). B = 0: no round is that large.
	StreamBandwidthBytesPerSecond float64
	StreamSyncCost                time.Duration
	// Jitter σ is the standard deviation of the longest wait of a round about the
	// round's time, from whatever else goes on. It counts for peaks only.
	Jitter time.Duration
}

// RoundPrediction is what the model expects of one N.
type RoundPrediction struct {
	Rounds     int
	Peak       time.Duration // longest wait of a record: T, or that of the largest group alone, and σ·NormalMaximum(N)
	Disruption time.Duration // peak/(1−ρ), until the backlog of the longest round is gone
	Duration   time.Duration // N·T/(1−ρ), rounds of T one after the other, each drained
	// DelayAll and DelayMoving are Σ excess delay, in record-seconds, when all
	// records of the instance wait in a round, or only those of its groups.
	DelayAllRecordSeconds    float64
	DelayMovingRecordSeconds float64
}

// RoundChoice is a recommended number of rounds.
type RoundChoice struct {
	Rounds int
	Ideal  float64 // before rounding and limits
	Capped bool    // Rounds was limited by 1 or by the number of groups
}

// NormalMaximum is the expected maximum of n independent standard normal
// variables, Φ⁻¹((n − 3/8)/(n + 1/4)) (Blom, Statistical Estimates and
// Transformed Beta-Variables, 1958): 0 for one, within 5 % for every n, and
// below √(2 ln n), to which it grows. It is NaN for n < 1.
func NormalMaximum(n int) float64 {
	if n < 1 {
		return math.NaN()
	}
	p := (float64(n) - 0.375) / (float64(n) + 0.25)
	return math.Sqrt2 * math.Erfinv(2*p-1)
}

// Round is T, the mean time of a round of so many bytes: min(c + S/b, f + S/B).
// The model's parameters are taken as they are; see Predict for their check.
func (m Migration) Round(bytes int64) time.Duration { return seconds(m.round(float64(bytes))) }

func (m Migration) round(bytes float64) float64 {
	t := m.SyncCost.Seconds() + bytes/m.BandwidthBytesPerSecond
	if m.StreamBandwidthBytesPerSecond > 0 {
		t = min(t, m.StreamSyncCost.Seconds()+bytes/m.StreamBandwidthBytesPerSecond)
	}
	return t
}

// peak is the longest wait of n rounds, in seconds.
func (m Migration) peak(n int) float64 {
	t := max(m.round(float64(m.StateBytes)/float64(n)), m.round(float64(m.LargestGroupBytes)))
	return t + m.Jitter.Seconds()*NormalMaximum(n)
}

// Transfer is a = S/b, the time to move everything without synchronisation.
// Errors wrap ErrParameter.
func (m Migration) Transfer() (time.Duration, error) {
	if err := m.check(); err != nil {
		return 0, err
	}
	return seconds(m.transfer()), nil
}

// Predict gives the model's expectation for the given number of rounds, from 1
// to Groups. The delay of a round is the triangle of height T and base
// T/(1−ρ): rate·T²/(2(1−ρ)). Errors wrap ErrParameter.
func (m Migration) Predict(rounds int) (RoundPrediction, error) {
	if err := m.check(); err != nil {
		return RoundPrediction{}, err
	}
	if rounds < 1 || rounds > m.Groups {
		return RoundPrediction{}, fmt.Errorf("%d rounds for %d groups: want 1 … %d: %w", rounds, m.Groups, m.Groups, ErrParameter)
	}
	n := float64(rounds)
	t := m.round(float64(m.StateBytes) / n)
	peak := m.peak(rounds)
	triangle := t * t / (2 * (1 - m.Utilisation))
	return RoundPrediction{
		Rounds:                   rounds,
		Peak:                     seconds(peak),
		Disruption:               seconds(peak / (1 - m.Utilisation)),
		Duration:                 seconds(n * t / (1 - m.Utilisation)),
		DelayAllRecordSeconds:    n * m.ArrivalPerSecond * triangle,
		DelayMovingRecordSeconds: m.ArrivalPerSecond * m.MovingShare * triangle,
	}, nil
}

// Sweep predicts N = 1, 2, 4, … and all groups. Errors wrap ErrParameter.
func (m Migration) Sweep() ([]RoundPrediction, error) {
	var out []RoundPrediction
	for n := 1; ; n *= 2 {
		p, err := m.Predict(min(n, m.Groups))
		if err != nil {
			return nil, err
		}
		out = append(out, p)
		if n >= m.Groups {
			return out, nil
		}
	}
}

// RoundsAllWait is the N with the least total delay when the whole instance
// waits in each round: N·(c+a/N)² is least at N = a/c. Of the two integers
// beside it the better is taken. Such an N makes small rounds, so the line of
// large ones plays no part. Errors wrap ErrParameter.
func (m Migration) RoundsAllWait() (RoundChoice, error) {
	if err := m.check(); err != nil {
		return RoundChoice{}, err
	}
	a, c := m.transfer(), m.SyncCost.Seconds()
	return m.choose(a/c, func(n float64) float64 { t := c + a/n; return n * t * t }), nil
}

// RoundsMovingWait is the N that minimises
// spikeWeight·T + durationWeight·N·T/(1−ρ) when only the moving groups wait:
// N = √(w_s·a·(1−ρ)/(w_d·c)). Both weights have to be above 0. Errors wrap
// ErrParameter.
func (m Migration) RoundsMovingWait(spikeWeight, durationWeight float64) (RoundChoice, error) {
	if err := m.check(); err != nil {
		return RoundChoice{}, err
	}
	if !(spikeWeight > 0) || !(durationWeight > 0) || math.IsInf(spikeWeight+durationWeight, 1) {
		return RoundChoice{}, fmt.Errorf("weights %v of spike and %v of duration: want both finite and above 0: %w", spikeWeight, durationWeight, ErrParameter)
	}
	a, c, idle := m.transfer(), m.SyncCost.Seconds(), 1-m.Utilisation
	ideal := math.Sqrt(spikeWeight * a * idle / (durationWeight * c))
	return m.choose(ideal, func(n float64) float64 {
		t := c + a/n
		return spikeWeight*t + durationWeight*n*t/idle
	}), nil
}

// RoundsForPeak is the least N whose peak does not exceed the limit L; without
// jitter and streaming N ≥ a/(L−c), which is the Ideal. It errors with
// ErrPeakTarget when no N up to the number of groups keeps it, and names the
// lowest peak that can be had; bad parameters wrap ErrParameter. Jitter grows
// with N, so that more rounds do not always lower the peak.
func (m Migration) RoundsForPeak(limit time.Duration) (RoundChoice, error) {
	if err := m.check(); err != nil {
		return RoundChoice{}, err
	}
	least, enough := math.Inf(1), limit.Seconds()*(1+1e-12)
	for n := 1; n <= m.Groups; n++ {
		p := m.peak(n)
		if p <= enough {
			return m.chosenForPeak(n, limit), nil
		}
		least = min(least, p)
	}
	lowest := seconds(least)
	switch needed := math.Ceil(m.transfer() / (limit - m.SyncCost).Seconds() * (1 - 1e-12)); {
	case limit <= m.SyncCost:
		return RoundChoice{}, fmt.Errorf("peak %v: one round alone costs %v, want at least %v: %w", limit, m.SyncCost, lowest, ErrPeakTarget)
	case m.round(float64(m.LargestGroupBytes)) > enough:
		return RoundChoice{}, fmt.Errorf("peak %v: the largest group of %d bytes alone takes %v, want at least %v: %w", limit, m.LargestGroupBytes, m.Round(m.LargestGroupBytes), lowest, ErrPeakTarget)
	case m.Jitter > 0:
		return RoundChoice{}, fmt.Errorf("peak %v: no number of rounds of %d groups keeps it with a jitter of %v, want at least %v: %w", limit, m.Groups, m.Jitter, lowest, ErrPeakTarget)
	default:
		return RoundChoice{}, fmt.Errorf("peak %v: %.0f rounds needed but only %d groups move, want at least %v: %w", limit, needed, m.Groups, lowest, ErrPeakTarget)
	}
}

// chosenForPeak is n, the least that keeps the limit. Where a/(L−c) does not give n, n is the ideal itself.
func (m Migration) chosenForPeak(n int, limit time.Duration) RoundChoice {
	ideal := m.transfer() / (limit - m.SyncCost).Seconds()
	if limit <= m.SyncCost || max(1, math.Ceil(ideal*(1-1e-12))) != float64(n) {
		ideal = float64(n)
	}
	return RoundChoice{Rounds: n, Ideal: ideal, Capped: ideal < 1}
}

// GroupsAbovePeak lists the indices of the groups whose transfer alone, with the
// cost of a round, exceeds the limit: those that no number of rounds helps.
// Errors wrap ErrParameter.
func (m Migration) GroupsAbovePeak(stateBytes []int64, limit time.Duration) ([]int, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	var above []int
	for g, b := range stateBytes {
		if m.round(float64(b)) > limit.Seconds()*(1+1e-12) {
			above = append(above, g)
		}
	}
	return above, nil
}

func (m Migration) transfer() float64 { return float64(m.StateBytes) / m.BandwidthBytesPerSecond }

// choose rounds the real optimum of a convex cost to the better integer within
// 1 … Groups.
func (m Migration) choose(ideal float64, cost func(n float64) float64) RoundChoice {
	limit := float64(m.Groups)
	c := RoundChoice{Ideal: ideal, Capped: ideal < 1 || ideal > limit}
	low := min(max(math.Floor(ideal), 1), limit)
	high := min(low+1, limit)
	c.Rounds = int(low)
	if cost(high) < cost(low) {
		c.Rounds = int(high)
	}
	return c
}

func (m Migration) check() error {
	switch {
	case m.StateBytes < 0 || m.LargestGroupBytes < 0 || m.LargestGroupBytes > m.StateBytes:
		return fmt.Errorf("state of %d bytes, largest group of %d: want neither negative and the group no larger: %w", m.StateBytes, m.LargestGroupBytes, ErrParameter)
	case !(m.BandwidthBytesPerSecond > 0) || math.IsInf(m.BandwidthBytesPerSecond, 1):
		return fmt.Errorf("bandwidth of %v bytes per second: want a finite number above 0: %w", m.BandwidthBytesPerSecond, ErrParameter)
	case m.SyncCost <= 0:
		return fmt.Errorf("synchronisation cost %v: want above 0, as rounds that cost nothing have no best number: %w", m.SyncCost, ErrParameter)
	case !(m.StreamBandwidthBytesPerSecond >= 0) || math.IsInf(m.StreamBandwidthBytesPerSecond, 1):
		return fmt.Errorf("bandwidth of large rounds of %v bytes per second: want a finite number above 0, or 0 for no such line: %w", m.StreamBandwidthBytesPerSecond, ErrParameter)
	case m.StreamSyncCost < 0 || m.StreamBandwidthBytesPerSecond > 0 && m.StreamSyncCost == 0:
		return fmt.Errorf("fixed cost of large rounds %v: want above 0: %w", m.StreamSyncCost, ErrParameter)
	case m.Jitter < 0:
		return fmt.Errorf("jitter %v: want at least 0: %w", m.Jitter, ErrParameter)
	case !(m.Utilisation >= 0 && m.Utilisation < 1):
		return fmt.Errorf("utilisation %v: want 0 ≤ ρ < 1, since a task at capacity never drains: %w", m.Utilisation, ErrParameter)
	case !(m.ArrivalPerSecond >= 0) || math.IsInf(m.ArrivalPerSecond, 1):
		return fmt.Errorf("arrival rate %v per second: want a finite number of at least 0: %w", m.ArrivalPerSecond, ErrParameter)
	case !(m.MovingShare >= 0 && m.MovingShare <= 1):
		return fmt.Errorf("moving share %v: want 0 … 1: %w", m.MovingShare, ErrParameter)
	case m.Groups < 1:
		return fmt.Errorf("%d groups to move: want at least 1: %w", m.Groups, ErrParameter)
	}
	return nil
}
