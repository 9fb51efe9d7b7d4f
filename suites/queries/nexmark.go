package queries

import (
	"strconv"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/workloads/nexmark"
)

// The layout of NEXMark events: see workloads/nexmark, AppendTo. Which fields there are depends on the kind.
const (
	nexmarkLayout = "kind u8@0, time i64@1, id i64@9, " +
		"name text@17, city text@17+2, state text@17+3, " + // of a person
		"seller i64@17, category i64@25, initial i64@33, reserve i64@41, expires i64@49, " + // of an auction
		"bidder i64@17, price i64@25" // of a bid, whose id is the auction
	isPerson  = "kind == 1"
	isAuction = "kind == 2"
	isBid     = "kind == 3"
)

func nexmarkQueries() []Query {
	q := func(name, doc string, build func(p *pipeline)) Query {
		return Query{Name: name, Workload: "nexmark", Doc: doc, build: build,
			golden: func(records *core.Columns, o Options) ([]Answer, uint64, error) {
				return goldenNEXMark(name, records, o)
			}}
	}
	return []Query{
		q("q0", "map", q0),
		q("q1", "map", q1),
		q("q2", "map with a condition", q2),
		q("q3", "map, incremental join of persons and auctions by seller, map", q3),
		q("q4", "winning bids, map, average by category when the stream ends, map", q4),
		q("q5", "map, sliding count by auction, map, top 1 by window with ties, map", q5),
		q("q6", "winning bids, map, average over the last ten by seller in the order of closing, map", q6),
		q("q7", "map, top 1 by auction and tumbling window with ties, map, top 1 by window with ties, map", q7),
		q("q8", "map, semi join of persons and auctions by tumbling window", q8),
		q("q9", "winning bids (map, interval join of auctions and bids, top 1 by auction when it closes), map", q9),
		q("q11", "map, session count by bidder, map", q11),
		q("q12", "map, tumbling count by bidder over intended times, map", q12),
		q("q13", "map with a side input that is a function of the key", q13),
	}
}

func goldenNEXMark(name string, records *core.Columns, o Options) ([]Answer, uint64, error) {
	in, err := nexmark.Inputs(records)
	if err != nil {
		return nil, 0, err
	}
	a, err := nexmark.Golden(name, in, nexmark.Options{Window: o.Window, Slide: o.Slide, Gap: o.Gap, Bound: o.Bound, Lateness: o.Lateness})
	if err != nil {
		return nil, 0, err
	}
	answers := make([]Answer, len(a.Rows))
	for i, r := range a.Rows {
		answers[i] = Answer(r)
	}
	return answers, a.Late, nil
}

func (p *pipeline) nexmark() { p.source(nexmarkLayout, "time", p.o.Bound) }

func q0(p *pipeline) {
	p.nexmark()
	p.mapping("pass", params{"layout": nexmarkLayout, "row": "time; ''"})
}

func q1(p *pipeline) {
	p.nexmark()
	p.mapping("convert", params{"layout": nexmarkLayout, "where": isBid, "value": "price * 908 / 1000", "row": "time; ''"})
}

func q2(p *pipeline) {
	p.nexmark()
	p.mapping("select", params{"layout": nexmarkLayout, "where": isBid + " && id % 123 == 0", "row": "time; ''"})
}

func q3(p *pipeline) {
	const layout = "kind i64@0, auction i64@8, text text@16"
	p.nexmark()
	p.mapping("select", params{"layout": nexmarkLayout,
		"where": isPerson + " && (state == 'OR' || state == 'ID' || state == 'CA') || " + isAuction + " && category == 10",
		"key":   isPerson + " ? id : seller",
		"row":   "kind; id; " + isPerson + " ? name + ', ' + city + ', ' + state : ''"})
	p.keyed("join", "join", params{"layout": layout, "left": isPerson, "unique": "left", "value": "r.key", "row": "r.auction; l.text"})
	p.mapping("rows", params{"layout": "auction i64@0, text text@8", "key": "auction", "row": "0; text"})
}

// The layout of winning bids; expires comes twice, from the join and from the window.
const winnerLayout = "expires i64@0, seller i64@16, category i64@24, time i64@32, bidder i64@40"

// winners gives the winning bid of each auction when that closes: key auction, value price.
func (p *pipeline) winners() {
	const layout = "kind i64@0, time i64@8, until i64@16, seller i64@24, category i64@32, reserve i64@40, bidder i64@48"
	p.nexmark()
	p.mapping("select", params{"layout": nexmarkLayout, "where": isAuction + " || " + isBid,
		"value": isBid + " ? price : 0",
		// A bid is done with once no auction can come that was open when it was placed.
		"row": "kind; time; " + isAuction + " ? expires : time + 1; seller; category; " + isAuction + " ? reserve : 0; bidder"})
	p.keyed("match", "join", params{"layout": layout, "left": isAuction, "unique": "left", "until-left": "until", "until-right": "until",
		"on":    "r.time >= l.time && r.time < l.until && r.value >= l.reserve",
		"value": "r.value", "row": "l.until; l.seller; l.category; r.time; r.bidder"})
	p.keyed("winner", "top-k", params{"layout": "expires i64@0, time i64@24, bidder i64@32", "end": "expires",
		"order": "-value; time; bidder", "ties": "first"})
}

func q4(p *pipeline) {
	p.winners()
	p.mapping("category", params{"layout": winnerLayout, "key": "category"})
	p.keyed("average", "aggregate", params{"function": "avg"})
	p.mapping("rows", params{"row": "0; ''"})
}

func q5(p *pipeline) {
	p.nexmark()
	p.mapping("bids", params{"layout": nexmarkLayout, "where": isBid, "row": "time"})
	p.timed("count", "sliding", params{"layout": "time i64@0", "time": "time", "size": p.o.Window.String(), "slide": p.o.Slide.String()})
	p.mapping("by-window", params{"layout": "end i64@0", "key": "end", "row": "end; key"})
	p.timed("hottest", "top-k", params{"layout": "end i64@0", "end": "end", "order": "-value"})
	p.mapping("rows", params{"layout": "end i64@0, auction i64@16", "key": "auction", "row": "end; ''"})
}

func q6(p *pipeline) {
	p.winners()
	p.mapping("seller", params{"layout": winnerLayout, "key": "seller", "row": "expires; key"})
	p.keyed("average", "over", params{"layout": "expires i64@0, auction i64@8", "end": "expires", "order": "auction", "n": "10"})
	p.mapping("rows", params{"layout": "expires i64@0, auction i64@8", "row": "expires; text(auction)"})
}

func q7(p *pipeline) {
	p.nexmark()
	p.mapping("bids", params{"layout": nexmarkLayout, "where": isBid, "row": "time; bidder"})
	// First by auction, so that all tasks work on a window.
	p.timed("highest-of-auction", "top-k", params{"layout": "time i64@0", "time": "time", "size": p.o.Window.String(), "order": "-value"})
	p.mapping("by-window", params{"layout": "end i64@0, bidder i64@16", "key": "end", "row": "end; key; bidder"})
	p.timed("highest", "top-k", params{"layout": "end i64@0", "end": "end", "order": "-value"})
	p.mapping("rows", params{"layout": "end i64@0, auction i64@16, bidder i64@24", "key": "auction", "row": "end; text(bidder)"})
}

func q8(p *pipeline) {
	size := strconv.FormatInt(int64(p.o.Window), 10)
	p.nexmark()
	p.mapping("select", params{"layout": nexmarkLayout, "where": isPerson + " || " + isAuction, "key": isPerson + " ? id : seller",
		"row": "kind; time; " + isPerson + " ? name : ''"})
	p.timed("join", "join", params{"layout": "kind i64@0, time i64@8, name text@16", "left": isPerson, "mode": "semi",
		"time": "time", "size": p.o.Window.String(), "value": "0", "row": "l.time - l.time % " + size + " + " + size + "; l.name"})
}

func q9(p *pipeline) {
	p.winners()
	p.mapping("rows", params{"layout": winnerLayout, "row": "time; text(bidder)"})
}

func q11(p *pipeline) {
	p.nexmark()
	p.mapping("bids", params{"layout": nexmarkLayout, "where": isBid, "key": "bidder", "row": "time"})
	p.timed("count", "session", params{"layout": "time i64@0", "time": "time", "gap": p.o.Gap.String()})
	p.mapping("rows", params{"layout": "end i64@0", "row": "end; ''"})
}

func q12(p *pipeline) {
	p.source("", "due", 0)
	p.mapping("bids", params{"layout": nexmarkLayout, "where": isBid, "key": "bidder", "row": "''"})
	p.keyed("count", "tumbling", params{"size": p.o.Window.String()})
	p.mapping("rows", params{"layout": "end i64@0", "row": "end; ''"})
}

func q13(p *pipeline) {
	p.nexmark()
	p.mapping("side-input", params{"layout": nexmarkLayout, "where": isBid, "row": "time; 'side-' + text(mod(mix(mod(id, 10000)), 1000000))"})
}
