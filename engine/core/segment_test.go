package core

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// segmentOf makes a segment of n batches of channel 3 from input first on.
func segmentOf(r *rand.Rand, first uint64, n int) (p []byte, s Segment) {
	p = BeginSegment(nil)
	s = Segment{ID: 7, Channel: 3, First: first, Last: first - 1}
	for range n {
		b := sample(r)
		for b.Kind != KindRecords && b.Kind != KindControl {
			b = sample(r)
		}
		b.Channel, b.First = s.Channel, s.Last+1
		s.Last = b.Last()
		p = AppendToSegment(p, b)
	}
	EndSegment(p, s)
	return p, s
}

// TestSegmentComesBack encodes segments again that were decoded.
func TestSegmentComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for n := 1; n < 30; n++ {
		var pool Pool
		p, s := segmentOf(r, 1+r.Uint64N(1000), n)
		batches, err := DecodeSegment(&pool, p, s, false)
		if err != nil || len(batches) != n {
			t.Fatalf("%d batches of %d: %v", len(batches), n, err)
		}
		again := BeginSegment(nil)
		for _, b := range batches {
			again = AppendToSegment(again, b)
		}
		EndSegment(again, s)
		if !bytes.Equal(p, again) {
			t.Fatal("it came back as something else")
		}
	}
}

// TestDamagedSegments flips every byte of a segment, cuts it everywhere, and asks for other ones: each is refused, and no batch
// stays with anybody.
func TestDamagedSegments(t *testing.T) {
	p, s := segmentOf(rand.New(rand.NewPCG(3, 3)), 11, 4)
	var pool Pool
	refused := func(what string, at int, p []byte, s Segment) {
		t.Helper()
		if b, err := DecodeSegment(&pool, p, s, false); !errors.Is(err, ErrBadSegment) || b != nil {
			t.Fatalf("%s %d: %d batches, %v", what, at, len(b), err)
		}
		if len(pool.free) != pool.Made {
			t.Fatalf("%s %d: %d of %d batches came back", what, at, len(pool.free), pool.Made)
		}
	}
	for at := range p {
		q := bytes.Clone(p)
		q[at] ^= 0x10
		refused("byte", at, q, s)
		refused("cut at", at, p[:at], s)
	}
	for at, other := range []Segment{{8, 3, s.First, s.Last}, {7, 4, s.First, s.Last}, {7, 3, s.First + 1, s.Last}, {7, 3, s.First, s.Last + 1}} {
		refused("other", at, p, other)
	}
}

func FuzzDecodeSegment(f *testing.F) {
	p, s := segmentOf(rand.New(rand.NewPCG(4, 4)), 1, 3)
	f.Add(p, s.ID, s.Channel, s.First, s.Last)
	f.Add(p[:len(p)-1], s.ID, s.Channel, s.First, s.Last)
	f.Fuzz(func(t *testing.T, p []byte, id uint64, channel int, first, last uint64) {
		var pool Pool
		want := Segment{ID: id, Channel: channel, First: first, Last: last}
		batches, err := DecodeSegment(&pool, p, want, false)
		if err != nil {
			if len(pool.free) != pool.Made {
				t.Fatal("a refused segment keeps batches")
			}
			return
		}
		again := BeginSegment(nil)
		for _, b := range batches {
			again = AppendToSegment(again, b)
		}
		EndSegment(again, want)
		if _, err := DecodeSegment(&pool, again, want, false); err != nil {
			t.Fatalf("what was decoded does not survive encoding: %v", err)
		}
	})
}
