package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/durable"
	"github.com/weir-bench/weir/engine/storage"
)

// vault is the harness's side of the checkpoints: it completes them and chooses one to restore from, on other
// goroutines.
type vault struct {
	store *storage.Store // nil: there is none
	dir   string
	busy  sync.WaitGroup
	turn  sync.Mutex // one job at a time on the directory
}

// TraceRetention says that older checkpoints could not be removed; the run goes on.
const TraceRetention = "retention-failed"

func newVault(cfg *Config) (*vault, error) {
	v := &vault{}
	if cfg.Dir == "" {
		return v, nil
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("directory for checkpoints %s: %w", cfg.Dir, err)
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	v.dir = dir
	if v.store, err = storage.New(storage.OS{}, dir, cfg.Job.ID, storage.Options{NoSync: cfg.NoSync}); err != nil {
		return nil, err
	}
	return v, v.checkFresh()
}

// checkDir makes dir and says early what a checkpoint would otherwise fail with.
func checkDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("directory for checkpoints: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("directory for checkpoints %s is not writable: %w", dir, err)
	}
	_ = probe.Close() // nothing was written
	if err := os.Remove(probe.Name()); err != nil {
		return fmt.Errorf("directory for checkpoints %s: %w", dir, err)
	}
	return nil
}

// checkFresh refuses a directory that holds checkpoints of an earlier run of the same name: this run's numbers would
// meet them.
func (v *vault) checkFresh() error {
	ck, _, err := v.store.Newest()
	if errors.Is(err, storage.ErrNoCheckpoint) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("checkpoint %d is there", ck.Number)
	}
	return fmt.Errorf("directory for checkpoints %s is in use by an earlier run of the same job; give an empty one: %w", v.dir, err)
}

func (v *vault) complete(h *Harness, c coord.Complete) {
	v.busy.Go(func() {
		v.turn.Lock()
		defer v.turn.Unlock()
		err := errNoStore
		if v.store != nil {
			err = durable.Complete(v.store, &c)
		}
		h.fab.poll.post(func() { h.co.CheckpointDurable(c.Checkpoint, err, &h.e) })
		if err != nil {
			return
		}
		if err := durable.Retain(v.store, c.Retain); err != nil {
			h.fab.poll.post(func() {
				h.cfg.OnTrace(coord.Trace{Kind: TraceRetention, AtNS: h.clock(), ID: c.Checkpoint, Detail: err.Error()})
			})
		}
	})
}

func (v *vault) choose(h *Harness) {
	if v.store == nil {
		h.fab.poll.post(func() { h.co.Chosen(0, nil, nil, nil, &h.e) }) // in its turn: not from within a step
		return
	}
	v.busy.Go(func() {
		v.turn.Lock()
		defer v.turn.Unlock()
		number, meta, skipped, err := durable.Choose(v.store)
		h.fab.poll.post(func() { h.co.Chosen(number, meta, skipped, err, &h.e) })
	})
}

// wait waits for what goroutines are doing.
func (v *vault) wait() { v.busy.Wait() }
