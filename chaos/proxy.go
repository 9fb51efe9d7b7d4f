package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// ErrNoLink says that a link has no proxy.
var ErrNoLink = errors.New("the link has no proxy")

// ErrClosed says that something was closed before.
var ErrClosed = errors.New("closed")

// LinkState is what a link does to the bytes on it. The zero value passes them on.
type LinkState struct {
	// Cut resets all connections and refuses new ones.
	Cut bool
	// Stall holds all bytes. Connections can still be made, as the kernel buffers bytes and handshakes; up to a pipe
	// (1 MiB at most) and the socket buffers of what has been sent already may still arrive, as in a real network.
	Stall bool
	// Latency is added to each direction, in order. A direction holds at most maxQueuedBytes.
	Latency time.Duration
	// BytesPerSecond limits each direction, over all connections of the link; 0: no limit.
	BytesPerSecond int64
}

func (s LinkState) shaped() bool { return s.Latency > 0 || s.BytesPerSecond > 0 }

// LinkStats counts what has happened on a link.
type LinkStats struct {
	Accepted, Reset uint64
	// Open are the connections now, OfDirections twice that; Directions of them work under the state set last.
	Open, Directions, OfDirections int
	// PassedBytes have been passed on (a direction without limits counts when it is interrupted or ends), HeldBytes
	// wait in the proxy or in its sockets.
	PassedBytes, HeldBytes int64
}

// Proxy stands in the middle of connections between nodes on loopback. It is safe for concurrent use.
//
// A dialler that a proxy has accepted is reset when the real address does not answer.
type Proxy struct {
	ctx    context.Context
	cancel context.CancelFunc
	wires  []*wire // fixed
	edges  []*edge // fixed
	wg     sync.WaitGroup
	once   sync.Once
}

// wire is a link: its state and its connections.
type wire struct {
	link Link
	// buckets limit the directions A to B and B to A.
	buckets [2]bucket

	mu      sync.Mutex
	closed  bool
	state   LinkState
	epoch   uint64        // counts states
	cuts    uint64        // counts cuts
	changed chan struct{} // closed at the next state
	pairs   []*pair
	stats   LinkStats
}

// edge is where node from reaches node to.
type edge struct {
	from, to int
	wire     *wire
	hold     *reservation
	addr     string

	// All below is under the wire's lock.
	listener *net.TCPListener // nil: refused
	real     string
}

// NewProxy opens an address on loopback for each direction of each link. Close it.
func NewProxy(links []Link) (*Proxy, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{ctx: ctx, cancel: cancel}
	for _, l := range links {
		w := &wire{link: Between(l.A, l.B), changed: make(chan struct{})}
		if p.wire(w.link) != nil {
			continue
		}
		p.wires = append(p.wires, w)
		for _, e := range []*edge{{from: w.link.A, to: w.link.B, wire: w}, {from: w.link.B, to: w.link.A, wire: w}} {
			hold, err := reserve()
			if err == nil {
				e.hold, e.addr = hold, hold.addr
				p.edges = append(p.edges, e)
				w.mu.Lock()
				err = p.listen(e)
				w.mu.Unlock()
			}
			if err != nil {
				return nil, errors.Join(fmt.Errorf("open a proxy from node %d to %d: %w", e.from, e.to, err), p.Close())
			}
		}
	}
	return p, nil
}

func (p *Proxy) wire(l Link) *wire {
	for _, w := range p.wires {
		if w.link == Between(l.A, l.B) {
			return w
		}
	}
	return nil
}

// Address returns where node from is to reach node to, whose own address is real: the proxy's, or real if the link has
// none. A later call gives a node a new real address. It does not block on the network.
func (p *Proxy) Address(from, to int, real string) string {
	for _, e := range p.edges {
		if e.from == from && e.to == to {
			e.wire.mu.Lock()
			e.real = real
			e.wire.mu.Unlock()
			return e.addr
		}
	}
	return real
}

// Set gives a link a new state at once, for connections that are open too, and returns how many were reset. What is
// held goes on in order when the new state lets it.
func (p *Proxy) Set(l Link, s LinkState) (reset int, err error) {
	w := p.wire(l)
	if w == nil {
		return 0, fmt.Errorf("link %s: %w", l, ErrNoLink)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, fmt.Errorf("set link %s: %w", l, ErrClosed)
	}
	w.state = s
	w.epoch++
	if s.Cut {
		w.cuts++
	}
	close(w.changed)
	w.changed = make(chan struct{})
	for _, e := range p.edges {
		if e.wire != w {
			continue
		}
		if s.Cut && e.listener != nil {
			e.stop()
		} else if !s.Cut && e.listener == nil {
			err = errors.Join(err, p.listen(e))
		}
	}
	for _, c := range w.pairs {
		if s.Cut {
			reset++
			c.reset()
		} else {
			c.interrupt()
		}
	}
	w.stats.Reset += uint64(reset)
	return reset, err
}

// Stats returns the counts of a link.
func (p *Proxy) Stats(l Link) (LinkStats, error) {
	w := p.wire(l)
	if w == nil {
		return LinkStats{}, fmt.Errorf("link %s: %w", l, ErrNoLink)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Open, s.OfDirections = len(w.pairs), 2*len(w.pairs)
	for _, c := range w.pairs {
		for _, u := range c.pumps {
			if u.epoch == w.epoch {
				s.Directions++
			}
			s.HeldBytes += u.queued + unread(u.src)
		}
	}
	return s, nil
}

// refuses says whether attempts to connect over a link are refused now, by making one in each direction.
func (p *Proxy) refuses(ctx context.Context, l Link) (refused int, err error) {
	for _, e := range p.edges {
		if e.wire.link != Between(l.A, l.B) {
			continue
		}
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp4", e.addr)
		if err == nil {
			return refused, errors.Join(fmt.Errorf("a connection from node %d to %d was accepted", e.from, e.to), c.Close())
		}
		if !isRefused(err) {
			return refused, fmt.Errorf("try to connect from node %d to %d: %w", e.from, e.to, err)
		}
		refused++
	}
	return refused, nil
}

// Close resets all connections, closes all addresses and waits until nothing is left. It may be called again.
func (p *Proxy) Close() (err error) {
	p.once.Do(func() { err = p.close() })
	return err
}

func (p *Proxy) close() error {
	p.cancel()
	for _, w := range p.wires {
		w.mu.Lock()
		w.closed = true
		for _, e := range p.edges {
			if e.wire == w && e.listener != nil {
				e.stop()
			}
		}
		for _, c := range w.pairs {
			c.reset()
		}
		w.mu.Unlock()
	}
	p.wg.Wait()
	var err error
	for _, e := range p.edges {
		err = errors.Join(err, e.hold.close())
	}
	return err
}

// listen opens an edge's address again. The wire's lock is held.
func (p *Proxy) listen(e *edge) error {
	ln, err := e.hold.listen(p.ctx)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", e.addr, err)
	}
	e.listener = ln
	p.wg.Go(func() { p.accept(e, ln) })
	return nil
}

// stop closes an edge's address; the kernel resets what it had not handed over yet. The wire's lock is held.
func (e *edge) stop() {
	_ = e.listener.Close() // it is a socket of ours: there is nothing to lose in it
	e.listener = nil
}

func (p *Proxy) accept(e *edge, ln *net.TCPListener) {
	for {
		c, err := ln.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of files, or a dialler that left: the next attempt may succeed, after those that wait were served.
			select {
			case <-p.ctx.Done():
			case <-time.After(time.Millisecond):
			}
			continue
		}
		p.wg.Go(func() { p.serve(e, c) })
	}
}

// dialTimeout bounds how long a real address may leave an attempt unanswered.
const dialTimeout = 5 * time.Second

// serve connects an accepted connection to the real address and passes bytes on until both directions have ended.
func (p *Proxy) serve(e *edge, near *net.TCPConn) {
	w := e.wire
	w.mu.Lock()
	w.stats.Accepted++
	cuts, real, refuse := w.cuts, e.real, w.state.Cut
	w.mu.Unlock()
	d := net.Dialer{Timeout: dialTimeout}
	var far net.Conn
	err := net.ErrClosed
	if !refuse && real != "" {
		far, err = d.DialContext(p.ctx, "tcp", real)
	}
	if err != nil {
		abort(near)
		return
	}
	c := newPair(e, near, far.(*net.TCPConn))
	w.mu.Lock()
	if w.closed || w.cuts != cuts {
		w.stats.Reset++
		w.mu.Unlock()
		abort(near)
		abort(c.far)
		return
	}
	w.pairs = append(w.pairs, c)
	w.mu.Unlock()
	c.run()
	w.mu.Lock()
	w.pairs = slices.DeleteFunc(w.pairs, func(o *pair) bool { return o == c })
	w.mu.Unlock()
}

// settled waits until all directions of a link work under its state, for at most limit, and returns the counts then.
func (p *Proxy) settled(l Link, limit time.Duration) (LinkStats, error) {
	deadline := time.Now().Add(limit)
	for {
		s, err := p.Stats(l)
		if err != nil || s.Directions == s.OfDirections || time.Now().After(deadline) {
			return s, err
		}
		time.Sleep(100 * time.Microsecond) // a pump tells nobody when it looks at the state
	}
}
