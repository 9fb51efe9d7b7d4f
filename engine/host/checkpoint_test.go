//go:build linux

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
)

// TestKindsOfCheckpoints kills a worker behind a few checkpoints of each kind, with the state in memory and on disk: each
// answer comes once, and nothing stays behind.
func TestKindsOfCheckpoints(t *testing.T) {
	for name, change := range map[string]func(*core.Job){
		"incremental": func(j *core.Job) { j.Incremental = true },
		"unaligned":   func(j *core.Job) { j.Unaligned = true },
		"on-disk": func(j *core.Job) {
			j.Incremental, j.Unaligned = true, true
			count := &j.Operators[1]
			count.Backend, count.ValueBytes, count.StoreCacheBytes = core.BackendPebble, 200, 2<<20
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir, stateDir := newCounts(), t.TempDir(), t.TempDir()
			job := countJob(name, "checkpoint", true)
			job.Checkpoint = 60 * time.Millisecond
			change(&job)
			feed := uniformFeed{keys: 10_000, perSec: 40_000}
			if job.Operators[1].Backend == core.BackendPebble {
				feed.perSec = 8_000 // a disk under the race detector on a busy machine keeps up with that
			}
			r := start(t, Config{Job: job, Feed: feed, Due: feed.paced, Collect: c.collect, Dir: dir, StateDir: stateDir, Spares: 1})
			r.await(coord.TraceComplete, 5)
			onDisk := job.Operators[1].Backend == core.BackendPebble
			if linked := manifestsWith(t, dir, `"links"`); (job.Incremental && !onDisk) != (linked > 0) {
				t.Errorf("%d manifests have links", linked)
			}
			if tabled := manifestsWith(t, dir, `"tables"`); onDisk != (tabled > 0) {
				t.Errorf("%d manifests have tables", tabled)
			}
			if err := r.Kill(r.node(1)); err != nil {
				t.Fatal(err)
			}
			r.await(coord.TraceReplayed, 1)
			bounds, total := r.finishNow()
			c.check(t, feed, bounds)
			if c.outputs != total || c.once() > 0 {
				t.Errorf("%d outputs, %d keys wrong; want %d and none", c.outputs, c.once(), total)
			}
			if left, err := os.ReadDir(stateDir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

func manifestsWith(t *testing.T, dir, text string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "job-*", "chk-*", "MANIFEST"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if body, err := os.ReadFile(f); err == nil && strings.Contains(string(body), text) { // it may have been removed meanwhile
			n++
		}
	}
	return n
}
