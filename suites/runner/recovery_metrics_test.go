package runner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/spec"
)

// traced makes a trial in which the coordinator told these things, each written as "MS KIND [task N] [node N] [DETAIL]".
func traced(t *testing.T, lines ...string) *trial {
	t.Helper()
	s, _ := parse(t, tiny)
	tr := &trial{cell: &s.Cells[1], job: buildJob(&s.Cells[1], 1), feed: &feed{}, col: &collector{}, length: time.Second}
	var err error
	if tr.graph, err = core.BuildGraph(tr.job, operator.Info); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		f := strings.Fields(line)
		var ms int64
		if _, err := fmt.Sscan(f[0], &ms); err != nil {
			t.Fatal(err)
		}
		c := coord.Trace{AtNS: ms * int64(time.Millisecond), Kind: f[1]}
		for i := 2; i < len(f); i++ {
			switch f[i] {
			case "task", "node":
				into := map[string]*int{"task": &c.Task, "node": &c.Node}[f[i]]
				if _, err := fmt.Sscan(f[i+1], into); err != nil {
					t.Fatal(err)
				}
				i++
			default:
				c.Detail = f[i]
			}
		}
		tr.traces = append(tr.traces, c)
	}
	return tr
}

// The parts of a recovery are read off the traces, whichever way the tasks come back; 0 stands for a part that did not end.
func TestPartsOfARecovery(t *testing.T) {
	for _, c := range []struct {
		name                                    string
		detected, restarted, restored, replayed int
		traces                                  []string
	}{
		{"promotion", 110, 111, 113, 117, []string{"50 restored", "110 failure-detected node 2", "111 restart-end standby", "112 replaying task 1 node 3", "113 promoted", "117 replayed task 1 node 3", "160 protected task 1"}},
		{"two promoted", 110, 111, 113, 120, []string{"110 failure-detected", "111 restart-end standby", "112 replaying task 1", "112 replaying task 2", "113 promoted", "117 replayed task 1", "120 replayed task 2"}},
		{"copies", 110, 115, 140, 160, []string{"110 failure-detected", "115 restart-end replay", "115 restoring task 1 node 4", "115 restoring task 2 node 4", "130 restored task 1 node 4 replay", "130 replaying task 1", "140 restored task 2 node 4 replay", "140 replaying task 2", "140 taken-over", "150 replayed task 2", "160 replayed task 1"}},
		{"promoted and copied", 110, 111, 140, 150, []string{"110 failure-detected", "111 restart-end standby", "112 replaying task 1", "112 promoted", "114 replayed task 1", "120 restart-end replay", "140 restored task 2 node 4 replay", "140 replaying task 2", "140 taken-over", "150 replayed task 2"}},
		{"opened again", 110, 115, 120, 120, []string{"110 failure-detected", "115 restart-end reopen", "115 restoring task 1 node 4", "120 restored task 1 node 4 reopen", "120 taken-over"}},
		{"region", 110, 115, 130, 170, []string{"110 failure-detected", "115 restart-end region", "125 restored task 1 node 4 region", "130 restored task 2 node 3 region", "130 started region", "130 taken-over", "170 replayed task -1"}},
		{"whole job", 110, 115, 130, 170, []string{"110 failure-detected", "115 restart-end", "130 restored failure", "130 started", "170 replayed task -1"}},
		{"fallback", 110, 111, 150, 190, []string{"110 failure-detected", "111 restart-end standby", "112 replaying task 1", "113 promoted", "114 fallback", "130 restart-end", "150 restored fallback", "190 replayed task -1"}},
		{"replay unfinished", 110, 111, 113, 0, []string{"110 failure-detected", "111 restart-end standby", "112 replaying task 1", "113 promoted"}},
		{"nothing came back", 110, 0, 0, 0, []string{"110 failure-detected"}},
		{"nothing detected", 0, 0, 0, 0, []string{"50 failure-detected", "60 restart-end", "70 restored", "80 replayed task -1", "120 checkpoint-begin"}},
		{"a second failure later", 110, 111, 113, 117, []string{"110 failure-detected", "111 restart-end standby", "112 replaying task 1", "113 promoted", "117 replayed task 1", "300 failure-detected", "301 restart-end replay", "320 restored task 2 node 4", "320 taken-over"}},
	} {
		r := traced(t, c.traces...).follow(100 * time.Millisecond)
		ms := func(d time.Duration, is bool) int {
			if !is {
				return 0
			}
			return int(d / time.Millisecond)
		}
		got := fmt.Sprint(ms(r.detected, r.isDetected), ms(r.restarted, r.isRestarted), ms(r.restored, r.isRestored), ms(r.replayed, r.isReplayed))
		if want := fmt.Sprint(c.detected, c.restarted, c.restored, c.replayed); got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}

// The time without protection is that in which any task lacks a standby, counted once.
func TestTimeWithoutAStandby(t *testing.T) {
	for _, c := range []struct {
		name   string
		want   float64
		exact  bool
		traces []string
	}{
		{"none lost", 0, true, []string{"50 standby-lost task 1", "60 protected task 1"}},
		{"one", 30, true, []string{"110 standby-lost task 1", "140 protected task 1"}},
		{"two at once", 50, true, []string{"110 standby-lost task 1", "120 standby-lost task 2", "140 protected task 1", "160 protected task 2"}},
		{"one after the other", 40, true, []string{"110 standby-lost task 1", "130 protected task 1", "200 standby-lost task 2", "220 protected task 2"}},
		{"deployed anew", 25, true, []string{"110 standby-lost task 1", "135 restored fallback"}},
		{"for ever", 890, false, []string{"110 standby-lost task 1"}},
	} {
		m := map[string]runlog.Metric{}
		traced(t, c.traces...).protectionMetrics(100*time.Millisecond, m)
		got := m["unprotected_ms"]
		if value := got.Value; c.exact && (value == nil || *value != c.want) {
			t.Errorf("%s: %+v, want %g", c.name, got, c.want)
		}
		if !c.exact && (got.Reason == "" || got.AtLeast == nil || *got.AtLeast != c.want) {
			t.Errorf("%s: %+v, want at least %g", c.name, got, c.want)
		}
	}
}

// Strategies that cannot keep their promise are refused with the reason, at the place where the suite has them.
func TestStrategiesThatDoNotGoTogether(t *testing.T) {
	for recovery, want := range map[string]string{
		"upstream": "a count keeps something of every record for ever",
		"{strategy: active, overrides: [{operator: count, task: 1, strategy: upstream}]}":                                               "a count keeps something of every record for ever",
		"{strategy: active, overrides: [{operator: in, strategy: none}]}":                                                               "would have to replay what is lost with it",
		"{strategy: checkpoint, overrides: [{operator: count, strategy: checkpoint, scope: region}]}":                                   "would not roll back with it",
		"{strategy: checkpoint, overrides: [{operator: count, strategy: checkpoint, scope: task}, {operator: out, strategy: passive}]}": "would not fit to each other",
	} {
		_, err := spec.Parse("t.yaml", []byte(tiny), spec.Options{Known: Known(), Sets: []string{"objectives=[]", "checkpoint.interval=1s", "cells=[{name: a, recovery: " + recovery + "}]"}})
		if err == nil || !strings.Contains(err.Error(), "cells.a.recovery") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", recovery, err, want)
		}
	}
}
