package runlog

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFullDiskLeavesNoHalfLine says that a line for which there is no room leaves nothing behind, so that what was measured
// before can be read, and what is written when there is room again, too. A limit of file sizes stands for the full disk.
func TestFullDiskLeavesNoHalfLine(t *testing.T) {
	w, err := Create(t.TempDir(), Manifest{Suite: "full", StartedAt: time.Unix(1e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	event := func(detail string) error {
		return w.Event(Event{Kind: "mark", Detail: map[string]any{"text": detail}})
	}
	if err := event("before"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.Dir(), EventsFile)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(before.Size()) + 20, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	failed := event(strings.Repeat("x", 1000))
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(failed, unix.EFBIG) {
		t.Fatalf("a line beyond the limit: %v", failed)
	}
	if err := event("behind"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "before") || !strings.Contains(lines[1], "behind") {
		t.Errorf("the file has %q", text)
	}
}
