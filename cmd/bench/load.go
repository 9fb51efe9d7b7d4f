package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-bench/weir/suites"
	"github.com/weir-bench/weir/suites/spec"
)

// now is the wall clock of displays; measurements have their own.
func now() time.Time { return time.Now() }

// maxSuiteBytes is one more than a suite may have, so that the parser sees that
// there is too much without reading it all.
const maxSuiteBytes = 1<<20 + 1

func readAll(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxSuiteBytes)) }

// overrides are the flags that change a suite before it is checked.
type overrides struct {
	only    string
	sets    []string
	repeat  int
	seed    uint64
	runtime string
}

var runtimes = []string{"process", "sim", "docker"}

func (o *overrides) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.only, "only", "", "run only the cells whose name matches this regular `expression`")
	f.StringArrayVar(&o.sets, "set", nil, "override a field, as `PATH=VALUE`, for example workload.rate=20000/s; may be repeated")
	f.IntVar(&o.repeat, "repeat", 0, "repetitions of each cell, instead of the suite's")
	f.Uint64Var(&o.seed, "seed", 0, "seed, instead of the suite's")
	f.StringVar(&o.runtime, "runtime", "", "where workers live, instead of the suite's: "+strings.Join(runtimes, ", "))
	mustComplete(cmd, "runtime", runtimes)
}

// loaded is a suite that may be run.
type loaded struct {
	suite  *spec.Suite
	source []byte
	plan   []spec.Trial
}

// loadAll reads and checks all suites before anything is started, and reports
// the errors of all of them.
func (c *cli) loadAll(cmd *cobra.Command, names []string, o *overrides) ([]loaded, error) {
	var only *regexp.Regexp
	if o.only != "" {
		re, err := regexp.Compile(o.only)
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("--only %q is not a regular expression: %v", o.only, err), help: cmd.CommandPath()}
		}
		only = re
	}
	opts := spec.Options{Known: c.known(), Sets: o.sets, Repeat: o.repeat, Runtime: o.runtime}
	if cmd.Flags().Changed("repeat") && o.repeat < 1 {
		return nil, &usageError{err: fmt.Errorf("--repeat is %d; use at least 1", o.repeat), help: cmd.CommandPath()}
	}
	if cmd.Flags().Changed("seed") {
		opts.Seed = &o.seed
	}
	var out []loaded
	var invalid spec.Errors
	for _, name := range names {
		l, err := c.load(cmd, name, opts, only)
		var errs spec.Errors
		switch {
		case errors.As(err, &errs):
			invalid = append(invalid, errs...)
		case err != nil:
			return nil, err
		}
		out = append(out, l)
	}
	if len(invalid) > 0 {
		return nil, invalid
	}
	return out, nil
}

func (c *cli) load(cmd *cobra.Command, name string, opts spec.Options, only *regexp.Regexp) (loaded, error) {
	file, source, err := c.find(cmd, name)
	if err != nil {
		return loaded{}, err
	}
	s, err := spec.Parse(file, source, opts)
	if err != nil {
		return loaded{}, err
	}
	plan, err := spec.Plan(s, only)
	if err != nil {
		return loaded{}, &usageError{err: fmt.Errorf("%s: %w", file, err), help: cmd.CommandPath()}
	}
	return loaded{suite: s, source: source, plan: plan}, nil
}

// find reads a suite by its file's name, or by the name of an embedded one. A
// name with a dot or a separator is a file.
func (c *cli) find(cmd *cobra.Command, name string) (file string, data []byte, err error) {
	isPath := name == "-" || strings.ContainsAny(name, `/\`) || filepath.Ext(name) != ""
	if !isPath {
		if data, ok := suites.Read(name); ok {
			return name + ".yaml", data, nil
		}
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return "", nil, &usageError{err: fmt.Errorf("unknown suite %q; %s", name, suiteHint(name)), help: cmd.CommandPath()}
		}
	}
	data, err = c.readFile(name)
	if err != nil {
		return "", nil, &usageError{err: fmt.Errorf("cannot read the suite: %w", err), help: cmd.CommandPath()}
	}
	if name == "-" {
		name = "standard input"
	}
	return name, data, nil
}

func suiteHint(name string) string {
	names := suites.Names()
	if near := spec.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "suites: " + strings.Join(names, ", ") + "; a file of your own needs its path, such as ./" + name + ".yaml"
}

func (c *cli) known() spec.Known {
	if c.app.known == nil {
		return spec.Known{}
	}
	return c.app.known()
}

func completeSuites(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return suites.Names(), cobra.ShellCompDirectiveDefault
}
