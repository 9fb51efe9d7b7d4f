package runlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Kinds of event that the reports understand. Other kinds are allowed and are listed as they are.
const (
	RunStarted       = "run_started"
	RunEnded         = "run_ended"
	TrialStarted     = "trial_started"
	TrialEnded       = "trial_ended"
	PhaseStarted     = "phase_started" // Phase names it: warm-up, steady, event, drain …
	PhaseEnded       = "phase_ended"
	FaultInjected    = "fault_injected"
	FaultHealed      = "fault_healed"
	FaultDetected    = "fault_detected"
	MigrationStarted = "migration_started"
	MigrationRound   = "migration_round"
	MigrationEnded   = "migration_ended"
	Settled          = "settled"
	Warning          = "warning"
	Interrupted      = "interrupted"
)

// Event is one line of events.jsonl.
type Event struct {
	// Wall is the wall-clock time, for people and for other logs.
	Wall time.Time `json:"wall"`
	// NS is nanoseconds on the monotonic clock since the trial began (since the run began when Trial is 0).
	NS int64 `json:"ns"`
	// Trial and Repetition count from 1; 0, left out of the file, is an event of the whole run.
	Trial      int    `json:"trial,omitempty"`
	Cell       string `json:"cell,omitempty"`
	Repetition int    `json:"repetition,omitempty"`
	Kind       string `json:"kind"`
	Phase      string `json:"phase,omitempty"`
	// Detail holds whatever else is known; it must be encodable as JSON.
	Detail map[string]any `json:"detail,omitempty"`
}

// ErrTruncated marks a last line that was cut off by a crash. The lines before it are good.
var ErrTruncated = errors.New("last line is cut off")

// LineError is an error in one line of a file.
type LineError struct {
	File string
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap gives the cause.
func (e *LineError) Unwrap() error { return e.Err }

// ReadEvents reads events.jsonl. It returns all good events together with the error: a line that is cut off at the end
// is a LineError that wraps ErrTruncated; any other bad line stops the reading.
func ReadEvents(r io.Reader, file string) ([]Event, error) {
	var events []Event
	err := eachLine(r, file, func(line []byte) error {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		events = append(events, e)
		return nil
	})
	return events, err
}

// eachLine calls f for every line without its line break. A last line that has no line break was cut off: it is
// offered to nobody, since half a number is also a number.
func eachLine(r io.Reader, file string, f func(line []byte) error) error {
	br := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		line, err := br.ReadBytes('\n')
		if err == io.EOF {
			if len(line) == 0 {
				return nil
			}
			return &LineError{File: file, Line: n, Err: ErrTruncated}
		}
		if err != nil {
			return &LineError{File: file, Line: n, Err: err}
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			continue
		}
		if err := f(line); err != nil {
			return &LineError{File: file, Line: n, Err: err}
		}
	}
}
