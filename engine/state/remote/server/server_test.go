package server

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestBytesAreCounted says that what is kept is counted through every way in and out, so that the bound can be relied on.
func TestBytesAreCounted(t *testing.T) {
	s, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	ctx := context.Background()
	const entry = entryBytes
	steps := []struct {
		do   []any
		want int64
	}{
		{[]any{"HSET", "h", "f", "1234"}, entry + 1 + entry + 5},
		{[]any{"HSET", "h", "f", "5678"}, entry + 1 + entry + 5},
		{[]any{"HSET", "h", "f", "56", "g", ""}, entry + 1 + entry + 3 + entry + 1},
		{[]any{"SET", "s", "abc"}, 4*entry + 1 + 3 + 1 + 4},
		{[]any{"SET", "h", "abc"}, 2 * (entry + 4)},
		{[]any{"MSET", "s", "", "h", "abcd"}, 2*entry + 1 + 5},
		{[]any{"DEL", "s", "nobody"}, entry + 5},
		{[]any{"FLUSHALL"}, 0},
		{[]any{"HSET", "h", "f", "1"}, 2*entry + 1 + 2},
		{[]any{"UNLINK", "h"}, 0},
	}
	for _, step := range steps {
		if err := c.Do(ctx, step.do...).Err(); err != nil {
			t.Fatalf("%v: %v", step.do, err)
		}
		if got := s.Bytes(); got != step.want {
			t.Errorf("%d bytes after %v, want %d", got, step.do, step.want)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBadCommands says that mistakes are answered, not obeyed.
func TestBadCommands(t *testing.T) {
	s, err := Start(Options{MaxBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), Protocol: 2, DisableIdentity: true})
	defer c.Close()
	ctx := context.Background()
	for _, step := range []struct {
		want string // beginning of the error; empty: none
		do   []any
	}{
		{"ERR unknown command", []any{"BLPOP", "x"}},
		{"ERR wrong number", []any{"HSET", "h", "f"}},
		{"ERR wrong number", []any{"HSET", "h", "f", "v", "g"}},
		{"ERR wrong number", []any{"MSET", "a", "b", "c"}},
		{"ERR DB index", []any{"SELECT", "3"}},
		{"ERR AUTH", []any{"AUTH", "word"}},
		{"ERR this server matches", []any{"SCAN", "0", "MATCH", "a?b*"}},
		{"ERR syntax", []any{"SCAN", "0", "MATCH"}},
		{"", []any{"SET", "text", "t"}},
		{"WRONGTYPE", []any{"HGET", "text", "f"}},
		{"", []any{"HSET", "h", "f", "v"}},
		{"WRONGTYPE", []any{"GET", "h"}},
		{"OOM", []any{"HSET", "h", "g", "v"}},
		{"OOM", []any{"SET", "text", "t"}},
		{"", []any{"HGET", "h", "f"}},
		{"", []any{"INFO"}},
	} {
		err := c.Do(ctx, step.do...).Err()
		if (step.want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), step.want) {
			t.Errorf("%v: %v, want %q", step.do, err, step.want)
		}
	}
	if n, err := c.DBSize(ctx).Result(); n != 2 || err != nil {
		t.Errorf("%d names (%v), want 2", n, err)
	}
}
