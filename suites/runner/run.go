package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/progress"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/workloads"
)

// Options is one suite to run.
type Options struct {
	Suite  *spec.Suite
	Plan   []spec.Trial
	Source []byte   // the suite's text as read
	Args   []string // the command line, for the manifest
	OutDir string   // the folder of all runs
	// Version is that of the program; empty: from its build information.
	Version  string
	Progress *progress.Progress
	// Command and Env start a worker, as in host.Config.
	Command []string
	Env     []string
	// Storage opens the places of checkpoints that cells name, as in host.Config.
	Storage storage.Opener
}

// Outcome is what a run found.
type Outcome struct {
	// Dir is the run directory; empty when none could be made.
	Dir        string
	Wrong      int // trials with wrong answers
	Unknown    int // trials without a verdict
	Missed     int // objectives missed
	Judgements []spec.Judgement
	// Skipped are objectives about cells that were not run, or were simulated.
	Skipped []spec.Objective
}

// errDeadline ends a suite that takes longer than its deadline.
var errDeadline = errors.New("the suite's deadline has passed")

// Ready says why a suite cannot be run, as far as that can be known without starting a worker: what the engine cannot do,
// and stores and places of checkpoints that refuse. Its errors wrap spec.ErrInvalid, unless ctx has ended.
func Ready(ctx context.Context, o Options) error {
	if err := Check(o.Suite, o.Plan); err != nil {
		return err
	}
	if err := probeStores(ctx, o.Suite, o.Plan); err != nil {
		return err
	}
	return probePlaces(&o)
}

// Run plays all trials and writes the run directory. When ctx ends, or a trial cannot be run, what was measured is kept
// and marked partial, and the error says why.
func Run(ctx context.Context, o Options) (Outcome, error) {
	if err := Ready(ctx, o); err != nil {
		return Outcome{}, err
	}
	start := time.Now()
	w, err := runlog.Create(o.OutDir, publicManifest(&o, runlog.Manifest{
		Suite: o.Suite.Name, SuiteText: string(o.Source), Overrides: o.Suite.Sets, Seed: o.Suite.Seed, CommandLine: o.Args,
		Runtime: o.Suite.Runtime, Versions: runlog.CollectVersions(o.Version), Machine: runlog.CollectMachine(), StartedAt: start.UTC(),
	}))
	if err != nil {
		return Outcome{}, err
	}
	if d := o.Suite.Deadline; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, start.Add(d), fmt.Errorf("%w: it is %v", errDeadline, d))
		defer cancel()
	}
	r := &run{o: &o, w: w, start: start, results: &runlog.Results{}}
	err = r.trials(ctx)
	out := Outcome{Dir: w.Dir()}
	r.results.Summarise()
	if err != nil {
		end := w.Event(runlog.Event{Wall: time.Now().UTC(), NS: int64(time.Since(start)), Kind: runlog.Interrupted, Detail: map[string]any{"why": err.Error()}})
		return out, errors.Join(err, end, w.Interrupt(r.results, time.Now(), err.Error()))
	}
	r.judge(&out)
	end := w.Event(runlog.Event{Wall: time.Now().UTC(), NS: int64(time.Since(start)), Kind: runlog.RunEnded})
	return out, errors.Join(end, w.Finish(r.results, time.Now()))
}

// run is a suite under way.
type run struct {
	o       *Options
	w       *runlog.Writer
	start   time.Time
	results *runlog.Results
	cells   map[int]int // index in results by index in the suite
}

func (r *run) trials(ctx context.Context) error {
	if err := r.w.Event(runlog.Event{Wall: r.start.UTC(), Kind: runlog.RunStarted}); err != nil {
		return err
	}
	r.cells = map[int]int{}
	planned := map[int]bool{}
	for _, t := range r.o.Plan {
		planned[t.Cell] = true
	}
	for i := range r.o.Suite.Cells {
		if c := &r.o.Suite.Cells[i]; planned[i] {
			r.cells[i] = len(r.results.Cells)
			r.results.Cells = append(r.results.Cells, runlog.Cell{Name: c.Name, Labels: c.Labels})
		}
	}
	for _, p := range r.o.Plan {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.trial(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) trial(ctx context.Context, p spec.Trial) error {
	cell := stormy(&r.o.Suite.Cells[p.Cell], p.Seed)
	var rep runlog.Repetition
	var trouble, err error
	if r.o.Suite.Runtime == "sim" {
		rep, err = r.simulatedTrial(ctx, p)
	} else {
		t := &trial{o: r.o, plan: p, cell: cell, log: newEvents(r.w, r.start, p.Index+1, cell.Name, p.Repetition+1)}
		t.log.emit(runlog.Event{Kind: runlog.TrialStarted}, 0)
		rep, err = t.run(ctx)
		if end := t.log.flush(); !errors.Is(err, end) { // which the trial itself may have met
			err = errors.Join(err, end)
		}
		trouble = errors.Join(t.storageTrouble(), t.unfit)
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	row := &r.results.Cells[r.cells[p.Cell]]
	row.Repetitions = append(row.Repetitions, rep)
	r.results.Summarise()
	if err := r.w.Results(r.results); err != nil {
		return err
	}
	if rep.Verdict != runlog.Valid {
		r.o.Progress.Note(fmt.Sprintf("%s #%d: %s: %s", cell.Name, rep.Repetition, rep.Verdict, rep.VerdictReason))
	}
	if rep.Partial {
		return context.Cause(ctx)
	}
	return trouble
}

// judge counts verdicts and judges the objectives.
func (r *run) judge(out *Outcome) {
	summaries := map[string]map[string]runlog.Summary{}
	for _, c := range r.results.Cells {
		if c.Verdict == runlog.Valid { // a speed figure of wrong answers counts for nothing
			summaries[c.Name] = c.Summary
		}
		for _, rep := range c.Repetitions {
			switch rep.Verdict {
			case runlog.Invalid:
				out.Wrong++
			case runlog.Unknown:
				out.Unknown++
			}
		}
	}
	apply, skipped := r.o.Suite.ObjectivesFor(r.o.Plan)
	if r.o.Suite.Runtime == "sim" { // it has no figures to judge
		apply, skipped = nil, r.o.Suite.Objectives
	}
	out.Skipped = skipped
	for _, o := range apply {
		j := o.Judge(func(f spec.Ref) (float64, bool) { return figure(summaries[f.Cell], f) })
		if !j.Met {
			out.Missed++
		}
		out.Judgements = append(out.Judgements, j)
	}
}

func figure(s map[string]runlog.Summary, f spec.Ref) (float64, bool) {
	sum, ok := s[f.Metric]
	if !ok {
		return 0, false
	}
	v := map[string]*float64{"median": sum.Median, "min": sum.Min, "max": sum.Max}[f.Stat]
	if v == nil {
		return 0, false
	}
	return *v, true
}

// workload gives the generators' description of a cell's workload.
func (o *Options) workload(c *spec.Cell, seed uint64) workloads.Spec {
	return generators(c, seed)
}

// selfCPU returns the processor time of this process.
func selfCPU() (time.Duration, bool) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0, false
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), true
}
