package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/weir-bench/weir/reports/stats"
	"github.com/weir-bench/weir/suites/runner"
	"github.com/weir-bench/weir/suites/verify"
)

// capacityReport is `bench capacity --json`.
type capacityReport struct {
	RecordsPerS      float64       `json:"records_per_s"`
	Seconds          float64       `json:"seconds"`
	Workers          int           `json:"workers"`
	Parallelism      int           `json:"parallelism"`
	Keys             int64         `json:"keys"`
	LogicalCores     int           `json:"logical_cores"`
	Rate             *float64      `json:"rate"` // null: as fast as it goes
	CheckpointS      float64       `json:"checkpoint_s"`
	Checkpoints      int           `json:"checkpoints"`
	CheckpointMS     *float64      `json:"checkpoint_ms"`
	WorkerCPUS       float64       `json:"worker_cpu_s"`
	HarnessCPUS      float64       `json:"harness_cpu_s"`
	Delay            *capacityTail `json:"delay"` // null without a rate
	SendLag          *capacityTail `json:"send_lag"`
	Answers          verifiedCount `json:"answers"`
	AllAnswersAsHeld bool          `json:"all_answers_right"`
	// Runs are the rates of all runs, of which the one in the middle is told above; Against what they were in turns with.
	Runs      []float64       `json:"runs"`
	Against   []againstReport `json:"against"`
	Recovery  string          `json:"recovery"`
	Scope     string          `json:"scope"`
	Snapshots int             `json:"snapshots"`
	CutMaxMS  float64         `json:"snapshot_sync_max_ms"`
	// Turns are the pairs of periods of --alternate.
	Turns []capacityTurn `json:"turns,omitempty"`
}

type capacityTail struct {
	P50MS  float64 `json:"p50_ms"`
	P90MS  float64 `json:"p90_ms"`
	P99MS  float64 `json:"p99_ms"`
	P999MS float64 `json:"p999_ms"`
	MaxMS  float64 `json:"max_ms"`
}

type verifiedCount struct {
	Expected   uint64 `json:"expected"`
	Lost       uint64 `json:"lost"`
	Duplicated uint64 `json:"duplicated"`
	Wrong      uint64 `json:"wrong"`
	Reordered  uint64 `json:"reordered"`
}

// measureCapacity runs `bench capacity`.
func measureCapacity(ctx context.Context, o CapacityOptions) error {
	got, against, err := capacityInTurns(ctx, o)
	if err != nil {
		return err
	}
	broken := brokenAnswers(got)
	for _, c := range against {
		broken = cmp.Or(broken, brokenAnswers(c.runs))
	}
	middle := medianRun(got)
	if o.JSON {
		report := newCapacityReport(o, middle, broken == "")
		report.Runs, report.Against = rates(got), []againstReport{}
		for i := range against {
			report.Against = append(report.Against, newAgainstReport(&against[i], got))
		}
		err = writeJSON(o.Streams.Out, report)
	} else {
		err = printCapacity(o, middle, got, against)
	}
	if err != nil {
		return err
	}
	if broken != "" {
		fmt.Fprintf(o.Streams.Err, "bench: wrong answers: %s\n", broken)
		return codeError(exitWrong)
	}
	return nil
}

// capacityInTurns measures round by round; each round begins with another of the measurements, so that none always comes
// behind the same one.
func capacityInTurns(ctx context.Context, o CapacityOptions) (got []runner.CapacityResult, against []capacityComparison, err error) {
	for _, p := range o.Against {
		against = append(against, capacityComparison{with: p})
	}
	for round := range o.Repeat {
		for k := range len(against) + 1 {
			at := (round + k) % (len(against) + 1)
			turn, runs := o, &got
			if at < len(against) {
				turn, runs = o.under(against[at].with), &against[at].runs
			}
			r, err := capacityOnce(ctx, turn)
			if err != nil {
				return nil, nil, err
			}
			*runs = append(*runs, r)
		}
	}
	return got, against, nil
}

// brokenAnswers says what is wrong with the answers of one of the runs, if something is.
func brokenAnswers(runs []runner.CapacityResult) (broken string) {
	for _, r := range runs {
		broken = cmp.Or(broken, verify.Judge("precise", false, r.Answers))
	}
	return broken
}

func capacityOnce(ctx context.Context, o CapacityOptions) (runner.CapacityResult, error) {
	return runner.Capacity(ctx, runner.CapacityOptions{Workers: o.Workers, Parallelism: o.Parallelism, Keys: int64(o.Keys),
		Duration: o.Duration, Checkpoint: o.Checkpoint, Recovery: o.Recovery, Scope: o.Scope, Preload: int64(o.Preload),
		Alternate: o.Alternate, Rate: float64(o.Rate), Seed: o.Seed, Progress: o.Progress})
}

// medianRun returns the run whose rate is the median (the lower one of two in the middle).
func medianRun(runs []runner.CapacityResult) runner.CapacityResult {
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b runner.CapacityResult) int { return cmp.Compare(a.RecordsPerS, b.RecordsPerS) })
	return sorted[(len(sorted)-1)/2]
}

func rates(runs []runner.CapacityResult) (out []float64) {
	for _, r := range runs {
		out = append(out, r.RecordsPerS)
	}
	return out
}

func newCapacityReport(o CapacityOptions, got runner.CapacityResult, right bool) capacityReport {
	a := got.Answers
	r := capacityReport{RecordsPerS: got.RecordsPerS, Seconds: got.Elapsed.Seconds(), Workers: o.Workers, Parallelism: o.Parallelism,
		Keys: int64(o.Keys), LogicalCores: runtime.NumCPU(), CheckpointS: o.Checkpoint.Seconds(), Checkpoints: got.Checkpoints,
		WorkerCPUS: got.WorkerCPU.Seconds(), HarnessCPUS: got.HarnessCPU.Seconds(), Delay: tailOf(got.Delays), SendLag: tailOf(got.Lag),
		Answers: verifiedCount{a.Expected, a.Lost, a.Duplicated, a.Wrong, a.Reordered}, AllAnswersAsHeld: right, Recovery: o.Recovery, Scope: o.Scope,
		Snapshots: got.Snapshots, CutMaxMS: got.CutMax.Seconds() * 1e3}
	for _, t := range got.Turns {
		r.Turns = append(r.Turns, capacityTurn{t.With, t.Without, int64(t.WithCPU), int64(t.WithoutCPU)})
	}
	if got.Checkpoints > 0 {
		ms := got.CheckpointMedian.Seconds() * 1e3
		r.CheckpointMS = &ms
	}
	if o.Rate > 0 {
		rate := float64(o.Rate)
		r.Rate = &rate
	}
	return r
}

// tailOf gives the percentiles of a histogram; nil when there is nothing in it.
func tailOf(h *stats.Histogram) *capacityTail {
	if h == nil || h.Samples() == 0 {
		return nil
	}
	ms := func(percent float64) float64 {
		d, _ := h.Percentile(percent)
		return d.Seconds() * 1e3
	}
	top, _ := h.Max()
	return &capacityTail{ms(50), ms(90), ms(99), ms(99.9), top.Seconds() * 1e3}
}

func printCapacity(o CapacityOptions, got runner.CapacityResult, runs []runner.CapacityResult, against []capacityComparison) error {
	out := o.Streams.Out
	span := got.Elapsed.Seconds()
	per := func(cpu float64) float64 { return cpu / (got.RecordsPerS * span) * 1e9 }
	fmt.Fprintf(out, "answers: %d checked, %d lost, %d duplicated, %d wrong, %d reordered\n", got.Answers.Expected, got.Answers.Lost,
		got.Answers.Duplicated, got.Answers.Wrong, got.Answers.Reordered)
	fmt.Fprintf(out, "cpu: workers %.1f ns/record, harness %.1f ns/record\n", per(got.WorkerCPU.Seconds()), per(got.HarnessCPU.Seconds()))
	if got.Checkpoints > 0 {
		fmt.Fprintf(out, "checkpoints: %d, median %.1f ms; longest synchronous part of %d snapshots %.3f ms\n", got.Checkpoints,
			got.CheckpointMedian.Seconds()*1e3, got.Snapshots, got.CutMax.Seconds()*1e3)
	}
	if t := tailOf(got.Delays); t != nil {
		fmt.Fprintf(out, "delay: p50 %.3f ms, p90 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, max %.3f ms\n", t.P50MS, t.P90MS, t.P99MS, t.P999MS, t.MaxMS)
	}
	if t := tailOf(got.Lag); t != nil {
		fmt.Fprintf(out, "send lag of the harness: p50 %.3f ms, p99 %.3f ms\n", t.P50MS, t.P99MS)
	}
	if len(runs) > 1 {
		fmt.Fprintf(out, "runs: %s\n", spread(rates(runs)))
	}
	for i := range against {
		fmt.Fprint(out, against[i].describe(runs))
	}
	printTurns(out, runs)
	what := fmt.Sprintf("%d keys, %d workers, %d tasks, %d cores, checkpoint %s, all outputs returned and checked", o.Keys, o.Workers, o.Parallelism, runtime.NumCPU(), offOr(o))
	if o.Rate > 0 {
		_, err := fmt.Fprintf(out, "rate: %.0f records/s (asked for %.0f; %s)\n", got.RecordsPerS, float64(o.Rate), what)
		return err
	}
	_, err := fmt.Fprintf(out, "capacity: %.0f records/s (%s)\n", got.RecordsPerS, what)
	return err
}

// spread tells the median of rates and their range.
func spread(all []float64) string { return spreadOf(all, "runs") }

// spreadOf is spread of what is called so.
func spreadOf(all []float64, of string) string {
	sorted := slices.Sorted(slices.Values(all))
	return fmt.Sprintf("median %.0f records/s (%.0f to %.0f, %d %s)", medianOf(sorted), sorted[0], sorted[len(sorted)-1], len(sorted), of)
}

func offOr(o CapacityOptions) string {
	text := "off"
	if o.Checkpoint > 0 {
		text = "each " + o.Checkpoint.String()
	}
	if o.Recovery != "" {
		text += ", recovery " + o.Recovery
	}
	if o.Scope != "" {
		text += " in scope " + o.Scope
	}
	return text
}
