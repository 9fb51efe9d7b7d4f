package task

import (
	"fmt"
	"slices"

	"github.com/weir-bench/weir/engine/core"
)

// replicas is the part of migrations in which the getting task works alongside the giving one: it has a copy of the key
// groups and is sent, behind the copy, every record that the giver works on, in the giver's order. What it emits for
// them is dropped. At the hand-over it needs no state, only the rest of those records.
type replicas struct {
	mirrors   []int32 // by group: index+1 of the task that is sent its records, 0: none
	mirroring int     // groups with a mirror
	live      []bool  // by group: the copy is here and follows the giver
	lag       []*core.Columns
}

// recordBytes is about what a waiting record takes.
const recordBytes = 32

func (m *replicas) init(groups uint32) {
	m.mirrors, m.live, m.lag = make([]int32, groups), make([]bool, groups), make([]*core.Columns, groups)
}

// mirrorTo begins to send the records of groups to a task.
func (m *replicas) mirrorTo(to int, groups []uint32) {
	for _, g := range groups {
		m.mirrors[g] = int32(to) + 1
		m.mirroring++
	}
}

// mirror sends the records of mirrored groups to the tasks that work alongside.
func (m *moves) mirror(t *Task, cols *core.Columns) {
	if t.w.graph.Job.Bug("mirror-nothing") {
		return
	}
	for i, key := range cols.Keys {
		if to := m.mirrors[core.KeyGroup(key, t.spec.Groups)]; to > 0 {
			t.emit(m.peers[int(to)-1], cols, i)
		}
	}
}

// mirrorsFull says that a task that works alongside is too far behind.
func (m *moves) mirrorsFull(logBound int) bool {
	if m.mirroring == 0 {
		return false
	}
	for _, o := range m.peerList {
		if o.full(logBound) && !o.Held {
			return true
		}
	}
	return false
}

// shadow works on the giver's records: on those of groups whose copy is still on its way when it has come.
func (m *moves) shadow(t *Task, cols *core.Columns) {
	now := &t.w.pass
	now.Reset()
	for i, key := range cols.Keys {
		g := core.KeyGroup(key, t.spec.Groups)
		if m.live[g] {
			now.Append(cols, i)
			continue
		}
		if m.lag[g] == nil {
			m.lag[g] = &core.Columns{}
		}
		m.lag[g].Append(cols, i)
		m.heldBytes += recordBytes
	}
	m.silently(t, now)
}

// silently works on records and drops what comes of them: the giver emits it.
func (m *moves) silently(t *Task, cols *core.Columns) {
	if cols.Len() == 0 {
		return
	}
	t.ctx.Out.Reset()
	t.operate(cols)
	if t.w.graph.Job.Bug("shadow-speaks") {
		t.routeOut()
	}
	t.ctx.Out.Reset()
}

// alive says that a group's copy is here whole: what came behind its cut is worked on now.
func (m *moves) alive(t *Task, group uint32) {
	m.live[group] = true
	if lag := m.lag[group]; lag != nil {
		m.heldBytes -= recordBytes * lag.Len()
		m.lag[group] = nil
		if !t.w.graph.Job.Bug("forget-lag") {
			m.silently(t, lag)
		}
	}
}

// handOver gives groups to the task that has worked alongside: behind the last mirrored record it is told that they are
// its own.
func (m *moves) handOver(t *Task, r *round, to int, groups []uint32, behind []gate) {
	for _, g := range groups {
		if !m.owns[g] || m.mirrors[g] != int32(to)+1 {
			t.fail(fmt.Errorf("route version %d hands over key group %d, which task %d does not mirror", r.version, g, to))
			return
		}
		m.owns[g], m.mirrors[g] = false, 0
		m.mirroring--
		t.keyed.Drop(g)
	}
	m.sending = append(m.sending, &transfer{version: r.version, to: m.peers[to], yours: groups, behind: behind})
	if t.w.graph.Job.Bug("switch-before-level") {
		slices.Reverse(m.sending)
	}
}
