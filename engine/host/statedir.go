package host

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/state/pebble"
)

// newSpillDir makes the folder in which workers keep what their sender logs do not keep in memory; empty when the job has no
// room for that on disk.
func newSpillDir(cfg *Config) (string, error) {
	if cfg.Job.SpillBytes == 0 {
		return "", nil
	}
	parent := cfg.SpillDir
	if parent == "" {
		parent = cfg.StateDir
	}
	dir, err := os.MkdirTemp(parent, "weir-spill-")
	if err != nil {
		return "", fmt.Errorf("folder for what sender logs spill: %w", err)
	}
	return dir, nil
}

// newStateDir makes the folder in which workers keep state that is on disk; empty when the job has none.
func newStateDir(cfg *Config) (string, error) {
	for _, op := range cfg.Job.Operators {
		if op.Backend == core.BackendPebble {
			dir, err := os.MkdirTemp(cfg.StateDir, "weir-state-")
			if err != nil {
				return "", fmt.Errorf("folder for the state of operator %s: %w", op.Name, err)
			}
			return dir, nil
		}
	}
	return "", nil
}

// diskState is state in a folder that goes with it.
type diskState struct {
	*pebble.Store
	dir string
}

// openStateIn makes empty state in a folder of its own below dir.
func openStateIn(dir string, node int, spec *state.PagedSpec) (state.Paged, error) {
	dir = filepath.Join(dir, fmt.Sprintf("node-%d", node), fmt.Sprintf("task-%d-%d", spec.Task, spec.Epoch))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("folder for state: %w", err)
	}
	s, err := pebble.OpenDir(dir, spec)
	if err != nil {
		return nil, err
	}
	return &diskState{s, dir}, nil
}

// Close implements state.Paged.
func (d *diskState) Close() error {
	err := d.Store.Close()
	if removed := os.RemoveAll(d.dir); err == nil {
		err = removed
	}
	return err
}
