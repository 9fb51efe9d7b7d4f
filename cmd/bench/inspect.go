package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-bench/weir/suites"
	"github.com/weir-bench/weir/suites/spec"
)

// listTopics are what `bench list` can list.
var listTopics = []string{"suites", "operators", "migrations", "recoveries", "planners", "workloads", "arrivals", "presets", "queries", "backends", "faults", "triggers"}

func (c *cli) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list [TOPIC]", Short: "List the suites, or what a suite can name",
		Long:      "List lists the suites that come with the program, or the names that a suite can\nuse: " + strings.Join(listTopics, ", ") + ".",
		ValidArgs: listTopics,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if err := exactly(1, "topic")(cmd, args); err != nil {
				return err
			}
			for _, t := range listTopics {
				if t == args[0] {
					return nil
				}
			}
			return &usageError{err: fmt.Errorf("unknown topic %q; use one of %s", args[0], strings.Join(listTopics, ", ")), help: cmd.CommandPath()}
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] != "suites" {
			return c.listNames(args[0], asJSON)
		}
		return c.listSuites(asJSON)
	}
	return cmd
}

func (c *cli) listNames(topic string, asJSON bool) error {
	list := topic
	if topic == "operators" {
		list = "kinds"
	}
	names := append([]string{}, c.known().Names(list)...) // not nil, as JSON has an empty list for none
	if asJSON {
		return writeJSON(c.world.out, names)
	}
	for _, n := range names {
		if _, err := fmt.Fprintln(c.world.out, n); err != nil {
			return err
		}
	}
	return nil
}

// suiteRow is one line of `bench list --json`.
type suiteRow struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Cells       []string `json:"cells"`
	Trials      int      `json:"trials"`
	EstimateS   float64  `json:"estimate_s"`
}

func (c *cli) listSuites(asJSON bool) error {
	rows := []suiteRow{}
	for _, name := range suites.Names() {
		data, _ := suites.Read(name)
		s, err := spec.Parse(name+".yaml", data, spec.Options{Known: c.known()})
		if err != nil {
			return err
		}
		plan, err := spec.Plan(s, nil)
		if err != nil {
			return err
		}
		row := suiteRow{Name: name, Description: s.Description, Trials: len(plan), EstimateS: spec.Total(plan).Seconds()}
		for _, cell := range s.Cells {
			row.Cells = append(row.Cells, cell.Name)
		}
		rows = append(rows, row)
	}
	if asJSON {
		return writeJSON(c.world.out, rows)
	}
	t := tabwriter.NewWriter(c.world.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SUITE\tCELLS\tTRIALS\tABOUT\tWHAT IT ANSWERS")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\n", r.Name, len(r.Cells), r.Trials, seconds(r.EstimateS), r.Description)
	}
	return t.Flush()
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (c *cli) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE…", Short: "Check suite files, all errors at once",
		Long: "Validate checks suite files ('-' is standard input) and prints every error with\nfile, line, column and what would be right. The exit code is 2 if there is one.",
		Args: atLeast(1, "file"), ValidArgsFunction: completeSuites,
		RunE: func(cmd *cobra.Command, args []string) error {
			var invalid spec.Errors
			for _, name := range args {
				l, err := c.load(cmd, name, spec.Options{Known: c.known()}, nil)
				var errs spec.Errors
				if errors.As(err, &errs) {
					invalid = append(invalid, errs...)
					continue
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(c.world.out, "%s: ok: %s, %s, about %s\n", l.suite.File,
					plural(len(l.suite.Cells), "cell"), plural(len(l.plan), "trial"), spec.Total(l.plan).Round(time.Second))
			}
			if len(invalid) > 0 {
				return invalid
			}
			return nil
		},
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// trialRow is one line of `bench plan --json`.
type trialRow struct {
	Trial      int     `json:"trial"`
	Cell       string  `json:"cell"`
	Repetition int     `json:"repetition"`
	Seed       uint64  `json:"seed"`
	StartS     float64 `json:"start_s"`
	EstimateS  float64 `json:"estimate_s"`
}

func (c *cli) planCommand() *cobra.Command {
	var o overrides
	var asJSON bool
	cmd := &cobra.Command{
		Use: "plan SUITE", Short: "Show a suite's trials in their order, with an estimate of time",
		Args: exactly(1, "suite"), ValidArgsFunction: completeSuites,
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list, err := c.loadAll(cmd, args, &o)
		if err != nil {
			return err
		}
		rows, start := []trialRow{}, time.Duration(0)
		for _, t := range list[0].plan {
			rows = append(rows, trialRow{Trial: t.Index + 1, Cell: t.Name, Repetition: t.Repetition + 1, Seed: t.Seed,
				StartS: start.Seconds(), EstimateS: t.Estimate.Seconds()})
			start += t.Estimate
		}
		if asJSON {
			return writeJSON(c.world.out, map[string]any{"suite": list[0].suite.Name, "trials": rows, "estimate_s": start.Seconds()})
		}
		t := tabwriter.NewWriter(c.world.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "TRIAL\tCELL\tREPETITION\tSTARTS\tTAKES")
		for _, r := range rows {
			fmt.Fprintf(t, "%d\t%s\t%d\t%.1fs\t%.1fs\n", r.Trial, r.Cell, r.Repetition, r.StartS, r.EstimateS)
		}
		fmt.Fprintf(t, "%s, about %s\n", plural(len(rows), "trial"), start.Round(time.Second))
		return t.Flush()
	}
	return cmd
}
