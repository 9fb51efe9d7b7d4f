package host

import (
	"slices"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/task"
)

// pacer gives the feed its time.
type pacer struct {
	h       *Harness
	due     []uint64
	blocked []uint64 // by split: records up to it had to wait for the job
	before  []uint64
	nextNS  int64 // when Due is asked again
	more    bool
}

const (
	// emitQuantum is how many records are sent before the network is looked at again.
	emitQuantum = 32 << 10
	// emitSpacingNS is the shortest time between two looks at the schedule, so that records go in batches. Each look costs
	// about as much as a wake-up of every process: 200 µs took 0.8 of a core at 20,000 records/s, 400 µs half of it.
	emitSpacingNS = 400e3
	// lagRecords is how many records share one report of lag.
	lagRecords = 64
)

func (p *pacer) init(h *Harness) {
	n := splits(&h.cfg.Job)
	p.h, p.due, p.blocked, p.before = h, make([]uint64, n), make([]uint64, n), make([]uint64, n)
	if h.cfg.Due == nil {
		for s := range p.due {
			p.due[s] = 1<<63 - 1
		}
		p.nextNS = 1<<63 - 1
	}
}

// emit sends what is due and has room, and returns how long the loop may wait for the next record.
func (p *pacer) emit(now int64) (waitNS int64) {
	h := p.h
	if now >= p.nextNS {
		next := int64(h.cfg.Due(time.Duration(now), p.due))
		p.nextNS = max(next, now+emitSpacingNS)
	}
	for s := range p.before {
		p.before[s] = h.edge.Emitted(s)
	}
	from := len(h.e.Edge.Sends)
	p.more = h.edge.Emit(p.due, emitQuantum, &h.e.Edge)
	if h.cfg.OnLag != nil {
		p.report(h.e.Edge.Sends[from:])
	}
	if p.more {
		return 0
	}
	copy(p.blocked, p.due)
	return p.nextNS - now
}

// report tells the lag of records that were sent for the first time and had not been held up by the job.
func (p *pacer) report(sends []task.Send) {
	now, graph := p.h.clock(), p.h.co.Graph()
	for i := range sends {
		b := sends[i].B
		if b.Kind != core.KindRecords {
			continue
		}
		split := graph.Tasks[graph.Channels[b.Channel].To].Index
		for at := 0; at < b.Count; at += lagRecords {
			n := min(lagRecords, b.Count-at)
			if b.First+uint64(at) > max(p.before[split], p.blocked[split]) {
				p.h.cfg.OnLag(now-slices.Min(b.Times[at:at+n]), n)
			}
		}
	}
}

// splits returns how many splits the job's feed has at most.
func splits(job *core.Job) int {
	n := 0
	for _, op := range job.Operators {
		if k, ok := operator.Info(op.Kind); ok && k.Source {
			n = max(n, op.Parallelism)
		}
	}
	return n
}
