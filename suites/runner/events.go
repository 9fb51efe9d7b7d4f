package runner

import (
	"errors"
	"sync"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/reports/runlog"
)

// events writes a trial's events as they happen, on a goroutine of its own: the event loop does not wait for a disk.
type events struct {
	writer *runlog.Writer
	start  time.Time // of the run
	trial  int
	cell   string
	number int

	lines chan runlog.Event
	gone  chan struct{}

	mu       sync.Mutex
	originNS int64     // of the trial's axis on the harness's clock
	origin   time.Time // the same moment
	phase    string
	err      error
	closed   bool
}

// eventQueue is how many events may wait for the disk. More than that are dropped and counted, which would be an error.
const eventQueue = 4096

func newEvents(w *runlog.Writer, start time.Time, trial int, cell string, number int) *events {
	e := &events{writer: w, start: start, trial: trial, cell: cell, number: number, origin: time.Now(),
		lines: make(chan runlog.Event, eventQueue), gone: make(chan struct{})}
	go func() {
		defer close(e.gone)
		for ev := range e.lines {
			if err := w.Event(ev); err != nil {
				e.fail(err)
			}
		}
	}()
	return e
}

func (e *events) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
}

// begin sets the origin of the trial's axis.
func (e *events) begin(originNS int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.originNS, e.origin = originNS, time.Now()
}

// offset is where the trial's axis begins in the run.
func (e *events) offset() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(0, e.origin.Sub(e.start))
}

// enter sets the phase that events belong to.
func (e *events) enter(phase string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.phase = phase
}

func (e *events) current() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.phase
}

// emit adds an event at a time of the trial's axis.
func (e *events) emit(ev runlog.Event, atNS int64) {
	ev.Wall, ev.NS, ev.Trial, ev.Cell, ev.Repetition = time.Now().UTC(), atNS, e.trial, e.cell, e.number
	e.mu.Lock()
	defer e.mu.Unlock()
	if ev.Phase == "" {
		ev.Phase = e.phase
	}
	if e.closed {
		return
	}
	select {
	case e.lines <- ev:
	default:
		if e.err == nil {
			e.err = errors.New("events came faster than the disk took them; some are missing in " + runlog.EventsFile)
		}
	}
}

// trace adds what the coordinator did.
func (e *events) trace(g *core.Graph, t coord.Trace) {
	kind := t.Kind
	switch t.Kind {
	case coord.TraceDetected:
		kind = runlog.FaultDetected
	case coord.TraceMigration:
		kind = runlog.MigrationStarted
	case coord.TraceRound:
		kind = runlog.MigrationRound
	case coord.TraceMigrated:
		kind = runlog.MigrationEnded
	}
	d := map[string]any{}
	put := func(name string, there bool, v any) {
		if there {
			d[name] = v
		}
	}
	put("worker", t.Node > 0, t.Node)
	put("task", t.Kind == coord.TraceSnapshot || t.Kind == coord.TraceTaskFailed || t.Kind == coord.TraceUnprotected, taskName(g, t.Task))
	put("id", t.ID > 0, t.ID)
	put("bytes", t.Bytes > 0, t.Bytes)
	put("count", t.Count > 0, t.Count)
	put("why", t.Detail != "", t.Detail)
	roundDetail(g, t, d)
	e.mu.Lock()
	origin := e.originNS
	e.mu.Unlock()
	at := int64(0)
	if origin > 0 {
		at = t.AtNS - origin
	}
	e.emit(runlog.Event{Kind: kind, Detail: d}, at)
}

func taskName(g *core.Graph, id int) string {
	if id < 0 || id >= len(g.Tasks) {
		return ""
	}
	return g.TaskName(id)
}

// flush ends the writing and returns what went wrong.
func (e *events) flush() error {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.lines)
	}
	e.mu.Unlock()
	<-e.gone
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
