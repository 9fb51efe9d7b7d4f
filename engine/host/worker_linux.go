package host

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"

	"golang.org/x/sys/unix"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// WorkerMain is the whole life of a worker process, or of an embedded store, from the launch in its environment until the
// harness is gone. It returns the process's exit code; what went wrong is on standard error. open opens the place of
// checkpoints; nil: folders only.
func WorkerMain(open storage.Opener) int {
	if os.Getenv(storeVariable) != "" {
		return storeMain()
	}
	l, err := launched()
	if err == nil {
		err = runWorker(l, open)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

// workerHost is the event loop of a worker process.
type workerHost struct {
	launch    *launch
	clock     func() int64
	fab       *fabric
	w         *task.Worker
	e         task.Effects
	disk      *disk
	external  *external
	spiller   *spiller // nil: sender logs stay in memory
	memory    *memory
	heartbeat int64 // ns
	tickNS    int64
	turns     uint64
	cutOff    bool // the harness is gone
}

func runWorker(l *launch, open storage.Opener) error {
	runtime.LockOSThread()
	runtime.GOMAXPROCS(2) // the loop, and disks or the collector beside it
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("ask to die with the harness: %w", err)
	}
	preciseTimers()
	aheadOfOthers()
	mem := newMemory(l.MemoryBytes)
	defer mem.close()
	h := &workerHost{launch: l, clock: newClock(l.BaseNS), heartbeat: int64(core.Job{}.WithDefaults().Heartbeat)}
	h.disk = newDisk(l, open)
	h.external = newExternal()
	defer h.external.close()
	h.w, h.memory = task.NewWorker(l.Node, h.clock), mem
	h.w.Give = giveBack
	if l.StateDir != "" {
		h.w.OpenState = h.openState
	}
	var err error
	if l.SpillDir != "" {
		if h.spiller, err = newSpiller(l.SpillDir, l.Node, h.disk); err != nil {
			return err
		}
		defer h.spiller.close()
	}
	if h.fab, err = newFabric(l.Node, l.Token, l.Listen, h.clock, h, h.w.Pool()); err != nil {
		return err
	}
	defer h.fab.close()
	if l.ProfileDir != "" {
		stop, err := profile(filepath.Join(l.ProfileDir, fmt.Sprintf("worker-%d.cpu.pprof", l.Node)))
		if err != nil {
			return err
		}
		defer stop()
	}
	h.fab.setAddr(task.Harness, l.Harness)
	h.fab.sendMessage(task.Harness, machineChannel, h.w.Hello(h.fab.addr))
	h.loop()
	return nil
}

// profile records where the processor's time goes until stop is called.
func profile(path string) (stop func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("processor profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("processor profile %s: %w", path, err)
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "worker: processor profile:", err)
		}
	}, nil
}

func (h *workerHost) loop() {
	timeout := int64(0)
	for !h.cutOff {
		h.turns++
		h.fab.turn(timeout)
		now := h.clock()
		if now >= h.tickNS {
			h.tickNS = now + h.heartbeat
			h.w.Tick(&h.e)
		}
		h.w.Run(&h.e)
		if h.e.BusyNS > 0 {
			h.burn(h.e.BusyNS)
		}
		timeout = h.perform()
		h.fab.flush()
	}
}

// burn keeps the core busy: the service time of ServiceBusy is real work for the machine, if senseless work.
func (h *workerHost) burn(ns int64) {
	for until := h.clock() + ns; h.clock() < until; {
	}
}

// perform carries out the effects and returns how long the loop may wait.
func (h *workerHost) perform() (timeoutNS int64) {
	e := &h.e
	for i := range e.Sends {
		s := &e.Sends[i]
		h.fab.send(s.Node, s.B)
		s.B.Release()
	}
	for i := range e.Msgs {
		h.fab.sendMessage(task.Harness, machineChannel, &e.Msgs[i])
	}
	for _, r := range e.Snapshots {
		h.snapshot(r)
	}
	for _, r := range e.Loads {
		h.load(r)
	}
	for _, r := range e.Reads {
		h.readState(r)
	}
	for _, r := range e.Writes {
		h.writeState(r)
	}
	for _, r := range e.Segments {
		h.spiller.do(r, h.segmentDone)
	}
	if e.FreedBytes > 0 {
		h.memory.freed.Add(e.FreedBytes)
	}
	now := h.clock()
	timeoutNS = h.tickNS - now
	if e.WakeNS > 0 {
		timeoutNS = min(timeoutNS, e.WakeNS-now)
	}
	if e.More {
		timeoutNS = 0
	}
	e.Reset()
	return h.fab.timeout(now, max(timeoutNS, 0))
}

func (h *workerHost) snapshot(r task.SnapshotRequest) {
	h.disk.snapshot(r, func(file []byte, bytes int64, err error) {
		h.fab.poll.post(func() { h.w.SnapshotDone(r.Task, r.Epoch, r.Checkpoint, file, bytes, err, &h.e) })
	})
}

func (h *workerHost) load(r task.LoadRequest) {
	h.disk.load(r, func(r task.LoadRequest, err error) {
		h.fab.poll.post(func() { h.w.Loaded(&r, err, &h.e) })
	})
}

func (h *workerHost) readState(r task.ReadRequest) {
	h.external.read(r, func(values []byte, err error) {
		h.fab.poll.post(func() { h.w.StateRead(&r, values, err, &h.e) })
	})
}

func (h *workerHost) segmentDone(r task.SegmentRequest, err error) {
	h.fab.poll.post(func() { h.w.SegmentDone(&r, err, &h.e) })
}

func (h *workerHost) writeState(r task.WriteRequest) {
	h.external.write(r, func(err error) {
		h.fab.poll.post(func() { h.w.StateWritten(&r, err, &h.e) })
	})
}

func (h *workerHost) frame(node int, b *core.Batch) {
	if b.Kind != core.KindMessage {
		h.w.Frame(b, &h.e)
		return
	}
	if node != task.Harness {
		return // only the harness gives orders
	}
	if b.Channel == hostChannel {
		var m hostMsg
		if err := json.Unmarshal(b.Ext, &m); err == nil {
			h.order(&m)
		}
		return
	}
	m := new(core.Msg)
	if err := json.Unmarshal(b.Ext, m); err != nil {
		fmt.Fprintln(os.Stderr, "worker: message of the harness:", err)
		return
	}
	if m.Type == core.MsgDeploy && !m.Join {
		h.disk.settle() // the machine drops the snapshots that it had asked for
		h.external.settle()
		if m.Job != nil && m.Job.Heartbeat > 0 {
			h.heartbeat = int64(m.Job.Heartbeat)
			h.tickNS = min(h.tickNS, h.clock()+h.heartbeat)
		}
	}
	h.w.Message(m, &h.e)
}

func (h *workerHost) order(m *hostMsg) {
	switch m.Type {
	case hostPeers:
		for node := range h.fab.links {
			if _, there := m.Addrs[node]; !there && node != task.Harness {
				h.fab.setAddr(node, "")
			}
		}
		for node, addr := range m.Addrs {
			if node != h.w.Node && node != task.Harness {
				h.fab.setAddr(node, addr)
			}
		}
	case hostAsk:
		h.fab.sendMessage(task.Harness, hostChannel, hostMsg{Type: hostMetrics, Node: h.w.Node, Request: m.Request, Metrics: h.measure()})
	}
}

func (h *workerHost) measure() *WorkerMetrics {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return &WorkerMetrics{LoopCPUNS: threadCPUNS(), BatchesMade: h.w.Pool().Made, Mallocs: mem.Mallocs, Turns: h.turns,
		Wire: h.fab.metrics, HeapMB: int64(mem.HeapAlloc >> 20),
		Disk: DiskMetrics{WrittenBytes: h.disk.written.Load(), ReadBytes: h.disk.read.Load()}}
}

func (h *workerHost) up(node int) {
	if node != task.Harness {
		h.w.ConnUp(node, &h.e)
	}
}

func (h *workerHost) linked(node int) { h.w.LinkUp(node, &h.e) }

func (h *workerHost) lost(node int, _ string) {
	if node == task.Harness {
		h.cutOff = true
	}
}

func (h *workerHost) unlinked(node int, _ string) {
	if node == task.Harness {
		h.cutOff = true
		return
	}
	h.w.ConnDown(node, &h.e)
}

// openState makes a task's state on disk.
func (h *workerHost) openState(spec *state.PagedSpec) (state.Paged, error) {
	return openStateIn(h.launch.StateDir, h.launch.Node, spec)
}
