package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/suites/spec"
)

var (
	reportFormats = []string{"table", "json", "md", "html", "all"}
	reportFigures = []string{"main", "all"}
)

func (c *cli) reportCommand() *cobra.Command {
	var o ReportOptions
	cmd := &cobra.Command{
		Use: "report RUN", Short: "Render a run's reports again, from its files",
		Long:    "Report reads a run directory, such as runs/quickstart/latest, and renders it again.\nThe table goes to standard output, files into the run directory or --out.",
		Example: "  bench report runs/quickstart/latest\n  bench report runs/quickstart/latest --format all",
		Args:    exactly(1, "run directory"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	cmd.Flags().StringVar(&o.Format, "format", "table", "what to render: table, json, md, html, all")
	cmd.Flags().StringVar(&o.OutDir, "out", "", "`folder` for the files, instead of the run directory")
	cmd.Flags().StringVar(&o.Figures, "figures", "main", "figures of the table: main, all; files have all of them")
	mustComplete(cmd, "format", reportFormats)
	mustComplete(cmd, "figures", reportFigures)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cmp.Or(oneOf(cmd, "format", o.Format, reportFormats), oneOf(cmd, "figures", o.Figures, reportFigures)); err != nil {
			return err
		}
		info, err := os.Stat(args[0])
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is a file, not a run directory", args[0])
		}
		if err != nil {
			return &usageError{err: fmt.Errorf("cannot read the run: %w", err), help: cmd.CommandPath()}
		}
		if c.app.report == nil {
			return fmt.Errorf("report: %w", errNotWired)
		}
		o.Dir, o.Streams = args[0], c.world.streams()
		return c.app.report(cmd.Context(), o)
	}
	return cmd
}

func (c *cli) capacityCommand() *cobra.Command {
	o := CapacityOptions{Keys: 100_000}
	var keys, preload int64
	var rate string
	var against []string
	cmd := &cobra.Command{
		Use: "capacity", Short: "Measure how many records a second a keyed count can take",
		Long:    "Capacity runs a keyed count of uniform keys as fast as it goes, with every output\nreturned and checked. The last line is 'capacity: N records/s (…)'. With --rate it\nmeasures the delay at that rate instead. With --against it is measured in turns with\nthe same job under another protection, so that whatever else the machine does meets\nboth, and the difference is printed.",
		Example: "  bench capacity\n  bench capacity --rate 1M/s\n  bench capacity --checkpoint 1s --json\n  bench capacity --checkpoint 1s --scope task --against none --against checkpoint --repeat 5",
		Args:    exactly(0, ""),
	}
	f := cmd.Flags()
	f.IntVar(&o.Workers, "workers", 2, "worker processes")
	f.IntVar(&o.Parallelism, "parallelism", 2, "tasks of the keyed count")
	f.Int64Var(&keys, "keys", 100_000, "distinct keys")
	f.DurationVar(&o.Duration, "duration", 5*time.Second, "time measured")
	f.DurationVar(&o.Checkpoint, "checkpoint", 0, "time between checkpoints; 0 for none")
	f.StringVar(&o.Recovery, "recovery", "", "fault-tolerance strategy of all tasks; checkpoint when there are some, if left out")
	f.StringVar(&o.Scope, "scope", "", "how much rolls back to a checkpoint: global, region, task")
	f.Int64Var(&preload, "preload", 0, "keys that have state from the start, at most --keys")
	f.IntVar(&o.Repeat, "repeat", 1, "how often; the median and the spread are printed")
	f.StringArrayVar(&against, "against", nil, "in turns with the same under this `protection`: a strategy, or checkpoint/SCOPE; may be repeated")
	f.BoolVar(&o.Alternate, "alternate", false, "a checkpoint in every other period only, and the difference that it makes within one run")
	f.StringVar(&rate, "rate", "", "measure the delay at this `rate`, such as 1M/s, instead of the capacity")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the workload")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	display := c.progressFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := capacityTrouble(cmd, o, keys, preload); err != nil {
			return err
		}
		if err := c.capacityProtection(cmd, o); err != nil {
			return err
		}
		if err := alternateTrouble(cmd, o, len(against) > 0); err != nil {
			return err
		}
		for _, text := range against {
			p, err := c.againstProtection(cmd, text, o.Checkpoint)
			if err != nil {
				return err
			}
			o.Against = append(o.Against, p)
		}
		if rate != "" {
			if o.Rate = parseRate(rate); o.Rate == 0 {
				return &usageError{err: fmt.Errorf("--rate is %q; use records a second, such as 20000/s or 1M/s", rate), help: cmd.CommandPath()}
			}
		}
		shown, err := display()
		if err != nil {
			return err
		}
		if c.app.capacity == nil {
			return fmt.Errorf("capacity: %w", errNotWired)
		}
		o.Preload = spec.Count(preload)
		o.Keys, o.Progress, o.Streams = spec.Count(keys), shown, c.world.streams()
		err = c.app.capacity(cmd.Context(), o)
		shown.Close(err == nil)
		return err
	}
	return cmd
}

// capacityTrouble says which flag is out of its range.
func capacityTrouble(cmd *cobra.Command, o CapacityOptions, keys, preload int64) error {
	switch {
	case o.Workers < 1 || o.Workers > 1024:
		return flagRange(cmd, "workers", o.Workers, "1 to 1024")
	case o.Parallelism < 1 || o.Parallelism > 1024:
		return flagRange(cmd, "parallelism", o.Parallelism, "1 to 1024")
	case keys < 1:
		return flagRange(cmd, "keys", keys, "at least 1")
	case o.Duration < 100*time.Millisecond || o.Duration > time.Hour:
		return flagRange(cmd, "duration", o.Duration, "100ms to 1h")
	case o.Checkpoint < 0 || o.Checkpoint > 0 && o.Checkpoint < time.Millisecond:
		return flagRange(cmd, "checkpoint", o.Checkpoint, "0, or at least 1ms")
	case preload < 0 || preload > keys:
		return flagRange(cmd, "preload", preload, fmt.Sprintf("0 to %d, the number of keys", keys))
	case o.Repeat < 1 || o.Repeat > 1000:
		return flagRange(cmd, "repeat", o.Repeat, "1 to 1000")
	}
	return nil
}

var rateRE = regexp.MustCompile(`^([0-9]{1,12}(?:\.[0-9]{1,6})?)([kM]?)/s$`)

// parseRate reads a rate in records/s; 0 is what it cannot read, or no rate.
func parseRate(s string) spec.Rate {
	m := rateRE.FindStringSubmatch(s)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	n *= map[string]float64{"": 1, "k": 1e3, "M": 1e6}[m[2]]
	if n > 1e9 {
		return 0
	}
	return spec.Rate(n)
}

func flagRange(cmd *cobra.Command, flag string, got any, want string) error {
	return &usageError{err: fmt.Errorf("--%s is %v; use %s", flag, got, want), help: cmd.CommandPath()}
}

func (c *cli) simCommand() *cobra.Command {
	var o SimOptions
	var seed uint64
	cmd := &cobra.Command{
		Use: "sim", Short: "Run simulated trials with faults and check every answer",
		Long:    "Sim runs seeded trials in simulated time, with crashes, freezes, partitions and torn\nwrites, and checks safety and then liveness. A failing seed prints the command that\nrepeats it. Simulated time is never a performance result.\n\nWith --matrix it stops every migration strategy at every step of its protocol, under\nevery recovery strategy, scope and kind of sink, by a crash, a freeze or a broken link\nof each worker, one cell after the other: a quarter of an hour a seed.",
		Example: "  bench sim --seeds 10000\n  bench sim --seed 4711 --trace\n  bench sim --matrix --migration async-rounds --recovery checkpoint:task",
		Args:    exactly(0, ""),
	}
	f := cmd.Flags()
	f.IntVar(&o.Seeds, "seeds", 1000, "number of trials")
	f.Uint64Var(&o.First, "first", 1, "first seed")
	f.Uint64Var(&o.First, "from", 1, "the same as --first")
	f.Uint64Var(&seed, "seed", 0, "run this seed only")
	f.StringVar(&o.Migration, "migration", "", "use this migration strategy only")
	f.StringVar(&o.Recovery, "recovery", "", "use this recovery strategy only; :region or :task is a scope of checkpoint")
	f.BoolVar(&o.Trace, "trace", false, "print the trace of each trial")
	f.BoolVar(&o.Matrix, "matrix", false, "run the crash matrix of migrations; --seeds is 1 unless given")
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	display := c.progressFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		one := cmd.Flags().Changed("seed")
		switch {
		case one && (cmd.Flags().Changed("seeds") || cmd.Flags().Changed("first") || cmd.Flags().Changed("from")):
			return &usageError{err: errors.New("--seed runs one seed; use it without --seeds and --first"), help: cmd.CommandPath()}
		case o.Seeds < 1:
			return flagRange(cmd, "seeds", o.Seeds, "at least 1")
		case o.Matrix && o.Trace:
			return &usageError{err: errors.New("--trace is for trials; a cell of the matrix that fails prints the command that traces it"), help: cmd.CommandPath()}
		}
		if o.Matrix && !cmd.Flags().Changed("seeds") {
			o.Seeds = 1
		}
		if one {
			o.Seeds, o.First = 1, seed
		}
		if err := c.knownStrategies(cmd, o); err != nil {
			return err
		}
		shown, err := display()
		if err != nil {
			return err
		}
		if c.app.sim == nil {
			return fmt.Errorf("sim: %w", errNotWired)
		}
		o.Progress, o.Streams = shown, c.world.streams()
		got, err := c.app.sim(cmd.Context(), o)
		shown.Close(err == nil)
		if err != nil {
			return err
		}
		return codeOrNil(got.code(false))
	}
	return cmd
}

func (c *cli) knownStrategies(cmd *cobra.Command, o SimOptions) error {
	var migrations, recoveries []string
	for _, m := range c.known().Migrations {
		migrations = append(migrations, m.Name)
	}
	for _, r := range c.known().Recoveries {
		recoveries = append(recoveries, r.Name)
		if r.Checkpoint {
			recoveries = append(recoveries, r.Name+":"+core.ScopeRegion, r.Name+":"+core.ScopeTask)
		}
	}
	if o.Migration != "" {
		if err := oneOf(cmd, "migration", o.Migration, migrations); err != nil {
			return err
		}
	}
	if o.Recovery != "" {
		return oneOf(cmd, "recovery", o.Recovery, recoveries)
	}
	return nil
}
