package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Expected errors of injections.
var (
	// ErrGone says that a process has ended, or that its number now belongs to another.
	ErrGone = errors.New("the process is gone")
	// ErrForeign says that a process is not a child of this one.
	ErrForeign = errors.New("not a process of ours")
	// ErrNoEffect says that a fault was injected or healed but its effect was not seen in time.
	ErrNoEffect = errors.New("no effect was seen")
	// ErrBusy says that the process or link is under another lasting fault.
	ErrBusy = errors.New("it is under another fault")
	// ErrNotActive says that there is nothing to heal.
	ErrNotActive = errors.New("nothing to heal: it was not injected")
)

// errInBatch says that another action on the same target has to be finished first.
var errInBatch = errors.New("the target is in the same batch")

const (
	// processLimit and linkLimit are how long an effect is waited for. A direction of a link that is blocked by its
	// receiver sees a new state only when that goes on, so it is not waited for long.
	processLimit = 2 * time.Second
	linkLimit    = 50 * time.Millisecond
)

// Targets tells an injector what it may hit. Functions are called from Do and must be safe for that.
type Targets struct {
	// Process returns the process of a node (see Identify).
	Process func(node int) (Process, error)
	// Holder returns the node that holds a task; nil: tasks cannot be hit.
	Holder func(task string) (node int, err error)
	// Proxy has the links; nil: links cannot be hit.
	Proxy *Proxy
}

// Injector carries actions out. It is safe for concurrent use; actions are done one batch after the other.
type Injector struct {
	targets Targets
	journal *Journal
	clock   func() time.Duration

	mu      sync.Mutex
	active  []*effect
	batch   []*effect // prepared, to be done together
	stopped bool
}

// effect is an action on its way, and then a fault that lasts.
type effect struct {
	action Action
	record Record
	proc   *handle
	slow   *throttle
	cpu    time.Duration
	link   Link
	before LinkStats
	reset  int
	err    error
}

// NewInjector returns an injector that journals with the times of clock, which counts from the run's start.
func NewInjector(t Targets, j *Journal, clock func() time.Duration) *Injector {
	return &Injector{targets: t, journal: j, clock: clock}
}

// Do carries out actions that are due together, in their order. Neighbours of one operation on different targets are all
// journalled, then all done, then confirmed and journalled again, so that none waits for the proof of another. It returns the final record of each. The
// error joins what failed; an injection that failed is undone. A refused action is a record, not an error.
func (in *Injector) Do(actions ...Action) ([]Record, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.do(actions)
}

// HealAll heals every fault that lasts, the latest first, and lets nothing be injected afterwards. It needs no context,
// so that it works while a run is being interrupted, and may be called again.
func (in *Injector) HealAll() ([]Record, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stopped = true
	var actions []Action
	for _, e := range slices.Backward(in.active) {
		a := e.action
		a.Op, a.Due, a.Reason = Heal, in.clock(), "all is healed"
		actions = append(actions, a)
	}
	return in.do(actions)
}

// Active returns how many faults last.
func (in *Injector) Active() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.active)
}

func (in *Injector) do(actions []Action) ([]Record, error) {
	var records []Record
	var errs []error
	flush := func() {
		r, err := in.together(in.batch)
		records, errs, in.batch = append(records, r...), append(errs, err), nil
	}
	for _, a := range actions {
		if len(in.batch) > 0 && in.batch[0].action.Op != a.Op {
			flush()
		}
		e := in.prepare(a)
		if errors.Is(e.err, errInBatch) {
			flush()
			e = in.prepare(a)
		}
		in.batch = append(in.batch, e)
	}
	flush()
	return records, errors.Join(errs...)
}

// together does what was prepared and confirms it.
func (in *Injector) together(effects []*effect) (records []Record, err error) {
	for _, e := range effects {
		if e.err == nil && e.action.Op != Refuse {
			e.record.AtNS = int64(in.clock())
			e.err = in.act(e)
		}
	}
	for _, e := range effects {
		in.finish(e)
		r, jerr := in.journal.Append(e.record)
		records = append(records, r)
		if e.err != nil {
			err = errors.Join(err, fmt.Errorf("%s %s: %w", e.action.Op, e.action.Fault, e.err))
		}
		err = errors.Join(err, jerr)
	}
	return records, err
}

// prepare finds out whom an action hits and journals its begin.
func (in *Injector) prepare(a Action) *effect {
	e := &effect{action: a}
	if a.Op == Heal {
		i := slices.IndexFunc(in.active, func(o *effect) bool {
			return o.action.Rule == a.Rule && o.action.Occurrence == a.Occurrence
		})
		if i >= 0 {
			e = in.active[i]
			e.action, e.err = a, nil
		} else {
			e.err = ErrNotActive
		}
	} else if a.Op == Inject {
		e.err = in.resolve(e)
	}
	e.record = Record{Op: a.Op, Stage: Begin, Rule: a.Rule, Occurrence: a.Occurrence, Kind: a.Fault.Kind, Target: a.Fault.Target.String(),
		DueNS: int64(a.Due), AtNS: int64(in.clock()), Reason: a.Reason}
	if e.proc != nil {
		e.record.Process = &Process{e.proc.PID, e.proc.StartTicks}
	}
	if e.err == nil && a.Op != Refuse {
		_, err := in.journal.Append(e.record)
		if a.Op == Inject {
			e.err = err // what is not on record is not done; a healing is done in any case
		}
	}
	return e
}

func (in *Injector) resolve(e *effect) error {
	t := e.action.Fault.Target
	if in.stopped {
		return ErrClosed
	}
	if t.Link != nil {
		e.link = Between(t.Link.A, t.Link.B)
		if in.targets.Proxy == nil {
			return fmt.Errorf("link %s: %w", e.link, ErrNoLink)
		}
		for _, o := range in.batch {
			if o.action.Fault.Target.Link != nil && o.link == e.link {
				return errInBatch
			}
		}
		for _, o := range in.active {
			if o.proc == nil && o.link == e.link {
				return fmt.Errorf("%s: %w", o.action.Fault, ErrBusy)
			}
		}
		return nil
	}
	node := t.Node
	if t.Task != "" {
		if in.targets.Holder == nil {
			return fmt.Errorf("nobody knows who holds task %s", t.Task)
		}
		var err error
		if node, err = in.targets.Holder(t.Task); err != nil {
			return fmt.Errorf("find the holder of task %s: %w", t.Task, err)
		}
	}
	p, err := in.targets.Process(node)
	if err != nil {
		return fmt.Errorf("find the process of node %d: %w", node, err)
	}
	for _, o := range in.batch {
		if o.proc != nil && o.proc.Process == p {
			return errInBatch
		}
	}
	for _, o := range in.active {
		// A worker and a task that it holds are two targets of the machine's, but one process.
		if o.proc != nil && o.proc.Process == p && e.action.Fault.Kind != Kill {
			return fmt.Errorf("%s: %w", o.action.Fault, ErrBusy)
		}
	}
	e.proc, err = open(p)
	return err
}

// act does what takes effect at once.
func (in *Injector) act(e *effect) error {
	f := e.action.Fault
	inject := e.action.Op == Inject
	switch f.Kind {
	case Kill:
		return e.proc.kill()
	case Freeze, Slow:
		if inject {
			e.cpu = e.proc.cpu()
			return e.proc.stop()
		}
		if s := e.slow; s != nil {
			return s.end()
		}
		return e.proc.resume()
	}
	var s LinkState
	if inject {
		s = LinkState{Cut: f.Kind == Cut, Stall: f.Kind == Stall, Latency: f.Latency, BytesPerSecond: f.BytesPerSecond}
	}
	stats, err := in.targets.Proxy.Stats(e.link)
	if err != nil {
		return err
	}
	if e.reset, err = in.targets.Proxy.Set(e.link, s); err != nil {
		return err
	}
	if !inject {
		e.before = LinkStats{HeldBytes: stats.HeldBytes, PassedBytes: stats.PassedBytes - e.before.PassedBytes}
	}
	return nil
}

// finish confirms an action, makes its final record and keeps or drops the fault.
func (in *Injector) finish(e *effect) {
	e.record.Stage = End
	if e.action.Op == Refuse {
		return
	}
	var ev Evidence
	switch {
	case e.action.Op == Heal && e.proc != nil:
		ev, e.err = e.confirmResumed(e.err)
	case e.err != nil:
	case e.action.Fault.Kind == Kill:
		ev, e.err = e.confirmKilled()
	case e.proc != nil:
		ev, e.err = e.confirmStopped()
	default:
		ev, e.err = in.confirmLink(e)
	}
	e.record.DoneNS = int64(in.clock())
	if e.err != nil {
		e.record.Error = e.err.Error()
	} else {
		e.record.Evidence = &ev
	}
	in.keep(e)
}

// keep makes an injection a fault that lasts, undoes it if it failed, and forgets what is healed. What could not be
// undone or healed stays, for HealAll to try again.
func (in *Injector) keep(e *effect) {
	if e.action.Op == Inject {
		if e.err != nil {
			undo := in.undo(e)
			e.record.Undone = undo == nil && e.action.Fault.Kind != Kill
			e.err = errors.Join(e.err, undo)
		}
		if e.action.Fault.Kind == Kill || e.record.Undone {
			e.release()
		} else {
			in.active = append(in.active, e)
		}
		return
	}
	if e.err == nil {
		in.active = slices.DeleteFunc(in.active, func(o *effect) bool { return o == e })
		e.release()
	}
}

func (in *Injector) undo(e *effect) error {
	switch {
	case e.action.Fault.Kind == Kill:
		return nil
	case e.proc != nil:
		if err := e.proc.resume(); !errors.Is(err, ErrGone) {
			return err
		}
		return nil
	case e.action.Fault.Target.Link == nil || in.targets.Proxy == nil || errors.Is(e.err, ErrBusy) || errors.Is(e.err, ErrClosed) || errors.Is(e.err, ErrNoLink):
		return nil // nothing was done
	}
	_, err := in.targets.Proxy.Set(e.link, LinkState{})
	return err
}

func (e *effect) release() {
	if e.proc != nil {
		_ = e.proc.close() // a pidfd: closing it does nothing else
		e.proc = nil
	}
}

func (e *effect) confirmKilled() (Evidence, error) {
	if !e.proc.exited(processLimit) {
		return Evidence{}, fmt.Errorf("process %d runs %v after SIGKILL: %w", e.proc.PID, processLimit, ErrNoEffect)
	}
	return Evidence{Proof: "the process has exited"}, nil
}

func (e *effect) confirmStopped() (Evidence, error) {
	states, n, ok := e.proc.stopped(processLimit)
	if !ok {
		return Evidence{}, fmt.Errorf("process %d has threads in states %q after SIGSTOP: %w", e.proc.PID, states, ErrNoEffect)
	}
	if f := e.action.Fault; f.Kind == Slow {
		e.slow = throttled(e.proc, f.Factor)
		return Evidence{Proof: "all threads were stopped, then resumed and stopped in turn", State: states, Threads: n}, nil
	}
	return Evidence{Proof: "all threads are stopped", State: states, Threads: n}, nil
}

// confirmResumed takes the error of the signal: a process that has ended is healed.
func (e *effect) confirmResumed(acted error) (Evidence, error) {
	var ev Evidence
	if e.slow != nil {
		ev = e.slow.evidence()
	}
	if cpu := e.proc.cpu(); cpu > e.cpu {
		ev.CPUNS = int64(cpu - e.cpu)
	}
	gone := errors.Is(acted, ErrGone) || e.proc.exited(0)
	if acted != nil && !gone {
		return ev, acted
	}
	var ok bool
	if !gone {
		ev.State, ev.Threads, ok = e.proc.running(processLimit)
	}
	switch {
	case ok:
		ev.Proof = "no thread is stopped"
	case gone || e.proc.exited(0): // it may have ended just now
		ev.Proof, ev.State, ev.Threads = "the process has ended before", "", 0
	default:
		return ev, fmt.Errorf("process %d has threads in states %q after SIGCONT: %w", e.proc.PID, ev.State, ErrNoEffect)
	}
	return ev, nil
}

func (in *Injector) confirmLink(e *effect) (Evidence, error) {
	p := in.targets.Proxy
	if e.action.Op == Inject && e.action.Fault.Kind == Cut {
		ctx, cancel := context.WithTimeout(context.Background(), processLimit)
		defer cancel()
		refused, err := p.refuses(ctx, e.link)
		if err != nil {
			return Evidence{}, fmt.Errorf("%w: %w", ErrNoEffect, err)
		}
		return Evidence{Proof: "open connections were reset, an attempt to connect was refused each way", Reset: e.reset, Refused: refused}, nil
	}
	s, err := p.settled(e.link, linkLimit)
	if err != nil {
		return Evidence{}, err
	}
	ev := Evidence{Proof: "the directions of open connections work under the new state", Directions: s.Directions, OfDirections: s.OfDirections}
	if s.OfDirections == 0 {
		ev.Proof = "no connection was open; new ones come under the new state"
	} else if s.Directions == 0 {
		return ev, fmt.Errorf("none of %d directions of link %s took the new state on: %w", s.OfDirections, e.link, ErrNoEffect)
	}
	if e.action.Op == Inject {
		e.before = s // only now have directions without limits counted what went before
	} else {
		ev.HeldBytes, ev.PassedBytes = e.before.HeldBytes, e.before.PassedBytes
	}
	return ev, nil
}
