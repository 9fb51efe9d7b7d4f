package spec

import "time"

// Workload is the open-loop load. It has the fields of the workloads package in
// the units of a suite file; the caller maps it and checks what only the
// generators know (Known.ValidateWorkload).
type Workload struct {
	Preset   string    `yaml:"preset" known:"presets" doc:"Named set of parameters; fields given beside it override it."`
	Kind     string    `yaml:"kind" known:"workloads" doc:"Where keys come from."`
	Keys     Count     `yaml:"keys" doc:"Number of distinct keys, such as 100000 or 10M."`
	Exponent float64   `yaml:"exponent" min:"0" max:"20" doc:"Zipf exponent; 0 is uniform."`
	HotKeys  float64   `yaml:"hotKeys" min:"0" max:"1" doc:"hotset: share of the keys that is hot."`
	HotLoad  float64   `yaml:"hotLoad" min:"0" max:"1" doc:"hotset: share of the records that go to hot keys."`
	Shares   []float64 `yaml:"shares" doc:"shares: shares of the first keys; the rest goes evenly to the others."`
	Scramble bool      `yaml:"scramble" doc:"Spread the keys over all 64-bit numbers, so that hot keys lie in different key groups."`
	Changes  []Change  `yaml:"changes" doc:"Changes of the keys over time."`
	Rate     Rate      `yaml:"rate" doc:"Records a second, such as 50000/s or 1M/s."`
	Arrivals Arrivals  `yaml:"arrivals" doc:"How records arrive at that rate."`
	CatchUp  CatchUp   `yaml:"catchUp" doc:"What the feed does after the harness itself stalled."`
	Splits   int       `yaml:"splits" min:"0" max:"65536" doc:"Parts of the stream that sources share; 0 means one for each source task."`
	Value    Value     `yaml:"value" doc:"The value of a record."`
	Payload  Measure   `yaml:"payload" doc:"Payload bytes of a record."`
	State    Measure   `yaml:"state" doc:"State bytes of a key, instead of the operator's bytesPerKey."`
	Service  Measure   `yaml:"service" doc:"Service time of a record by its key, in nanoseconds."`
	Replay   Replay    `yaml:"replay" doc:"The trace, for replayed keys or arrivals."`
}

// Arrivals describes the arrival process. Low and Peak are factors of the rate.
type Arrivals struct {
	Kind    string        `yaml:"kind" short:"yes" known:"arrivals" doc:"The arrival process; constant if absent."`
	Spacing string        `yaml:"spacing" enum:"even|poisson" doc:"Gaps at a given rate."`
	Low     *float64      `yaml:"low" min:"0" max:"1000" doc:"Lowest rate, as a factor of the base rate."`
	Peak    *float64      `yaml:"peak" min:"0" max:"1000" doc:"Highest rate, as a factor of the base rate."`
	At      time.Duration `yaml:"at" doc:"When the change begins, from the start of the feed."`
	High    time.Duration `yaml:"high" doc:"How long the rate is high."`
	Period  time.Duration `yaml:"period" doc:"Length of one cycle."`
	Steps   int           `yaml:"steps" min:"0" max:"100000" doc:"Steps of a period of a sine."`
	Hurst   float64       `yaml:"hurst" min:"0" max:"1" doc:"Hurst exponent of self-similar arrivals."`
	Shape   float64       `yaml:"shape" min:"0" max:"0.5" doc:"Shape of Pareto gaps."`
	Replay  Replay        `yaml:"replay" doc:"Trace whose times are replayed; the workload's own if absent."`
}

// CatchUp says what happens to records that became due while the harness stood
// still.
type CatchUp struct {
	Policy string        `yaml:"policy" short:"yes" enum:"burst|limit|skip" doc:"burst (if absent): send at once; limit: at most factor times the scheduled rate; skip: leave out and count."`
	Factor float64       `yaml:"factor" min:"1" max:"1000" doc:"limit: how many times the scheduled rate."`
	After  time.Duration `yaml:"after" doc:"skip: records overdue by more than this are left out."`
}

// Change is one change of the keys over time.
type Change struct {
	Kind     string        `yaml:"kind" need:"yes" enum:"step|drift|swap|flash|grow" doc:"What changes."`
	At       time.Duration `yaml:"at" doc:"When it begins, from the start of the feed."`
	For      time.Duration `yaml:"for" doc:"How long it takes or lasts."`
	Every    time.Duration `yaml:"every" doc:"Period of swaps."`
	Exponent float64       `yaml:"exponent" min:"0" max:"20" doc:"Zipf exponent afterwards."`
	HotKeys  float64       `yaml:"hotKeys" min:"0" max:"1" doc:"Share of hot keys afterwards."`
	HotLoad  float64       `yaml:"hotLoad" min:"0" max:"1" doc:"Share of their records afterwards."`
	By       Count         `yaml:"by" doc:"Keys by which a swap moves the load on."`
	Key      Count         `yaml:"key" doc:"Rank of the key of a flash crowd."`
	Share    float64       `yaml:"share" min:"0" max:"1" doc:"Share of all records that a flash crowd has."`
	From     Count         `yaml:"from" doc:"Number of keys before growth."`
}

// Value is the value column.
type Value struct {
	Kind  string  `yaml:"kind" short:"yes" enum:"none|one|index|uniform|flag" doc:"none; always 1; the record's number; 0 to max-1; or 1 for a share of the records and else 0."`
	Max   Count   `yaml:"max" doc:"uniform: number of values."`
	Share float64 `yaml:"share" min:"0" max:"1" doc:"flag: share of the records that have 1."`
}

// Measure is a distribution of sizes or times.
type Measure struct {
	Kind     string   `yaml:"kind" enum:"none|constant|uniform|exponential|lognormal|pareto|gev" doc:"The distribution."`
	Mean     float64  `yaml:"mean" min:"0" max:"1e15" doc:"Mean, for constant, exponential and lognormal."`
	Sigma    float64  `yaml:"sigma" min:"0" max:"10" doc:"Shape of the log-normal."`
	Location float64  `yaml:"location" doc:"Location, for pareto and gev."`
	Scale    float64  `yaml:"scale" min:"0" max:"1e15" doc:"Scale, for pareto and gev."`
	Shape    float64  `yaml:"shape" doc:"Shape, for pareto and gev."`
	Min      float64  `yaml:"min" min:"0" max:"1e15" doc:"Smallest value."`
	Max      float64  `yaml:"max" min:"0" max:"1e15" doc:"Largest value; 0 means no bound."`
	Plus     *Measure `yaml:"plus" doc:"A second measure that is added to each value."`
	By       string   `yaml:"by" enum:"independent|load|inverse" doc:"How a key's value goes with its load."`
}

// Replay is a trace file and how it is read.
type Replay struct {
	Path     string  `yaml:"path" doc:"The file: compact, CSV or JSON lines, plain or compressed."`
	Format   string  `yaml:"format" enum:"compact|csv|jsonl" doc:"Its format; by its name if absent."`
	Key      string  `yaml:"key" doc:"Column of the key."`
	Time     string  `yaml:"time" doc:"Column of the time."`
	Value    string  `yaml:"value" doc:"Column of the value."`
	Size     string  `yaml:"size" doc:"Column of the size."`
	Unit     string  `yaml:"unit" enum:"ns|us|ms|s" doc:"Unit of the times."`
	Speed    float64 `yaml:"speed" min:"0" max:"1e9" doc:"Divides all times; 0 means 1."`
	Loop     bool    `yaml:"loop" doc:"Start again at the end."`
	Scale    Count   `yaml:"scale" doc:"Makes each key into this many."`
	OnBadRow string  `yaml:"onBadRow" enum:"fail|skip" doc:"What a bad row does."`
}
