package spec

import (
	"reflect"
	"testing"
	"time"
)

var stormFaults = []FaultInfo{{Name: "kill", Targets: []TargetKind{TargetWorker, TargetTask}}, {Name: "freeze", Targets: []TargetKind{TargetWorker}},
	{Name: "cut", Targets: []TargetKind{TargetLink}}}

func TestAStormIsDrawnFromItsSeed(t *testing.T) {
	s := &Storm{Faults: 20, Kinds: []string{"kill", "freeze", "cut"}, From: time.Second, To: 41 * time.Second, For: 1500 * time.Millisecond}
	a, b, other := s.Draw(7, 3, stormFaults), s.Draw(7, 3, stormFaults), s.Draw(8, 3, stormFaults)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed drew different storms")
	}
	if reflect.DeepEqual(a, other) {
		t.Error("different seeds drew the same storm")
	}
	kinds, end := map[string]int{}, time.Duration(0)
	for i, f := range a {
		kinds[f.Kind]++
		if *f.At < end || *f.At < s.From || *f.At+f.For > s.To {
			t.Errorf("fault %d is from %v on for %v; the one before lasts until %v", i, *f.At, f.For, end)
		}
		end = *f.At + f.For
		isLink := f.Kind == "cut"
		if isLink != (f.Target.Kind == TargetLink) || f.Target.Worker < 1 || f.Target.Worker > 3 || isLink && f.Target.Peer == f.Target.Worker {
			t.Errorf("fault %d: %s of %s", i, f.Kind, f.Target)
		}
		if (f.Kind == "kill") != (f.For == 0) {
			t.Errorf("fault %d: %s lasts %v", i, f.Kind, f.For)
		}
	}
	if len(kinds) != 3 {
		t.Errorf("20 faults of 3 kinds drew only %v", kinds)
	}
}

func TestStormsThatCannotBe(t *testing.T) {
	for _, c := range []unfit{
		{"storm of nothing", []string{"cells.die.storm={faults: 3, kinds: [], to: 5s}"}, []string{"storm.kinds", "name at least one fault"}},
		{"storm of the unknown", []string{"cells.die.storm={faults: 3, kinds: [kil], to: 5s}"}, []string{"storm.kinds[0]", "did you mean kill?"}},
		{"storm before its beginning", []string{"cells.die.storm={faults: 3, kinds: [kill], from: 5s, to: 5s}"}, []string{"storm.to: is 5s", "write a later time"}},
		{"storm that does not last", []string{"cells.die.storm={faults: 3, kinds: [freeze], to: 5s}"}, []string{"storm.for: is 0s", "such as 1s"}},
		{"storm that slows nothing", []string{"cells.die.storm={faults: 3, kinds: [slow], to: 5s, for: 1s}"}, []string{"storm.factor", "such as 4"}},
		{"storm without an end", []string{"cells.die.storm={faults: 3, kinds: [kill]}"}, []string{"storm", "to"}},
	} {
		c.check(t)
	}
}
