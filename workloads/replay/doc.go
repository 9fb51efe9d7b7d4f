// Package replay is the tape room: it reads recorded traces, in the compact
// format, as CSV or as JSON lines, each plain or gzipped.
//
// # The compact format
//
// The four bytes TRC1, the number of rows, the number of columns, then for each
// column its length in bytes and one number a row. All numbers are unsigned
// varints. Column 0 is the time since the row before.
//
// May import: engine/core and the standard library.
package replay
