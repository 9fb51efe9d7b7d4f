package core

import (
	"encoding/json"
	"time"
)

// MsgType names a control-plane message.
type MsgType string

// Messages from the coordinator to workers.
const (
	MsgDeploy         MsgType = "deploy"          // Deploy: make tasks and channels; restore their state. Join: beside those that run. ID: nobody waits for the barriers of checkpoints up to it
	MsgStart          MsgType = "start"           // Epoch: deployed tasks of that epoch begin. Join, Tasks: these, which have joined
	MsgTopology       MsgType = "topology"        // Places: where tasks are now; fences older epochs. ID > 0: answer with MsgHeld
	MsgFence          MsgType = "fence"           // Epoch, Places: refuse, from one moment on, what older deployments of these tasks send; answer MsgFenced for each
	MsgPromote        MsgType = "promote"         // Task, Epoch, Order, Received: the standby becomes the primary
	MsgCheckpointDone MsgType = "checkpoint-done" // ID, Cuts: the checkpoint is complete
	MsgShip           MsgType = "ship"            // Task, Epoch: ship the whole state to the standby that is being built
	MsgBaseKept       MsgType = "base-kept"       // Task, Epoch, ID: the base is kept; what lies before it may be forgotten
	MsgCheckpointGone MsgType = "checkpoint-gone" // ID: the checkpoint was given up; nobody waits for its barriers any more
	MsgLift           MsgType = "lift"            // Task, ID: its logs have no bound until it has passed on the barriers of the checkpoint
	MsgLiftMove       MsgType = "lift-move"       // Task: its logs have no bound, as a migration is under way, until MsgLower
	MsgLower          MsgType = "lower"           // Task: they have it again
)

// Messages from workers to the coordinator.
const (
	MsgHello      MsgType = "hello"     // Node, Addr: a worker is there
	MsgDeployed   MsgType = "deployed"  // Epoch: all tasks of the deployment are ready
	MsgFenced     MsgType = "fenced"    // Task, Epoch, Order, Received
	MsgReplayed   MsgType = "replayed"  // Task: the promoted task has consumed the known order
	MsgSnapshot   MsgType = "snapshot"  // Task, ID, Bytes, Nanos (synchronous part), Position: durable; or Err
	MsgMoved      MsgType = "moved"     // Task, ID (route version), Bytes, Records (that waited): all its groups are installed
	MsgRound      MsgType = "round"     // Task, Epoch, ID (route version), Bytes, Records (that waited), Round: its part is over, and no record waits
	MsgCopied     MsgType = "copied"    // Task, ID (copy number), Bytes: its state was sent ahead
	MsgHeartbeat  MsgType = "heartbeat" // Meters
	MsgTaskFailed MsgType = "failed"    // Task, Err
	MsgRestored   MsgType = "restored"  // Task, Epoch: its state is loaded
	MsgJoined     MsgType = "joined"    // Task, Epoch: it is deployed beside those that run, and ready
	MsgHeld       MsgType = "held"      // ID of a topology: its receivers are known, what they lack is held
	MsgProtected  MsgType = "protected" // Task, Epoch: its standby has a base and follows
	MsgBase       MsgType = "base"      // Task, Epoch, ID, Base: from where a task of strategy upstream can be replayed
	MsgCut        MsgType = "cut"       // Task, ID: its snapshot is taken, not durable yet
)

// Role is what a deployed task is.
type Role string

// The roles of a task.
const (
	RolePrimary Role = "primary"
	RoleStandby Role = "standby"
)

// Position is where a task stands: behind Order consumed inputs in all, before input In[i] of its i-th input and before
// output Out[i] of its i-th output, in the order of TaskInfo.Ins and Outs.
type Position struct {
	Order   uint64
	In, Out []uint64
}

// RoundReport is how long the parts of a task's part in a round took. A task that gives waits with its state until all of its
// inputs have brought the marker and its answers have been consumed (Freeze), and sends it (Transfer). A task that gets waits
// from the first marker to the first of the state, gets it, of which Install is spent on entering it, and then works on the
// records that waited (Drain).
type RoundReport struct {
	Freeze, Transfer, Install, Drain time.Duration
	// LastByteNS is when the last of the state had gone or come, on the node's clock.
	LastByteNS int64
	// Suspended is for how long since the last report the task was paused or records of its key groups waited.
	Suspended time.Duration
}

// Place says where a task runs.
type Place struct {
	Task int
	// Node is the node of the primary, Standby that of the standby (-1: none).
	Node, Standby int
	// Epoch is the epoch in which the primary was deployed.
	Epoch uint32
}

// Deployment is one task that a worker is to run.
type Deployment struct {
	Task  int
	Role  Role
	Epoch uint32
	// Restore is the checkpoint to load (0: start empty) and RestoreFrom the tasks whose files hold its key groups.
	Restore     uint64
	RestoreFrom []int
	// FeedNext is the number of the feed's next input for a source task.
	FeedNext uint64
	// HarnessEpoch is the epoch of the channels to and from the harness; 0: Epoch.
	HarnessEpoch uint32 `json:",omitempty"`
	// Cold says that a task that joins waits for MsgPromote (a primary that replays) or for a ship (a standby).
	Cold bool `json:",omitempty"`
	// Alone says that the checkpoint is of this deployment: the task's own file tells its position, too.
	Alone bool `json:",omitempty"`
	// Base is the base that a task of strategy upstream told; nil: what Restore says, in the first position.
	Base json.RawMessage `json:",omitempty"`
}

// Meters are what a worker reports of its tasks.
type Meters struct {
	Task int
	// Consumed counts inputs consumed since the deployment; Queued those that wait.
	Consumed, Queued uint64
	// FeedNext is, of a source task, the number after the last consumed input of the feed.
	FeedNext uint64
	// FullestBytes is the size of the largest of the task's sender logs that wait, in memory and on disk, LogBounds how often
	// one of its logs has reached its bound. Full says that one is there, in memory, AtBound that one that waits is; LogMoved,
	// told then, changes when one of them gets room or its receiver gets on.
	FullestBytes int64  `json:",omitempty"`
	LogBounds    uint64 `json:",omitempty"`
	Full         bool   `json:",omitempty"`
	AtBound      bool   `json:",omitempty"`
	LogMoved     uint64 `json:",omitempty"`
	// SpilledBytes is what is on disk of the task's sender logs, Spilled how many bytes were ever written there since the
	// deployment, and Spills how often a log began to.
	SpilledBytes int64  `json:",omitempty"`
	Spilled      uint64 `json:",omitempty"`
	Spills       uint64 `json:",omitempty"`
	// BusyNS is the service time spent since the deployment.
	BusyNS int64
	// LogBytes is the size of the task's sender logs in memory, OrderBytes that of what it keeps of its order log.
	LogBytes   int
	OrderBytes int `json:",omitempty"`
	// Standby says that the task is a standby, with StandbyBytes of state.
	Standby      bool  `json:",omitempty"`
	StandbyBytes int64 `json:",omitempty"`
	// Loads are records and StateBytes bytes by key group, of the groups that the task owns.
	Groups     []uint32 `json:",omitempty"`
	Loads      []uint64 `json:",omitempty"`
	StateBytes []int64  `json:",omitempty"`
	// Fenced, Dups and Missing count refused, repeated and missing batches; Held the records that waited for state.
	Fenced, Dups, Missing, Held uint64
	// Late counts, since the beginning of the job, the records that came too late for the key groups that the task owns.
	Late uint64 `json:",omitempty"`
	// StoreReads and StoreWrites count the values read from and written to the external store since the deployment.
	StoreReads  uint64 `json:",omitempty"`
	StoreWrites uint64 `json:",omitempty"`
}

// Msg is a control-plane message.
type Msg struct {
	Type  MsgType
	Node  int    `json:",omitempty"`
	Addr  string `json:",omitempty"`
	Epoch uint32 `json:",omitempty"`
	Task  int    `json:",omitempty"`
	ID    uint64 `json:",omitempty"`
	// Job, Places, Routes (by operator; nil for those without key groups) and Tasks belong to MsgDeploy.
	Job    *Job         `json:",omitempty"`
	Places []Place      `json:",omitempty"`
	Routes []*Routes    `json:",omitempty"`
	Tasks  []Deployment `json:",omitempty"`
	// OrderAfter and Order are an order log; Received maps a channel to the number its receiver expects next.
	OrderAfter uint64         `json:",omitempty"`
	Order      []byte         `json:",omitempty"`
	Received   map[int]uint64 `json:",omitempty"`
	Bytes      int64          `json:",omitempty"`
	Nanos      int64          `json:",omitempty"`
	Records    uint64         `json:",omitempty"`
	Position   *Position      `json:",omitempty"`
	Round      *RoundReport   `json:",omitempty"`
	// Join belongs to MsgDeploy and MsgStart, Base to MsgBase. Cuts are where tasks stood at a checkpoint, by task.
	Join   bool              `json:",omitempty"`
	Base   json.RawMessage   `json:",omitempty"`
	Cuts   map[int]*Position `json:",omitempty"`
	Meters []Meters          `json:",omitempty"`
	// File describes the file of a durable snapshot, for the checkpoint's manifest.
	File json.RawMessage `json:",omitempty"`
	Err  string          `json:",omitempty"`
}
