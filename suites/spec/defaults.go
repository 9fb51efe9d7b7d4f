package spec

import "time"

func (s *Suite) setDefaults() {
	s.Repeat, s.Order, s.Runtime, s.Seed = 3, "interleaved", "process", 1
	s.Config.setDefaults()
}

func (c *Config) setDefaults() {
	c.Job.setDefaults()
	c.Timing.setDefaults()
	c.Checkpoint.setDefaults()
	c.Detection.setDefaults()
}

func (c *Cell) setDefaults() {
	c.Config.setDefaults()
	c.Recovery.setDefaults()
}

func (j *Job) setDefaults() { j.Workers, j.Slots = 2, 64 }

func (o *Operator) setDefaults() {
	o.Parallelism, o.KeyGroups, o.Sink = 1, 1024, "eager"
	o.State.setDefaults()
	o.Service.setDefaults()
}

// The times are those of NEXMark; the caller's tests compare them with the queries'.
func (q *Query) setDefaults() {
	q.Sources, q.Parallelism, q.KeyGroups, q.Sink = 1, 2, 128, "eager"
	q.Window, q.Slide, q.Gap, q.Bound = 10*time.Second, 5*time.Second, 10*time.Second, 3*time.Second
}

func (s *State) setDefaults() { s.Backend, s.Cache = "heap", 64<<20 }

func (s *Service) setDefaults() { s.Mode, s.Distribution, s.Sigma = "none", "constant", 0.5 }

// A workload has no defaults here: what is absent comes from its preset, or else
// from the generators.

func (t *Timing) setDefaults() {
	t.Warmup, t.Steady, t.After = time.Second, 2*time.Second, 4*time.Second
	t.Hold, t.Band, t.Interval = time.Second, 0.25, 100*time.Millisecond
	t.Drain = 10 * time.Second
}

func (c *Checkpoint) setDefaults() {
	c.Timeout, c.Retain, c.Mode, c.Scope = 10*time.Second, 2, "aligned", "global"
	c.FullEvery, c.InFlight = 10, 64<<20
}

func (d *Detection) setDefaults() {
	d.Heartbeat, d.Lease = 20*time.Millisecond, 200*time.Millisecond
}

func (m *Migration) setDefaults() {
	m.Groups, m.Share, m.Theta = "hottest", 0.5, 0.2
	m.Rounds, m.Trigger, m.Wait = Rounds{Auto: true}, "time", "moving"
	m.Detect.setDefaults()
}

// The times are those of engine/migration/detect; the caller's tests compare them.
func (d *Detect) setDefaults() {
	d.Theta, d.Signal = 0.2, "records"
	d.Hold, d.Window, d.Smoothing = 500*time.Millisecond, 100*time.Millisecond, 500*time.Millisecond
}

func (r *Recovery) setDefaults() {
	r.Every, r.LogBytes, r.MaxRestarts = 500*time.Millisecond, 64<<20, 50
}

func (f *Fault) setDefaults() { f.Factor = 10 }
