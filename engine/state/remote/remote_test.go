package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/state/remote/server"
	"github.com/weir-bench/weir/internal/need"
)

// running is a store under test.
type running struct {
	url     string // with credentials
	bare    string // its host and port
	bounded string // URL of another one, which is full soon
}

const password = "open sesame"

func embedded(t *testing.T) running {
	t.Helper()
	start := func(o server.Options) *server.Server {
		s, err := server.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	locked := start(server.Options{Password: password})
	return running{locked.URL(), locked.Addr(), start(server.Options{MaxBytes: 4000}).URL()}
}

// startRedis starts a server of the installed Redis in a directory of its own and returns its host and port.
func startRedis(t *testing.T, program string, args ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--appendonly", "no"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // this very process
		_ = cmd.Wait()         // says that it was killed
	})
	waitReady(t, out)
	return addr
}

// redisServer starts servers of the installed Redis.
func redisServer(t *testing.T) running {
	t.Helper()
	program := need.Redis(t)
	locked := startRedis(t, program, "--requirepass", password)
	full := startRedis(t, program, "--maxmemory", "1mb", "--maxmemory-policy", "noeviction")
	return running{"redis://:open%20sesame@" + locked + "/0", locked, "redis://" + full}
}

// waitReady reads what a server prints until it accepts connections, and the rest beside the test.
func waitReady(t *testing.T, out io.Reader) {
	t.Helper()
	var said strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(said.String(), "Ready to accept connections") {
		n, err := out.Read(buf)
		if said.Write(buf[:n]); err != nil {
			t.Fatalf("the server ended: %v\n%s", err, said.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // until it is killed
}

func open(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func eachServer(t *testing.T, test func(t *testing.T, r running)) {
	t.Run("embedded", func(t *testing.T) { test(t, embedded(t)) })
	t.Run("redis", func(t *testing.T) { test(t, redisServer(t)) })
}

func values(ns ...uint64) (v []byte) {
	for _, n := range ns {
		v = binary.LittleEndian.AppendUint64(v, n)
	}
	return v
}

// TestReadWrite says that what was written is read, that the rest is zero, and that spaces do not meet.
func TestReadWrite(t *testing.T) {
	eachServer(t, func(t *testing.T, r running) {
		ctx := context.Background()
		s := open(t, r.url)
		if err := s.Check(ctx, "job"); err != nil {
			t.Fatal(err)
		}
		sp := &Space{Job: "job", Operator: "count:all*", Epoch: 3, ValueBytes: 8}
		groups, keys := []uint32{1, 0, 1, 7}, []uint64{10, 20, 1<<64 - 1, 0}
		if err := s.Write(ctx, sp, groups, keys, values(1, 2, 1<<63+5, 256)); err != nil {
			t.Fatal(err)
		}
		// The same key twice in a batch: the later one counts. A new one besides.
		if err := s.Write(ctx, sp, []uint32{1, 1, 2}, []uint64{10, 10, 10}, values(7, 8, 9)); err != nil {
			t.Fatal(err)
		}
		check := func(sp *Space, groups []uint32, keys []uint64, want []byte) {
			t.Helper()
			got, err := s.Read(ctx, sp, groups, keys)
			if err != nil || string(got) != string(want) {
				t.Errorf("read %v of groups %v: %v (%v), want %v", keys, groups, got, err, want)
			}
		}
		check(sp, []uint32{7, 1, 1, 0, 2, 5}, []uint64{0, 10, 1<<64 - 1, 20, 10, 10}, values(256, 8, 1<<63+5, 2, 9, 0))
		for _, other := range []Space{{"job", "count:all*", 4, 8}, {"job", "count", 3, 8}, {"jo", "b:count:all*", 3, 8}} {
			check(&other, groups, keys, values(0, 0, 0, 0))
		}
		other := &Space{Job: "job2", Operator: "count", Epoch: 1, ValueBytes: 8}
		if err := s.Write(ctx, other, []uint32{0}, []uint64{1}, values(5)); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Sweep(ctx, "job"); n != 4 || err != nil {
			t.Errorf("swept %d hashes (%v), want the 4 of the job", n, err)
		}
		check(sp, groups, keys, values(0, 0, 0, 0))
		check(other, []uint32{0}, []uint64{1}, values(5))
	})
}

// TestManyValues goes through more keys than one hash or one network packet has room for.
func TestManyValues(t *testing.T) {
	eachServer(t, func(t *testing.T, r running) {
		ctx := context.Background()
		s := open(t, r.url)
		sp := &Space{Job: "many", Operator: "o", Epoch: 1, ValueBytes: 100}
		const n = 3000
		groups, keys, vals := make([]uint32, n), make([]uint64, n), make([]byte, n*100)
		for i := range keys {
			groups[i], keys[i] = uint32(i%7), uint64(i)
			binary.LittleEndian.PutUint64(vals[i*100:], uint64(i)*3)
			vals[i*100+99] = byte(i)
		}
		if err := s.Write(ctx, sp, groups, keys, vals); err != nil {
			t.Fatal(err)
		}
		got, err := s.Read(ctx, sp, groups, keys)
		if err != nil || string(got) != string(vals) {
			t.Errorf("%d values came back otherwise (%v)", n, err)
		}
	})
}

// TestErrors says that each thing that can be wrong with a store has an error of its own, which says what to do.
func TestErrors(t *testing.T) {
	eachServer(t, func(t *testing.T, r running) {
		ctx := context.Background()
		sp := &Space{Job: "job", Operator: "count", Epoch: 1, ValueBytes: 8}
		expect := func(err, want error, words ...string) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
				return
			}
			for _, w := range words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "sesame") {
				t.Errorf("%q tells the password", err)
			}
		}
		expect(open(t, "redis://"+r.bare).Check(ctx, "job"), ErrAuth, r.bare, "NOAUTH", "user, colon, password")
		expect(open(t, "redis://:wrong-sesame@"+r.bare).Check(ctx, "job"), ErrAuth, r.bare, "WRONGPASS")

		s := open(t, r.url)
		hash := "weir:job:count:1:4"
		if err := s.client.Set(ctx, hash, "text", 0).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Read(ctx, sp, []uint32{3, 4}, []uint64{1, 2})
		expect(err, ErrType, "read 2 values of count", "WRONGTYPE", "prefix")
		expect(s.Write(ctx, sp, []uint32{4}, []uint64{2}, values(1)), ErrType, "write 1 values of count")
		if err := s.client.HSet(ctx, "weir:job:count:1:5", "2", "short").Err(); err != nil {
			t.Fatal(err)
		}
		_, err = s.Read(ctx, sp, []uint32{5}, []uint64{2})
		expect(err, ErrType, "key 2", "5 bytes", "want 8")

		expect(fill(ctx, open(t, r.bounded)), ErrFull, "OOM", "memory limit")
	})
}

// fill writes until the store refuses.
func fill(ctx context.Context, s *Store) error {
	sp := &Space{Job: "job", Operator: "count", Epoch: 1, ValueBytes: 2000}
	for k := range uint64(1000) {
		if err := s.Write(ctx, sp, []uint32{0}, []uint64{k}, make([]byte, 2000)); err != nil {
			return err
		}
	}
	return nil
}

// TestDownAndSlow looks at a port where nobody listens, at a server that goes away and at one that never answers.
func TestDownAndSlow(t *testing.T) {
	ctx := context.Background()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := open(t, fmt.Sprintf("redis://%s?read_timeout=50ms", l.Addr()))
	begun := time.Now()
	if err := silent.Check(ctx, "job"); !errors.Is(err, ErrSlow) || time.Since(begun) > 5*time.Second {
		t.Errorf("a store that never answers: %v after %v, want %v", err, time.Since(begun), ErrSlow)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, "redis://"+l.Addr().String()).Check(ctx, "job"); !errors.Is(err, ErrDown) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("nobody listens: %v, want %v", err, ErrDown)
	}
	srv, err := server.Start(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, srv.URL())
	sp := &Space{Job: "job", Operator: "count", Epoch: 1, ValueBytes: 8}
	if err := s.Write(ctx, sp, []uint32{0}, []uint64{1}, values(1)); err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(ctx, sp, []uint32{0}, []uint64{1}); !errors.Is(err, ErrDown) {
		t.Errorf("the store went away: %v, want %v", err, ErrDown)
	}
}

func TestBadURLs(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:6379", "http://127.0.0.1", "redis://host:port", "redis://h/zero", "redis://h?speed=11",
		"redis://h?read_timeout=soon", "redis://u:sesame@h/%zz", "redis://u:sesame@h?speed=11"} {
		_, err := Open(url)
		if !errors.Is(err, ErrURL) {
			t.Errorf("%q: %v, want %v", url, err, ErrURL)
			continue
		}
		if strings.Contains(err.Error(), "sesame") {
			t.Errorf("%q tells the password", err)
		}
	}
	s := open(t, "redis://u:p@h:1/2?prefix=a:b&read_timeout=7s")
	if o := s.client.Options(); s.prefix != "a%3Ab" || o.ReadTimeout != 7*time.Second || o.DB != 2 || o.Username != "u" || o.WriteTimeout != defaultTimeout {
		t.Errorf("prefix %q, options %+v", s.prefix, o)
	}
}

// TestUnfit says that servers which would lose state, or take none, are not let in, and that those which keep it are.
func TestUnfit(t *testing.T) {
	program := need.Redis(t)
	ctx := context.Background()
	for policy, want := range map[string]error{"allkeys-lru": ErrUnfit, "volatile-lru": nil, "noeviction": nil} {
		addr := startRedis(t, program, "--maxmemory", "100mb", "--maxmemory-policy", policy)
		if err := open(t, "redis://"+addr).Check(ctx, "job"); !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), policy) {
			t.Errorf("%s: %v, want %v", policy, err, want)
		}
	}
	primary := startRedis(t, program)
	host, port, _ := net.SplitHostPort(primary)
	replica := startRedis(t, program, "--replicaof", host+" "+port)
	if err := open(t, "redis://"+replica).Check(ctx, "job"); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("a replica: %v, want %v", err, ErrUnfit)
	}
}

// TestUsage asks a real server what it uses, and one that does not tell.
func TestUsage(t *testing.T) {
	ctx := context.Background()
	if _, err := open(t, embedded(t).url).Usage(ctx); !errors.Is(err, ErrNoUsage) {
		t.Errorf("the embedded server: %v, want %v", err, ErrNoUsage)
	}
	s := open(t, "redis://"+startRedis(t, need.Redis(t)))
	before, err := s.Usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sp := &Space{Job: "usage", Operator: "o", Epoch: 1, ValueBytes: 1000}
	groups, keys := make([]uint32, 10_000), make([]uint64, 10_000)
	for i := range keys {
		keys[i] = uint64(i)
	}
	if err := s.Write(ctx, sp, groups, keys, make([]byte, 10_000_000)); err != nil {
		t.Fatal(err)
	}
	after, err := s.Usage(ctx)
	if err != nil || after.CPU <= before.CPU || after.RSSBytes < 1<<20 {
		t.Errorf("%+v, then %+v (%v)", before, after, err)
	}
}

// TestUserWithFewRights lets in a user who may use hashes under the prefix and not ask for reports.
func TestUserWithFewRights(t *testing.T) {
	addr := startRedis(t, need.Redis(t))
	ctx := context.Background()
	admin := open(t, "redis://"+addr)
	if err := admin.client.Do(ctx, "ACL", "SETUSER", "weir", "on", ">word", "~weir:*", "+@hash", "+ping", "+del", "+unlink", "+scan", "+select").Err(); err != nil {
		t.Fatal(err)
	}
	s := open(t, "redis://weir:word@"+addr)
	if err := s.Check(ctx, "job"); err != nil {
		t.Error(err)
	}
	if _, err := s.Usage(ctx); !errors.Is(err, ErrAuth) {
		t.Errorf("usage: %v, want %v", err, ErrAuth)
	}
	if err := open(t, "redis://weir:word@"+addr+"?prefix=other").Check(ctx, "job"); !errors.Is(err, ErrAuth) {
		t.Errorf("another prefix: %v, want %v", err, ErrAuth)
	}
}
