package host

import (
	"encoding/json"
	"fmt"

	"github.com/weir-bench/weir/engine/core"
)

// The channel numbers of frames of kind core.KindMessage say whom the message is for.
const (
	machineChannel = -1 // core.Msg, for the machine
	hostChannel    = -2 // hostMsg, for this package
)

// The kinds of messages between two processes' event loops.
const (
	hostHello   = "hello"   // Node, Token: first on every connection, who dialled
	hostPeers   = "peers"   // Addrs: harness to worker, whom to dial for which node
	hostAsk     = "ask"     // Request: harness to worker
	hostMetrics = "metrics" // Request, Metrics: the answer
)

type hostMsg struct {
	Type    string
	Node    int            `json:",omitempty"`
	Token   string         `json:",omitempty"`
	Addrs   map[int]string `json:",omitempty"`
	Request uint64         `json:",omitempty"`
	Metrics *WorkerMetrics `json:",omitempty"`
}

// WorkerMetrics are counters of a worker process since its start.
type WorkerMetrics struct {
	// LoopCPUNS is the processor time of the event loop's thread.
	LoopCPUNS int64
	// BatchesMade counts batches ever allocated, Mallocs objects ever allocated by the whole process: the first stands
	// still in steady state, the second grows by a few objects a heartbeat.
	BatchesMade int
	Mallocs     uint64
	// Turns counts the turns of the loop.
	Turns  uint64
	Wire   WireMetrics
	Disk   DiskMetrics
	HeapMB int64
}

// WireMetrics count what a process's connections carried.
type WireMetrics struct {
	SentBytes, ReceivedBytes   int64
	FramesSent, FramesReceived int64
	// HighWaterBytes is the most that ever waited in one connection's write buffer, Dropped the frames for a node
	// that could not be reached.
	HighWaterBytes int64
	Dropped        int64
}

// DiskMetrics count state files written and read.
type DiskMetrics struct{ WrittenBytes, ReadBytes int64 }

// appendMessage encodes v as a message frame.
func appendMessage(dst []byte, scratch *core.Batch, channel int, v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("host: encode %T: %v", v, err)) // plain structures always encode
	}
	scratch.Kind, scratch.Channel, scratch.Ext = core.KindMessage, channel, body
	return core.AppendFrame(dst, scratch)
}
