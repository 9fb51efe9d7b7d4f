//go:build linux

package queries

import (
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/host"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/sim"
	"github.com/weir-bench/weir/engine/task"
	"github.com/weir-bench/weir/workloads/nexmark"
)

func TestMain(m *testing.M) {
	if host.IsWorker() {
		os.Exit(host.WorkerMain(nil))
	}
	os.Exit(m.Run())
}

// TestInWorkerProcesses runs queries over real processes and sockets, and kills one of them under way.
func TestInWorkerProcesses(t *testing.T) {
	for _, c := range []struct {
		query, recovery string
		transactional   bool
	}{{"q5", "checkpoint", true}, {"q6", "active", false}, {"q7", "checkpoint", false}} {
		t.Run(c.query+" "+c.recovery, func(t *testing.T) {
			q, err := Lookup(c.query)
			if err != nil {
				t.Fatal(err)
			}
			const perSec, records = 40_000, 32_000
			events := stream{nexmark.New(nexmark.DefaultConfig(5, 1000)), time.Millisecond}
			want, _, err := q.Golden(events.columns(records), DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			job := core.Job{ID: "query", Seed: 1, Workers: 2, Checkpoint: 100 * time.Millisecond, Lease: 10 * time.Second, Operators: q.Operators(DefaultOptions())}
			for i := range job.Operators {
				op := &job.Operators[i]
				op.Recovery, op.Transactional = c.recovery, c.transactional && op.Kind == "sink"
			}
			rows := inProcesses(t, job, events, records, perSec)
			promise := recovery.Precise
			if c.recovery == "checkpoint" && !c.transactional {
				promise = recovery.Rollback
			}
			if d := difference(answers(t, rows), want, promise); d != "" || len(want) == 0 || !slices.IsSortedFunc(want, Compare) {
				t.Errorf("%d answers wanted: %s", len(want), d)
			}
		})
	}
}

// inProcesses runs a job in worker processes, kills one after the second checkpoint, and returns the outputs.
func inProcesses(t *testing.T, job core.Job, feed task.FeedSource, records uint64, perSec float64) []sim.JobRow {
	t.Helper()
	var rows []sim.JobRow
	second := make(chan struct{})
	var killed atomic.Bool
	complete := 0
	h, err := host.Start(host.Config{Job: job, Feed: feed, Bounds: []uint64{records}, Dir: t.TempDir(), NoSync: true, Spares: 1,
		Due: func(elapsed time.Duration, due []uint64) time.Duration {
			due[0] = uint64(elapsed.Seconds() * perSec)
			if !killed.Load() {
				due[0] = min(due[0], records/2) // the other half comes after the failure
			}
			return elapsed + time.Millisecond
		},
		OnTrace: func(tr coord.Trace) {
			if tr.Kind == coord.TraceComplete {
				if complete++; complete == 2 {
					close(second)
				}
			}
		},
		Collect: func(o task.Output) {
			for i, k := range o.Columns.Keys {
				rows = append(rows, sim.JobRow{Key: k, Val: o.Columns.Vals[i], Payload: string(o.Columns.Payload(i))})
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // a test that cares has looked at Err
	timeout := time.After(20 * time.Second)
	select {
	case <-second:
	case <-h.Done():
		t.Fatalf("over before a worker could be killed: %v", h.Err())
	case <-timeout:
		t.Fatal("no second checkpoint after 20 s")
	}
	node := 0
	if err := h.Do(func(c *coord.Coordinator, _ *coord.Effects) { node = c.NodeOfSlot(1) }); err != nil {
		t.Fatal(err)
	}
	if err := h.Kill(node); err != nil {
		t.Fatal(err)
	}
	killed.Store(true)
	select {
	case <-h.Done():
	case <-timeout:
		t.Fatal("not over after 20 s")
	}
	if err := h.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}
