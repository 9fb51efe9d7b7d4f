package spec

import (
	"errors"
	"strings"
	"testing"
)

const remoteCount = "job.operators.count.state={backend: remote}"

func parseStored(t *testing.T, text string, sets ...string) (*Suite, error) {
	t.Helper()
	k := testKnown()
	k.Stored, k.Backends = []string{"count"}, append(k.Backends, "pebble")
	k.Kinds = append(k.Kinds, Kind{"tumbling", RoleKeyed})
	k.CheckStore = func(url string) error {
		if strings.HasPrefix(url, "http:") {
			return errors.New("not the URL of a store: " + url)
		}
		return nil
	}
	return Parse("t.yaml", []byte(text), Options{Known: k, Sets: sets})
}

// bare is the good suite with a move only, without checkpoints.
func bare(migration string) []string {
	return []string{"checkpoint.interval=0s", "objectives=[]", "cells=[{name: move, migration: {strategy: " + migration + "}}]"}
}

func TestStores(t *testing.T) {
	remote := func(state string, more ...string) []string {
		return append(append(bare("externalise"), "job.operators.count.state={backend: remote"+state+"}"), more...)
	}
	for _, c := range []struct {
		name string
		sets []string
		want []string // none: accepted
	}{
		{"embedded", remote(""), nil},
		{"by URL", remote(", url: 'redis://h:1', cache: 1MiB"), nil},
		{"no cache", remote(", cache: 0B"), nil},
		{"control", append(bare("none"), remoteCount), nil},
		{"simulated", remote("", "runtime=sim"), nil},
		{"containers that reach it", remote(", url: 'redis://h:1'", "runtime=docker"), nil},
		{"unknown backend", remote("", "job.operators.count.state.backend=remot"), []string{"job.operators.count.state.backend", `unknown state backend "remot"`, "did you mean remote?"}},
		{"on disk", append(bare("none"), "job.operators.count.state={backend: pebble, cache: 8MiB}"), nil},
		{"URL of a disk", append(bare("none"), "job.operators.count.state={backend: pebble, url: 'redis://h:1'}"), []string{"state.url: has no effect", "pebble"}},
		{"URL of the heap", append(bare("none"), "job.operators.count.state={url: 'redis://h:1'}"), []string{"state.url: has no effect", "backend: remote"}},
		{"cache of the heap", append(bare("none"), "job.operators.count.state={cache: 1MiB}"), []string{"state.cache: has no effect", "heap"}},
		{"empty URL", remote(", url: ''"), []string{"state.url: is empty", "embedded"}},
		{"bad URL", remote(", url: 'http://h'"), []string{"state.url: not the URL of a store: http://h"}},
		{"negative cache", remote(", cache: -1MiB"), []string{"state.cache"}},
		{"moved from task to task", append(bare("async-rounds"), remoteCount), []string{"cells.move.migration.strategy: async-rounds moves state from task to task", "use externalise"}},
		{"externalise of the heap", bare("externalise"), []string{"needs state outside the workers", "remote"}},
		{"standbys", remote("", "cells.move.recovery=active"), []string{"cells.move.recovery: active does not go with the state of count", "use none"}},
		{"a standby elsewhere", remote("", "cells.move.recovery={overrides: [{operator: source, strategy: active}]}"), []string{"active does not go with"}},
		{"checkpoints", remote("", "checkpoint.interval=1s"), []string{"checkpoint.interval: a checkpoint does not go with", "0s"}},
		{"transactional sink", remote("", "checkpoint.interval=1s", "job.operators.sink.sink=transactional"), []string{"sink: transactional does not go with", "eager"}},
		{"kind of blobs", remote("", "job.operators.count.kind=tumbling"), []string{"state.backend: a tumbling needs all keys", "count"}},
		{"state of a source", remote("", "job.operators.source.state={backend: remote}"), []string{"kind source has no keyed state"}},
		{"sizes by key", remote("", "workload.state={kind: constant, mean: 100}"), []string{"state.backend: workload.state gives each key", "remove workload.state"}},
		{"keys from the start", remote(", preload: 100"), []string{"state.preload: fills the heap", "warm-up"}},
		{"simulated by URL", remote(", url: 'redis://h:1'", "runtime=sim"), []string{"state.url: the simulator connects to no store"}},
		{"simulated control", append(bare("none"), remoteCount, "runtime=sim"), []string{"only for moves by externalise, not with none"}},
		{"simulated without a move", append(bare("none"), remoteCount, "runtime=sim", "cells=[{name: a}]"), []string{"only for moves by externalise"}},
		{"embedded in containers", remote("", "runtime=docker"), []string{"cannot reach the embedded store", "add 'url:'"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseStored(t, good, c.sets...)
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantErr(t, err, c.want...)
		})
	}
}

// TestStorePlaces says that what is found out later about a store can be told with its place in the file.
func TestStorePlaces(t *testing.T) {
	for yaml, want := range map[string]string{
		"state: {backend: remote}":                   "t.yaml:14:24: job.operators.count.state.backend: is down; start it",
		"state: {backend: remote, url: 'redis://h'}": "t.yaml:14:37: job.operators.count.state.url: is down; start it",
	} {
		s, err := parseStored(t, strings.Replace(good, "state: {bytesPerKey: 16KiB}", yaml, 1), bare("externalise")...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Cells[0].Job.Operators[1].State.Where.Error("is down", "start it").Error(); got != want {
			t.Errorf("%s: %s, want %s", yaml, got, want)
		}
	}
	s, err := parseStored(t, good, append(bare("externalise"), remoteCount, "job.operators.count.state.url=redis://:sesame@h")...)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Cells[0].Job.Operators[1].State.Where.Error("is down", "").Error()
	if want := "--set job.operators.count.state.url=redis://:xxxxx@h: job.operators.count.state.url: is down"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		"redis://h:1/0":     "redis://h:1/0",
		"s3://token@bucket": "s3://xxxxx@bucket",
		"s3://b?access_KEY=1&region=x&sig_signature=2 ? keys: 5 = 6": "s3://b?access_KEY=xxxxx&region=x&sig_signature=xxxxx ? keys: 5 = 6",
		`url: "redis://u:pw@h:1/0?prefix=a", cache: 1B`:              `url: "redis://u:xxxxx@h:1/0?prefix=a", cache: 1B`,
		"--set x=rediss://:p@w:d/@h and unix://u:x@/sock":            "--set x=rediss://:xxxxx@h and unix://u:xxxxx@/sock",
		"https://host:80/path and later a time 12:30 @ noon":         "https://host:80/path and later a time 12:30 @ noon",
	} {
		if got := Redact(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	_, err := parseStored(t, good, append(bare("externalise"), "job.operators.count.state={backend: remote, url: 'http://u:sesame@h'}")...)
	if err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("the error tells the password, or there is none: %v", err)
	}
}
