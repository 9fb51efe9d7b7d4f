package nexmark

import (
	"encoding/binary"
	"errors"
)

// Kind tells persons, auctions and bids apart.
type Kind byte

// Kinds of events.
const (
	KindPerson Kind = iota + 1
	KindAuction
	KindBid
)

// Event is one event. Only the part that Kind names is set.
type Event struct {
	Kind    Kind
	Time    int64 // event time, ns since the start of the run
	Person  Person
	Auction Auction
	Bid     Bid
	Padding int // bytes that only make the event as big as it should be
}

// Person is somebody who sells and bids.
type Person struct {
	ID                       uint64
	Name, Email, City, State string
}

// Auction is an offer. Prices are in cents.
type Auction struct {
	ID, Seller, Category uint64
	Initial, Reserve     int64
	Expires              int64 // event time, ns
	Item                 string
}

// Bid is a bid of a price in cents.
type Bid struct {
	Auction, Bidder uint64
	Price           int64
}

// Key returns the id of the auction, or of the person.
func (e *Event) Key() uint64 {
	switch e.Kind {
	case KindPerson:
		return e.Person.ID
	case KindAuction:
		return e.Auction.ID
	}
	return e.Bid.Auction
}

// Value returns a bid's price, an auction's initial price, or 0.
func (e *Event) Value() int64 {
	switch e.Kind {
	case KindAuction:
		return e.Auction.Initial
	case KindBid:
		return e.Bid.Price
	}
	return 0
}

// ErrEvent is returned for bytes that are not an encoded event.
var ErrEvent = errors.New("nexmark: not an encoded event")

// The encoding is the kind (1 byte), the time, then the fields of the part in
// their order, numbers as 8 bytes little endian, then texts as a length byte and
// the bytes, then padding to the end.

const headerBytes = 1 + 8

func textBytes(texts ...string) int {
	n := 0
	for _, s := range texts {
		n += 1 + len(s)
	}
	return n
}

// baseSize is the encoded size without padding.
func (e *Event) baseSize() int {
	switch e.Kind {
	case KindPerson:
		p := &e.Person
		return headerBytes + 8 + textBytes(p.Name, p.Email, p.City, p.State)
	case KindAuction:
		return headerBytes + 6*8 + textBytes(e.Auction.Item)
	}
	return headerBytes + 3*8
}

// AppendTo appends the encoded event to b.
func (e *Event) AppendTo(b []byte) []byte {
	b = append(b, byte(e.Kind))
	b = appendNumbers(b, uint64(e.Time))
	switch e.Kind {
	case KindPerson:
		p := &e.Person
		b = appendNumbers(b, p.ID)
		b = appendText(appendText(appendText(appendText(b, p.Name), p.Email), p.City), p.State)
	case KindAuction:
		a := &e.Auction
		b = appendNumbers(b, a.ID, a.Seller, a.Category, uint64(a.Initial), uint64(a.Reserve), uint64(a.Expires))
		b = appendText(b, a.Item)
	default:
		b = appendNumbers(b, e.Bid.Auction, e.Bid.Bidder, uint64(e.Bid.Price))
	}
	for n := e.Padding; n > 0; n -= len(blank) {
		b = append(b, blank[:min(n, len(blank))]...)
	}
	return b
}

var blank [256]byte

func appendNumbers(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func appendText(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

// reader takes fields off the front of an encoded event.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) number() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) text() string {
	if n := r.take(1); n != nil {
		return string(r.take(int(n[0])))
	}
	return ""
}

// Decode reads an encoded event. It returns ErrEvent for anything else.
func Decode(b []byte) (Event, error) {
	r := reader{rest: b}
	var e Event
	if kind := r.take(1); kind != nil {
		e.Kind = Kind(kind[0])
	}
	e.Time = int64(r.number())
	switch e.Kind {
	case KindPerson:
		e.Person = Person{ID: r.number(), Name: r.text(), Email: r.text(), City: r.text(), State: r.text()}
	case KindAuction:
		e.Auction = Auction{
			ID: r.number(), Seller: r.number(), Category: r.number(),
			Initial: int64(r.number()), Reserve: int64(r.number()), Expires: int64(r.number()), Item: r.text(),
		}
	case KindBid:
		e.Bid = Bid{Auction: r.number(), Bidder: r.number(), Price: int64(r.number())}
	default:
		return Event{}, ErrEvent
	}
	if r.bad {
		return Event{}, ErrEvent
	}
	e.Padding = len(r.rest)
	return e, nil
}
