//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
)

// TestStoreIsAskedFirst says that a store that refuses ends the command with code 2, at its place in the file, before even
// a suite in front of it is started.
func TestStoreIsAskedFirst(t *testing.T) {
	inTempDir(t)
	const head = `name: short
repeat: 1
job:
  operators: [{name: in, kind: source}, {name: n, kind: count, inputs: [in], parallelism: 2}, {name: out, kind: sink, inputs: [n]}]
workload: {kind: uniform, keys: 100, rate: 5000/s}
timing: {warmup: 50ms, steady: 100ms, after: 100ms, hold: 50ms, interval: 20ms}
cells:
`
	const bad = "  - name: moved\n    migration: {strategy: externalise}\n    job: {operators: [{name: n, state: {backend: remote, url: 'redis://u:sesame@127.0.0.1:1'}}]}\n"
	for name, text := range map[string]string{"good.yaml": head + "  - name: only\n", "bad.yaml": head + bad} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := bench(t, wire(), nil, "", "run", "good.yaml", "bad.yaml", "--progress", "none", "--out", "runs")
	want := "bad.yaml:10:63: cells.moved.job.operators.n.state.url: store redis://u:xxxxx@127.0.0.1:1: connect: the store is down"
	if got.code != exitUsage || !strings.HasPrefix(got.err, want) || got.out != "" {
		t.Errorf("want %s, got %+v", want, got)
	}
	if left, err := os.ReadDir("runs"); err != nil || len(left) > 0 {
		t.Errorf("something was begun: %v, %v", left, err)
	}
	// What is wrong without asking anybody is told by validate, too.
	got = bench(t, wire(), nil, strings.Replace(head+bad, "redis:", "http:", 1), "validate", "-")
	if got.code != exitUsage || !strings.Contains(got.err, "not the URL of a store") || strings.Contains(got.err, "sesame") {
		t.Errorf("%+v", got)
	}
}
