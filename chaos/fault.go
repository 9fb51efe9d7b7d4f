package chaos

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrUnsupported says that this operating system cannot do faults for real.
var ErrUnsupported = errors.New("faults on processes and links need Linux")

// Kind names a kind of fault.
type Kind string

// The kinds of faults; Kinds says what they do.
const (
	Kill     Kind = "kill"
	Freeze   Kind = "freeze"
	Slow     Kind = "slow"
	Cut      Kind = "cut"
	Stall    Kind = "stall"
	SlowLink Kind = "slow-link"
)

// KindInfo describes a kind of fault.
type KindInfo struct {
	Kind Kind
	// Link says that it hits a link, else a process.
	Link bool
	// Heals says that it lasts and is undone; a killed process stays dead.
	Heals bool
	// Doc says what it does and Evidence what proves it.
	Doc, Evidence string
}

// Kinds lists all kinds of faults.
func Kinds() []KindInfo {
	return []KindInfo{
		{Kill, false, false, "SIGKILL: the process ends at once, its connections are reset by the kernel", "its pidfd reports the exit"},
		{Freeze, false, true, "SIGSTOP, healed by SIGCONT: the process does nothing and notices nothing", "all its threads are in state T; after healing none is"},
		{Slow, false, true, "the process runs one part in Factor of the time, in slices (see SlowSlices)", "share of the time it ran, number and longest of its pauses"},
		{Cut, true, true, "connections between two nodes are reset and new ones refused", "connections reset, and a connection attempt that was refused"},
		{Stall, true, true, "bytes between two nodes are held, connections stay; healing lets them go on", "directions that stopped, bytes held when it was healed"},
		{SlowLink, true, true, "bytes between two nodes come later (Latency, one way) or slower (BytesPerSecond, each way)", "directions that took the limits on, bytes that passed under them"},
	}
}

func (k Kind) info() (KindInfo, bool) {
	for _, i := range Kinds() {
		if i.Kind == k {
			return i, true
		}
	}
	return KindInfo{}, false
}

// Link is the pair of nodes whose connections, whoever dialled them, a fault hits. Use Between to make one.
type Link struct{ A, B int }

// Between returns the link of two nodes; their order does not matter.
func Between(a, b int) Link { return Link{min(a, b), max(a, b)} }

// String gives the form "1-2".
func (l Link) String() string { return strconv.Itoa(l.A) + "-" + strconv.Itoa(l.B) }

// Target is whom a fault hits: a link if Link is set, else the node that holds Task if that is set, else Node.
type Target struct {
	Link *Link
	Task string
	Node int
}

// OnNode targets the process of a node.
func OnNode(node int) Target { return Target{Node: node} }

// OnTask targets the process that holds a task when the fault is injected.
func OnTask(task string) Target { return Target{Task: task} }

// OnLink targets the link between two nodes.
func OnLink(a, b int) Target {
	l := Between(a, b)
	return Target{Link: &l}
}

// String gives the form that suites use: "worker 2", "task count/1" or "link 1-2".
func (t Target) String() string {
	switch {
	case t.Link != nil:
		return "link " + Between(t.Link.A, t.Link.B).String()
	case t.Task != "":
		return "task " + t.Task
	}
	return "worker " + strconv.Itoa(t.Node)
}

// Fault is what goes wrong and where.
type Fault struct {
	Kind   Kind
	Target Target
	// Factor is how many times slower a Slow process gets, 1 < Factor <= MaxFactor.
	Factor float64
	// Latency is added to each direction of a SlowLink, BytesPerSecond limits each direction; 0 leaves it as it is.
	Latency        time.Duration
	BytesPerSecond int64
}

// String names kind and target.
func (f Fault) String() string { return string(f.Kind) + " of " + f.Target.String() }

// MaxFactor is the largest slow-down. Beyond it the pauses would be a freeze that leases find.
const MaxFactor = 1000

// check returns all that is wrong with f, each with the field's name and what would be right.
func (f Fault) check() []error {
	info, ok := f.Kind.info()
	if !ok {
		names := ""
		for _, k := range Kinds() {
			names += " " + string(k.Kind)
		}
		return []error{fmt.Errorf("kind: unknown fault %q; write one of%s", f.Kind, names)}
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if info.Link != (f.Target.Link != nil) {
		want := "a worker or a task"
		if info.Link {
			want = "a link"
		}
		bad("target: %s cannot hit %s; name %s", f.Kind, f.Target, want)
	}
	if l := f.Target.Link; l != nil && l.A == l.B {
		bad("target: link %s joins a node to itself; name two nodes", l)
	}
	if f.Kind == Slow && !(f.Factor > 1 && f.Factor <= MaxFactor) {
		bad("factor: %v does not slow a process; write more than 1 and at most %d", f.Factor, MaxFactor)
	}
	if f.Kind != Slow && f.Factor != 0 {
		bad("factor: %s has none; leave it out", f.Kind)
	}
	if f.Latency < 0 || f.BytesPerSecond < 0 {
		bad("latency, bytesPerSecond: %v and %d; neither can be negative", f.Latency, f.BytesPerSecond)
	}
	if limits := f.Latency != 0 || f.BytesPerSecond != 0; limits != (f.Kind == SlowLink) {
		if limits {
			bad("latency, bytesPerSecond: %s has none; leave them out", f.Kind)
		} else {
			bad("latency, bytesPerSecond: both are 0, which slows nothing; write one of them")
		}
	}
	return errs
}

// slot names what can be under one lasting fault at a time.
func (f Fault) slot() string { return f.Target.String() }
