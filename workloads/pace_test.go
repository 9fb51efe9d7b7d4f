package workloads

import (
	"math"
	"testing"
	"time"
)

// drive calls Next every tick of a run, but not during [stall, stall+length),
// and returns the peak number of records sent in any 100 ms, divided by what
// the schedule has in it.
func drive(t *testing.T, w Stream, policy CatchUp, run, tick, stall, length time.Duration) (peak float64, p *Pacer) {
	t.Helper()
	p = NewPacer(policy, w)
	windows := map[time.Duration]float64{}
	next := uint64(0)
	for now := time.Duration(0); now < run; now += tick {
		if now >= stall && now < stall+length {
			continue
		}
		from, skip, send := p.Next(now, 0)
		if from != next+skip {
			t.Fatalf("at %v: sends from %d, want %d", now, from, next+skip)
		}
		next = from + send
		scheduled, emitted, skipped, pending := p.Counts(now)
		if scheduled != emitted+skipped+pending || scheduled != w.Due(now) {
			t.Fatalf("at %v: scheduled %d, emitted %d, skipped %d, pending %d", now, scheduled, emitted, skipped, pending)
		}
		windows[now/(100*time.Millisecond)] += float64(send)
	}
	for at, sent := range windows {
		begin := at * 100 * time.Millisecond
		peak = max(peak, sent/float64(w.Scheduled(begin+100*time.Millisecond)-w.Scheduled(begin)))
	}
	return peak, p
}

func TestCatchUpPoliciesObeyTheirBound(t *testing.T) {
	w := mustOpen(t, Spec{Keys: 10, Rate: 1000})
	const run, tick = 60 * time.Second, time.Millisecond
	peak, p := drive(t, w, CatchUp{}, run, tick, 20*time.Second, 10*time.Second)
	if _, emitted, skipped, _ := p.Counts(run - tick); peak < 99 || emitted != 60_000 || skipped != 0 {
		t.Errorf("burst: peak %.1f times the schedule, emitted %d, skipped %d", peak, emitted, skipped)
	}
	peak, p = drive(t, w, CatchUp{Policy: CatchUpLimit, Factor: 2}, run, tick, 20*time.Second, 10*time.Second)
	if _, emitted, skipped, _ := p.Counts(run - tick); peak > 2.25 || emitted != 60_000 || skipped != 0 {
		t.Errorf("limit 2: peak %.2f times the schedule, emitted %d, skipped %d; want at most 2.25, all, none", peak, emitted, skipped)
	}
	peak, p = drive(t, w, CatchUp{Policy: CatchUpSkip, After: 100 * time.Millisecond}, run, tick, 20*time.Second, 10*time.Second)
	if _, emitted, skipped, _ := p.Counts(run - tick); peak > 2.1 || emitted+skipped != 60_000 || math.Abs(float64(skipped)-9900) > 2 {
		t.Errorf("skip: peak %.2f times the schedule, emitted %d, skipped %d; want about 9900 skipped", peak, emitted, skipped)
	}
}

// TestLimitDoesNotDelayWhatIsOnTime polls without a stall: every record goes at
// the first poll after its time, at any rate and burstiness.
func TestLimitDoesNotDelayWhatIsOnTime(t *testing.T) {
	for name, spec := range map[string]Spec{
		"slow":  {Keys: 10, Rate: 0.5},
		"fast":  {Keys: 10, Rate: 100_000},
		"burst": {Keys: 10, Rate: 1000, Arrivals: Arrivals{Kind: ArriveSquare, High: 10 * time.Millisecond, Period: time.Second, Spacing: "poisson"}},
	} {
		w := mustOpen(t, spec)
		p := NewPacer(CatchUp{Policy: CatchUpLimit, Factor: 1}, w)
		for now := time.Duration(0); now < 5*time.Second; now += 3 * time.Millisecond {
			p.Next(now, 0)
			if _, _, _, pending := p.Counts(now); pending > 0 {
				t.Fatalf("%s: at %v %d records are held back though nothing stalled", name, now, pending)
			}
		}
	}
}

func TestNextObeysItsBound(t *testing.T) {
	p := NewPacer(CatchUp{}, mustOpen(t, Spec{Keys: 10, Rate: 1000}))
	for want := uint64(0); want < 3000; want += 100 {
		if from, _, send := p.Next(3*time.Second, 100); from != want || send != 100 {
			t.Fatalf("Next sends [%d, %d), want 100 from %d", from, from+send, want)
		}
	}
}
