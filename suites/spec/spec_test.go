package spec

import (
	"errors"
	"strings"
	"testing"
)

// testKnown is a small engine's lists.
func testKnown() Known {
	return Known{
		Kinds:      []Kind{{"source", RoleSource}, {"count", RoleKeyed}, {"forward", RoleStateless}, {"filter", RoleStateless}, {"sink", RoleSink}},
		Migrations: []MigrationInfo{{Name: "none", None: true}, {Name: "stop-restart"}, {Name: "async-rounds", Rounds: true}, {Name: "externalise", External: true}},
		Recoveries: []RecoveryInfo{{Name: "none", None: true}, {Name: "checkpoint", Checkpoint: true}, {Name: "active", Standby: true}},
		Planners:   []string{"greedy", "mixed"},
		Workloads:  []string{"uniform", "zipf", "book", "replay"},
		Arrivals:   []string{"constant", "poisson", "replay", "none"},
		Presets:    []string{"ycsb"},
		Backends:   []string{"heap", "remote"},
		Faults: []FaultInfo{{"kill", []TargetKind{TargetWorker, TargetTask}}, {"freeze", []TargetKind{TargetWorker, TargetTask}},
			{"cut", []TargetKind{TargetLink}}, {"slow", []TargetKind{TargetWorker, TargetTask}}},
		Triggers: []string{"barrier-injected", "round-started"},
	}
}

// good is a suite that has one of everything.
const good = `name: test
description: one of everything
seed: 7
repeat: 2
job:
  workers: 2
  operators:
    - {name: source, kind: source}
    - name: count
      kind: count
      inputs: [source]
      parallelism: 2
      keyGroups: 64
      state: {bytesPerKey: 16KiB}
      service: {mode: busy, mean: 5us}
    - {name: sink, kind: sink, inputs: [count]}
workload:
  kind: zipf
  keys: 10k
  exponent: 0.99
  rate: 50000/s
timing:
  warmup: 500ms
  steady: 1.5s
  after: 2s
checkpoint:
  interval: 1s
cells:
  - name: move
    labels: {strategy: stop-restart}
    migration: {strategy: stop-restart}
  - name: die
    recovery: checkpoint
    faults:
      - {kind: kill, target: worker 2}
objectives:
  - move.spike_peak_ms <= 0.1 * die.spike_peak_ms.max
`

func parse(t *testing.T, text string, sets ...string) (*Suite, error) {
	t.Helper()
	return Parse("t.yaml", []byte(text), Options{Known: testKnown(), Sets: sets})
}

func mustParse(t *testing.T, text string, sets ...string) *Suite {
	t.Helper()
	s, err := parse(t, text, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantErr checks that the refusal has a line with all the parts.
func wantErr(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, ErrInvalid) {
		t.Fatalf("want a refusal with %q, got %v", parts, err)
	}
next:
	for _, line := range strings.Split(err.Error(), "\n") {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		return
	}
	t.Errorf("no line has all of %q:\n%v", parts, err)
}

func TestGoodSuite(t *testing.T) {
	s := mustParse(t, good)
	if len(s.Cells) != 2 || s.Cells[0].Job.Operators[1].State.BytesPerKey != 16<<10 || s.Cells[1].Workload.Rate != 50000 {
		t.Errorf("%+v", s)
	}
	if got := s.Cells[0].Migration.Operator; got != "count" {
		t.Errorf("the only keyed operator should be filled in, got %q", got)
	}
	if got := s.Cells[1].Recovery.Strategy; got != "checkpoint" {
		t.Errorf("short form: got %q", got)
	}
	if got := s.Cells[0].Recovery.Strategy; got != "none" {
		t.Errorf("without a strategy: got %q", got)
	}
	again := mustParse(t, s.AsRun)
	if again.AsRun != s.AsRun {
		t.Errorf("the suite as run should parse to itself:\n%s\n%s", s.AsRun, again.AsRun)
	}
}
