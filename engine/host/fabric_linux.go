package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/weir-bench/weir/engine/core"
)

const (
	// readBufferBytes holds one full batch: what is read at once should still be in the cache when it is worked on.
	readBufferBytes   = 128 << 10
	socketBufferBytes = 4 << 20
	// maxParkedBytes bounds what waits for a node that cannot be reached yet; what exceeds it is dropped and sent
	// again from the sender logs.
	maxParkedBytes = 16 << 20
	backoffMinNS   = 1e6
	backoffMaxNS   = 100e6
)

// events is what a fabric tells the owner of its machine; all calls come from the loop.
type events interface {
	// frame hands over a decoded frame of node. The fabric keeps its reference.
	frame(node int, b *core.Batch)
	// up says that node has dialled this process, and linked that this process has reached node.
	up(node int)
	linked(node int)
	// lost says that node's connection to this process broke, and unlinked that this process's to node did.
	lost(node int, why string)
	unlinked(node int, why string)
}

// fabric is all connections of one event loop.
type fabric struct {
	node   int
	token  string
	addr   string // of the listener
	poll   *poller
	pool   *core.Pool
	clock  func() int64
	owner  events
	listen int

	conns   []*conn // by descriptor
	links   []*link // by node
	dirty   []*link
	marks   int32
	retryNS int64 // when the next link wants to be dialled again; 0: none
	scratch core.Batch
	metrics WireMetrics
}

// conn is an accepted or dialled connection.
type conn struct {
	fd   int
	mark int32 // tells this use of the descriptor from earlier ones in pending events
	node int   // the other end; -1: has not said
	link *link
	buf  []byte // of an accepted one: read but not decoded
	r, w int
}

// link is the sending way to a node, whether there is a connection or not.
type link struct {
	node       int
	addr       string
	c          *conn
	connecting bool
	wbuf       []byte
	sent       int // of wbuf
	armed      bool
	dirty      bool
	retryNS    int64
	backoffNS  int64
}

func newFabric(node int, token, listen string, clock func() int64, owner events, pool *core.Pool) (*fabric, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	f := &fabric{node: node, token: token, poll: p, pool: pool, clock: clock, owner: owner, listen: -1}
	if err := f.open(listen); err != nil {
		p.close()
		return nil, err
	}
	return f, nil
}

func sockaddr(addr string) (unix.Sockaddr, int, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, 0, fmt.Errorf("address %q: want ip:port: %w", addr, err)
	}
	if ap.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}, unix.AF_INET, nil
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}, unix.AF_INET6, nil
}

func newSocket(family int) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("create socket: %w", err)
	}
	// Forcing needs a privilege; without it the kernel's own sizing is better than its limit for explicit sizes.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBufferBytes)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBufferBytes)
	return fd, nil
}

func (f *fabric) open(listen string) error {
	sa, family, err := sockaddr(listen)
	if err != nil {
		return err
	}
	fd, err := newSocket(family)
	if err != nil {
		return err
	}
	fail := func(err error) error {
		_ = unix.Close(fd) // the first error is the one to report
		return fmt.Errorf("listen on %s: %w", listen, err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fail(err)
	}
	if err := unix.Bind(fd, sa); err != nil {
		return fail(err)
	}
	if err := unix.Listen(fd, 128); err != nil {
		return fail(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return fail(err)
	}
	switch b := bound.(type) {
	case *unix.SockaddrInet4:
		f.addr = netip.AddrPortFrom(netip.AddrFrom4(b.Addr), uint16(b.Port)).String()
	case *unix.SockaddrInet6:
		f.addr = netip.AddrPortFrom(netip.AddrFrom16(b.Addr), uint16(b.Port)).String()
	}
	if err := f.poll.add(fd, unix.EPOLLIN, 0); err != nil {
		return fail(err)
	}
	f.listen = fd
	return nil
}

// turn waits for at most timeoutNS and handles what is ready: each connection is read from once, so that none starves
// the others.
func (f *fabric) turn(timeoutNS int64) {
	for _, ev := range f.poll.wait(timeoutNS) {
		fd := int(ev.Fd)
		switch {
		case fd == f.poll.wakeFD:
			f.poll.drain()
		case fd == f.listen:
			f.accept()
		case fd < len(f.conns) && f.conns[fd] != nil && f.conns[fd].mark == ev.Pad:
			c := f.conns[fd]
			if c.link != nil {
				f.linkReady(c.link, ev.Events)
			} else {
				f.read(c)
			}
		}
	}
	if f.retryNS > 0 {
		f.redial(f.clock())
	}
}

// timeout shortens timeoutNS so that the next redial is on time.
func (f *fabric) timeout(nowNS, timeoutNS int64) int64 {
	if f.retryNS > 0 {
		return max(0, min(timeoutNS, f.retryNS-nowNS))
	}
	return timeoutNS
}

// register begins to watch a connection. On an error its descriptor is closed.
func (f *fabric) register(c *conn, events uint32) error {
	f.marks++
	c.mark = f.marks
	if err := f.poll.add(c.fd, events, c.mark); err != nil {
		_ = unix.Close(c.fd) // nothing was sent on it
		return err
	}
	for len(f.conns) <= c.fd {
		f.conns = append(f.conns, nil)
	}
	f.conns[c.fd] = c
	return nil
}

func (f *fabric) closeConn(c *conn) {
	f.conns[c.fd] = nil
	_ = unix.Close(c.fd) // what was under way counts as lost in any case
}

func (f *fabric) accept() {
	for {
		fd, _, err := unix.Accept4(f.listen, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return // none left, or the one that waited has gone
		}
		if err := f.register(&conn{fd: fd, node: -1, buf: make([]byte, readBufferBytes)}, unix.EPOLLIN); err != nil {
			continue // the dialler tries again
		}
	}
}

// read takes what one call gives and hands on the whole frames in it.
func (f *fabric) read(c *conn) {
	n, err := rawRead(c.fd, c.buf[c.w:])
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return
	}
	if err != nil || n == 0 {
		f.drop(c, "connection closed", err)
		return
	}
	c.w += n
	f.metrics.ReceivedBytes += int64(n)
	now := f.clock()
	for {
		size, err := core.FrameSize(c.buf[c.r:c.w])
		if err != nil {
			f.drop(c, "connection refused", err)
			return
		}
		if size == 0 || size > c.w-c.r {
			c.makeRoom(size)
			return
		}
		if err := f.decode(c, c.buf[c.r:c.r+size], now); err != nil {
			f.drop(c, "connection refused", err)
			return
		}
		if f.conns[c.fd] != c {
			return // closed by its own frame
		}
		c.r += size
	}
}

// makeRoom moves the rest to the head of the buffer, grown so that a frame of size fits.
func (c *conn) makeRoom(size int) {
	rest := c.w - c.r
	if size > len(c.buf) {
		grown := make([]byte, max(size, 2*len(c.buf)))
		copy(grown, c.buf[c.r:c.w])
		c.buf = grown
	} else if c.r > 0 {
		copy(c.buf, c.buf[c.r:c.w])
	}
	c.r, c.w = 0, rest
}

func (f *fabric) decode(c *conn, p []byte, now int64) error {
	b := f.pool.Get()
	defer b.Release()
	if err := core.DecodeFrame(b, p); err != nil {
		return err
	}
	f.metrics.FramesReceived++
	b.ArrivedNS = now
	if c.node >= 0 {
		f.owner.frame(c.node, b)
		return nil
	}
	var m hostMsg
	if b.Kind != core.KindMessage || b.Channel != hostChannel {
		return errors.New("the first frame is not a hello")
	}
	if err := json.Unmarshal(b.Ext, &m); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	if m.Type != hostHello || m.Token != f.token || m.Node < 0 || m.Node > maxNode {
		return fmt.Errorf("hello of node %d is not of this run", m.Node)
	}
	f.supersede(m.Node)
	c.node = m.Node
	f.owner.up(c.node)
	return nil
}

// supersede closes an earlier connection of a node that has dialled again. What may still be on it is older than what
// comes now, and a stale ack behind a newer one would ask for what is no longer kept.
func (f *fabric) supersede(node int) {
	for _, c := range f.conns {
		if c != nil && c.link == nil && c.node == node {
			f.closeConn(c)
		}
	}
}

// drop closes an accepted connection because of what happened on it.
func (f *fabric) drop(c *conn, why string, err error) {
	if err != nil {
		why = fmt.Sprintf("%s: %v", why, err)
	}
	f.closeConn(c)
	if c.node >= 0 {
		f.owner.lost(c.node, why)
	}
}

// closeConns closes all connections; the fabric is of no use afterwards.
func (f *fabric) closeConns() {
	for _, c := range f.conns {
		if c != nil {
			f.closeConn(c)
		}
	}
	f.conns = nil
}

func (f *fabric) close() {
	f.closeConns()
	if f.listen >= 0 {
		_ = unix.Close(f.listen) // nothing to lose in it
	}
	f.poll.close()
}
