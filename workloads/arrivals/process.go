package arrivals

import "math"

// Never is the intended time of records that do not arrive.
const Never int64 = math.MaxInt64

// Process is an arrival process. A value serves one goroutine.
type Process interface {
	// Fill sets times[j] to the intended time, in ns since the start of the
	// run, of record first + j·stride (stride >= 1).
	Fill(times []int64, first, stride uint64)
	// Before returns how many records have an intended time below t (ns).
	Before(t int64) uint64
	// Clone returns an independent process with the same times.
	Clone() Process
}
