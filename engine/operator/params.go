package operator

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// params reads an operator's parameters and keeps the first thing that is wrong with them.
type params struct {
	spec   *core.OperatorSpec
	layout layout
	known  []string
	err    error
}

// readParams reads the layout; names are the other parameters that the kind knows.
func readParams(spec *core.OperatorSpec, names ...string) *params {
	p := &params{spec: spec, known: append(names, "layout")}
	var bad []string
	for name := range spec.Params {
		if !slices.Contains(p.known, name) {
			bad = append(bad, name)
		}
	}
	if sort.Strings(bad); len(bad) > 0 {
		p.fail(bad[0], fmt.Errorf("a %s has no such parameter; it has %s", spec.Kind, strings.Join(p.known, ", ")))
	}
	var err error
	if p.layout, err = parseLayout(spec.Params["layout"]); err != nil {
		p.fail("layout", err)
	}
	return p
}

func (p *params) fail(name string, err error) {
	if p.err == nil {
		p.err = fmt.Errorf("operator %s: parameter %s: %w", p.spec.Name, name, err)
	}
}

func (p *params) has(name string) bool { return p.spec.Params[name] != "" }

// num compiles an expression that gives a number; nil when the parameter is absent.
func (p *params) num(name string, lookup func(string) (expr, bool)) func(*env) int64 {
	if !p.has(name) {
		return nil
	}
	x, err := compile(p.spec.Params[name], lookup)
	if err == nil && x.num == nil {
		err = fmt.Errorf("expression %q gives a text, want a number", p.spec.Params[name])
	}
	if err != nil {
		p.fail(name, err)
		return func(*env) int64 { return 0 }
	}
	return x.num
}

// list compiles expressions separated by semicolons; nil when the parameter is absent.
func (p *params) list(name string, lookup func(string) (expr, bool)) []expr {
	if !p.has(name) {
		return nil
	}
	xs, err := compileList(p.spec.Params[name], lookup)
	if err != nil {
		p.fail(name, err)
	}
	return xs
}

// order compiles expressions that all give numbers.
func (p *params) order(name string) []func(*env) int64 {
	var out []func(*env) int64
	for _, x := range p.list(name, p.layout.names()) {
		if x.num == nil {
			p.fail(name, fmt.Errorf("%q orders by a text, want numbers", p.spec.Params[name]))
			return nil
		}
		out = append(out, x.num)
	}
	return out
}

// duration reads a time such as 10s in nanoseconds, def when absent.
func (p *params) duration(name string, def, least int64) int64 {
	if !p.has(name) {
		return def
	}
	d, err := time.ParseDuration(p.spec.Params[name])
	if err == nil && int64(d) < least {
		err = fmt.Errorf("%v, want at least %v", d, time.Duration(least))
	}
	if err != nil {
		p.fail(name, err)
	}
	return int64(d)
}

func (p *params) integer(name string, def int) int {
	if !p.has(name) {
		return def
	}
	n, err := strconv.Atoi(p.spec.Params[name])
	if err == nil && (n < 1 || n > math.MaxUint16) {
		err = fmt.Errorf("%d, want 1 to %d", n, math.MaxUint16)
	}
	if err != nil {
		p.fail(name, err)
	}
	return n
}

// one reads one of a few words; the first is the default.
func (p *params) one(name string, words ...string) string {
	s := p.spec.Params[name]
	if s == "" {
		return words[0]
	}
	if !slices.Contains(words, s) {
		p.fail(name, fmt.Errorf("%q, want one of %s", s, strings.Join(words, ", ")))
	}
	return s
}

func (p *params) require(name string) {
	if !p.has(name) {
		p.fail(name, fmt.Errorf("a %s needs it", p.spec.Kind))
	}
}

// Check says what is wrong with the parameters of a job's operators, naming operator and parameter.
func Check(job *core.Job) error {
	for i := range job.Operators {
		spec := &job.Operators[i]
		k, ok := Lookup(spec.Kind)
		if !ok {
			return fmt.Errorf("operator %s: unknown kind %q", spec.Name, spec.Kind)
		}
		if k.check == nil {
			continue
		}
		if err := k.check(spec); err != nil {
			return err
		}
	}
	return nil
}
