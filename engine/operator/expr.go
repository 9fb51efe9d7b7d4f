package operator

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/weir-bench/weir/engine/core"
)

// Expressions are how a job says what a built-in operator is to compute: `price * 908 / 1000`, `kind == 3 && auction % 123
// == 0`, `name + ', ' + city`. They work on 64-bit integers and texts:
//
//	numbers 12, texts 'OR', names, ( )
//	! -                        not, minus
//	* / %                      a division by zero gives 0
//	+ -                        + also joins texts
//	== != < <= > >=            give 1 or 0; texts know == and !=
//	&& ||                      any number but 0 is true
//	a ? b : c                  only the chosen side is worked out
//	text(n)                    n in decimal
//	mix(n)                     core.Mix64
//	scale(n, m)                ⌊n·m / 2^64⌋ with n, m without sign: n spread evenly over [0, m)
//	shift(n, k)                n >> k, without sign
//	mod(n, m)                  n mod m, without sign
//
// Names are `key`, `value`, `due` (the intended time, ns), the fields of the record's layout and, of a join, both
// sides' names behind `l.` and `r.`.

// record is one record as expressions see it. It shares memory with the columns that it is taken from.
type record struct {
	key      uint64
	val, due int64
	payload  []byte
}

func recordAt(c *core.Columns, i int) record {
	r := record{key: c.Keys[i], due: c.Times[i], payload: c.Payload(i)}
	if len(c.Vals) > 0 {
		r.val = c.Vals[i]
	}
	return r
}

// env is what an expression is evaluated on: one record, or the two sides of a join.
type env struct {
	rec     [2]record
	scratch []byte // for texts that are compared
}

// expr is a compiled expression; exactly one of its functions is set.
type expr struct {
	num  func(*env) int64
	text func(e *env, dst []byte) []byte // appends
}

type parser struct {
	src    string
	pos    int
	tok    string // "" at the end
	lookup func(name string) (expr, bool)
}

func (p *parser) fail(format string, args ...any) {
	panic(exprError(fmt.Sprintf("expression %q: %s", p.src, fmt.Sprintf(format, args...))))
}

// exprError is how the parser leaves its recursion; it does not leave this package.
type exprError string

// compile compiles one expression.
func compile(src string, lookup func(string) (expr, bool)) (x expr, err error) {
	list, err := compileList(src, lookup)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("expression %q: %d expressions, want one", src, len(list))
	}
	if err != nil {
		return expr{}, err
	}
	return list[0], nil
}

// compileList compiles expressions that are separated by semicolons.
func compileList(src string, lookup func(string) (expr, bool)) (list []expr, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exprError:
			list, err = nil, errors.New(string(r))
		default:
			panic(r)
		}
	}()
	p := &parser{src: src, lookup: lookup}
	for p.next(); ; p.next() {
		list = append(list, p.choice())
		if p.tok != ";" {
			break
		}
	}
	if p.tok != "" {
		p.fail("unexpected %q", p.tok)
	}
	return list, nil
}

func isName(c byte, first bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && (c >= '0' && c <= '9' || c == '.')
}

// next reads the next token.
func (p *parser) next() {
	for p.pos < len(p.src) && strings.IndexByte(" \t\n", p.src[p.pos]) >= 0 {
		p.pos++
	}
	start := p.pos
	if start == len(p.src) {
		p.tok = ""
		return
	}
	switch c := p.src[start]; {
	case isName(c, true):
		for p.pos < len(p.src) && isName(p.src[p.pos], false) {
			p.pos++
		}
	case c >= '0' && c <= '9':
		for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
			p.pos++
		}
	case c == '\'':
		end := strings.IndexByte(p.src[start+1:], '\'')
		if end < 0 {
			p.fail("the text at %d has no end", start)
		}
		p.pos += end + 2
	default:
		p.pos++
		if p.pos < len(p.src) {
			if two := p.src[start : p.pos+1]; strings.Contains("== != <= >= && ||", two) && two[0] != ' ' && two[1] != ' ' {
				p.pos++
			}
		}
	}
	p.tok = p.src[start:p.pos]
}

func (p *parser) expect(tok string) {
	if p.tok != tok {
		p.fail("%q where %q belongs", p.tok, tok)
	}
	p.next()
}

func (p *parser) number(x expr) func(*env) int64 {
	if x.num == nil {
		p.fail("a text before %q where a number belongs", p.tok)
	}
	return x.num
}

func (p *parser) choice() expr {
	x := p.binary(0)
	if p.tok != "?" {
		return x
	}
	cond := p.number(x)
	p.next()
	a := p.choice()
	p.expect(":")
	b := p.choice()
	switch {
	case a.num != nil && b.num != nil:
		return expr{num: func(e *env) int64 {
			if cond(e) != 0 {
				return a.num(e)
			}
			return b.num(e)
		}}
	case a.text != nil && b.text != nil:
		return expr{text: func(e *env, dst []byte) []byte {
			if cond(e) != 0 {
				return a.text(e, dst)
			}
			return b.text(e, dst)
		}}
	}
	p.fail("one side of ?: is a number and the other a text")
	return expr{}
}

// levels are the binary operators, loosest first.
func levels() []string { return []string{"||", "&&", "== != < <= > >=", "+ -", "* / %"} }

func (p *parser) at(level int) bool {
	for _, op := range strings.Fields(levels()[level]) {
		if p.tok == op {
			return true
		}
	}
	return false
}

func (p *parser) binary(level int) expr {
	if level == len(levels()) {
		return p.unary()
	}
	x := p.binary(level + 1)
	for p.at(level) {
		op := p.tok
		p.next()
		y := p.binary(level + 1)
		if x.text != nil || y.text != nil {
			x = p.texts(op, x, y)
			continue
		}
		x = expr{num: arithmetic(op, x.num, y.num)}
	}
	return x
}

func (p *parser) texts(op string, x, y expr) expr {
	if x.text == nil || y.text == nil {
		p.fail("%s between a number and a text", op)
	}
	switch op {
	case "+":
		return expr{text: func(e *env, dst []byte) []byte { return y.text(e, x.text(e, dst)) }}
	case "==", "!=":
		want := op == "=="
		return expr{num: func(e *env) int64 {
			b := x.text(e, e.scratch[:0])
			n := len(b)
			b = y.text(e, b)
			e.scratch = b
			return truth(bytes.Equal(b[:n], b[n:]) == want)
		}}
	}
	p.fail("%s does not work on texts", op)
	return expr{}
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func arithmetic(op string, x, y func(*env) int64) func(*env) int64 {
	switch op {
	case "||":
		return func(e *env) int64 { return truth(x(e) != 0 || y(e) != 0) }
	case "&&":
		return func(e *env) int64 { return truth(x(e) != 0 && y(e) != 0) }
	case "==":
		return func(e *env) int64 { return truth(x(e) == y(e)) }
	case "!=":
		return func(e *env) int64 { return truth(x(e) != y(e)) }
	case "<":
		return func(e *env) int64 { return truth(x(e) < y(e)) }
	case "<=":
		return func(e *env) int64 { return truth(x(e) <= y(e)) }
	case ">":
		return func(e *env) int64 { return truth(x(e) > y(e)) }
	case ">=":
		return func(e *env) int64 { return truth(x(e) >= y(e)) }
	case "+":
		return func(e *env) int64 { return x(e) + y(e) }
	case "-":
		return func(e *env) int64 { return x(e) - y(e) }
	case "*":
		return func(e *env) int64 { return x(e) * y(e) }
	case "/":
		return func(e *env) int64 {
			if d := y(e); d != 0 {
				return x(e) / d
			}
			return 0
		}
	}
	return func(e *env) int64 {
		if d := y(e); d != 0 {
			return x(e) % d
		}
		return 0
	}
}

func (p *parser) unary() expr {
	switch tok := p.tok; {
	case tok == "-":
		p.next()
		x := p.number(p.unary())
		return expr{num: func(e *env) int64 { return -x(e) }}
	case tok == "!":
		p.next()
		x := p.number(p.unary())
		return expr{num: func(e *env) int64 { return truth(x(e) == 0) }}
	case tok == "(":
		p.next()
		x := p.choice()
		p.expect(")")
		return x
	case tok == "":
		p.fail("it ends too early")
	case tok[0] == '\'':
		p.next()
		s := tok[1 : len(tok)-1]
		return expr{text: func(_ *env, dst []byte) []byte { return append(dst, s...) }}
	case tok[0] >= '0' && tok[0] <= '9':
		n, err := strconv.ParseInt(tok, 10, 64)
		if err != nil {
			p.fail("number %s is out of range", tok)
		}
		p.next()
		return expr{num: func(*env) int64 { return n }}
	case isName(tok[0], true):
		p.next()
		if p.tok == "(" {
			return p.call(tok)
		}
		x, ok := p.lookup(tok)
		if !ok {
			p.fail("no field %q", tok)
		}
		return x
	}
	p.fail("unexpected %q", p.tok)
	return expr{}
}

func (p *parser) call(name string) expr {
	p.next()
	args := []func(*env) int64{p.number(p.choice())}
	for p.tok == "," {
		p.next()
		args = append(args, p.number(p.choice()))
	}
	p.expect(")")
	x := args[0]
	switch {
	case name == "text" && len(args) == 1:
		return expr{text: func(e *env, dst []byte) []byte { return strconv.AppendInt(dst, x(e), 10) }}
	case name == "mix" && len(args) == 1:
		return expr{num: func(e *env) int64 { return int64(core.Mix64(uint64(x(e)))) }}
	case name == "scale" && len(args) == 2:
		return expr{num: func(e *env) int64 {
			hi, _ := bits.Mul64(uint64(x(e)), uint64(args[1](e)))
			return int64(hi)
		}}
	case name == "shift" && len(args) == 2:
		return expr{num: func(e *env) int64 { return int64(uint64(x(e)) >> uint64(args[1](e))) }}
	}
	if name == "mod" && len(args) == 2 {
		return expr{num: func(e *env) int64 {
			if m := uint64(args[1](e)); m != 0 {
				return int64(uint64(x(e)) % m)
			}
			return 0
		}}
	}
	p.fail("no function %s with %d arguments", name, len(args))
	return expr{}
}
