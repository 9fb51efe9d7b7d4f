package queries

import (
	"math"
	"strconv"

	"github.com/weir-bench/weir/workloads/shufflebench"
	"github.com/weir-bench/weir/workloads/ysb"
)

// ysbLayout is the layout of an event: see workloads/ysb, Append.
const ysbLayout = "time i64@0, ad i64@8, type u8@32"

// ysbQuery is the query of the Yahoo Streaming Benchmark: key campaign, time the window's begin, value number of views.
func ysbQuery() Query {
	return Query{Name: "ysb", Workload: "ysb", Doc: "map with a condition, tumbling count by campaign, map", build: func(p *pipeline) {
		p.source(ysbLayout, "time", p.o.Bound)
		p.mapping("views", params{"layout": ysbLayout, "where": "type == " + strconv.Itoa(int(ysb.View)),
			"key": "ad / " + strconv.Itoa(ysb.AdsPerCampaign), "row": "time"})
		p.timed("count", "tumbling", params{"layout": "time i64@0", "time": "time", "size": ysb.Window.String()})
		p.mapping("rows", params{"layout": "begin i64@8", "row": "begin; ''"})
	}}
}

// shuffleQuery is ShuffleBench's with the workload's standard rules.
func shuffleQuery() Query { return Shuffle(shufflebench.DefaultConfig(0)) }

// Shuffle returns ShuffleBench's query: each record goes to the rule that it matches, and every tenth of a rule makes an
// output: key rule, value number of its records so far.
func Shuffle(c shufflebench.Config) Query {
	return Query{Name: "shufflebench", Workload: "shufflebench", Doc: "map with a condition, keyed count that tells every tenth", build: func(p *pipeline) {
		// 53 bits of the key are below the selectivity: whole numbers, so that both sides of an exact bound agree.
		below := uint64(math.Ceil(c.Selectivity * (1 << 53)))
		p.add("in", "source", p.o.Sources, nil)
		p.mapping("match", params{"where": "shift(key, 11) < " + strconv.FormatUint(below, 10),
			"key": "scale(mix(key), " + strconv.FormatUint(c.Rules, 10) + ")", "row": "''"})
		p.keyed("rules", "every", params{"n": strconv.Itoa(shufflebench.OutputEvery)})
		p.ops[len(p.ops)-1].ValueBytes = shufflebench.StateBytes
	}}
}
