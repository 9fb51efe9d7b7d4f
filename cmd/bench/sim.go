package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/sim"
	"github.com/weir-bench/weir/suites/progress"
)

// simReport is `bench sim --json`.
type simReport struct {
	Trials       int            `json:"trials"`
	First        uint64         `json:"first_seed"`
	Violations   int            `json:"violations"`
	Seconds      float64        `json:"seconds"`
	TrialsPerMin float64        `json:"trials_per_minute"`
	Faults       int            `json:"faults"`
	Migrations   int            `json:"migrations"`
	Failed       []simViolation `json:"failed"`
}

type simViolation struct {
	Seed      uint64 `json:"seed"`
	Violation string `json:"violation"`
	Repro     string `json:"repro"`
}

// runSim runs `bench sim`: trials one after the other on one core.
func runSim(ctx context.Context, o SimOptions) (Outcome, error) {
	base, _, _ := strings.Cut(o.Recovery, ":")
	if s, err := migration.Lookup(o.Migration); err == nil && base != "" && !s.GoesWith(base) {
		return Outcome{}, &usageError{err: fmt.Errorf("--migration %s does not go with --recovery %s: %s", s.Name, o.Recovery, s.Because)}
	}
	if o.Matrix {
		return runMatrix(ctx, o)
	}
	rep := simReport{First: o.First, Failed: []simViolation{}}
	begin := now()
	for i := range o.Seeds {
		if ctx.Err() != nil {
			break
		}
		seed := o.First + uint64(i)
		if i%50 == 0 {
			o.Progress.Update(progress.Event{Suite: "sim", Trial: i + 1, Trials: o.Seeds, Cell: "seed", Repetition: 1, Phase: fmt.Sprintf("%d violations", rep.Violations)})
		}
		r := sim.Run(sim.Config{Seed: seed, Recovery: o.Recovery, Migration: o.Migration, Faults: -1})
		rep.Trials++
		rep.Faults += len(r.Faults)
		rep.Migrations += r.Migrations
		if o.Trace {
			printSimTrace(o.Streams, &r)
		}
		if r.Violation == "" {
			continue
		}
		rep.Violations++
		v := simViolation{Seed: seed, Violation: r.Violation, Repro: simRepro(seed, &o)}
		rep.Failed = append(rep.Failed, v)
		fmt.Fprintf(o.Streams.Err, "seed %d: %s, %s, transactional %v, faults %v: %s\nrepro: %s\n", seed, r.Recovery, r.Migration, r.Transactional, r.Faults, v.Violation, v.Repro)
	}
	took := now().Sub(begin)
	rep.Seconds = took.Seconds()
	rep.TrialsPerMin = float64(rep.Trials) / took.Minutes()
	if err := showSim(o, rep, took); err != nil {
		return Outcome{}, err
	}
	return Outcome{Wrong: rep.Violations}, ctx.Err()
}

// runMatrix runs `bench sim --matrix`: the cells are its trials.
func runMatrix(ctx context.Context, o SimOptions) (Outcome, error) {
	rep := simReport{First: o.First, Failed: []simViolation{}}
	begin := now()
	part := sim.MatrixOptions{First: o.First, Seeds: uint64(o.Seeds), Migration: o.Migration, Recovery: o.Recovery}
	err := sim.Matrix(part, func(c sim.Cell, r *sim.CellResult) bool {
		if rep.Trials%50 == 0 {
			o.Progress.Update(progress.Event{Suite: "sim", Trial: int(c.Seed-o.First) + 1, Trials: o.Seeds, Cell: c.Migration, Repetition: 1,
				Phase: fmt.Sprintf("%d cells, %d violations", rep.Trials, rep.Violations)})
		}
		rep.Trials++
		rep.Migrations++
		if r.Struck != "" {
			rep.Faults++
		}
		if r.Violation != "" {
			rep.Violations++
			v := simViolation{Seed: c.Seed, Violation: r.Violation, Repro: "go test ./engine/sim -run TestMatrix -v -cell=" + c.String()}
			rep.Failed = append(rep.Failed, v)
			fmt.Fprintf(o.Streams.Err, "%s, struck at %q: %s\nrepro: %s\n", c, r.Struck, v.Violation, v.Repro)
		}
		return ctx.Err() == nil
	})
	if err != nil {
		return Outcome{}, err
	}
	took := now().Sub(begin)
	rep.Seconds = took.Seconds()
	rep.TrialsPerMin = float64(rep.Trials) / took.Minutes()
	if o.JSON {
		err = writeJSON(o.Streams.Out, rep)
	} else {
		_, err = fmt.Fprintf(o.Streams.Out, "sim: %d cells of the crash matrix, %d faults, %d violations (seeds %d to %d, %v, one core)\n",
			rep.Trials, rep.Faults, rep.Violations, o.First, o.First+uint64(o.Seeds)-1, took.Round(time.Millisecond))
	}
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Wrong: rep.Violations}, ctx.Err()
}

func showSim(o SimOptions, rep simReport, took time.Duration) error {
	if o.JSON {
		return writeJSON(o.Streams.Out, rep)
	}
	_, err := fmt.Fprintf(o.Streams.Out, "sim: %d trials, %d violations, %.0f trials/min (seeds %d to %d, %d faults, %d migrations, %v, one core)\n",
		rep.Trials, rep.Violations, rep.TrialsPerMin, rep.First, rep.First+uint64(max(rep.Trials, 1)-1), rep.Faults, rep.Migrations, took.Round(time.Millisecond))
	return err
}

// simRepro is the command that repeats one trial.
func simRepro(seed uint64, o *SimOptions) string {
	parts := []string{fmt.Sprintf("bench sim --first %d --seeds 1", seed)}
	if o.Migration != "" {
		parts = append(parts, "--migration "+o.Migration)
	}
	if o.Recovery != "" {
		parts = append(parts, "--recovery "+o.Recovery)
	}
	return strings.Join(append(parts, "--trace"), " ")
}

func printSimTrace(s Streams, r *sim.Result) {
	fmt.Fprintf(s.Out, "seed %d: %s, %s, transactional %v, faults %v, trace hash %016x, over after %v of simulated time\n", r.Seed, r.Recovery, r.Migration,
		r.Transactional, r.Faults, r.Hash, time.Duration(r.SimulatedNS))
	for _, t := range r.Traces {
		fmt.Fprintf(s.Out, "%12.3f ms  %-22s node %d task %d id %d bytes %d count %d %s\n", float64(t.AtNS)/1e6, t.Kind, t.Node, t.Task, t.ID, t.Bytes, t.Count, t.Detail)
	}
}
