// Package runlog is the record room: it defines the files of a run directory, writes them while a run goes on and
// reads them back for a report.
//
// A run directory is <out>/<suite>/<UTC time>/ and holds
//
//	manifest.json   what ran, where and when; partial stays true until the run has finished
//	results.json    the contract for other tools (schema: reports/schema/results.schema.json)
//	events.jsonl    one JSON object a line: every phase, fault and warning with its time
//	timeline.csv    delay and rate per interval, cell and repetition
//	latency.hlog    HdrHistogram V2 interval log, values in nanoseconds, Interval_Max in milliseconds
//
// The order of writing is the point: events are appended as they happen and raw measurements are on disk before they
// are analysed, so that a crash of the analysis, or of the machine, loses nothing that was measured. What did not
// happen is absent, or null with a reason; it is never 0.
//
// May import: reports/stats, the standard library, hdrhistogram-go.
package runlog
