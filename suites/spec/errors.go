package spec

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"
)

// ErrInvalid is what errors.Is finds in every refusal of a suite.
var ErrInvalid = errors.New("invalid suite")

// Error is one thing wrong with a suite.
type Error struct {
	File      string // the file's name, or "--set PATH=VALUE"
	Line, Col int    // from 1; 0 when the place is not in a file
	Field     string // path of the field, empty for the whole file
	Problem   string // what is wrong
	Fix       string // what would be right
}

var (
	passwordRE = regexp.MustCompile(`(://[^\s/:@'"]*):[^\s'"]*@`)
	loneRE     = regexp.MustCompile(`(://)[^\s/:@'"]+@`)
	secretRE   = regexp.MustCompile(`(?i)([?&][^\s=&'"]*(?:key|secret|token|password|credential|signature)[^\s=&'"]*=)[^\s&'"]*`)
)

// Redact replaces what looks like credentials in the URLs of a text: the password of redis://user:password@host, a lone
// user, who may be a token, and options such as ?secret=value.
func Redact(text string) string {
	text = loneRE.ReplaceAllString(passwordRE.ReplaceAllString(text, "$1:xxxxx@"), "${1}xxxxx@")
	return secretRE.ReplaceAllString(text, "${1}xxxxx")
}

// Error gives "file:line:col: field: problem; what would be right". It tells no password.
func (e Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, max(e.Col, 1))
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Problem)
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return Redact(b.String())
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e Error) Is(target error) bool { return target == ErrInvalid }

// Errors is everything wrong with a suite, in the order of its lines.
type Errors []Error

// Error gives one line for each error.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Is makes errors.Is(err, ErrInvalid) true.
func (es Errors) Is(target error) bool { return target == ErrInvalid }

// maxErrors bounds a report: beyond it a file is of another kind altogether.
const maxErrors = 50

// collector gathers errors, once each.
type collector struct {
	file string
	seen map[Error]bool
	errs Errors
}

func newCollector(file string) *collector {
	return &collector{file: file, seen: map[Error]bool{}}
}

func (c *collector) add(at pos, field, problem, fix string) {
	e := Error{File: c.file, Line: at.line, Col: at.col, Field: field, Problem: problem, Fix: fix}
	if at.source != "" {
		e.File, e.Line, e.Col = at.source, 0, 0
	}
	if !c.seen[e] {
		c.seen[e] = true
		c.errs = append(c.errs, e)
	}
}

// err gives all errors, sorted by place, or nil.
func (c *collector) err() error {
	if len(c.errs) == 0 {
		return nil
	}
	sort.SliceStable(c.errs, func(i, j int) bool {
		a, b := c.errs[i], c.errs[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	if n := len(c.errs) - maxErrors; n > 0 {
		return append(c.errs[:maxErrors:maxErrors], Error{File: c.file, Problem: fmt.Sprintf("and %d more errors", n)})
	}
	return c.errs
}

// suggest gives "did you mean …?" for the nearest word of the list if one is
// near, else the list itself.
func suggest(word string, list []string) string {
	if near := Nearest(word, list); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "known: " + strings.Join(list, ", ")
}

// Nearest gives the word of the list with the least edit distance to word, or ""
// if even that one is more than a third of the word away. Ties go to the first.
func Nearest(word string, list []string) string {
	best, bestDist := "", max(1, len(word)/3)+1
	for _, w := range list {
		if d := editDistance(strings.ToLower(word), strings.ToLower(w)); d < bestDist {
			best, bestDist = w, d
		}
	}
	return best
}

// editDistance is the optimal string alignment distance (Levenshtein plus
// swapped neighbours) of two words, cut at 64 bytes each.
func editDistance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	var d [65][65]int
	for i := 0; i <= len(a); i++ {
		d[i][0] = i
	}
	for j := 0; j <= len(b); j++ {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
