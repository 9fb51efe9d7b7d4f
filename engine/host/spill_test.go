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

// segmentFiles counts the files of what sender logs have spilled.
func segmentFiles(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "weir-spill-*", "spill-*", "segment-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestKillReplaysFromDisk kills a worker while most of what its tasks' senders keep is on disk: every answer comes once, in
// order, and in the end no file is left.
func TestKillReplaysFromDisk(t *testing.T) {
	feed := uniformFeed{keys: 1000, perSec: 60_000}
	c := newCounts()
	job := countJob("spill", "checkpoint", false)
	for i := range job.Operators {
		job.Operators[i].Scope = core.ScopeTask
	}
	job.LogBytes, job.SpillBytes = 128<<10, 256<<20
	job.Checkpoint = time.Minute // nothing is covered
	dir := t.TempDir()
	r := start(t, Config{Job: job, Feed: feed, Due: feed.paced, Collect: c.collect, Dir: t.TempDir(), Spares: 1, SpillDir: dir})
	var spilled int64
	for deadline := time.Now().Add(patience); spilled < 2<<20; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes of sender logs are on disk after %v", spilled, patience)
		}
		err := r.Do(func(c *coord.Coordinator, _ *coord.Effects) {
			spilled = 0
			for _, m := range c.Meters() {
				spilled += m.SpilledBytes
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := segmentFiles(t, dir); n == 0 {
		t.Error("there are no files")
	}
	if err := r.Kill(r.node(1)); err != nil {
		t.Fatal(err)
	}
	r.await(coord.TraceTakenOver, 1)
	bounds, total := r.finishNow()
	c.check(t, feed, bounds)
	if wrong := c.once(); c.outputs != total || c.repeats != 0 || wrong > 0 {
		t.Errorf("%d outputs, %d out of turn, %d keys without each count once; want %d and none", c.outputs, c.repeats, wrong, total)
	}
	if r.count(coord.TraceSpill) == 0 || r.count(coord.TraceFallback) > 0 {
		t.Errorf("spilling was traced %d times, a rollback %d times", r.count(coord.TraceSpill), r.count(coord.TraceFallback))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left in the folder, %v", left, err)
	}
}

// TestSpillFolder says that a folder that is not there is told before anything starts.
func TestSpillFolder(t *testing.T) {
	job := countJob("spill", "upstream", false)
	job.Operators[1].Recovery = core.RecoveryPassive
	job.SpillBytes = 1 << 20
	missing := filepath.Join(t.TempDir(), "missing")
	if h, err := Start(Config{Job: job, Feed: uniformFeed{keys: 1}, SpillDir: missing}); err == nil {
		_ = h.Close() // it should not have come so far
		t.Error("a missing folder is accepted")
	}
}

// TestAFailedStartLeavesNoFolder says that what a start has made is gone when it fails later on.
func TestAFailedStartLeavesNoFolder(t *testing.T) {
	dir := t.TempDir()
	job := countJob("failed", "upstream", false)
	job.Operators[1].Recovery = core.RecoveryPassive
	job.SpillBytes = 1 << 20
	h, err := Start(Config{Job: job, Feed: uniformFeed{keys: 1}, SpillDir: dir, Listen: "nowhere:-1"})
	if err == nil {
		_ = h.Close()
		t.Fatal("started on an address that is none")
	}
	if !strings.Contains(err.Error(), "nowhere") {
		t.Fatalf("failed for another reason: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
