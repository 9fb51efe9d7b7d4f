package task

import "github.com/weir-bench/weir/engine/core"

// Order logs travel ahead of outputs: before a worker sends anything to another node, it sends that node, on the same
// connection, the new part of the order log of every task here that has a standby. So whoever saw an output also holds
// the order that produced it, and that of every task upstream of it in the same worker, which would die with it. When
// a worker is lost, the longest held part is what its standbys replay (causal logging with the worker as the unit of
// failure; compare Silvestre et al., "Clonos", SIGMOD 2021).

// maxOrderRuns bounds what is held of a task's order log. The standby is milliseconds behind, so the newest part is
// what its promotion needs; if it ever needs more, the promotion fails with a gap and the job rolls back instead.
const maxOrderRuns = 64 << 10

// orderRunBytes is what a run takes in memory.
const orderRunBytes = 16

// orderTo sends node what it has not been sent of the order of the tasks here.
func (w *Worker) orderTo(node int) {
	for _, t := range w.local {
		if !t.logOrder || t.Role != core.RolePrimary || w.graph.Job.Bug("order-to-standby-only") && !w.standbyOf(t, node) {
			continue
		}
		for len(t.toOrder) <= node {
			t.toOrder = append(t.toOrder, 0)
		}
		after := max(t.toOrder[node], t.order.From())
		if after == t.order.To() {
			continue
		}
		b := w.pool.Get()
		b.Kind, b.Channel, b.Epoch = core.KindOrder, t.info.Ins[0], t.Epoch
		b.First, b.OrderAfter = t.hasOrder, after
		b.Order = t.order.AppendSince(b.Order[:0], after)
		w.e.Sends = append(w.e.Sends, Send{node, b})
		t.toOrder[node] = t.order.To()
	}
}

// sayDone tells the coordinator that a task's part of a migration is done, behind the order that led to it: what the
// coordinator begins next must not meet a standby that took over before that part.
func (w *Worker) sayDone(m *core.Msg) {
	if !w.graph.Job.Bug("done-ahead-of-order") {
		w.orderTo(Harness)
	}
	w.say(*m)
}

func (w *Worker) standbyOf(t *Task, node int) bool {
	p, _ := w.place(t.info.ID)
	return p.Standby == node
}

// orderToStandbys keeps standbys going and trims what they have.
func (w *Worker) orderToStandbys() {
	for _, t := range w.local {
		if !t.logOrder {
			continue
		}
		if t.Role != core.RolePrimary {
			t.order.Trim(t.order.To()) // the primary has it
			continue
		}
		if p, _ := w.place(t.info.ID); !t.protection.Standby() {
			if w.graph.Job.Bug("order-not-held") {
				t.hasOrder = t.order.To()
			}
		} else if p.Standby >= 0 {
			w.orderTo(p.Standby)
		} else {
			t.hasOrder = t.order.To()
		}
		t.order.Trim(min(t.hasOrder, t.order.To()))
		if over := w.overBound(t.info.ID, &t.order); over > 0 {
			t.order.Trim(over)
			t.hasOrder = t.order.From()
			t.orderBounds++
		}
	}
}

// overBound returns up to where a task's order must be forgotten so that what is held stays within its bound, 0 when it does.
func (w *Worker) overBound(task int, l *core.OrderLog) uint64 {
	bound := maxOrderRuns
	if !w.graph.Protection(task).Standby() { // it is held from a base on, which may be seconds ago
		bound = max(w.graph.Job.OrderBytes()/orderRunBytes, 2)
	}
	runs := l.Runs()
	if len(runs) <= bound {
		return 0
	}
	n := l.From()
	for _, r := range runs[:len(runs)/2] {
		n += r.N
	}
	return n
}

// orderLost says that what was sent to node may not have arrived.
func (w *Worker) orderLost(node int) {
	for _, t := range w.local {
		if node < len(t.toOrder) {
			t.toOrder[node] = t.hasOrder
		}
	}
}

// sendOrderHave tells the primary how much of its order the standby has.
func (w *Worker) sendOrderHave(t *Task) {
	p, _ := w.place(t.info.ID)
	b := w.pool.Get()
	b.Kind, b.Channel, b.Epoch, b.OrderAfter = core.KindOrder, t.info.Ins[0], t.Epoch, t.follow.To()
	w.e.Sends = append(w.e.Sends, Send{p.Node, b})
}

// orderFrame takes a part of an order log, or at a primary its standby's word of how much it has. The frame is told by
// the task's control channel.
func (w *Worker) orderFrame(b *core.Batch) {
	c := w.graph.Channels[b.Channel]
	if c.Kind != core.ChanControl {
		return
	}
	t := w.tasks[c.To]
	switch {
	case t == nil:
		w.hold(c.To, b)
	case b.Epoch != t.Epoch:
	case t.Role == core.RolePrimary:
		t.hasOrder = max(t.hasOrder, min(b.OrderAfter, t.order.To()))
	default:
		if t.cold && b.OrderAfter > t.follow.To() {
			t.follow.Reset(b.OrderAfter) // of before the primary knew of the standby; its base will not be older
		}
		if err := t.follow.Merge(b.OrderAfter, b.Order); err != nil {
			w.sendOrderHave(t)
		}
	}
}

// hold keeps the newest connected part of a task's order.
func (w *Worker) hold(task int, b *core.Batch) {
	if p, _ := w.place(task); b.Epoch != p.Epoch {
		return // of a fenced or not yet known deployment
	}
	h := w.holds[task]
	if h == nil {
		h = &core.OrderLog{}
		h.Reset(b.OrderAfter)
		w.holds[task] = h
	}
	if err := h.Merge(b.OrderAfter, b.Order); err != nil {
		h.Reset(b.OrderAfter)
		if err := h.Merge(b.OrderAfter, b.Order); err != nil {
			h.Reset(b.OrderAfter) // damaged: held from here on
		}
	}
	h.Trim(min(b.First, h.To()))
	if over := w.overBound(task, h); over > 0 {
		h.Trim(over)
	}
}
