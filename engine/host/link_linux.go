package host

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weir-bench/weir/engine/core"
)

// setAddr says where node is reached; the empty address closes the way to it.
func (f *fabric) setAddr(node int, addr string) {
	if node < 0 || node > maxNode {
		return
	}
	for len(f.links) <= node {
		f.links = append(f.links, nil)
	}
	l := f.links[node]
	if l == nil {
		if addr == "" {
			return
		}
		l = &link{node: node}
		f.links[node] = l
	}
	if l.addr == addr {
		return
	}
	if l.c != nil {
		f.closeConn(l.c)
	}
	l.c, l.connecting, l.addr, l.backoffNS, l.retryNS = nil, false, addr, 0, 0
	l.wbuf, l.sent = l.wbuf[:0], 0
	if addr != "" {
		f.dial(l)
	}
}

// send encodes b for node. A frame for a node that has no address, or has been out of reach for long, is dropped.
func (f *fabric) send(node int, b *core.Batch) {
	l := f.writable(node)
	if l == nil {
		return
	}
	l.wbuf = core.AppendFrame(l.wbuf, b)
}

// sendMessage encodes a message for node.
func (f *fabric) sendMessage(node, channel int, v any) {
	if l := f.writable(node); l != nil {
		l.wbuf = appendMessage(l.wbuf, &f.scratch, channel, v)
	}
}

func (f *fabric) writable(node int) *link {
	if node < 0 || node >= len(f.links) || f.links[node] == nil || f.links[node].addr == "" {
		f.metrics.Dropped++
		return nil
	}
	l := f.links[node]
	if (l.c == nil || l.connecting) && len(l.wbuf) > maxParkedBytes {
		f.metrics.Dropped++
		return nil
	}
	f.metrics.FramesSent++
	if !l.dirty {
		l.dirty = true
		f.dirty = append(f.dirty, l)
	}
	return l
}

// flush writes what was sent in this turn: one call a connection.
func (f *fabric) flush() {
	for _, l := range f.dirty {
		l.dirty = false
		f.metrics.HighWaterBytes = max(f.metrics.HighWaterBytes, int64(len(l.wbuf)-l.sent))
		if l.c != nil && !l.connecting && !l.armed {
			f.write(l)
		}
	}
	f.dirty = f.dirty[:0]
}

// write hands the kernel what it takes and asks to be told when it takes more.
func (f *fabric) write(l *link) {
	if l.sent < len(l.wbuf) {
		n, err := rawWrite(l.c.fd, l.wbuf[l.sent:])
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			f.broken(l, err)
			return
		}
		l.sent += n
		f.metrics.SentBytes += int64(n)
	}
	if l.sent == len(l.wbuf) {
		l.wbuf, l.sent = l.wbuf[:0], 0
	} else if l.sent > len(l.wbuf)/2 {
		l.wbuf = l.wbuf[:copy(l.wbuf, l.wbuf[l.sent:])]
		l.sent = 0
	}
	if more := len(l.wbuf) > 0; more != l.armed {
		l.armed = more
		f.poll.modify(l.c.fd, interest(more), l.c.mark)
	}
}

func interest(write bool) uint32 {
	if write {
		return unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLOUT
	}
	return unix.EPOLLIN | unix.EPOLLRDHUP
}

// dial begins to connect; the outcome shows as readiness.
func (f *fabric) dial(l *link) {
	err := f.connect(l)
	if err != nil {
		f.retry(l)
	}
}

func (f *fabric) connect(l *link) error {
	sa, family, err := sockaddr(l.addr)
	if err != nil {
		return err
	}
	fd, err := newSocket(family)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		_ = unix.Close(fd) // the first error is the one that counts
		return fmt.Errorf("set TCP_NODELAY: %w", err)
	}
	if err := unix.Connect(fd, sa); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		_ = unix.Close(fd)
		return fmt.Errorf("connect to %s: %w", l.addr, err)
	}
	c := &conn{fd: fd, node: l.node, link: l}
	if err := f.register(c, interest(true)); err != nil {
		return err
	}
	l.c, l.connecting, l.armed = c, true, true
	return nil
}

// linkReady handles readiness of a dialled connection. Nothing is ever sent back on it, so that readable means broken.
func (f *fabric) linkReady(l *link, events uint32) {
	if l.connecting {
		code, err := unix.GetsockoptInt(l.c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			err = unix.Errno(code)
		}
		if err != nil {
			f.closeConn(l.c)
			l.c, l.connecting = nil, false
			f.retry(l)
			return
		}
		if events&unix.EPOLLOUT == 0 {
			return
		}
		f.greet(l)
		return
	}
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		f.broken(l, errors.New("closed by the other end"))
		return
	}
	if events&unix.EPOLLOUT != 0 {
		f.write(l)
	}
}

// greet says who dialled, ahead of all that has been parked.
func (f *fabric) greet(l *link) {
	hello := appendMessage(nil, &f.scratch, hostChannel, hostMsg{Type: hostHello, Node: f.node, Token: f.token})
	// The socket's buffer is empty: it takes the whole of this small frame.
	if n, err := rawWrite(l.c.fd, hello); err != nil || n != len(hello) {
		f.broken(l, fmt.Errorf("hello: %d of %d bytes: %v", n, len(hello), err))
		return
	}
	l.connecting, l.backoffNS = false, 0
	f.owner.linked(l.node)
	if l.c != nil && !l.connecting {
		f.write(l)
	}
}

// broken gives up a connection and what was on it; the node is dialled again.
func (f *fabric) broken(l *link, err error) {
	f.closeConn(l.c)
	l.c, l.connecting, l.armed = nil, false, false
	l.wbuf, l.sent = l.wbuf[:0], 0
	f.retry(l)
	f.owner.unlinked(l.node, err.Error())
}

func (f *fabric) retry(l *link) {
	l.backoffNS = min(max(2*l.backoffNS, backoffMinNS), backoffMaxNS)
	l.retryNS = f.clock() + l.backoffNS
	if f.retryNS == 0 || l.retryNS < f.retryNS {
		f.retryNS = l.retryNS
	}
}

func (f *fabric) redial(nowNS int64) {
	if nowNS < f.retryNS {
		return
	}
	f.retryNS = 0
	for _, l := range f.links {
		if l == nil || l.addr == "" || l.c != nil || l.retryNS == 0 {
			continue
		}
		if l.retryNS <= nowNS {
			l.retryNS = 0
			f.dial(l)
		} else if f.retryNS == 0 || l.retryNS < f.retryNS {
			f.retryNS = l.retryNS
		}
	}
}
