package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/host"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/state/remote"
	"github.com/weir-bench/weir/reports/runlog"
	"github.com/weir-bench/weir/reports/stats"
	"github.com/weir-bench/weir/suites/spec"
)

// embeddedStore stands for the URL of a store that the trial starts itself.
const embeddedStore = "embedded"

// storePatience bounds what is asked of a store beside the trials.
const storePatience = 10 * time.Second

// errStore ends a trial whose store failed: the job begins anew, so that none of its figures means anything.
var errStore = errors.New("the external store failed")

// storedKinds lists the kinds of operators whose state may be in an external store.
func storedKinds() (out []string) {
	for _, k := range operator.Kinds() {
		if k.Keyed && !k.Blob {
			out = append(out, k.Name)
		}
	}
	return out
}

// checkStore says what is wrong with a store's URL.
func checkStore(rawURL string) error {
	s, err := remote.Open(rawURL)
	if err != nil {
		return err
	}
	return s.Close()
}

// withStores says where the operators of a job keep their state. A job with an external store has a name that no other
// has, as that is how its keys are told from those of others.
func withStores(job *core.Job, c *spec.Cell) {
	for i, op := range c.Job.Operators {
		if !op.State.Remote() {
			continue
		}
		job.ID = "weir-" + strings.ToLower(rand.Text()[:12])
		o := &job.Operators[i]
		if o.Store = op.State.URL; o.Store == "" {
			o.Store = embeddedStore
		}
		o.StoreCacheBytes = max(1, int64(op.State.Cache)) // 0 would be the engine's default, and a byte holds no key
	}
}

// probeStores asks each store that the cells of a plan name, before anything starts. Its errors wrap spec.ErrInvalid.
func probeStores(ctx context.Context, s *spec.Suite, plan []spec.Trial) error {
	var problems spec.Errors
	asked := map[string]bool{}
	for _, t := range plan {
		for _, op := range s.Cells[t.Cell].Job.Operators {
			if !op.State.Remote() || op.State.URL == "" || asked[op.State.URL] {
				continue
			}
			asked[op.State.URL] = true
			if err := probeStore(ctx, op.State.URL); err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				problems = append(problems, op.State.Where.Error(err.Error(), ""))
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}

func probeStore(ctx context.Context, rawURL string) error {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	s, err := remote.Open(rawURL)
	if err != nil {
		return err
	}
	return errors.Join(s.Check(ctx, "weir-"+strings.ToLower(rand.Text()[:12])), s.Close())
}

// store is the external state of a trial.
type store struct {
	process *host.StoreProcess // of the embedded one; nil: there is none
	clients []*remote.Store    // of those given by URL
}

// startStore starts the embedded store if an operator of the trial needs one, and connects to the others.
func (t *trial) startStore() error {
	seen := map[string]bool{}
	for i := range t.job.Operators {
		o := &t.job.Operators[i]
		switch {
		case o.Store == "" || seen[o.Store]:
		case o.Store == embeddedStore:
			if t.store.process == nil {
				p, err := host.StartStore(t.o.Command, t.o.Env)
				if err != nil {
					return fmt.Errorf("cell %s: %w", t.cell.Name, err)
				}
				t.store.process = p
			}
			o.Store = t.store.process.URL()
		default:
			seen[o.Store] = true
			s, err := remote.Open(o.Store)
			if err != nil {
				return fmt.Errorf("cell %s: operator %s: %w", t.cell.Name, o.Name, err)
			}
			t.store.clients = append(t.store.clients, s)
		}
	}
	return nil
}

// closeStore ends the embedded store. The harness has removed what the job wrote to the others.
func (t *trial) closeStore() {
	if t.store.process != nil {
		_ = t.store.process.Close() // it never returns an error
	}
	for _, s := range t.store.clients {
		_ = s.Close() // nothing is under way
	}
}

// external says whether an operator of the trial keeps its state in an external store.
func (t *trial) external() bool { return t.store.process != nil || len(t.store.clients) > 0 }

// watchStore gives the trial up when a task says that its external state failed. It runs on the event loop.
func (t *trial) watchStore(tr coord.Trace) {
	if tr.Kind == coord.TraceTaskFailed && t.external() {
		t.giveUp(fmt.Errorf("%w: %s", errStore, tr.Detail))
	}
}

// storeFailure adds to the words of the tasks that the embedded store ended.
func (t *trial) storeFailure(err error) error {
	if t.store.process == nil || !strings.Contains(err.Error(), remote.ErrDown.Error()) {
		return err
	}
	// Its connections broke first.
	if why, ended := t.store.process.Ended(time.Second); ended {
		return fmt.Errorf("%w (the embedded store's process has ended: %s)", err, why)
	}
	return err
}

// storeReading is what the tasks have read and written, and what the stores have used, at one moment.
type storeReading struct {
	reads, writes, inputs uint64 // values, and inputs of the tasks with external state
	cpu                   time.Duration
	rss                   int64
	err                   error // why cpu and rss are not known
}

// storeMeters adds up the meters of the tasks with external state. It runs on the event loop.
func (t *trial) storeMeters(c *coord.Coordinator) (r storeReading) {
	for id, m := range c.Meters() {
		if t.job.Operators[t.graph.Tasks[id].Operator].Store != "" {
			r.reads += m.StoreReads
			r.writes += m.StoreWrites
			r.inputs += m.Consumed
		}
	}
	return r
}

// storeUsage adds what the stores have used. A store given by URL is asked; it may have worked for others too.
func (t *trial) storeUsage(r *storeReading) {
	if p := t.store.process; p != nil {
		u, err := p.Usage()
		r.cpu, r.rss, r.err = u.UserCPU+u.SystemCPU, u.RSSBytes, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), metricsPatience)
	defer cancel()
	for _, s := range t.store.clients {
		u, err := s.Usage(ctx)
		r.cpu, r.rss, r.err = r.cpu+u.CPU, r.rss+u.RSSBytes, errors.Join(r.err, err)
	}
}

// readStore reads the meters at the end of the measured phases.
func (t *trial) readStore() {
	if !t.external() {
		return
	}
	t.seen.haveStore = nil == t.h.Do(func(c *coord.Coordinator, _ *coord.Effects) {
		t.seen.storeAt, t.seen.store = t.now(), t.storeMeters(c)
	})
}

// storeMetrics are the price of state in an external store: what it costs in the steady phase, and what a move costs that
// begins with cold caches.
func (t *trial) storeMetrics(m map[string]runlog.Metric) {
	t.movedMetric(m)
	if !t.external() {
		return
	}
	names := []struct{ name, unit string }{{"store_reads_s", "values/s"}, {"store_writes_s", "values/s"}, {"cache_hit_share", "share"},
		{"store_cpu_s_per_mrec", "s"}, {"store_rss_bytes", "bytes"}, {"cold_reads", "values"}}
	for _, n := range names {
		m[n.name] = runlog.Missing(n.unit, "the steady phase did not end")
	}
	b, a := t.seen.before, t.seen.after
	span := (a.at - b.at).Seconds()
	if !t.seen.haveSteady || span <= 0 {
		return
	}
	reads, writes := float64(a.store.reads-b.store.reads), float64(a.store.writes-b.store.writes)
	m["store_reads_s"] = runlog.Value(math.Round(reads/span), "values/s")
	m["store_writes_s"] = runlog.Value(math.Round(writes/span), "values/s")
	m["cache_hit_share"] = runlog.Missing("share", "no record was worked on in the steady phase")
	if inputs := float64(a.store.inputs - b.store.inputs); inputs > 0 {
		m["cache_hit_share"] = runlog.Value(max(0, 1-reads/inputs), "share")
	}
	t.storeUsageMetrics(m)
	t.coldMetric(m, reads/span)
}

func (t *trial) storeUsageMetrics(m map[string]runlog.Metric) {
	b, a := t.seen.before, t.seen.after
	if err := errors.Join(b.store.err, a.store.err); err != nil {
		m["store_cpu_s_per_mrec"], m["store_rss_bytes"] = runlog.Missing("s", err.Error()), runlog.Missing("bytes", err.Error())
		return
	}
	m["store_rss_bytes"] = runlog.Value(float64(a.store.rss), "bytes")
	m["store_cpu_s_per_mrec"] = runlog.Missing("s", "nothing was answered in the steady phase")
	if a.answered > b.answered {
		m["store_cpu_s_per_mrec"] = runlog.Value((a.store.cpu-b.store.cpu).Seconds()/float64(a.answered-b.answered)*1e6, "s")
	}
}

// coldMetric counts the values that were read beyond those of the steady phase, which had readsPerS.
func (t *trial) coldMetric(m map[string]runlog.Metric, readsPerS float64) {
	_, moved := t.find(coord.TraceMigration, 0)
	switch {
	case !moved:
		delete(m, "cold_reads")
	case !t.seen.haveStore:
		m["cold_reads"] = runlog.Missing("values", "the trial ended before its measured phases did")
	default:
		a := t.seen.after
		expected := readsPerS * (t.seen.storeAt - a.at).Seconds()
		m["cold_reads"] = runlog.Value(math.Round(max(0, float64(t.seen.store.reads-a.store.reads)-expected)), "values")
	}
}

// coldFor is how long after a move the delay of the moved keys is looked at.
const coldFor = time.Second

// movedMetric gives the p99 of the moved keys in the second after they moved: what a cold cache costs, or whatever else
// remains when the move is over.
func (t *trial) movedMetric(m map[string]runlog.Metric) {
	end, ended := t.find(coord.TraceMigrated, 0)
	if t.moveSeries == nil || !ended {
		return
	}
	interval := t.col.delays[moves].Interval()
	from := t.onAxis(end).Truncate(interval)
	to := min(from+coldFor, t.length).Truncate(interval)
	h := stats.NewHistogram()
	if from < to {
		h = t.col.delays[moves].Between(from, to)
	}
	m["moved_p99_ms"] = runlog.PercentileMetric(h, 99)
}

// publicManifest takes the passwords of stores out of what a manifest quotes.
func publicManifest(o *Options, m runlog.Manifest) runlog.Manifest {
	m.SuiteText = publicText(o)
	redact := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, spec.Redact(s))
		}
		return out
	}
	m.Overrides, m.CommandLine = redact(m.Overrides), redact(m.CommandLine)
	return m
}

// publicText gives the suite's text without passwords. YAML has ways to write a URL in which no password is recognised; so
// the text is read again, and if it still has one, the suite is given as it was understood.
func publicText(o *Options) string {
	text := spec.Redact(string(o.Source))
	if !hasPassword(o.Suite) {
		return text
	}
	again, err := spec.Parse(o.Suite.File, []byte(text), spec.Options{Known: Known()})
	if err != nil || hasPassword(again) {
		return spec.Redact(o.Suite.AsRun)
	}
	return text
}

// hasPassword says whether a suite has a store's URL with a password that was not taken out.
func hasPassword(s *spec.Suite) bool {
	for i := range s.Cells {
		for _, op := range s.Cells[i].Job.Operators {
			if u, err := url.Parse(op.State.URL); err == nil && u.User != nil {
				if password, set := u.User.Password(); set && password != "xxxxx" {
					return true
				}
			}
		}
	}
	return false
}
