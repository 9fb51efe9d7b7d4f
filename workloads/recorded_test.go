package workloads

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/internal/need"
	"github.com/weir-bench/weir/workloads/replay"
)

func write(t *testing.T, name, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const smallTrace = "at,user,amount,bytes\n10,bob,5,10\n10.5,eve,-2,0\n12,bob,7,3\n13,ann,1,1\n"

func smallReplay(path string) Replay {
	return Replay{Path: path, Key: "user", Time: "at", Value: "amount", Size: "bytes"}
}

func TestReplayAsIs(t *testing.T) {
	w := mustOpen(t, Spec{Kind: KindReplay, Replay: smallReplay(write(t, "s.csv", smallTrace))})
	var c core.Columns
	w.Fill(&c, 0, 4)
	var names []string
	for _, key := range c.Keys {
		names = append(names, w.KeyName(key))
	}
	if !slices.Equal(names, []string{"bob", "eve", "bob", "ann"}) || !slices.Equal(c.Times, []int64{0, 500_000, 2_000_000, 3_000_000}) ||
		!slices.Equal(c.Vals, []int64{5, -2, 7, 1}) || len(c.Payload(0)) != 10 || len(c.Payload(1)) != 0 || len(c.Payload(2)) != 3 {
		t.Errorf("replayed %v %+v", names, c)
	}
	if w.Due(time.Hour) != 4 || w.Scheduled(3*time.Millisecond) != 3 {
		t.Errorf("due %d in an hour, %d in 3 ms; want 4 and 3", w.Due(time.Hour), w.Scheduled(3*time.Millisecond))
	}
	if n, ok := w.Ends(); n != 4 || !ok {
		t.Errorf("Ends() = %d, %t; want 4, true", n, ok)
	}
	if share := w.Share(c.Keys[0], 0); share != 0.5 {
		t.Errorf("bob's share is %g, want 0.5", share)
	}
}

func TestReplayLoopsAndSpeedsUp(t *testing.T) {
	r := smallReplay(write(t, "s.csv", smallTrace))
	r.Loop, r.Speed, r.Scale = true, 2, 3
	w := mustOpen(t, Spec{Kind: KindReplay, Replay: r})
	if n, ok := w.Ends(); ok {
		t.Errorf("a loop ends after %d records", n)
	}
	// A pass is 3 ms and a mean gap of 1 ms, so 2 ms at double speed.
	if got := w.Scheduled(200 * time.Millisecond); got != 400 {
		t.Errorf("%d scheduled in 100 passes, want 400", got)
	}
	tally := Counts(w, 4000)
	names := map[string]uint64{}
	for key, n := range tally.All() {
		names[w.KeyName(key)] = n
	}
	if len(names) != 9 || names["bob"]+names["bob#1"]+names["bob#2"] != 2000 {
		t.Errorf("scaled out to %v, want 9 keys, bob's three with 2,000 records", names)
	}
	for _, name := range []string{"bob", "bob#1", "bob#2"} {
		if math.Abs(float64(names[name])-2000.0/3) > 120 {
			t.Errorf("%s has %d records, want about 667", name, names[name])
		}
	}
}

// TestReplayAsAShape takes keys from one trace and arrivals from another.
func TestReplayAsAShape(t *testing.T) {
	gaps := write(t, "g.jsonl", "{\"s\":1}\n{\"s\":1.5}\n{\"s\":4}\n")
	w := mustOpen(t, Spec{
		Kind: KindReplay, Replay: Replay{Path: write(t, "s.csv", smallTrace), Key: "user", Loop: true},
		Arrivals: Arrivals{Kind: ArriveReplay, Replay: Replay{Path: gaps, Time: "s", Unit: "s", Loop: true}},
	})
	var c core.Columns
	w.Fill(&c, 0, 4)
	if w.KeyName(c.Keys[3]) != "ann" || !slices.Equal(c.Times, []int64{0, 5e8, 3e9, 4.5e9}) {
		t.Errorf("keys and times %v, %v", c.Keys, c.Times)
	}
	w = mustOpen(t, Spec{Kind: KindReplay, Replay: Replay{Path: write(t, "s.csv", smallTrace), Key: "user"}, Rate: 2})
	if w.Due(time.Hour) != 4 || w.Scheduled(time.Second) != 2 {
		t.Errorf("keys of a trace at a rate: due %d, in 1 s %d; want 4 (its end) and 2", w.Due(time.Hour), w.Scheduled(time.Second))
	}
}

func TestReplayReportsBadRows(t *testing.T) {
	r := smallReplay(write(t, "bad.csv", smallTrace+"9,zoe,1,1\n"))
	_, err := Open(Spec{Kind: KindReplay, Replay: r})
	var row *replay.RowError
	if !errors.As(err, &row) || row.Line != 6 {
		t.Errorf("an unsorted row gives %v, want a RowError for line 6", err)
	}
	r.OnBadRow = "skip"
	w := mustOpen(t, Spec{Kind: KindReplay, Replay: r})
	if notes := w.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "1 bad rows were skipped, 4 read") {
		t.Errorf("notes %q", notes)
	}
}

func TestTwitterTraceIsReplayed(t *testing.T) {
	path := need.Traces(t, "twitter52_1m.trc.gz")
	w := mustOpen(t, Spec{Kind: KindReplay, Replay: Replay{Path: path, Key: "1", Size: "2"}})
	if w.Keys() != 143_542 || w.Due(time.Hour) != 1_000_000 {
		t.Errorf("%d keys, %d records; want 143542 and 1000000", w.Keys(), w.Due(time.Hour))
	}
	tally := Counts(w, 1_000_000)
	ten := uint64(0)
	for _, key := range tally.Top(10) {
		ten += tally.Count(key)
	}
	hot := float64(tally.Count(tally.Top(1)[0])) / 1e6
	if math.Abs(hot-0.059) > 0.001 || math.Abs(float64(ten)/1e6-0.227) > 0.001 {
		t.Errorf("hottest key %.4f, top ten %.4f; want 0.059 and 0.227", hot, float64(ten)/1e6)
	}
	if hot := w.Truth(time.Second)[0]; hot.Hot[0] != tally.Top(1)[0] {
		t.Errorf("truth says key %d is hottest, the records say %d", hot.Hot[0], tally.Top(1)[0])
	}
}
