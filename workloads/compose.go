package workloads

import (
	"math/bits"
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/workloads/arrivals"
	"github.com/weir-bench/weir/workloads/keys"
	"github.com/weir-bench/weir/workloads/measure"
	"github.com/weir-bench/weir/workloads/rng"
)

// composed is a stream put together from independent parts.
type composed struct {
	arrivals arrivals.Process
	dist     keys.Dist
	ids      keys.IDs
	value    Value
	payload  *payload // nil: none
	seed     uint64
	// limit is the number of records if the stream ends, else 0.
	limit uint64
	// values are recorded values, read in a loop; nil: none.
	values []int64
}

// extend returns s longer by n, without clearing what it adds.
func extend[T any](s []T, n int) (all, added []T) {
	all = slices.Grow(s, n)[:len(s)+n]
	return all, all[len(s):]
}

func (c *composed) Fill(dst *core.Columns, from uint64, n int) { c.FillStrided(dst, from, 1, n) }

// fillChunk keeps the columns of a step in the first-level cache.
const fillChunk = 1024

func (c *composed) FillStrided(dst *core.Columns, from, stride uint64, n int) {
	for n > 0 {
		m := min(n, fillChunk)
		var ranks []uint64
		var times []int64
		dst.Keys, ranks = extend(dst.Keys, m)
		dst.Times, times = extend(dst.Times, m)
		c.arrivals.Fill(times, from, stride)
		c.dist.Fill(ranks, times, from, stride)
		c.ids.Map(ranks)
		c.fillValues(dst, from, stride, m)
		if c.payload != nil {
			c.payload.fill(dst, from, stride, m)
		}
		from += uint64(m) * stride
		n -= m
	}
}

func (c *composed) fillValues(dst *core.Columns, from, stride uint64, n int) {
	if c.values == nil && (c.value.Kind == "" || c.value.Kind == "none") {
		return
	}
	var vals []int64
	dst.Vals, vals = extend(dst.Vals, n)
	if c.values != nil {
		for j := range vals {
			vals[j] = c.values[(from+uint64(j)*stride)%uint64(len(c.values))]
		}
		return
	}
	switch seed := rng.Derive(c.seed, labelValue); c.value.Kind {
	case "one":
		for j := range vals {
			vals[j] = 1
		}
	case "index":
		for j := range vals {
			vals[j] = int64(from + uint64(j)*stride)
		}
	case "uniform":
		for j := range vals {
			v, _ := bits.Mul64(rng.At(seed, from+uint64(j)*stride), uint64(c.value.Max))
			vals[j] = int64(v)
		}
	case "flag":
		for j := range vals {
			vals[j] = 0
			if rng.Float(rng.At(seed, from+uint64(j)*stride)) < c.value.Share {
				vals[j] = 1
			}
		}
	}
}

func (c *composed) Due(t time.Duration) uint64 { return c.ended(before(c.arrivals, t)) }

func (c *composed) Scheduled(d time.Duration) uint64 { return c.ended(c.arrivals.Before(int64(d))) }

func (c *composed) ended(n uint64) uint64 {
	if c.limit > 0 {
		return min(n, c.limit)
	}
	return n
}

func (c *composed) Clone() Stream {
	d := *c
	d.arrivals = c.arrivals.Clone()
	return &d
}

// payload gives each record bytes of a random size, cut from a fixed block of
// noise so that they cost one copy.
type payload struct {
	size  measure.Dist
	sizes []uint32 // recorded sizes, read in a loop, instead of size
	seed  uint64
	noise []byte
}

const noiseBytes = 1 << 16

func newPayload(size measure.Dist, seed uint64) *payload {
	p := &payload{size: size, seed: seed, noise: make([]byte, noiseBytes)}
	for i := range p.noise {
		p.noise[i] = byte(rng.At(seed, uint64(i/8)) >> (8 * (i % 8)))
	}
	return p
}

func (p *payload) fill(dst *core.Columns, from, stride uint64, n int) {
	if len(dst.Off) == 0 {
		dst.Off = append(dst.Off, uint32(len(dst.Ext)))
	}
	for range n {
		word := rng.At(p.seed, from)
		var size int
		if p.sizes != nil {
			size = int(p.sizes[from%uint64(len(p.sizes))])
		} else {
			size = int(measure.Draw(p.size, p.seed, from))
		}
		at := int(rng.Mix(word) % noiseBytes)
		for size > 0 {
			part := p.noise[at:min(len(p.noise), at+size)]
			dst.Ext = append(dst.Ext, part...)
			size -= len(part)
			at = 0
		}
		dst.Off = append(dst.Off, uint32(len(dst.Ext)))
		from += stride
	}
}
