package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-bench/weir/engine/host"
	"github.com/weir-bench/weir/engine/storage/blob"
	"github.com/weir-bench/weir/suites/runner"
	"github.com/weir-bench/weir/suites/spec"
)

// wire connects the commands to the parts of the program that do the work.
func wire() app {
	return app{known: known, child: child, ready: ready, run: runSuite, report: report, capacity: measureCapacity, sim: runSim}
}

// child is the whole life of a worker process. It is asked before anything else, so that workers start fast.
func child([]string) (code int, is bool) {
	if !host.IsWorker() {
		return 0, false
	}
	return host.WorkerMain(blob.Open), true
}

// known lists what this build can run.
func known() spec.Known { return runner.Known() }

func runnerOptions(o RunOptions) runner.Options {
	return runner.Options{Suite: o.Suite, Plan: o.Plan, Source: o.Source, Args: append([]string{"bench"}, o.Args...),
		OutDir: o.OutDir, Progress: o.Progress, Storage: blob.Open}
}

func ready(ctx context.Context, o RunOptions) error { return runner.Ready(ctx, runnerOptions(o)) }

// runSuite runs a suite and renders its reports, also when it was cut short.
func runSuite(ctx context.Context, o RunOptions) (Outcome, error) {
	got, err := runner.Run(ctx, runnerOptions(o))
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
		if _, err := fmt.Fprintf(s.Out, "objective not judged: %s (a cell of it was not run, or was simulated)\n", o.Text); err != nil {
			return err
		}
	}
	return nil
}
