package core

import (
	"fmt"
	"time"
)

// ServiceMode says how a record's service time is spent.
type ServiceMode string

// The service modes.
const (
	ServiceNone  ServiceMode = ""
	ServiceBusy  ServiceMode = "busy"  // burns the core
	ServiceTimed ServiceMode = "timed" // the task is occupied, the core is not
)

// Service is the service time of a record.
type Service struct {
	Mode ServiceMode
	// Distribution is constant, exponential or lognormal; or ByRecord: the value column says it, see Profile.
	Distribution string
	Mean         time.Duration
	// Sigma is the shape of a log-normal service time (standard deviation of its logarithm).
	Sigma float64
}

// ByRecord is the distribution of service times that come with the records.
const ByRecord = "record"

// Profile packs what a record's key asks of a keyed operator into a value: a service time (up to 4.29 s) and a state size
// (up to 4 GiB).
func Profile(service time.Duration, stateBytes int) int64 {
	return int64(min(max(service, 0), 1<<32-1))<<32 | int64(min(max(stateBytes, 0), 1<<32-1))
}

// ProfileService and ProfileState unpack a Profile.
func ProfileService(v int64) time.Duration { return time.Duration(uint64(v) >> 32) }

// ProfileState returns the state size in bytes.
func ProfileState(v int64) int { return int(uint32(v)) }

// OperatorSpec describes one operator of a job.
type OperatorSpec struct {
	Name        string
	Kind        string
	Inputs      []string
	Parallelism int
	// Groups is the number of key groups of a keyed operator; 0 for others.
	Groups uint32
	// ValueBytes is the state size of a key.
	ValueBytes int
	Service    Service
	// Store is the URL of the external store that keeps the operator's state; empty: the tasks keep it. StoreCacheBytes
	// bounds what one task keeps of it besides, keys and values; 0: 64 MiB.
	Store           string
	StoreCacheBytes int64
	// Backend is where the tasks keep their state: BackendHeap (also ""), in memory, or BackendPebble, on disk, with at most
	// StoreCacheBytes of it in memory.
	Backend string
	// Recovery is the fault-tolerance strategy of the operator's tasks, TaskRecovery where it is given that of each task
	// (an empty one: the operator's). Scope is how much rolls back where it is checkpoint; empty: the whole job.
	Recovery     string
	TaskRecovery []string
	Scope        string
	// Transactional makes a sink hold its outputs back until the checkpoint that covers them is complete.
	Transactional bool
	// Place lists the worker slot (from 0) of each task; empty: task i on slot i mod workers.
	Place []int
	// StandbyPlace lists the worker slot of each task's standby; empty: the one after the task's.
	StandbyPlace []int
	// Params are the operator's own parameters.
	Params map[string]string
}

// The backends of keyed state.
const (
	BackendHeap   = "heap"
	BackendPebble = "pebble"
)

// Job is a dataflow: operators in an order in which every input comes before its reader.
type Job struct {
	ID        string
	Seed      uint64
	Workers   int
	Operators []OperatorSpec
	// Checkpoint is the interval between checkpoints; 0: none.
	Checkpoint time.Duration
	// CheckpointTimeout aborts a checkpoint that takes longer.
	CheckpointTimeout time.Duration
	// Retain is how many complete checkpoints are kept.
	Retain int
	// Incremental lets a checkpoint write only what changed since the last complete one of a task; every FullEvery-th one
	// (0: 10) is whole all the same. Of state on disk it writes the tables that are not in storage yet, always.
	Incremental bool
	FullEvery   int
	// Unaligned lets barriers pass without blocking a channel: what is under way between them is part of the checkpoint, up
	// to InFlightBytes a task (0: 64 MiB), beyond which the checkpoint is aborted.
	Unaligned     bool
	InFlightBytes int
	// Heartbeat and Lease: a worker reports at least each Heartbeat and is declared lost after a silence of Lease.
	Heartbeat, Lease time.Duration
	// WindowRecords bounds the inputs under way in one channel; WindowDelay is the queueing delay that the adaptive
	// window aims at.
	WindowRecords int
	WindowDelay   time.Duration
	// LogBytes bounds one channel's sender log in memory, and what is held of one task's order log (see OrderBytes); at least
	// MinLogBytes.
	LogBytes int
	// SpillBytes bounds what of one channel's sender log goes to disk when it does not fit into memory; 0: nothing does.
	SpillBytes int64 `json:",omitempty"`
	// Ship is the interval at which strategy passive ships state to the standby.
	Ship time.Duration
	// MaxRestarts is how often the job may recover without having run for a while in between.
	MaxRestarts int
	// ChunkBytes is the size of a state chunk.
	ChunkBytes int
	// Bugs names planted bugs (tests only): deliberately broken variants that a named check must catch.
	Bugs []string
}

// MinLogBytes is the smallest bound of a log: senders cut batches to no less than 16 records, and these have 64 bytes each with a short payload.
const MinLogBytes = 16 * 64

// OrderBytes bounds what is held of one task's order log. With room on disk for sender logs it is a sixteenth of that when that
// is more: a run of an order takes 16 bytes, and is of a batch at least, which takes some hundreds.
func (j *Job) OrderBytes() int { return max(j.LogBytes, int(j.SpillBytes/16)) }

// Bug says whether a planted bug is switched on.
func (j *Job) Bug(name string) bool {
	for _, b := range j.Bugs {
		if b == name {
			return true
		}
	}
	return false
}

// WithDefaults fills what is left at zero.
func (j Job) WithDefaults() Job {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	num := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	def(&j.CheckpointTimeout, 10*time.Second)
	def(&j.Heartbeat, 50*time.Millisecond)
	def(&j.Lease, 500*time.Millisecond)
	def(&j.WindowDelay, 100*time.Millisecond)
	def(&j.Ship, 500*time.Millisecond)
	num(&j.MaxRestarts, 50)
	num(&j.Retain, 2)
	num(&j.FullEvery, 10)
	num(&j.InFlightBytes, 64<<20)
	num(&j.WindowRecords, 128<<10)
	num(&j.LogBytes, 64<<20)
	num(&j.ChunkBytes, 256<<10)
	num(&j.Workers, 1)
	return j
}

// The tasks outside workers: they live on node 0, the harness.
const (
	Feed        = -1
	Collector   = -2
	Coordinator = -3
)

// ChannelKind says what a channel is for.
type ChannelKind uint8

// The kinds of channels.
const (
	ChanFeed    ChannelKind = 1 + iota // feed → source task
	ChanControl                        // coordinator → task
	ChanData                           // task → task
	ChanPeer                           // task → task of the same keyed operator, for moving state
	ChanOut                            // sink task → collector
)

// Channel is a numbered, first-in-first-out stream between two tasks.
type Channel struct {
	ID       int
	Kind     ChannelKind
	From, To int // task ids, or Feed, Collector, Coordinator
	// ToOperator is the operator of To, -1 for the collector.
	ToOperator int
}

// TaskInfo is a task of the graph.
type TaskInfo struct {
	ID, Operator, Index int
	// Slot is the worker slot the task is placed on.
	Slot int
	// Ins and Outs are channel ids. The position in Ins is the task's input number in its order log: control first, then
	// feed and data by channel id, then peers.
	Ins, Outs []int
}

// Graph is a job spelled out: every task and channel, numbered the same way wherever it is built.
type Graph struct {
	Job      Job
	Tasks    []TaskInfo
	Channels []Channel
	// OpTasks are the task ids of each operator.
	OpTasks [][]int
}

// KindInfo is what the graph needs to know of an operator kind.
type KindInfo struct {
	Source, Sink, Keyed bool
}

// BuildGraph spells out job. kinds tells the kind of an operator by its name.
func BuildGraph(job Job, kinds func(kind string) (KindInfo, bool)) (*Graph, error) {
	g := &Graph{Job: job.WithDefaults()}
	index := map[string]int{}
	for i, op := range job.Operators {
		k, ok := kinds(op.Kind)
		if !ok {
			return nil, fmt.Errorf("operator %s: unknown kind %q", op.Name, op.Kind)
		}
		if err := checkOperator(&job, &op, k, index); err != nil {
			return nil, err
		}
		index[op.Name] = i
		ids := make([]int, op.Parallelism)
		for t := range ids {
			ids[t] = len(g.Tasks)
			slot := t % g.Job.Workers
			if len(op.Place) > 0 {
				slot = op.Place[t]
			}
			g.Tasks = append(g.Tasks, TaskInfo{ID: ids[t], Operator: i, Index: t, Slot: slot})
		}
		g.OpTasks = append(g.OpTasks, ids)
	}
	for id := range g.Tasks {
		g.link(ChanControl, Coordinator, id)
	}
	for i := range job.Operators {
		g.linkOperator(i, index, kinds)
	}
	for i, op := range job.Operators {
		if k, _ := kinds(op.Kind); k.Keyed {
			for _, a := range g.OpTasks[i] {
				for _, b := range g.OpTasks[i] {
					if a != b {
						g.link(ChanPeer, a, b)
					}
				}
			}
		}
	}
	return g, nil
}

func checkOperator(job *Job, op *OperatorSpec, k KindInfo, index map[string]int) error {
	if _, dup := index[op.Name]; dup || op.Name == "" {
		return fmt.Errorf("operator %q: the name is empty or taken", op.Name)
	}
	if op.Parallelism < 1 {
		return fmt.Errorf("operator %s: parallelism %d, want at least 1", op.Name, op.Parallelism)
	}
	if k.Keyed && (op.Groups < uint32(op.Parallelism) || op.Groups > 1<<20) {
		return fmt.Errorf("operator %s: %d key groups for %d tasks, want at least one a task and at most %d", op.Name, op.Groups, op.Parallelism, 1<<20)
	}
	if k.Source != (len(op.Inputs) == 0) {
		return fmt.Errorf("operator %s: a %s has %d inputs", op.Name, op.Kind, len(op.Inputs))
	}
	for _, in := range op.Inputs {
		if _, ok := index[in]; !ok {
			return fmt.Errorf("operator %s: input %q is not an operator before it", op.Name, in)
		}
	}
	if err := op.checkProtection(); err != nil {
		return err
	}
	switch {
	case op.Backend != "" && op.Backend != BackendHeap && op.Backend != BackendPebble:
		return fmt.Errorf("operator %s: backend %q, want %s or %s", op.Name, op.Backend, BackendHeap, BackendPebble)
	case op.Backend == BackendPebble && !k.Keyed:
		return fmt.Errorf("operator %s: backend %s, but a %s keeps no state", op.Name, op.Backend, op.Kind)
	case op.Backend == BackendPebble && op.Store != "":
		return fmt.Errorf("operator %s: backend %s and an external store, want one of them", op.Name, op.Backend)
	}
	if len(op.Place) > 0 && len(op.Place) != op.Parallelism {
		return fmt.Errorf("operator %s: %d places for %d tasks", op.Name, len(op.Place), op.Parallelism)
	}
	if err := op.checkStandbys(max(job.Workers, 1)); err != nil {
		return err
	}
	for _, p := range op.Place {
		if p < 0 || p >= max(job.Workers, 1) {
			return fmt.Errorf("operator %s: place %d, want 0 to %d", op.Name, p, job.Workers-1)
		}
	}
	return nil
}

func (g *Graph) linkOperator(i int, index map[string]int, kinds func(string) (KindInfo, bool)) {
	op := &g.Job.Operators[i]
	k, _ := kinds(op.Kind)
	for _, in := range op.Inputs {
		from := g.OpTasks[index[in]]
		for fi, f := range from {
			for ti, t := range g.OpTasks[i] {
				if g.Forward(index[in], i, k) && fi != ti {
					continue
				}
				g.link(ChanData, f, t)
			}
		}
	}
	for _, t := range g.OpTasks[i] {
		if k.Source {
			g.link(ChanFeed, Feed, t)
		}
		if k.Sink {
			g.link(ChanOut, t, Collector)
		}
	}
}

// Forward says whether the edge between two operators is one to one: the reader is not keyed and as parallel as its input.
func (g *Graph) Forward(from, to int, k KindInfo) bool {
	return !k.Keyed && g.Job.Operators[from].Parallelism == g.Job.Operators[to].Parallelism
}

func (g *Graph) link(kind ChannelKind, from, to int) {
	c := Channel{ID: len(g.Channels), Kind: kind, From: from, To: to, ToOperator: -1}
	if to >= 0 {
		c.ToOperator = g.Tasks[to].Operator
		g.Tasks[to].Ins = append(g.Tasks[to].Ins, c.ID)
	}
	if from >= 0 {
		g.Tasks[from].Outs = append(g.Tasks[from].Outs, c.ID)
	}
	g.Channels = append(g.Channels, c)
}

// TaskName is how people read a task: operator[index].
func (g *Graph) TaskName(id int) string {
	switch id {
	case Feed:
		return "feed"
	case Collector:
		return "collector"
	case Coordinator:
		return "coordinator"
	}
	t := g.Tasks[id]
	return fmt.Sprintf("%s[%d]", g.Job.Operators[t.Operator].Name, t.Index)
}
