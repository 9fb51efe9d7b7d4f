package runlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/weir-bench/weir/reports/stats"
)

// ErrNotARun is given for a directory without a manifest.
var ErrNotARun = errors.New("not a run directory")

// Run is a run directory in memory.
type Run struct {
	Dir      string
	Manifest Manifest
	Results  Results
	Events   []Event
	Timeline []TimelineRow
	// Delays holds the merged delays of each repetition by tag; Tags are its keys in order.
	Delays map[string]*stats.Histogram
	Tags   []string
	// Warnings says what is missing or damaged; everything else was read.
	Warnings []string
}

// Open reads a run directory; dir may also be the latest link or a file in the directory. A directory without manifest is
// ErrNotARun. What an interrupted run left out, or a crash cut off, becomes a warning; a file that is damaged in its middle
// is an error that names file and line.
func Open(dir string) (*Run, error) {
	if fi, err := os.Stat(dir); err == nil && !fi.IsDir() {
		dir = filepath.Dir(dir)
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	}
	run := &Run{Dir: resolved, Delays: map[string]*stats.Histogram{}}
	err = readJSON(filepath.Join(resolved, ManifestFile), &run.Manifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: it has no %s", dir, ErrNotARun, ManifestFile)
	}
	if err != nil {
		return nil, err
	}
	if err := run.checkVersion(ManifestFile, run.Manifest.SchemaVersion); err != nil {
		return nil, err
	}
	if err := run.readResults(); err != nil {
		return nil, err
	}
	return run, errors.Join(
		run.readLines(EventsFile, func(r io.Reader, name string) (err error) { run.Events, err = ReadEvents(r, name); return err }),
		run.readLines(TimelineFile, func(r io.Reader, name string) (err error) { run.Timeline, err = ReadTimeline(r, name); return err }),
		run.readLines(LatencyFile, run.mergeDelays))
}

func (run *Run) checkVersion(file string, v int) error {
	if v != SchemaVersion {
		return fmt.Errorf("%s: schema_version is %d, this program reads %d", filepath.Join(run.Dir, file), v, SchemaVersion)
	}
	return nil
}

func (run *Run) readResults() error {
	err := readJSON(filepath.Join(run.Dir, ResultsFile), &run.Results)
	if errors.Is(err, fs.ErrNotExist) {
		run.Results = Results{SchemaVersion: SchemaVersion, Suite: run.Manifest.Suite, Seed: run.Manifest.Seed, Partial: true,
			PartialReason: "no trial had ended", Cells: []Cell{}}
		run.Warnings = append(run.Warnings, ResultsFile+" is missing: no trial had ended")
		return nil
	}
	if err != nil {
		return err
	}
	return run.checkVersion(ResultsFile, run.Results.SchemaVersion)
}

func (run *Run) mergeDelays(r io.Reader, name string) error {
	err := ReadLatencyLog(r, name, func(iv LatencyInterval) error {
		h, ok := run.Delays[iv.Tag]
		if !ok {
			h = stats.NewHistogram()
			run.Delays[iv.Tag] = h
			run.Tags = append(run.Tags, iv.Tag)
		}
		h.Merge(iv.Delays)
		return nil
	})
	sort.Strings(run.Tags)
	return err
}

// readLines lets read have a file; a missing file and a last line that is cut off are warnings.
func (run *Run) readLines(name string, read func(io.Reader, string) error) error {
	f, err := os.Open(filepath.Join(run.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		run.Warnings = append(run.Warnings, name+" is missing")
		return nil
	}
	if err != nil {
		return fmt.Errorf("open run: %w", err)
	}
	err = read(f, name)
	if errors.Is(err, ErrTruncated) {
		run.Warnings = append(run.Warnings, err.Error())
		err = nil
	}
	return errors.Join(err, f.Close())
}

func readJSON(path string, into any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("open run: %w", err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1
			for _, c := range b[:min(int(syntax.Offset), len(b))] {
				if c == '\n' {
					line++
				}
			}
			return &LineError{File: path, Line: line, Err: err}
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// WriteReport puts a rendered report into the run directory, atomically.
func (run *Run) WriteReport(name string, content []byte) error {
	return writeAtomic(filepath.Join(run.Dir, name), content)
}
