package spec

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestUnits(t *testing.T) {
	text := func(v any, err *valueError) string {
		if err != nil {
			return "! " + err.Error()
		}
		return fmt.Sprint(v)
	}
	dur := func(s string) string { v, err := parseDuration(s); return text(v, err) }
	rate := func(s string) string { v, err := parseRate(s); return text(v, err) }
	size := func(s string) string { v, err := parseBytes(s); return text(v, err) }
	count := func(s string) string { v, err := parseCount(s); return text(v, err) }
	for _, c := range []struct {
		parse    func(string) string
		in, want string
	}{
		{dur, "1.5s", "1.5s"}, {dur, "1h2m3s", "1h2m3s"}, {dur, "0", "0s"}, {dur, "0.0", "0s"}, {dur, "0s", "0s"}, {dur, "5us", "5µs"}, {dur, "5µs", "5µs"}, {dur, ".5s", "500ms"},
		{dur, "400", "! \"400\" has no unit; write 400ms or 400s"}, {dur, "1_000", "!"}, {dur, "-1", "!"}, {dur, "1.5d", "! \"1.5d\": the longest unit of a time is h; write 36h"},
		{dur, "5S", "!"}, {dur, "1s 2ms", "!"}, {dur, "", "!"}, {dur, "s", "!"}, {dur, "-1ns", "!"}, {dur, "1e3s", "!"},
		{rate, "50000/s", "50000/s"}, {rate, "1M/s", "1000000/s"}, {rate, "1.5k/s", "1500/s"}, {rate, "60/min", "1/s"}, {rate, "0.5/s", "0.5/s"}, {rate, "1 800 /h", "0.5/s"}, {rate, "1e5/s", "100000/s"}, {rate, "50_000/s", "50000/s"},
		{rate, "1kk/s", "!"}, {rate, "/s", "!"}, {rate, "k/s", "!"}, {rate, "5/day", "!"}, {rate, "5/", "!"}, {rate, "nan/s", "!"}, {rate, "inf/s", "!"}, {rate, "0x10/s", "!"}, {rate, "9999G/s", "!"}, {rate, "1e-400/s", "!"}, {rate, "1m/s", "!"},
		{size, "16KiB", "16KiB"}, {size, "16384B", "16KiB"}, {size, "1MB", "1000000B"}, {size, "1.5KiB", "1536B"}, {size, "0", "0B"}, {size, "0B", "0B"}, {size, "1024 TiB", "1024TiB"}, {size, "3KB", "3000B"},
		{size, "16", "!"}, {size, "1.5B", "!"}, {size, "1025TiB", "!"}, {size, "-1KiB", "!"}, {size, "16kib", "!"}, {size, "16Kib", "!"}, {size, "KiB", "!"}, {size, "1e3B", "!"},
		{count, "10M", "10000000"}, {count, "1.5k", "1500"}, {count, "1_000", "1000"}, {count, "0", "0"}, {count, "1e6", "1000000"},
		{count, "1.5", "!"}, {count, "-1", "!"}, {count, "1e16", "!"}, {count, "M", "!"}, {count, "1Mk", "!"}, {count, "", "!"},
	} {
		got := c.parse(c.in)
		if got != c.want && !(c.want == "!" && strings.HasPrefix(got, "! ")) {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
	}
}

// What is shown can be read again, and means the same.
func TestUnitsReadWhatTheyWrite(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 2000 {
		d := time.Duration(r.Int64N(1 << uint(1+r.IntN(50))))
		if got, err := parseDuration(d.String()); err != nil || got != d {
			t.Fatalf("seed %d, draw %d: %s: %s %v", seed, i, d, got, err)
		}
		b := Bytes(r.Int64N(1 << uint(1+r.IntN(50))))
		if got, err := parseBytes(b.String()); err != nil || got != b {
			t.Fatalf("seed %d, draw %d: %s: %d %v", seed, i, b, got, err)
		}
		q := Rate(1e-3 + r.Float64()*1e6)
		if got, err := parseRate(q.String()); err != nil || got != q {
			t.Fatalf("seed %d, draw %d: %s: %g %v", seed, i, q, float64(got), err)
		}
	}
	for _, s := range []string{"worker 1", "task count/0", "link 0-2"} {
		if got, err := parseTarget(s); err != nil || got.String() != s {
			t.Errorf("%s: %s %v", s, got, err)
		}
	}
	for _, s := range []string{"auto", "1s", "0s"} {
		if got, err := parseInterval(s); err != nil || got.String() != s {
			t.Errorf("%s: %s %v", s, got, err)
		}
	}
	for _, s := range []string{"auto", "1", "64"} {
		if got, err := parseRounds(s); err != nil || got.String() != s {
			t.Errorf("%s: %s %v", s, got, err)
		}
	}
	if got, err := parseTrigger("round-started"); err != nil || got.String() != "round-started 1" {
		t.Errorf("%s %v", got, err)
	}
}
