package runlog

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// File names in a run directory.
const (
	ManifestFile = "manifest.json"
	ResultsFile  = "results.json"
	EventsFile   = "events.jsonl"
	TimelineFile = "timeline.csv"
	LatencyFile  = "latency.hlog"
	MarkdownFile = "report.md"
	HTMLFile     = "report.html"
	LatestLink   = "latest"
)

// Writer writes one run directory. It is safe for use by several goroutines; a line is written whole or not at all.
type Writer struct {
	dir      string
	latency  *LatencyLog
	mu       sync.Mutex
	manifest Manifest
	events   *os.File
	timeline *os.File
}

// Create makes <root>/<suite>/<UTC time>/, writes the manifest (partial until Finish) and turns the latest link. m.Suite
// and m.StartedAt must be set. Two runs in the same second get different directories.
func Create(root string, m Manifest) (*Writer, error) {
	parent := filepath.Join(root, dirName(m.Suite))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("make the directory for the runs of suite %q: %w", m.Suite, err)
	}
	link := filepath.Join(parent, LatestLink)
	if fi, err := os.Lstat(link); err == nil && fi.Mode()&fs.ModeSymlink == 0 {
		return nil, fmt.Errorf("%s is not a symbolic link; move it away, it is where the newest run is linked", link)
	}
	dir, err := makeUnique(parent, m.StartedAt.UTC().Format("20060102T150405Z"))
	if err != nil {
		return nil, err
	}
	m.SchemaVersion, m.Partial, m.PartialReason, m.EndedAt = SchemaVersion, true, "the run has not finished", nil
	w := &Writer{dir: dir, manifest: m}
	if err := w.open(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if err := turnLink(link, filepath.Base(dir)); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// dirName makes one safe path element of a suite name, without mapping two names to one.
func dirName(suite string) string {
	name := url.PathEscape(suite)
	if strings.HasPrefix(name, ".") {
		name = "%2E" + name[1:]
	}
	name = strings.ReplaceAll(name, ":", "%3A")
	if name == "" || name == LatestLink {
		name = "%" + name
	}
	return name
}

func makeUnique(parent, name string) (string, error) {
	for i := 1; ; i++ {
		dir := filepath.Join(parent, name)
		if i > 1 {
			dir += fmt.Sprintf("-%d", i)
		}
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrExist) || i == 10_000 {
			return "", fmt.Errorf("make the run directory: %w", err)
		}
	}
}

// turnLink replaces the link by renaming a new one over it, so that a reader sees the old or the new one, never none.
func turnLink(link, target string) error {
	tmp := filepath.Join(filepath.Dir(link), "."+LatestLink+"-"+target)
	if err := os.Symlink(target, tmp); err != nil {
		return fmt.Errorf("link the newest run: %w", err)
	}
	if err := os.Rename(tmp, link); err != nil {
		return errors.Join(fmt.Errorf("link the newest run: %w", err), os.Remove(tmp))
	}
	return nil
}

func (w *Writer) open() error {
	if err := w.writeManifest(); err != nil {
		return err
	}
	var err error
	if w.events, err = appendTo(filepath.Join(w.dir, EventsFile)); err != nil {
		return err
	}
	if w.timeline, err = appendTo(filepath.Join(w.dir, TimelineFile)); err != nil {
		return err
	}
	if _, err := w.timeline.WriteString(timelineHeader + "\n"); err != nil {
		return fmt.Errorf("write the header of %s: %w", TimelineFile, err)
	}
	w.latency, err = CreateLatencyLog(filepath.Join(w.dir, LatencyFile), w.manifest.StartedAt)
	return err
}

func appendTo(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open for appending: %w", err)
	}
	return f, nil
}

// appendWhole appends to a file that nobody else writes to, all of b or nothing: half a line, from a disk that became full,
// would join with the next one to something that is damaged in the middle of the file.
func appendWhole(f *os.File, b []byte) error {
	n, err := f.Write(b)
	if err == nil || n == 0 {
		return err
	}
	fi, statErr := f.Stat()
	if statErr != nil {
		return errors.Join(err, statErr)
	}
	return errors.Join(err, f.Truncate(fi.Size()-int64(n)))
}

// Dir returns the run directory.
func (w *Writer) Dir() string { return w.dir }

// Manifest returns the manifest as last written.
func (w *Writer) Manifest() Manifest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.manifest
}

// Latency returns the delay log of the run; it is owned by the Writer.
func (w *Writer) Latency() *LatencyLog { return w.latency }

// Event appends one event at once.
func (w *Writer) Event(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", e.Kind, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := appendWhole(w.events, append(line, '\n')); err != nil {
		return fmt.Errorf("append to %s: %w", EventsFile, err)
	}
	return nil
}

// Timeline appends rows.
func (w *Writer) Timeline(rows []TimelineRow) error {
	var buf bytes.Buffer
	cw := csv.NewWriter(&buf)
	for _, r := range rows {
		if err := cw.Write(r.record()); err != nil {
			return fmt.Errorf("encode a row of %s: %w", TimelineFile, err)
		}
	}
	cw.Flush()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := appendWhole(w.timeline, buf.Bytes()); err != nil {
		return fmt.Errorf("append to %s: %w", TimelineFile, err)
	}
	return nil
}

// Sync brings everything appended so far onto the disk. Call it at the end of each trial, before analysing it.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.events.Sync(), w.timeline.Sync(), w.latency.Sync())
}

// Results replaces results.json atomically with what is known so far. It sets schema version, suite and seed from the
// manifest, and marks the results partial: only Finish does not.
func (w *Writer) Results(r *Results) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Partial, r.PartialReason = true, w.manifest.PartialReason
	return w.writeResults(r)
}

func (w *Writer) writeResults(r *Results) error {
	r.SchemaVersion, r.Suite, r.Seed = SchemaVersion, w.manifest.Suite, w.manifest.Seed
	r.fill()
	if err := r.Validate(); err != nil {
		return fmt.Errorf("results break their contract: %w", err)
	}
	return writeJSON(filepath.Join(w.dir, ResultsFile), r)
}

// Finish writes the final results and manifest, no longer partial, and closes the files.
func (w *Writer) Finish(r *Results, end time.Time) error {
	return w.end(r, end, "")
}

// Interrupt writes results and manifest as they stand, marked partial with the reason, and closes the files.
func (w *Writer) Interrupt(r *Results, end time.Time, reason string) error {
	return w.end(r, end, orElse(reason, "interrupted"))
}

func (w *Writer) end(r *Results, end time.Time, reason string) error {
	w.mu.Lock()
	end = end.UTC()
	w.manifest.EndedAt, w.manifest.Partial, w.manifest.PartialReason = &end, reason != "", reason
	r.Partial, r.PartialReason = reason != "", reason
	err := errors.Join(w.writeResults(r), w.writeManifest())
	w.mu.Unlock()
	return errors.Join(err, w.Sync(), w.Close())
}

func (w *Writer) writeManifest() error {
	return writeJSON(filepath.Join(w.dir, ManifestFile), w.manifest)
}

// WriteFile puts a rendered report into the run directory, atomically.
func (w *Writer) WriteFile(name string, content []byte) error {
	return writeAtomic(filepath.Join(w.dir, name), content)
}

// Close closes the files without touching what they say: a run that was neither finished nor interrupted stays partial.
// Closing twice is harmless.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, f := range []*os.File{w.events, w.timeline} {
		if f != nil {
			errs = append(errs, ignoreClosed(f.Close()))
		}
	}
	if w.latency != nil {
		errs = append(errs, ignoreClosed(w.latency.Close()))
	}
	return errors.Join(errs...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}

func writeJSON(path string, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return writeAtomic(path, buf.Bytes())
}

// writeAtomic writes to a temporary file, syncs it and renames it over path, so that a full disk or a crash leaves the
// old content.
func writeAtomic(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}
