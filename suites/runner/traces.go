package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/suites/spec/load"
	"github.com/weir-bench/weir/workloads"
)

// TracesDir is the environment variable with the folder in which traces are looked for that are not at their path.
const TracesDir = "WEIR_TRACES"

// generators gives the generators' description of a cell's workload, its traces where they are found.
func generators(c *spec.Cell, seed uint64) workloads.Spec {
	w := load.Spec(c.Workload, seed)
	for _, path := range []*string{&w.Replay.Path, &w.Arrivals.Replay.Path} {
		if found, err := locate(*path); err == nil {
			*path = found
		}
	}
	return w
}

// locate returns where a trace is: at its path, from the working directory, or under its name in the folder of TracesDir.
func locate(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	_, err := os.Stat(path)
	if err == nil {
		return path, nil
	}
	if dir := os.Getenv(TracesDir); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, filepath.Base(path))); err == nil {
			return filepath.Join(dir, filepath.Base(path)), nil
		}
	}
	return "", err
}

// traceTrouble says which traces of a cell are not there.
func traceTrouble(c *spec.Cell) (out []string) {
	for _, r := range []struct{ field, path string }{
		{"workload.replay.path", c.Workload.Replay.Path}, {"workload.arrivals.replay.path", c.Workload.Arrivals.Replay.Path},
	} {
		_, err := locate(r.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			out = append(out, fmt.Sprintf("%s: there is no trace %s; get it as the suite's description says, and write its path or set %s to the folder that has %s",
				r.field, r.path, TracesDir, filepath.Base(r.path)))
		case err != nil:
			out = append(out, fmt.Sprintf("%s: the trace cannot be read: %v", r.field, err))
		}
	}
	return out
}
