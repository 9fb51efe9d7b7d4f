//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/weir-bench/weir/reports/runlog"
)

const stored = `name: stored
repeat: 1
job:
  operators:
    - {name: in, kind: source, placement: [1]}
    - {name: n, kind: count, inputs: [in], parallelism: 2, placement: [2, 1], keyGroups: 32, state: {bytesPerKey: 256B}}
    - {name: out, kind: sink, inputs: [n], placement: [1]}
workload: {kind: uniform, keys: 500, rate: 5000/s}
timing: {warmup: 100ms, steady: 300ms, after: 500ms, hold: 100ms, interval: 20ms, band: 20, drain: 5s}
checkpoint: {interval: 100ms}
cells: [{name: kill, recovery: checkpoint, faults: [{kind: kill, target: task n/0, on: checkpoint-complete 2}]}]
`

// startS3 starts a server that speaks S3, with a bucket called checkpoints in which somebody else's object lies. puts
// counts the objects that were written.
func startS3(t *testing.T) (endpoint string, backend gofakes3.Backend, puts *atomic.Int64) {
	t.Helper()
	mem := s3mem.New()
	if err := mem.CreateBucket("checkpoints"); err != nil {
		t.Fatal(err)
	}
	if _, err := mem.PutObject("checkpoints", "base/notes.txt", nil, strings.NewReader("mine"), 4, nil); err != nil {
		t.Fatal(err)
	}
	puts = new(atomic.Int64)
	real := gofakes3.New(mem).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			puts.Add(1)
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": ""} {
		t.Setenv(name, value)
	}
	return server.URL, mem, puts
}

// summed is a text with its checksum behind it, as a MANIFEST has it.
func summed(text string) string {
	return fmt.Sprintf("%scrc32c %08x\n", text, crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

func objects(t *testing.T, backend gofakes3.Backend) (names []string) {
	t.Helper()
	list, err := backend.ListBucket("checkpoints", nil, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Contents {
		names = append(names, o.Key)
	}
	return names
}

// Workers write their checkpoints to an object store and a killed one comes back from there; nothing is left behind, and
// what belongs to others stays.
func TestCheckpointsInAnObjectStore(t *testing.T) {
	inTempDir(t)
	endpoint, backend, puts := startS3(t)
	if err := os.WriteFile("stored.yaml", []byte(stored), 0o644); err != nil {
		t.Fatal(err)
	}
	got := bench(t, wire(), nil, "", "run", "stored.yaml", "--progress", "none", "--set", "checkpoint.dir=s3://checkpoints/base?endpoint="+endpoint)
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	data, err := os.ReadFile(filepath.Join("runs", "stored", "latest", runlog.ResultsFile))
	if err != nil {
		t.Fatal(err)
	}
	var r runlog.Results
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	rep := r.Cells[0].Repetitions[0]
	t.Logf("%s %s, %d objects written", rep.Verdict, rep.VerdictReason, puts.Load())
	if rep.Verdict == runlog.Invalid || *rep.Answers.Lost != 0 || rep.Metrics["restore_ms"].Value == nil || *rep.Metrics["checkpoints"].Value < 2 {
		t.Errorf("%s %s: %+v", rep.Verdict, rep.VerdictReason, rep.Metrics)
	}
	if n := puts.Load(); n < 2*5 { // four tasks and a manifest, twice at least
		t.Errorf("%d objects were written", n)
	}
	if names := objects(t, backend); len(names) != 1 || names[0] != "base/notes.txt" {
		t.Errorf("left in the bucket: %v", names)
	}
}

// What is wrong with a place of checkpoints is said before anything starts, without credentials, and nothing in it changes.
func TestBadPlacesOfCheckpoints(t *testing.T) {
	inTempDir(t)
	endpoint, backend, _ := startS3(t)
	for name, content := range map[string]string{"stored.yaml": stored, "file": "", "mine/trial-1/job-weir/notes.txt": "mine", "taken/trial-1/job-weir/chk-1/MANIFEST": "weir-checkpoint 9\n",
		"newer/trial-1/job-weir/chk-1/MANIFEST": summed("weir-checkpoint 9\n{}\n"), "other/trial-1/job-weir/chk-1/MANIFEST": summed("weir-checkpoint 2\n{\"job\": \"theirs\", \"checkpoint\": 1}\n")} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := backend.PutObject("checkpoints", "base/trial-1/job-weir/chk-4/notes.txt", nil, strings.NewReader("mine"), 4, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, want string }{
		{"ftp://user:hush@host/x", `checkpoint.dir: ftp://xxxxx@host/x has the unknown scheme "ftp"; write a folder, file:///FOLDER or s3://BUCKET/PATH`},
		{"s3://id:hush@checkpoints", "s3://xxxxx@checkpoints has credentials in it; leave them out"},
		{"s3://checkpoints?secret_key=hush", "has credentials in it (secret_key)"},
		{"s3://checkpoints?zone=x", `unknown parameter "zone"; known: region`},
		{"s3://checkpoints", "add ?region=REGION"},
		{"s3://nowhere?endpoint=" + endpoint, "checkpoint.dir: directory for checkpoints s3://nowhere/?endpoint=*NoSuchBucket"},
		{"s3://checkpoints?endpoint=http://127.0.0.1:1", "is not writable*connection refused"},
		{"s3://checkpoints/base?endpoint=" + endpoint, "nothing in it was touched; give another one*notes.txt is not a checkpoint's"},
		{"file", "directory for checkpoints*not a directory"},
		{"mine", "in use already: notes.txt is not a checkpoint"},
		{"taken", "damaged"},
		{"newer", `nothing in it was touched; give another one*in use already*other checkpoint format version: version "9", this program reads 2`},
		{"other", `nothing in it was touched; give another one*in use already*checkpoint of another job: it is of job "theirs", want "weir"`},
		{"file/below", "--set checkpoint.dir=file/below: checkpoint.dir: directory for checkpoints*not a directory"},
		{`""`, "checkpoint.dir: is empty"},
	} {
		t.Run(c.dir, func(t *testing.T) {
			got := bench(t, wire(), nil, "", "run", "stored.yaml", "--progress", "none", "--set", "checkpoint.dir="+c.dir)
			rest, ok := got.err, true
			for part := range strings.SplitSeq(c.want, "*") {
				_, after, found := strings.Cut(rest, part)
				rest, ok = after, ok && found
			}
			if got.code != exitUsage || !ok || strings.Contains(got.err, "hush") {
				t.Errorf("code %d: %s", got.code, got.err)
			}
		})
	}
	for _, name := range []string{"runs/stored", "file/trial-1"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	for _, name := range []string{"mine/trial-1/job-weir/notes.txt", "taken/trial-1/job-weir/chk-1/MANIFEST", "newer/trial-1/job-weir/chk-1/MANIFEST", "other/trial-1/job-weir/chk-1/MANIFEST"} {
		if b, err := os.ReadFile(name); err != nil || len(b) == 0 {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	if names := objects(t, backend); len(names) != 2 {
		t.Errorf("the bucket has %v", names)
	}
}
