//go:build linux

package host

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/weir-bench/weir/engine/coord"
)

// proxy forwards connections and can cut those that are open.
type proxy struct {
	t    *testing.T
	ln   net.Listener
	real string
	mu   sync.Mutex
	open []net.Conn
	made int
}

func newProxy(t *testing.T, real string) *proxy {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return nil
	}
	p := &proxy{t: t, ln: ln, real: real}
	go p.serve()
	t.Cleanup(func() { _ = ln.Close(); p.cut() })
	return p
}

func (p *proxy) serve() {
	for {
		in, err := p.ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.real)
		if err != nil {
			_ = in.Close() // the dialler tries again
			continue
		}
		p.mu.Lock()
		p.open = append(p.open, in, out)
		p.made++
		p.mu.Unlock()
		go func() {
			_, _ = io.Copy(out, in) // ends when either side does
			_ = in.Close()
			_ = out.Close()
		}()
	}
}

// cut breaks the open connections and says how many there ever were.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close() // what was under way is to be lost
	}
	p.open = nil
	return p.made
}

// TestCutLink breaks the connection between two workers again and again: nothing is lost and nobody restarts.
func TestCutLink(t *testing.T) {
	feed := uniformFeed{keys: 1000, perSec: 300_000}
	c := newCounts()
	proxies := make(chan *proxy, 2)
	r := start(t, Config{Job: countJob("cut", "", false), Feed: feed, Due: feed.paced, Collect: c.collect,
		Address: func(from, to int, real string) string {
			if from == 0 || to == 0 {
				return real
			}
			p := newProxy(t, real)
			proxies <- p
			return p.ln.Addr().String()
		}})
	r.await(coord.TraceStarted, 1)
	one, two := <-proxies, <-proxies
	for n := range uint64(20) {
		r.awaitOutputs(c, (n+1)*10_000)
		one.cut()
		two.cut()
	}
	bounds, total := r.finishNow()
	c.check(t, feed, bounds)
	if c.outputs != total || c.repeats != 0 {
		t.Errorf("%d outputs, %d out of turn; want %d and none", c.outputs, c.repeats, total)
	}
	if n := r.count(coord.TraceDetected); n > 0 {
		t.Errorf("%d workers were declared lost", n)
	}
	if n := one.cut() + two.cut(); n < 10 {
		t.Errorf("%d connections were made, so hardly any was cut", n)
	}
}
