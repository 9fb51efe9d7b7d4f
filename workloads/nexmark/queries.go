package nexmark

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-bench/weir/workloads/rng"
)

func q0(in []Input, _ Options, a *Answer) {
	for i := range in {
		a.add(in[i].Key(), in[i].Time, in[i].Value(), "")
	}
}

// Dollars per euro, in thousandths, of query 1.
const euroMille = 908

// Euro converts a price in dollar cents to euro cents, rounded down.
func Euro(price int64) int64 { return price * euroMille / 1000 }

func q1(in []Input, _ Options, a *Answer) {
	bids(in, func(e *Input) { a.add(e.Bid.Auction, e.Time, Euro(e.Bid.Price), "") })
}

// Selected tells whether query 2 keeps an auction.
func Selected(auction uint64) bool { return auction%123 == 0 }

func q2(in []Input, _ Options, a *Answer) {
	bids(in, func(e *Input) {
		if Selected(e.Bid.Auction) {
			a.add(e.Bid.Auction, e.Time, e.Bid.Price, "")
		}
	})
}

// Local tells whether query 3 keeps a person of a state.
func Local(state string) bool { return state == "OR" || state == "ID" || state == "CA" }

func q3(in []Input, _ Options, a *Answer) {
	persons := map[uint64]*Person{}
	for i := range in {
		if p := &in[i].Person; in[i].Kind == KindPerson && Local(p.State) {
			persons[p.ID] = p
		}
	}
	for i := range in {
		if x := &in[i].Auction; in[i].Kind == KindAuction && x.Category == FirstCategory {
			if p := persons[x.Seller]; p != nil {
				a.add(x.ID, 0, int64(x.Seller), p.Name+", "+p.City+", "+p.State)
			}
		}
	}
}

// winner is a closed auction with its winning bid.
type winner struct {
	auction *Auction
	bid     *Event
}

// winners returns the auctions that have a winning bid, in the order in which
// they close (ties by id). The winning bid is the highest of those placed from
// the auction's event time on and before it expires, at or above the reserve;
// of equal ones the earliest, then that of the lower bidder.
func winners(in []Input) []winner {
	opened := map[uint64]*Event{}
	for i := range in {
		if in[i].Kind == KindAuction {
			opened[in[i].Auction.ID] = &in[i].Event
		}
	}
	best := map[uint64]*Event{}
	bids(in, func(b *Input) {
		x := opened[b.Bid.Auction]
		if x == nil || b.Time < x.Time || b.Time >= x.Auction.Expires || b.Bid.Price < x.Auction.Reserve {
			return
		}
		old := best[b.Bid.Auction]
		if old == nil || cmp.Or(
			cmp.Compare(b.Bid.Price, old.Bid.Price), cmp.Compare(old.Time, b.Time), cmp.Compare(old.Bid.Bidder, b.Bid.Bidder),
		) > 0 {
			best[b.Bid.Auction] = &b.Event
		}
	})
	var out []winner
	for id, b := range best { // the order is made below
		out = append(out, winner{&opened[id].Auction, b})
	}
	slices.SortFunc(out, func(x, y winner) int {
		return cmp.Or(cmp.Compare(x.auction.Expires, y.auction.Expires), cmp.Compare(x.auction.ID, y.auction.ID))
	})
	return out
}

func q4(in []Input, _ Options, a *Answer) {
	var sum, n [Categories]int64
	for _, w := range winners(in) {
		sum[w.auction.Category-FirstCategory] += w.bid.Bid.Price
		n[w.auction.Category-FirstCategory]++
	}
	for c := range sum {
		if n[c] > 0 {
			a.add(FirstCategory+uint64(c), 0, sum[c]/n[c], "")
		}
	}
}

func q5(in []Input, o Options, a *Answer) {
	counts := map[int64]map[uint64]int64{}
	inWindows(in, o, o.Window, o.Slide, a, []Kind{KindBid}, func(e *Event, end int64) {
		if counts[end] == nil {
			counts[end] = map[uint64]int64{}
		}
		counts[end][e.Bid.Auction]++
	})
	for end, byAuction := range counts { // rows are sorted in the end
		most := int64(0)
		for _, n := range byAuction {
			most = max(most, n)
		}
		for auction, n := range byAuction {
			if n == most {
				a.add(auction, end, n, "")
			}
		}
	}
}

// lastSales is how many of a seller's sales query 6 averages.
const lastSales = 10

func q6(in []Input, _ Options, a *Answer) {
	sales := map[uint64][]int64{}
	for _, w := range winners(in) {
		seller := w.auction.Seller
		sales[seller] = append(sales[seller], w.bid.Bid.Price)
		last := sales[seller][max(0, len(sales[seller])-lastSales):]
		sum := int64(0)
		for _, price := range last {
			sum += price
		}
		a.add(seller, w.auction.Expires, sum/int64(len(last)), strconv.FormatUint(w.auction.ID, 10))
	}
}

func q7(in []Input, o Options, a *Answer) {
	best := map[int64][]*Event{}
	inWindows(in, o, o.Window, o.Window, a, []Kind{KindBid}, func(e *Event, end int64) {
		if old := best[end]; old == nil || e.Bid.Price > old[0].Bid.Price {
			best[end] = []*Event{e}
		} else if e.Bid.Price == old[0].Bid.Price {
			best[end] = append(old, e)
		}
	})
	for end, highest := range best { // rows are sorted in the end
		for _, e := range highest {
			a.add(e.Bid.Auction, end, e.Bid.Price, strconv.FormatUint(e.Bid.Bidder, 10))
		}
	}
}

// inWindow is something of a person in a window.
type inWindow struct {
	person uint64
	end    int64
}

func q8(in []Input, o Options, a *Answer) {
	appeared, opened := map[inWindow]string{}, map[inWindow]bool{}
	inWindows(in, o, o.Window, o.Window, a, []Kind{KindPerson, KindAuction}, func(e *Event, end int64) {
		if e.Kind == KindPerson {
			appeared[inWindow{e.Person.ID, end}] = e.Person.Name
		} else {
			opened[inWindow{e.Auction.Seller, end}] = true
		}
	})
	for at, name := range appeared { // rows are sorted in the end
		if opened[at] {
			a.add(at.person, at.end, 0, name)
		}
	}
}

func q9(in []Input, _ Options, a *Answer) {
	for _, w := range winners(in) {
		a.add(w.auction.ID, w.bid.Time, w.bid.Bid.Price, strconv.FormatUint(w.bid.Bid.Bidder, 10))
	}
}

func q11(in []Input, o Options, a *Answer) {
	times := map[uint64][]int64{} // of bids in sessions that are open, or were when the bidder was last looked at
	c := newClock(o)
	for i := range in {
		e := &in[i].Event
		if e.Kind == KindBid {
			// A bid alone is a session that ends one gap after it.
			if c.late(e.Time + int64(o.Gap)) {
				a.Late++
			} else {
				// A session that is closed takes no more bids.
				open := sessions(times[e.Bid.Bidder], o, c.late, e.Bid.Bidder, a)
				times[e.Bid.Bidder] = append(open, e.Time)
			}
		}
		c.observe(e.Time)
	}
	for bidder, list := range times { // rows are sorted in the end
		sessions(list, o, func(int64) bool { return true }, bidder, a)
	}
}

// sessions adds the sessions of a bidder's times that are closed, and returns the other times.
func sessions(times []int64, o Options, closed func(end int64) bool, bidder uint64, a *Answer) (open []int64) {
	slices.Sort(times)
	first := 0
	for k, at := range times {
		// Sessions that only touch stay apart.
		if k+1 < len(times) && times[k+1]-at < int64(o.Gap) {
			continue
		}
		if end := at + int64(o.Gap); closed(end) {
			a.add(bidder, end, int64(k+1-first), "")
		} else {
			open = append(open, times[first:k+1]...)
		}
		first = k + 1
	}
	return open
}

func q12(in []Input, o Options, a *Answer) {
	counts := map[inWindow]int64{}
	bids(in, func(e *Input) {
		counts[inWindow{e.Bid.Bidder, ends(e.At, o.Window, o.Window)[0]}]++
	})
	for at, n := range counts { // rows are sorted in the end
		a.add(at.person, at.end, n, "")
	}
}

// sideKeys is the number of keys of query 13's side input.
const sideKeys = 10_000

// SideValue is query 13's side input: the value that belongs to an auction.
func SideValue(auction uint64) string {
	return "side-" + strconv.FormatUint(rng.Mix(auction%sideKeys)%1_000_000, 10)
}

func q13(in []Input, _ Options, a *Answer) {
	bids(in, func(e *Input) { a.add(e.Bid.Auction, e.Time, e.Bid.Price, SideValue(e.Bid.Auction)) })
}
