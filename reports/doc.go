// Package reports is the record room and the press of the house: the format of a run directory, the statistics over
// it and the renderers of its tables and pages live in the folders below. Everything here works from files and plain
// numbers; nothing knows the engine, so a report can be made again on another machine, years later.
//
//   - schema: the published JSON Schema of results.json
//   - stats: delay histograms, spikes, summaries, comparisons
//   - runlog: the run directory, written and read
//   - render: terminal table, Markdown, LaTeX, one-file HTML
//
// May import: nothing.
package reports
