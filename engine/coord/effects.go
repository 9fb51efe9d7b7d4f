package coord

import (
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/task"
)

// ToNode is a control-plane message for a worker.
type ToNode struct {
	Node int
	Msg  core.Msg
}

// Complete asks the world to make a checkpoint complete (write its manifest) and to answer with CheckpointDurable.
type Complete struct {
	Checkpoint uint64
	// Files are what the tasks said of their files, by task.
	Files [][]byte
	// Meta is the coordinator's own record, given back by Chosen.
	Meta   []byte
	Retain int
}

// Trace is something that happened, for the record.
type Trace struct {
	Kind   string
	AtNS   int64
	Node   int
	Task   int
	ID     uint64
	Bytes  int64
	Count  uint64
	Detail string
	// Round is set in TraceRoundTask and TraceSuspended.
	Round *core.RoundReport
}

// The kinds of traces that measurements are made from.
const (
	TraceWorkerUp      = "worker-up"
	TraceStarted       = "started"
	TraceDetected      = "failure-detected"
	TraceRestartEnd    = "restart-end" // the tasks have a place to run again
	TraceRestored      = "restored"
	TracePromoted      = "promoted"
	TraceReplayed      = "replayed"
	TraceUnprotected   = "standby-lost"
	TraceCheckpoint    = "checkpoint-begin"
	TraceComplete      = "checkpoint-complete"
	TraceAborted       = "checkpoint-aborted"
	TraceSnapshot      = "snapshot"
	TraceMigration     = "migration-begin"
	TraceCopy          = "copy-begin"
	TraceRound         = "round-begin"
	TraceRoundDone     = "round-done"
	TraceRoundTask     = "round-task"    // a task's part in a round, with what waited for it worked on
	TraceMigrated      = "migration-end" // every key group is with its new owner
	TraceSuspended     = "suspended"     // how long a task was blocked by the migration, in all
	TraceMigrationLost = "migration-rolled-back"
	TraceTaskFailed    = "task-failed"
	TraceSkipped       = "checkpoint-skipped"        // a damaged one was passed over
	TraceCommitLost    = "committed-checkpoint-lost" // its outputs are visible and will come again
	TraceRestoring     = "restoring"                 // a copy of a lost task is deployed and loads its state
	TraceReplaying     = "replaying"                 // it repeats what is known of the lost one's order
	TraceTakenOver     = "taken-over"                // all lost tasks have a successor that runs
	TraceProtected     = "protected"                 // a standby that was made in the background stands by
	TraceCut           = "snapshot-taken"            // by a task, not durable yet
	TraceLogBound      = "log-bound"                 // a task's log has reached its bound
	TraceSpill         = "spill-begin"               // Bytes: a task's sender logs have something on disk
	TraceSpillEnd      = "spill-end"                 // Bytes: the most there was on disk; now there is nothing
	TraceFallback      = "fallback"                  // a protected job rolls back: more failed than its standbys cover
)

// Effects is what a step of the coordinator asks of the world. The caller owns it and reuses it.
type Effects struct {
	// Edge are the frames of feed, control and acks.
	Edge task.Effects
	Msgs []ToNode
	// Spawns are the nodes to start, and Complete the checkpoints to make complete.
	Spawns   []int
	Complete []Complete
	// Choose asks the world for the newest usable checkpoint; it answers with Chosen.
	Choose bool
	Traces []Trace
	// Fatal ends the job.
	Fatal error
}

// Reset empties e and keeps its memory.
func (e *Effects) Reset() {
	e.Edge.Reset()
	clear(e.Msgs)
	e.Msgs, e.Spawns, e.Complete, e.Traces, e.Fatal = e.Msgs[:0], e.Spawns[:0], e.Complete[:0], e.Traces[:0], nil
	e.Choose = false
}
