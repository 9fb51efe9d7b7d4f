package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/weir-bench/weir/reports/runlog"
)

// sweeping is a run over numbers of rounds: the time of a wait falls with N, and the expectation is a tenth too high. The
// total is least with 16 rounds.
func sweeping(values ...string) View {
	run := &runlog.Run{Results: runlog.Results{Suite: "rounds"}, Manifest: runlog.Manifest{Suite: "rounds"}}
	total := map[int]float64{1: 90, 4: 50, 16: 40, 33: 42, 64: 44, 256: 60}
	for i, v := range values {
		n := map[string]int{"1": 1, "4": 4, "16": 16, "64": 64, "all": 256, "auto": 33}[v]
		m := map[string]runlog.Metric{}
		for name, x := range map[string]float64{"migration_rounds": float64(n), "migration_ms": 100 + float64(n), "predicted_duration_ms": 110 + 1.1*float64(n),
			"longest_wait_ms": 1 + 100/float64(n), "predicted_wait_ms": 1.1 + 110/float64(n), "stable_peak_ms": 2 + 100/float64(n),
			"predicted_peak_ms": 2 + 100/float64(n), "total_delay_rec_s": total[n], "rounds_recommended": 60} {
			m[name] = runlog.Value(x, "ms")
		}
		run.Results.Cells = append(run.Results.Cells, runlog.Cell{Name: "<b>move/rounds=" + v, Labels: map[string]string{"kind": "migration", "rounds": v},
			Repetitions: []runlog.Repetition{{Repetition: 1, Trial: i + 1, Verdict: runlog.Valid, Metrics: m}}})
	}
	run.Results.Summarise()
	return NewView(run)
}

func TestSweepNamesTheRecommendedRounds(t *testing.T) {
	for _, c := range []struct {
		values      []string
		recommended float64
		want        []string
	}{
		{[]string{"all", "1", "16", "auto", "4", "64"}, 33, []string{"recommends N = 33.0;", "least with N = 16.0", "recommended one 5.00 % above", "longest wait, expectations are off by at most 10.0 %", "the peak, expectations are off by at most 0 %"}},
		{[]string{"1", "4", "16", "64", "all"}, 64, []string{"recommends N = 60.0, of the sweep N = 64.0;", "recommended one 10.0 % above"}},
	} {
		v := sweeping(c.values...)
		if len(v.Groups) != 1 || len(v.Groups[0].Sweeps) != 1 {
			t.Fatalf("%v: no sweep was found", c.values)
		}
		s := v.Groups[0].Sweeps[0]
		if got := s.Rows[s.Recommended].Rounds; got != c.recommended || s.Rows[0].Rounds != 1 || s.Rows[len(s.Rows)-1].Rounds != 256 {
			t.Errorf("%v: recommended %v of %+v, want %v", c.values, got, s.Rows, c.recommended)
		}
		for _, want := range c.want {
			if !strings.Contains(s.Summary, want) {
				t.Errorf("%v: %q is not in: %s", c.values, want, s.Summary)
			}
		}
	}
	if v := sweeping("1", "4"); len(v.Groups[0].Sweeps) != 0 {
		t.Error("two cells are no sweep")
	}
}

func TestSweepIsInEveryReport(t *testing.T) {
	v := sweeping("1", "4", "16", "64", "all", "auto")
	page, err := HTML(v)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(page), "<b>move") {
		t.Error("the page obeys a name")
	}
	for _, width := range []int{0, 80} {
		var b bytes.Buffer
		if err := Terminal(&b, v, TerminalOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if w := twwidth.Width(line); width > 0 && strings.ContainsAny(line, "│╭╰") && w > width {
				t.Errorf("line of %d columns in %d: %s", w, width, line)
			}
		}
		page = append(page, b.Bytes()...)
	}
	for name, text := range map[string]string{"markdown": string(Markdown(v)), "latex": string(LaTeX(v)), "page and terminal": string(page)} {
		for _, want := range []string{"33.0 (auto)", "recommended", "The cost model recommends N = 33.0"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing", name, want)
			}
		}
	}
	if !strings.Contains(string(page), `aria-label="Rounds of &lt;b&gt;move"`) {
		t.Error("the page has no drawing of the sweep")
	}
}

func TestPlansThatCannotBeBalancedAreNoted(t *testing.T) {
	run := &runlog.Run{}
	for i := range 3 {
		result := map[string]any{"planner": "greedy", "verdict": "infeasible: 1 key groups, the first is 7, exceed the cap alone", "oversize_groups": []any{7}}
		if i == 2 {
			result = map[string]any{"planner": "greedy", "verdict": "balanced"}
		}
		run.Events = append(run.Events, runlog.Event{Kind: "migration_planned", Cell: fmt.Sprintf("cell%d", i/2), Detail: map[string]any{"result": result}})
	}
	if got := planNotes(run.Events); len(got) != 1 || !strings.Contains(got[0], "cell0, plan of greedy: infeasible: 1 key groups") {
		t.Errorf("notes %q, want one of cell0", got)
	}
}

func TestListsByKeyGroupAreNotShown(t *testing.T) {
	_, rows := eventRows([]runlog.Event{{Kind: "migration_planned", Detail: map[string]any{"input": map[string]any{"load": []any{1}}, "rounds": 4}},
		{Kind: "calibrated", Detail: map[string]any{"rounds": []any{1}, "sync_cost_ms": 2}}})
	if rows[0][6] != `{"rounds":4}` || rows[1][6] != `{"sync_cost_ms":2}` {
		t.Errorf("details %s and %s", rows[0][6], rows[1][6])
	}
}
