package progress

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
)

func clock() func() time.Time {
	var mu sync.Mutex
	t := time.Unix(0, 0)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		t = t.Add(500 * time.Millisecond)
		return t
	}
}

func events(p *Progress) {
	for _, phase := range []string{"warm-up", "steady", "steady", "after"} {
		p.Update(Event{Suite: "quick", Trial: 1, Trials: 2, Cell: "active", Repetition: 1, Phase: phase, P99: 1200 * time.Microsecond})
	}
	p.Note("worker 2 was slow to start\n")
	p.Update(Event{Suite: "quick", Trial: 2, Trials: 2, Cell: "checkpoint", Repetition: 1, Phase: "warm-up"})
	p.Close(true)
	p.Close(true)
}

func TestPlain(t *testing.T) {
	var b bytes.Buffer
	events(New(Plain, &b, clock()))
	want := `    0.5s quick 1/2 active #1 warm-up p99 1.20 ms
    1.0s quick 1/2 active #1 steady p99 1.20 ms
    1.5s quick 1/2 active #1 after p99 1.20 ms
worker 2 was slow to start
    2.0s quick 2/2 checkpoint #1 warm-up
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestJSONLines(t *testing.T) {
	var b bytes.Buffer
	events(New(JSON, &b, clock()))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 6 {
		t.Fatalf("want 6 lines, got %q", lines)
	}
	var first, last map[string]any
	for i, v := range []*map[string]any{&first, &last} {
		if err := json.Unmarshal([]byte(lines[i*5]), v); err != nil {
			t.Fatal(err)
		}
	}
	if first["p99_ms"] != 1.2 || first["phase"] != "warm-up" {
		t.Errorf("first: %v", first)
	}
	if v, there := last["p99_ms"]; !there || v != nil {
		t.Errorf("an unknown delay is null, not %v", v)
	}
}

func TestNoneShowsOnlyNotes(t *testing.T) {
	var b bytes.Buffer
	events(New(None, &b, clock()))
	if b.String() != "worker 2 was slow to start\n" {
		t.Errorf("got %q", b.String())
	}
}

// syncBuffer is read while the bar's goroutine may still write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestBar(t *testing.T) {
	for _, complete := range []bool{true, false} {
		var b syncBuffer
		p := New(Bar, &b, clock())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range 50 {
					p.Update(Event{Suite: "quick", Trial: 1 + i/25, Trials: 2, Cell: "active", Repetition: 1, Phase: "steady", P99: time.Millisecond})
				}
			})
		}
		wg.Wait()
		p.Note("a note")
		p.Close(complete)
		out := b.String()
		if !strings.Contains(out, "quick 2/2 active #1 steady p99 1.00 ms") || !strings.Contains(out, "a note") {
			t.Errorf("complete %v: got %q", complete, out)
		}
	}
}

func TestNil(t *testing.T) {
	var p *Progress
	events(p)
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		mode     Mode
		terminal bool
		env      map[string]string
		want     Mode
	}{
		{Auto, true, nil, Bar},
		{Auto, false, nil, Plain},
		{Auto, true, map[string]string{"CI": "true"}, Plain},
		{Auto, true, map[string]string{"TERM": "dumb"}, Plain},
		{Bar, false, nil, Bar},
		{None, true, nil, None},
	} {
		if got := Choose(c.mode, c.terminal, func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}
