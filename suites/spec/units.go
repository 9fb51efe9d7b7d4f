package spec

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Rate is records a second.
type Rate float64

// Bytes is a size in bytes.
type Bytes int64

// Count is a number of things, written 100000, 100_000 or 10M.
type Count int64

// Interval is a time, or the word auto.
type Interval struct {
	Auto bool
	D    time.Duration
}

// Rounds is the number of rounds of a move, or one of the words auto and all.
type Rounds struct {
	Auto, All bool
	N         int
}

// TargetKind says what a fault hits.
type TargetKind string

// The targets.
const (
	TargetWorker TargetKind = "worker" // worker N
	TargetTask   TargetKind = "task"   // task OPERATOR/N: the worker that holds it
	TargetLink   TargetKind = "link"   // link A-B: between workers A and B
)

// Target is whom a fault hits. Workers count from 1, tasks from 0.
type Target struct {
	Kind     TargetKind
	Worker   int // worker N; link A-B: A
	Peer     int // link A-B: B; 0 is the harness
	Operator string
	Task     int
}

// Trigger is an event of the protocol: the Nth with that name, from 1.
type Trigger struct {
	Event string
	N     int
}

// String gives the form that is written in a suite.
func (r Rate) String() string { return trimFloat(float64(r)) + "/s" }

// String gives the largest binary unit that divides the size.
func (b Bytes) String() string {
	for _, u := range byteUnits {
		if u.binary && u.size > 1 && b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// String gives the form that is written in a suite.
func (i Interval) String() string {
	if i.Auto {
		return "auto"
	}
	return i.D.String()
}

// String gives the form that is written in a suite.
func (r Rounds) String() string {
	switch {
	case r.Auto:
		return "auto"
	case r.All:
		return "all"
	}
	return strconv.Itoa(r.N)
}

// String gives the form that is written in a suite.
func (t Target) String() string {
	switch t.Kind {
	case TargetTask:
		return fmt.Sprintf("task %s/%d", t.Operator, t.Task)
	case TargetLink:
		return fmt.Sprintf("link %d-%d", t.Worker, t.Peer)
	}
	return fmt.Sprintf("worker %d", t.Worker)
}

// String gives the form that is written in a suite.
func (t Trigger) String() string { return fmt.Sprintf("%s %d", t.Event, t.N) }

// MarshalText lets results files carry the written form.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MarshalText lets results files carry the written form.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// MarshalText lets results files carry the written form.
func (i Interval) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// MarshalText lets results files carry the written form.
func (r Rounds) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MarshalText lets results files carry the written form.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalText lets results files carry the written form.
func (t Trigger) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func trimFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// valueError is what is wrong with one scalar, before it is known where.
type valueError struct{ problem, fix string }

func (e *valueError) Error() string { return e.problem + "; " + e.fix }

func bad(fix, format string, args ...any) *valueError {
	return &valueError{problem: fmt.Sprintf(format, args...), fix: fix}
}

var (
	numberRE = regexp.MustCompile(`^[+-]?([0-9][0-9_]*\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	unitRE   = regexp.MustCompile(`^([+-]?[0-9][0-9_]*(?:\.[0-9]+)?) ?([A-Za-zµμ]+)$`)
	dayRE    = regexp.MustCompile(`^([0-9.]+) ?(d|day|days|w|week|weeks)$`)
	targetRE = regexp.MustCompile(`^(worker|task|link) +(\S+)$`)
	eventRE  = regexp.MustCompile(`^([a-z][a-z0-9-]*)(?: +(\S+))?$`)
)

func isNumber(s string) bool { return numberRE.MatchString(s) }

// parseDuration reads a time in Go's notation that is not negative. A bare 0 is
// zero: there is no unit that could be meant otherwise.
func parseDuration(s string) (time.Duration, *valueError) {
	if isNumber(s) {
		if f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64); err == nil && f == 0 {
			return 0, nil
		}
		return 0, bad(fmt.Sprintf("write %sms or %ss", s, s), "%q has no unit", s)
	}
	if m := dayRE.FindStringSubmatch(s); m != nil {
		hours := 24.0
		if m[2][0] == 'w' {
			hours = 168
		}
		if f, err := strconv.ParseFloat(m[1], 64); err == nil {
			return 0, bad(fmt.Sprintf("write %sh", trimFloat(f*hours)), "%q: the longest unit of a time is h", s)
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, bad("write a number with a unit, such as 400ms, 1.5s or 2m", "%q is not a time", s)
	}
	if d < 0 {
		return 0, bad("write "+strings.TrimLeft(s, "-"), "%q is negative", s)
	}
	return d, nil
}

var rateFactors = map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}

// parseRate reads NUMBER[k|M|G]/(s|min|h), above zero and finite.
func parseRate(s string) (Rate, *valueError) {
	num, per, found := strings.Cut(strings.ReplaceAll(s, " ", ""), "/")
	if !found {
		if isNumber(s) {
			return 0, bad(fmt.Sprintf("write %s/s", s), "%q has no unit", s)
		}
		return 0, bad("write records a second, such as 50000/s or 1M/s", "%q is not a rate", s)
	}
	perSecond := map[string]float64{"s": 1, "sec": 1, "min": 60, "h": 3600}[per]
	if perSecond == 0 {
		return 0, bad("write /s, /min or /h", "%q: unknown unit of time %q", s, per)
	}
	digits := strings.TrimRight(num, "kKMG")
	factor, ok := rateFactors[num[len(digits):]]
	f, err := strconv.ParseFloat(strings.ReplaceAll(digits, "_", ""), 64)
	if !ok || err != nil || !isNumber(digits) {
		return 0, bad("write records a second, such as 50000/s or 1M/s", "%q is not a rate", s)
	}
	f = f * factor / perSecond
	switch {
	case f < 0:
		return 0, bad("write a rate above 0, such as 50000/s", "%q is negative", s)
	case f == 0:
		return 0, bad("write a rate above 0, such as 50000/s", "a rate of 0 sends nothing")
	case math.IsInf(f, 0) || f > 1e12:
		return 0, bad("write at most 1000G/s", "%q is too high", s)
	}
	return Rate(f), nil
}

type byteUnit struct {
	name   string
	size   int64
	binary bool
}

// Largest first, so that String finds the largest that divides.
var byteUnits = []byteUnit{
	{"TiB", 1 << 40, true}, {"GiB", 1 << 30, true}, {"MiB", 1 << 20, true}, {"KiB", 1 << 10, true},
	{"TB", 1e12, false}, {"GB", 1e9, false}, {"MB", 1e6, false}, {"kB", 1e3, false}, {"KB", 1e3, false}, {"B", 1, true},
}

// parseBytes reads NUMBER and a unit from B to TiB; not negative.
func parseBytes(s string) (Bytes, *valueError) {
	if isNumber(s) {
		if s == "0" {
			return 0, nil
		}
		return 0, bad(fmt.Sprintf("write %sB, %sKiB or %sMiB", s, s, s), "%q has no unit", s)
	}
	m := unitRE.FindStringSubmatch(s)
	if m == nil {
		return 0, bad("write a number with a unit, such as 64B, 16KiB or 1MiB", "%q is not a size", s)
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(m[1], "_", ""), 64)
	if err != nil {
		return 0, bad("write a number with a unit, such as 64B, 16KiB or 1MiB", "%q is not a size", s)
	}
	for _, u := range byteUnits {
		if u.name != m[2] {
			continue
		}
		v := f * float64(u.size)
		switch {
		case v < 0:
			return 0, bad("write "+strings.TrimLeft(s, "-"), "%q is negative", s)
		case v > 1<<50:
			return 0, bad("write at most 1024TiB", "%q is too large", s)
		case v != math.Trunc(v):
			return 0, bad("write a whole number of bytes", "%q is not a whole number of bytes", s)
		}
		return Bytes(v), nil
	}
	return 0, bad("write B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (of 1000)", "%q: unknown unit %q", s, m[2])
}

// parseCount reads a whole number, with an optional k, M or G; not negative.
func parseCount(s string) (Count, *valueError) {
	digits := strings.TrimRight(s, "kKMG")
	factor, ok := rateFactors[s[len(digits):]]
	if !ok || !isNumber(digits) {
		return 0, bad("write a whole number, such as 100000 or 10M", "%q is not a whole number", s)
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(digits, "_", ""), 64)
	f *= factor
	switch {
	case err != nil || f != math.Trunc(f):
		return 0, bad("write a whole number, such as 100000 or 10M", "%q is not a whole number", s)
	case f < 0:
		return 0, bad("write "+strings.TrimLeft(s, "-"), "%q is negative", s)
	case f > 1e15:
		return 0, bad("write at most 1000000G", "%q is too large", s)
	}
	return Count(f), nil
}

// parseInt reads a whole number without a unit.
func parseInt(s string) (int64, *valueError) {
	v, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil || !isNumber(s) {
		return 0, bad("write a whole number without a unit, such as 3", "%q is not a whole number", s)
	}
	return v, nil
}

// parseFloat reads a finite number.
func parseFloat(s string) (float64, *valueError) {
	if !isNumber(s) {
		return 0, bad("write a finite number, such as 0.99", "%q is not a number", s)
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil {
		return 0, bad("write a finite number, such as 0.99", "%q is not a finite number", s)
	}
	return f, nil
}

func parseInterval(s string) (Interval, *valueError) {
	if s == "auto" {
		return Interval{Auto: true}, nil
	}
	d, err := parseDuration(s)
	return Interval{D: d}, err
}

func parseRounds(s string) (Rounds, *valueError) {
	switch s {
	case "auto":
		return Rounds{Auto: true}, nil
	case "all":
		return Rounds{All: true}, nil
	}
	n, err := parseInt(s)
	if err != nil {
		return Rounds{}, bad("write auto, all or a whole number from 1", "%q is not a number of rounds", s)
	}
	if n < 1 || n > 1<<20 {
		return Rounds{}, bad("write auto, all or a whole number from 1 to the number of key groups", "%d rounds cannot be", n)
	}
	return Rounds{N: int(n)}, nil
}

func parseTarget(s string) (Target, *valueError) {
	const fix = "write 'worker 2', 'task OPERATOR/0' or 'link 1-2'"
	m := targetRE.FindStringSubmatch(s)
	if m == nil {
		return Target{}, bad(fix, "%q is not a target", s)
	}
	t := Target{Kind: TargetKind(m[1])}
	num := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > 1<<20 {
			return -1
		}
		return n
	}
	switch t.Kind {
	case TargetWorker:
		t.Worker = num(m[2])
		if t.Worker < 1 {
			return t, bad(fix, "%q: workers are numbered from 1", s)
		}
	case TargetTask:
		op, n, ok := strings.Cut(m[2], "/")
		t.Operator, t.Task = op, num(n)
		if !ok || op == "" || t.Task < 0 {
			return t, bad(fix, "%q is not a target", s)
		}
	case TargetLink:
		a, b, ok := strings.Cut(m[2], "-")
		t.Worker, t.Peer = num(a), num(b)
		if !ok || t.Worker < 0 || t.Peer < 0 {
			return t, bad(fix, "%q is not a target", s)
		}
		if t.Worker == t.Peer {
			return t, bad(fix, "%q: a link has two different ends", s)
		}
	}
	return t, nil
}

func parseTrigger(s string) (Trigger, *valueError) {
	const fix = "write an event and its number, such as 'barrier-injected 3'"
	m := eventRE.FindStringSubmatch(s)
	if m == nil {
		return Trigger{}, bad(fix, "%q is not an event", s)
	}
	t := Trigger{Event: m[1], N: 1}
	if m[2] != "" {
		n, err := strconv.Atoi(m[2])
		if err != nil || n < 1 {
			return t, bad(fix, "%q: the number of an event counts from 1", s)
		}
		t.N = n
	}
	return t, nil
}
