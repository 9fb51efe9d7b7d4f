package model

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"
)

// a = 1 s, c = 10 ms.
func rounds() Migration {
	return Migration{
		StateBytes: 1 << 30, BandwidthBytesPerSecond: 1 << 30, SyncCost: 10 * time.Millisecond,
		Utilisation: 0.75, ArrivalPerSecond: 1000, MovingShare: 0.5, Groups: 256,
	}
}

func TestRoundPredictionByHand(t *testing.T) {
	p, err := rounds().Predict(4)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "peak", p.Peak.Seconds(), 0.26, 1e-9)
	near(t, "disruption", p.Disruption.Seconds(), 1.04, 1e-9)
	near(t, "duration", p.Duration.Seconds(), 4.16, 1e-9)
	near(t, "delay of all", p.DelayAllRecordSeconds, 4*1000*0.0676/0.5, 1e-9)
	near(t, "delay of moving", p.DelayMovingRecordSeconds, 500*0.0676/0.5, 1e-9)
}

func TestRecommendedRoundsAreTheSweepsBest(t *testing.T) {
	for _, syncCost := range []time.Duration{time.Millisecond, 7 * time.Millisecond, 10 * time.Millisecond, 333 * time.Millisecond, 3 * time.Second} {
		for _, rho := range []float64{0, 0.5, 0.95} {
			m := rounds()
			m.SyncCost, m.Utilisation = syncCost, rho
			all, err := m.RoundsAllWait()
			if err != nil {
				t.Fatal(err)
			}
			const ws, wd = 3.0, 0.02
			moving, err := m.RoundsMovingWait(ws, wd)
			if err != nil {
				t.Fatal(err)
			}
			bestAll, bestMoving := 1, 1
			cost := func(n int) (total, weighted float64) {
				p, err := m.Predict(n)
				if err != nil {
					t.Fatal(err)
				}
				return p.DelayAllRecordSeconds, ws*p.Peak.Seconds() + wd*p.Duration.Seconds()
			}
			for n := 2; n <= m.Groups; n++ {
				a, w := cost(n)
				if b, _ := cost(bestAll); a < b*(1-1e-9) {
					bestAll = n
				}
				if _, b := cost(bestMoving); w < b*(1-1e-7) {
					bestMoving = n
				}
			}
			a, _ := cost(all.Rounds)
			b, _ := cost(bestAll)
			_, wm := cost(moving.Rounds)
			_, wb := cost(bestMoving)
			if a > b*(1+1e-6) || wm > wb*(1+1e-6) {
				t.Errorf("c %v, ρ %v: chose %d and %d, sweep finds %d and %d", syncCost, rho, all.Rounds, moving.Rounds, bestAll, bestMoving)
			}
		}
	}
}

func TestClosedFormsOfRounds(t *testing.T) {
	all, err := rounds().RoundsAllWait()
	if err != nil || all.Rounds != 100 || all.Capped {
		t.Errorf("N = a/c: %+v, %v, want 100", all, err)
	}
	moving, err := rounds().RoundsMovingWait(4, 1) // √(4·1·0.25/0.01) = 10
	if err != nil || moving.Rounds != 10 {
		t.Errorf("N = √(w_s·a·(1−ρ)/(w_d·c)): %+v, %v, want 10", moving, err)
	}
	m := rounds()
	m.Groups = 64
	if all, err = m.RoundsAllWait(); err != nil || all.Rounds != 64 || !all.Capped {
		t.Errorf("more rounds than groups: %+v, %v, want 64 capped", all, err)
	}
	m.StateBytes = 0
	if all, err = m.RoundsAllWait(); err != nil || all.Rounds != 1 || !all.Capped {
		t.Errorf("nothing to send: %+v, %v, want 1 capped", all, err)
	}
}

func TestPeakTarget(t *testing.T) {
	m := rounds()
	c, err := m.RoundsForPeak(60 * time.Millisecond) // 1/(0.06−0.01) = 20
	if err != nil || c.Rounds != 20 {
		t.Errorf("peak 60 ms: %+v, %v, want 20", c, err)
	}
	for limit := 14 * time.Millisecond; limit < 2*time.Second; limit += 7 * time.Millisecond {
		c, err := m.RoundsForPeak(limit)
		if err != nil {
			t.Fatalf("peak %v: %v", limit, err)
		}
		if p, _ := m.Predict(c.Rounds); p.Peak > limit {
			t.Errorf("peak %v: %d rounds give %v", limit, c.Rounds, p.Peak)
		}
		if c.Rounds > 1 {
			if p, _ := m.Predict(c.Rounds - 1); p.Peak <= limit {
				t.Errorf("peak %v: %d rounds, but %d do", limit, c.Rounds, c.Rounds-1)
			}
		}
	}
	for _, limit := range []time.Duration{0, 10 * time.Millisecond, 11 * time.Millisecond, 13 * time.Millisecond} {
		if _, err := m.RoundsForPeak(limit); !errors.Is(err, ErrPeakTarget) {
			t.Errorf("peak %v: %v, want ErrPeakTarget", limit, err)
		}
	}
}

// A group is not split: one of 1/8 of the state sets a floor of 125 ms.
func TestLargestGroupSetsTheFloor(t *testing.T) {
	m := rounds()
	m.LargestGroupBytes = m.StateBytes / 8
	for n, want := range map[int]float64{1: 1.01, 4: 0.26, 8: 0.135, 64: 0.135} {
		p, err := m.Predict(n)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "peak", p.Peak.Seconds(), want, 1e-9)
	}
	if c, err := m.RoundsForPeak(135 * time.Millisecond); err != nil || c.Rounds != 8 {
		t.Errorf("peak at the floor: %+v, %v, want 8 rounds", c, err)
	}
	if _, err := m.RoundsForPeak(134 * time.Millisecond); !errors.Is(err, ErrPeakTarget) {
		t.Errorf("peak below the floor: %v, want ErrPeakTarget", err)
	}
	above, err := m.GroupsAbovePeak([]int64{1, 1 << 27, 1 << 26, 1 << 28}, 135*time.Millisecond)
	if err != nil || !slices.Equal(above, []int{3}) {
		t.Errorf("groups above 135 ms: %v, %v, want 3", above, err)
	}
}

// Large rounds stream: 50 ms and 2 GiB/s, which is less than 10 ms and 1 GiB/s above 80 MiB.
func TestLargeRoundsAreOnTheirOwnLine(t *testing.T) {
	m := rounds()
	m.StreamBandwidthBytesPerSecond, m.StreamSyncCost = 2<<30, 50*time.Millisecond
	for n, want := range map[int]float64{1: 0.55, 2: 0.30, 8: 0.1125, 16: 0.0725, 64: 0.025625} {
		p, err := m.Predict(n)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "peak", p.Peak.Seconds(), want, 1e-9)
		near(t, "duration", p.Duration.Seconds(), float64(n)*want*4, 1e-9)
	}
	if d := m.Round(80 << 20); d != 88125*time.Microsecond {
		t.Errorf("a round of 80 MiB: %v, want 88.125 ms", d)
	}
	if c, err := m.RoundsForPeak(300 * time.Millisecond); err != nil || c.Rounds != 2 {
		t.Errorf("peak 300 ms: %+v, %v, want 2 rounds, as they stream", c, err)
	}
}

// The expected maxima of 1, 2, 5, 10 and 100 normals are known: 0, 1/√π, 1.16296, 1.53875, 2.50759 (Harter 1961).
func TestNormalMaximumByTheTables(t *testing.T) {
	for n, want := range map[int]float64{1: 0, 2: 0.56419, 5: 1.16296, 10: 1.53875, 100: 2.50759} {
		if got := NormalMaximum(n); math.Abs(got-want) > 0.05*want+1e-12 {
			t.Errorf("maximum of %d: %v, want %v within 5 %%", n, got, want)
		}
	}
	for n := 2; n < 10_000; n++ {
		if z := NormalMaximum(n); z <= NormalMaximum(n-1) || z >= math.Sqrt(2*math.Log(float64(n))) {
			t.Fatalf("maximum of %d is %v: want it to rise, below √(2 ln n)", n, z)
		}
	}
	if !math.IsNaN(NormalMaximum(0)) {
		t.Error("a maximum of nothing")
	}
}

// σ = 20 ms: with 100 rounds the longest is 20 + 20·Φ⁻¹(99.625/100.25) = 20 + 20·2.4984 ms.
func TestJitterRaisesThePeakOnly(t *testing.T) {
	m := rounds()
	m.Jitter = 20 * time.Millisecond
	plain, err := rounds().Predict(100)
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Predict(100)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "peak", p.Peak.Seconds(), 0.02+0.02*2.4984, 1e-4)
	if p.Duration != plain.Duration || p.DelayAllRecordSeconds != plain.DelayAllRecordSeconds {
		t.Errorf("jitter changes more than the peak: %+v and %+v", p, plain)
	}
	one, err := m.Predict(1)
	if err != nil || one.Peak != 1010*time.Millisecond {
		t.Errorf("one round: %v, %v, want the mean of 1.01 s", one.Peak, err)
	}
	c, err := m.RoundsForPeak(100 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= c.Rounds; n++ {
		if p, _ := m.Predict(n); p.Peak <= 100*time.Millisecond != (n == c.Rounds) {
			t.Errorf("100 ms: %d rounds chosen, and %d lead to %v", c.Rounds, n, p.Peak)
		}
	}
	if _, err := m.RoundsForPeak(40 * time.Millisecond); !errors.Is(err, ErrPeakTarget) {
		t.Errorf("40 ms with a jitter of 20 ms: %v, want ErrPeakTarget", err)
	}
}

func TestSweepEndsWithAllGroups(t *testing.T) {
	for _, groups := range []int{1, 2, 3, 63, 64, 65} {
		m := rounds()
		m.Groups = groups
		sweep, err := m.Sweep()
		if err != nil {
			t.Fatal(err)
		}
		if sweep[0].Rounds != 1 || sweep[len(sweep)-1].Rounds != groups {
			t.Errorf("%d groups: sweep from %d to %d", groups, sweep[0].Rounds, sweep[len(sweep)-1].Rounds)
		}
		for i := 1; i < len(sweep); i++ {
			if sweep[i].Rounds <= sweep[i-1].Rounds || sweep[i].Peak >= sweep[i-1].Peak {
				t.Errorf("%d groups: row %d does not raise N and lower the peak: %+v", groups, i, sweep)
			}
		}
	}
}

func TestMigrationRefusesBadInput(t *testing.T) {
	for name, spoil := range map[string]func(*Migration){
		"negative state": func(m *Migration) { m.StateBytes = -1 },
		"large group":    func(m *Migration) { m.LargestGroupBytes = m.StateBytes + 1 },
		"no bandwidth":   func(m *Migration) { m.BandwidthBytesPerSecond = 0 },
		"NaN bandwidth":  func(m *Migration) { m.BandwidthBytesPerSecond = math.NaN() },
		"free round":     func(m *Migration) { m.SyncCost = 0 },
		"jitter":         func(m *Migration) { m.Jitter = -1 },
		"stream":         func(m *Migration) { m.StreamBandwidthBytesPerSecond = math.NaN() },
		"free stream":    func(m *Migration) { m.StreamBandwidthBytesPerSecond = 1e9 },
		"at capacity":    func(m *Migration) { m.Utilisation = 1 },
		"share":          func(m *Migration) { m.MovingShare = 1.1 },
		"no group":       func(m *Migration) { m.Groups = 0 },
		"rate":           func(m *Migration) { m.ArrivalPerSecond = math.Inf(1) },
	} {
		m := rounds()
		spoil(&m)
		if _, err := m.RoundsAllWait(); !errors.Is(err, ErrParameter) {
			t.Errorf("%s: %v, want ErrParameter", name, err)
		}
	}
	for _, n := range []int{-1, 0, 257} {
		if _, err := rounds().Predict(n); !errors.Is(err, ErrParameter) {
			t.Errorf("%d rounds of 256 groups: %v, want ErrParameter", n, err)
		}
	}
	if _, err := rounds().RoundsMovingWait(0, 1); !errors.Is(err, ErrParameter) {
		t.Errorf("weight 0: %v, want ErrParameter", err)
	}
}

func TestRegret(t *testing.T) {
	for _, c := range []struct {
		chosen, best, want float64
		ok                 bool
	}{
		{110, 100, 0.1, true}, {5, 5, 0, true}, {0, 0, 0, true}, {5, 0, 0, false},
		{math.NaN(), 5, 0, false}, {5, math.NaN(), 0, false}, {math.Inf(1), 5, 0, false}, {-1, 5, 0, false},
	} {
		got, ok := Regret(c.chosen, c.best)
		if ok != c.ok {
			t.Errorf("Regret(%v, %v): ok %v, want %v", c.chosen, c.best, ok, c.ok)
		}
		near(t, "regret", got, c.want, 1e-12)
	}
	if r, err := SweepRegret([]float64{9, math.NaN(), 6, 6}, 0); err != nil || math.Abs(r-0.5) > 1e-12 {
		t.Errorf("sweep regret %v, %v, want 0.5", r, err)
	}
	for _, bad := range [][]float64{nil, {math.NaN()}} {
		if _, err := SweepRegret(bad, 0); !errors.Is(err, ErrParameter) {
			t.Errorf("sweep %v: %v, want ErrParameter", bad, err)
		}
	}
}
