package runner

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/engine/task"
	"github.com/weir-bench/weir/suites/queries"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/suites/verify"
	"github.com/weir-bench/weir/workloads"
	"github.com/weir-bench/weir/workloads/nexmark"
	"github.com/weir-bench/weir/workloads/ysb"
)

// knownQueries lists the queries, with their operators in the words of a suite.
func knownQueries() (out []spec.QueryInfo) {
	for _, q := range queries.Queries() {
		out = append(out, spec.QueryInfo{Name: q.Name, Operators: func(s spec.Query) []spec.Operator { return suiteOperators(q, s) }})
	}
	return out
}

func queryOptions(s spec.Query) queries.Options {
	return queries.Options{Sources: s.Sources, Tasks: s.Parallelism, Groups: uint32(s.KeyGroups),
		Window: s.Window, Slide: s.Slide, Gap: s.Gap, Bound: s.Bound, Step: s.Step, Lateness: s.Lateness}
}

// suiteOperators gives what a suite can say of a query's operators. What it cannot, withQuery adds.
func suiteOperators(q queries.Query, s spec.Query) (out []spec.Operator) {
	for _, op := range q.Operators(queryOptions(s)) {
		o := spec.Operator{Name: op.Name, Kind: op.Kind, Inputs: op.Inputs, Parallelism: op.Parallelism, KeyGroups: max(1, int(op.Groups)),
			Sink: "eager", State: spec.State{Backend: "heap"}, Service: spec.Service{Mode: "none"}}
		if k, ok := operator.Lookup(op.Kind); ok && k.Sink {
			o.Sink = s.Sink
		}
		out = append(out, o)
	}
	return out
}

// withQuery gives the operators of a job, which stand as suiteOperators wrote them, their parameters.
func withQuery(job *core.Job, s *spec.Query) {
	if s == nil {
		return
	}
	q, err := queries.Lookup(s.Name)
	if err != nil {
		panic(err) // validated long before
	}
	for i, op := range q.Operators(queryOptions(*s)) {
		o := &job.Operators[i]
		o.Params, o.Groups, o.ValueBytes = op.Params, op.Groups, op.ValueBytes
	}
}

// checkQuery has the form of spec.Known.ValidateQuery.
func checkQuery(s spec.Query, w spec.Workload) (out []spec.Problem) {
	q, err := queries.Lookup(s.Name)
	if err != nil {
		return nil // refused by its name
	}
	kind := w.Kind
	if p, ok := workloads.PresetByName(w.Preset); ok && kind == "" {
		kind = p.Spec.Kind
	}
	if kind != q.Workload {
		return []spec.Problem{{Field: "workload", Problem: fmt.Sprintf("is of kind %s, but %s reads the events of %s", kind, s.Name, q.Workload), Fix: "write 'kind: " + q.Workload + "'"}}
	}
	switch {
	case q.Workload == workloads.KindNEXMark && s.Bound < nexmark.DefaultConfig(0, 1).LateBy && !(s.Sources == 1 && s.Step == 1):
		out = append(out, spec.Problem{Field: "job.query.bound", Problem: fmt.Sprintf("is %v, but events are up to %v late, and which come too late would depend on how sources interleave and watermarks advance", s.Bound, nexmark.DefaultConfig(0, 1).LateBy),
			Fix: "write at least 3s, or 'sources: 1' and 'step: 1ns'"})
	case q.Workload == workloads.KindYSB && s.Sources > 1 && s.Bound < ysb.DefaultConfig(0).LateBy:
		out = append(out, spec.Problem{Field: "job.query.bound", Problem: fmt.Sprintf("is %v, but events are up to %v late, and which come too late would depend on how the sources interleave", s.Bound, ysb.DefaultConfig(0).LateBy),
			Fix: "write at least 1m, or 'sources: 1'"})
	}
	return out
}

// maxGoldenBytes bounds the records of a trial from which golden answers are evaluated in memory.
const maxGoldenBytes = 1 << 30

// queryTrouble says what of a cell's query cannot be measured; empty: nothing.
func queryTrouble(c *spec.Cell) (out []string) {
	if c.Job.Query == nil {
		return nil
	}
	if c.Timing.Capacity > 0 {
		out = append(out, "timing.capacity is not available with a query, whose outputs do not say how many records were worked off; write 0s")
	}
	length := c.Timing.Warmup + c.LastEvent() + c.Timing.After
	if w, err := workloads.Open(generators(c, 1)); err == nil {
		const sample = 100 // two cycles of NEXMark
		var cols core.Columns
		w.Fill(&cols, 0, sample)
		bytes := uint64(len(cols.Ext)/sample + 3*8)
		if n := w.Scheduled(length); n > maxGoldenBytes/bytes {
			out = append(out, fmt.Sprintf("%d records in a trial are more than the %d from which golden answers can be evaluated in memory; lower workload.rate or the times", n, maxGoldenBytes/bytes))
		}
	}
	return out
}

// query is the oracle of a job that answers a query: what came, and what should have.
type query struct {
	of      queries.Query
	options queries.Options
	set     verify.Multiset

	golden  []queries.Answer // once evaluated
	late    uint64           // events that were too late for a window
	err     error
	sum     verify.Answers
	missing []int
	done    bool
}

func newQuery(s *spec.Query) *query {
	if s == nil {
		return nil
	}
	q, err := queries.Lookup(s.Name)
	if err != nil {
		panic(err) // validated long before
	}
	return &query{of: q, options: queryOptions(*s)}
}

// check takes outputs. It runs on the event loop.
func (q *query) check(o *task.Output) {
	c := o.Columns
	for i, key := range c.Keys {
		var val int64
		if i < len(c.Vals) {
			val = c.Vals[i]
		}
		var payload []byte
		if len(c.Off) > 0 {
			payload = c.Payload(i)
		}
		a, err := queries.ParseAnswer(key, val, payload)
		if err != nil {
			q.set.AddUnreadable()
			continue
		}
		q.set.Add(a.Hash())
	}
}

// compare evaluates the query over the records that were sent and holds the outputs against it; it does so once.
func (q *query) compare(f *feed, emitted []uint64) {
	if q.done {
		return
	}
	q.done = true
	q.golden, q.late, q.err = q.of.Golden(sent(f, emitted), q.options)
	if q.err != nil {
		q.err = fmt.Errorf("evaluate %s: %w", q.of.Name, q.err)
		return
	}
	hashes := make([]uint64, len(q.golden))
	for i, a := range q.golden {
		hashes[i] = a.Hash()
	}
	q.sum, q.missing = q.set.Compare(hashes)
}

// sent returns the first emitted[s] records of each split in the order of the workload, with the intended times that the
// job saw.
func sent(f *feed, emitted []uint64) *core.Columns {
	cols := &core.Columns{}
	if len(emitted) == 1 {
		f.Fill(cols, 0, 0, 0, int(emitted[0]))
		return cols
	}
	for i, more := uint64(0), true; more; i++ {
		more = false
		for s, n := range emitted {
			if i < n {
				f.Fill(cols, s, 0, i, 1)
				more = true
			}
		}
	}
	return cols
}

// dueOf is when an answer that never came was due, as far as can be told: at its own time if that lies in the trial. The
// clock of intended times runs from origin; event times and windows over them from the start of the feed.
func (q *query) dueOf(a queries.Answer, origin, length time.Duration) time.Duration {
	at := time.Duration(a.Time)
	if q.of.Name == "q12" {
		at -= origin
	}
	if at <= 0 || at >= length {
		return length - 1
	}
	return at
}

var errFewer = errors.New("records were lost, as the strategy may, and an answer from fewer records cannot be told from a wrong one")

// judge is verify.Judge for a query's answers. Where records may be lost, results from fewer of them are no broken promise,
// and are not known to be right either: then the error says so.
func (q *query) judge(p recovery.Promise, failed bool, a verify.Answers) (broken string, err error) {
	if failed && p == recovery.Gap && a.Wrong > 0 {
		return "", errFewer
	}
	return verify.Judge(p, failed, a), nil
}
