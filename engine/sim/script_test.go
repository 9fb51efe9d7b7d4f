package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/recovery"
)

// script is the state of one story in testdata.
type script struct {
	w      *World
	o      *oracle
	shown  int
	hidden map[string]bool
}

// TestScripts tells each strategy's story step by step; see testdata. The times are simulated milliseconds.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.command(t, d) })
	})
}

func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "job":
		return s.job(t, d)
	case "run":
		return s.run(t, d)
	case "crash":
		s.w.crash(intArg(t, d, "node"))
	case "freeze":
		s.w.freeze(intArg(t, d, "node"), int64(intArg(t, d, "ms"))*ms)
	case "partition":
		s.w.partition(intArg(t, d, "a"), intArg(t, d, "b"), int64(intArg(t, d, "ms"))*ms)
	case "disk-full":
		s.w.fillDisk(0, int64(intArg(t, d, "ms"))*ms)
	case "store-full":
		s.w.failStore(int64(intArg(t, d, "ms")) * ms)
	case "store":
		return fmt.Sprintf("any read: %v, refused: %v", s.storeReads() > 0, s.w.external.refused > 0)
	case "damage":
		return s.damage(t, d)
	case "migrate":
		return s.migrate(t, d)
	case "answers":
		a := s.o.answers()
		return fmt.Sprintf("expected %d, lost %d, duplicated %d, wrong %d, reordered %d", a.Expected, a.Lost, a.Duplicated, a.Wrong, a.Reordered)
	case "fenced":
		fenced, _ := s.w.edge.Fenced()
		for _, m := range s.w.coord.Meters() {
			fenced += m.Fenced
		}
		return fmt.Sprintf("any: %v", fenced > 0)
	case "owners":
		return s.owners()
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	return s.news()
}

func intArg(t *testing.T, d *datadriven.TestData, name string) int {
	t.Helper()
	var n int
	d.ScanArgs(t, name, &n)
	return n
}

// storeReads returns how many values the tasks have read since they were deployed.
func (s *script) storeReads() (n uint64) {
	for _, m := range s.w.coord.Meters() {
		n += m.StoreReads
	}
	return n
}

// job: recovery=NAME [sink=transactional] [checkpoint=MS] [records=N] [workers=N] [spares=N] [sources=N] [lease=MS]
// [cache=BYTES: the state is in an external store] [two: two pipelines that nothing connects]
func (s *script) job(t *testing.T, d *datadriven.TestData) string {
	rec, sink := "none", "eager"
	every, records, workers, spares, sources, lease, cache := 0, 4000, 2, 0, 1, 100, 0
	for name, to := range map[string]any{"recovery": &rec, "sink": &sink, "checkpoint": &every, "records": &records,
		"workers": &workers, "spares": &spares, "sources": &sources, "lease": &lease, "cache": &cache} {
		if d.HasArg(name) {
			d.ScanArgs(t, name, to)
		}
	}
	op := func(name, kind string, par int, in ...string) core.OperatorSpec {
		return core.OperatorSpec{Name: name, Kind: kind, Parallelism: par, Inputs: in}
	}
	count := op("count", "count", 2, "in")
	count.Groups, count.ValueBytes = 8, 8
	if d.HasArg("cache") {
		count.Store, count.StoreCacheBytes = simStore, int64(cache)
	}
	out := op("out", "sink", 2, "count")
	out.Transactional = sink == "transactional"
	p := plan{splits: sources, records: uint64(records), spares: &spares, promise: recovery.Precise, feed: feed{keys: 20, seed: 1},
		job: core.Job{ID: "sim", Workers: workers, Checkpoint: time.Duration(every) * time.Millisecond, CheckpointTimeout: 200 * time.Millisecond,
			Heartbeat: 20 * time.Millisecond, Lease: time.Duration(lease) * time.Millisecond,
			Operators: []core.OperatorSpec{op("in", "source", sources), count, out}}}
	if d.HasArg("two") {
		p.splits, p.feed.pipelines = 2, 2
		twoPipelines(&p.job)
		for i := range p.job.Operators { // the second one on the last worker, the first one on the others
			for k := range p.job.Operators[i].Parallelism {
				at := k % (workers - 1)
				if i > 2 {
					at = workers - 1
				}
				p.job.Operators[i].Place = append(p.job.Operators[i].Place, at)
			}
		}
	}
	protectScript(&p.job, rec)
	s.w, s.o = newTrial(1, p)
	s.w.jitterNS = 50_000
	s.shown, s.hidden = 0, map[string]bool{coord.TraceSnapshot: true, coord.TraceCut: true}
	return ""
}

// run: [ms=N] [until=TRACE]: lets time pass, to the end of the job by default.
func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	until, upto, node := "", int(deadlineNS/ms), -1
	if d.HasArg("until") {
		d.ScanArgs(t, "until", &until)
	}
	if d.HasArg("node") {
		d.ScanArgs(t, "node", &node)
	}
	if d.HasArg("ms") {
		d.ScanArgs(t, "ms", &upto)
		upto += int(s.w.nowNS / ms)
	}
	from := len(s.w.Traces)
	err := s.w.run(int64(upto)*ms, func() bool {
		for _, tr := range s.w.Traces[from:] {
			if tr.Kind == until && (node < 0 || tr.Node == node) {
				return true
			}
		}
		return s.w.edge.Ended()
	})
	out := s.news()
	if err != nil {
		out += "failed: " + err.Error() + "\n"
	}
	if s.w.edge.Ended() {
		out += "ended\n"
	}
	return out
}

// news returns what happened since the last command.
func (s *script) news() string {
	var b strings.Builder
	for _, tr := range s.w.Traces[s.shown:] {
		if s.hidden[tr.Kind] {
			continue
		}
		fmt.Fprintf(&b, "%4d ms %s", tr.AtNS/ms, tr.Kind)
		if tr.Node > 0 {
			fmt.Fprintf(&b, " node=%d", tr.Node)
		}
		if tr.ID > 0 {
			fmt.Fprintf(&b, " id=%d", tr.ID)
		}
		if detail, _, _ := strings.Cut(tr.Detail, ": "); detail != "" {
			fmt.Fprintf(&b, " (%s)", detail)
		}
		b.WriteByte('\n')
	}
	s.shown = len(s.w.Traces)
	return b.String()
}

// damage: what=flip|cut|empty|remove file=NAME: hurts a file of the newest checkpoint.
func (s *script) damage(t *testing.T, d *datadriven.TestData) string {
	var what, file string
	d.ScanArgs(t, "what", &what)
	d.ScanArgs(t, "file", &file)
	ck, _, err := s.w.store.Newest()
	if err != nil {
		return err.Error()
	}
	path := "disk/job-sim/chk-" + itoa(ck.Number) + "/" + file
	if what == "remove" {
		if err := s.w.disk.Remove(path); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("checkpoint %d", ck.Number)
	}
	ok := s.w.disk.Damage(path, func(b []byte) []byte {
		switch what {
		case "cut":
			return b[:len(b)/2]
		case "empty":
			return nil
		}
		b[len(b)/2] ^= 1
		return b
	})
	return fmt.Sprintf("checkpoint %d: %v", ck.Number, ok)
}

// migrate: strategy=NAME groups=(a,b,…) to=TASK [rounds=N]
func (s *script) migrate(t *testing.T, d *datadriven.TestData) string {
	var name string
	rounds := 1
	to := intArg(t, d, "to")
	d.ScanArgs(t, "strategy", &name)
	if d.HasArg("rounds") {
		d.ScanArgs(t, "rounds", &rounds)
	}
	strat, err := migration.Lookup(name)
	if err != nil {
		return err.Error()
	}
	r := migration.Request{Operator: 1, Rounds: rounds}
	arg, _ := d.Arg("groups")
	for i := range arg.Vals {
		var g int
		arg.Scan(t, i, &g)
		r.Moves = append(r.Moves, core.Move{Group: uint32(g), From: int(s.w.coord.Routes(1).Task[g]), To: to})
	}
	out := ""
	s.w.harness(func(e *coord.Effects) {
		if err := s.w.coord.Migrate(r, strat, e); err != nil {
			out = "refused: " + err.Error() + "\n"
		}
	})
	return out + s.news()
}

func (s *script) owners() string {
	return fmt.Sprint(s.w.coord.Routes(1).Task)
}

// protectScript gives a script's operators their recovery; mixed is of its own.
func protectScript(job *core.Job, name string) {
	if name != Mixed {
		protect(job, name, nil)
		return
	}
	for i := range job.Operators {
		if op := &job.Operators[i]; i == 0 {
			op.Recovery = core.RecoveryActive
		} else {
			op.Recovery, op.Scope = core.RecoveryCheckpoint, core.ScopeTask
		}
	}
}
