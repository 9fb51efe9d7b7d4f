package host

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/task"
)

// Harness runs a job in child processes: it is the feed, the coordinator and the collector. Its methods are safe for
// concurrent use, but not from within the functions of its Config.
type Harness struct {
	cfg      Config
	clock    func() int64
	baseNS   int64
	token    string
	fab      *fabric
	edge     *task.Edge
	co       *coord.Coordinator
	e        coord.Effects
	children *children
	vault    *vault
	stateDir string         // of workers; empty: none
	spillDir string         // likewise
	cleaning sync.WaitGroup // goroutines that remove what a worker has spilled
	stores   storesInUse

	addrs    map[int]string // of the nodes that are there
	answers  map[uint64]chan WorkerMetrics
	request  uint64
	pace     pacer
	tickNS   int64
	dueNS    int64 // when the turn under way had to begin at the latest
	turns    uint64
	early    int // workers in a row that ended before they said hello
	stopping bool

	over  chan struct{} // closed when the job ended or failed
	ended bool
	err   error // set before over is closed
	gone  chan struct{}
	final Metrics // valid once gone is closed
}

const (
	coordinatorTickNS = 5e6
	// stallNS is how late a turn of the loop must be for it to have been held up itself.
	stallNS = 20e6
	// earlyEnds is how many workers in a row may end without a word before the run is given up.
	earlyEnds = 3
	// profilePatience is how long workers may take to write their profiles.
	profilePatience = 2 * time.Second
)

// Start begins a run: it returns when workers are being started; what happens then shows in OnTrace, Done and Err.
// Close must be called in the end.
func Start(cfg Config) (_ *Harness, err error) {
	cfg.fill()
	h := &Harness{cfg: cfg, addrs: map[int]string{}, answers: map[uint64]chan WorkerMetrics{}, token: rand.Text(),
		over: make(chan struct{}), gone: make(chan struct{})}
	h.baseNS = monotonicNS()
	h.clock = newClock(h.baseNS)
	h.edge = task.NewEdge(h.clock, cfg.Feed, cfg.Collect)
	for s, n := range cfg.Bounds {
		h.edge.Bound(s, n)
	}
	defer func() {
		if err != nil {
			h.abandon()
		}
	}()
	if h.co, err = coord.New(cfg.Job, h.edge, cfg.Spares, h.clock); err != nil {
		return nil, err
	}
	for op, table := range cfg.Routes {
		h.co.SetRoutes(op, table)
	}
	if h.vault, err = newVault(&cfg); err != nil {
		return nil, err
	}
	if h.stateDir, err = newStateDir(&cfg); err != nil {
		return nil, err
	}
	if h.spillDir, err = newSpillDir(&cfg); err != nil {
		return nil, err
	}
	h.pace.init(h)
	if h.stores.stores, err = openStores(&cfg.Job); err != nil {
		return nil, err
	}
	if h.children, err = newChildren(&cfg); err != nil {
		return nil, err
	}
	if h.fab, err = newFabric(task.Harness, h.token, cfg.Listen, h.clock, h, h.edge.Pool()); err != nil {
		return nil, err
	}
	go h.run()
	return h, nil
}

// abandon gives back what a start that failed has taken so far.
func (h *Harness) abandon() {
	closeStores(h.stores.stores)
	if h.children != nil {
		h.children.close()
	}
	h.removeDirs()
}

// Now returns the time since the run's start on the clock of all its processes.
func (h *Harness) Now() time.Duration { return time.Duration(h.clock()) }

// Done is closed when every sink has ended or the job has failed.
func (h *Harness) Done() <-chan struct{} { return h.over }

// Err returns why the job failed, nil while it runs and when it ended well.
func (h *Harness) Err() error {
	select {
	case <-h.over:
		return h.err
	default:
		return nil
	}
}

// Do calls f on the event loop, between two steps of the coordinator, and waits for it. It returns ErrClosed when the
// loop has ended.
func (h *Harness) Do(f func(*coord.Coordinator, *coord.Effects)) error {
	done := make(chan struct{})
	ok := h.fab.poll.post(func() {
		defer close(done)
		if !h.stopping {
			f(h.co, &h.e)
		}
	})
	if !ok {
		return ErrClosed
	}
	<-done
	return nil
}

// EndFeed ends each split of the feed soon: behind what is due by now, or if the job is far behind that, about a window
// behind what was sent. It returns how many records each split has then, at least one. The job ends when it has worked them off.
func (h *Harness) EndFeed() (records []uint64, err error) {
	err = h.Do(func(*coord.Coordinator, *coord.Effects) {
		for s := range h.pace.due {
			// A standby may have been sent more than its primary, by a window at most; nobody more than is due.
			n := h.edge.Emitted(s) + uint64(h.co.Graph().Job.WindowRecords) + core.MaxBatch
			n = max(min(n, h.pace.due[s]), 1) // 0 would be no bound
			h.edge.Bound(s, n)
			records = append(records, n)
		}
	})
	return records, err
}

// Kill ends a node's process at once, Freeze stops it and Thaw lets it go on.
func (h *Harness) Kill(node int) error { return h.children.signal(node, syscall.SIGKILL) }

// Freeze stops a node's process.
func (h *Harness) Freeze(node int) error { return h.children.signal(node, syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (h *Harness) Thaw(node int) error { return h.children.signal(node, syscall.SIGCONT) }

// Pid returns the process of a node, 0 when there is none.
func (h *Harness) Pid(node int) int { return h.children.pid(node) }

// Usage returns what a node's process has used; of one that ended, in total.
func (h *Harness) Usage(node int) (Usage, error) { return h.children.usage(node) }

// SelfUsage returns what the harness's process has used.
func (h *Harness) SelfUsage() (Usage, error) { return processUsage(os.Getpid()) }

// Metrics returns the harness's own cost.
func (h *Harness) Metrics() Metrics {
	var m Metrics
	asked := false
	if err := h.Do(func(*coord.Coordinator, *coord.Effects) { m, asked = h.measure(), true }); err == nil && asked {
		return m
	}
	<-h.gone
	return h.final
}

func (h *Harness) measure() Metrics {
	return Metrics{LoopCPU: time.Duration(threadCPUNS()), BatchesMade: h.edge.Pool().Made, Turns: h.turns, Wire: h.fab.metrics}
}

// WorkerMetrics asks a worker for its counters and waits for at most timeout.
func (h *Harness) WorkerMetrics(node int, timeout time.Duration) (WorkerMetrics, error) {
	answer := make(chan WorkerMetrics, 1)
	var request uint64
	err := h.Do(func(*coord.Coordinator, *coord.Effects) {
		h.request++
		request = h.request
		h.answers[request] = answer
		h.fab.sendMessage(node, hostChannel, hostMsg{Type: hostAsk, Request: request})
	})
	if err != nil {
		return WorkerMetrics{}, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case m := <-answer:
		return m, nil
	case <-timer.C:
	case <-h.gone:
	}
	_ = h.Do(func(*coord.Coordinator, *coord.Effects) { delete(h.answers, request) }) // closed: nothing to forget
	return WorkerMetrics{}, fmt.Errorf("metrics of worker %d: no answer within %v", node, timeout)
}

// Close ends the run: it kills all child processes, waits until they are gone, and returns Err. What is in Dir stays; what
// the job has written to external stores is removed.
func (h *Harness) Close() error {
	h.fab.poll.post(func() { h.stopping = true })
	<-h.gone
	if err := h.stores.leave(h.cfg.Job.ID); err != nil && h.err == nil {
		return fmt.Errorf("clean up behind the run: %w", err)
	}
	return h.err
}

func (h *Harness) run() {
	runtime.LockOSThread() // never unlocked: the thread's settings end with it
	preciseTimers()
	aheadOfOthers()
	h.co.Begin(&h.e)
	h.perform()
	timeout := int64(0)
	for !h.stopping {
		timeout = h.turn(timeout)
	}
	h.final = h.measure()
	if !h.ended {
		h.end(nil)
	}
	if h.cfg.ProfileDir != "" {
		h.fab.closeConns() // workers that find themselves cut off end by themselves, and write their profiles
		h.children.wait(profilePatience)
	}
	h.children.close()
	h.cleaning.Wait()
	h.removeDirs()
	h.vault.wait()
	h.fab.close()
	close(h.gone)
}

// removeDirs removes the folders of workers.
func (h *Harness) removeDirs() {
	for _, dir := range []string{h.stateDir, h.spillDir} {
		if dir != "" {
			_ = os.RemoveAll(dir) // what cannot be removed is in a folder for such things
		}
	}
}

func (h *Harness) end(err error) {
	h.ended, h.err = true, err
	close(h.over)
}

// turn is one turn of the loop: network, machines, feed, effects, network.
func (h *Harness) turn(timeoutNS int64) int64 {
	h.turns++
	h.fab.turn(timeoutNS)
	h.edge.Drain(&h.e.Edge)
	now := h.clock()
	if h.dueNS > 0 && now-h.dueNS > stallNS {
		// Who was held up must not call others silent before it has read what they said meanwhile.
		h.tickNS = now + stallNS
	}
	if now >= h.tickNS {
		h.tickNS = now + coordinatorTickNS
		h.co.Tick(&h.e)
		if h.cfg.OnTick != nil {
			h.cfg.OnTick(h.co, &h.e)
		}
	}
	wait := h.pace.emit(now)
	h.perform()
	h.fab.flush()
	if !h.ended && h.edge.Ended() {
		h.end(nil)
	}
	now = h.clock()
	timeoutNS = h.fab.timeout(now, max(min(wait, h.tickNS-now), 0))
	h.dueNS = now + timeoutNS
	return timeoutNS
}

func (h *Harness) perform() {
	e := &h.e
	for i := range e.Edge.Sends {
		s := &e.Edge.Sends[i]
		h.fab.send(s.Node, s.B)
		s.B.Release()
	}
	for i := range e.Edge.Msgs { // the edge is no task that could be started again
		h.fail(fmt.Errorf("harness: %s", e.Edge.Msgs[i].Err))
	}
	for i := range e.Msgs {
		m := &e.Msgs[i]
		if m.Msg.Type == core.MsgDeploy {
			h.tellPeers(m.Node)
		}
		if m.Msg.Type == core.MsgDeploy && m.Msg.Join { // the others are to reach it, too
			for node := range h.addrs { // each gets a message of its own: the order does not matter
				if node != m.Node {
					h.tellPeers(node)
				}
			}
		}
		h.fab.sendMessage(m.Node, machineChannel, &m.Msg)
	}
	for _, node := range e.Spawns {
		h.spawn(node)
	}
	for _, c := range e.Complete {
		h.vault.complete(h, c)
	}
	if e.Choose {
		h.vault.choose(h)
	}
	for _, t := range e.Traces {
		h.cfg.OnTrace(t)
		if t.Kind == coord.TraceDetected {
			// Its frames are still read, so that those of a zombie are seen and fenced; it is told nothing more, and
			// ends when it notices.
			delete(h.addrs, t.Node)
			h.fab.setAddr(t.Node, "")
		}
	}
	if e.Fatal != nil && !h.ended {
		h.end(e.Fatal)
	}
	e.Reset()
}

// tellPeers tells a worker under which addresses it reaches the others.
func (h *Harness) tellPeers(node int) {
	m := hostMsg{Type: hostPeers, Addrs: map[int]string{}}
	for to, addr := range h.addrs {
		if to != node {
			m.Addrs[to] = h.cfg.Address(node, to, addr)
		}
	}
	h.fab.sendMessage(node, hostChannel, m)
}

func (h *Harness) spawn(node int) {
	l := &launch{Node: node, Harness: h.cfg.Address(node, task.Harness, h.fab.addr), Token: h.token, Listen: h.cfg.WorkerListen,
		BaseNS: h.baseNS, Job: h.cfg.Job.ID, Dir: h.vault.dir, NoSync: h.cfg.NoSync, MemoryBytes: h.cfg.MemoryBytes,
		ProfileDir: h.cfg.ProfileDir, StateDir: h.stateDir, SpillDir: h.spillDir}
	h.children.start(node, l, func(why string) {
		h.fab.poll.post(func() { h.exited(node, why) })
	}, func(err error) {
		h.fab.poll.post(func() { h.fail(err) })
	})
}

func (h *Harness) fail(err error) {
	if !h.ended {
		h.end(err)
	}
}

func (h *Harness) exited(node int, why string) {
	if h.spillDir != "" {
		h.cleaning.Go(func() { _ = os.RemoveAll(spillDir(h.spillDir, node)) }) // nobody reads it any more
	}
	if _, known := h.addrs[node]; !known && h.early >= 0 {
		if h.early++; h.early >= earlyEnds {
			h.fail(fmt.Errorf("%d workers ended before they reached the harness; the last, %d: %s", h.early, node, why))
			return
		}
	}
	if !h.ended {
		h.co.NodeLost(node, why, &h.e)
	}
}

func (h *Harness) frame(node int, b *core.Batch) {
	if b.Kind != core.KindMessage {
		h.edge.Frame(b, &h.e.Edge)
		return
	}
	if b.Channel == hostChannel {
		var m hostMsg
		if err := json.Unmarshal(b.Ext, &m); err == nil {
			h.hostMessage(&m)
		}
		return
	}
	m := new(core.Msg)
	if err := json.Unmarshal(b.Ext, m); err != nil || m.Node != node {
		h.fail(fmt.Errorf("message of worker %d, which says that it is %d: %v", node, m.Node, err))
		return
	}
	if m.Type == core.MsgHello {
		h.early = -1
		h.addrs[node] = m.Addr
		h.fab.setAddr(node, h.cfg.Address(task.Harness, node, m.Addr))
	}
	h.co.Message(m, &h.e)
}

func (h *Harness) hostMessage(m *hostMsg) {
	if answer := h.answers[m.Request]; m.Type == hostMetrics && answer != nil && m.Metrics != nil {
		answer <- *m.Metrics
		delete(h.answers, m.Request)
	}
}

func (h *Harness) up(node int) { h.edge.ConnUp(node, &h.e.Edge) }

func (h *Harness) linked(node int) { h.edge.ConnUp(node, &h.e.Edge) }

func (h *Harness) lost(node int, why string) {
	if _, known := h.addrs[node]; known {
		h.co.NodeLost(node, why, &h.e)
	}
}

func (h *Harness) unlinked(node int, why string) {
	h.edge.ConnDown(node, &h.e.Edge)
	h.co.NodeLost(node, why, &h.e)
}
