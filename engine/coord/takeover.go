package coord

import (
	"slices"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
)

// takeover brings lost tasks back without touching the others: fence them everywhere, gather how far and in which order
// their outputs came, then let a copy go on from each task's base. A base is a position and the state there: a standby has
// both; for others a copy is deployed on the worker that takes the lost one's slot, from a checkpoint, from the base that
// the task told, or empty. The copy replays the gathered order from its base on; outputs that have arrived are dropped by
// their numbers. When more is lost meanwhile, all of it begins again for what is lost then.
type takeover struct {
	epoch    uint32
	tasks    []*lostTask // in the order of their ids
	deployed bool        // copies are on their way
	cause    string
}

// lostTask is a task that nobody runs at present.
type lostTask struct {
	id       int
	reaction recovery.Reaction
	slot     int // where its copy is deployed; of a task that is promoted: -1
	order    core.OrderLog
	got      map[int]uint64
	fenced   map[int]bool // nodes that have answered
	joined   bool
}

func (k *takeover) find(task int) *lostTask {
	for _, t := range k.tasks {
		if t.id == task {
			return t
		}
	}
	return nil
}

// situation describes what a task's strategy reacts to.
func (c *Coordinator) situation(task int) recovery.Situation {
	p := c.graph.Protection(task)
	return recovery.Situation{Scope: p.Scope, Standby: c.protectedNow(task), Moving: c.move != nil, Moved: c.movedSince(task),
		Stores: external(&c.job) != nil}
}

// movedSince says whether a migration ended since the base of a task: its replay could number the messages between the
// tasks of an operator differently.
func (c *Coordinator) movedSince(task int) bool {
	if !c.pastMoves.ever {
		return false
	}
	p := c.graph.Protection(task)
	done := c.checkpoints.done
	return p.Strategy != core.RecoveryCheckpoint || done == nil || done.epoch != c.checkpoints.epoch || done.id <= c.pastMoves.checkpoint
}

// react returns the tasks that are lost with a node, with what is to be done about each; ok is false when the whole job
// must roll back.
func (c *Coordinator) react(node int, slot int) (tasks []*lostTask, ok bool) {
	var ids []int
	if c.takeover != nil {
		for _, t := range c.takeover.tasks {
			ordered := t.reaction == recovery.Promote || t.reaction == recovery.Replay
			if done, asked := t.fenced[node]; ordered && asked && !done {
				return nil, false // it may be that only this node knew the end of the task's order
			}
			if t.reaction == recovery.Promote && c.places[t.id].Standby == node {
				return nil, false
			}
			tasks = append(tasks, &lostTask{id: t.id, reaction: t.reaction, slot: t.slot, order: t.order})
			ids = append(ids, t.id)
		}
	}
	for _, p := range c.places {
		if p.Node != node || slices.Contains(ids, p.Task) {
			continue
		}
		s, _ := recovery.Lookup(c.graph.Protection(p.Task).Strategy)
		t := &lostTask{id: p.Task, reaction: s.React(c.situation(p.Task)), slot: slot}
		switch t.reaction {
		case recovery.Restart:
			return nil, false
		case recovery.Replay:
			if (c.takeover != nil || len(c.replaying) > 0) && !c.job.Bug("holder-lost-too") {
				// What was lost before may have been all who knew the order behind outputs that have arrived; its successors
				// know it again when they are level.
				return nil, false
			}
		case recovery.Promote:
			t.slot = -1
		case recovery.Region:
			for _, other := range c.region(t.id) {
				if !slices.Contains(ids, other) && other != t.id {
					tasks = append(tasks, &lostTask{id: other, reaction: recovery.Region, slot: c.slotOf(other, node, slot)})
					ids = append(ids, other)
				}
			}
		}
		if !slices.Contains(ids, t.id) {
			tasks, ids = append(tasks, t), append(ids, t.id)
		}
	}
	slices.SortFunc(tasks, func(a, b *lostTask) int { return a.id - b.id })
	return tasks, true
}

// region returns the tasks that roll back together with a task.
func (c *Coordinator) region(task int) (ids []int) {
	for id, in := range c.graph.Connected(task) {
		if in && !(c.job.Bug("region-without-neighbours") && c.places[id].Node != c.places[task].Node) {
			ids = append(ids, id)
		}
	}
	return ids
}

// slotOf returns the slot of a task's node, which is slot if it is the lost one.
func (c *Coordinator) slotOf(task, lost, slot int) int {
	for s, n := range c.slots {
		if n == c.places[task].Node {
			return s
		}
	}
	if c.places[task].Node == lost {
		return slot
	}
	return c.graph.Tasks[task].Slot
}

// beginTakeover takes over what was lost with a node.
func (c *Coordinator) beginTakeover(lost int, tasks []*lostTask, why string) {
	var changed []core.Place
	for i := range c.places {
		if pl := &c.places[i]; pl.Standby == lost {
			pl.Standby = -1
			c.unprotected(pl.Task, lost)
			changed = append(changed, *pl)
		}
	}
	c.forgetBuilds(lost)
	if len(changed) > 0 {
		c.announce(changed)
	}
	c.checkpoints.lost()
	c.staff()
	if len(tasks) == 0 {
		return
	}
	c.epoch++
	k := &takeover{epoch: c.epoch, tasks: tasks, cause: why}
	c.takeover = k
	if c.promotes(k) {
		c.trace(TraceRestartEnd, Trace{Node: lost, Detail: "standby"})
	}
	for _, t := range tasks {
		delete(c.replaying, t.id)
		c.unreported(t.id)
		t.got, t.fenced = map[int]uint64{}, map[int]bool{}
		pl := &c.places[t.id]
		pl.Epoch = k.epoch
		if t.reaction != recovery.Promote {
			pl.Node, pl.Standby = -1, -1
		}
		if t.reaction == recovery.Region {
			continue // all that it sends to is deployed again with it
		}
		t.fenced[harness] = false
		for _, id := range c.slots {
			if id >= 0 {
				t.fenced[id] = false
			}
		}
	}
	c.fence(k)
}

// fence lets everybody refuse what is lost, in one message: who refused one task's order and still took another's output
// would have outputs that came out of an order nobody knows.
func (c *Coordinator) fence(k *takeover) {
	m := core.Msg{Type: core.MsgFence, Epoch: k.epoch}
	for _, t := range k.tasks {
		if t.reaction != recovery.Region {
			m.Places = append(m.Places, c.places[t.id])
		}
	}
	if len(m.Places) == 0 {
		return
	}
	c.tellAll(m)
	before := len(c.e.Edge.Msgs)
	c.Edge.Fence(&m, &c.e.Edge)
	answers := append([]core.Msg(nil), c.e.Edge.Msgs[before:]...)
	c.e.Edge.Msgs = c.e.Edge.Msgs[:before]
	for i := range answers {
		c.fenced(harness, &answers[i])
	}
}

// harness is the harness's own node among those that answer a fence.
const harness = 0

func (c *Coordinator) promotes(k *takeover) bool {
	return slices.ContainsFunc(k.tasks, func(t *lostTask) bool { return t.reaction == recovery.Promote })
}

// announce tells everybody where tasks are.
func (c *Coordinator) announce(places []core.Place) { c.announceAs(places, 0) }

func (c *Coordinator) announceAs(places []core.Place, id uint64) {
	c.Edge.Topology(places, &c.e.Edge)
	c.tellAll(core.Msg{Type: core.MsgTopology, Places: slices.Clone(places), ID: id})
}

// fenced takes one node's answer to a fence.
func (c *Coordinator) fenced(node int, m *core.Msg) {
	k := c.takeover
	if k == nil || m.Epoch != k.epoch {
		return
	}
	t := k.find(m.Task)
	if t == nil {
		return
	}
	if done, asked := t.fenced[node]; !asked || done {
		return
	}
	t.fenced[node] = true
	for ch, next := range m.Received { // a map of maxima: the order does not matter
		to := c.graph.Channels[ch].To
		if to >= 0 && c.places[to].Node != node && !c.promotedOn(to, node) {
			continue // a standby's view of the channel does not count
		}
		t.got[ch] = max(t.got[ch], next)
	}
	if len(m.Order) > 0 {
		var other core.OrderLog
		other.Reset(m.OrderAfter)
		if err := other.Merge(m.OrderAfter, m.Order); err == nil && other.To() > t.order.To() {
			t.order = other
		}
	}
	if k.fencing() {
		return
	}
	c.promoteStandbys()
	c.deployCopies()
}

// fencing says whether a node has not answered yet.
func (k *takeover) fencing() bool {
	for _, t := range k.tasks {
		for _, done := range t.fenced {
			if !done {
				return true
			}
		}
	}
	return false
}

// promotedOn says whether a task is itself being taken over by its standby on node.
func (c *Coordinator) promotedOn(task, node int) bool {
	t := c.takeover.find(task)
	return t != nil && t.reaction == recovery.Promote && c.places[task].Standby == node
}

// promoteStandbys lets standbys take over: they wait for nobody else.
func (c *Coordinator) promoteStandbys() {
	k := c.takeover
	var changed []core.Place
	var promoted []*lostTask
	for _, t := range k.tasks {
		if t.reaction == recovery.Promote {
			pl := &c.places[t.id]
			pl.Node, pl.Standby = pl.Standby, -1
			c.unprotected(t.id, 0)
			changed, promoted = append(changed, *pl), append(promoted, t)
		}
	}
	if len(promoted) == 0 {
		return
	}
	c.announce(changed)
	for _, t := range promoted {
		c.promote(t)
	}
	c.trace(TracePromoted, Trace{Count: uint64(len(promoted))})
	k.tasks = slices.DeleteFunc(k.tasks, func(t *lostTask) bool { return t.reaction == recovery.Promote })
	c.endTakeover()
}

// promote lets a copy go on from its base.
func (c *Coordinator) promote(t *lostTask) {
	o := &t.order
	if c.job.Bug("promote-without-order") {
		o = &core.OrderLog{}
	}
	pl := c.places[t.id]
	m := core.Msg{Type: core.MsgPromote, Task: t.id, Epoch: pl.Epoch,
		OrderAfter: o.From(), Order: o.AppendSince(nil, o.From()), Received: t.got}
	c.tell(pl.Node, m)
	if t.reaction != recovery.Reopen {
		c.replaying[t.id] = true
		c.trace(TraceReplaying, Trace{Task: t.id, Node: pl.Node})
	}
}

// deployCopies deploys copies of the lost tasks, as soon as all are fenced and the workers for them are there.
func (c *Coordinator) deployCopies() {
	k := c.takeover
	if k == nil || k.deployed || k.fencing() || c.Clock() < c.restarts.holdUntilNS || !c.checkpoints.settled() {
		return
	}
	for _, t := range k.tasks {
		if c.slots[t.slot] < 0 {
			return
		}
	}
	k.deployed = true
	c.trace(TraceRestartEnd, Trace{Detail: string(k.tasks[0].reaction)})
	var changed []core.Place
	var again []int
	for _, t := range k.tasks {
		if t.reaction == recovery.Region {
			again = append(again, t.id)
		}
		pl := &c.places[t.id]
		pl.Node = c.slots[t.slot]
		changed = append(changed, *pl)
	}
	c.Edge.Rewind(again, k.epoch) // before anything is sent to the new ones
	c.Edge.Topology(changed, &c.e.Edge)
	perNode := map[int][]core.Deployment{}
	for _, t := range k.tasks {
		d := c.copyOf(t)
		perNode[c.places[t.id].Node] = append(perNode[c.places[t.id].Node], d)
		c.trace(TraceRestoring, Trace{Task: t.id, Node: c.places[t.id].Node, ID: d.Restore})
	}
	for _, id := range c.slots {
		if ds := perNode[id]; len(ds) > 0 {
			c.join(id, ds) // tells the places as well: what is replaced must not hear of them while it still runs
		} else if id >= 0 {
			c.tell(id, core.Msg{Type: core.MsgTopology, Places: slices.Clone(changed)})
		}
	}
}

// join deploys tasks on a node beside those that it may have.
func (c *Coordinator) join(node int, ds []core.Deployment) {
	c.tell(node, core.Msg{Type: core.MsgDeploy, Join: true, Epoch: c.checkpoints.epoch, ID: c.checkpoints.over(), Job: &c.job,
		Places: slices.Clone(c.places), Routes: cloneRoutes(c.routes), Tasks: ds})
}

// copyOf says how a copy of a lost task begins.
func (c *Coordinator) copyOf(t *lostTask) core.Deployment {
	k := &c.checkpoints
	d := core.Deployment{Task: t.id, FeedNext: 1, Role: core.RoleStandby, Cold: true}
	switch {
	case t.reaction == recovery.Region:
		d = k.restore(t.id)
		d.Role, d.HarnessEpoch = core.RolePrimary, c.places[t.id].Epoch
	case t.reaction == recovery.Replay && c.bases[t.id] != nil:
		d.Base = c.bases[t.id]
	case t.reaction == recovery.Replay && k.done != nil && k.done.epoch == k.epoch && c.graph.Protection(t.id).Scope == core.ScopeTask:
		d.Restore, d.Alone = k.done.id, true
		if c.job.Bug("stale-checkpoint") && d.Restore > 1 {
			d.Restore--
		}
	case t.reaction == recovery.Replay: // nothing since the whole job was deployed
		d = k.restoreFrom(t.id, k.started)
		d.Role, d.Cold = core.RoleStandby, true
	}
	d.Epoch = c.places[t.id].Epoch
	if d.HarnessEpoch == 0 {
		d.HarnessEpoch = k.epochOf(t.id)
	}
	return d
}

// joined takes a node's word that a task is deployed beside the others.
func (c *Coordinator) joined(node int, m *core.Msg) {
	if m.Task >= len(c.places) || m.Epoch != c.places[m.Task].Epoch {
		return
	}
	if b := c.builds[m.Task]; b != nil && b.node == node {
		c.buildJoined(b)
		return
	}
	k := c.takeover
	if k == nil || !k.deployed || c.places[m.Task].Node != node {
		return
	}
	t := k.find(m.Task)
	if t == nil || t.joined {
		return
	}
	t.joined = true
	c.trace(TraceRestored, Trace{Task: t.id, Node: node, Detail: string(t.reaction)})
	if t.reaction == recovery.Region {
		c.startRegion(t.id)
	} else {
		c.promote(t)
		k.tasks = slices.DeleteFunc(k.tasks, func(x *lostTask) bool { return x == t })
	}
	c.endTakeover()
}

// startRegion starts the tasks that roll back together with one of them, when all are there.
func (c *Coordinator) startRegion(task int) {
	k := c.takeover
	near := c.graph.Connected(task)
	var ids, nodes []int
	for _, t := range k.tasks {
		if t.reaction == recovery.Region && near[t.id] {
			if !t.joined {
				return
			}
			ids = append(ids, t.id)
			if n := c.places[t.id].Node; !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	for _, id := range ids {
		c.checkpoints.again[id] = k.epoch
	}
	c.watchFrom()
	m := core.Msg{Type: core.MsgStart, Epoch: k.epoch, Join: true}
	for _, id := range ids {
		m.Tasks = append(m.Tasks, core.Deployment{Task: id})
	}
	for _, n := range nodes {
		c.tell(n, m)
	}
	c.Edge.StartOf(ids, &c.e.Edge)
	k.tasks = slices.DeleteFunc(k.tasks, func(t *lostTask) bool { return slices.Contains(ids, t.id) })
	c.trace(TraceStarted, Trace{Detail: string(recovery.Region)})
}

// endTakeover ends the take-over when no task is lost any more.
func (c *Coordinator) endTakeover() {
	k := c.takeover
	if len(k.tasks) > 0 {
		return
	}
	c.takeover = nil
	if k.deployed {
		c.trace(TraceTakenOver, Trace{Detail: k.cause})
	}
}

// keepBase takes the base of a task of strategy upstream.
func (c *Coordinator) keepBase(m *core.Msg) {
	if c.phase != running || m.Task >= len(c.places) || m.Epoch != c.places[m.Task].Epoch || c.places[m.Task].Node != m.Node {
		return
	}
	c.bases[m.Task] = m.Base
	c.tell(m.Node, core.Msg{Type: core.MsgBaseKept, Task: m.Task, Epoch: m.Epoch, ID: m.ID})
}

// checkProtection refuses a job that could not keep its promises.
func (c *Coordinator) checkProtection() error { return recovery.Check(c.graph, operator.Horizon) }
