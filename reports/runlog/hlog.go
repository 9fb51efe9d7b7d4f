package runlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weir-bench/weir/reports/stats"
)

// LatencyLog writes an HdrHistogram interval log (format 1.3, V2 payloads) with several tags. Times are seconds since
// the base time, values nanoseconds, Interval_Max milliseconds with all six decimals, so that it is exact. Every line is
// one write to a file opened for appending: lines of several goroutines, or of several logs on one file, never mix.
type LatencyLog struct {
	mu sync.Mutex
	f  *os.File
}

// CreateLatencyLog opens path for appending and writes the header when the file is new.
func CreateLatencyLog(path string, base time.Time) (*LatencyLog, error) {
	f, err := appendTo(path)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && fi.Size() == 0 {
		sec := float64(base.UnixMilli()) / 1000
		_, err = fmt.Fprintf(f, "#[Weir delay log: values in ns, Interval_Max in ms, tags are cell#repetition]\n"+
			"#[Histogram log format version %s]\n#[BaseTime: %.3f (seconds since epoch)]\n#[StartTime: %.3f (seconds since epoch), %s]\n"+
			"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
			hdrhistogram.HISTOGRAM_LOG_FORMAT_VERSION, sec, sec, base.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the delay log: %w", err), f.Close())
	}
	return &LatencyLog{f: f}, nil
}

// Tag returns the tag of a repetition: cell#repetition, with whatever the log format forbids in a tag (comma, space,
// line break) and # and % written as %XX, so that two cells never share a tag.
func Tag(cell string, repetition int) string {
	return strings.ReplaceAll(url.QueryEscape(cell), "+", "%20") + "#" + strconv.Itoa(repetition)
}

// SplitTag is the inverse of Tag.
func SplitTag(tag string) (cell string, repetition int, err error) {
	name, number, ok := strings.Cut(tag, "#")
	if !ok {
		return "", 0, fmt.Errorf("tag %q is not cell#repetition", tag)
	}
	if repetition, err = strconv.Atoi(number); err != nil {
		return "", 0, fmt.Errorf("tag %q: repetition: %w", tag, err)
	}
	if cell, err = url.QueryUnescape(name); err != nil {
		return "", 0, fmt.Errorf("tag %q: %w", tag, err)
	}
	return cell, repetition, nil
}

// Write appends one interval, of which start counts from the base time of the log. An empty histogram is left out, since
// readers would see a delay of 0 in it.
func (l *LatencyLog) Write(tag string, start, length time.Duration, h *stats.Histogram) error {
	if h.Samples() == 0 {
		return nil
	}
	if strings.ContainsAny(tag, ", \r\n") {
		return fmt.Errorf("delay log: tag %q has a comma, space or line break; use Tag", tag)
	}
	payload, err := h.HDR().Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return fmt.Errorf("encode the delays of %s: %w", tag, err)
	}
	top, _ := h.Max()
	var line bytes.Buffer
	if tag != "" {
		fmt.Fprintf(&line, "Tag=%s,", tag)
	}
	fmt.Fprintf(&line, "%.6f,%.6f,%.6f,%s\n", start.Seconds(), length.Seconds(), float64(top)/1e6, payload)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := appendWhole(l.f, line.Bytes()); err != nil {
		return fmt.Errorf("append to the delay log: %w", err)
	}
	return nil
}

// Sync brings the log onto the disk.
func (l *LatencyLog) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Sync()
}

// Close closes the file.
func (l *LatencyLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}

// LatencyInterval is one line of a delay log. Start counts from the base time.
type LatencyInterval struct {
	Tag           string
	Start, Length time.Duration
	Delays        *stats.Histogram
}

// ReadLatencyLog calls f for every interval of a log, ours or another tool's. Errors are LineErrors: a last line that is
// cut off wraps ErrTruncated and comes after all good lines were given to f; a line with a broken payload stops the
// reading.
func ReadLatencyLog(r io.Reader, file string, f func(LatencyInterval) error) error {
	return eachLine(r, file, func(line []byte) error {
		if line[0] == '#' || line[0] == '"' {
			return nil
		}
		iv, err := parseLatencyLine(string(line))
		if err != nil {
			return err
		}
		return f(iv)
	})
}

func parseLatencyLine(line string) (LatencyInterval, error) {
	var iv LatencyInterval
	fields := strings.Split(line, ",")
	if tag, ok := strings.CutPrefix(fields[0], "Tag="); ok {
		iv.Tag, fields = tag, fields[1:]
	}
	if len(fields) != 4 {
		return iv, fmt.Errorf("%d fields, want start, length, max and one payload", len(fields))
	}
	var numbers [3]float64
	for i, name := range []string{"StartTimestamp", "Interval_Length", "Interval_Max"} {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return iv, fmt.Errorf("%s: %w", name, err)
		}
		numbers[i] = v
	}
	h, err := hdrhistogram.Decode([]byte(fields[3]))
	if err != nil {
		return iv, fmt.Errorf("payload: %w", err)
	}
	iv.Start = time.Duration(numbers[0] * 1e9).Round(time.Microsecond)
	iv.Length = time.Duration(numbers[1] * 1e9).Round(time.Microsecond)
	iv.Delays = stats.FromHDR(h, time.Duration(numbers[2]*1e6+0.5))
	return iv, nil
}
