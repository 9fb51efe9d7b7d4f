package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-bench/weir/engine/host"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/migration/planner"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/suites/runner"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/suites/spec/load"
)

// wire connects the commands to the parts of the program that do the work.
func wire() app {
	return app{known: known, child: child, run: runSuite, report: report, capacity: measureCapacity, sim: runSim}
}

// child is the whole life of a worker process. It is asked before anything else, so that workers start fast.
func child([]string) (code int, is bool) {
	if !host.IsWorker() {
		return 0, false
	}
	return host.WorkerMain(), true
}

// known lists what this build can run.
func known() spec.Known {
	k := spec.Known{
		Migrations:   []spec.MigrationInfo{{Name: "none", None: true}},
		Backends:     []string{"heap"},
		Triggers:     runner.Triggers(),
		MaxKeyGroups: 32768,
	}
	for _, o := range operator.Kinds() {
		k.Kinds = append(k.Kinds, spec.Kind{Name: o.Name, Role: role(o)})
	}
	for _, m := range migration.Strategies() {
		k.Migrations = append(k.Migrations, spec.MigrationInfo{Name: m.Name, Rounds: m.UsesRounds})
	}
	for _, r := range recovery.Strategies() {
		k.Recoveries = append(k.Recoveries, spec.RecoveryInfo{Name: r.Name, Checkpoint: r.Checkpoints, Standby: r.Standby, None: r.Name == "none"})
	}
	for _, f := range runner.FaultKinds() {
		targets := []spec.TargetKind{spec.TargetWorker, spec.TargetTask}
		if f.Link {
			targets = []spec.TargetKind{spec.TargetLink}
		}
		k.Faults = append(k.Faults, spec.FaultInfo{Name: string(f.Kind), Targets: targets})
	}
	for _, p := range planner.List() {
		k.Planners = append(k.Planners, p.Name)
	}
	return load.Fill(k)
}

func role(o operator.Kind) spec.Role {
	switch {
	case o.Source:
		return spec.RoleSource
	case o.Sink:
		return spec.RoleSink
	case o.Keyed:
		return spec.RoleKeyed
	}
	return spec.RoleStateless
}

// runSuite runs a suite and renders its reports, also when it was cut short.
func runSuite(ctx context.Context, o RunOptions) (Outcome, error) {
	got, err := runner.Run(ctx, runner.Options{Suite: o.Suite, Plan: o.Plan, Source: o.Source, Args: append([]string{"bench"}, o.Args...),
		OutDir: o.OutDir, Progress: o.Progress})
	out := Outcome{RunDir: got.Dir, Wrong: got.Wrong, Missed: got.Missed, Inconclusive: got.Unknown}
	if got.Dir == "" {
		return out, err
	}
	o.Progress.Close(err == nil)
	shown := showRun(got.Dir, o.Streams)
	if err == nil {
		shown = errors.Join(shown, showObjectives(got, o.Streams))
	}
	return out, errors.Join(err, shown)
}

// showObjectives says which objectives were met.
func showObjectives(got runner.Outcome, s Streams) error {
	for _, j := range got.Judgements {
		verdict := "met"
		if !j.Met {
			verdict = "MISSED"
		}
		text := fmt.Sprintf("objective %s: %s", verdict, j.Text)
		if j.Reason != "" {
			text += " (" + j.Reason + ")"
		} else {
			text += fmt.Sprintf(" (%.4g and %.4g)", j.Left, j.Right)
		}
		if _, err := fmt.Fprintln(s.Out, text); err != nil {
			return err
		}
	}
	for _, o := range got.Skipped {
		if _, err := fmt.Fprintf(s.Out, "objective not judged: %s (a cell of it was not run)\n", o.Text); err != nil {
			return err
		}
	}
	return nil
}
