//go:build !linux

package host

import (
	"fmt"
	"os"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/storage"
)

// Harness is the stand-in for systems without epoll: it cannot be started.
type Harness struct{}

// WorkerMain says that this system is not supported.
func WorkerMain(storage.Opener) int {
	fmt.Fprintln(os.Stderr, "worker:", ErrUnsupported)
	return 1
}

// Start returns ErrUnsupported.
func Start(Config) (*Harness, error) { return nil, ErrUnsupported }

// Now returns 0.
func (*Harness) Now() time.Duration { return 0 }

// Done returns nil.
func (*Harness) Done() <-chan struct{} { return nil }

// Err returns ErrUnsupported.
func (*Harness) Err() error { return ErrUnsupported }

// Do returns ErrUnsupported.
func (*Harness) Do(func(*coord.Coordinator, *coord.Effects)) error { return ErrUnsupported }

// EndFeed returns ErrUnsupported.
func (*Harness) EndFeed() ([]uint64, error) { return nil, ErrUnsupported }

// Kill returns ErrUnsupported.
func (*Harness) Kill(int) error { return ErrUnsupported }

// Freeze returns ErrUnsupported.
func (*Harness) Freeze(int) error { return ErrUnsupported }

// Thaw returns ErrUnsupported.
func (*Harness) Thaw(int) error { return ErrUnsupported }

// Pid returns 0.
func (*Harness) Pid(int) int { return 0 }

// Usage returns ErrUnsupported.
func (*Harness) Usage(int) (Usage, error) { return Usage{}, ErrUnsupported }

// SelfUsage returns ErrUnsupported.
func (*Harness) SelfUsage() (Usage, error) { return Usage{}, ErrUnsupported }

// Metrics returns nothing.
func (*Harness) Metrics() Metrics { return Metrics{} }

// WorkerMetrics returns ErrUnsupported.
func (*Harness) WorkerMetrics(int, time.Duration) (WorkerMetrics, error) {
	return WorkerMetrics{}, ErrUnsupported
}

// Close returns ErrUnsupported.
func (*Harness) Close() error { return ErrUnsupported }

// StoreProcess is the stand-in for systems on which nothing uses it.
type StoreProcess struct{}

// StartStore returns ErrUnsupported.
func StartStore(_, _ []string) (*StoreProcess, error) { return nil, ErrUnsupported }

// URL returns nothing.
func (*StoreProcess) URL() string { return "" }

// Pid returns 0.
func (*StoreProcess) Pid() int { return 0 }

// Ended says that it has.
func (*StoreProcess) Ended(time.Duration) (why string, ended bool) {
	return ErrUnsupported.Error(), true
}

// Usage returns ErrUnsupported.
func (*StoreProcess) Usage() (Usage, error) { return Usage{}, ErrUnsupported }

// Close returns ErrUnsupported.
func (*StoreProcess) Close() error { return ErrUnsupported }
