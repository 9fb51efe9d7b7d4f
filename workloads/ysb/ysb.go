package ysb

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/workloads/rng"
)

// AdsPerCampaign is the number of ads of a campaign.
const AdsPerCampaign = 10

// Window is the length of the query's windows.
const Window = 10 * time.Second

// Type is what a user did with an ad.
type Type byte

// Types of events, each equally often.
const (
	View Type = iota
	Click
	Purchase
	types
)

// Event is one event.
type Event struct {
	Time     int64 // event time, ns since the start of the run
	Ad       uint64
	User     uint64
	Page     uint64
	Type     Type
	AdFormat byte // banner, modal, …: 0 to 4
}

// Campaign returns the campaign of an ad.
func Campaign(ad uint64) uint64 { return ad / AdsPerCampaign }

// Config is what can be varied. DefaultConfig has the standard values.
type Config struct {
	Seed      uint64
	Ads       uint64        // ten a campaign
	Jitter    time.Duration // event times are within this of the intended time
	LateShare float64       // of the events are late
	LateBy    time.Duration // by up to this
}

// DefaultConfig returns the standard values, 100 campaigns among them.
func DefaultConfig(seed uint64) Config {
	return Config{Seed: seed, Ads: 100 * AdsPerCampaign, Jitter: 50 * time.Millisecond, LateShare: 1e-5, LateBy: time.Minute}
}

// Generator makes events: event i is a function of the configuration, i and its
// intended time. It is immutable and safe for concurrent use.
type Generator struct{ c Config }

// New returns a generator.
func New(c Config) *Generator { return &Generator{c} }

// Event returns event i, whose intended time is at (ns).
func (g *Generator) Event(i uint64, at int64) Event {
	seed := rng.At(g.c.Seed, i)
	below := func(label, n uint64) uint64 {
		v, _ := bits.Mul64(rng.At(seed, label), n)
		return v
	}
	e := Event{
		Ad: below(0, g.c.Ads), User: below(1, 100_000), Page: below(2, 10_000),
		Type: Type(below(3, uint64(types))), AdFormat: byte(below(4, 5)),
	}
	e.Time = at - int64(g.c.Jitter) + int64(below(5, uint64(2*g.c.Jitter+1)))
	if rng.Float(rng.At(seed, 6)) < g.c.LateShare {
		e.Time = at - int64(below(7, uint64(g.c.LateBy+1)))
	}
	e.Time = max(0, e.Time)
	return e
}

// eventBytes is the size of an encoded event: 4 numbers and 2 bytes.
const eventBytes = 4*8 + 2

// Append appends event i, whose intended time is at (ns), to all columns of dst:
// as key the ad, as value the type, and as payload the encoded event.
func (g *Generator) Append(dst *core.Columns, i uint64, at int64) {
	e := g.Event(i, at)
	dst.Keys = append(dst.Keys, e.Ad)
	dst.Times = append(dst.Times, at)
	dst.Vals = append(dst.Vals, int64(e.Type))
	if len(dst.Off) == 0 {
		dst.Off = append(dst.Off, uint32(len(dst.Ext)))
	}
	for _, n := range [...]uint64{uint64(e.Time), e.Ad, e.User, e.Page} {
		dst.Ext = binary.LittleEndian.AppendUint64(dst.Ext, n)
	}
	dst.Ext = append(dst.Ext, byte(e.Type), e.AdFormat)
	dst.Off = append(dst.Off, uint32(len(dst.Ext)))
}

// ErrEvent is returned for bytes that are not an encoded event.
var ErrEvent = errors.New("ysb: not an encoded event")

// Decode reads an encoded event.
func Decode(b []byte) (Event, error) {
	if len(b) != eventBytes || Type(b[32]) >= types {
		return Event{}, ErrEvent
	}
	n := func(k int) uint64 { return binary.LittleEndian.Uint64(b[8*k:]) }
	return Event{Time: int64(n(0)), Ad: n(1), User: n(2), Page: n(3), Type: Type(b[32]), AdFormat: b[33]}, nil
}

// Cell is a campaign in a window.
type Cell struct {
	Campaign    uint64
	WindowStart int64 // event time, ns
}

// Golden returns the answer of the query over the events added: the number of
// views a campaign and window. No event is too late for it.
type Golden map[Cell]uint64

// Add counts an event.
func (g Golden) Add(e Event) {
	if e.Type == View {
		g[Cell{Campaign(e.Ad), e.Time - e.Time%int64(Window)}]++
	}
}
