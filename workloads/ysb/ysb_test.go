package ysb

import (
	"math"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

func TestEventsHaveTheirDistribution(t *testing.T) {
	c := DefaultConfig(1)
	c.LateShare = 0.01 // rare ones would need too many events
	g := New(c)
	const n = 100_000
	ads, kinds, late := map[uint64]int{}, [3]int{}, 0
	for i := range uint64(n) {
		at := int64(2*time.Minute) + int64(i)
		e := g.Event(i, at)
		ads[e.Ad]++
		kinds[e.Type]++
		if diff := e.Time - at; diff < -int64(c.Jitter) {
			late++
		} else if diff > int64(c.Jitter) {
			t.Fatalf("event %d is %v early", i, time.Duration(diff))
		}
		if e.Time < at-int64(c.LateBy) {
			t.Fatalf("event %d is late by %v", i, time.Duration(at-e.Time))
		}
	}
	if len(ads) != 1000 || Campaign(999) != 99 {
		t.Errorf("%d ads, last campaign %d; want 1000 and 99", len(ads), Campaign(999))
	}
	for ad, count := range ads {
		if count < 50 || count > 160 {
			t.Errorf("ad %d has %d events, want about 100", ad, count)
		}
	}
	for k, count := range kinds {
		if math.Abs(float64(count)/n-1.0/3) > 0.01 {
			t.Errorf("type %d has share %g, want a third", k, float64(count)/n)
		}
	}
	if math.Abs(float64(late)/n-0.01) > 0.002 {
		t.Errorf("%d of %d events are late, want 1 %%", late, n)
	}
}

func TestRecordsDecodeToTheirEvents(t *testing.T) {
	g := New(DefaultConfig(4))
	var c core.Columns
	for i := range uint64(50) {
		g.Append(&c, i, int64(i))
	}
	for i := range 50 {
		want := g.Event(uint64(i), int64(i))
		got, err := Decode(c.Payload(i))
		if err != nil || got != want || c.Keys[i] != want.Ad || c.Vals[i] != int64(want.Type) {
			t.Fatalf("record %d decodes to %+v, %v; want %+v", i, got, err, want)
		}
	}
	if _, err := Decode(c.Payload(0)[1:]); err == nil {
		t.Error("a cut event was accepted")
	}
}

func TestGoldenCountsViewsByCampaignAndWindow(t *testing.T) {
	g := Golden{}
	w := int64(Window)
	for _, e := range []Event{
		{Time: 0, Ad: 10}, {Time: w - 1, Ad: 19}, {Time: w, Ad: 19}, {Time: 5, Ad: 20}, {Time: 5, Ad: 20, Type: Click},
	} {
		g.Add(e)
	}
	if len(g) != 3 || g[Cell{1, 0}] != 2 || g[Cell{1, w}] != 1 || g[Cell{2, 0}] != 1 {
		t.Errorf("counts %v", g)
	}
}
