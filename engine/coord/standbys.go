package coord

import (
	"slices"

	"github.com/weir-bench/weir/engine/core"
)

// build is a standby that is being made while its primary runs. It is deployed, announced to all who send to the task,
// and when all have said that they hold what it lacks, the primary ships its state. From then on it stands by.
type build struct {
	task, node int
	phase      buildPhase
	topology   uint64       // the announcement
	waiting    map[int]bool // nodes that have not heard it
}

type buildPhase uint8

const (
	buildDeploying buildPhase = iota
	buildAnnounced
	buildShipping
)

// protectedNow says whether a task has a standby that could take over.
func (c *Coordinator) protectedNow(task int) bool {
	return c.places[task].Standby >= 0 && c.builds[task] == nil
}

// unprotected is called when a task has lost its standby.
func (c *Coordinator) unprotected(task, node int) {
	delete(c.builds, task)
	c.trace(TraceUnprotected, Trace{Task: task, Node: node})
}

// forgetBuilds drops what a lost node had to do with standbys being made.
func (c *Coordinator) forgetBuilds(lost int) {
	for task := range c.places {
		b := c.builds[task]
		switch {
		case b == nil:
		case b.node == lost || c.places[task].Node == lost:
			delete(c.builds, task)
		case b.waiting[lost]:
			delete(b.waiting, lost)
			c.announced(b)
		}
	}
}

// buildStandbys begins to make standbys for the tasks that should have one.
func (c *Coordinator) buildStandbys() {
	if !c.Running() {
		return
	}
	perNode := map[int][]core.Deployment{}
	for task := range c.places {
		pl := &c.places[task]
		if !c.graph.Protection(task).Standby() || pl.Standby >= 0 || c.builds[task] != nil {
			continue
		}
		node := c.standbyNode(pl.Node)
		if node < 0 {
			continue
		}
		c.builds[task] = &build{task: task, node: node}
		perNode[node] = append(perNode[node], core.Deployment{Task: task, Role: core.RoleStandby, Epoch: pl.Epoch, Cold: true,
			FeedNext: 1, HarnessEpoch: c.checkpoints.epochOf(task)})
	}
	for _, id := range c.slots {
		if ds := perNode[id]; len(ds) > 0 {
			c.join(id, ds)
		}
	}
}

// standbyNode returns the node on the slot behind a primary's, -1 when there is none.
func (c *Coordinator) standbyNode(primary int) int {
	at := slices.Index(c.slots, primary)
	for k := 1; k < len(c.slots); k++ {
		if n := c.slots[(at+k)%len(c.slots)]; n >= 0 && n != primary {
			return n
		}
	}
	return -1
}

// buildJoined is called when a standby is deployed: everybody is told of it.
func (c *Coordinator) buildJoined(b *build) {
	if b.phase != buildDeploying {
		return
	}
	c.topologies++
	b.phase, b.topology, b.waiting = buildAnnounced, c.topologies, map[int]bool{}
	for _, id := range c.slots {
		if id >= 0 {
			b.waiting[id] = true
		}
	}
	pl := &c.places[b.task]
	pl.Standby = b.node
	if c.job.Bug("build-without-hold") {
		c.tell(pl.Node, core.Msg{Type: core.MsgTopology, Places: []core.Place{*pl}})
		b.waiting = nil
		c.announced(b)
		return
	}
	c.announceAs([]core.Place{*pl}, b.topology)
	c.announced(b)
}

// held takes a node's word that it knows an announcement.
func (c *Coordinator) held(node int, m *core.Msg) {
	for task := range c.places {
		if b := c.builds[task]; b != nil && b.topology == m.ID && b.waiting[node] {
			delete(b.waiting, node)
			c.announced(b)
		}
	}
}

// announced lets the primary ship when everybody knows of the standby.
func (c *Coordinator) announced(b *build) {
	if b.phase != buildAnnounced || len(b.waiting) > 0 {
		return
	}
	b.phase = buildShipping
	pl := &c.places[b.task]
	c.tell(pl.Node, core.Msg{Type: core.MsgShip, Task: b.task, Epoch: pl.Epoch})
}

// protected takes a primary's word that its standby stands at a base.
func (c *Coordinator) protected(node int, m *core.Msg) {
	if m.Task >= len(c.places) {
		return
	}
	b, pl := c.builds[m.Task], &c.places[m.Task]
	if b == nil || b.phase != buildShipping || pl.Node != node || pl.Epoch != m.Epoch || pl.Standby != b.node {
		return
	}
	delete(c.builds, m.Task)
	if c.job.Bug("build-without-hold") {
		c.announce([]core.Place{*pl})
	}
	if c.job.Bug("promoted-twice") && pl.Epoch > c.checkpoints.epoch {
		c.tell(b.node, core.Msg{Type: core.MsgPromote, Task: m.Task, Epoch: pl.Epoch}) // the same loss, found a second time
	}
	c.trace(TraceProtected, Trace{Task: m.Task, Node: b.node})
}

// pastMoves remembers the migrations that ended since the whole job was deployed.
type pastMoves struct {
	versions   uint64 // of all route tables, when it was last looked
	ever       bool
	checkpoint uint64 // highest number of a checkpoint by then
}

// versions sums up the versions of the route tables: every round of a migration counts one up.
func (c *Coordinator) versions() (sum uint64) {
	for _, r := range c.routes {
		if r != nil {
			sum += r.Version
		}
	}
	return sum
}

// watchMoves is called before anything that depends on migrations: when one has ended, bases must pass it.
func (c *Coordinator) watchMoves() {
	now := c.versions()
	if c.phase != running || c.move != nil || now == c.pastMoves.versions {
		return
	}
	c.pastMoves = pastMoves{versions: now, ever: true, checkpoint: c.checkpoints.last}
	for _, pl := range c.places {
		p := c.graph.Protection(pl.Task)
		if p.Scope == core.ScopeTask || p.Scope == core.ScopeRegion {
			c.checkpoints.nextNS = c.Clock()
		}
		if p.Strategy == core.RecoveryPassive && pl.Standby >= 0 && c.builds[pl.Task] == nil {
			c.builds[pl.Task] = &build{task: pl.Task, node: pl.Standby, phase: buildShipping}
			c.tell(pl.Node, core.Msg{Type: core.MsgShip, Task: pl.Task, Epoch: pl.Epoch})
		}
	}
}
