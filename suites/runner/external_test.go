//go:build linux

package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/host"
	"github.com/weir-bench/weir/engine/state/remote"
	"github.com/weir-bench/weir/internal/need"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/reports/stats"
	"github.com/weir-bench/weir/suites/progress"
	"github.com/weir-bench/weir/suites/spec"
)

const storing = `
name: storing
seed: 7
repeat: 1
order: blocked
job:
  operators:
    - {name: in, kind: source, placement: [1]}
    - name: count
      kind: count
      inputs: [in]
      parallelism: 2
      placement: [2, 1]
      keyGroups: 64
      state: {bytesPerKey: 100B}
    - {name: out, kind: sink, inputs: [count], placement: [1]}
workload: {kind: uniform, keys: 200, rate: 5000/s}
timing: {warmup: 200ms, steady: 200ms, after: 200ms, hold: 100ms, interval: 20ms, band: 5, drain: 3s}
detection: {lease: 3s} # on a busy machine nobody is lost by accident
x-remote: &remote {job: {operators: [{name: count, state: {backend: remote}}]}}
cells:
  - {name: heap, migration: {strategy: async-rounds, rounds: 4}}
  - {name: cached, migration: {strategy: externalise}, <<: *remote}
  - {name: uncached, migration: {strategy: externalise}, job: {operators: [{name: count, state: {backend: remote, cache: 0B}}]}}
  - {name: control, <<: *remote}
`

// cellsOf parses a suite and keeps the trials of the cells with the given names.
func cellsOf(t *testing.T, names string, sets ...string) (*spec.Suite, []spec.Trial) {
	t.Helper()
	s, plan := parse(t, storing, sets...)
	var kept []spec.Trial
	for _, p := range plan {
		if strings.Contains(" "+names+" ", " "+p.Name+" ") {
			p.Index = len(kept)
			kept = append(kept, p)
		}
	}
	return s, kept
}

// TestExternalise moves state in the embedded store, with a cache and without one, and state in the heap beside it.
func TestExternalise(t *testing.T) {
	s, plan := cellsOf(t, "heap cached uncached control")
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan, Source: []byte(storing), OutDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	orphanless(t)
	metrics := map[string]map[string]runlog.Metric{}
	for _, c := range checkSchema(t, out.Dir).Cells {
		rep := c.Repetitions[0]
		t.Logf("%s: %s %s", c.Name, rep.Verdict, rep.VerdictReason)
		a := rep.Answers
		if rep.Verdict == runlog.Invalid || a.Lost == nil || *a.Lost != 0 || *a.Wrong != 0 || *a.Duplicated != 0 || *a.Answered != *a.Expected {
			t.Errorf("%s: %s %s %+v", c.Name, rep.Verdict, rep.VerdictReason, a)
		}
		metrics[c.Name] = rep.Metrics
	}
	value := func(cell, name string) float64 {
		t.Helper()
		m := metrics[cell][name]
		if m.Value == nil {
			t.Errorf("%s: %s is %+v", cell, name, m)
			return 0
		}
		return *m.Value
	}
	for _, cell := range []string{"heap", "cached", "uncached"} {
		value(cell, "migration_ms")
		if _, there := metrics[cell]["moved_p99_ms"]; !there {
			t.Errorf("%s: no moved_p99_ms", cell)
		}
	}
	for _, name := range []string{"store_reads_s", "store_writes_s", "cache_hit_share", "store_cpu_s_per_mrec", "store_rss_bytes", "cold_reads"} {
		if m, there := metrics["heap"][name]; there {
			t.Errorf("heap: %s is %+v", name, m)
		}
		for _, cell := range []string{"cached", "uncached"} {
			value(cell, name)
		}
	}
	if m, there := metrics["control"]["cold_reads"]; there {
		t.Errorf("control: cold_reads is %+v, though nothing moved", m)
	}
	// In the steady phase nearly all keys have been seen; without a cache each is read whenever it comes.
	if cached, uncached := value("cached", "cache_hit_share"), value("uncached", "cache_hit_share"); cached <= uncached {
		t.Errorf("found in the cache: %v with one, %v without", cached, uncached)
	}
	if reads, writes := value("uncached", "store_reads_s"), value("cached", "store_writes_s"); reads < 500 || writes < 500 {
		t.Errorf("%v values/s read without a cache and %v written with one, at 5,000 records/s", reads, writes)
	}
	if n := value("control", "store_rss_bytes"); n < 1<<20 {
		t.Errorf("the store's process has %v bytes", n)
	}
}

// realRedis starts the installed Redis and returns a client for it, its port, and its process.
func realRedis(t *testing.T, args ...string) (*redis.Client, string, *os.Process) {
	t.Helper()
	program := need.Redis(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--appendonly", "no"}, args...)...)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd.Stdout = write
	err = cmd.Start()
	_ = write.Close() // the server has its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // this very process
		_ = cmd.Wait()         // says that it was killed
	})
	var said strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(said.String(), "Ready to accept connections"); {
		n, err := read.Read(buf)
		if said.Write(buf[:n]); err != nil {
			t.Fatalf("the server ended: %v\n%s", err, said.String())
		}
	}
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, Password: sesame(args)})
	t.Cleanup(func() { _ = c.Close() }) // the server is on its way out
	return c, addr, cmd.Process
}

func sesame(args []string) string {
	for i, a := range args {
		if a == "--requirepass" {
			return args[i+1]
		}
	}
	return ""
}

// onPhase calls do, on a goroutine of its own, when the display shows a text for the first time.
type onPhase struct {
	text string
	once sync.Once
	do   func()
	done chan struct{}
}

func (p *onPhase) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(p.text)) {
		p.once.Do(func() {
			go func() {
				defer close(p.done)
				p.do()
			}()
		})
	}
	return len(b), nil
}

func display(text string, do func()) (*progress.Progress, *onPhase) {
	p := &onPhase{text: text, do: do, done: make(chan struct{})}
	return progress.New(progress.Plain, p, time.Now), p
}

// TestStoreByURL uses a real server with a password that no file of the run may tell; what others keep there stays.
func TestStoreByURL(t *testing.T) {
	c, addr, _ := realRedis(t, "--requirepass", "open-sesame")
	ctx := context.Background()
	if err := c.HSet(ctx, "weir:weir-other:count:1:0", "1", "one").Err(); err != nil {
		t.Fatal(err)
	}
	// YAML has ways to hide a password from whoever only looks for URLs.
	source := strings.Replace(storing, "state: {backend: remote}", `state: {backend: remote, url: "redis:\x2f/:open-sesame@`+addr+`"}`, 1)
	override := "cells.uncached.job.operators.count.state.url=redis://:open-sesame@" + addr
	s, plan := parse(t, source, override)
	plan = plan[1:3]
	plan[0].Index, plan[1].Index = 0, 1
	out, err := Run(ctx, Options{Suite: s, Plan: plan, Source: []byte(source), Args: []string{"bench", "run", "--set", override}, OutDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range checkSchema(t, out.Dir).Cells {
		rep := cell.Repetitions[0]
		if rep.Verdict == runlog.Invalid || *rep.Answers.Lost != 0 {
			t.Errorf("%s: %s %s", cell.Name, rep.Verdict, rep.VerdictReason)
		}
		for _, name := range []string{"store_cpu_s_per_mrec", "store_rss_bytes"} {
			if m := rep.Metrics[name]; m.Value == nil || *m.Value <= 0 {
				t.Errorf("%s: %s is %+v", cell.Name, name, m)
			}
		}
	}
	if keys, err := c.Keys(ctx, "*").Result(); err != nil || len(keys) != 1 || keys[0] != "weir:weir-other:count:1:0" {
		t.Errorf("in the store are %q (%v)", keys, err)
	}
	noFileTells(t, out.Dir, "open-sesame")
	m, err := os.ReadFile(filepath.Join(out.Dir, runlog.ManifestFile))
	if err != nil || bytes.Count(m, []byte("xxxxx@"+addr)) < 3 {
		t.Errorf("the manifest has no URL (%v):\n%s", err, m)
	}
}

// noFileTells fails when a file below dir has a text.
func noFileTells(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s tells the password", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStoresThatRefuse names what is wrong with a store before anything starts.
func TestStoresThatRefuse(t *testing.T) {
	_, locked, _ := realRedis(t, "--requirepass", "open-sesame")
	_, full, _ := realRedis(t, "--maxmemory", "1kb", "--maxmemory-policy", "noeviction")
	_, forgets, _ := realRedis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, c := range []struct {
		url  string
		want []string
	}{
		{"redis://127.0.0.1:1", []string{"the store is down", "start it"}},
		{"redis://" + locked, []string{"refuses the credentials", "NOAUTH"}},
		{"redis://:wrong-sesame@" + locked, []string{"refuses the credentials", "WRONGPASS", ":xxxxx@"}},
		{"redis://" + full, []string{"the store is full", "OOM"}},
		{"redis://" + forgets, []string{"not fit to keep state", "allkeys-lru", "noeviction"}},
		{"redis://" + silent.Addr().String() + "?read_timeout=50ms", []string{"too slow", "read_timeout"}},
	} {
		s, plan := cellsOf(t, "cached", "cells.cached.job.operators.count.state.url="+c.url)
		dir := t.TempDir()
		_, err := Run(context.Background(), Options{Suite: s, Plan: plan, Source: []byte(storing), OutDir: dir})
		if !errors.Is(err, spec.ErrInvalid) {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		for _, want := range append(c.want, "--set cells.cached.job.operators.count.state.url", "count.state.url: store redis://") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", c.url, err, want)
			}
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: begun %v, told %q", c.url, left, err)
		}
	}
}

// TestStoresThatFail breaks the store in the middle of a trial: the trial ends soon with the store's words, and nothing of
// it is left.
func TestStoresThatFail(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		options string
		wreck   func(ctx context.Context, c *redis.Client, p *os.Process) error
		want    []string
	}{
		{"killed", nil, "", func(_ context.Context, _ *redis.Client, p *os.Process) error { return p.Kill() }, []string{"the store is down"}},
		{"paused", nil, "?read_timeout=100ms", func(ctx context.Context, c *redis.Client, _ *os.Process) error {
			return c.Do(ctx, "CLIENT", "PAUSE", "1000", "ALL").Err()
		}, []string{"the store is too slow", "read_timeout"}},
		{"full", nil, "", func(ctx context.Context, c *redis.Client, _ *os.Process) error {
			return c.ConfigSet(ctx, "maxmemory", "1kb").Err()
		}, []string{"the store is full", "memory limit"}},
		{"wrong type", nil, "", replaceHashes, []string{"something else under the same name", "WRONGTYPE"}},
		{"locked", nil, "", func(ctx context.Context, c *redis.Client, _ *os.Process) error {
			return c.Do(ctx, "ACL", "SETUSER", "default", "-hset").Err()
		}, []string{"refuses the credentials", "NOPERM"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, addr, process := realRedis(t, c.args...)
			s, plan := cellsOf(t, "cached", "cells.cached.job.operators.count.state.url=redis://"+addr+c.options)
			shown, hook := display("cached #1 event", func() {
				if err := c.wreck(context.Background(), client, process); err != nil {
					t.Error(err)
				}
			})
			begun := time.Now()
			out, err := Run(context.Background(), Options{Suite: s, Plan: plan, Source: []byte(storing), OutDir: t.TempDir(), Progress: shown})
			<-hook.done
			if err != nil || time.Since(begun) > 10*time.Second {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
			checkFailed(t, out, c.want...)
			if c.name == "full" || c.name == "wrong type" {
				if n, err := client.DBSize(context.Background()).Result(); n != 0 || err != nil {
					t.Errorf("%d keys are left in the store (%v)", n, err)
				}
			}
		})
	}
}

func checkFailed(t *testing.T, out Outcome, want ...string) {
	t.Helper()
	r := checkSchema(t, out.Dir)
	if out.Unknown != 1 || len(r.Cells) != 1 {
		t.Fatalf("%+v, %d cells", out, len(r.Cells))
	}
	rep := r.Cells[0].Repetitions[0]
	for _, w := range append(want, errStore.Error(), "external state of count") {
		if rep.Verdict != runlog.Unknown || !strings.Contains(rep.VerdictReason, w) {
			t.Errorf("%s: %q lacks %q", rep.Verdict, rep.VerdictReason, w)
		}
	}
}

// replaceHashes puts texts in the place of what is in the store.
func replaceHashes(ctx context.Context, c *redis.Client, _ *os.Process) error {
	keys, err := c.Keys(ctx, "weir:*").Result()
	if err == nil && len(keys) == 0 {
		err = errors.New("the store is empty")
	}
	if err != nil {
		return err
	}
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error { // whole, before the trial can end and clean up
		for _, k := range keys {
			p.Set(ctx, k, "text", 0)
		}
		return nil
	})
	return err
}

// TestEmbeddedStoreFails kills the embedded store's process.
func TestEmbeddedStoreFails(t *testing.T) {
	s, plan := cellsOf(t, "uncached")
	shown, hook := display("uncached #1 event", func() {
		pid, err := storeChild()
		if err == nil {
			err = unix.Kill(pid, unix.SIGKILL)
		}
		if err != nil {
			t.Error(err)
		}
	})
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan, Source: []byte(storing), OutDir: t.TempDir(), Progress: shown})
	if err != nil {
		t.Fatal(err)
	}
	<-hook.done
	orphanless(t)
	checkFailed(t, out, "the store is down", "the embedded store's process has ended: signal: killed")
}

// storeChild returns the child process of this one that is an embedded store.
func storeChild() (int, error) {
	found, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, path := range found {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var pid, parent int
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if _, err := fmt.Sscan(string(stat), &pid); err != nil {
			return 0, err
		}
		if _, err := fmt.Sscan(fields[1], &parent); err != nil || parent != os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		if err == nil && bytes.Contains(environ, []byte("WEIR_STORE=")) {
			return pid, nil
		}
	}
	return 0, errors.New("there is no embedded store")
}

// TestSlowStore holds the answers of a store up for less than its time limit: the records wait, and that is seen.
func TestSlowStore(t *testing.T) {
	client, addr, _ := realRedis(t)
	s, plan := cellsOf(t, "uncached", "cells.uncached.job.operators.count.state.url=redis://"+addr, "cells.uncached.migration={strategy: externalise, at: 0s}", "timing.hold=50ms")
	shown, hook := display("uncached #1 event", func() {
		if err := client.Do(context.Background(), "CLIENT", "PAUSE", "150", "ALL").Err(); err != nil {
			t.Error(err)
		}
	})
	out, err := Run(context.Background(), Options{Suite: s, Plan: plan, Source: []byte(storing), OutDir: t.TempDir(), Progress: shown})
	if err != nil {
		t.Fatal(err)
	}
	<-hook.done
	rep := checkSchema(t, out.Dir).Cells[0].Repetitions[0]
	if m := rep.Metrics["spike_max_ms"]; rep.Verdict == runlog.Invalid || rep.VerdictReason == errStore.Error() || m.Value == nil || *m.Value < 100 {
		t.Errorf("%s %s, longest delay %+v", rep.Verdict, rep.VerdictReason, m)
	}
}

// TestInterruptedStore cancels a trial as a Ctrl-C does: its keys are removed, and only these.
func TestInterruptedStore(t *testing.T) {
	client, addr, _ := realRedis(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := client.Set(ctx, "mine", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var during int64
	shown, hook := display("cached #1 event", func() {
		during, _ = client.DBSize(context.Background()).Result() // 0 fails below
		cancel()
	})
	s, plan := cellsOf(t, "cached", "cells.cached.job.operators.count.state.url=redis://"+addr)
	out, err := Run(ctx, Options{Suite: s, Plan: plan, Source: []byte(storing), OutDir: t.TempDir(), Progress: shown})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	<-hook.done
	keys, err := client.Keys(context.Background(), "*").Result()
	if during < 10 || err != nil || len(keys) != 1 || keys[0] != "mine" {
		t.Errorf("%d keys while it ran; behind it %q (%v)", during, keys, err)
	}
	if r := checkSchema(t, out.Dir); !r.Partial || r.Cells[0].Repetitions[0].VerdictReason != "interrupted" {
		t.Errorf("partial %v, %+v", r.Partial, r.Cells)
	}
}

// TestStoreMetrics holds the metrics of a made-up trial against what its readings say.
func TestStoreMetrics(t *testing.T) {
	at := func(ms time.Duration, reads, writes, inputs uint64, cpu time.Duration, rss int64) reading {
		return reading{at: ms * time.Millisecond, answered: inputs, store: storeReading{reads: reads, writes: writes, inputs: inputs, cpu: cpu * time.Millisecond, rss: rss}}
	}
	made := func() *trial {
		tr := &trial{feed: &feed{}}
		tr.store.process = &host.StoreProcess{} // nothing asks it
		tr.seen.before, tr.seen.after, tr.seen.haveSteady = at(1000, 100, 500, 1000, 50, 7), at(3000, 300, 2500, 5000, 90, 9), true
		tr.seen.store, tr.seen.storeAt, tr.seen.haveStore = storeReading{reads: 700}, 5*time.Second, true
		tr.traces = []coord.Trace{{Kind: coord.TraceMigration, AtNS: int64(3100 * time.Millisecond)}}
		return tr
	}
	check := func(tr *trial, want map[string]float64, missing map[string]string) {
		t.Helper()
		m := map[string]runlog.Metric{}
		tr.storeMetrics(m)
		for name, w := range want {
			if got := m[name]; got.Value == nil || math.Abs(*got.Value-w) > 1e-9 {
				t.Errorf("%s is %+v, want %v", name, got, w)
			}
		}
		for name, reason := range missing {
			if got := m[name]; got.Value != nil || !strings.Contains(got.Reason, reason) {
				t.Errorf("%s is %+v, want %q", name, got, reason)
			}
		}
	}
	check(made(), map[string]float64{"store_reads_s": 100, "store_writes_s": 1000, "cache_hit_share": 0.95,
		"store_cpu_s_per_mrec": 10, "store_rss_bytes": 9, "cold_reads": 200}, nil)
	warm := made()
	warm.seen.store.reads = 450 // fewer than the rate of the steady phase makes
	check(warm, map[string]float64{"cold_reads": 0}, nil)
	cut := made()
	cut.seen.haveStore = false
	check(cut, nil, map[string]string{"cold_reads": "ended before"})
	early := made()
	early.seen.haveSteady = false
	check(early, nil, map[string]string{"store_reads_s": "did not end", "store_rss_bytes": "did not end"})
	silent := made()
	silent.seen.after.store.err = remote.ErrNoUsage
	check(silent, map[string]float64{"store_reads_s": 100}, map[string]string{"store_cpu_s_per_mrec": "does not tell", "store_rss_bytes": "does not tell"})
	idle := made()
	idle.seen.after = idle.seen.before
	idle.seen.after.at = 2 * time.Second
	check(idle, map[string]float64{"store_writes_s": 0}, map[string]string{"cache_hit_share": "no record", "store_cpu_s_per_mrec": "nothing was answered"})
}

// TestMovedMetric looks at the keys that moved, from the end of the move on, for a second.
func TestMovedMetric(t *testing.T) {
	rec := func() *stats.Recorder {
		return stats.NewRecorder(stats.RecorderOptions{Interval: 20 * time.Millisecond})
	}
	tr := &trial{feed: &feed{}, col: &collector{delays: [2]*stats.Recorder{rec(), rec()}}, length: 5 * time.Second, moveSeries: &stats.Series{}}
	for i, delay := range []time.Duration{900, 40, 30, 700} { // one second each, the move ends at 1.2 s
		due := time.Duration(i)*time.Second + 500*time.Millisecond
		tr.col.delays[moves].Record(due, due+delay*time.Millisecond)
		tr.col.delays[staying].Record(due, due+time.Minute)
	}
	m := map[string]runlog.Metric{}
	tr.movedMetric(m)
	if got, there := m["moved_p99_ms"]; there {
		t.Errorf("without a move: %+v", got)
	}
	tr.traces = []coord.Trace{{Kind: coord.TraceMigrated, AtNS: int64(1200 * time.Millisecond)}}
	tr.movedMetric(m)
	if got := m["moved_p99_ms"]; got.Value == nil || math.Abs(*got.Value-40) > 0.1 {
		t.Errorf("%+v, want 40 ms", got)
	}
	tr.length = 1210 * time.Millisecond // the interval is not whole
	tr.movedMetric(m)
	if got := m["moved_p99_ms"]; got.Value != nil || got.Reason == "" {
		t.Errorf("%+v though nothing was due then", got)
	}
}

// TestPublicText leaves a text alone that has no password.
func TestPublicText(t *testing.T) {
	s, _ := parse(t, storing)
	if got := publicText(&Options{Suite: s, Source: []byte(storing)}); got != storing {
		t.Errorf("the text was changed to\n%s", got)
	}
}
