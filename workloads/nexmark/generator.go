package nexmark

import (
	"math"
	"math/bits"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/workloads/rng"
)

// Proportions of the events: of each Cycle events, in this order.
const (
	PersonsPerCycle  = 1
	AuctionsPerCycle = 3
	BidsPerCycle     = 46
	Cycle            = PersonsPerCycle + AuctionsPerCycle + BidsPerCycle
)

// Numbers at which ids begin, and the number of categories.
const (
	FirstPerson   = 1000
	FirstAuction  = 1000
	FirstCategory = 10
	Categories    = 5
)

// hotEvery is how many auctions (or persons) come between two hot ones.
const hotEvery = 100

// Config is what can be varied. DefaultConfig has the standard values.
type Config struct {
	Seed uint64
	// Rate is the mean number of events a second, from which the length of
	// auctions follows.
	Rate float64
	// Shares of bids on a hot auction, of bids by a hot bidder, and of auctions
	// by a hot seller.
	HotAuctions, HotBidders, HotSellers float64
	// ActivePeople and InFlight are how many of the newest persons and auctions
	// the others are drawn from.
	ActivePeople, InFlight uint64
	// PersonBytes, AuctionBytes and BidBytes are the mean sizes; sizes are
	// spread evenly within 20 % of them.
	PersonBytes, AuctionBytes, BidBytes int
	// LateShare of the events have an event time that is before their intended
	// time, by up to LateBy.
	LateShare float64
	LateBy    time.Duration
}

// DefaultConfig returns the standard values for a seed and a rate.
func DefaultConfig(seed uint64, rate float64) Config {
	return Config{
		Seed: seed, Rate: rate, HotAuctions: 0.5, HotBidders: 0.75, HotSellers: 0.75,
		ActivePeople: 1000, InFlight: 100, PersonBytes: 200, AuctionBytes: 500, BidBytes: 100,
		LateShare: 0.1, LateBy: 3 * time.Second,
	}
}

// Generator makes events: event i is a function of the configuration, i and its
// intended time. It is immutable and safe for concurrent use.
type Generator struct {
	c Config
	// All texts are made once, so that an event costs no allocation.
	people []Person // with a name and an email only
	items  []string
}

// New returns a generator.
func New(c Config) *Generator {
	g := &Generator{c: c}
	for _, first := range firstNames {
		for _, last := range lastNames {
			g.people = append(g.people, Person{Name: first + " " + last, Email: first + "." + last + "@example.org"})
		}
	}
	for _, adjective := range adjectives {
		for _, item := range items {
			g.items = append(g.items, adjective+" "+item)
		}
	}
	return g
}

// dice deals the random words of one event.
type dice struct{ seed, next uint64 }

func (g *Generator) dice(i uint64) *dice { return &dice{seed: rng.At(g.c.Seed, i)} }

func (d *dice) word() uint64 {
	d.next++
	return rng.At(d.seed, d.next)
}

func (d *dice) below(n uint64) uint64 {
	v, _ := bits.Mul64(d.word(), n)
	return v
}

func (d *dice) chance(p float64) bool { return rng.Float(d.word()) < p }

// price is 10^(6u) · 100 cents: evenly spread in the logarithm from 1 to a
// million dollars.
func (d *dice) price() int64 { return int64(math.Round(math.Pow(10, 6*rng.Float(d.word())) * 100)) }

// newest returns one of the last `window` of n things, evenly.
func (d *dice) newest(n, window uint64) uint64 { return n - 1 - d.below(min(n, window)) }

// Event returns event i, whose intended time is at (ns).
func (g *Generator) Event(i uint64, at int64) Event {
	d := g.dice(i)
	cycle, place := i/Cycle, i%Cycle
	e := Event{Time: at}
	if d.chance(g.c.LateShare) {
		e.Time = max(0, at-1-int64(d.below(uint64(max(1, g.c.LateBy)))))
	}
	persons := cycle + 1 // emitted so far, in all but the first event of a cycle
	switch {
	case place < PersonsPerCycle:
		e.Kind, e.Person = KindPerson, g.person(d, cycle)
		e.Padding = g.padding(d, g.c.PersonBytes, &e)
	case place < PersonsPerCycle+AuctionsPerCycle:
		number := cycle*AuctionsPerCycle + place - PersonsPerCycle
		e.Kind, e.Auction = KindAuction, g.auction(d, number, persons, e.Time)
		e.Padding = g.padding(d, g.c.AuctionBytes, &e)
	default:
		e.Kind, e.Bid = KindBid, g.bid(d, (cycle+1)*AuctionsPerCycle, persons)
		e.Padding = g.padding(d, g.c.BidBytes, &e)
	}
	return e
}

// padding is how many bytes bring an event to a size within 20 % of the mean.
func (g *Generator) padding(d *dice, mean int, e *Event) int {
	spread := mean / 5
	size := mean - spread + int(d.below(uint64(2*spread+1)))
	return max(0, size-e.baseSize())
}

func (g *Generator) person(d *dice, number uint64) Person {
	p, place := pick(d, g.people), pick(d, places[:])
	p.ID, p.City, p.State = FirstPerson+number, place.city, place.state
	return p
}

func (g *Generator) auction(d *dice, number, persons uint64, at int64) Auction {
	a := Auction{ID: FirstAuction + number, Category: FirstCategory + d.below(Categories)}
	a.Initial = d.price()
	a.Reserve = a.Initial + d.price()
	if d.chance(g.c.HotSellers) {
		a.Seller = FirstPerson + (persons-1)/hotEvery*hotEvery
	} else {
		a.Seller = FirstPerson + d.newest(persons, g.c.ActivePeople)
	}
	a.Expires = at + g.auctionLength(d)
	a.Item = pick(d, g.items)
	return a
}

// auctionLength is evenly spread up to twice the time in which InFlight auctions
// are emitted, so that about that many are open at any time.
func (g *Generator) auctionLength(d *dice) int64 {
	seconds := float64(g.c.InFlight) * Cycle / AuctionsPerCycle / g.c.Rate
	longest := uint64(math.Min(2*seconds*1e9, math.MaxInt64/4))
	return int64(time.Millisecond) + int64(d.below(max(1, longest)))
}

func (g *Generator) bid(d *dice, auctions, persons uint64) Bid {
	b := Bid{Price: d.price()}
	if d.chance(g.c.HotAuctions) {
		b.Auction = FirstAuction + (auctions-1)/hotEvery*hotEvery
	} else {
		b.Auction = FirstAuction + d.newest(auctions, g.c.InFlight)
	}
	if d.chance(g.c.HotBidders) {
		// One after the hot seller, so that they differ, unless that person
		// has not been emitted yet.
		b.Bidder = FirstPerson + min((persons-1)/hotEvery*hotEvery+1, persons-1)
	} else {
		b.Bidder = FirstPerson + d.newest(persons, g.c.ActivePeople)
	}
	return b
}

// Append appends event i, whose intended time is at (ns), to all columns of dst:
// as key the id of the auction (of the person, for a person), as value the price
// of a bid, the initial price of an auction or 0, and as payload the encoded
// event.
func (g *Generator) Append(dst *core.Columns, i uint64, at int64) {
	e := g.Event(i, at)
	dst.Keys = append(dst.Keys, e.Key())
	dst.Times = append(dst.Times, at)
	dst.Vals = append(dst.Vals, e.Value())
	if len(dst.Off) == 0 {
		dst.Off = append(dst.Off, uint32(len(dst.Ext)))
	}
	dst.Ext = e.AppendTo(dst.Ext)
	dst.Off = append(dst.Off, uint32(len(dst.Ext)))
}

func pick[T any](d *dice, list []T) T { return list[d.below(uint64(len(list)))] }
