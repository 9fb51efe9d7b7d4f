//go:build linux

package host

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/state/remote"
	"github.com/weir-bench/weir/engine/state/remote/server"
)

func startStore(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	s, err := server.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func storeJob(name, url string) core.Job {
	job := countJob(name, "none", false)
	job.Operators[1].Store = url
	job.Operators[1].StoreCacheBytes = 300 * 16 // of 1,000 keys
	return job
}

// TestExternalState moves key groups out and back while their state is in a store with a small cache, and looks at the
// answers and at what is in the store in the end.
func TestExternalState(t *testing.T) {
	store := startStore(t, server.Options{Password: "word"})
	feed := uniformFeed{keys: 1000, perSec: 10_000}
	c := newCounts()
	job := storeJob("external", store.URL())
	r := start(t, Config{Job: job, Feed: feed, Due: feed.paced, Collect: c.collect})
	r.await(coord.TraceStarted, 1)
	r.awaitOutputs(c, 2_000)
	strategy, err := migration.Lookup("externalise")
	if err != nil {
		t.Fatal(err)
	}
	for round, to := range []int{1, 0} {
		req := migration.Request{Operator: 1}
		for g := range uint32(64) {
			req.Moves = append(req.Moves, core.Move{Group: g, From: 1 - to, To: to})
		}
		refused := error(nil)
		if err := r.Do(func(co *coord.Coordinator, e *coord.Effects) { refused = co.Migrate(req, strategy, e) }); err != nil || refused != nil {
			t.Fatal(err, refused)
		}
		r.await(coord.TraceMigrated, round+1)
		r.awaitOutputs(c, uint64(2_000*(round+2)))
	}
	bounds, err := r.EndFeed()
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	total := checkStored(t, &job, 1, c)
	r.finish()
	c.check(t, feed, bounds)
	if c.outputs != bounds[0]+bounds[1] || c.repeats != 0 || uint64(total) != c.outputs {
		t.Errorf("%d outputs, %d out of turn, a sum of %d in the store; want %d and none", c.outputs, c.repeats, total, bounds[0]+bounds[1])
	}
	if n := store.Bytes(); n != 0 {
		t.Errorf("%d bytes are left in the store behind the run", n)
	}
}

// checkStored compares what is in the store with the answers and returns its sum.
func checkStored(t *testing.T, job *core.Job, epoch uint32, c *counts) (total int64) {
	t.Helper()
	op := &job.Operators[1]
	s, err := remote.Open(op.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var groups []uint32
	var keys []uint64
	for k := range c.last {
		keys, groups = append(keys, k), append(groups, core.KeyGroup(k, op.Groups))
	}
	values, err := s.Read(context.Background(), &remote.Space{Job: job.ID, Operator: op.Name, Epoch: epoch, ValueBytes: 8}, groups, keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		n := int64(binary.LittleEndian.Uint64(values[8*i:]))
		if total += n; n != c.last[k] {
			t.Errorf("key %d: %d in the store, %d as the last answer", k, n, c.last[k])
		}
	}
	return total
}

// TestExternalStateKill says that a job that starts again does not find the state of before.
func TestExternalStateKill(t *testing.T) {
	store := startStore(t, server.Options{})
	feed := uniformFeed{keys: 1000, perSec: 10_000}
	c := newCounts()
	r := start(t, Config{Job: storeJob("external-kill", store.URL()), Feed: feed, Due: feed.paced, Collect: c.collect, Spares: 1})
	r.await(coord.TraceStarted, 1)
	r.awaitOutputs(c, 2_000)
	if err := r.Kill(r.node(1)); err != nil {
		t.Fatal(err)
	}
	r.await(coord.TraceReplayed, 1)
	bounds, _ := r.finishNow()
	c.check(t, feed, bounds)
}

// TestExternalStoreFails says that the words of a store that refuses reach the one who looks at the run.
func TestExternalStoreFails(t *testing.T) {
	store := startStore(t, server.Options{MaxBytes: 20_000})
	feed := uniformFeed{keys: 1000, perSec: 10_000}
	r := start(t, Config{Job: storeJob("external-full", store.URL()), Feed: feed, Due: feed.paced})
	r.await(coord.TraceTaskFailed, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, tr := range r.traces {
		if tr.Kind == coord.TraceTaskFailed && !strings.Contains(tr.Detail, "external state of count: store redis://"+store.Addr()+"/0: write") {
			t.Errorf("the task says %q", tr.Detail)
		}
	}
}

// TestBadStores says that what is wrong with a store is told before anything starts.
func TestBadStores(t *testing.T) {
	locked := startStore(t, server.Options{Password: "word"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		url  string
		want error
	}{
		{"redis:/nowhere:", remote.ErrURL},
		{"redis://" + locked.Addr(), remote.ErrAuth},
		{"redis://:wrong@" + locked.Addr(), remote.ErrAuth},
		{"redis://" + l.Addr().String() + "?read_timeout=20ms", remote.ErrSlow},
		{"redis://127.0.0.1:1?dial_timeout=1s", remote.ErrDown},
	} {
		begun := time.Now()
		h, err := Start(Config{Job: storeJob("bad", c.url), Feed: uniformFeed{keys: 1}})
		if err == nil {
			_ = h.Close() // it must not have started
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "operator count") || time.Since(begun) > patience {
			t.Errorf("%s: %v, want %v", c.url, err, c.want)
		}
	}
}
