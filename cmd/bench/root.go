package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-bench/weir/suites/progress"
	"github.com/weir-bench/weir/suites/spec"
)

const longHelp = `bench compares ways of moving state and of surviving failures in stateful
stream processing: it runs a suite of trials on real worker processes, checks
every answer, and prints what each strategy cost.

  bench run quickstart      the main job, in at most two minutes
  bench list                the suites that come with the program
  bench validate my.yaml    checks a suite of your own
  bench exit-codes          what the exit codes mean`

const exitHelp = `The exit code of bench says how it ended; the first that applies:

  130  interrupted (what was measured is kept and marked partial)
    2  wrong usage, or an invalid suite: nothing was started
    1  internal error, or the machine did not play along (disk, port, worker)
    5  wrong answers: records lost, duplicated, wrong or reordered against a promise
    4  regression against the baseline
    3  an objective of the suite was missed, or had no figure
    6  inconclusive: a trial's verdict is unknown (only with --strict)
    0  pass`

// cli is one command line's state.
type cli struct {
	app   app
	world world
}

func newRoot(a app, w world) *cobra.Command {
	c := &cli{app: a, world: w}
	root := &cobra.Command{
		Use: "bench", Short: "Benchmark and chaos tests for stateful stream processing", Long: longHelp,
		SilenceUsage: true, SilenceErrors: true,
		Args: c.noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(w.in)
	root.SetOut(w.out)
	root.SetErr(w.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err: flagProblem(cmd, err), help: cmd.CommandPath()}
	})
	root.AddCommand(c.runCommand(), c.listCommand(), c.validateCommand(), c.planCommand(), c.reportCommand(),
		c.capacityCommand(), c.simCommand(), c.modelCommand(), c.traceCommand(), c.versionCommand(),
		&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitHelp, Args: exactly(0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }})
	// Cobra's own help command answers an unknown topic with exit code 0.
	root.SetHelpCommand(c.helpCommand(root))
	return root
}

func (c *cli) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command, or about exit-codes",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return commandNames(root), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || cmd == root && len(args) > 0 || len(rest) > 0 && cmd == root {
				return unknownCommand(root, args[0])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

func (c *cli) noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

func commandNames(root *cobra.Command) []string {
	var names []string
	for _, sub := range root.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return names
}

func unknownCommand(root *cobra.Command, word string) error {
	names := commandNames(root)
	hint := "commands: " + strings.Join(names, ", ")
	if near := spec.Nearest(word, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &usageError{err: fmt.Errorf("unknown command %q; %s", word, hint), help: "bench"}
}

var badValueRE = regexp.MustCompile(`^invalid argument "(.*)" for "(?:-\\w, )?--([a-z-]+)" flag: `)

// flagProblem puts the flag library's messages into words for users: the nearest
// flag for an unknown one, and what a flag takes for a value it cannot read.
func flagProblem(cmd *cobra.Command, err error) error {
	if m := badValueRE.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("--%s is %q; use %s", m[2], m[1], flagWants(cmd.Flags().Lookup(m[2])))
	}
	word, isUnknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !isUnknown {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := spec.Nearest(word, names); near != "" {
		return fmt.Errorf("unknown flag --%s; did you mean --%s?", word, near)
	}
	return fmt.Errorf("unknown flag --%s", word)
}

func flagWants(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "duration":
		return "a time with a unit, such as 5s"
	case "bool":
		return "true or false"
	case "uint64":
		return "a whole number from 0"
	}
	return "a whole number"
}

// atLeast asks for arguments by their name.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return &usageError{err: errors.New("no " + what + " given"), help: cmd.CommandPath()}
		}
		return nil
	}
}

func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return &usageError{err: errors.New("no " + what + " given"), help: cmd.CommandPath()}
		}
		if len(args) > n {
			return &usageError{err: fmt.Errorf("unexpected argument %q", args[n]), help: cmd.CommandPath()}
		}
		return nil
	}
}

// progressFlag adds --progress and gives a function that makes the display.
func (c *cli) progressFlag(cmd *cobra.Command) func() (*progress.Progress, error) {
	mode := cmd.Flags().String("progress", string(progress.Auto), "how to show progress: "+strings.Join(progress.Modes(), ", "))
	mustComplete(cmd, "progress", progress.Modes())
	return func() (*progress.Progress, error) {
		if err := oneOf(cmd, "progress", *mode, progress.Modes()); err != nil {
			return nil, err
		}
		m := progress.Choose(progress.Mode(*mode), c.world.errWidth > 0, c.world.env)
		return progress.New(m, c.world.err, now), nil
	}
}

func oneOf(cmd *cobra.Command, flag, value string, list []string) error {
	for _, x := range list {
		if x == value {
			return nil
		}
	}
	return &usageError{err: fmt.Errorf("--%s %q is not known; use one of %s", flag, value, strings.Join(list, ", ")), help: cmd.CommandPath()}
}

func mustComplete(cmd *cobra.Command, flag string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("bench: completion for a flag that is not there: " + err.Error())
	}
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Version of the program and of what it was built with", Args: exactly(0, ""),
		RunE: func(*cobra.Command, []string) error {
			version, revision := "(devel)", "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				if info.Main.Version != "" {
					version = info.Main.Version
				}
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = s.Value
					}
				}
			}
			_, err := fmt.Fprintf(c.world.out, "bench %s\nrevision %s\n%s %s/%s\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// readFile reads a file, or standard input for "-".
func (c *cli) readFile(path string) ([]byte, error) {
	if path == "-" {
		return readAll(c.world.in)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}
