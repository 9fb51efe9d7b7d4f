package spec

import (
	"regexp"
	"strconv"
	"strings"
)

// Objective is a condition on the results: two terms and a comparison. A term
// is a sum of products of numbers and references CELL.METRIC[.STAT], where STAT
// is median (the default), min or max over the repetitions.
type Objective struct {
	Text  string
	op    string
	left  *term
	right *term
}

// Ref is a figure that an objective needs.
type Ref struct{ Cell, Metric, Stat string }

// String gives the form that is written in a suite.
func (r Ref) String() string { return r.Cell + "." + r.Metric + "." + r.Stat }

// MarshalText lets results files carry the written form.
func (o Objective) MarshalText() ([]byte, error) { return []byte(o.Text), nil }

// Judgement is the outcome of an objective.
type Judgement struct {
	Text        string
	Met         bool
	Left, Right float64 // the two sides, if Reason is empty
	Reason      string  // why it could not be computed; then Met is false
}

// Judge computes the objective from figures. A figure that is missing makes the
// objective missed: what was not measured was not reached.
func (o Objective) Judge(figure func(Ref) (float64, bool)) Judgement {
	j := Judgement{Text: o.Text}
	l, reason := o.left.eval(figure)
	r, reason2 := o.right.eval(figure)
	if reason == "" {
		reason = reason2
	}
	if reason != "" {
		j.Reason = reason
		return j
	}
	j.Left, j.Right = l, r
	switch o.op {
	case "<":
		j.Met = l < r
	case "<=":
		j.Met = l <= r
	case ">":
		j.Met = l > r
	case ">=":
		j.Met = l >= r
	case "==":
		j.Met = l == r
	case "!=":
		j.Met = l != r
	}
	return j
}

// Refs lists the figures that the objective needs, left to right.
func (o Objective) Refs() []Ref {
	var out []Ref
	for _, t := range []*term{o.left, o.right} {
		t.walk(func(r Ref) { out = append(out, r) })
	}
	return out
}

// term is a number, a reference, or an operation on two terms.
type term struct {
	op   byte // 0 for a leaf
	a, b *term
	num  float64
	ref  *Ref
}

func (t *term) walk(f func(Ref)) {
	switch {
	case t == nil:
	case t.ref != nil:
		f(*t.ref)
	default:
		t.a.walk(f)
		t.b.walk(f)
	}
}

func (t *term) eval(figure func(Ref) (float64, bool)) (v float64, reason string) {
	if t.ref != nil {
		v, ok := figure(*t.ref)
		if !ok {
			return 0, "no figure for " + t.ref.String()
		}
		return v, ""
	}
	if t.op == 0 {
		return t.num, ""
	}
	a, reason := t.a.eval(figure)
	if reason != "" {
		return 0, reason
	}
	b, reason := t.b.eval(figure)
	if reason != "" {
		return 0, reason
	}
	switch t.op {
	case '+':
		return a + b, ""
	case '-':
		return a - b, ""
	case '*':
		return a * b, ""
	}
	if b == 0 {
		return 0, "division by zero"
	}
	return a / b, ""
}

var (
	tokenRE = regexp.MustCompile(`^\s*([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|[A-Za-z][A-Za-z0-9_.:/=+-]*|<=|>=|==|!=|[<>()*/+-])`)
	stats   = []string{"median", "min", "max"}
)

const objectiveFix = "write for example 'active.recovery_ms.median < 50' or 'a.spike_peak_ms <= 0.1 * b.spike_peak_ms'"

func parseObjective(s string) (Objective, *valueError) {
	p := &objectiveParser{}
	for rest := s; strings.TrimSpace(rest) != ""; {
		m := tokenRE.FindString(rest)
		if m == "" {
			return Objective{}, bad(objectiveFix, "cannot read %q", strings.TrimSpace(rest))
		}
		p.tokens = append(p.tokens, strings.TrimSpace(m))
		rest = rest[len(m):]
		if len(p.tokens) > 200 {
			return Objective{}, bad("split it", "is too long")
		}
	}
	left, err := p.sum()
	if err != nil {
		return Objective{}, err
	}
	op := p.next()
	if indexOf([]string{"<", "<=", ">", ">=", "==", "!="}, op) < 0 {
		return Objective{}, bad(objectiveFix, "has no comparison (<, <=, >, >=, ==, !=)")
	}
	right, err := p.sum()
	if err != nil {
		return Objective{}, err
	}
	if t := p.next(); t != "" {
		return Objective{}, bad(objectiveFix, "has %q after its end", t)
	}
	o := Objective{Text: s, op: op, left: left, right: right}
	if len(o.Refs()) == 0 {
		return Objective{}, bad(objectiveFix, "names no figure")
	}
	return o, nil
}

type objectiveParser struct {
	tokens []string
	pos    int
}

func (p *objectiveParser) peek() string {
	if p.pos < len(p.tokens) {
		return p.tokens[p.pos]
	}
	return ""
}

func (p *objectiveParser) next() string {
	t := p.peek()
	if t != "" {
		p.pos++
	}
	return t
}

func (p *objectiveParser) sum() (*term, *valueError) {
	return p.binary("+-", func() (*term, *valueError) { return p.binary("*/", p.atom) })
}

func (p *objectiveParser) binary(ops string, operand func() (*term, *valueError)) (*term, *valueError) {
	a, err := operand()
	for err == nil {
		op := p.peek()
		if len(op) != 1 || !strings.Contains(ops, op) {
			return a, nil
		}
		p.pos++
		var b *term
		b, err = operand()
		a = &term{op: op[0], a: a, b: b}
	}
	return nil, err
}

func (p *objectiveParser) atom() (*term, *valueError) {
	t := p.next()
	switch {
	case t == "":
		return nil, bad(objectiveFix, "ends too early")
	case t == "(":
		a, err := p.sum()
		if err != nil {
			return nil, err
		}
		if p.next() != ")" {
			return nil, bad("close it", "has an open parenthesis")
		}
		return a, nil
	case t[0] >= '0' && t[0] <= '9':
		v, err := strconv.ParseFloat(strings.ReplaceAll(t, "_", ""), 64)
		if err != nil {
			return nil, bad(objectiveFix, "%q is not a number", t)
		}
		return &term{num: v}, nil
	case t[0] < 'A':
		return nil, bad(objectiveFix, "has %q where a figure belongs", t)
	}
	ref, err := parseRef(t)
	return &term{ref: ref}, err
}

// parseRef splits CELL.METRIC[.STAT] from the right, as names of cells may have
// dots.
func parseRef(s string) (*Ref, *valueError) {
	r := Ref{Stat: "median"}
	parts := strings.Split(s, ".")
	if n := len(parts) - 1; indexOf(stats, parts[n]) >= 0 {
		r.Stat, parts = parts[n], parts[:n]
	}
	n := len(parts) - 1
	if n < 1 {
		return nil, bad(objectiveFix, "%q is not of the form CELL.METRIC or CELL.METRIC.STAT", s)
	}
	r.Cell, r.Metric = strings.Join(parts[:n], "."), parts[n]
	if r.Cell == "" || r.Metric == "" {
		return nil, bad(objectiveFix, "%q is not of the form CELL.METRIC or CELL.METRIC.STAT", s)
	}
	return &r, nil
}

// check reports references to cells that the suite does not have.
func (o Objective) check(cells []string) *valueError {
	for _, r := range o.Refs() {
		if indexOf(cells, r.Cell) < 0 {
			return bad(suggest(r.Cell, cells), "the suite has no cell %q", r.Cell)
		}
	}
	return nil
}

// ObjectivesFor splits the suite's objectives into those whose cells are all in
// the plan and those that a selection of cells left without figures. The latter
// are not missed: nobody tried.
func (s *Suite) ObjectivesFor(plan []Trial) (apply, skipped []Objective) {
	planned := map[string]bool{}
	for _, t := range plan {
		planned[t.Name] = true
	}
next:
	for _, o := range s.Objectives {
		for _, r := range o.Refs() {
			if !planned[r.Cell] {
				skipped = append(skipped, o)
				continue next
			}
		}
		apply = append(apply, o)
	}
	return apply, skipped
}
