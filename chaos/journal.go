package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// journalFormat and journalVersion stand in the first line of every journal.
const (
	journalFormat  = "weir-chaos"
	journalVersion = 1
)

// ErrJournal says that a file is not a journal, or a damaged one.
var ErrJournal = errors.New("not a valid chaos journal")

// Header is the first line of a journal.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Run names the run, Started is the wall clock's time at its time 0.
	Run     string    `json:"run"`
	Started time.Time `json:"started"`
}

// Stage says whether a record stands before or after what it is about.
type Stage string

// The stages of a record. A begin without its end means that the writer died in between.
const (
	Begin Stage = "begin"
	End   Stage = "end"
)

// Record is one line of a journal. All times are nanoseconds since the run's start.
type Record struct {
	Seq        int    `json:"seq"` // 1, 2, 3 …
	Op         Op     `json:"op"`
	Stage      Stage  `json:"stage"`
	Rule       int    `json:"rule"`
	Occurrence int    `json:"occurrence"`
	Kind       Kind   `json:"kind"`
	Target     string `json:"target"`
	// Process is whom it hits, nil for links and where there is none.
	Process *Process `json:"process,omitempty"`
	// DueNS is when it was to happen, AtNS when it began, DoneNS when it was confirmed (in End only).
	DueNS  int64  `json:"due_ns"`
	AtNS   int64  `json:"at_ns"`
	DoneNS int64  `json:"done_ns,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Evidence proves the effect. An End without it has an Error.
	Evidence *Evidence `json:"evidence,omitempty"`
	Error    string    `json:"error,omitempty"`
	// Undone says, at the end of an injection with an error, that nothing of it is left.
	Undone bool `json:"undone,omitempty"`
}

// Process identifies a process for as long as the machine is up: numbers are reused, start times with them are not.
type Process struct {
	PID int `json:"pid"`
	// StartTicks is its start in clock ticks since boot, field 22 of /proc/PID/stat.
	StartTicks uint64 `json:"start_ticks"`
}

// Evidence is what was observed. What does not apply is absent.
type Evidence struct {
	// Proof says in words what was seen.
	Proof string `json:"proof"`
	// State are the states of the process's threads, each once, as in /proc/PID/stat.
	State   string `json:"state,omitempty"`
	Threads int    `json:"threads,omitempty"`
	// Ran is the share of the time that a slow process ran, Pauses how often and LongestPauseNS how long at most it
	// stood; CPUNS is the processor time that it used during the fault.
	Ran            float64 `json:"ran,omitempty"`
	Pauses         int     `json:"pauses,omitempty"`
	LongestPauseNS int64   `json:"longest_pause_ns,omitempty"`
	CPUNS          int64   `json:"cpu_ns,omitempty"`
	// Reset counts connections that were reset, Refused attempts of the proof that were refused, Directions those that
	// took a limit on, of OfDirections; HeldBytes were waiting and PassedBytes had gone by when it was healed.
	Reset        int   `json:"reset,omitempty"`
	Refused      int   `json:"refused,omitempty"`
	Directions   int   `json:"directions,omitempty"`
	OfDirections int   `json:"of_directions,omitempty"`
	HeldBytes    int64 `json:"held_bytes,omitempty"`
	PassedBytes  int64 `json:"passed_bytes,omitempty"`
}

// Journal writes records, each with one write that is complete before Append returns: it survives the death of this
// process, though not of the machine. It is safe for concurrent use.
type Journal struct {
	mu  sync.Mutex
	w   io.Writer
	seq int
	err error
}

// NewJournal writes the header to w, which stays the caller's. h needs no Format and Version.
func NewJournal(w io.Writer, h Header) (*Journal, error) {
	h.Format, h.Version = journalFormat, journalVersion
	j := &Journal{w: w}
	if err := j.line(h); err != nil {
		return nil, fmt.Errorf("write the head of the chaos journal: %w", err)
	}
	return j, nil
}

func (j *Journal) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = j.w.Write(append(b, '\n'))
	return err
}

// Append writes r with the next number, which it returns in it. After an error all appends fail with it: a journal has
// no holes.
func (j *Journal) Append(r Record) (Record, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return r, j.err
	}
	r.Seq = j.seq + 1
	if err := j.line(r); err != nil {
		j.err = fmt.Errorf("write record %d of the chaos journal: %w", r.Seq, err)
		return r, j.err
	}
	j.seq++
	return r, nil
}

// maxLineBytes bounds a line that ReadJournal accepts.
const maxLineBytes = 64 << 10

// History is what a journal tells.
type History struct {
	Header  Header
	Records []Record
	// Torn says that the last line was cut off, as by the death of the writer; it is left out.
	Torn bool
}

// ReadJournal reads a journal. Errors wrap ErrJournal, or are those of r, and name the line.
func ReadJournal(r io.Reader) (*History, error) {
	in := bufio.NewReaderSize(r, maxLineBytes)
	h := &History{}
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("line %d is longer than %d bytes: %w", n, maxLineBytes, ErrJournal)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read line %d: %w", n, err)
		case err != nil: // the end, with or without a torn line
			h.Torn = len(line) > 0
			if n == 1 {
				return nil, fmt.Errorf("line 1 is not complete: %w", ErrJournal)
			}
			return h, nil
		}
		if err := h.add(n, line); err != nil {
			return nil, fmt.Errorf("line %d: %w: %w", n, ErrJournal, err)
		}
	}
}

func (h *History) add(n int, line []byte) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields() // a field that this version does not know could change what a record means
	var into any = &h.Header
	var r Record
	if n > 1 {
		into = &r
	}
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	if n == 1 {
		if h.Header.Format != journalFormat || h.Header.Version != journalVersion {
			return fmt.Errorf("format %q version %d; this reads %s version %d", h.Header.Format, h.Header.Version, journalFormat, journalVersion)
		}
		return nil
	}
	return h.record(r)
}

func (h *History) record(r Record) error {
	if want := len(h.Records) + 1; r.Seq != want {
		return fmt.Errorf("record %d where %d should be", r.Seq, want)
	}
	if r.Op != Inject && r.Op != Heal && r.Op != Refuse {
		return fmt.Errorf("unknown op %q", r.Op)
	}
	if r.Stage != Begin && r.Stage != End {
		return fmt.Errorf("unknown stage %q", r.Stage)
	}
	if r.Stage == End && r.Op != Refuse && r.Evidence == nil && r.Error == "" {
		return errors.New("the end of an action has neither evidence nor error")
	}
	h.Records = append(h.Records, r)
	return nil
}

// Unhealed returns the begin of every lasting injection that was not healed without an error, in their order: what a
// writer that died has left behind. Whoever cleans up compares Process before signalling.
func (h *History) Unhealed() []Record {
	type fault struct{ rule, occurrence int }
	open := map[fault]bool{}
	for _, r := range h.Records {
		f := fault{r.Rule, r.Occurrence}
		info, _ := r.Kind.info()
		switch {
		case r.Op == Inject && r.Stage == Begin:
			open[f] = info.Heals
		case r.Op == Heal && r.Stage == End && r.Error == "", r.Op == Inject && r.Stage == End && r.Undone:
			open[f] = false
		}
	}
	var left []Record
	for _, r := range h.Records {
		if f := (fault{r.Rule, r.Occurrence}); r.Op == Inject && r.Stage == Begin && open[f] {
			left = append(left, r)
		}
	}
	return left
}
