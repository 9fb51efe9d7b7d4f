package coord

import (
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/recovery"
)

// promotion is a take-over by standbys: fence the lost tasks everywhere, gather how far and in which order their outputs
// came, then promote.
type promotion struct {
	epoch   uint32
	tasks   []int // lost primaries
	waiting map[int]map[int]bool
	order   map[int]*core.OrderLog
	got     map[int]map[int]uint64
}

// promotable says whether every task whose primary was on the node may be taken over by its standby.
func (c *Coordinator) promotable(node int) bool {
	if c.promotion != nil && c.touches(node) {
		return false
	}
	for _, p := range c.places {
		if p.Node != node {
			continue
		}
		strat, _ := recovery.Lookup(c.job.Operators[c.graph.Tasks[p.Task].Operator].Recovery)
		if strat.React(p.Standby >= 0) != recovery.Promote {
			return false
		}
	}
	return true
}

// touches says whether a promotion under way needs the node.
func (c *Coordinator) touches(node int) bool {
	for _, t := range c.promotion.tasks {
		if c.places[t].Standby == node || c.places[t].Node == node {
			return true
		}
	}
	for _, w := range c.promotion.waiting {
		if w[node] {
			return true
		}
	}
	return false
}

func (c *Coordinator) beginPromotion(lost int) {
	c.epoch++
	p := &promotion{epoch: c.epoch, waiting: map[int]map[int]bool{}, order: map[int]*core.OrderLog{}, got: map[int]map[int]uint64{}}
	var changed []core.Place
	for i := range c.places {
		pl := &c.places[i]
		if pl.Standby == lost {
			pl.Standby = -1
			c.trace(TraceUnprotected, Trace{Task: pl.Task, Node: lost})
			changed = append(changed, *pl)
		}
		if pl.Node == lost {
			p.tasks = append(p.tasks, pl.Task)
			c.unreported(pl.Task)
		}
	}
	if len(changed) > 0 {
		c.announce(changed)
	}
	if len(p.tasks) == 0 {
		return
	}
	c.trace(TraceRestartEnd, Trace{Node: lost, Detail: "standby"})
	c.checkpoints.abort("failure")
	c.promotion = p
	for _, t := range p.tasks {
		p.waiting[t] = map[int]bool{task0: true}
		p.order[t], p.got[t] = &core.OrderLog{}, map[int]uint64{}
		m := core.Msg{Type: core.MsgFence, Task: t, Epoch: p.epoch}
		for _, id := range c.slots {
			if id >= 0 {
				p.waiting[t][id] = true
				c.tell(id, m)
			}
		}
		before := len(c.e.Edge.Msgs)
		c.Edge.Fence(&m, &c.e.Edge)
		answers := append([]core.Msg(nil), c.e.Edge.Msgs[before:]...)
		c.e.Edge.Msgs = c.e.Edge.Msgs[:before]
		for i := range answers {
			c.fenced(task0, &answers[i])
		}
	}
}

// task0 is the harness's own node among those that answer a fence.
const task0 = 0

// announce tells everybody where tasks are.
func (c *Coordinator) announce(places []core.Place) {
	c.Edge.Topology(places, &c.e.Edge)
	c.tellAll(core.Msg{Type: core.MsgTopology, Places: places})
}

// fenced takes one node's answer to a fence.
func (c *Coordinator) fenced(node int, m *core.Msg) {
	p := c.promotion
	if p == nil || m.Epoch != p.epoch || !p.waiting[m.Task][node] {
		return
	}
	delete(p.waiting[m.Task], node)
	for ch, next := range m.Received {
		to := c.graph.Channels[ch].To
		if to >= 0 && c.places[to].Node != node && !c.lostPrimary(to, node) {
			continue // a standby's view of the channel does not count
		}
		p.got[m.Task][ch] = max(p.got[m.Task][ch], next)
	}
	o := p.order[m.Task]
	if len(m.Order) > 0 {
		var other core.OrderLog
		other.Reset(m.OrderAfter)
		if err := other.Merge(m.OrderAfter, m.Order); err == nil && other.To() > o.To() {
			*o = other
		}
	}
	for _, w := range p.waiting {
		if len(w) > 0 {
			return
		}
	}
	c.finishPromotion()
}

// lostPrimary says whether to is itself being taken over by its standby on node.
func (c *Coordinator) lostPrimary(to, node int) bool {
	for _, t := range c.promotion.tasks {
		if t == to {
			return c.places[t].Standby == node
		}
	}
	return false
}

func (c *Coordinator) finishPromotion() {
	p := c.promotion
	c.promotion = nil
	var changed []core.Place
	for _, t := range p.tasks {
		pl := &c.places[t]
		pl.Node, pl.Standby, pl.Epoch = pl.Standby, -1, p.epoch
		changed = append(changed, *pl)
		c.trace(TraceUnprotected, Trace{Task: t})
	}
	c.announce(changed)
	for _, t := range p.tasks {
		o := p.order[t]
		if c.job.Bug("promote-without-order") {
			o = &core.OrderLog{}
		}
		c.tell(c.places[t].Node, core.Msg{Type: core.MsgPromote, Task: t, Epoch: p.epoch,
			OrderAfter: o.From(), Order: o.AppendSince(nil, o.From()), Received: p.got[t]})
	}
	c.trace(TracePromoted, Trace{Count: uint64(len(p.tasks))})
}
