package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state/remote"
	"github.com/weir-bench/weir/engine/task"
)

// storePatience bounds what the harness does with a store before and after a run.
const storePatience = 10 * time.Second

// external reads and writes a worker's external state, on two goroutines a task: reads do not wait for writes, and the
// writes of a task stay in their order. It belongs to the event loop.
type external struct {
	stores map[string]*remote.Store // by URL
	lanes  map[int]*lane            // by task
	ctx    context.Context          // of the deployment
	cancel context.CancelFunc
}

// lane is the two queues of a task. They have room for all that the machine has under way at once, so that the loop never
// waits.
type lane struct{ reads, writes chan func(context.Context) }

func newExternal() *external {
	x := &external{stores: map[string]*remote.Store{}, lanes: map[int]*lane{}}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// settle forgets what an earlier deployment has asked for: the machine has forgotten it too.
func (x *external) settle() {
	x.cancel()
	for _, l := range x.lanes {
		close(l.reads)
		close(l.writes)
	}
	x.lanes = map[int]*lane{}
	x.ctx, x.cancel = context.WithCancel(context.Background())
}

func (x *external) close() {
	x.settle()
	x.cancel()
	for _, s := range x.stores {
		_ = s.Close() // nothing is under way that anybody waits for
	}
}

// store returns the store with the given URL.
func (x *external) store(url string) (*remote.Store, error) {
	if s := x.stores[url]; s != nil {
		return s, nil
	}
	s, err := remote.Open(url)
	if err == nil {
		x.stores[url] = s
	}
	return s, err
}

func (x *external) lane(id int) *lane {
	if l := x.lanes[id]; l != nil {
		return l
	}
	l := &lane{make(chan func(context.Context), 1), make(chan func(context.Context), task.MaxStateWrites)}
	x.lanes[id] = l
	for _, queue := range []chan func(context.Context){l.reads, l.writes} {
		go func(ctx context.Context) {
			for do := range queue {
				do(ctx)
			}
		}(x.ctx)
	}
	return l
}

func space(s *task.StoreSpace) *remote.Space {
	return &remote.Space{Job: s.Job, Operator: s.Operator, Epoch: s.Epoch, ValueBytes: s.ValueBytes}
}

// read carries out r and calls done on another goroutine.
func (x *external) read(r task.ReadRequest, done func(values []byte, err error)) {
	s, err := x.store(r.Space.URL)
	x.lane(r.Task).reads <- func(ctx context.Context) {
		var values []byte
		if err == nil {
			values, err = s.Read(ctx, space(r.Space), r.Groups, r.Keys)
		}
		done(values, err)
	}
}

// write carries out r and calls done on another goroutine.
func (x *external) write(r task.WriteRequest, done func(error)) {
	s, err := x.store(r.Space.URL)
	x.lane(r.Task).writes <- func(ctx context.Context) {
		if err == nil {
			err = s.Write(ctx, space(r.Space), r.Groups, r.Keys, r.Values)
		}
		done(err)
	}
}

// openStores connects to the stores of a job before it starts, so that what is wrong with one is told then. What an
// earlier run of the same name has left is removed.
func openStores(job *core.Job) (stores []*remote.Store, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	seen := map[string]bool{}
	for i := range job.Operators {
		op := &job.Operators[i]
		if op.Store == "" || seen[op.Store] {
			continue
		}
		seen[op.Store] = true
		s, err := remote.Open(op.Store)
		if err == nil {
			stores = append(stores, s)
			err = s.Check(ctx, job.ID)
		}
		if err == nil {
			_, err = s.Sweep(ctx, job.ID)
		}
		if err != nil {
			closeStores(stores)
			return nil, fmt.Errorf("operator %s: %w", op.Name, err)
		}
	}
	return stores, nil
}

func closeStores(stores []*remote.Store) {
	for _, s := range stores {
		_ = s.Close() // nothing is under way
	}
}

// storesInUse are the stores of a run. Their end comes once.
type storesInUse struct {
	stores []*remote.Store
	once   sync.Once
}

// leave removes what a job has written.
func (u *storesInUse) leave(job string) (err error) {
	u.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), storePatience)
		defer cancel()
		for _, s := range u.stores {
			_, failed := s.Sweep(ctx, job)
			err = errors.Join(err, failed)
		}
		closeStores(u.stores)
	})
	return err
}
