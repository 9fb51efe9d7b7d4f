package task

import (
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

// TestLogOfSharedFate wants inputs that wait for a checkpoint to be kept for a receiver on another worker, and not for one
// that is lost with the sender, which goes back to the same checkpoint.
func TestLogOfSharedFate(t *testing.T) {
	var pool core.Pool
	for _, c := range []struct {
		shares bool
		node   int // of the receiver
		kept   bool
	}{{true, 2, true}, {false, 1, true}, {true, 1, false}} {
		o := NewOut(core.Channel{ID: 1, Kind: core.ChanData}, 1, 1)
		o.hold, o.node, o.shares = holdCheckpoint, 1, c.shares
		o.SetReceivers([]int{c.node})
		o.acknowledge(core.Ack{From: c.node, Next: 1, Limit: 100, Resync: true})
		for range 3 {
			o.control(&pool, core.Control{Type: core.CtlTick})
		}
		o.transmit(func(int, *core.Batch) {})
		o.acknowledge(core.Ack{From: c.node, Next: 4, Consumed: 2, Limit: 100})
		if first := o.log[o.head].First; (first == 1) != c.kept {
			t.Fatalf("shares %v, receiver on node %d of a sender on node 1: the log begins with input %d after two were consumed", c.shares, c.node, first)
		}
		o.SetReceivers([]int{2}) // what comes now must be kept
		o.acknowledge(core.Ack{From: 2, Next: 4, Consumed: 3, Limit: 100})
		if c.shares && len(o.log[o.head:]) == 0 {
			t.Fatalf("nothing is kept for a receiver that is on another worker now")
		}
		o.close()
	}
}
