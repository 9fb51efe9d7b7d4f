package shufflebench

import (
	"encoding/binary"
	"math/bits"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/workloads/rng"
)

// StateBytes is the size of a rule's state, and OutputEvery how many of its
// records make one output.
const (
	StateBytes  = 32
	OutputEvery = 10
)

// Config is what can be varied. DefaultConfig has the standard values.
type Config struct {
	Seed  uint64
	Rules uint64
	// Selectivity is the share of the records that match a rule, in (0, 1].
	Selectivity float64
	Bytes       int // size of a record, at least 8
}

// DefaultConfig returns the standard values.
func DefaultConfig(seed uint64) Config {
	return Config{Seed: seed, Rules: 1000, Selectivity: 0.2, Bytes: 1024}
}

// Generator makes records: record i is a function of the configuration and i.
// It is immutable and safe for concurrent use.
type Generator struct {
	c     Config
	noise []byte
}

const noiseBytes = 1 << 16

// New returns a generator.
func New(c Config) *Generator {
	g := &Generator{c: c, noise: make([]byte, 0, noiseBytes+c.Bytes)}
	for i := uint64(0); len(g.noise) < noiseBytes+c.Bytes-8; i++ {
		g.noise = binary.LittleEndian.AppendUint64(g.noise, rng.At(c.Seed, i))
	}
	return g
}

// Append appends record i, whose intended time is at (ns), to dst: as key a
// random word, and as payload that word and noise.
func (g *Generator) Append(dst *core.Columns, i uint64, at int64) {
	key := rng.At(rng.Derive(g.c.Seed, 1), i)
	dst.Keys = append(dst.Keys, key)
	dst.Times = append(dst.Times, at)
	if len(dst.Off) == 0 {
		dst.Off = append(dst.Off, uint32(len(dst.Ext)))
	}
	dst.Ext = binary.LittleEndian.AppendUint64(dst.Ext, key)
	from := rng.Mix(key) % noiseBytes
	dst.Ext = append(dst.Ext, g.noise[from:from+uint64(g.c.Bytes-8)]...)
	dst.Off = append(dst.Off, uint32(len(dst.Ext)))
}

// Match returns the rule that a record matches, by its key; ok is false for the
// records that match none. All rules are equally selective, and a record matches
// at most one, which keeps the total selectivity exact.
func (g *Generator) Match(key uint64) (rule uint64, ok bool) {
	if rng.Float(key) >= g.c.Selectivity {
		return 0, false
	}
	rule, _ = bits.Mul64(rng.Mix(key), g.c.Rules)
	return rule, true
}
