package sim

import (
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/task"
)

// Answers counts how the outputs of a keyed count differ from the right ones: for each key 1, 2, … n, each once.
type Answers struct {
	Expected, Lost, Duplicated, Wrong, Reordered uint64
}

// oracle checks outputs against answers computed from the feed alone.
type oracle struct {
	expected map[uint64]uint64
	seen     map[uint64][]uint32 // by key: how often each count came
	last     map[[2]uint64]lastSeen
	a        Answers

	// by record of the feed: how often it was answered, its key and its rank among the key's
	answered []uint8
	keys     []uint64
	ranks    []uint32 // nil: of several sources, in no order
	// what a gap may hide
	outages  [][2]int64
	emission *emission
	again    bool // the job was rolled back whole: answers may come twice
	gap      bool
	counts   map[[2]uint64]lastSeen // of a gap: as last, by the counts alone, and how often those went back
	fallen   uint64
}

type lastSeen struct {
	count int64
	epoch uint32
}

func newOracle(p plan) *oracle {
	o := &oracle{expected: map[uint64]uint64{}, seen: map[uint64][]uint32{}, last: map[[2]uint64]lastSeen{}, counts: map[[2]uint64]lastSeen{}}
	var c core.Columns
	p.feed.Fill(&c, 0, 1, 0, int(p.records))
	for _, k := range c.Keys {
		o.expected[k]++
		o.keys, o.ranks = append(o.keys, k), append(o.ranks, uint32(o.expected[k]))
	}
	if p.splits > 1 {
		o.ranks = nil
	}
	o.answered, o.gap = make([]uint8, len(c.Keys)), p.promise == recovery.Gap
	return o
}

func (o *oracle) collect(out task.Output) {
	for i, k := range out.Columns.Keys {
		v := out.Columns.Vals[i]
		n, ok := o.expected[k]
		if !ok || v < 1 || uint64(v) > n {
			o.a.Wrong++
			continue
		}
		if rec := int(out.Columns.Times[i] / recordNS); rec < len(o.keys) && o.keys[rec] == k && (o.ranks == nil || uint32(v) <= o.ranks[rec]) {
			o.answered[rec]++
		} else if o.gap {
			o.a.Wrong++ // counts more than there was
		}
		at := [2]uint64{uint64(out.Channel), k}
		if o.gap { // counts begin anew; of several sources, records come in any order
			if l := o.counts[at]; l.epoch == out.Epoch && v < l.count {
				o.fallen++
			}
			o.counts[at] = lastSeen{v, out.Epoch}
			v = 0
			if o.ranks != nil {
				v = out.Columns.Times[i]
			}
		}
		if o.seen[k] == nil {
			o.seen[k] = make([]uint32, n+1)
		}
		o.seen[k][out.Columns.Vals[i]]++
		// Order is promised within a channel and an epoch; between two sinks there is none.
		if l := o.last[at]; l.epoch == out.Epoch && v < l.count {
			o.a.Reordered++
		}
		o.last[at] = lastSeen{v, out.Epoch}
	}
}

func (o *oracle) answers() Answers {
	a := o.a
	a.Expected, a.Lost, a.Duplicated = 0, 0, 0
	for k, n := range o.expected { // sums: the order does not matter
		a.Expected += n
		seen := o.seen[k]
		for v := uint64(1); v <= n; v++ {
			switch {
			case seen == nil || seen[v] == 0:
				a.Lost++
			case seen[v] > 1:
				a.Duplicated += uint64(seen[v] - 1)
			}
		}
	}
	return a
}

// nothingLost is called when nothing was lost in a run that would have been free to lose something: it has no excuse then.
func (o *oracle) nothingLost() { o.a.Reordered = o.fallen }

// judge says how the answers break the promise, or nothing.
func (o *oracle) judge(p recovery.Promise) string {
	a := o.answers()
	if p == recovery.Gap {
		return o.judgeGap()
	}
	bad := a.Wrong > 0 || a.Reordered > 0
	bad = bad || a.Lost > 0
	if p == recovery.Precise {
		bad = bad || a.Duplicated > 0
	}
	if !bad {
		return ""
	}
	return fmt.Sprintf("safety: promise %s broken: %d expected, %d lost, %d duplicated, %d wrong, %d reordered",
		p, a.Expected, a.Lost, a.Duplicated, a.Wrong, a.Reordered)
}

// judgeGap says how the answers break the promise that nothing is lost but what was under way in an outage, and that no
// answer counts more than there was.
func (o *oracle) judgeGap() string {
	lost, twice := 0, 0
	for i, n := range o.answered {
		switch {
		case n > 1 && !o.again:
			twice++
		case n == 0 && !o.hidden(o.emission.at(i)):
			lost++
		}
	}
	if lost+twice == 0 && o.a.Wrong+o.a.Reordered == 0 {
		return ""
	}
	return fmt.Sprintf("safety: promise gap broken: of %d records %d were lost outside of the outages, %d answered twice; %d answers wrong, %d reordered",
		len(o.answered), lost, twice, o.a.Wrong, o.a.Reordered)
}

func (o *oracle) hidden(atNS int64) bool {
	for _, s := range o.outages {
		if atNS >= s[0] && atNS <= s[1] {
			return true
		}
	}
	return false
}
