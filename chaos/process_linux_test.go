package chaos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// childVariable makes the test binary one of the children below.
const childVariable = "WEIR_CHAOS_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "beat":
		os.Exit(beat())
	case "harness":
		os.Exit(harness())
	}
	os.Exit(m.Run())
}

// beat writes a byte each millisecond and spins on another thread, until its input ends.
func beat() int {
	go func() {
		for n := 0; ; n++ { // it is to use a processor
			runtime.KeepAlive(n)
		}
	}()
	go func() {
		tick := time.NewTicker(ms)
		for range tick.C {
			if _, err := os.Stdout.WriteString("."); err != nil {
				os.Exit(1)
			}
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin) // its end, however it comes
	return 0
}

// harness freezes a child for good and heals all at SIGINT.
func harness() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	file, err := os.Create(os.Args[1])
	if err != nil {
		return fail(err)
	}
	j, err := NewJournal(file, Header{Run: "harness"})
	if err != nil {
		return fail(err)
	}
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), childVariable+"=beat")
	worker.Stdin, worker.Stdout = os.Stdin, os.Stdout
	if err := worker.Start(); err != nil {
		return fail(err)
	}
	m, err := NewMachine(&Schedule{Rules: []Rule{sure(freeze(1), Trigger{Event: "ready"}, 0)}})
	if err != nil {
		return fail(err)
	}
	begin := time.Now()
	clock := func() time.Duration { return time.Since(begin) }
	in := NewInjector(Targets{Process: func(int) (Process, error) { return Identify(worker.Process.Pid) }}, j, clock)
	d := Drive(m, in, clock, func(r []Record) { fmt.Fprintf(os.Stderr, "%s %d\n", r[0].Op, worker.Process.Pid) })
	d.Event(Event{Kind: "ready"})
	<-ctx.Done()
	if err := errors.Join(d.Stop(), file.Close()); err != nil {
		return fail(err)
	}
	return 130
}

// worker is a beating child.
type worker struct {
	*exec.Cmd
	stdin io.WriteCloser
	beats chan struct{} // capacity 1: one since the last receive
	ended chan struct{} // closed when it was reaped
}

func start(t testing.TB) *worker {
	t.Helper()
	w := &worker{Cmd: exec.Command(os.Args[0]), beats: make(chan struct{}, 1), ended: make(chan struct{})}
	w.Env = append(os.Environ(), childVariable+"=beat", "GOMAXPROCS=2")
	w.SysProcAttr = &syscall.SysProcAttr{}
	in, err := w.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.stdin = in
	w.Stdout = w
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = w.Wait() // killed: it says so
		close(w.ended)
	}()
	t.Cleanup(func() {
		_ = w.Process.Kill() // it may have ended
		<-w.ended
	})
	w.beat(t)
	return w
}

// Write takes what the child writes.
func (w *worker) Write(b []byte) (int, error) {
	select {
	case w.beats <- struct{}{}:
	default:
	}
	return len(b), nil
}

// beat waits for a beat that comes from now on, or was on its way.
func (w *worker) beat(t testing.TB) {
	t.Helper()
	for range 2 {
		select {
		case <-w.beats:
		case <-time.After(patience):
			t.Fatal("the worker does not beat")
		}
	}
}

type bench struct {
	*Injector
	journal *bytes.Buffer
	clock   func() time.Duration
}

func newBench(t testing.TB, p *Proxy, workers ...*worker) *bench {
	t.Helper()
	var b bytes.Buffer
	j, err := NewJournal(&b, journalHead)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	clock := func() time.Duration { return time.Since(begin) }
	of := func(node int) (Process, error) { return Identify(workers[node-1].Process.Pid) }
	holder := func(task string) (int, error) {
		if task != "count/0" {
			return 0, errors.New("there is no such task")
		}
		return 1, nil
	}
	in := NewInjector(Targets{Process: of, Holder: holder, Proxy: p}, j, clock)
	t.Cleanup(func() {
		if _, err := in.HealAll(); err != nil {
			t.Error(err)
		}
	})
	return &bench{in, &b, clock}
}

func act(op Op, rule int, f Fault) Action { return Action{Op: op, Rule: rule, Occurrence: 1, Fault: f} }

func (b *bench) ok(t testing.TB, actions ...Action) []Record {
	t.Helper()
	r, err := b.Do(actions...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (b *bench) history(t testing.TB) *History {
	t.Helper()
	h, err := ReadJournal(bytes.NewReader(b.journal.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestFreezeAndHeal(t *testing.T) {
	w := start(t)
	b := newBench(t, nil, w)
	r := b.ok(t, act(Inject, 0, freeze(1)))[0]
	if e := r.Evidence; e == nil || e.State != "T" || e.Threads < 3 || r.Process.PID != w.Process.Pid || r.DoneNS < r.AtNS || r.AtNS == 0 {
		t.Errorf("evidence of a freeze: %+v %+v", r, e)
	}
	s, err := readStat(proc(w.Process.Pid, "stat"))
	if err != nil || s.state != 'T' {
		t.Errorf("the process is in state %c, %v", s.state, err)
	}
	if left := b.history(t).Unhealed(); len(left) != 1 || left[0].Process.PID != w.Process.Pid {
		t.Errorf("the journal of a frozen process leaves %+v", left)
	}
	if _, err := b.Do(act(Inject, 1, Fault{Kind: Slow, Target: OnTask("count/0"), Factor: 2})); !errors.Is(err, ErrBusy) {
		t.Errorf("slow a task of a frozen worker: %v", err)
	}
	// Beats that were in the pipe are taken, then none comes.
	for drained := false; !drained; {
		select {
		case <-w.beats:
		case <-time.After(20 * ms):
			drained = true
		}
	}
	r = b.ok(t, act(Heal, 0, freeze(1)))[0]
	if e := r.Evidence; e == nil || strings.Contains(e.State, "T") || e.State == "" {
		t.Errorf("evidence of healing: %+v", e)
	}
	w.beat(t)
	if left := b.history(t).Unhealed(); len(left) != 0 || b.Active() != 0 {
		t.Errorf("left after healing: %+v", left)
	}
	if _, err := b.Do(act(Heal, 0, freeze(1))); !errors.Is(err, ErrNotActive) {
		t.Errorf("heal twice: %v", err)
	}
}

func TestKillTwoWorkersAtOnceAndFrozenOnes(t *testing.T) {
	w := []*worker{start(t), start(t), start(t)}
	b := newBench(t, nil, w...)
	b.ok(t, act(Inject, 0, freeze(1)))
	records := b.ok(t, act(Inject, 1, kill(1)), act(Inject, 2, kill(2)), act(Heal, 0, freeze(1)))
	for i, r := range records[:2] {
		if r.Evidence == nil || r.Process.PID != w[i].Process.Pid {
			t.Errorf("kill %d: %+v", i+1, r)
		}
		<-w[i].ended
	}
	if !strings.Contains(records[2].Evidence.Proof, "ended before") {
		t.Errorf("healing of a killed process: %+v", records[2].Evidence)
	}
	// Both were on record before the first was confirmed.
	h := b.history(t).Records[2:6]
	if got := [4]Stage{h[0].Stage, h[1].Stage, h[2].Stage, h[3].Stage}; got != [4]Stage{Begin, Begin, End, End} {
		t.Errorf("order of records: %v", got)
	}
	if _, err := b.Do(act(Inject, 3, kill(2))); !errors.Is(err, ErrGone) {
		t.Errorf("kill it again: %v", err)
	}
	// On one process one comes after the other, also in one batch.
	records = b.ok(t, act(Inject, 4, freeze(3)), act(Inject, 5, kill(3)))
	if records[0].Evidence.State != "T" || records[1].Evidence == nil {
		t.Errorf("freeze and kill at once: %+v", records)
	}
}

func TestOnlyTheVeryProcessIsSignalled(t *testing.T) {
	w := start(t)
	p, err := Identify(w.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := open(Process{p.PID, p.StartTicks - 1}); !errors.Is(err, ErrGone) {
		t.Errorf("a process with a reused number: %v, %v", h, err)
	}
	for _, pid := range []int{1, os.Getppid(), os.Getpid()} {
		if _, err := Identify(pid); !errors.Is(err, ErrForeign) {
			t.Errorf("process %d of others: %v", pid, err)
		}
	}
	for _, pid := range []int{0, -1} {
		if _, err := Identify(pid); !errors.Is(err, ErrGone) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	w.beat(t)
}

func TestStatLine(t *testing.T) {
	const tail = " 0 0 0 0 0 0 0 0 0 150 25 0 0 20 0 9 0 777 0 0"
	s, err := parseStat([]byte("42 (a) S (b) c)) T 7" + tail))
	if err != nil || s != (procStat{'T', 7, 777, 1750 * ms}) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "42 (x) R 1", "42 (x) R x" + tail} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestPausesKeepTheShare(t *testing.T) {
	for _, c := range []struct {
		factor     float64
		run, stand time.Duration
	}{{2, 5 * ms, 5 * ms}, {10, 2 * ms, 18 * ms}, {100, 200 * time.Microsecond, 19800 * time.Microsecond}, {1000, 200 * time.Microsecond, 199800 * time.Microsecond}} {
		if run, stand := SlowSlices(c.factor); run != c.run || stand != c.stand {
			t.Errorf("factor %v runs %v and stands %v, want %v and %v", c.factor, run, stand, c.run, c.stand)
		}
		// Timers that are late by anything up to 3 ms, and once by 100: the share is kept all the same.
		var ran, stood time.Duration
		for i := range 4000 {
			late := time.Duration(i*7919%3000) * time.Microsecond
			if i == 10 {
				late = 100 * ms
			}
			if d := pause(c.factor, ran, stood); d > 0 {
				stood += d + late/10
			}
			ran += c.run + late/3
		}
		// A pause is twice the usual one at most: shares of a processor below that cannot make up for late timers.
		share := float64(ran+stood) / float64(ran)
		if c.factor <= 10 && (share < c.factor*0.97 || share > c.factor*1.03) {
			t.Errorf("factor %v came out as %.2f", c.factor, share)
		}
	}
}

func TestSlow(t *testing.T) {
	if testing.Short() {
		t.Skip("measures shares of CPU time, which the race detector distorts")
	}
	w := start(t)
	b := newBench(t, nil, w)
	slow := Fault{Kind: Slow, Target: OnTask("count/0"), Factor: 4}
	// A busy machine may keep this process from its timers: such a try proves nothing about the slicing.
	var e *Evidence
	for range 6 {
		m := machine(t, sure(slow, Trigger{}, 300*ms))
		records := make(chan Record, 2)
		d := Drive(m, b.Injector, b.clock, func(rs []Record) {
			for _, r := range rs {
				records <- r
			}
		})
		inject := <-records
		heal := <-records
		if inject.Op != Inject || inject.Evidence == nil || inject.Evidence.State != "T" || heal.Op != Heal || heal.Evidence == nil {
			t.Fatalf("records %+v %+v", inject, heal)
		}
		if err := d.Stop(); err != nil {
			t.Fatal(err)
		}
		if e = heal.Evidence; e.Ran > 0.2 && e.Ran < 0.3 && e.Pauses >= 6 && e.LongestPauseNS >= int64(5*ms) {
			w.beat(t)
			return
		}
		b.Injector = NewInjector(b.targets, b.Injector.journal, b.clock) // stopping the driver has ended the last one
	}
	t.Errorf("slowed to a quarter it ran %.2f of the time, with %d pauses up to %v", e.Ran, e.Pauses, time.Duration(e.LongestPauseNS))
}

func TestLinkFaultsHaveEvidence(t *testing.T) {
	f := listenFar(t)
	p := newProxy(t, Between(1, 2))
	b := newBench(t, p)
	addr := p.Address(1, 2, f.Addr().String())
	near, end := f.connect(t, addr)
	delay := Fault{Kind: SlowLink, Target: OnLink(2, 1), Latency: 10 * ms}
	before := roundTrip(t, near, end, 30)
	if e := b.ok(t, act(Inject, 0, delay))[0].Evidence; e.Directions != 2 || e.OfDirections != 2 {
		t.Errorf("slow link: %+v", e)
	}
	if _, err := b.Do(act(Inject, 9, Fault{Kind: Stall, Target: OnLink(1, 2)})); !errors.Is(err, ErrBusy) {
		t.Errorf("stall a slow link: %v", err)
	}
	if during := roundTrip(t, near, end, 3); during < 20*ms {
		t.Errorf("a round trip on the slow link took %v", during)
	}
	// A byte can be heard before the proxy has counted it.
	eventually(t, "all is counted", func() bool { s, err := p.Stats(Between(1, 2)); return err == nil && s.HeldBytes == 0 })
	if e := b.ok(t, act(Heal, 0, delay))[0].Evidence; e.PassedBytes != 6 || e.Directions != 2 {
		t.Errorf("healing of the slow link: %+v", e)
	}
	if after := roundTrip(t, near, end, 30); after > 10*ms || before > 10*ms {
		t.Errorf("a round trip took %v before and %v after", before, after)
	}
	stall := Fault{Kind: Stall, Target: OnLink(1, 2)}
	b.ok(t, act(Inject, 1, stall))
	say(t, near, []byte("held")...)
	eventually(t, "bytes are held", func() bool { s, err := p.Stats(Between(1, 2)); return err == nil && s.HeldBytes == 4 })
	if e := b.ok(t, act(Heal, 1, stall))[0].Evidence; e.HeldBytes != 4 {
		t.Errorf("healing of the stall: %+v", e)
	}
	hear(t, end, []byte("held")...)
	cut := Fault{Kind: Cut, Target: OnLink(1, 2)}
	if e := b.ok(t, act(Inject, 2, cut))[0].Evidence; e.Reset != 1 || e.Refused != 2 {
		t.Errorf("cut: %+v", e)
	}
	if _, err := b.HealAll(); err != nil {
		t.Fatal(err)
	}
	near, end = f.connect(t, addr)
	say(t, near, 'x')
	hear(t, end, 'x')
	if left := b.history(t).Unhealed(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	if _, err := b.Do(act(Inject, 3, cut)); !errors.Is(err, ErrClosed) {
		t.Errorf("a fault after all was healed: %v", err)
	}
}

func TestNothingIsDoneThatIsNotOnRecord(t *testing.T) {
	w := start(t)
	j, err := NewJournal(&brokenDisk{left: 1}, journalHead)
	if err != nil {
		t.Fatal(err)
	}
	in := NewInjector(Targets{Process: func(int) (Process, error) { return Identify(w.Process.Pid) }}, j, func() time.Duration { return 0 })
	if _, err := in.Do(act(Inject, 0, kill(1))); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("kill with a full disk: %v", err)
	}
	w.beat(t)
}

// Two faults shortly after one another, the second by an event that the first brings about: both are on record.
func TestSecondFaultDuringRecovery(t *testing.T) {
	w := []*worker{start(t), start(t)}
	b := newBench(t, nil, w...)
	m := machine(t, sure(kill(1), Trigger{Event: "checkpoint-begin", N: 2}, 0), sure(kill(2), Trigger{Event: "failure-detected", After: 10 * ms}, 0))
	var mu sync.Mutex
	var got []Record
	d := Drive(m, b.Injector, b.clock, func(rs []Record) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, rs...)
	})
	d.Event(Event{Kind: "checkpoint-begin"})
	d.Event(Event{Kind: "checkpoint-begin"})
	<-w[0].ended
	detected := b.clock()
	d.Event(Event{Kind: "failure-detected"})
	<-w[1].ended
	if err := errors.Join(d.Stop(), d.Stop()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 || got[0].Target != "worker 1" || got[1].Target != "worker 2" || got[1].AtNS < int64(detected+10*ms) || got[1].AtNS < got[1].DueNS {
		t.Errorf("records: %+v", got)
	}
}

// interrupted starts a harness and returns when its worker is frozen.
func interrupted(t *testing.T) (cmd *exec.Cmd, stdin io.Closer, out *bufio.Reader, journal string) {
	t.Helper()
	journal = filepath.Join(t.TempDir(), "chaos.jsonl")
	cmd = exec.Command(os.Args[0], journal)
	cmd.Env = append(os.Environ(), childVariable+"=harness")
	// Pipes of our own: Wait must not close them, as the worker outlives the harness.
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = inR
	cmd.Stdout = w
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cmd.Start(), inR.Close(), w.Close(), r.SetReadDeadline(time.Now().Add(patience))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = inW.Close() // with its input a worker that runs ends
		_ = r.Close()
	})
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.HasPrefix(line, "inject ") {
		t.Fatalf("the harness said %q, %v", line, err)
	}
	return cmd, inW, bufio.NewReaderSize(r, 1<<16), journal
}

func readHistory(t *testing.T, path string) *History {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := ReadJournal(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestInterruptHealsAFreeze(t *testing.T) {
	cmd, stdin, out, journal := interrupted(t)
	for range 2 { // a second one must not keep it from healing
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Fatalf("the harness ended with %v", err)
	}
	h := readHistory(t, journal)
	if n := len(h.Records); n != 4 || len(h.Unhealed()) != 0 || h.Records[3].Evidence == nil || h.Torn {
		t.Errorf("journal: %+v", h)
	}
	// More beats come than can have been written before the freeze within a pipe.
	if _, err := io.CopyN(io.Discard, out, 20+int64(out.Buffered())); err != nil {
		t.Errorf("the worker does not go on: %v", err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Errorf("the worker does not end: %v", err)
	}
}

func TestJournalOfAKilledHarnessNamesTheFrozen(t *testing.T) {
	cmd, _, _, journal := interrupted(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed: it says so
	left := readHistory(t, journal).Unhealed()
	if len(left) != 1 || left[0].Process == nil {
		t.Fatalf("left: %+v", left)
	}
	p := left[0].Process
	s, err := readStat(proc(p.PID, "stat"))
	if err != nil || s.start != p.StartTicks || s.state != 'T' {
		t.Fatalf("process %d is %+v, %v", p.PID, s, err)
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is gone", func() bool {
		s, err := readStat(proc(p.PID, "stat"))
		return err != nil || s.state == 'Z' || s.state == 'X'
	})
}

func TestKindsAreComplete(t *testing.T) {
	var names []Kind
	for _, k := range Kinds() {
		if k.Doc == "" || k.Evidence == "" {
			t.Errorf("%s has no description", k.Kind)
		}
		names = append(names, k.Kind)
	}
	if want := []Kind{Kill, Freeze, Slow, Cut, Stall, SlowLink}; !slices.Equal(names, want) {
		t.Errorf("kinds %v, want %v", names, want)
	}
}
