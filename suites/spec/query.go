package spec

import (
	"fmt"
	"slices"
	"time"
)

// Query is a query of a benchmark that stands for a job's operators, and what
// can be varied of it.
type Query struct {
	Name        string        `yaml:"name" need:"yes" short:"yes" known:"queries" doc:"Which query."`
	Sources     int           `yaml:"sources" min:"1" max:"1024" doc:"Number of source tasks."`
	Parallelism int           `yaml:"parallelism" min:"1" max:"32768" doc:"Number of tasks of each keyed operator and of the sink."`
	KeyGroups   int           `yaml:"keyGroups" min:"1" max:"32768" doc:"Key groups of each keyed operator."`
	Sink        string        `yaml:"sink" enum:"eager|transactional" doc:"How the sink releases output: at once, or when the checkpoint is complete."`
	Window      time.Duration `yaml:"window" doc:"Length of windows (that of ysb is always 10s)."`
	Slide       time.Duration `yaml:"slide" doc:"q5: distance of the beginnings of windows."`
	Gap         time.Duration `yaml:"gap" doc:"q11: what ends a session."`
	Bound       time.Duration `yaml:"bound" doc:"How far the watermark is behind the highest event time."`
	Step        time.Duration `yaml:"step" doc:"What the watermark advances by; 0s means a tenth of the bound or of the window, whichever is longer."`
	Lateness    time.Duration `yaml:"lateness" doc:"How much longer a window waits for late records."`
}

func (k Known) query(name string) (QueryInfo, bool) {
	i := slices.IndexFunc(k.Queries, func(q QueryInfo) bool { return q.Name == name })
	if i < 0 {
		return QueryInfo{}, false
	}
	return k.Queries[i], true
}

// query checks a job's query and puts its operators into the job, so that
// whatever names an operator is checked as for a job that lists them.
func (c *checker) query() {
	job := &c.cfg.Job
	if c.has("job.operators") {
		c.fail("job.query", "is given beside operators", "keep one of the two")
		return
	}
	info, found := c.d.known.query(job.Query.Name)
	if !found {
		return // refused already, or there is no list
	}
	if !c.queryTimes(job.Query) {
		return
	}
	q := *job.Query
	if q.Parallelism > q.KeyGroups {
		c.fail("job.query.parallelism", fmt.Sprintf("%d tasks share %d key groups, so some would be idle", q.Parallelism, q.KeyGroups),
			fmt.Sprintf("write at most %d, or raise keyGroups", q.KeyGroups))
	}
	if q.Sink == "transactional" && !c.checkpoints() {
		c.fail("job.query.sink", "a transactional sink releases output only when a checkpoint is complete, and there are none",
			"set checkpoint.interval, such as 1s, or use an eager sink")
	}
	if c.d.known.ValidateQuery != nil && c.has("workload") {
		for _, p := range c.d.known.ValidateQuery(q, c.cfg.Workload) {
			c.fail(p.Field, p.Problem, p.Fix)
		}
	}
	job.Operators = info.Operators(q)
	total := 0
	for _, op := range job.Operators {
		total += op.Parallelism
	}
	c.slots(total)
}

func (c *checker) queryTimes(q *Query) bool {
	ok := true
	for _, x := range []struct {
		name string
		d    time.Duration
		low  time.Duration
	}{{"window", q.Window, time.Millisecond}, {"slide", q.Slide, time.Millisecond}, {"gap", q.Gap, time.Millisecond},
		{"bound", q.Bound, 0}, {"step", q.Step, 0}, {"lateness", q.Lateness, 0}} {
		if x.d < x.low || x.d > 24*time.Hour {
			c.fail("job.query."+x.name, "is "+x.d.String(), fmt.Sprintf("write %s to 24h", x.low))
			ok = false
		}
	}
	if q.Slide > q.Window && !c.bad("job.query.slide", "job.query.window") {
		c.fail("job.query.slide", fmt.Sprintf("is %s, longer than the window of %s, so some records would be in none", q.Slide, q.Window), "write at most "+q.Window.String())
		ok = false
	}
	return ok
}
