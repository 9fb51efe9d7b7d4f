package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/weir-bench/weir/suites/progress"
	"github.com/weir-bench/weir/suites/spec"
)

// The exit codes. They are part of the contract with scripts and CI jobs.
const (
	exitPass         = 0
	exitInternal     = 1
	exitUsage        = 2
	exitMissed       = 3
	exitRegression   = 4
	exitWrong        = 5
	exitInconclusive = 6
	exitInterrupted  = 130
)

// errNotWired is what a command returns in a build without the part it needs.
var errNotWired = errors.New("not wired in this build")

// app holds what the commands call. A nil function means that the command is not
// available in this build.
type app struct {
	// known lists what this build can run, for the checks of suites.
	known func() spec.Known

	// child takes over when the process was started as a worker: is tells
	// whether it was, code is then the exit code.
	child func(args []string) (code int, is bool)

	// ready says why a suite cannot be run, before any is started.
	ready    func(ctx context.Context, o RunOptions) error
	run      func(ctx context.Context, o RunOptions) (Outcome, error)
	report   func(ctx context.Context, o ReportOptions) error
	capacity func(ctx context.Context, o CapacityOptions) error
	sim      func(ctx context.Context, o SimOptions) (Outcome, error)
}

// Streams are a command's two outputs: results, and all else.
type Streams struct {
	Out io.Writer
	Err io.Writer
	// Color says whether Out may have terminal colours, Width its columns (0:
	// not a terminal).
	Color bool
	Width int
}

// RunOptions is one suite to run.
type RunOptions struct {
	Suite    *spec.Suite
	Plan     []spec.Trial
	Source   []byte   // the suite's text as read
	Args     []string // the command line, for the manifest
	OutDir   string   // the folder of all runs, such as runs
	Progress *progress.Progress
	Streams  Streams
}

// ReportOptions is a run to render again.
type ReportOptions struct {
	Dir     string // a run directory
	Format  string // table, json, md, html or all
	Figures string // of the table: main or all
	OutDir  string // where files go; the run directory if empty
	Streams Streams
}

// CapacityOptions are the set-up whose capacity is measured.
type CapacityOptions struct {
	Workers     int
	Parallelism int
	Keys        spec.Count
	Duration    time.Duration
	Checkpoint  time.Duration        // 0: off
	Recovery    string               // of all tasks; empty: checkpoint where there are some, else none
	Scope       string               // how much rolls back to a checkpoint; empty: the whole job
	Preload     spec.Count           // keys that have state from the start
	Repeat      int                  // how often; the median counts
	Against     []capacityProtection // what it is measured in turns with
	Alternate   bool                 // in one run, a checkpoint in every other period
	Rate        spec.Rate            // records/s; 0: as fast as it goes
	Seed        uint64
	JSON        bool
	Progress    *progress.Progress
	Streams     Streams
}

// SimOptions are simulated trials with faults.
type SimOptions struct {
	Seeds     int    // number of seeds
	First     uint64 // the first of them
	Migration string // one strategy, or empty for all
	Recovery  string // one strategy, or empty for all
	Trace     bool   // print the trace of each trial
	Matrix    bool   // the crash matrix instead of trials; a seed is a whole one
	JSON      bool
	Progress  *progress.Progress
	Streams   Streams
}

// Outcome is what a run found, as far as the exit code needs it.
type Outcome struct {
	RunDir       string
	Wrong        int // trials with wrong answers
	Regressions  int // metrics worse than the baseline
	Missed       int // objectives missed
	Inconclusive int // trials whose verdict is unknown
}

// add joins the outcomes of several suites.
func (o Outcome) add(p Outcome) Outcome {
	o.Wrong += p.Wrong
	o.Regressions += p.Regressions
	o.Missed += p.Missed
	o.Inconclusive += p.Inconclusive
	return o
}

// code gives the exit code: a wrong answer beats any speed figure, and what was
// not decided counts only when asked for.
func (o Outcome) code(strict bool) int {
	switch {
	case o.Wrong > 0:
		return exitWrong
	case o.Regressions > 0:
		return exitRegression
	case o.Missed > 0:
		return exitMissed
	case strict && o.Inconclusive > 0:
		return exitInconclusive
	}
	return exitPass
}
