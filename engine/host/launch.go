package host

import (
	"encoding/json"
	"fmt"
	"os"
)

// workerVariable is the environment variable that makes a process a worker.
const workerVariable = "WEIR_WORKER"

// storeVariable is the environment variable that makes a process an embedded store.
const storeVariable = "WEIR_STORE"

// launch is what a worker process has to know, as JSON in its environment.
type launch struct {
	Node    int
	Harness string // address as ip:port
	Token   string
	Listen  string
	BaseNS  int64 // the run's start on the shared monotonic clock
	Job     string
	Dir     string // or URL for checkpoints; empty: none
	NoSync  bool   `json:",omitempty"`
	// MemoryBytes is the soft limit of the Go heap.
	MemoryBytes int64
	ProfileDir  string `json:",omitempty"`
	// StateDir is the folder for state that is on disk; empty: the job has none.
	StateDir string `json:",omitempty"`
	// SpillDir is the folder for what sender logs spill; empty: they may not.
	SpillDir string `json:",omitempty"`
}

func (l *launch) variable() string {
	body, err := json.Marshal(l)
	if err != nil {
		panic(err) // plain values
	}
	return workerVariable + "=" + string(body)
}

// IsWorker says whether this process was started as a worker, or as an embedded store: its main function has to call
// WorkerMain first of all.
func IsWorker() bool { return os.Getenv(workerVariable) != "" || os.Getenv(storeVariable) != "" }

func launched() (*launch, error) {
	l := &launch{}
	if err := json.Unmarshal([]byte(os.Getenv(workerVariable)), l); err != nil {
		return nil, fmt.Errorf("environment variable %s: want the JSON that a harness sets: %w", workerVariable, err)
	}
	if l.Node < 1 || l.Node > maxNode || l.Harness == "" {
		return nil, fmt.Errorf("environment variable %s: node %d and harness %q, want a node from 1 on and an address", workerVariable, l.Node, l.Harness)
	}
	return l, nil
}

// maxNode bounds node numbers, which index slices.
const maxNode = 1 << 16
