package chaos

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// chunkBytes is the most that is read at once under limits.
	chunkBytes = 64 << 10
	// maxQueuedBytes bounds what a delayed direction holds: its throughput is at most this per latency.
	maxQueuedBytes = 32 << 20
)

// past is a deadline that ends a blocked read at once.
var past = time.Unix(1, 0)

// pair is an accepted connection (near) and the one to the real address (far).
type pair struct {
	wire      *wire
	near, far *net.TCPConn
	pumps     [2]*pump
	dead      chan struct{} // closed by the first reset
	once      sync.Once
}

// pump passes the bytes of one direction on. It belongs to one goroutine, but for epoch and queued (the wire's lock).
type pump struct {
	pair     *pair
	src, dst *net.TCPConn
	bucket   *bucket
	buf      []byte
	queue    []chunk
	left     time.Time // when the last byte in the queue leaves the bucket
	eof      bool

	epoch  uint64 // of the state it works under
	queued int64
}

// chunk is a run of bytes under limits. It is passed on Latency after it has left the bucket.
type chunk struct {
	bytes []byte
	left  time.Time
}

func newPair(e *edge, near, far *net.TCPConn) *pair {
	c := &pair{wire: e.wire, near: near, far: far, dead: make(chan struct{})}
	forth := 0 // the direction in which the dialler's bytes go
	if e.from != e.wire.link.A {
		forth = 1
	}
	c.pumps[0] = &pump{pair: c, src: near, dst: far, bucket: &e.wire.buckets[forth], epoch: noEpoch}
	c.pumps[1] = &pump{pair: c, src: far, dst: near, bucket: &e.wire.buckets[1-forth], epoch: noEpoch}
	return c
}

// noEpoch is the epoch of a pump that has not begun.
const noEpoch = ^uint64(0)

// run passes bytes on both ways until both have ended.
func (c *pair) run() {
	var back sync.WaitGroup
	back.Go(c.pumps[1].run)
	c.pumps[0].run()
	back.Wait()
	_ = c.near.Close() // both ends have said that they are done, or it was reset
	_ = c.far.Close()
}

// reset breaks both connections so that either side sees a reset.
func (c *pair) reset() {
	c.once.Do(func() {
		close(c.dead)
		abort(c.near)
		abort(c.far)
	})
}

// abort closes a connection with a reset instead of a goodbye.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0) // fails only if it is broken already
	_ = c.Close()
}

// interrupt makes both pumps look at the state again. The wire's lock is held.
func (c *pair) interrupt() {
	_ = c.near.SetReadDeadline(past) // fails only if it is closed, and then its pump ends
	_ = c.far.SetReadDeadline(past)
}

func (u *pump) run() {
	w := u.pair.wire
	for {
		w.mu.Lock()
		state, changed := w.state, w.changed
		u.epoch = w.epoch
		_ = u.src.SetReadDeadline(time.Time{}) // under the lock, so that no interruption is lost
		w.mu.Unlock()
		var done bool
		var err error
		switch {
		case state.Stall:
			select {
			case <-changed:
			case <-u.pair.dead:
				done = true
			}
		case state.shaped():
			done, err = u.shape(state, changed)
		default:
			done, err = u.pass()
		}
		if err != nil {
			u.pair.reset()
			return
		}
		if done {
			return
		}
	}
}

// pass sends on what is held and then lets the kernel move bytes (splice) until it is interrupted.
func (u *pump) pass() (done bool, err error) {
	for len(u.queue) > 0 {
		if err := u.send(); err != nil {
			return false, err
		}
	}
	if u.eof {
		return true, u.dst.CloseWrite()
	}
	n, err := u.dst.ReadFrom(u.src)
	u.count(n, 0)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, u.dst.CloseWrite()
}

// count adds to what was passed on and to what is held.
func (u *pump) count(passed, held int64) {
	w := u.pair.wire
	w.mu.Lock()
	w.stats.PassedBytes += passed
	u.queued += held
	w.mu.Unlock()
}

// send passes the head of the queue on.
func (u *pump) send() error {
	b := u.queue[0].bytes
	u.queue[0] = chunk{}
	u.queue = u.queue[1:]
	_, err := u.dst.Write(b)
	u.count(int64(len(b)), -int64(len(b)))
	return err
}

// shape passes bytes on under limits until the state changes.
func (u *pump) shape(s LinkState, changed <-chan struct{}) (done bool, err error) {
	if u.buf == nil {
		u.buf = make([]byte, chunkBytes)
	}
	for {
		select {
		case <-changed:
			return false, nil
		case <-u.pair.dead:
			return true, nil
		default:
		}
		now := time.Now()
		for len(u.queue) > 0 && !u.queue[0].left.Add(s.Latency).After(now) {
			if err := u.send(); err != nil {
				return false, err
			}
		}
		if u.eof && len(u.queue) == 0 {
			return true, u.dst.CloseWrite()
		}
		var wake time.Time // zero: nothing is held
		if len(u.queue) > 0 {
			wake = u.queue[0].left.Add(s.Latency)
		}
		full := u.eof || u.queued >= maxQueuedBytes
		if s.BytesPerSecond > 0 && u.left.After(now) {
			full = true // what is not let in yet stays with the sender
			if len(u.queue) == 0 || u.left.Before(wake) {
				wake = u.left
			}
		}
		if full {
			u.wait(wake.Sub(now), changed)
		} else if err := u.read(s, wake, changed); err != nil {
			return false, err
		}
	}
}

// wait lasts d, less if the state changes.
func (u *pump) wait(d time.Duration, changed <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-u.pair.dead:
	}
}

// read takes one chunk in, if one comes before wake (zero: whenever) and before the state changes.
func (u *pump) read(s LinkState, wake time.Time, changed <-chan struct{}) error {
	w := u.pair.wire
	w.mu.Lock()
	if w.changed != changed { // its interruption must not be undone
		w.mu.Unlock()
		return nil
	}
	_ = u.src.SetReadDeadline(wake) // fails only if it is closed, which the read will say
	w.mu.Unlock()
	n, err := u.src.Read(u.buf[:pieceBytes(s.BytesPerSecond)])
	if n > 0 {
		left := time.Now()
		if s.BytesPerSecond > 0 {
			left = u.bucket.take(left, n, s.BytesPerSecond)
		}
		u.left = left
		u.queue = append(u.queue, chunk{append([]byte(nil), u.buf[:n]...), left})
		u.count(0, int64(n))
	}
	if errors.Is(err, io.EOF) {
		u.eof = true
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}
