package task

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/state"
)

// deploy makes tasks. Unless they join those that are here, these are forgotten whole.
func (w *Worker) deploy(m *core.Msg) error {
	if m.Epoch < w.epoch || m.Epoch == w.epoch && !m.Join {
		return nil // overtaken by a later one
	}
	if m.Epoch > w.epoch {
		graph, err := core.BuildGraph(*m.Job, operator.Info)
		if err != nil {
			return fmt.Errorf("deploy epoch %d: %w", m.Epoch, err)
		}
		w.clear()
		w.graph, w.epoch, w.places = graph, m.Epoch, m.Places
		w.tasks, w.holds = make([]*Task, len(graph.Tasks)), make([]*core.OrderLog, len(graph.Tasks))
		w.ins, w.outs = make([]*In, len(graph.Channels)), make([]*Out, len(graph.Channels))
	} else {
		w.topology(m.Places)
	}
	for _, d := range m.Tasks {
		if old := w.tasks[d.Task]; old != nil {
			if old.Epoch > d.Epoch {
				continue
			}
			w.drop(old)
		}
		t := newTask(w, d, m.Routes)
		t.joining, t.gone = m.Join, m.ID
		w.tasks[d.Task] = t
		at, _ := slices.BinarySearchFunc(w.local, d.Task, func(t *Task, id int) int { return t.info.ID - id })
		w.local = slices.Insert(w.local, at, t)
		if t.moves.active {
			t.moves.own(m.Routes[t.info.Operator].Owned(t.info.Index))
		}
		if err := w.load(t, &d); err != nil {
			return fmt.Errorf("deploy task %d: %w", d.Task, err)
		}
	}
	for _, d := range m.Tasks {
		if t := w.tasks[d.Task]; m.Join && t.Epoch == d.Epoch && !t.loading {
			w.say(core.Msg{Type: core.MsgJoined, Task: d.Task, Epoch: d.Epoch})
		}
	}
	if !m.Join {
		w.deployed()
	}
	return nil
}

// load asks for the state that a task begins with, if it is not empty.
func (w *Worker) load(t *Task, d *core.Deployment) error {
	r := LoadRequest{Task: d.Task, Epoch: d.Epoch, Checkpoint: d.Restore, Into: t.keyed}
	switch {
	case d.Base != nil:
		return t.upstream.resume(t, d.Base)
	case d.Cold && t.protection.Standby():
		return nil // it is shipped
	case d.Restore > 0 && d.Alone:
		r.WantMeta = true
		if t.keyed != nil {
			r.From, r.Want = []int{d.Task}, make([]bool, t.spec.Groups)
			for g := range r.Want {
				r.Want[g] = true // its file holds what it owned
			}
		}
	case d.Restore > 0 && (t.moves.active || w.graph.Job.Unaligned):
		r.From, r.Want = d.RestoreFrom, t.moves.owns
	case operator.Preload(t.spec) > 0:
		r.Want, r.Preload = t.moves.owns, operator.Preload(t.spec)
	default:
		return nil
	}
	t.loading = true
	w.e.Loads = append(w.e.Loads, r)
	return nil
}

// Loaded says that what r asks for was loaded, or why not.
func (w *Worker) Loaded(r *LoadRequest, err error, e *Effects) {
	w.e = e
	t := w.task(r.Task, r.Epoch)
	if t == nil {
		return
	}
	t.loading = false
	if err == nil && r.WantMeta {
		err = t.standAt(r.Meta)
	} else if err == nil {
		err = t.restoreInFlight(r.InFlight)
	}
	if err != nil {
		w.say(core.Msg{Type: core.MsgTaskFailed, Task: r.Task, Epoch: r.Epoch, Err: err.Error()})
		return
	}
	if t.upstream != nil {
		t.upstream.loaded(t)
	}
	w.say(core.Msg{Type: core.MsgRestored, Task: r.Task, Epoch: r.Epoch})
	if t.joining {
		w.say(core.Msg{Type: core.MsgJoined, Task: r.Task, Epoch: r.Epoch})
		return
	}
	w.deployed()
}

// deployed tells when all tasks of the deployment are ready.
func (w *Worker) deployed() {
	for _, t := range w.local {
		if t.loading {
			return
		}
	}
	w.say(core.Msg{Type: core.MsgDeployed, Epoch: w.epoch})
}

func (t *Task) standAt(meta []byte) error {
	var m Meta
	if err := json.Unmarshal(meta, &m); err != nil {
		return fmt.Errorf("position of task %d: %w", t.info.ID, err)
	}
	if m.Task != t.info.ID || len(m.Position.In) != len(t.ins) || len(m.Position.Out) != len(t.outs) ||
		len(m.Flow.Ended) != len(t.ins) || len(m.Flow.Watermarks) != len(t.ins) || len(m.Flow.Routes) != len(t.edges) {
		return fmt.Errorf("position of task %d with %d inputs and %d outputs: it is of task %d with %d and %d",
			t.info.ID, len(t.ins), len(t.outs), m.Task, len(m.Position.In), len(m.Position.Out))
	}
	t.stand(&m)
	return nil
}

func (w *Worker) clear() {
	for _, s := range w.snapshots {
		if s.snap != nil {
			s.snap.Release()
		}
	}
	w.snapshots = w.snapshots[:0]
	for _, t := range w.local {
		t.close()
	}
	for _, a := range w.inbox {
		a.b.Release()
	}
	w.local, w.dirtyO, w.gated, w.inbox = nil, nil, nil, nil
}

// drop forgets one task. Its snapshots stay until they are written: they are being read.
func (w *Worker) drop(t *Task) {
	w.inbox = slices.DeleteFunc(w.inbox, func(a arrival) bool {
		if gone := a.in.Channel.To == t.info.ID; gone {
			a.b.Release()
			return true
		}
		return false
	})
	of := func(o *Out) bool { return o.Channel.From == t.info.ID }
	w.dirtyO, w.gated = slices.DeleteFunc(w.dirtyO, of), slices.DeleteFunc(w.gated, of)
	t.close()
	for _, id := range t.info.Ins {
		w.ins[id] = nil
	}
	for _, id := range t.info.Outs {
		w.outs[id] = nil
	}
	w.tasks[t.info.ID] = nil
	w.local = slices.DeleteFunc(w.local, func(x *Task) bool { return x == t })
}

// start lets the tasks of a deployment run, or those named that have joined it: their senders are told what to send.
func (w *Worker) start(m *core.Msg) {
	if m.Epoch != w.epoch && !m.Join {
		return
	}
	for _, t := range w.local {
		if t.Epoch != m.Epoch || t.joining != m.Join {
			continue
		}
		if m.Join && !slices.ContainsFunc(m.Tasks, func(d core.Deployment) bool { return d.Task == t.info.ID }) {
			continue
		}
		t.running = !t.onlyBase()
		for _, in := range t.ins {
			in.gap = in.gap || m.Join && in.Channel.From >= 0 // the sender may not be there yet
			w.askAgain(in)
		}
	}
}

// install applies chunks of keyed state.
func install(into state.Keyed, chunks [][]byte) error {
	for _, c := range chunks {
		group, err := state.ChunkGroup(c)
		if err == nil {
			err = into.Install(group, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
