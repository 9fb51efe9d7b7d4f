//go:build !linux

package chaos

import (
	"context"
	"net"
	"time"
)

// Identify returns ErrUnsupported.
func Identify(int) (Process, error) { return Process{}, ErrUnsupported }

type handle struct{ Process }

func open(Process) (*handle, error)                       { return nil, ErrUnsupported }
func (*handle) kill() error                               { return ErrUnsupported }
func (*handle) stop() error                               { return ErrUnsupported }
func (*handle) resume() error                             { return ErrUnsupported }
func (*handle) exited(time.Duration) bool                 { return false }
func (*handle) stopped(time.Duration) (string, int, bool) { return "", 0, false }
func (*handle) running(time.Duration) (string, int, bool) { return "", 0, false }
func (*handle) cpu() time.Duration                        { return 0 }
func (*handle) close() error                              { return nil }

type reservation struct{ addr string }

func reserve() (*reservation, error)                                  { return nil, ErrUnsupported }
func (*reservation) listen(context.Context) (*net.TCPListener, error) { return nil, ErrUnsupported }
func (*reservation) close() error                                     { return nil }
func unread(*net.TCPConn) int64                                       { return 0 }
func isRefused(error) bool                                            { return false }
