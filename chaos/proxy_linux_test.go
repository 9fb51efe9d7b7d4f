package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var seedFlag = flag.Uint64("seed", 1, "seed of the randomised tests")

// patience is how long a test waits for what has to happen.
const patience = 10 * time.Second

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came true that %s", what)
		}
	}
}

// far is the real address of a node.
type far struct {
	*net.TCPListener
}

func listenFar(t testing.TB) far {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // some tests have closed it
	return far{ln.(*net.TCPListener)}
}

// connect returns both ends of a connection through addr to f.
func (f far) connect(t testing.TB, addr string) (near, end *net.TCPConn) {
	t.Helper()
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	end, err = f.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	near = c.(*net.TCPConn)
	for _, c := range []*net.TCPConn{near, end} {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // may be closed already
	}
	return near, end
}

func newProxy(t testing.TB, links ...Link) *Proxy {
	t.Helper()
	p, err := NewProxy(links)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func set(t testing.TB, p *Proxy, s LinkState) int {
	t.Helper()
	n, err := p.Set(Between(1, 2), s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func say(t testing.TB, c net.Conn, b ...byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

func hear(t testing.TB, c net.Conn, want ...byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

func TestProxyPassesBytesAndGoodbyesBothWays(t *testing.T) {
	f := listenFar(t)
	p := newProxy(t, Between(2, 1))
	near, end := f.connect(t, p.Address(1, 2, f.Addr().String()))
	data := make([]byte, 8<<20)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(data) // never fails
	for _, c := range [][2]*net.TCPConn{{near, end}, {end, near}} {
		sent := make(chan error, 1)
		go func() {
			_, err := c[0].Write(data)
			sent <- errors.Join(err, c[0].CloseWrite())
		}()
		h := sha256.New()
		if n, err := io.Copy(h, c[1]); err != nil || n != int64(len(data)) || [32]byte(h.Sum(nil)) != sha256.Sum256(data) {
			t.Fatalf("%d bytes, %v, or not the same ones", n, err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the connection is forgotten", func() bool {
		s, err := p.Stats(Between(1, 2))
		return err == nil && s.Open == 0 && s.PassedBytes == 2*int64(len(data)) && s.Accepted == 1
	})
}

func TestProxyStandsOnlyWhereItIsNeeded(t *testing.T) {
	p := newProxy(t, Between(1, 2))
	if a := p.Address(1, 3, "10.0.0.1:5"); a != "10.0.0.1:5" {
		t.Errorf("a link without faults goes through %s", a)
	}
	if _, err := p.Set(Between(1, 3), LinkState{Cut: true}); !errors.Is(err, ErrNoLink) {
		t.Errorf("cut a link without a proxy: %v", err)
	}
	old, next := listenFar(t), listenFar(t)
	a := p.Address(1, 2, old.Addr().String())
	if b := p.Address(2, 1, old.Addr().String()); a == b {
		t.Error("both directions have one address")
	}
	near, end := old.connect(t, a)
	if b := p.Address(1, 2, next.Addr().String()); a != b {
		t.Errorf("the address changed from %s to %s with the real one", a, b)
	}
	near2, end2 := next.connect(t, a) // a node that was started again
	say(t, near, 'o')
	hear(t, end, 'o')
	say(t, near2, 'n')
	hear(t, end2, 'n')
}

func TestDiallerIsResetWhenTheRealAddressIsDead(t *testing.T) {
	f := listenFar(t)
	p := newProxy(t, Between(1, 2))
	addr := p.Address(1, 2, f.Addr().String())
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp4", addr)
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		_ = c.Close() // it was reset
	}
	if !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a dead node behind the proxy: %v, want a reset", err)
	}
}

func TestCutResetsRefusesAndHeals(t *testing.T) {
	f := listenFar(t)
	p := newProxy(t, Between(1, 2))
	addr := p.Address(1, 2, f.Addr().String())
	near, end := f.connect(t, addr)
	say(t, near, 'a')
	hear(t, end, 'a')
	if n := set(t, p, LinkState{Cut: true}); n != 1 {
		t.Errorf("%d connections were reset, want 1", n)
	}
	for name, c := range map[string]net.Conn{"dialler": near, "other": end} {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("the %s end sees %v, want a reset", name, err)
		}
	}
	if n, err := p.refuses(context.Background(), Between(1, 2)); err != nil || n != 2 {
		t.Errorf("%d directions refuse, %v", n, err)
	}
	if c, err := net.Dial("tcp4", addr); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a new connection: %v, %v, want a refusal", c, err)
	}
	if ln, err := net.Listen("tcp4", addr); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("another program can take the address of a cut link: %v, %v", ln, err)
	}
	if n := set(t, p, LinkState{}); n != 0 {
		t.Errorf("healing reset %d connections", n)
	}
	if n, err := p.refuses(context.Background(), Between(1, 2)); err == nil || n != 0 {
		t.Errorf("%d directions refuse after healing", n)
	}
	eventually(t, "the attempt above has reached f", func() bool {
		s, err := p.Stats(Between(1, 2))
		return err == nil && s.Open == 1 && s.Accepted > 1
	})
	g := listenFar(t)
	p.Address(1, 2, g.Addr().String())
	near, end = g.connect(t, addr)
	say(t, end, 'b')
	hear(t, near, 'b')
}

func TestStallHoldsAndLetsGo(t *testing.T) {
	f := listenFar(t)
	p := newProxy(t, Between(1, 2))
	near, end := f.connect(t, p.Address(1, 2, f.Addr().String()))
	say(t, near, 'a')
	hear(t, end, 'a')
	set(t, p, LinkState{Stall: true})
	eventually(t, "both directions stand", func() bool {
		s, err := p.Stats(Between(1, 2))
		return err == nil && s.Directions == 2 && s.OfDirections == 2
	})
	say(t, near, []byte("held")...)
	if err := near.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "four bytes are held", func() bool {
		s, err := p.Stats(Between(1, 2))
		return err == nil && s.HeldBytes == 4
	})
	if err := end.SetReadDeadline(time.Now().Add(20 * ms)); err != nil {
		t.Fatal(err)
	}
	if n, err := end.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes came through a stalled link, %v", n, err)
	}
	if err := end.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	set(t, p, LinkState{})
	if b, err := io.ReadAll(end); err != nil || string(b) != "held" {
		t.Errorf("after healing came %q, %v", b, err)
	}
}

// roundTrip returns the quickest of n.
func roundTrip(t *testing.T, near, end *net.TCPConn, n int) time.Duration {
	t.Helper()
	best := time.Hour
	for range n {
		begin := time.Now()
		say(t, near, 'x')
		hear(t, end, 'x')
		say(t, end, 'y')
		hear(t, near, 'y')
		best = min(best, time.Since(begin))
	}
	return best
}

func TestDelayComesAndGoes(t *testing.T) {
	const latency = 15 * ms
	f := listenFar(t)
	p := newProxy(t, Between(1, 2))
	near, end := f.connect(t, p.Address(1, 2, f.Addr().String()))
	before := roundTrip(t, near, end, 50)
	set(t, p, LinkState{Latency: latency})
	if _, err := p.settled(Between(1, 2), patience); err != nil {
		t.Fatal(err)
	}
	during := roundTrip(t, near, end, 6)
	set(t, p, LinkState{})
	after := roundTrip(t, near, end, 50)
	if during < 2*latency || during > 3*latency {
		t.Errorf("a round trip with %v each way took %v", latency, during)
	}
	if before > latency/2 || after > latency/2 {
		t.Errorf("a round trip took %v before and %v after the delay", before, after)
	}
}

func TestDelayEndsForWhatIsHeld(t *testing.T) {
	f := listenFar(t)
	p := newProxy(t, Between(1, 2))
	near, end := f.connect(t, p.Address(1, 2, f.Addr().String()))
	set(t, p, LinkState{Latency: time.Hour})
	say(t, near, []byte("late")...)
	eventually(t, "it is held", func() bool {
		s, err := p.Stats(Between(1, 2))
		return err == nil && s.HeldBytes == 4
	})
	set(t, p, LinkState{})
	hear(t, end, []byte("late")...)
}

func TestBandwidthIsSharedByTheConnectionsOfADirection(t *testing.T) {
	const rate, each = 4 << 20, 512 << 10
	f := listenFar(t)
	p := newProxy(t, Between(1, 2))
	addr := p.Address(1, 2, f.Addr().String())
	set(t, p, LinkState{BytesPerSecond: rate})
	begin := time.Now()
	done := make(chan error, 2)
	for range 2 {
		near, end := f.connect(t, addr)
		go func() {
			_, err := near.Write(make([]byte, each))
			done <- errors.Join(err, near.CloseWrite())
		}()
		go func() {
			n, err := io.Copy(io.Discard, end)
			if n != each {
				err = errors.Join(err, io.ErrShortWrite)
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	// All but the credit of 10 ms at the start is paid for; late timers are made up, a busy machine may add to it.
	want := time.Duration(2*each)*time.Second/rate - creditTime
	if took := time.Since(begin); took < want || took > 3*want {
		t.Errorf("%d bytes at %d a second took %v, want %v", 2*each, rate, took, want)
	}
}

// A change of state that comes between looking at the state and reading must not be slept through.
func TestReadUnderAnOldStateReturns(t *testing.T) {
	f := listenFar(t)
	near, end := f.connect(t, f.Addr().String())
	say(t, end, 'x')
	if err := near.SetReadDeadline(past); err != nil { // what interrupt does
		t.Fatal(err)
	}
	w := &wire{changed: make(chan struct{})}
	u := &pump{pair: &pair{wire: w}, src: near, bucket: &w.buckets[0], buf: make([]byte, chunkBytes)}
	if err := u.read(LinkState{Latency: ms}, time.Now().Add(patience), make(chan struct{})); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(u.buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the interruption was undone: %v", err)
	}
}

func TestBucket(t *testing.T) {
	var b bucket
	at := time.Unix(1000, 0)
	for i, c := range []struct {
		after time.Duration
		bytes int
		want  time.Duration
	}{
		{0, 1000, -10*ms + ms}, // the credit of an idle bucket
		{0, 9000, 0},           // is used up here
		{0, 5000, 5 * ms},
		{2 * ms, 1000, 6 * ms},    // behind what is in it
		{100 * ms, 1000, 91 * ms}, // idle again: credit is bounded
	} {
		if got := b.take(at.Add(c.after), c.bytes, 1_000_000).Sub(at); got != c.want {
			t.Errorf("step %d leaves at %v, want %v", i, got, c.want)
		}
	}
}

// Whatever happens to a link but a cut, its bytes arrive, in order.
func TestOrderSurvivesAllStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seedFlag, 2))
	f := listenFar(t)
	p := newProxy(t, Between(1, 2))
	near, end := f.connect(t, p.Address(1, 2, f.Addr().String()))
	const words = 1 << 20
	sent := make(chan error, 1)
	go func() {
		buf := make([]byte, 0, words*8)
		for i := range uint64(words) {
			buf = binary.LittleEndian.AppendUint64(buf, i)
		}
		_, err := near.Write(buf)
		sent <- errors.Join(err, near.CloseWrite())
	}()
	read := make(chan uint64, 1)
	go func() {
		in, n := make([]byte, 8), uint64(0)
		for ; ; n++ {
			if _, err := io.ReadFull(end, in); err != nil || binary.LittleEndian.Uint64(in) != n {
				break
			}
			if n%(words/64) == 0 {
				time.Sleep(ms) // a receiver that is slower at times blocks the proxy's writes
			}
		}
		read <- n
	}()
	for range 120 {
		switch s := (LinkState{}); rng.IntN(4) {
		case 0:
			s.Stall = true
			set(t, p, s)
		case 1:
			s.Latency = time.Duration(rng.IntN(3)) * ms
			set(t, p, s)
		case 2:
			s.Latency, s.BytesPerSecond = ms, 20<<20
			set(t, p, s)
		default:
			set(t, p, s)
		}
		time.Sleep(time.Duration(rng.IntN(1500)) * time.Microsecond) // the states last so long
	}
	set(t, p, LinkState{})
	if n := <-read; n != words {
		t.Errorf("order broke after %d of %d words: go test ./chaos -run OrderSurvives -seed=%d", n, words, *seedFlag)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	f := listenFar(t)
	p, err := NewProxy([]Link{Between(1, 2), Between(1, 3), Between(1, 2)})
	if err != nil {
		t.Fatal(err)
	}
	addr := p.Address(1, 2, f.Addr().String())
	for _, s := range []LinkState{{}, {Stall: true}, {Latency: time.Hour}, {BytesPerSecond: 1}} {
		set(t, p, s)
		near, _ := f.connect(t, addr)
		say(t, near, make([]byte, 4096)...)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<20)
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	if all := string(buf[:runtime.Stack(buf, true)]); strings.Contains(all, "chaos.(*pump)") || strings.Contains(all, "chaos.(*Proxy)") {
		t.Errorf("goroutines are left:\n%s", all)
	}
	ln, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Fatalf("the address is not free: %v", err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Set(Between(1, 2), LinkState{}); !errors.Is(err, ErrClosed) {
		t.Errorf("set a closed proxy: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("close twice: %v", err)
	}
}

func benchmarkStream(b *testing.B, addr func(real string) string) {
	f := listenFar(b)
	near, end := f.connect(b, addr(f.Addr().String()))
	if err := errors.Join(near.SetDeadline(time.Time{}), end.SetDeadline(time.Time{})); err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 256<<10)
	b.SetBytes(int64(len(buf)))
	got := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, end, int64(b.N)*int64(len(buf)))
		got <- err
	}()
	b.ResetTimer()
	for range b.N {
		if _, err := near.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-got; err != nil {
		b.Fatal(err)
	}
}

func BenchmarkStreamDirect(b *testing.B) {
	benchmarkStream(b, func(real string) string { return real })
}

func BenchmarkStreamProxy(b *testing.B) {
	p := newProxy(b, Between(1, 2))
	benchmarkStream(b, func(real string) string { return p.Address(1, 2, real) })
}

func benchmarkRoundTrip(b *testing.B, addr func(real string) string) {
	f := listenFar(b)
	near, end := f.connect(b, addr(f.Addr().String()))
	for b.Loop() {
		say(b, near, 'x')
		hear(b, end, 'x')
	}
}

func BenchmarkOneWayDirect(b *testing.B) {
	benchmarkRoundTrip(b, func(real string) string { return real })
}

func BenchmarkOneWayProxy(b *testing.B) {
	p := newProxy(b, Between(1, 2))
	benchmarkRoundTrip(b, func(real string) string { return p.Address(1, 2, real) })
}
