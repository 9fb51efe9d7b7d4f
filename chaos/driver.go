package chaos

import (
	"errors"
	"sync"
	"time"
)

// Driver runs a machine and an injector in real time on one goroutine of its own.
type Driver struct {
	machine  *Machine
	injector *Injector
	clock    func() time.Duration
	done     func([]Record)

	wake chan struct{} // capacity 1
	gone chan struct{}

	mu     sync.Mutex
	events []timedEvent
	stop   bool
	errs   []error
}

type timedEvent struct {
	at time.Duration
	Event
}

// Drive starts to run m, which it owns from now on, at the times of clock. Each batch of final records is given to done
// on the driver's goroutine, after it was journalled; done may be nil. Stop it.
func Drive(m *Machine, in *Injector, clock func() time.Duration, done func([]Record)) *Driver {
	d := &Driver{machine: m, injector: in, clock: clock, done: done, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	go d.run()
	return d
}

// Event reports that e happens now. It never blocks, so that event loops can call it, and is safe for concurrent use.
func (d *Driver) Event(e Event) {
	d.mu.Lock()
	d.events = append(d.events, timedEvent{d.clock(), e})
	d.mu.Unlock()
	d.nudge()
}

func (d *Driver) nudge() {
	select {
	case d.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// Stop heals all faults, also on the way out of an interrupted run, waits until the driver is gone and returns what
// failed during the whole run. It may be called again.
func (d *Driver) Stop() error {
	d.mu.Lock()
	d.stop = true
	d.mu.Unlock()
	d.nudge()
	<-d.gone
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.errs...)
}

func (d *Driver) run() {
	defer close(d.gone)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var actions []Action
	for {
		d.mu.Lock()
		events, stop := d.events, d.stop
		d.events = nil
		d.mu.Unlock()
		if stop { // what the last events ask for is not begun any more
			d.note(d.injector.Do(d.machine.Stop(d.clock(), nil)...))
			d.note(d.injector.HealAll())
			return
		}
		actions = actions[:0]
		for _, e := range events {
			actions = d.machine.Step(e.at, e.Event, actions)
		}
		d.note(d.injector.Do(d.machine.Step(d.clock(), Event{}, actions)...))
		var due <-chan time.Time
		if next, ok := d.machine.Next(); ok {
			timer.Reset(next - d.clock())
			due = timer.C
		}
		select {
		case <-due:
		case <-d.wake:
		}
	}
}

func (d *Driver) note(records []Record, err error) {
	if err != nil {
		d.mu.Lock()
		d.errs = append(d.errs, err)
		d.mu.Unlock()
	}
	if d.done != nil && len(records) > 0 {
		d.done(records)
	}
}
