package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func (c *cli) runCommand() *cobra.Command {
	var o overrides
	var out string
	var strict bool
	cmd := &cobra.Command{
		Use: "run SUITE…", Short: "Run suites, by name or by file, and report",
		Long:    "Run runs each suite's trials in their order and reports. All suites are checked\nbefore the first is started.\n\n" + exitHelp,
		Example: "  bench run quickstart\n  bench run quickstart --only 'active|checkpoint' --repeat 1\n  bench run my.yaml --set workload.rate=20000/s --out /data/runs",
		Args:    atLeast(1, "suite"), ValidArgsFunction: completeSuites,
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&out, "out", "runs", "`folder` of the run directories")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 6 if a trial's verdict is unknown")
	display := c.progressFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list, err := c.loadAll(cmd, args, &o)
		if err != nil {
			return err
		}
		shown, err := display()
		if err != nil {
			return err
		}
		if c.app.run == nil {
			return fmt.Errorf("run: %w", errNotWired)
		}
		if err := writable(out); err != nil {
			return err
		}
		options := func(l loaded) RunOptions {
			return RunOptions{Suite: l.suite, Plan: l.plan, Source: l.source, Args: c.world.args, OutDir: out, Progress: shown, Streams: c.world.streams()}
		}
		for _, l := range list {
			if c.app.ready == nil {
				break
			}
			if err := c.app.ready(cmd.Context(), options(l)); err != nil {
				shown.Close(false)
				return err
			}
		}
		var all Outcome
		for _, l := range list {
			got, err := c.app.run(cmd.Context(), options(l))
			if err != nil {
				shown.Close(false)
				return fmt.Errorf("run %s: %w", l.suite.Name, err)
			}
			all = all.add(got)
		}
		shown.Close(true)
		return codeOrNil(all.code(strict))
	}
	return cmd
}

func codeOrNil(code int) error {
	if code == exitPass {
		return nil
	}
	return codeError(code)
}

// writable makes the folder of the runs and tries to write there, so that a
// full or read-only disk is found before two minutes of trials.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("the folder of the runs cannot be made: %w; name another with --out", err)
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("the folder of the runs cannot be written: %w; name another with --out", err)
	}
	_, werr := f.WriteString("probe")
	cerr := f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("the folder of the runs cannot be cleaned: %w", err)
	}
	if werr != nil || cerr != nil {
		return fmt.Errorf("the folder of the runs cannot be written: %w; name another with --out", firstErr(werr, cerr))
	}
	return nil
}

func firstErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
