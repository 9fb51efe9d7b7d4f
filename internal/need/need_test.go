package need

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// spy records how a test would have ended. It ends its goroutine as testing.T does.
type spy struct {
	testing.TB
	end, why string
}

func (s *spy) Helper() {}

func (s *spy) Skipf(format string, a ...any) {
	s.end, s.why = "skipped", fmt.Sprintf(format, a...)
	runtime.Goexit()
}

func (s *spy) Fatalf(format string, a ...any) {
	s.end, s.why = "failed", fmt.Sprintf(format, a...)
	runtime.Goexit()
}

func (s *spy) Fatal(a ...any) { s.Fatalf("%v", a) }

func watch(f func(testing.TB)) *spy {
	s := &spy{end: "went on"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(s)
	}()
	<-done
	return s
}

func TestMissingPartSkipsOrFails(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(TracesDir, t.TempDir())
	for what, f := range map[string]func(testing.TB){
		"chromium": func(t testing.TB) { Chromium(t) },
		"redis":    func(t testing.TB) { Redis(t) },
		"trace":    func(t testing.TB) { Traces(t, "absent.trc.gz") },
	} {
		for required, want := range map[string]string{"": "skipped", "0": "skipped", "1": "failed"} {
			t.Setenv(RequireAll, required)
			s := watch(f)
			if s.end != want || !strings.Contains(s.why, "missing") {
				t.Errorf("%s missing with %s=%q: %s (%s), want %s", what, RequireAll, required, s.end, s.why, want)
			}
		}
	}
}

func TestTracesDeclaredAbsent(t *testing.T) {
	t.Setenv(RequireAll, "1")
	t.Setenv(TracesDir, NoTraces)
	if s := watch(func(tb testing.TB) { Traces(tb, "a.trc") }); s.end != "skipped" || !strings.Contains(s.why, NoTraces) {
		t.Errorf("%s (%s), want skipped", s.end, s.why)
	}
}

func TestPresentPartGoesOn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"google-chrome", "valkey-server", "some.trc"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv(TracesDir, dir)
	t.Setenv(RequireAll, "1")
	for name, f := range map[string]func(testing.TB) string{
		"google-chrome": Chromium, "valkey-server": Redis,
		"some.trc": func(t testing.TB) string { return Traces(t, "some.trc") },
	} {
		got := ""
		s := watch(func(tb testing.TB) { got = f(tb) })
		if s.end != "went on" || got != filepath.Join(dir, name) {
			t.Errorf("%s is there: %s (%s), path %q", name, s.end, s.why, got)
		}
	}
}

func TestRoot(t *testing.T) {
	t.Setenv(RequireAll, "1")
	want := "failed"
	if os.Geteuid() == 0 {
		want = "went on"
	}
	if s := watch(Root); s.end != want {
		t.Errorf("as user %d: %s (%s), want %s", os.Geteuid(), s.end, s.why, want)
	}
}

// TestTracesBesideTheRepository checks where traces are looked for when nothing is set.
func TestTracesBesideTheRepository(t *testing.T) {
	root := t.TempDir()
	at := filepath.Join(root, "clone", "some", "package")
	traces := filepath.Join(root, "shared", "traces")
	for _, dir := range []string{at, traces} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(root, "clone", "go.mod"), filepath.Join(traces, "a.trc")} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(TracesDir, "")
	t.Chdir(at)
	got := ""
	s := watch(func(tb testing.TB) { got = Traces(tb, "a.trc") })
	if want := filepath.Join(traces, "a.trc"); s.end != "went on" || got != want {
		t.Errorf("%s (%s): found %q, want %q", s.end, s.why, got, want)
	}
}
