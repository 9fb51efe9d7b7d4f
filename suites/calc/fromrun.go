package calc

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-bench/weir/engine/migration/planner"
	"github.com/weir-bench/weir/engine/model"
	"github.com/weir-bench/weir/reports/runlog"
)

// ErrNoMove says that a run holds nothing to calculate with.
var ErrNoMove = errors.New("the run planned no migration")

// PlannedEvent is the kind of the run-log event that holds what a migration was planned with.
const PlannedEvent = "migration_planned"

// Planned is a migration that a run planned: the detail of a PlannedEvent, as far as it is read here.
type Planned struct {
	Of    string     `json:"-"`
	Model *ModelNote `json:"model"`
	Input *InputNote `json:"input"`
}

// ModelNote is the cost model as calibrated by the run.
type ModelNote struct {
	StateBytes              int64   `json:"state_bytes"`
	BandwidthBytesPerSecond float64 `json:"bandwidth_bytes_per_second"`
	SyncCostMS              float64 `json:"sync_cost_ms"`
	Groups                  int     `json:"groups"`
	LargestGroupBytes       int64   `json:"largest_group_bytes"`
	Utilisation             float64 `json:"utilisation"`
	ArrivalPerSecond        float64 `json:"arrival_per_second"`
	MovingShare             float64 `json:"moving_share"`
	JitterMS                float64 `json:"jitter_ms"`
	// The line of large rounds; 0 when there was none.
	StreamBandwidthBytesPerSecond float64 `json:"stream_bandwidth_bytes_per_second"`
	StreamSyncCostMS              float64 `json:"stream_sync_cost_ms"`
}

// Migration is the note as the model's parameters.
func (n ModelNote) Migration() model.Migration {
	return model.Migration{StateBytes: n.StateBytes, BandwidthBytesPerSecond: n.BandwidthBytesPerSecond,
		StreamBandwidthBytesPerSecond: n.StreamBandwidthBytesPerSecond, StreamSyncCost: fromMS(n.StreamSyncCostMS),
		SyncCost: fromMS(n.SyncCostMS), Jitter: fromMS(n.JitterMS), Utilisation: n.Utilisation, ArrivalPerSecond: n.ArrivalPerSecond,
		MovingShare: n.MovingShare, Groups: n.Groups, LargestGroupBytes: n.LargestGroupBytes}
}

func fromMS(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }

// InputNote is the planner's problem; slices are by key group, Targets by task.
type InputNote struct {
	Tasks      int       `json:"tasks"`
	Theta      float64   `json:"theta"`
	Load       []float64 `json:"load"`
	StateBytes []int64   `json:"state_bytes"`
	Route      []int32   `json:"route"`
	Targets    []bool    `json:"targets"`
}

// Problem is the note as a planner's input.
func (n InputNote) Problem() planner.Input {
	return planner.Input{Tasks: n.Tasks, Theta: n.Theta, Load: n.Load, StateBytes: n.StateBytes, Route: n.Route, Targets: n.Targets}
}

// FromRun returns the migrations that a run planned, in their order; ErrNoMove when there is none.
func FromRun(run *runlog.Run) ([]Planned, error) {
	var out []Planned
	for i, e := range run.Events {
		if e.Kind != PlannedEvent {
			continue
		}
		text, err := json.Marshal(e.Detail)
		if err != nil {
			return nil, fmt.Errorf("%s: event %d: %w", runlog.EventsFile, i+1, err)
		}
		p := Planned{Of: fmt.Sprintf("%s, repetition %d", e.Cell, e.Repetition)}
		if err := json.Unmarshal(text, &p); err != nil {
			return nil, fmt.Errorf("%s: event %d (%s): %w", runlog.EventsFile, i+1, PlannedEvent, err)
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: %w", run.Dir, ErrNoMove)
	}
	return out, nil
}
