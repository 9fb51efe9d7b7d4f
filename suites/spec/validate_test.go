package spec

import (
	"strings"
	"testing"
)

// unfit changes one thing in a good suite, for which the refusal should name it
// and what would be right.
type unfit struct {
	name string
	sets []string
	want []string
}

func (c unfit) check(t *testing.T) {
	t.Run(c.name, func(t *testing.T) {
		_, err := parse(t, good, c.sets...)
		wantErr(t, err, c.want...)
	})
}

func TestStrategiesThatDoNotFit(t *testing.T) {
	const twoCounts = "job.operators=[{name: source, kind: source}, {name: a, kind: count, inputs: [source], parallelism: 2}, {name: b, kind: count, inputs: [a], parallelism: 2}, {name: sink, kind: sink, inputs: [b]}]"
	for _, c := range []unfit{
		{"unknown migration", []string{"cells.move.migration.strategy=stop-restrat"}, []string{"cells.move.migration.strategy", "unknown migration strategy", "did you mean stop-restart?", "async-rounds"}},
		{"unknown recovery", []string{"cells.die.recovery={strategy: foo}"}, []string{"unknown recovery strategy", "known: none, checkpoint, active"}},
		{"unknown kind", []string{"job.operators.count.kind=cuont"}, []string{"job.operators.count.kind", "did you mean count?"}},
		{"unknown planner", []string{"cells.move.migration.planner=greddy"}, []string{"unknown planner", "did you mean greedy?"}},
		{"unknown fault", []string{"cells.die.faults[0].kind=kil"}, []string{"cells.die.faults[0].kind", "did you mean kill?"}},
		{"unknown backend", []string{"job.operators.count.state.backend=heep"}, []string{"unknown state backend", "heap"}},
		{"unknown order", []string{"order=sorted"}, []string{`unknown order "sorted"`, "interleaved, random, blocked"}},
		{"too many key groups", []string{"job.operators.count.keyGroups=32769"}, []string{"job.operators.count.keyGroups: is 32769", "at most 32768"}},
		{"more tasks than groups", []string{"job.operators.count.parallelism=100"}, []string{"100 tasks share 64 key groups"}},
		{"groups of a source", []string{"job.operators.source.keyGroups=8"}, []string{"source.keyGroups", "no keyed state"}},
		{"sink field elsewhere", []string{"job.operators.count.sink=eager"}, []string{"count.sink", "is no sink"}},
		{"transactional without checkpoints", []string{"job.operators.sink.sink=transactional", "checkpoint.interval=0", "cells.die.recovery=active"}, []string{"sink.sink", "transactional", "checkpoint.interval"}},
		{"checkpoint without interval", []string{"checkpoint.interval=0s"}, []string{"cells.die.recovery", "there are none", "checkpoint.interval"}},
		{"standby on one worker", []string{"job.workers=1", "cells.die.recovery=active"}, []string{"cells.die.recovery", "standby on another worker", "job.workers"}},
		{"migration on one worker", []string{"job.workers=1"}, []string{"cells.move.migration", "one worker only"}},
		{"migration of one task", []string{"job.operators.count.parallelism=1"}, []string{"one task only", "parallelism of count"}},
		{"migration of a stateless operator", []string{"cells.move.migration.operator=sink"}, []string{"sink is not keyed", "count"}},
		{"migration of nobody", []string{"cells.move.migration.operator=cuont"}, []string{`no operator "cuont"`, "did you mean count?"}},
		{"migration of which?", []string{twoCounts}, []string{"several keyed operators", "a, b"}},
		{"migration without state", []string{"job.operators.count.kind=forward", "job.operators.count={name: count, kind: forward, inputs: [source]}"}, []string{"no keyed operator"}},
		{"no rounds", []string{"cells.move.migration={strategy: async-rounds, rounds: 0}"}, []string{"rounds", "0 rounds cannot be"}},
		{"more rounds than groups", []string{"cells.move.migration={strategy: async-rounds, rounds: 65}"}, []string{"65 rounds for at most 64"}},
		{"more rounds than moving groups", []string{"cells.move.migration={strategy: async-rounds, rounds: 5, count: 4}"}, []string{"5 rounds for at most 4"}},
		{"rounds where none are", []string{"cells.move.migration.rounds=3"}, []string{"does not split"}},
		{"more groups than there are", []string{"cells.move.migration.count=65"}, []string{"count has 64 key groups"}},
		{"nothing to move", []string{"cells.move.migration.share=0"}, []string{"nothing would move"}},
		{"negative theta", []string{"cells.move.migration.theta=-0.1"}, []string{"theta: is -0.1", "0 to 10"}},
		{"share above 1", []string{"cells.move.migration.share=1.5"}, []string{"share: is 1.5", "0 to 1"}},
		{"move to itself", []string{"cells.move.migration.from=1", "cells.move.migration.to=1"}, []string{"two different workers"}},
		{"move to nowhere", []string{"cells.move.migration.to=3"}, []string{"there is no worker 3"}},
		{"plan without planner", []string{"cells.move.migration.groups=plan"}, []string{"no planner is named", "greedy, mixed"}},
		{"planner without plan", []string{"cells.move.migration={strategy: stop-restart, planner: greedy, groups: hottest}"}, []string{"has no effect"}},
		{"unknown trigger", []string{"cells.move.migration.trigger=detekt"}, []string{`unknown trigger "detekt"`, "did you mean detect?"}},
		{"detector that is not asked", []string{"cells.move.migration.detect={theta: 0.3}"}, []string{"migration.detect", "has no effect", "trigger: detect"}},
		{"detector and a time", []string{"cells.move.migration={strategy: stop-restart, trigger: detect, at: 1s}"}, []string{"migration.at", "the detector decides"}},
		{"detector and a way back", []string{"cells.move.migration={strategy: stop-restart, trigger: detect, back: 1s}"}, []string{"migration.back", "the detector decides"}},
		{"detector of any difference", []string{"cells.move.migration={strategy: stop-restart, trigger: detect, detect: {theta: 0}}"}, []string{"detect.theta: is 0", "above 0"}},
		{"detector below zero", []string{"cells.move.migration={strategy: stop-restart, trigger: detect, detect: {theta: -1}}"}, []string{"detect.theta: is -1", "0 to 10"}},
		{"detector that always looks", []string{"cells.move.migration={strategy: stop-restart, trigger: detect, detect: {window: 0s}}"}, []string{"detect.window: is 0s", "at least 1ms"}},
		{"detector without memory", []string{"cells.move.migration={strategy: stop-restart, trigger: detect, detect: {smoothing: 0s}}"}, []string{"detect.smoothing: is 0s", "at least 1ms"}},
		{"detector that never ends", []string{"cells.move.migration={strategy: stop-restart, trigger: detect, detect: {hold: 2h}}"}, []string{"detect.hold: is 2h0m0s", "at most 1h"}},
		{"detector of one task", []string{"job.operators.count.parallelism=1", "cells.move.migration={strategy: none, trigger: detect}"}, []string{"one task only", "no skew to detect"}},
		{"peak without rounds", []string{"cells.move.migration.peak=20ms"}, []string{"migration.peak", "stop-restart does not split"}},
		{"peak and rounds", []string{"cells.move.migration={strategy: async-rounds, rounds: 4, peak: 20ms}"}, []string{"migration.peak", "rounds is 4", "rounds: auto"}},
		{"peak and wait", []string{"cells.move.migration={strategy: async-rounds, peak: 20ms, wait: all}"}, []string{"migration.wait", "the peak decides"}},
		{"peak that no rounds can meet", []string{"cells.move.migration={strategy: async-rounds, peak: 10ms, bandwidth: 1MiB}"}, []string{"migration.peak: is 10ms", "16KiB of one key alone take 15.625ms", "no number of rounds"}},
		{"rounds that cannot be chosen", []string{"cells.move.migration={strategy: async-rounds}", "timing.warmup=100ms"}, []string{"timing.warmup: is 100ms", "rounds: auto", "at least 400ms"}},
		{"negative peak", []string{"cells.move.migration={strategy: async-rounds, peak: -1ms}"}, []string{"migration.peak", "negative"}},
		{"external state in the heap", []string{"cells.move.migration.strategy=externalise"}, []string{"state outside the workers", "remote"}},
		{"override of nobody", []string{"cells.die.recovery={strategy: active, overrides: [{operator: cuont, strategy: none}]}"}, []string{"did you mean count?"}},
		{"override of no task", []string{"cells.die.recovery={strategy: active, overrides: [{operator: count, task: 2, strategy: none}]}"}, []string{"has no task 2", "0 to 1"}},
		{"override twice", []string{"cells.die.recovery={strategy: active, overrides: [{operator: count, strategy: none}, {operator: count, strategy: active}]}"}, []string{"second override for count"}},
		{"fewer standbys than needed", []string{"cells.die.recovery={strategy: active, standbys: 1}"}, []string{"standbys: is 1, but 4 tasks need one"}},
		{"more standbys than slots", []string{"job.slots=2", "cells.die.recovery=active"}, []string{"4 tasks and 4 standbys do not fit on 2 workers of 2 slots", "at least 4"}},
		{"more tasks than slots", []string{"job.slots=1"}, []string{"4 tasks do not fit"}},
		{"faults without strategy", []string{"cells.die={name: die, faults: [{kind: kill, target: worker 1}]}"}, []string{"faults but no recovery strategy", "none, checkpoint, active"}},
		{"lease below heartbeat", []string{"detection={heartbeat: 100ms, lease: 50ms}"}, []string{"detection.lease", "heartbeat of 100ms"}},
	} {
		c.check(t)
	}
}

func TestSuitesThatCannotBeRun(t *testing.T) {
	for _, c := range []unfit{
		{"fault at nobody", []string{"cells.die.faults[0].target=worker 0"}, []string{"numbered from 1"}},
		{"fault at no task", []string{"cells.die.faults[0].target=task count/2"}, []string{"has no task 2"}},
		{"fault that cannot hit", []string{"cells.die.faults[0]={kind: cut, target: worker 1}"}, []string{"cut cannot hit a worker", "link"}},
		{"fault target unreadable", []string{"cells.die.faults[0].target=2"}, []string{"not a target", "worker 2"}},
		{"link with one end", []string{"cells.die.faults[0]={kind: cut, target: link 1-1}"}, []string{"two different ends"}},
		{"time and event", []string{"cells.die.faults[0]={kind: kill, target: worker 1, at: 1s, on: barrier-injected 3}"}, []string{"both at and on"}},
		{"unknown event", []string{"cells.die.faults[0]={kind: kill, target: worker 1, on: barier-injected 3}"}, []string{"did you mean barrier-injected?"}},
		{"event 0", []string{"cells.die.faults[0]={kind: kill, target: worker 1, on: barrier-injected 0}"}, []string{"counts from 1"}},
		{"slower by less than 1", []string{"cells.die.faults[0]={kind: slow, target: worker 1, factor: 0.5}"}, []string{"factor: is 0.5", "1 to 1000"}},
		{"placement on no worker", []string{"job.operators.count.placement=[1, 3]"}, []string{"count.placement", "no worker 3"}},
		{"placement of too few", []string{"job.operators.count.placement=[1]"}, []string{"1 workers for 2 tasks"}},
		{"service without mean", []string{"job.operators.count.service={mode: busy}"}, []string{"mode but no mean"}},
		{"mean without mode", []string{"job.operators.count.service={mean: 5us}"}, []string{"mean but no mode"}},
		{"no keys", []string{"workload.keys=0"}, []string{"workload.keys: is 0"}},
		{"no rate", []string{"workload={kind: book}"}, []string{"workload: has no rate"}},
		{"shares above 1", []string{"workload.shares=[0.5, 0.6]"}, []string{"add up to 1.1"}},
		{"share negative", []string{"workload.shares=[-0.5]"}, []string{"workload.shares[0]: is -0.5"}},
		{"interval 0", []string{"timing.interval=0"}, []string{"timing.interval: is 0s"}},
		{"steady below an interval", []string{"timing.steady=10ms"}, []string{"timing.steady", "shorter than one measuring interval"}},
		{"hold above after", []string{"timing.hold=3s"}, []string{"could never settle"}},
		{"deadline too near", []string{"deadline=5s"}, []string{"deadline: is 5s, but the 4 trials take about"}},
		{"no cells", []string{"cells=[]"}, []string{"has no cell"}},
		{"two cells of a name", []string{"cells.die.name=move"}, []string{`second cell named "move"`}},
		{"odd cell name", []string{"cells.die.name=<b>"}, []string{"not a name of a cell"}},
		{"odd suite name", []string{"name=../up"}, []string{"not a name of a suite"}},
		{"objective on no cell", []string{"objectives=[dye.recovery_ms < 1]"}, []string{`no cell "dye"`, "did you mean die?"}},
		{"objective unreadable", []string{"objectives=[die.recovery_ms]"}, []string{"objectives[0]", "no comparison"}},
	} {
		c.check(t)
	}
}

func TestGraphs(t *testing.T) {
	for _, c := range []struct {
		name, ops string
		want      []string // none: accepted
	}{
		{"diamond", "[{name: s, kind: source}, {name: a, kind: forward, inputs: [s]}, {name: b, kind: filter, inputs: [s]}, {name: c, kind: count, parallelism: 2, inputs: [a, b]}, {name: o, kind: sink, inputs: [c]}]", nil},
		{"two ways out", "[{name: s, kind: source}, {name: c, kind: count, parallelism: 2, inputs: [s]}, {name: o, kind: sink, inputs: [c]}, {name: p, kind: sink, inputs: [s]}]", nil},
		{"cycle", "[{name: s, kind: source}, {name: a, kind: forward, inputs: [s, b]}, {name: b, kind: forward, inputs: [a]}, {name: o, kind: sink, inputs: [b]}]", []string{"cycle: a → b → a"}},
		{"own input", "[{name: s, kind: source}, {name: a, kind: forward, inputs: [s, a]}, {name: o, kind: sink, inputs: [a]}]", []string{"cycle: a → a"}},
		{"unknown input", "[{name: src, kind: source}, {name: o, kind: sink, inputs: [scr]}]", []string{`no operator "scr"`, "did you mean src?"}},
		{"input twice", "[{name: s, kind: source}, {name: o, kind: sink, inputs: [s, s]}]", []string{"a second time"}},
		{"no source", "[{name: o, kind: sink, inputs: [o]}]", []string{"no source"}},
		{"no sink", "[{name: s, kind: source}]", []string{"no sink"}},
		{"no inputs", "[{name: s, kind: source}, {name: o, kind: sink}]", []string{"kind sink needs inputs"}},
		{"source with inputs", "[{name: s, kind: source}, {name: r, kind: source, inputs: [s]}, {name: o, kind: sink, inputs: [r]}]", []string{"a source has no inputs"}},
		{"after a sink", "[{name: s, kind: source}, {name: o, kind: sink, inputs: [s]}, {name: p, kind: sink, inputs: [o]}]", []string{"o is a sink, which has no outputs"}},
		{"dead end", "[{name: s, kind: source}, {name: a, kind: forward, inputs: [s]}, {name: o, kind: sink, inputs: [s]}]", []string{"nothing that a produces reaches a sink"}},
		{"same name", "[{name: s, kind: source}, {name: s, kind: source}, {name: o, kind: sink, inputs: [s]}]", []string{`second operator named "s"`}},
		{"odd name", "[{name: 's s', kind: source}, {name: o, kind: sink, inputs: ['s s']}]", []string{"not a name of an operator"}},
		{"no name", "[{kind: source}]", []string{"has no name"}},
		{"none", "[]", []string{"no source"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(t, good, "job.operators="+c.ops, "cells=[{name: plain}]", "objectives=[]")
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantErr(t, err, c.want...)
		})
	}
}

// A field that was refused must not lead to more complaints that only follow
// from it.
func TestNoEchoes(t *testing.T) {
	for old, repl := range map[string]string{"kind: count": "kind: cuont", "interval: 1s": "interval: x", "rate: 50000/s": "rate: x", "after: 2s": "after: x",
		"strategy: stop-restart}\n    migration: {strategy: stop-restart": "strategy: stop-restart}\n    migration: {strategy: x", "recovery: checkpoint": "recovery: x"} {
		if !strings.Contains(good, old) {
			t.Fatalf("the good suite has no %q", old)
		}
		_, err := parse(t, strings.Replace(good, old, repl, 1))
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: want one line, got\n%v", repl, err)
		}
	}
}

func TestWorkloadHook(t *testing.T) {
	k := testKnown()
	k.ValidateWorkload = func(w Workload) []Problem {
		if w.Exponent == 0.99 {
			return []Problem{{"exponent", "is not allowed here", "write 1"}}
		}
		return nil
	}
	_, err := Parse("t.yaml", []byte(good), Options{Known: k})
	if err == nil || err.Error() != "t.yaml:20:13: workload.exponent: is not allowed here; write 1" {
		t.Errorf("got %v", err)
	}
}
