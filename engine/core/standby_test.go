package core

import (
	"strings"
	"testing"
)

func TestPlacesOfStandbys(t *testing.T) {
	kinds := func(kind string) (KindInfo, bool) {
		return KindInfo{Source: kind == "source", Sink: kind == "sink", Keyed: kind == "count"}, true
	}
	for _, c := range []struct {
		place, standbys []int
		want            []int
		err             string
	}{
		{nil, nil, []int{1, 2, 0}, ""},
		{[]int{2, 2, 0}, nil, []int{0, 0, 1}, ""},
		{nil, []int{2, 0, 1}, []int{2, 0, 1}, ""},
		{[]int{2, 2, 2}, []int{0, 0, 1}, []int{0, 0, 1}, ""},
		{nil, []int{1}, nil, "1 places of standbys for 3 tasks"},
		{nil, []int{1, 2, 3}, nil, "place 3 of a standby, want 0 to 2"},
		{nil, []int{1, 1, 0}, nil, "the standby of task 1 is on the worker of its primary"},
		{[]int{0, 0, 0}, []int{1, 2, 0}, nil, "the standby of task 2 is on the worker of its primary"},
	} {
		job := Job{Workers: 3, Operators: []OperatorSpec{{Name: "in", Kind: "source", Parallelism: 1},
			{Name: "n", Kind: "count", Inputs: []string{"in"}, Parallelism: 3, Groups: 8, Place: c.place, StandbyPlace: c.standbys},
			{Name: "out", Kind: "sink", Inputs: []string{"n"}, Parallelism: 1}}}
		g, err := BuildGraph(job, kinds)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v %v: %v, want %q", c.place, c.standbys, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range g.OpTasks[1] {
			if got := g.StandbySlot(id); got != c.want[i] {
				t.Errorf("%v %v: the standby of task %d is on %d, want %d", c.place, c.standbys, i, got, c.want[i])
			}
		}
	}
}
