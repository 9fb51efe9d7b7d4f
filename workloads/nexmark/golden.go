package nexmark

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// Input is an event with its intended time (ns), in record order.
type Input struct {
	Event
	At int64
}

// Row is one row of an answer. What its fields hold is in the documentation of
// each query.
type Row struct {
	Key  uint64
	Time int64 // ns; of windows the end, which is exclusive
	Val  int64
	Text string
}

// Answer is all rows of a query, sorted by key, time, value and text.
type Answer struct {
	Rows []Row
	// Late is how often an event came too late for a window and was left out of
	// it.
	Late uint64
}

// Options are the times of the windows, in event time.
//
// After each event, in record order, the watermark is the highest event time so
// far less Bound. An event is left out of a window, and counted as late, if the
// window's end plus Lateness is at or before the watermark. With Bound at least
// the generator's LateBy nothing is late, and no answer depends on the order of
// the events; Q12, which goes by intended times, never does.
type Options struct {
	Window, Slide   time.Duration // of Q5; Q7, Q8 and Q12 have windows of length Window
	Gap             time.Duration // of Q11's sessions
	Bound, Lateness time.Duration
}

// DefaultOptions returns windows of 10 s, a slide of 5 s, a gap of 10 s, and a
// bound of 3 s.
func DefaultOptions() Options {
	return Options{Window: 10 * time.Second, Slide: 5 * time.Second, Gap: 10 * time.Second, Bound: 3 * time.Second}
}

// Query is one of the benchmark's queries with its golden evaluation.
type Query struct {
	Name string
	// Doc says what it asks and what the fields of its rows hold.
	Doc  string
	eval func(in []Input, o Options, a *Answer)
}

// ErrQuery is returned for a query that does not exist.
var ErrQuery = errors.New("nexmark: no such query")

// Queries returns all queries in order.
func Queries() []Query {
	return []Query{
		{"q0", "Pass-through: each event, with its key, event time and value.", q0},
		{"q1", "Currency conversion: each bid; key auction, event time, value ⌊price·0.908⌋.", q1},
		{"q2", "Selection: bids on auctions divisible by 123; key auction, event time, value price.", q2},
		{"q3", "Local items: auctions of category 10 whose seller lives in OR, ID or CA; key auction, value seller, text \"name, city, state\".", q3},
		{"q4", "Average winning price a category at the end of the stream; key category, value ⌊average⌋.", q4},
		{"q5", "Hot items: the auctions with the most bids in each sliding window, all of them on a tie; key auction, window end, value number of bids.", q5},
		{"q6", "Average winning price of a seller's last ten closed auctions, whenever one closes with a winner; key seller, time of closing, value ⌊average⌋, text the auction.", q6},
		{"q7", "Highest bids of each tumbling window, all of them on a tie; key auction, window end, value price, text bidder.", q7},
		{"q8", "New users who open an auction in the tumbling window in which they appear; key person, window end, text name.", q8},
		{"q9", "Winning bids; key auction, time of the bid, value price, text bidder.", q9},
		{"q11", "Bids of a bidder by session; key bidder, session end (last bid plus gap), value number of bids.", q11},
		{"q12", "Bids of a bidder by tumbling window of processing time, for which the intended time stands; key bidder, window end, value number of bids.", q12},
		{"q13", "Bounded side input: each bid with the side value of its auction; key auction, event time, value price, text side value.", q13},
	}
}

// Golden evaluates a query over events in record order, in one thread and with
// plain maps and slices. It returns ErrQuery, wrapped with the name, for an
// unknown query.
func Golden(query string, in []Input, o Options) (Answer, error) {
	for _, q := range Queries() {
		if q.Name != query {
			continue
		}
		var a Answer
		q.eval(in, o, &a)
		slices.SortFunc(a.Rows, func(x, y Row) int {
			return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Time, y.Time), cmp.Compare(x.Val, y.Val), cmp.Compare(x.Text, y.Text))
		})
		return a, nil
	}
	return Answer{}, fmt.Errorf("evaluate %q: %w", query, ErrQuery)
}

func (a *Answer) add(key uint64, at, val int64, text string) {
	a.Rows = append(a.Rows, Row{key, at, val, text})
}

// clock is the watermark.
type clock struct {
	o         Options
	highest   int64
	watermark int64
}

func newClock(o Options) *clock {
	return &clock{o: o, highest: math.MinInt64, watermark: math.MinInt64}
}

// late tells whether a window with that end is closed for good.
func (c *clock) late(end int64) bool {
	return c.watermark != math.MinInt64 && end+int64(c.o.Lateness) <= c.watermark
}

func (c *clock) observe(at int64) {
	if at > c.highest {
		c.highest, c.watermark = at, at-int64(c.o.Bound)
	}
}

// ends returns the ends of the windows of a length that contain a time and begin
// at multiples of slide, earliest first. Windows may begin before 0.
func ends(at int64, length, slide time.Duration) []int64 {
	var out []int64
	last := at - at%int64(slide) // where the latest window begins; at >= 0
	for begin := last; begin > at-int64(length); begin -= int64(slide) {
		out = append(out, begin+int64(length))
	}
	slices.Reverse(out)
	return out
}

// inWindows calls use for each event of a kind and window that takes it, and
// counts those that come too late.
func inWindows(in []Input, o Options, length, slide time.Duration, a *Answer, kinds []Kind, use func(e *Event, end int64)) {
	c := newClock(o)
	for i := range in {
		e := &in[i].Event
		if slices.Contains(kinds, e.Kind) {
			for _, end := range ends(e.Time, length, slide) {
				if c.late(end) {
					a.Late++
				} else {
					use(e, end)
				}
			}
		}
		c.observe(e.Time)
	}
}

func bids(in []Input, use func(e *Input)) {
	for i := range in {
		if in[i].Kind == KindBid {
			use(&in[i])
		}
	}
}

// Inputs decodes the records of a NEXMark stream, for Golden.
func Inputs(c *core.Columns) ([]Input, error) {
	in := make([]Input, c.Len())
	for i := range in {
		e, err := Decode(c.Payload(i))
		if err != nil {
			return nil, fmt.Errorf("decode record %d: %w", i, err)
		}
		in[i] = Input{e, c.Times[i]}
	}
	return in, nil
}
