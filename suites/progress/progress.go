package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Mode is a way of showing progress.
type Mode string

// The modes. Auto is bar on a terminal that can draw one, else plain.
const (
	Auto  Mode = "auto"
	Bar   Mode = "bar"
	Plain Mode = "plain"
	JSON  Mode = "json"
	None  Mode = "none"
)

// Modes lists the modes in the order in which they are documented.
func Modes() []string {
	return []string{string(Auto), string(Bar), string(Plain), string(JSON), string(None)}
}

// Choose turns auto into a mode that fits: a bar only on a terminal that is not
// dumb and not a CI job's log. env looks up an environment variable.
func Choose(m Mode, terminal bool, env func(string) string) Mode {
	if m != Auto {
		return m
	}
	if terminal && env("CI") == "" && env("TERM") != "dumb" {
		return Bar
	}
	return Plain
}

// Event is what is known about the run at one moment.
type Event struct {
	Suite      string        `json:"suite"`
	Trial      int           `json:"trial"`  // from 1
	Trials     int           `json:"trials"` // in all
	Cell       string        `json:"cell"`
	Repetition int           `json:"repetition"` // from 1
	Phase      string        `json:"phase"`
	P99        time.Duration `json:"-"` // delay in the newest interval; 0 while nothing was answered
}

// Progress shows events. It is safe for concurrent use; a nil *Progress shows
// nothing. The caller closes it.
type Progress struct {
	mode Mode
	now  func() time.Time

	mu    sync.Mutex
	w     io.Writer
	last  Event
	start time.Time
	bars  *mpb.Progress
	bar   *mpb.Bar
	shut  bool
}

// New makes a Progress that writes to w. now is the clock; the mode must not be
// Auto any more.
func New(mode Mode, w io.Writer, now func() time.Time) *Progress {
	return &Progress{mode: mode, w: w, now: now, start: now()}
}

// Update shows an event. Plain lines appear only when trial or phase change.
func (p *Progress) Update(e Event) {
	if p == nil {
		return
	}
	p.mu.Lock()
	changed := e.Suite != p.last.Suite || e.Trial != p.last.Trial || e.Phase != p.last.Phase
	p.last = e
	switch {
	case p.shut:
	case p.mode == Plain && changed:
		fmt.Fprintf(p.w, "%7.1fs %s\n", p.now().Sub(p.start).Seconds(), e.text())
	case p.mode == JSON:
		p.json(e)
	case p.mode == Bar:
		if p.bars == nil {
			p.open()
		}
		bar := p.bar
		p.mu.Unlock()
		// Outside the lock: the bar asks for the text while it is drawn.
		bar.SetTotal(int64(e.Trials), false)
		bar.SetCurrent(int64(max(e.Trial-1, 0)))
		return
	}
	p.mu.Unlock()
}

// Note shows a line of text, above the bar if there is one. Mode none shows
// warnings too, since they are not progress.
func (p *Progress) Note(text string) {
	if p == nil {
		return
	}
	text = strings.TrimRight(text, "\n")
	p.mu.Lock()
	bars, shut := p.bars, p.shut
	if p.mode == JSON {
		p.line(map[string]any{"note": text})
	} else if bars == nil || shut {
		fmt.Fprintln(p.w, text)
	}
	p.mu.Unlock()
	if p.mode == Bar && bars != nil && !shut {
		// An error means that the bars are gone: then nobody reads the note there.
		if _, err := fmt.Fprintln(bars, text); err != nil {
			fmt.Fprintln(p.w, text)
		}
	}
}

// Close ends the display, leaving its last state on the screen. It is safe to
// call it twice. complete says whether all trials were run.
func (p *Progress) Close(complete bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	bars, bar, shut := p.bars, p.bar, p.shut
	p.shut = true
	p.mu.Unlock()
	if bars == nil || shut {
		return
	}
	if complete {
		bar.SetTotal(-1, true)
	} else {
		bar.Abort(false)
	}
	bars.Wait()
}

// open makes the bar; the caller holds the lock.
func (p *Progress) open() {
	p.bars = mpb.New(mpb.WithOutput(p.w), mpb.WithWidth(110), mpb.WithAutoRefresh(), mpb.WithRefreshRate(150*time.Millisecond))
	p.bar = p.bars.AddBar(0, mpb.BarWidth(20),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.last.text() + " "
		})),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			return p.now().Sub(p.start).Round(time.Second).String()
		})))
}

func (p *Progress) json(e Event) {
	type line struct {
		Event
		ElapsedMS float64  `json:"elapsed_ms"`
		P99MS     *float64 `json:"p99_ms"` // null while nothing was answered
	}
	l := line{Event: e, ElapsedMS: ms(p.now().Sub(p.start))}
	if e.P99 > 0 {
		v := ms(e.P99)
		l.P99MS = &v
	}
	p.line(l)
}

func (p *Progress) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("progress: an event that cannot be written: " + err.Error())
	}
	fmt.Fprintf(p.w, "%s\n", b)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// text gives "quickstart 3/12 active #1 steady p99 1.20 ms".
func (e Event) text() string {
	s := fmt.Sprintf("%s %d/%d %s #%d %s", e.Suite, e.Trial, e.Trials, e.Cell, e.Repetition, e.Phase)
	if e.P99 > 0 {
		s += fmt.Sprintf(" p99 %.2f ms", ms(e.P99))
	}
	return s
}
