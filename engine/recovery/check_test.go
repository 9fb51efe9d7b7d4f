package recovery_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
)

// checked is a job of a source, a windowed operator and a sink that keeps its promises.
func checked() core.Job {
	op := func(name, kind string, in ...string) core.OperatorSpec {
		return core.OperatorSpec{Name: name, Kind: kind, Parallelism: 2, Inputs: in, Recovery: core.RecoveryCheckpoint}
	}
	windows := op("windows", "tumbling", "in")
	windows.Groups, windows.Params = 8, map[string]string{"time": "due", "size": "20ms", "function": "count"}
	return core.Job{ID: "check", Workers: 2, Checkpoint: time.Second, Operators: []core.OperatorSpec{op("in", "source"), windows, op("out", "sink", "windows")}}
}

func all(j *core.Job, strategy, scope string) {
	for i := range j.Operators {
		j.Operators[i].Recovery, j.Operators[i].Scope = strategy, scope
	}
}

// TestCheck breaks a good job in one way at a time; each is refused with what is wrong and what would be right.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(j *core.Job)
		want   []string // parts of the message; none: it is accepted
	}{
		{"as it is", func(j *core.Job) {}, nil},
		{"smallest log", func(j *core.Job) { j.LogBytes = core.MinLogBytes }, nil},
		{"log too small", func(j *core.Job) { j.LogBytes = core.MinLogBytes - 1 }, []string{"log of 1023 bytes", "one batch", "at least 1024"}},
		{"room on disk too small", func(j *core.Job) { all(j, core.RecoveryUpstream, ""); j.SpillBytes = core.MinLogBytes - 1 }, []string{"1023 bytes on disk", "one batch", "at least 1024"}},
		{"room on disk", func(j *core.Job) { all(j, core.RecoveryUpstream, ""); j.SpillBytes = core.MinLogBytes }, nil},
		{"room on disk with scope task", func(j *core.Job) { all(j, core.RecoveryCheckpoint, core.ScopeTask); j.SpillBytes = 1 << 20 }, nil},
		{"room on disk for nothing", func(j *core.Job) { all(j, core.RecoveryCheckpoint, core.ScopeRegion); j.SpillBytes = 1 << 20 }, []string{"no task replays alone", "want recovery upstream, passive, active or checkpoint with scope task"}},
		{"lease as long as the heartbeat", func(j *core.Job) { j.Lease, j.Heartbeat = time.Second, time.Second }, []string{"lease 1s, heartbeat 1s", "longer lease"}},
		{"unknown strategy", func(j *core.Job) { j.Operators[1].Recovery = "prayer" }, []string{"operator windows", `"prayer"`, "checkpoint"}},
		{"unknown strategy of a task", func(j *core.Job) { j.Operators[1].TaskRecovery = []string{"", "prayer"} }, []string{"operator windows", `"prayer"`}},
		{"scope without checkpoints to go back to", func(j *core.Job) { all(j, core.RecoveryActive, core.ScopeTask) }, []string{"operator in", "scope task", "none of its tasks has recovery checkpoint"}},
		{"scope task without an interval", func(j *core.Job) { all(j, core.RecoveryCheckpoint, core.ScopeTask); j.Checkpoint = 0 }, []string{"scope task without checkpoints", "want a checkpoint interval"}},
		{"scope task", func(j *core.Job) { all(j, core.RecoveryCheckpoint, core.ScopeTask) }, nil},
		{"scope task unaligned", func(j *core.Job) { all(j, core.RecoveryCheckpoint, core.ScopeTask); j.Unaligned = true }, []string{"unaligned barriers", "want aligned ones, or scope global"}},
		{"one worker and active", func(j *core.Job) { all(j, core.RecoveryActive, ""); j.Workers = 1 }, []string{"recovery active with 1 worker", "at least 2 workers"}},
		{"one worker and passive", func(j *core.Job) { all(j, core.RecoveryPassive, ""); j.Workers = 1 }, []string{"recovery passive with 1 worker"}},
		{"upstream of windows", func(j *core.Job) { all(j, core.RecoveryUpstream, "") }, nil},
		{"upstream on disk", func(j *core.Job) { all(j, core.RecoveryUpstream, ""); j.Operators[1].Backend = core.BackendPebble }, []string{"recovery upstream with backend pebble", "want backend heap"}},
		{"upstream of what keeps everything", func(j *core.Job) {
			all(j, core.RecoveryUpstream, "")
			j.Operators[1].Kind, j.Operators[1].Params = "count", nil
		}, []string{"operator windows", "a count keeps something of every record for ever", "want checkpoint, passive or active"}},
		{"nothing before what replays", func(j *core.Job) { all(j, core.RecoveryActive, ""); j.Operators[0].Recovery = core.RecoveryNone }, []string{"task in[0] with recovery none sends to windows[0]", "or none for both"}},
		{"region of two kinds", func(j *core.Job) {
			all(j, core.RecoveryCheckpoint, core.ScopeRegion)
			j.Operators[2].Recovery, j.Operators[2].Scope = core.RecoveryActive, ""
		}, []string{"rolls back in scope region", "out[0]", "want the same for all that is connected"}},
		{"scope task beside passive", func(j *core.Job) {
			all(j, core.RecoveryCheckpoint, core.ScopeTask)
			j.Operators[1].Recovery, j.Operators[1].Scope = core.RecoveryPassive, ""
		}, []string{"in scope task", "bases of its own (recovery passive)", "want active for one of them"}},
		{"scope task beside active", func(j *core.Job) {
			all(j, core.RecoveryCheckpoint, core.ScopeTask)
			j.Operators[1].Recovery, j.Operators[1].Scope = core.RecoveryActive, ""
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := checked()
			c.change(&j)
			g, err := core.BuildGraph(j, operator.Info)
			if err != nil {
				t.Fatal(err)
			}
			err = recovery.Check(g, operator.Horizon)
			if len(c.want) == 0 {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}
