package task

import (
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
)

// edge is the link from a task to one operator that reads it.
type edge struct {
	operator int
	outs     []*Out       // by task index of the reader; one element when forward
	forward  bool         // one to one
	routes   *core.Routes // nil when forward
	groups   uint32
}

func (t *Task) makeOuts(routes []*core.Routes) {
	for _, id := range t.info.Outs {
		c := t.w.graph.Channels[id]
		o := NewOut(c, t.Epoch, 1)
		o.Held, o.hold, o.node = t.Role == core.RoleStandby, holdFor(t.w.graph, c), t.w.Node
		o.shares = o.hold == holdCheckpoint && t.protection.Scope == core.ScopeTask
		o.replays, o.forgets = t.w.graph.Job.Bug("gap-replays"), t.w.graph.Job.Bug("log-forgets-early")
		o.spill = newSpill(t.w, c)
		o.SetReceivers(t.w.receivers(c))
		t.outs = append(t.outs, o)
		t.w.outs[id] = o
		if c.Kind == core.ChanPeer {
			continue
		}
		k := len(t.edges) - 1
		if k < 0 || t.edges[k].operator != c.ToOperator {
			e := edge{operator: c.ToOperator, forward: c.ToOperator < 0}
			if c.ToOperator >= 0 {
				to := &t.w.graph.Job.Operators[c.ToOperator]
				info, _ := operator.Info(to.Kind)
				e.forward = t.w.graph.Forward(t.info.Operator, c.ToOperator, info)
				if !e.forward {
					e.groups = to.Groups
					if e.groups == 0 {
						e.groups = uint32(max(to.Parallelism, 1)) * 16
					}
					e.routes = core.NewRoutes(e.groups, to.Parallelism)
					if r := routes[c.ToOperator]; r != nil {
						e.routes = r.Clone()
					}
				}
			}
			t.edges = append(t.edges, e)
			k++
		}
		t.edges[k].outs = append(t.edges[k].outs, o)
	}
}

// route appends the records of out to the batches of the tasks that own their key groups.
func (t *Task) route(e *edge, out *core.Columns) {
	if e.forward {
		o := e.outs[0]
		for i := range out.Keys {
			t.emit(o, out, i)
		}
		return
	}
	routes, groups, plain := e.routes.Task, uint64(e.groups), len(out.Vals) == 0 && len(out.Off) == 0
	for i, key := range out.Keys {
		o := e.outs[routes[(core.Mix64(key)>>32)*groups>>32]]
		if !plain {
			t.emit(o, out, i)
			continue
		}
		b := o.open
		if b == nil {
			b = o.batch(&t.w.pool)
		}
		b.Keys = append(b.Keys, key)
		b.Times = append(b.Times, out.Times[i])
		if len(b.Keys) >= o.cut {
			t.seal(o)
		}
	}
}

func (t *Task) emit(o *Out, out *core.Columns, i int) {
	b := o.batch(&t.w.pool)
	b.Append(out, i)
	if b.Len() >= o.cut || len(b.Ext) >= maxPayloadBytes {
		t.seal(o)
	}
}

// maxPayloadBytes seals a batch whose payload has grown large.
const maxPayloadBytes = 256 << 10

func (t *Task) seal(o *Out) {
	o.seal()
	t.w.dirty(o)
}

func (t *Task) sendControl(o *Out, c core.Control) {
	o.control(&t.w.pool, c)
	t.w.dirty(o)
}

// broadcast sends a control input on every data and output channel.
func (t *Task) broadcast(c core.Control) {
	for _, o := range t.outs {
		if o.Channel.Kind != core.ChanPeer {
			t.sendControl(o, c)
		}
	}
}
