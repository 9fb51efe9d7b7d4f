package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonicNS reads the clock that all processes of a machine share.
func monotonicNS() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the clock is always there
	}
	return ts.Nano()
}

// newClock returns a clock in nanoseconds since baseNS of the shared monotonic clock. The time package reads that clock
// without a system call, from an origin of its own, so the distance of the origins is measured once: the tightest of
// some readings is within a few tens of nanoseconds.
func newClock(baseNS int64) func() int64 {
	origin := time.Now()
	offset, least := int64(0), int64(1<<62)
	for range 64 {
		before := time.Since(origin)
		mono := monotonicNS()
		after := time.Since(origin)
		if span := int64(after - before); span < least {
			least, offset = span, mono-int64(before+after)/2
		}
	}
	offset -= baseNS
	return func() int64 { return int64(time.Since(origin)) + offset }
}

// threadCPUNS returns the processor time of the calling thread.
func threadCPUNS() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}
