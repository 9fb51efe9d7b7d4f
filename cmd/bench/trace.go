package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weir-bench/weir/workloads/replay"
	"github.com/weir-bench/weir/workloads/trace"
)

func (c *cli) traceCommand() *cobra.Command {
	var o replay.Options
	var onlyWorkload bool
	cmd := &cobra.Command{
		Use: "trace FILE", Short: "Describe a trace, and print a workload that imitates it",
		Long: "Trace reads a trace (compact .trc, CSV or JSON lines, plain or compressed), measures its\n" +
			"skew, burstiness and sizes, and prints the workload section of a suite with the same\nparameters. Columns are named; in compact files they are numbers, and column 0 is the time.",
		Example: "  bench trace requests.csv --time at --key user --size bytes --unit us\n  bench trace cache.trc.gz --key 1 --size 2 --workload > workload.yaml",
		Args:    exactly(1, "trace file"),
	}
	f := cmd.Flags()
	f.StringVar(&o.Format, "format", "", "compact, csv or jsonl; by the file's name if left out")
	f.StringVar(&o.Key, "key", "", "`column` of the key")
	f.StringVar(&o.Time, "time", "", "`column` of the time")
	f.StringVar(&o.Size, "size", "", "`column` of the size in bytes")
	f.StringVar(&o.Unit, "unit", "", "unit of the times: ns, us, ms, s; ms if left out")
	f.BoolVar(&o.SkipBad, "skip-bad", false, "leave bad rows out and count them")
	f.BoolVar(&onlyWorkload, "workload", false, "print only the workload section")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := replay.Read(args[0], o)
		if err != nil {
			return &usageError{err: err, help: cmd.CommandPath()}
		}
		d := trace.Describe(t)
		if !onlyWorkload {
			if err := d.Write(c.world.out); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(c.world.out); err != nil {
				return err
			}
		}
		return trace.WritePreset(c.world.out, "imitates "+filepath.Base(args[0]), d.Imitation())
	}
	return cmd
}
