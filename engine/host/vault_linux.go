package host

import (
	"context"
	"sync"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/durable"
	"github.com/weir-bench/weir/engine/storage"
)

// vault is the harness's side of the checkpoints: it completes them and chooses one to restore from, on other
// goroutines.
type vault struct {
	store *storage.Store // nil: there is none
	dir   string         // or URL
	stop  context.CancelFunc
	busy  sync.WaitGroup
	turn  sync.Mutex // one job at a time on the directory
}

// TraceRetention says that older checkpoints could not be removed; the run goes on.
const TraceRetention = "retention-failed"

func newVault(cfg *Config) (*vault, error) {
	v := &vault{stop: func() {}}
	if cfg.Dir == "" {
		return v, nil
	}
	p, err := OpenPlace(cfg.Dir, cfg.Storage)
	if err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := p.Vacant(cfg.Job.ID); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, v.stop = context.WithCancel(context.Background())
	v.dir = p.String()
	v.store, err = storage.New(p.within(ctx), p.address.Dir, cfg.Job.ID, storage.Options{NoSync: cfg.NoSync, Readers: 2})
	return v, err
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

// wait waits for what goroutines are doing; what a server does not answer is given up.
func (v *vault) wait() {
	v.stop()
	v.busy.Wait()
}
