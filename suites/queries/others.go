package queries

import (
	"fmt"
	"math"
	"strconv"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/workloads/shufflebench"
	"github.com/weir-bench/weir/workloads/ysb"
)

// ysbLayout is the layout of an event: see workloads/ysb, Append.
const ysbLayout = "time i64@0, ad i64@8, type u8@32"

// ysbQuery is the query of the Yahoo Streaming Benchmark: key campaign, time the window's begin, value number of views.
func ysbQuery() Query {
	return Query{Name: "ysb", Workload: "ysb", Doc: "map with a condition, tumbling count by campaign, map", golden: goldenYSB, build: func(p *pipeline) {
		p.source(ysbLayout, "time", p.o.Bound)
		p.mapping("views", params{"layout": ysbLayout, "where": "type == " + strconv.Itoa(int(ysb.View)),
			"key": "ad / " + strconv.Itoa(ysb.AdsPerCampaign), "row": "time"})
		p.timed("count", "tumbling", params{"layout": "time i64@0", "time": "time", "size": ysb.Window.String()})
		p.mapping("rows", params{"layout": "begin i64@8", "row": "begin; ''"})
	}}
}

// goldenYSB leaves out what is late, by a watermark that moves as that of one source does.
func goldenYSB(records *core.Columns, o Options) (_ []Answer, late uint64, _ error) {
	golden := ysb.Golden{}
	step, highest, watermark := int64(o.step(o.Bound)), int64(math.MinInt64), int64(math.MinInt64)
	for i := range records.Keys {
		e, err := ysb.Decode(records.Payload(i))
		if err != nil {
			return nil, 0, fmt.Errorf("decode record %d: %w", i, err)
		}
		end := e.Time - e.Time%int64(ysb.Window) + int64(ysb.Window)
		switch {
		case end+int64(o.Lateness) > watermark:
			golden.Add(e)
		case e.Type == ysb.View:
			late++
		}
		if e.Time > highest {
			highest = e.Time
			// Before the first window ends it makes no difference which way what is below 0 is rounded.
			watermark = (highest - int64(o.Bound)) / step * step
		}
	}
	var answers []Answer
	for cell, n := range golden { // Golden sorts them
		answers = append(answers, Answer{Key: cell.Campaign, Time: cell.WindowStart, Val: int64(n)})
	}
	return answers, late, nil
}

func goldenShuffle(c shufflebench.Config, records *core.Columns) []Answer {
	g, count := shufflebench.New(c), map[uint64]int64{}
	var answers []Answer
	for _, key := range records.Keys {
		if rule, ok := g.Match(key); ok {
			if count[rule]++; count[rule]%shufflebench.OutputEvery == 0 {
				answers = append(answers, Answer{Key: rule, Val: count[rule]})
			}
		}
	}
	return answers
}

// shuffleQuery is ShuffleBench's with the workload's standard rules.
func shuffleQuery() Query { return Shuffle(shufflebench.DefaultConfig(0)) }

// Shuffle returns ShuffleBench's query: each record goes to the rule that it matches, and every tenth of a rule makes an
// output: key rule, value number of its records so far.
func Shuffle(c shufflebench.Config) Query {
	golden := func(records *core.Columns, _ Options) ([]Answer, uint64, error) {
		return goldenShuffle(c, records), 0, nil
	}
	return Query{Name: "shufflebench", Workload: "shufflebench", Doc: "map with a condition, keyed count that tells every tenth", golden: golden, build: func(p *pipeline) {
		// 53 bits of the key are below the selectivity: whole numbers, so that both sides of an exact bound agree.
		below := uint64(math.Ceil(c.Selectivity * (1 << 53)))
		p.add("in", "source", p.o.Sources, nil)
		p.mapping("match", params{"where": "shift(key, 11) < " + strconv.FormatUint(below, 10),
			"key": "scale(mix(key), " + strconv.FormatUint(c.Rules, 10) + ")", "row": "''"})
		p.keyed("rules", "every", params{"n": strconv.Itoa(shufflebench.OutputEvery)})
		p.ops[len(p.ops)-1].ValueBytes = shufflebench.StateBytes
	}}
}
