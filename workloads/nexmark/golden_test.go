package nexmark

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

const sec = int64(time.Second)

func bid(at float64, auction, bidder uint64, price int64) Input {
	ns := int64(at * 1e9)
	return Input{Event{Kind: KindBid, Time: ns, Bid: Bid{Auction: auction, Bidder: bidder, Price: price}}, ns}
}

func auction(at float64, id, seller, category uint64, reserve int64, expires float64) Input {
	ns := int64(at * 1e9)
	return Input{Event{Kind: KindAuction, Time: ns, Auction: Auction{
		ID: id, Seller: seller, Category: category, Reserve: reserve, Initial: reserve - 1, Expires: int64(expires * 1e9),
	}}, ns}
}

func person(at float64, id uint64, name, city, state string) Input {
	ns := int64(at * 1e9)
	return Input{Event{Kind: KindPerson, Time: ns, Person: Person{ID: id, Name: name, City: city, State: state}}, ns}
}

// story has ties, window edges, bids that come too early, too late and too low.
var story = []Input{
	person(0, 1000, "Ada", "Salem", "OR"),
	person(1, 1001, "Emmy", "Tucson", "AZ"),
	auction(1, 1107, 1000, 10, 50, 9), // 1107 = 9·123
	auction(2, 1108, 1001, 10, 50, 9),
	auction(3, 1109, 1000, 11, 50, 12),
	bid(2, 1107, 1001, 60),
	bid(4, 1107, 1002, 90),
	bid(4.5, 1107, 1003, 90), // a tie that comes later
	bid(9, 1107, 1004, 999),  // at the expiry: too late
	bid(4, 1108, 1001, 49),   // below the reserve
	bid(9.999, 1109, 1001, 70),
	bid(10, 1109, 1001, 999), // the first bid of the second window
	bid(11, 1109, 1002, 999),
	auction(12, 1110, 1001, 10, 10, 30),
	person(20, 1002, "Mary", "Boise", "ID"),
	auction(29.999, 1111, 1002, 10, 10, 40),
	bid(35, 1111, 1001, 100),
}

func TestGoldenAnswersOfAStory(t *testing.T) {
	for query, want := range map[string][]Row{
		"q2": {{1107, 2 * sec, 60, ""}, {1107, 4 * sec, 90, ""}, {1107, 4*sec + sec/2, 90, ""}, {1107, 9 * sec, 999, ""}},
		"q3": {{1107, 0, 1000, "Ada, Salem, OR"}, {1111, 0, 1002, "Mary, Boise, ID"}},
		"q4": {{10, 0, 95, ""}, {11, 0, 999, ""}},
		"q5": {
			{1107, 5 * sec, 3, ""}, {1107, 10 * sec, 4, ""}, {1109, 15 * sec, 3, ""}, {1109, 20 * sec, 2, ""},
			{1111, 40 * sec, 1, ""}, {1111, 45 * sec, 1, ""},
		},
		"q6": {{1000, 9 * sec, 90, "1107"}, {1000, 12 * sec, 544, "1109"}, {1002, 40 * sec, 100, "1111"}},
		"q7": {
			{1107, 10 * sec, 999, "1004"}, {1109, 20 * sec, 999, "1001"}, {1109, 20 * sec, 999, "1002"}, {1111, 40 * sec, 100, "1001"},
		},
		"q8": {{1000, 10 * sec, 0, "Ada"}, {1001, 10 * sec, 0, "Emmy"}, {1002, 30 * sec, 0, "Mary"}},
		"q9": {{1107, 4 * sec, 90, "1002"}, {1109, 10 * sec, 999, "1001"}, {1111, 35 * sec, 100, "1001"}},
		"q11": {
			{1001, 20 * sec, 4, ""}, {1001, 45 * sec, 1, ""}, {1002, 21 * sec, 2, ""}, {1003, 14*sec + sec/2, 1, ""}, {1004, 19 * sec, 1, ""},
		},
		"q12": {
			{1001, 10 * sec, 3, ""}, {1001, 20 * sec, 1, ""}, {1001, 40 * sec, 1, ""}, {1002, 10 * sec, 1, ""}, {1002, 20 * sec, 1, ""},
			{1003, 10 * sec, 1, ""}, {1004, 10 * sec, 1, ""},
		},
	} {
		o := DefaultOptions()
		o.Bound = time.Minute
		got, err := Golden(query, story, o)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Rows, want) || got.Late != 0 {
			t.Errorf("%s: %v (%d late), want %v", query, got.Rows, got.Late, want)
		}
	}
}

func TestSessionsThatTouchStayApart(t *testing.T) {
	in := []Input{bid(0, 1, 7, 1), bid(9.999999999, 1, 7, 1), bid(19.999999999, 1, 7, 1)}
	got, err := Golden("q11", in, DefaultOptions())
	if want := []Row{{7, 20*sec - 1, 2, ""}, {7, 30*sec - 1, 1, ""}}; err != nil || !reflect.DeepEqual(got.Rows, want) {
		t.Errorf("sessions %v, %v; want %v", got.Rows, err, want)
	}
}

func TestLateEventsAreCounted(t *testing.T) {
	// The watermark after the second bid is 10 s: the first window is closed.
	in := []Input{bid(1, 1, 7, 50), bid(13, 1, 7, 60), bid(9.9, 1, 7, 99), bid(10, 1, 7, 70)}
	o := DefaultOptions()
	got, err := Golden("q7", in, o)
	if want := []Row{{1, 10 * sec, 50, "7"}, {1, 20 * sec, 70, "7"}}; err != nil || got.Late != 1 || !reflect.DeepEqual(got.Rows, want) {
		t.Errorf("%v, %d late, %v; want %v and 1 late", got.Rows, got.Late, err, want)
	}
	o.Lateness = 1
	if got, _ = Golden("q7", in, o); got.Late != 0 || got.Rows[0].Val != 99 {
		t.Errorf("with allowed lateness: %v, %d late; want 99 in the first window", got.Rows, got.Late)
	}
}

// TestAnswersDoNotDependOnOrder shuffles events whose lateness is within the
// bound of the watermark.
func TestAnswersDoNotDependOnOrder(t *testing.T) {
	g := New(DefaultConfig(11, 200))
	var c core.Columns
	for i := range uint64(10_000) {
		g.Append(&c, i, int64(i)*sec/200)
	}
	in, err := Inputs(&c)
	if err != nil {
		t.Fatal(err)
	}
	shuffled := append([]Input(nil), in...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(in), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
	o := DefaultOptions()
	for _, q := range Queries() {
		o.Bound = 3 * time.Second
		first, err := Golden(q.Name, in, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Bound = time.Hour
		second, err := Golden(q.Name, shuffled, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(first.Rows) == 0 || first.Late != 0 {
			t.Errorf("%s: %d rows, %d late; want some rows and none late", q.Name, len(first.Rows), first.Late)
		}
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s: other rows in another order (seed 1, 2): %d and %d rows", q.Name, len(first.Rows), len(second.Rows))
		}
	}
}

// TestPublishedCounts are those of the smoke run in Beam's documentation.
func TestPublishedCounts(t *testing.T) {
	var in []Input
	for _, e := range stream(DefaultConfig(1, rate), 100_000) {
		in = append(in, Input{e, e.Time})
	}
	for query, want := range map[string]int{"q0": 100_000, "q1": 92_000, "q13": 92_000} {
		if got, err := Golden(query, in, DefaultOptions()); err != nil || len(got.Rows) != want {
			t.Errorf("%s: %d rows, %v; want %d", query, len(got.Rows), err, want)
		}
	}
	if _, err := Golden("q10", in, DefaultOptions()); !errors.Is(err, ErrQuery) {
		t.Errorf("q10 gives %v, want ErrQuery", err)
	}
}
