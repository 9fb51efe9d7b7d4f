package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The environment variables that are read.
const (
	// RequireAll set to 1 turns skips for missing parts into failures.
	RequireAll = "WEIR_REQUIRE_ALL"
	// TracesDir names the directory of the recorded traces. NoTraces in it says that this machine is not meant to have
	// them, which is a reason to skip even where every part is required.
	TracesDir = "WEIR_TRACES"
	NoTraces  = "absent"
)

// missing skips t, or fails it when every part is required.
func missing(t testing.TB, what, remedy string) {
	t.Helper()
	if os.Getenv(RequireAll) == "1" {
		t.Fatalf("%s is missing, and %s=1 asks for every part; %s", what, RequireAll, remedy)
	}
	t.Skipf("%s is missing; %s", what, remedy)
}

// program returns the path of the first of names that is installed.
func program(t testing.TB, what, remedy string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, what, remedy)
	return ""
}

// Chromium returns the path of a Chromium-like browser.
func Chromium(t testing.TB) string {
	t.Helper()
	return program(t, "a Chromium browser", "install the package chromium", "chromium", "chromium-browser", "google-chrome")
}

// Redis returns the path of a server that speaks RESP: Redis or Valkey.
func Redis(t testing.TB) string {
	t.Helper()
	return program(t, "a Redis or Valkey server", "install the package redis-server", "redis-server", "valkey-server")
}

// Root says that the test mounts file systems or changes the network.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "the right to mount file systems", "run the test as root")
	}
}

// Traces returns the path of a recorded trace. They are looked for in WEIR_TRACES, or else in shared/traces beside the
// repository.
func Traces(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(TracesDir)
	if dir == NoTraces {
		t.Skipf("trace %s is needed, and %s=%s says that there are none here", name, TracesDir, NoTraces)
	}
	if dir == "" {
		root, err := moduleRoot()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(filepath.Dir(root), "shared", "traces")
	}
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
		missing(t, "trace "+filepath.Join(dir, name), "set "+TracesDir+" to the directory that has it")
	}
	return filepath.Join(dir, name)
}

// moduleRoot returns the directory of go.mod at or above the working directory, which is the package's in a test.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", os.ErrNotExist
		}
		dir = up
	}
}
