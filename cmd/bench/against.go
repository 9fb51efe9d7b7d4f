package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/suites/runner"
)

var capacityScopes = []string{core.ScopeGlobal, core.ScopeRegion, core.ScopeTask}

// capacityProtection is a fault-tolerance strategy of all tasks that a capacity is compared with.
type capacityProtection struct {
	Recovery    string
	Scope       string // empty: of the strategy
	Checkpoints bool   // it restores from checkpoints; others are measured without any
}

func (p capacityProtection) String() string {
	if p.Scope == "" {
		return p.Recovery
	}
	return p.Recovery + "/" + p.Scope
}

// capacityProtection checks the fault tolerance that a measurement of the capacity asks for.
func (c *cli) capacityProtection(cmd *cobra.Command, o CapacityOptions) error {
	if o.Recovery != "" {
		p, err := c.recoveryOf(cmd, "recovery", o.Recovery)
		if err != nil {
			return err
		}
		if p.Checkpoints && o.Checkpoint == 0 {
			return &usageError{err: fmt.Errorf("--recovery %s restores from checkpoints; add --checkpoint, such as 1s", o.Recovery), help: cmd.CommandPath()}
		}
	}
	if o.Scope == "" {
		return nil
	}
	if o.Checkpoint == 0 || o.Recovery != "" && o.Recovery != core.RecoveryCheckpoint {
		return &usageError{err: errors.New("--scope says how much rolls back to a checkpoint; use it with --checkpoint and recovery checkpoint"), help: cmd.CommandPath()}
	}
	return oneOf(cmd, "scope", o.Scope, capacityScopes)
}

// againstProtection reads STRATEGY or checkpoint/SCOPE.
func (c *cli) againstProtection(cmd *cobra.Command, text string, checkpoint time.Duration) (p capacityProtection, err error) {
	recovery, scope, scoped := strings.Cut(text, "/")
	if p, err = c.recoveryOf(cmd, "against", recovery); err != nil {
		return p, err
	}
	switch {
	case scoped && recovery != core.RecoveryCheckpoint:
		return p, &usageError{err: fmt.Errorf("--against is %q; only %s has a scope", text, core.RecoveryCheckpoint), help: cmd.CommandPath()}
	case p.Checkpoints && checkpoint == 0:
		return p, &usageError{err: fmt.Errorf("--against %s restores from checkpoints; add --checkpoint, such as 1s", text), help: cmd.CommandPath()}
	case scoped:
		p.Scope = scope
		return p, oneOf(cmd, "against", scope, capacityScopes)
	}
	return p, nil
}

// recoveryOf looks a strategy up that a flag names.
func (c *cli) recoveryOf(cmd *cobra.Command, flag, name string) (capacityProtection, error) {
	var names []string
	for _, r := range c.known().Recoveries {
		if r.Name == name {
			return capacityProtection{Recovery: name, Checkpoints: r.Checkpoint}, nil
		}
		names = append(names, r.Name)
	}
	return capacityProtection{}, oneOf(cmd, flag, name, names)
}

// under returns the same measurement under another protection.
func (o CapacityOptions) under(p capacityProtection) CapacityOptions {
	o.Recovery, o.Scope = p.Recovery, p.Scope
	if !p.Checkpoints {
		o.Checkpoint = 0
	}
	return o
}

// capacityComparison is what a capacity was measured in turns with.
type capacityComparison struct {
	with capacityProtection
	runs []runner.CapacityResult
}

// pairPercent returns by how much got is above the comparison, pair by pair of runs that followed each other.
func (c *capacityComparison) pairPercent(got []runner.CapacityResult) (out []float64) {
	for i, r := range c.runs {
		out = append(out, abovePercent(got[i].RecordsPerS, r.RecordsPerS))
	}
	return out
}

// differencePercent returns by how much the median of got is above that of the comparison.
func (c *capacityComparison) differencePercent(got []runner.CapacityResult) float64 {
	return abovePercent(medianRun(got).RecordsPerS, medianRun(c.runs).RecordsPerS)
}

func abovePercent(rate, other float64) float64 { return (rate/other - 1) * 100 }

// percentSpread tells the median of differences and their range.
func percentSpread(all []float64) string {
	sorted := slices.Sorted(slices.Values(all))
	return fmt.Sprintf("median %+.1f %% (%+.1f to %+.1f)", medianOf(sorted), sorted[0], sorted[len(sorted)-1])
}

// medianOf returns the median of sorted figures, the lower one of two in the middle.
func medianOf(sorted []float64) float64 { return sorted[(len(sorted)-1)/2] }

// describe tells the comparison in two lines.
func (c *capacityComparison) describe(got []runner.CapacityResult) string {
	return fmt.Sprintf("in turns with %s: %s, workers %.1f ns/record\n  difference of the medians %+.1f %%, of the pairs: %s\n",
		c.with, spread(rates(c.runs)), cpuPerRecord(medianRun(c.runs)), c.differencePercent(got), percentSpread(c.pairPercent(got)))
}

// cpuPerRecord returns the workers' processor time a record, in ns.
func cpuPerRecord(r runner.CapacityResult) float64 {
	return r.WorkerCPU.Seconds() / (r.RecordsPerS * r.Elapsed.Seconds()) * 1e9
}

// againstReport is a comparison in `bench capacity --json`.
type againstReport struct {
	Recovery string    `json:"recovery"`
	Scope    string    `json:"scope"`
	Runs     []float64 `json:"runs"`
	// PairPercent is by how much the capacity is above it, pair by pair; DifferencePercent that of the medians.
	DifferencePercent float64   `json:"difference_percent"`
	PairPercent       []float64 `json:"pair_difference_percent"`
}

func newAgainstReport(c *capacityComparison, got []runner.CapacityResult) againstReport {
	return againstReport{Recovery: c.with.Recovery, Scope: c.with.Scope, Runs: rates(c.runs), PairPercent: c.pairPercent(got),
		DifferencePercent: c.differencePercent(got)}
}
