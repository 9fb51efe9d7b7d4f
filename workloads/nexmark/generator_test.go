package nexmark

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

const rate = 10_000

// stream returns the first n events at an even rate.
func stream(c Config, n int) []Event {
	g := New(c)
	events := make([]Event, n)
	for i := range events {
		events[i] = g.Event(uint64(i), int64(i)*int64(time.Second)/rate)
	}
	return events
}

func TestProportionsAreExact(t *testing.T) {
	for _, c := range [][4]int{{100_000, 2000, 6000, 92_000}, {50, 1, 3, 46}, {7, 1, 3, 3}, {0, 0, 0, 0}} {
		var kinds [4]int
		for _, e := range stream(DefaultConfig(1, rate), c[0]) {
			kinds[e.Kind]++
		}
		if kinds[KindPerson] != c[1] || kinds[KindAuction] != c[2] || kinds[KindBid] != c[3] {
			t.Errorf("%d events: %d persons, %d auctions, %d bids; want %v", c[0], kinds[KindPerson], kinds[KindAuction], kinds[KindBid], c[1:])
		}
	}
}

// TestIDsWereEmittedBefore holds for every event that names a person or an
// auction; ids are dense from their first number.
func TestIDsWereEmittedBefore(t *testing.T) {
	for seed := range uint64(5) {
		persons, auctions := uint64(0), uint64(0)
		for i, e := range stream(DefaultConfig(seed, rate), 60_000) {
			person, auction := uint64(FirstPerson), uint64(FirstAuction)
			switch e.Kind {
			case KindPerson:
				if e.Person.ID != FirstPerson+persons {
					t.Fatalf("seed %d: event %d is person %d, want %d", seed, i, e.Person.ID, FirstPerson+persons)
				}
				persons++
				continue
			case KindAuction:
				if e.Auction.ID != FirstAuction+auctions {
					t.Fatalf("seed %d: event %d is auction %d, want %d", seed, i, e.Auction.ID, FirstAuction+auctions)
				}
				auctions++
				person = e.Auction.Seller
			case KindBid:
				person, auction = e.Bid.Bidder, e.Bid.Auction
			}
			if person < FirstPerson || person >= FirstPerson+persons || auction < FirstAuction || auction >= FirstAuction+auctions {
				t.Fatalf("seed %d: event %d names person %d and auction %d of %d and %d emitted before", seed, i, person, auction, persons, auctions)
			}
		}
	}
}

func TestHotSharesSizesAndLateness(t *testing.T) {
	var n, size [4]float64
	hotAuction, hotBidder, hotSeller, late := 0.0, 0.0, 0.0, 0.0
	persons, auctions := uint64(0), uint64(0)
	c := DefaultConfig(3, rate)
	for i, e := range stream(c, 200_000) {
		at := int64(i) * int64(time.Second) / rate
		n[e.Kind]++
		size[e.Kind] += float64(len(e.AppendTo(nil)))
		if e.Time < at {
			late++
		}
		if e.Time > at || e.Time < at-int64(c.LateBy) {
			t.Fatalf("event %d at %d has event time %d", i, at, e.Time)
		}
		switch e.Kind {
		case KindPerson:
			persons++
		case KindAuction:
			auctions++
			if e.Auction.Seller == FirstPerson+(persons-1)/100*100 {
				hotSeller++
			}
			if e.Auction.Expires <= e.Time || e.Auction.Reserve <= e.Auction.Initial {
				t.Fatalf("auction %+v", e.Auction)
			}
		case KindBid:
			if e.Bid.Auction == FirstAuction+(auctions-1)/100*100 {
				hotAuction++
			}
			if e.Bid.Bidder == FirstPerson+min((persons-1)/100*100+1, persons-1) {
				hotBidder++
			}
			if e.Bid.Price < 100 || e.Bid.Price > 100_000_000 {
				t.Fatalf("price %d cents", e.Bid.Price)
			}
		}
	}
	for _, c := range []struct {
		name      string
		got, want float64
		tolerance float64
	}{
		// A hot one is also met by chance, at most once in 100 or 1,000.
		{"bids on a hot auction", hotAuction / n[KindBid], 0.5, 0.02},
		{"bids by a hot bidder", hotBidder / n[KindBid], 0.75, 0.02},
		{"auctions by a hot seller", hotSeller / n[KindAuction], 0.75, 0.02},
		{"late events", late / 200_000, 0.1, 0.005},
		{"bytes a person", size[KindPerson] / n[KindPerson], 200, 3},
		{"bytes an auction", size[KindAuction] / n[KindAuction], 500, 5},
		{"bytes a bid", size[KindBid] / n[KindBid], 100, 1},
	} {
		if math.Abs(c.got-c.want) > c.tolerance {
			t.Errorf("%s: %g, want %g ± %g", c.name, c.got, c.want, c.tolerance)
		}
	}
}

func TestSameSeedSameStream(t *testing.T) {
	a, b := stream(DefaultConfig(7, rate), 500), stream(DefaultConfig(7, rate), 500)
	other := stream(DefaultConfig(8, rate), 500)
	if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, other) {
		t.Error("the same seed gives other events, or another seed the same")
	}
}

func TestEncodingRoundTrip(t *testing.T) {
	for i, e := range stream(DefaultConfig(2, rate), 300) {
		b := e.AppendTo(nil)
		got, err := Decode(b)
		if err != nil || got != e {
			t.Fatalf("event %d: decoded %+v, %v; want %+v", i, got, err, e)
		}
		for cut := range len(b) - e.Padding {
			if _, err := Decode(b[:cut]); err == nil {
				t.Fatalf("event %d cut to %d of %d bytes was accepted", i, cut, len(b))
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, e := range stream(DefaultConfig(2, rate), 6) {
		f.Add(e.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := Decode(b); err == nil && len(e.AppendTo(nil)) != len(b) {
			t.Errorf("%x decodes to %+v of another length", b, e)
		}
	})
}

func TestAppendAgreesWithEvent(t *testing.T) {
	g := New(DefaultConfig(2, rate))
	var c core.Columns
	for i := range uint64(60) {
		g.Append(&c, i, int64(i))
	}
	for i := range 60 {
		e := g.Event(uint64(i), int64(i))
		if c.Keys[i] != e.Key() || c.Times[i] != int64(i) || c.Vals[i] != e.Value() || !bytes.Equal(c.Payload(i), e.AppendTo(nil)) {
			t.Fatalf("record %d differs from its event %+v", i, e)
		}
	}
}
