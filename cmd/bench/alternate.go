package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-bench/weir/suites/runner"
)

// capacityTurn is a period with a checkpoint and the one after it, in `bench capacity --json`.
type capacityTurn struct {
	With       float64 `json:"with_records_per_s"`
	Without    float64 `json:"without_records_per_s"`
	WithCPU    int64   `json:"with_cpu_ns_per_record"`
	WithoutCPU int64   `json:"without_cpu_ns_per_record"`
}

// alternateTrouble says what a measurement with a checkpoint in every other period lacks.
func alternateTrouble(cmd *cobra.Command, o CapacityOptions, against bool) error {
	if o.Alternate && (o.Checkpoint == 0 || o.Duration < 2*o.Checkpoint || against) {
		return &usageError{err: errors.New("--alternate measures periods with a checkpoint and without in turns; add --checkpoint, such as 10s, and a --duration of at least two of them, and leave --against out"), help: cmd.CommandPath()}
	}
	return nil
}

// printTurns tells what a checkpoint makes of the capacity of the period that it falls into.
func printTurns(out io.Writer, runs []runner.CapacityResult) {
	var with, without, change, withCPU, withoutCPU []float64
	for _, r := range runs {
		for _, t := range r.Turns {
			with, without = append(with, t.With), append(without, t.Without)
			change = append(change, abovePercent(t.With, t.Without))
			withCPU, withoutCPU = append(withCPU, float64(t.WithCPU)), append(withoutCPU, float64(t.WithoutCPU))
		}
	}
	if len(with) == 0 {
		return
	}
	slices.Sort(withCPU)
	slices.Sort(withoutCPU)
	fmt.Fprintf(out, "periods with a checkpoint: %s, %.0f ns/record\n", spreadOf(with, "periods"), medianOf(withCPU))
	fmt.Fprintf(out, "periods without: %s, %.0f ns/record\n", spreadOf(without, "periods"), medianOf(withoutCPU))
	fmt.Fprintf(out, "difference within pairs of periods: %s\n", percentSpread(change))
}
