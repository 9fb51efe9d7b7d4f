package chaos

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

var journalHead = Header{Run: "r1", Started: time.Unix(1_800_000_000, 0).UTC()}

func write(t testing.TB, records ...Record) []byte {
	t.Helper()
	var b bytes.Buffer
	j, err := NewJournal(&b, journalHead)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if _, err := j.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func story() []Record {
	p := &Process{PID: 42, StartTicks: 1234}
	at := func(rule int, op Op, s Stage) Record {
		return Record{Op: op, Stage: s, Rule: rule, Occurrence: 1, Kind: Freeze, Target: "worker 1", Process: p, DueNS: 5, AtNS: 6}
	}
	end := func(rule int, op Op, err string) Record {
		r := at(rule, op, End)
		r.DoneNS, r.Error = 7, err
		if err == "" {
			r.Evidence = &Evidence{Proof: "seen", State: "T", Threads: 3}
		}
		return r
	}
	undone := end(1, Inject, "no effect")
	undone.Undone = true
	return []Record{
		at(0, Inject, Begin), end(0, Inject, ""), at(1, Inject, Begin), undone,
		at(2, Inject, Begin), end(2, Inject, ""), at(0, Heal, Begin), end(0, Heal, ""),
		at(2, Heal, Begin), end(2, Heal, "no effect"), at(3, Inject, Begin),
	}
}

func TestJournalRoundTrip(t *testing.T) {
	b := write(t, story()...)
	h, err := ReadJournal(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	want := story()
	for i := range want {
		want[i].Seq = i + 1
	}
	if !reflect.DeepEqual(h.Records, want) || h.Torn || h.Header.Run != "r1" || !h.Header.Started.Equal(journalHead.Started) {
		t.Errorf("read %+v", h)
	}
	// Healed: 0. Undone: 1. Healing failed: 2. The writer died: 3.
	var left []int
	for _, r := range h.Unhealed() {
		left = append(left, r.Rule)
	}
	if !reflect.DeepEqual(left, []int{2, 3}) {
		t.Errorf("left unhealed: %v, want [2 3]", left)
	}
	// Cut at any byte of the last line, it is the same but for that line.
	last := bytes.LastIndexByte(b[:len(b)-1], '\n') + 1
	for n := last + 1; n < len(b); n++ {
		h, err := ReadJournal(bytes.NewReader(b[:n]))
		if err != nil || !h.Torn || len(h.Records) != len(want)-1 {
			t.Fatalf("cut at byte %d: %+v, %v", n, h, err)
		}
	}
}

func TestDamagedJournal(t *testing.T) {
	good := string(write(t, story()...))
	lines := strings.SplitAfter(good, "\n")
	for name, c := range map[string]struct{ text, want string }{
		"empty":        {"", "line 1"},
		"other file":   {`{"format":"x"}` + "\n", "line 1"},
		"version":      {strings.Replace(good, `"version":1`, `"version":2`, 1), "this reads weir-chaos version 1"},
		"hole":         {lines[0] + lines[2], "line 2: not a valid chaos journal: record 2 where 1 should be"},
		"not JSON":     {lines[0] + lines[1] + "garbage\n" + lines[2], "line 3"},
		"unknown":      {strings.Replace(good, `"due_ns"`, `"duo_ns"`, 1), `unknown field "duo_ns"`},
		"two in one":   {lines[0] + strings.TrimSpace(lines[1]) + lines[1], "something follows"},
		"no evidence":  {strings.Replace(good, `"evidence":{"proof":"seen","state":"T","threads":3}`, `"reason":""`, 1), "neither evidence nor error"},
		"op":           {strings.Replace(good, `"op":"inject"`, `"op":"hope"`, 1), `unknown op "hope"`},
		"endless line": {lines[0] + strings.Repeat("x", maxLineBytes+1), "longer than"},
	} {
		_, err := ReadJournal(strings.NewReader(c.text))
		if !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

type brokenDisk struct{ left int }

func (d *brokenDisk) Write(p []byte) (int, error) {
	if d.left--; d.left < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

func TestJournalHasNoHoles(t *testing.T) {
	d := &brokenDisk{left: 2}
	j, err := NewJournal(d, journalHead)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(Record{}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(Record{}); err == nil || !strings.Contains(err.Error(), "record 2") {
		t.Errorf("full disk: %v", err)
	}
	d.left = 1
	if _, err := j.Append(Record{}); err == nil {
		t.Error("went on behind a record that was lost")
	}
}

func FuzzReadJournal(f *testing.F) {
	f.Add(write(f, story()...))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadJournal(bytes.NewReader(b))
		if err != nil {
			return
		}
		h.Unhealed()
		again, err := ReadJournal(bytes.NewReader(write(t, h.Records...)))
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v\n%q", err, b)
		}
		if len(h.Records) != len(again.Records) || (len(h.Records) > 0 && !reflect.DeepEqual(h.Records, again.Records)) {
			t.Fatalf("read %+v, then %+v", h.Records, again.Records)
		}
	})
}
