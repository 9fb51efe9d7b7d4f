package coord

import (
	"testing"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/task"
)

// TestFenceIsOneMessage says that a worker hears of all that is lost at once. Between two fences it would refuse the order
// of one lost task and take what another made of that one's outputs: then nobody could make those outputs again.
func TestFenceIsOneMessage(t *testing.T) {
	clock := func() int64 { return 0 }
	c, err := New(storeJob(func(j *core.Job) { j.Operators[1].Store = "" }), task.NewEdge(clock, nil, nil), 0, clock)
	if err != nil {
		t.Fatal(err)
	}
	c.e, c.slots, c.places = &Effects{}, []int{1, 2}, make([]core.Place, len(c.graph.Tasks))
	for i := range c.places {
		c.places[i].Task = i
	}
	k := &takeover{epoch: 2, tasks: []*lostTask{
		{id: 0, reaction: recovery.Replay, fenced: map[int]bool{}}, {id: 1, reaction: recovery.Region}, {id: 3, reaction: recovery.Promote, fenced: map[int]bool{}}}}
	c.fence(k)
	for _, node := range []int{1, 2} {
		var fences []core.Msg
		for _, out := range c.e.Msgs {
			if out.Node == node && out.Msg.Type == core.MsgFence {
				fences = append(fences, out.Msg)
			}
		}
		if len(fences) != 1 || len(fences[0].Places) != 2 || fences[0].Places[0].Task != 0 || fences[0].Places[1].Task != 3 {
			t.Errorf("node %d is told %+v, want one fence of tasks 0 and 3", node, fences)
		}
	}
}
