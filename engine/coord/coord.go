package coord

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/task"
)

// ErrRestarts says that the job failed more often than it may.
var ErrRestarts = errors.New("too many restarts")

type phase int

const (
	waiting   phase = iota // for workers
	deploying              // for tasks to be ready
	running
)

// node is a worker process.
type node struct {
	id      int
	addr    string
	slot    int // -1: spare
	heardNS int64
	up      bool
}

// Coordinator is the machine. It is owned by the harness's event loop, like the Edge that it drives.
type Coordinator struct {
	Edge  *task.Edge
	Clock func() int64

	job    core.Job
	graph  *core.Graph
	phase  phase
	epoch  uint32
	nodes  []*node // in the order of their ids
	slots  []int   // node by slot, -1: vacant
	spares int
	lastID int
	places []core.Place
	routes []*core.Routes

	ready    map[int]bool // nodes whose deployment is ready
	reason   string       // of the deployment under way
	restarts restarts
	choosing bool // the world looks for the newest usable checkpoint

	checkpoints checkpoints
	takeover    *takeover
	builds      map[int]*build // standbys being made, by task
	topologies  uint64         // announcements that ask for an answer
	bases       map[int]json.RawMessage
	replaying   map[int]bool // tasks that were taken over and are not level yet
	pastMoves   pastMoves
	logs        map[int]*logWatch // by task
	replay      *replayWatch
	move        *moving
	tally       *tally
	meters      map[int]core.Meters
	standbys    []int64             // bytes of state that the standby of each task said it holds
	loads       map[int]core.Meters // last meters with loads
	e           *Effects
}

// New returns the coordinator of job. Nothing happens before Begin.
func New(job core.Job, edge *task.Edge, spares int, clock func() int64) (*Coordinator, error) {
	g, err := core.BuildGraph(job, operator.Info)
	if err != nil {
		return nil, err
	}
	if err := operator.Check(&job); err != nil {
		return nil, err
	}
	if err := checkStores(g); err != nil {
		return nil, err
	}
	c := &Coordinator{Edge: edge, Clock: clock, job: g.Job, graph: g, spares: spares,
		meters: map[int]core.Meters{}, loads: map[int]core.Meters{}, standbys: make([]int64, len(g.Tasks))}
	if err := c.checkProtection(); err != nil {
		return nil, err
	}
	for i := range job.Operators {
		op := &g.Job.Operators[i]
		var r *core.Routes
		if k, _ := operator.Info(op.Kind); k.Keyed {
			r = core.NewRoutes(op.Groups, op.Parallelism)
		}
		c.routes = append(c.routes, r)
	}
	for s := 0; s < g.Job.Workers; s++ {
		c.slots = append(c.slots, -1)
	}
	c.checkpoints.c = c
	c.forget()
	return c, nil
}

// forget drops what belongs to one deployment of the whole job.
func (c *Coordinator) forget() {
	c.takeover, c.pastMoves = nil, pastMoves{versions: c.versions()}
	c.builds, c.bases, c.replaying = map[int]*build{}, map[int]json.RawMessage{}, map[int]bool{}
	c.logs = map[int]*logWatch{}
	c.checkpoints.again = map[int]uint32{}
}

// Graph returns the job's graph.
func (c *Coordinator) Graph() *core.Graph { return c.graph }

// SetRoutes replaces the initial route table of an operator; only before Begin.
func (c *Coordinator) SetRoutes(op int, task []int32) {
	c.routes[op] = &core.Routes{Task: append([]int32(nil), task...)}
}

// Begin asks for the workers.
func (c *Coordinator) Begin(e *Effects) {
	c.e = e
	for i := 0; i < c.job.Workers+c.spares; i++ {
		c.spawn()
	}
}

func (c *Coordinator) spawn() {
	c.lastID++
	c.nodes = append(c.nodes, &node{id: c.lastID, slot: -1, heardNS: c.Clock()})
	c.e.Spawns = append(c.e.Spawns, c.lastID)
}

func (c *Coordinator) trace(kind string, t Trace) {
	t.Kind, t.AtNS = kind, c.Clock()
	c.e.Traces = append(c.e.Traces, t)
}

func (c *Coordinator) tell(node int, m core.Msg) {
	c.e.Msgs = append(c.e.Msgs, ToNode{node, m})
}

// tellAll sends m to every node that has a slot.
func (c *Coordinator) tellAll(m core.Msg) {
	for _, n := range c.slots {
		if n >= 0 {
			c.tell(n, m)
		}
	}
}

func (c *Coordinator) node(id int) *node {
	for _, n := range c.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// Running says whether the job runs.
func (c *Coordinator) Running() bool { return c.phase == running && c.takeover == nil }

// Settled says whether nothing is under way: no deployment, take-over, replay, standby being made, migration or checkpoint.
func (c *Coordinator) Settled() bool {
	return c.Running() && c.replay == nil && len(c.replaying)+len(c.builds) == 0 && c.move == nil && c.checkpoints.pending == nil
}

// Epoch returns the current epoch.
func (c *Coordinator) Epoch() uint32 { return c.epoch }

// Places returns where tasks run. The slice is owned by the coordinator.
func (c *Coordinator) Places() []core.Place { return c.places }

// NodeOfSlot returns the node on a worker slot (from 0), -1 when it is vacant.
func (c *Coordinator) NodeOfSlot(slot int) int { return c.slots[slot] }

// Message takes a message of a worker.
func (c *Coordinator) Message(m *core.Msg, e *Effects) {
	c.e = e
	n := c.node(m.Node)
	if n == nil {
		return // of a node that was declared lost
	}
	n.heardNS = c.Clock()
	switch m.Type {
	case core.MsgHello:
		n.up, n.addr = true, m.Addr
		c.trace(TraceWorkerUp, Trace{Node: n.id})
		c.fill()
	case core.MsgDeployed:
		c.deployed(n, m)
	case core.MsgHeartbeat:
		if m.Epoch == c.deployEpoch() {
			for _, t := range m.Meters {
				c.takeMeters(n, t)
			}
		}
	case core.MsgSnapshot:
		c.checkpoints.snapshot(m)
	case core.MsgMoved:
		c.moved(m)
	case core.MsgRound:
		c.roundReport(m)
	case core.MsgCopied:
		c.copied(m)
	case core.MsgFenced:
		c.fenced(n.id, m)
	case core.MsgReplayed:
		c.replayed(n.id, m)
	case core.MsgJoined:
		c.joined(n.id, m)
	case core.MsgHeld:
		c.held(n.id, m)
	case core.MsgProtected:
		c.protected(n.id, m)
	case core.MsgBase:
		c.keepBase(m)
	case core.MsgCut:
		c.checkpoints.cut(n.id, m)
	case core.MsgTaskFailed:
		c.trace(TraceTaskFailed, Trace{Task: m.Task, Node: n.id, Detail: m.Err})
		current := c.deployEpoch()
		if m.Task >= 0 && m.Task < len(c.places) && c.checkpoints.again[m.Task] > 0 {
			current = c.checkpoints.again[m.Task] // it was deployed again since
		}
		if c.phase == running && m.Epoch >= current || c.phase == deploying && m.Epoch == c.epoch {
			c.restart("task failed: " + m.Err)
		}
	}
}

func (c *Coordinator) takeMeters(n *node, m core.Meters) {
	if m.Task >= len(c.places) {
		return
	}
	if m.Standby && c.places[m.Task].Standby == n.id && m.StandbyBytes > 0 {
		c.standbys[m.Task] = m.StandbyBytes
	}
	if c.places[m.Task].Node != n.id {
		return
	}
	c.meters[m.Task] = m
	c.watchLogs(m)
	if len(m.Groups) > 0 {
		c.loads[m.Task] = m
	}
}

// fill gives vacant slots to idle nodes, and deploys when all have one.
func (c *Coordinator) fill() {
	for s, id := range c.slots {
		if id >= 0 {
			continue
		}
		for _, n := range c.nodes {
			if n.up && n.slot < 0 {
				n.slot, c.slots[s] = s, n.id
				break
			}
		}
	}
	if c.phase == running {
		c.deployCopies()
	}
	if c.phase != waiting || c.choosing || c.Clock() < c.restarts.holdUntilNS {
		return
	}
	for _, id := range c.slots {
		if id < 0 {
			return
		}
	}
	if c.reason == "restore" {
		c.trace(TraceRestartEnd, Trace{})
	}
	c.deploy()
}

// deploy starts an epoch: all tasks on all workers, from the newest complete checkpoint.
func (c *Coordinator) deploy() {
	if c.reason == "" {
		c.reason = "start"
	}
	c.epoch++
	c.phase, c.ready = deploying, map[int]bool{}
	c.meters = map[int]core.Meters{}
	c.forget()
	c.checkpoints.started = c.checkpoints.done
	c.places = c.place()
	msg := core.Msg{Type: core.MsgDeploy, Epoch: c.epoch, ID: c.checkpoints.over(), Job: &c.job, Places: c.places, Routes: c.routes}
	if err := c.Edge.Deploy(&msg); err != nil {
		c.e.Fatal = err
		return
	}
	perNode := map[int][]core.Deployment{}
	for _, p := range c.places {
		d := c.checkpoints.restore(p.Task)
		d.Epoch, d.Role = c.epoch, core.RolePrimary
		perNode[p.Node] = append(perNode[p.Node], d)
		if p.Standby >= 0 {
			d.Role = core.RoleStandby
			perNode[p.Standby] = append(perNode[p.Standby], d)
		}
	}
	for _, id := range c.slots {
		m := msg
		m.Tasks = perNode[id]
		c.tell(id, m)
	}
}

// place puts each task on the node of its slot, and its standby on that of another.
func (c *Coordinator) place() []core.Place {
	places := make([]core.Place, len(c.graph.Tasks))
	for i, t := range c.graph.Tasks {
		p := core.Place{Task: i, Node: c.slots[t.Slot], Standby: -1, Epoch: c.epoch}
		if c.graph.Protection(i).Standby() {
			p.Standby = c.slots[c.graph.StandbySlot(i)]
		}
		places[i] = p
	}
	return places
}

// deployEpoch is the epoch in which all tasks were last deployed; promotions come after it.
func (c *Coordinator) deployEpoch() uint32 { return c.checkpoints.epoch }

func (c *Coordinator) deployed(n *node, m *core.Msg) {
	if c.phase != deploying || m.Epoch != c.epoch {
		return
	}
	c.ready[n.id] = true
	for _, id := range c.slots {
		if !c.ready[id] {
			return
		}
	}
	c.trace(TraceRestored, Trace{Detail: c.reason})
	c.phase = running
	c.checkpoints.begin()
	c.Edge.Start(&c.e.Edge)
	c.tellAll(core.Msg{Type: core.MsgStart, Epoch: c.epoch})
	c.trace(TraceStarted, Trace{Detail: c.reason})
	if c.move != nil && c.move.redeploying {
		c.move.redeploying = false
		c.advance(migration.Redeployed)
	}
}

// Tick looks at leases, timers and progress; the world calls it every few milliseconds.
func (c *Coordinator) Tick(e *Effects) {
	c.e = e
	now := c.Clock()
	for _, n := range append([]*node(nil), c.nodes...) {
		if n.up && now-n.heardNS > int64(c.job.Lease) {
			c.lost(n.id, "lease expired")
		}
	}
	c.watchMoves()
	c.fill()
	c.checkpoints.tick(now)
	c.watchReplay()
	c.resumeMove()
	c.buildStandbys()
	c.Edge.Tick(&e.Edge)
}

// NodeLost says that a node is gone: its connection broke or its process ended.
func (c *Coordinator) NodeLost(id int, why string, e *Effects) {
	c.e = e
	c.lost(id, why)
}

func (c *Coordinator) lost(id int, why string) {
	n := c.node(id)
	if n == nil {
		return
	}
	for i, x := range c.nodes {
		if x == n {
			c.nodes = append(c.nodes[:i], c.nodes[i+1:]...)
			break
		}
	}
	c.trace(TraceDetected, Trace{Node: id, Detail: why})
	if n.slot < 0 {
		if c.phase == waiting {
			c.spawnCounted()
		}
		return
	}
	c.slots[n.slot] = -1
	c.watchMoves()
	if c.phase == running {
		if tasks, ok := c.react(id, n.slot); ok {
			if err := c.restarts.another(c.Clock(), c.job.MaxRestarts, why); err != nil {
				c.e.Fatal = err
				return
			}
			c.beginTakeover(id, tasks, why)
			c.fill()
			return
		}
	}
	c.restart("node " + fmt.Sprint(id) + " lost: " + why)
}

func (c *Coordinator) spawnCounted() {
	if err := c.restarts.another(c.Clock(), c.job.MaxRestarts, "a worker ended before the job ran"); err != nil {
		c.e.Fatal = err
		return
	}
	c.spawn()
}

// restart rolls the whole job back to the newest complete checkpoint.
func (c *Coordinator) restart(why string) {
	if err := c.restarts.another(c.Clock(), c.job.MaxRestarts, why); err != nil {
		c.e.Fatal = err
		return
	}
	c.takeover = nil
	if c.fallsBack() {
		c.trace(TraceFallback, Trace{Detail: why})
	}
	c.checkpoints.abort("restart")
	if c.move != nil {
		c.trace(TraceMigrationLost, Trace{Detail: why})
		c.move.machine.Step(migration.Interrupt, 0)
		// Rolled back whole: key groups are restored to any owner, so only the table decides.
		if !c.job.Bug("rollback-keeps-routes") {
			c.routes = c.move.before
		}
		c.move = nil
	}
	c.tally = nil
	c.watchFrom()
	c.phase, c.reason, c.choosing = waiting, "restore", true
	c.e.Choose = true
	c.staff()
	c.fill()
}

// fallsBack says whether a rollback of the whole job is not what the strategies of its tasks do first.
func (c *Coordinator) fallsBack() bool {
	for id := range c.graph.Tasks {
		if c.graph.Protection(id).Scope != core.ScopeGlobal && external(&c.job) == nil {
			return true
		}
	}
	return false
}

// replayed takes a task's word that it is level with what was known of its order.
func (c *Coordinator) replayed(node int, m *core.Msg) {
	if m.Task < len(c.places) && c.places[m.Task].Node == node && c.replaying[m.Task] {
		delete(c.replaying, m.Task)
		c.trace(TraceReplayed, Trace{Task: m.Task, Node: node})
	}
}

// staff starts a worker for every vacant slot that no idle or starting node will take.
func (c *Coordinator) staff() {
	idle := 0
	for _, n := range c.nodes {
		if n.slot < 0 {
			idle++
		}
	}
	for _, id := range c.slots {
		if id < 0 {
			if idle--; idle < 0 {
				c.spawn()
			}
		}
	}
}

// replayWatch waits until the sources have read again what had been read before a rollback.
type replayWatch struct{ upto []uint64 }

func (c *Coordinator) watchFrom() {
	w := &replayWatch{}
	for s := 0; s < c.Edge.Splits(); s++ {
		w.upto = append(w.upto, c.Edge.Emitted(s))
	}
	if c.replay == nil { // a second failure does not move the goal
		c.replay = w
	}
}

func (c *Coordinator) watchReplay() {
	if c.replay == nil || c.phase != running {
		return
	}
	for s, upto := range c.replay.upto {
		if c.Edge.FeedConsumed(s) < upto {
			return
		}
	}
	c.replay = nil
	c.trace(TraceReplayed, Trace{Task: -1})
}

// StandbyBytes returns how much state the standbys hold together, as they said last.
func (c *Coordinator) StandbyBytes() (sum int64) {
	for task, n := range c.standbys {
		if c.places[task].Standby >= 0 {
			sum += n
		}
	}
	return sum
}

// Meters returns the last meters of each task, by task id. Loads are cumulative since the deployment.
func (c *Coordinator) Meters() []core.Meters {
	ms := make([]core.Meters, len(c.graph.Tasks))
	for i := range ms {
		ms[i] = c.meters[i]
		if l, ok := c.loads[i]; ok {
			ms[i].Groups, ms[i].Loads, ms[i].StateBytes = l.Groups, l.Loads, l.StateBytes
		}
	}
	return ms
}

// Routes returns the route table of an operator as the coordinator has it; it is owned by the coordinator.
func (c *Coordinator) Routes(op int) *core.Routes { return c.routes[op] }
