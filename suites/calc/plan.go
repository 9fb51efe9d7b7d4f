package calc

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-bench/weir/engine/migration/planner"
)

// PlanRow is what one planner makes of a problem. Gap is nil when it is not known.
type PlanRow struct {
	Planner         string   `json:"planner"`
	Moves           int      `json:"moves"`
	MovedBytes      int64    `json:"moved_bytes"`
	LowerBoundBytes int64    `json:"lower_bound_bytes"`
	Gap             *float64 `json:"gap"`
	Theta           float64  `json:"theta"`
	ReachableTheta  float64  `json:"reachable_theta"`
	Balanced        bool     `json:"balanced"`
	Proven          bool     `json:"proven,omitempty"`
	TableEntries    int      `json:"table_entries"`
	PlanningMS      float64  `json:"planning_ms"`
	Verdict         string   `json:"verdict"`
	// Refused says why the planner gave no plan.
	Refused string `json:"refused,omitempty"`
}

// PlanAnswer is the answer of `bench model plan` for one problem.
type PlanAnswer struct {
	Of             string    `json:"of,omitempty"`
	Tasks          int       `json:"tasks"`
	Groups         int       `json:"groups"`
	Theta          float64   `json:"theta"`
	ThetaBefore    float64   `json:"theta_before"`
	PlacementTheta float64   `json:"placement_theta"`
	Rows           []PlanRow `json:"rows"`
}

// Plans lets each of the named planners plan. clock is read around each call. An instance too large for the exact planner
// is a row that says so; a bad problem is an error that wraps planner.ErrInput.
func Plans(in planner.Input, names []string, clock func() time.Time) (PlanAnswer, error) {
	out := PlanAnswer{Tasks: in.Tasks, Groups: len(in.Load), Theta: in.Theta}
	for _, name := range names {
		p, err := planner.ByName(name)
		if err != nil {
			return PlanAnswer{}, err
		}
		began := clock()
		plan, err := p.Plan(in)
		took := ms(clock().Sub(began))
		if errors.Is(err, planner.ErrTooLarge) {
			out.Rows = append(out.Rows, PlanRow{Planner: name, Refused: err.Error()})
			continue
		}
		if err != nil {
			return PlanAnswer{}, err
		}
		row := PlanRow{Planner: name, Moves: len(plan.Moves), MovedBytes: plan.MovedBytes, LowerBoundBytes: plan.LowerBoundBytes,
			Theta: plan.Theta, ReachableTheta: plan.ReachableTheta, Balanced: plan.Balanced, Proven: plan.Proven,
			TableEntries: plan.TableSize, PlanningMS: took, Verdict: plan.Verdict()}
		if plan.GapKnown {
			row.Gap = &plan.Gap
		}
		out.Rows = append(out.Rows, row)
	}
	out.ThetaBefore = theta(in)
	out.PlacementTheta = planner.PlacementTheta(in.Route, in.Tasks)
	return out, nil
}

// theta is the imbalance of the present route: max load / mean − 1, 0 without load.
func theta(in planner.Input) float64 {
	load, total, most := make([]float64, in.Tasks), 0.0, 0.0
	for g, d := range in.Route {
		load[d] += in.Load[g]
		total += in.Load[g]
		most = max(most, load[d])
	}
	if total == 0 {
		return 0
	}
	return most*float64(in.Tasks)/total - 1
}

// Write prints the answer for people.
func (a PlanAnswer) Write(w io.Writer) error {
	if a.Of != "" {
		fmt.Fprintln(w, a.Of)
	}
	fmt.Fprintf(w, "%d key groups on %d tasks, allowed θ = %.4g, θ now %.4g, of which placement alone makes %.4g\n",
		a.Groups, a.Tasks, a.Theta, a.ThetaBefore, a.PlacementTheta)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PLANNER\tMOVES\tBYTES\tAT LEAST\tGAP\tθ\tTABLE\tTIME\tVERDICT")
	for _, r := range a.Rows {
		if r.Refused != "" {
			fmt.Fprintf(t, "%s\t\t\t\t\t\t\t\t%s\n", r.Planner, r.Refused)
			continue
		}
		gap := "unknown"
		if r.Gap != nil {
			gap = fmt.Sprintf("%.2f %%", *r.Gap*100)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%.4g\t%d\t%.3g ms\t%s\n", r.Planner, r.Moves, r.MovedBytes, r.LowerBoundBytes, gap, r.Theta,
			r.TableEntries, r.PlanningMS, r.Verdict)
	}
	return t.Flush()
}

// groupColumns are the columns of a file of key groups.
var groupColumns = [...]string{"group", "load", "bytes", "owner"}

// ReadGroups reads key groups as CSV with the columns group, load, bytes and owner (a task from 0), in any order of
// columns and rows; every group from 0 on exactly once. tasks of 0 means one more than the highest owner. Errors name file
// and line.
func ReadGroups(r io.Reader, file string, tasks int) (planner.Input, error) {
	c := csv.NewReader(r)
	c.ReuseRecord, c.TrimLeadingSpace = true, true
	head, err := c.Read()
	if err != nil {
		return planner.Input{}, fmt.Errorf("%s: no header; want the columns %s: %w", file, strings.Join(groupColumns[:], ","), err)
	}
	at, err := groupHeader(head, file)
	if err != nil {
		return planner.Input{}, err
	}
	in := planner.Input{Tasks: tasks}
	seen := map[int]int{}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return planner.Input{}, fmt.Errorf("%s: %w", file, err)
		}
		line, _ := c.FieldPos(0)
		if err := addGroup(&in, row, at, seen, line); err != nil {
			return planner.Input{}, fmt.Errorf("%s:%d: %w", file, line, err)
		}
	}
	for g := range in.Load {
		if seen[g] == 0 {
			return planner.Input{}, fmt.Errorf("%s: group %d is missing; want every group from 0 to %d", file, g, len(in.Load)-1)
		}
		if tasks == 0 {
			in.Tasks = max(in.Tasks, int(in.Route[g])+1)
		}
	}
	return in, nil
}

// groupHeader returns the position of each of groupColumns.
func groupHeader(head []string, file string) (at [len(groupColumns)]int, err error) {
	for i, want := range groupColumns {
		at[i] = -1
		for k, h := range head {
			if strings.TrimSpace(h) == want {
				at[i] = k
			}
		}
		if at[i] < 0 {
			return at, fmt.Errorf("%s:1: no column %q; want the columns %s", file, want, strings.Join(groupColumns[:], ","))
		}
	}
	return at, nil
}

// maxGroups bounds what a file may ask for.
const maxGroups = 1 << 20

func addGroup(in *planner.Input, row []string, at [len(groupColumns)]int, seen map[int]int, line int) error {
	cell := func(i int) string { return strings.TrimSpace(row[at[i]]) }
	group, err := strconv.Atoi(cell(0))
	if err != nil || group < 0 || group >= maxGroups {
		return fmt.Errorf("group is %q; want a whole number from 0 to %d", cell(0), maxGroups-1)
	}
	if first := seen[group]; first > 0 {
		return fmt.Errorf("group %d stands twice, first in line %d", group, first)
	}
	load, err := strconv.ParseFloat(cell(1), 64)
	if err != nil || !(load >= 0) || load > 1e300 {
		return fmt.Errorf("load is %q; want a number of at least 0", cell(1))
	}
	bytes, err := strconv.ParseInt(cell(2), 10, 64)
	if err != nil || bytes < 0 {
		return fmt.Errorf("bytes is %q; want a whole number from 0", cell(2))
	}
	owner, err := strconv.ParseInt(cell(3), 10, 32)
	if err != nil || owner < 0 || in.Tasks > 0 && owner >= int64(in.Tasks) {
		return fmt.Errorf("owner is %q; want a task, from 0%s", cell(3), upTo(in.Tasks))
	}
	seen[group] = line
	for len(in.Load) <= group {
		in.Load, in.StateBytes, in.Route = append(in.Load, 0), append(in.StateBytes, 0), append(in.Route, 0)
	}
	in.Load[group], in.StateBytes[group], in.Route[group] = load, bytes, int32(owner)
	return nil
}

func upTo(tasks int) string {
	if tasks == 0 {
		return ""
	}
	return fmt.Sprintf(" to %d", tasks-1)
}
