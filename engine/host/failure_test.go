//go:build linux

package host

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
)

// wantError waits for the end of a run that has to fail with all the words.
func wantError(t *testing.T, h *Harness, words ...string) {
	t.Helper()
	defer h.Close()
	select {
	case <-h.Done():
	case <-time.After(patience):
		t.Fatal("the run goes on")
	}
	for _, w := range words {
		if err := h.Err(); err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v, want one with %q", err, w)
		}
	}
}

func TestWorkerThatCannotStart(t *testing.T) {
	for _, c := range []struct {
		command []string
		words   []string
	}{
		{[]string{"/bin/sh", "-c", "echo no such luck >&2; exit 3"}, []string{"exit status 3", "no such luck"}},
		{[]string{filepath.Join(t.TempDir(), "missing")}, []string{"start worker", "missing"}},
	} {
		h, err := Start(Config{Job: countJob("broken", "", false), Feed: uniformFeed{keys: 1}, Command: c.command})
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, h, c.words...)
	}
}

func TestBadPlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Dir: file}, "directory for checkpoints"},
		{Config{Listen: taken.Addr().String()}, "address already in use"},
		{Config{Listen: "localhost"}, "want ip:port"},
	} {
		c.cfg.Job, c.cfg.Feed = countJob("places", "", false), uniformFeed{keys: 1}
		h, err := Start(c.cfg)
		if err == nil {
			_ = h.Close() // it should not have come so far
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

// TestDiskFailure takes the directory away while the job runs: checkpoints are aborted with the reason, the job goes on,
// and when the directory is back so are the checkpoints.
func TestDiskFailure(t *testing.T) {
	feed := uniformFeed{keys: 1000, perSec: 20_000}
	c := newCounts()
	job := countJob("disk", "checkpoint", false)
	job.Checkpoint = 30 * time.Millisecond
	dir := t.TempDir()
	r := start(t, Config{Job: job, Feed: feed, Due: feed.paced, Collect: c.collect, Dir: dir})
	r.await(coord.TraceComplete, 1)
	place := filepath.Join(dir, "job-disk")
	if err := os.Rename(place, place+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(place, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.await(coord.TraceAborted, 2)
	r.mu.Lock()
	why := ""
	for _, tr := range r.traces {
		if tr.Kind == coord.TraceAborted {
			why = tr.Detail
		}
	}
	r.mu.Unlock()
	if !strings.Contains(why, "not a directory") {
		t.Errorf("aborted because of %q, want the disk's reason", why)
	}
	var before uint64
	if err := r.Do(func(*coord.Coordinator, *coord.Effects) { before = c.outputs }); err != nil {
		t.Fatal(err)
	}
	r.awaitOutputs(c, before+1000)
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(place+".away", place); err != nil {
		t.Fatal(err)
	}
	r.await(coord.TraceComplete, r.count(coord.TraceComplete)+1)
	if n := r.count(coord.TraceDetected); n > 0 {
		t.Errorf("%d workers were lost over it", n)
	}
}

// TestDamagedCheckpoint damages the newest checkpoint before a worker dies: the run goes on from an older one.
func TestDamagedCheckpoint(t *testing.T) {
	feed := uniformFeed{keys: 1000, perSec: 100_000}
	c := newCounts()
	job := countJob("damage", "checkpoint", true)
	job.Checkpoint, job.Retain = 250*time.Millisecond, 100 // the next one is far when the newest is damaged
	dir := t.TempDir()
	r := start(t, Config{Job: job, Feed: feed, Due: feed.paced, Collect: c.collect, Dir: dir, Spares: 1})
	r.await(coord.TraceComplete, 2)
	manifests, err := filepath.Glob(filepath.Join(dir, "job-damage", "chk-*", "MANIFEST"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no checkpoints in %s: %v", dir, err)
	}
	for _, m := range manifests[1:] {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(m), "task-*.state"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files beside %s: %v", m, err)
		}
		if err := os.Truncate(files[0], 40); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Kill(r.node(0)); err != nil {
		t.Fatal(err)
	}
	r.await(coord.TraceSkipped, 1)
	r.await(coord.TraceReplayed, 1)
	bounds, _ := r.finishNow()
	c.check(t, feed, bounds)
}

func TestClosed(t *testing.T) {
	feed := uniformFeed{keys: 10, perSec: 1000}
	h, err := Start(Config{Job: countJob("closed", "", false), Feed: feed, Due: feed.paced})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.Do(func(*coord.Coordinator, *coord.Effects) {}); !errors.Is(err, ErrClosed) {
		t.Errorf("Do after Close: %v, want ErrClosed", err)
	}
	if err := h.Kill(1); !errors.Is(err, ErrNoProcess) {
		t.Errorf("Kill after Close: %v, want ErrNoProcess", err)
	}
	_ = h.Metrics() // must not hang
	if err := h.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}
