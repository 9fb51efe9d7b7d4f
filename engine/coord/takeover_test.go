package coord

import (
	"errors"
	"testing"
	"time"

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

// TestWhatIsBeingWrittenIsNotGivenUp says that a checkpoint whose manifest is being written survives the loss of a worker, and
// that the copies of lost tasks wait until it is known what they begin from. Given up, it would be complete on disk all the
// same; once tasks went back to the one before, a rollback of the whole job would take it, and what it commits was undone.
func TestWhatIsBeingWrittenIsNotGivenUp(t *testing.T) {
	for _, failed := range []error{nil, errors.New("the disk is full")} {
		clock := func() int64 { return 1 }
		c, err := New(storeJob(func(j *core.Job) {
			j.Operators[1].Store, j.Checkpoint = "", time.Second
			for i := range j.Operators {
				j.Operators[i].Recovery, j.Operators[i].Scope = core.RecoveryCheckpoint, core.ScopeRegion
			}
		}), task.NewEdge(clock, nil, nil), 0, clock)
		if err != nil {
			t.Fatal(err)
		}
		c.e, c.slots, c.places = &Effects{}, []int{1, 2}, make([]core.Place, len(c.graph.Tasks))
		for i := range c.places {
			c.places[i] = core.Place{Task: i, Node: 1, Standby: -1, Epoch: 1}
		}
		if err := c.Edge.Deploy(&core.Msg{Type: core.MsgDeploy, Epoch: 1, Job: &c.job, Places: c.places, Routes: c.routes}); err != nil {
			t.Fatal(err)
		}
		k := &c.checkpoints
		k.last, k.done, k.pending = 2, &checkpoint{id: 1}, &checkpoint{id: 2}
		k.lost()
		if k.pending != nil {
			t.Error("a checkpoint that still needs the lost worker is not given up")
		}
		k.pending = &checkpoint{id: 2, completing: true}
		k.lost()
		k.tick(int64(time.Hour))
		if k.pending == nil {
			t.Fatal("a checkpoint that is being written is given up")
		}
		c.takeover = &takeover{epoch: 2, tasks: []*lostTask{{id: 0, reaction: recovery.Region, slot: 0}}}
		c.deployCopies()
		if c.takeover.deployed {
			t.Error("copies begin while it is not known from where")
		}
		c.CheckpointDurable(2, failed, c.e)
		want := uint64(2)
		if failed != nil {
			want = 1
		}
		if k.pending != nil || k.done.id != want || !c.takeover.deployed {
			t.Errorf("written with error %v: pending %v, newest %d, want %d, deployed %v", failed, k.pending, k.done.id, want, c.takeover.deployed)
		}
		for _, m := range c.e.Msgs {
			if m.Msg.Type == core.MsgDeploy && m.Msg.Tasks[0].Restore != want {
				t.Errorf("a copy begins at checkpoint %d, want %d", m.Msg.Tasks[0].Restore, want)
			}
		}
	}
}
