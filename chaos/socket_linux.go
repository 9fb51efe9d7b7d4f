package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// reservation keeps a port of loopback without listening there, so that attempts to connect are refused by the kernel
// and no other program gets the port between a cut and its healing.
//
// Refusal is the kernel's: a proxy that accepts and then resets would tell the dialler that the other node was there.
type reservation struct {
	fd   int
	addr string
}

func reserve() (*reservation, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	r := &reservation{fd: fd}
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reserve a port of 127.0.0.1: %w", err), r.close())
	}
	in := name.(*unix.SockaddrInet4)
	r.addr = netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port)).String()
	return r, nil
}

// listen listens at the reserved port.
func (r *reservation) listen(ctx context.Context) (*net.TCPListener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var setErr error
		err := c.Control(func(fd uintptr) {
			setErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, setErr)
	}}
	ln, err := lc.Listen(ctx, "tcp4", r.addr)
	if err != nil {
		return nil, err
	}
	return ln.(*net.TCPListener), nil
}

func (r *reservation) close() error { return unix.Close(r.fd) }

// unread returns how many bytes wait in a socket, 0 if it is broken.
func unread(c *net.TCPConn) int64 {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { // a closed one holds nothing
		if v, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
			n = v
		}
	})
	return int64(n)
}

func isRefused(err error) bool { return errors.Is(err, unix.ECONNREFUSED) }
