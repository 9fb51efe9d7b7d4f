//go:build linux

package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-bench/weir/engine/state/remote"
)

// TestStoreProcess writes to an embedded store in its own process, looks at what that costs, and ends it.
func TestStoreProcess(t *testing.T) {
	p, err := StartStore(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx := context.Background()
	s, err := remote.Open(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Check(ctx, "job"); err != nil {
		t.Fatal(err)
	}
	stranger, err := remote.Open(strings.Replace(p.URL(), "@", "x@", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if err := stranger.Check(ctx, "job"); !errors.Is(err, remote.ErrAuth) {
		t.Errorf("somebody else: %v, want %v", err, remote.ErrAuth)
	}
	before, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	sp := &remote.Space{Job: "job", Operator: "o", Epoch: 1, ValueBytes: 1000}
	groups, keys := make([]uint32, 10_000), make([]uint64, 10_000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	for range 5 { // ticks of the processor's account are 10 ms
		if err := s.Write(ctx, sp, groups, keys, make([]byte, 10_000_000)); err != nil {
			t.Fatal(err)
		}
	}
	after, err := p.Usage()
	if err != nil || after.UserCPU+after.SystemCPU <= before.UserCPU+before.SystemCPU || after.RSSBytes < before.RSSBytes+5_000_000 {
		t.Errorf("usage %+v, then %+v (%v)", before, after, err)
	}
	// The terminal's Ctrl-C reaches it too, and it has to be there while the harness cleans up.
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		if err := unix.Kill(p.Pid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Sweep(ctx, "job"); n != 1 || err != nil {
		t.Errorf("swept %d hashes (%v), want 1", n, err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if why, ended := p.Ended(0); !ended || !strings.Contains(why, "killed") {
		t.Errorf("ended %v: %q", ended, why)
	}
	if _, err := p.Usage(); !errors.Is(err, ErrNoProcess) {
		t.Errorf("usage of a process that has ended: %v", err)
	}
}

// TestStoreProcessAlone says that a store ends when whoever started it does, and that one which cannot start is told.
func TestStoreProcessAlone(t *testing.T) {
	p, err := StartStore(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.hold.Close(); err != nil { // as the kernel does when the harness ends
		t.Fatal(err)
	}
	select {
	case <-p.gone:
	case <-time.After(patience):
		t.Error("the store lives on")
		_ = p.Close()
	}
	for command, want := range map[string]string{"/bin/false": "did not say its address", "/does/not/exist": "no such file"} {
		if p, err := StartStore([]string{command}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", command, p, err)
		}
	}
}
