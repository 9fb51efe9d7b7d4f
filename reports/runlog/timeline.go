package runlog

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// TimelineRow is one line of timeline.csv: the records of one interval of one repetition. Records belong to the interval
// in which they were due (intended time); ArrivedPerS is by arrival. Times are milliseconds since the trial began.
type TimelineRow struct {
	Cell       string
	Repetition int
	StartMS    float64
	// Count is the number of samples, Unanswered the number of records that never came.
	Count      int64
	Unanswered int64
	// P50MS, P90MS, P99MS and MaxMS are nil (empty in the file) when the interval has no sample or when the percentile
	// falls on records that never came.
	P50MS, P90MS, P99MS, MaxMS *float64
	// DuePerS and ArrivedPerS are rates in records a second.
	DuePerS, ArrivedPerS float64
}

const timelineHeader = "cell,repetition,start_ms,count,unanswered,p50_ms,p90_ms,p99_ms,max_ms,due_per_s,arrived_per_s"

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func optional(v *float64) string {
	if v = finite(v); v == nil {
		return ""
	}
	return number(*v)
}

func (r TimelineRow) record() []string {
	return []string{r.Cell, strconv.Itoa(r.Repetition), number(r.StartMS), strconv.FormatInt(r.Count, 10),
		strconv.FormatInt(r.Unanswered, 10), optional(r.P50MS), optional(r.P90MS), optional(r.P99MS), optional(r.MaxMS),
		number(r.DuePerS), number(r.ArrivedPerS)}
}

// ReadTimeline reads timeline.csv; errors as for ReadEvents.
func ReadTimeline(r io.Reader, file string) ([]TimelineRow, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	text, truncated := string(b), false
	if text != "" && !strings.HasSuffix(text, "\n") {
		truncated = true
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	cr := csv.NewReader(strings.NewReader(text))
	cr.FieldsPerRecord = strings.Count(timelineHeader, ",") + 1
	var rows []TimelineRow
	for first := true; ; first = false {
		rec, err := cr.Read()
		if err == io.EOF {
			break
		}
		line, _ := cr.FieldPos(0)
		if err != nil {
			return rows, &LineError{File: file, Line: line, Err: err}
		}
		if first {
			if got := strings.Join(rec, ","); got != timelineHeader {
				return nil, &LineError{File: file, Line: 1, Err: fmt.Errorf("header is %q, want %q", got, timelineHeader)}
			}
			continue
		}
		row, err := parseTimelineRow(rec)
		if err != nil {
			return rows, &LineError{File: file, Line: line, Err: err}
		}
		rows = append(rows, row)
	}
	if truncated {
		return rows, &LineError{File: file, Line: strings.Count(text, "\n") + 1, Err: ErrTruncated}
	}
	return rows, nil
}

func parseTimelineRow(rec []string) (TimelineRow, error) {
	var firstErr error
	columns := strings.Split(timelineHeader, ",")
	note := func(i int, err error) {
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("column %s: %w", columns[i], err)
		}
	}
	float := func(i int) float64 {
		v, err := strconv.ParseFloat(rec[i], 64)
		note(i, err)
		return v
	}
	integer := func(i int) int64 {
		v, err := strconv.ParseInt(rec[i], 10, 64)
		note(i, err)
		return v
	}
	maybe := func(i int) *float64 {
		if rec[i] == "" {
			return nil
		}
		v := float(i)
		return &v
	}
	row := TimelineRow{Cell: rec[0], Repetition: int(integer(1)), StartMS: float(2), Count: integer(3), Unanswered: integer(4),
		P50MS: maybe(5), P90MS: maybe(6), P99MS: maybe(7), MaxMS: maybe(8), DuePerS: float(9), ArrivedPerS: float(10)}
	return row, firstErr
}
