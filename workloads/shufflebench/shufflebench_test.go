package shufflebench

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

func TestRecordsMatchRulesAsOftenAsNamed(t *testing.T) {
	g := New(DefaultConfig(1))
	const n = 100_000
	rules, matched := map[uint64]int{}, 0
	var c core.Columns
	for i := range uint64(n) {
		c.Reset()
		g.Append(&c, i, int64(i))
		if len(c.Payload(0)) != 1024 || binary.LittleEndian.Uint64(c.Payload(0)) != c.Keys[0] {
			t.Fatalf("record %d has %d bytes and key %d in front", i, len(c.Payload(0)), binary.LittleEndian.Uint64(c.Payload(0)))
		}
		if rule, ok := g.Match(c.Keys[0]); ok {
			rules[rule]++
			matched++
		}
	}
	if math.Abs(float64(matched)/n-0.2) > 0.005 || len(rules) != 1000 {
		t.Errorf("%d of %d records match %d rules; want a fifth and 1000", matched, n, len(rules))
	}
	for rule, count := range rules {
		if count > 60 {
			t.Errorf("rule %d matches %d records, want about 20", rule, count)
		}
	}
}
