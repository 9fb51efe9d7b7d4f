package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/host"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/suites/spec"
)

// jobName is that of a trial's job, also in the names of its checkpoints.
const jobName = "weir"

// checkAddress has the form of spec.Known.CheckStorage.
func checkAddress(text string) []spec.Problem {
	_, err := storage.ParseAddress(text)
	var wrong *storage.AddressError
	if errors.As(err, &wrong) {
		return []spec.Problem{{Problem: wrong.Text + " " + wrong.Problem, Fix: wrong.Fix}}
	}
	return nil
}

// trialFolder is the part of a place that a trial uses.
func trialFolder(p spec.Trial) string { return fmt.Sprintf("trial-%d", p.Index+1) }

// probePlaces tries the places that the suite names for checkpoints, before anything starts. Its error wraps
// spec.ErrInvalid; whatever is wrong, nothing that was there is touched.
func probePlaces(o *Options) error {
	if o.Suite.Runtime == "sim" {
		return nil
	}
	tried := map[string]bool{}
	for _, p := range o.Plan {
		c := &o.Suite.Cells[p.Cell]
		dir := c.Checkpoint.Dir
		if dir == "" {
			continue
		}
		place, err := host.OpenPlace(dir, o.Storage)
		if err == nil && !tried[dir] {
			err = place.Check()
		}
		if err == nil {
			err = place.Join(trialFolder(p)).Vacant(jobName)
		}
		if err != nil {
			return spec.Errors{c.Checkpoint.Where.Error(err.Error(), "")}
		}
		tried[dir] = true
	}
	return nil
}

// openPlace decides where the trial's checkpoints go.
func (t *trial) openPlace() error {
	dir := t.cell.Checkpoint.Dir
	if t.ownDir = dir == ""; t.ownDir {
		dir = filepath.Join(t.log.writer.Dir(), "checkpoints")
	}
	place, err := host.OpenPlace(dir, t.o.Storage)
	if err != nil {
		return fmt.Errorf("cell %s: %w", t.cell.Name, err)
	}
	t.place = place.Join(trialFolder(t.plan))
	return nil
}

// removeCheckpoints makes room for the next trial: of what the trial wrote, nothing else. What cannot be removed stays in
// its place, where it is seen.
func (t *trial) removeCheckpoints() {
	switch {
	case t.ownDir: // the run directory is nobody else's
		dir := t.place.String()
		if os.RemoveAll(dir) == nil {
			_ = os.Remove(filepath.Dir(dir)) // only when it is empty
		}
	case t.h != nil: // the place was found vacant
		_ = t.place.Clear(t.job.ID)
	}
}

// storageTrouble says that a checkpoint could not be written, as on a full disk: later trials would fare no better.
func (t *trial) storageTrouble() error {
	for _, tr := range t.traces {
		if tr.Kind != coord.TraceAborted {
			continue
		}
		switch tr.Detail {
		case "timeout", "restart", "failure", "migration": // given up by the coordinator itself
		default:
			return fmt.Errorf("checkpoint %d of cell %s could not be written to %s; make room there, or set checkpoint.dir to another place: %s", tr.ID, t.cell.Name, t.place, tr.Detail)
		}
	}
	return nil
}
