package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-bench/weir/engine/migration/planner"
	"github.com/weir-bench/weir/engine/model"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/suites/calc"
	"github.com/weir-bench/weir/suites/spec"
)

func (c *cli) modelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "model", Short: "Calculate with the models, without running anything",
		Long: "Model does the calculations of a load adjustment on numbers that you give, or on\nwhat a run directory has written down.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.modelRoundsCommand(), c.modelPlanCommand())
	return cmd
}

// writeAnswers prints answers one below the other, or all as JSON.
func writeAnswers[T interface{ Write(w io.Writer) error }](w io.Writer, answers []T, asJSON bool) error {
	if asJSON {
		return writeJSON(w, answers)
	}
	for i, a := range answers {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := a.Write(w); err != nil {
			return err
		}
	}
	return nil
}

// roundsFlags are the numbers of `bench model rounds`.
type roundsFlags struct {
	state, largest, bandwidth, stream string
	m                                 model.Migration
	o                                 calc.RoundsOptions
}

func (c *cli) modelRoundsCommand() *cobra.Command {
	var f roundsFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "rounds [RUN]", Short: "How many rounds a move should take",
		Long: "Rounds works out the number of rounds N of a move by the cost model: for least total\n" +
			"delay when everybody waits, for least weighted delay when only the moving groups wait,\n" +
			"and for a peak that may not be passed; and what to expect of N = 1, 2, 4 … all groups.\n" +
			"The numbers come from the flags, or from a run directory: then as the run measured them.",
		Example: "  bench model rounds --state 512MiB --bandwidth 800MiB --sync-cost 2ms --groups 256 \\\n    --utilisation 0.6 --arrivals 500000 --moving-share 0.25 --peak 20ms\n  bench model rounds runs/rounds/latest --peak 20ms",
		Args:    atMostOne("run directory"),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.state, "state", "", "state to move in all, a `size` such as 512MiB")
	fl.StringVar(&f.largest, "largest-group", "0B", "state of the largest group, a `size`; 0B when groups are alike")
	fl.StringVar(&f.bandwidth, "bandwidth", "", "serialising, sending and installing together, as a `size` a second such as 250MiB")
	fl.DurationVar(&f.m.SyncCost, "sync-cost", 0, "fixed cost of a round")
	fl.StringVar(&f.stream, "stream-bandwidth", "0B", "what a large round adds, as a `size` a second, when the three overlap in it; 0B for no such rounds")
	fl.DurationVar(&f.m.StreamSyncCost, "stream-sync-cost", 0, "fixed cost of a large round; a round takes the lesser of the two")
	fl.DurationVar(&f.m.Jitter, "jitter", 0, "standard deviation of a round's longest wait, which raises the peak of many rounds")
	fl.IntVar(&f.m.Groups, "groups", 0, "key groups that move")
	fl.Float64Var(&f.m.Utilisation, "utilisation", 0, "share of its time that the waiting task works, from 0 to below 1")
	fl.Float64Var(&f.m.ArrivalPerSecond, "arrivals", 1, "records a second of the whole instance")
	fl.Float64Var(&f.m.MovingShare, "moving-share", 1, "share of the records that goes to the moving groups")
	fl.Float64Var(&f.o.SpikeWeight, "spike-weight", 100, "how much a second of waiting counts against a second of duration")
	fl.DurationVar(&f.o.Peak, "peak", 0, "longest wait that is wanted; 0 for no target")
	fl.BoolVar(&asJSON, "json", false, "print JSON")
	f.o.DurationWeight = 1
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		answers, err := f.answers(cmd, args)
		if err != nil {
			return &usageError{err: err, help: cmd.CommandPath()}
		}
		return writeAnswers(c.world.out, answers, asJSON)
	}
	return cmd
}

// ownFlags are the flags that go with a run directory too.
var ownFlags = []string{"spike-weight", "peak", "json", "theta", "planner"}

func (f *roundsFlags) answers(cmd *cobra.Command, args []string) ([]calc.RoundsAnswer, error) {
	if f.o.Peak < 0 {
		return nil, fmt.Errorf("--peak is %v; use 0, or a time such as 20ms", f.o.Peak)
	}
	if len(args) == 0 {
		if err := f.read(); err != nil {
			return nil, err
		}
		a, err := calc.Rounds(f.m, f.o)
		return []calc.RoundsAnswer{a}, err
	}
	moves, err := plannedMoves(cmd, args[0])
	if err != nil {
		return nil, err
	}
	var out []calc.RoundsAnswer
	for _, p := range moves {
		if p.Model == nil {
			continue
		}
		a, err := calc.Rounds(p.Model.Migration(), f.o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Of, err)
		}
		a.Of = p.Of
		out = append(out, a)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no migration of the run has a cost model", args[0])
	}
	return out, nil
}

func (f *roundsFlags) read() error {
	for _, s := range []struct {
		flag, value, fix string
		into             func(spec.Bytes)
	}{
		{"state", f.state, "give the state to move", func(b spec.Bytes) { f.m.StateBytes = int64(b) }},
		{"largest-group", f.largest, "give a size, or 0B", func(b spec.Bytes) { f.m.LargestGroupBytes = int64(b) }},
		{"stream-bandwidth", f.stream, "give the bytes a second, or 0B", func(b spec.Bytes) { f.m.StreamBandwidthBytesPerSecond = float64(b) }},
		{"bandwidth", f.bandwidth, "give the bytes a second", func(b spec.Bytes) { f.m.BandwidthBytesPerSecond = float64(b) }},
	} {
		if s.value == "" {
			return fmt.Errorf("--%s is missing; %s, such as 512MiB, or a run directory", s.flag, s.fix)
		}
		b, err := spec.ParseBytes(s.value)
		if err != nil {
			return fmt.Errorf("--%s: %w", s.flag, err)
		}
		s.into(b)
	}
	return nil
}

// plannedMoves reads what a run planned. Flags that give the numbers themselves do not go with it.
func plannedMoves(cmd *cobra.Command, dir string) ([]calc.Planned, error) {
	own := strings.Join(ownFlags, " ") + " "
	var clash []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && !strings.Contains(own, f.Name+" ") {
			clash = append(clash, "--"+f.Name)
		}
	})
	if len(clash) > 0 {
		return nil, fmt.Errorf("%s and a run directory: the run has measured that; give one or the other", strings.Join(clash, ", "))
	}
	run, err := runlog.Open(dir)
	if err != nil {
		return nil, err
	}
	return calc.FromRun(run)
}

// atMostOne takes no argument or one.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return exactly(1, what)(cmd, args)
		}
		return nil
	}
}

// planFlags are the numbers of `bench model plan`.
type planFlags struct {
	file    string
	tasks   int
	theta   float64
	planner string
}

const allPlanners = "all"

func (c *cli) modelPlanCommand() *cobra.Command {
	var f planFlags
	var asJSON bool
	names := []string{allPlanners}
	for _, p := range planner.List() {
		names = append(names, p.Name)
	}
	cmd := &cobra.Command{
		Use: "plan [RUN]", Short: "Which key groups should move where",
		Long: "Plan lets the planners work on a file of key groups, or on the loads that a run had\n" +
			"measured: bytes to move with their lower bound, the imbalance θ reached, the size of\nthe routing table and the time it took.",
		Example: "  bench model plan --loads groups.csv --theta 0.1\n  bench model plan runs/adjust/latest --planner greedy",
		Args:    atMostOne("run directory"),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.file, "loads", "", "CSV `file` of key groups with the columns group, load, bytes, owner; - is standard input")
	fl.IntVar(&f.tasks, "tasks", 0, "tasks; 0 for one more than the highest owner")
	fl.Float64Var(&f.theta, "theta", 0.1, "imbalance allowed: load up to (1+θ) times the mean")
	fl.StringVar(&f.planner, "planner", allPlanners, "planner: "+strings.Join(names, ", "))
	mustComplete(cmd, "planner", names)
	fl.BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := oneOf(cmd, "planner", f.planner, names); err != nil {
			return err
		}
		answers, err := c.planAnswers(cmd, args, &f, names[1:])
		if err != nil {
			return &usageError{err: err, help: cmd.CommandPath()}
		}
		return writeAnswers(c.world.out, answers, asJSON)
	}
	return cmd
}

func (c *cli) planAnswers(cmd *cobra.Command, args []string, f *planFlags, all []string) ([]calc.PlanAnswer, error) {
	planners := all
	if f.planner != allPlanners {
		planners = []string{f.planner}
	}
	if len(args) == 0 {
		in, err := c.readGroups(f)
		if err != nil {
			return nil, err
		}
		a, err := calc.Plans(in, planners, now)
		return []calc.PlanAnswer{a}, err
	}
	moves, err := plannedMoves(cmd, args[0])
	if err != nil {
		return nil, err
	}
	var out []calc.PlanAnswer
	for _, p := range moves {
		if p.Input == nil {
			continue
		}
		in := p.Input.Problem()
		if cmd.Flags().Changed("theta") {
			in.Theta = f.theta
		}
		a, err := calc.Plans(in, planners, now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Of, err)
		}
		a.Of = p.Of
		out = append(out, a)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no migration of the run has the loads it was planned with", args[0])
	}
	return out, nil
}

func (c *cli) readGroups(f *planFlags) (in planner.Input, err error) {
	switch {
	case f.file == "":
		return in, errors.New("no numbers given; use --loads FILE, or a run directory")
	case f.tasks < 0 || f.tasks == 1:
		return in, fmt.Errorf("--tasks is %d; use at least 2, or 0 for one more than the highest owner", f.tasks)
	}
	r := c.world.in
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return in, fmt.Errorf("cannot read the key groups: %w", err)
		}
		defer file.Close()
		r = file
	}
	if in, err = calc.ReadGroups(r, f.file, f.tasks); err == nil {
		in.Theta = f.theta
	}
	return in, err
}
