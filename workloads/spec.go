package workloads

import "time"

// Spec describes a workload. Zero fields take the preset's value, if there is a
// preset, else their default. Exponent 0 is written as kind uniform.
type Spec struct {
	// Preset names an entry of Presets that fills in what is not set here.
	Preset string `yaml:"preset"`
	// Kind is one of the Kind constants; default uniform.
	Kind string `yaml:"kind"`
	// Seed makes the stream; the same seed gives the same records.
	Seed uint64 `yaml:"seed"`
	// Keys is the number of keys (uniform, zipf, hotset, shares, cycle), for
	// ysb the number of ads and for shufflebench that of rules.
	Keys int64 `yaml:"keys"`
	// Exponent is the Zipf exponent, finite and >= 0.
	Exponent float64 `yaml:"exponent"`
	// HotKeys and HotLoad are, for hotset, the share of the keys that is hot
	// and their share of the records, both in (0, 1].
	HotKeys float64 `yaml:"hotKeys"`
	HotLoad float64 `yaml:"hotLoad"`
	// Shares are, for shares, those of the first keys; what is left of 1 goes
	// evenly to the other keys.
	Shares []float64 `yaml:"shares"`
	// Scramble spreads the key numbers 0, 1, 2, … over all 64-bit words, which
	// changes no share. Words and trace names are spread anyway.
	Scramble bool `yaml:"scramble"`
	// Changes happen to the keys over time.
	Changes []Change `yaml:"changes"`

	// Rate is the base rate in records/s.
	Rate float64 `yaml:"rate"`
	// Arrivals says how records arrive at that rate; default constant.
	Arrivals Arrivals `yaml:"arrivals"`
	// CatchUp is what the feed does after a stall of the harness.
	CatchUp CatchUp `yaml:"catchUp"`

	// Value is the value column; default none.
	Value Value `yaml:"value"`
	// Payload is the size in bytes of each record's payload; default none.
	Payload Measure `yaml:"payload"`
	// State is the size in bytes of each key's state; default none.
	State Measure `yaml:"state"`
	// Service is the time in nanoseconds that each of a key's records takes;
	// default none.
	Service Measure `yaml:"service"`

	// Replay is the trace, for kind replay or arrivals replay. Kind replay
	// without a rate replays the arrivals too.
	Replay Replay `yaml:"replay"`
}

// Arrivals describes an arrival process. Low and Peak are factors of the
// workload's base rate.
type Arrivals struct {
	// Kind is one of the Arrive constants. constant and poisson have one rate;
	// square is at Peak for High, then at Low for the rest of Period; sine goes
	// between Low and Peak once a Period; ramp goes from Low to Peak in the
	// time High from At on; flash is at Peak from At for High, again each
	// Period if that is set; mmpp is at Low and Peak for exponential times of
	// mean Period − High and High; self-similar adds on/off sources so that
	// counts have the Hurst exponent Hurst; pareto has independent gaps of a
	// generalised Pareto distribution with Shape; replay takes a trace's times;
	// none schedules nothing.
	Kind string `yaml:"kind"`
	// Spacing is even or poisson; default poisson for poisson, mmpp and
	// self-similar, even for the others.
	Spacing string `yaml:"spacing"`
	// Low and Peak default to 0 and 2 (square, sine, ramp: 1), and to 1 and 5
	// (flash, mmpp).
	Low  *float64 `yaml:"low"`
	Peak *float64 `yaml:"peak"`
	// At, High and Period are times as Kind says.
	At     time.Duration `yaml:"at"`
	High   time.Duration `yaml:"high"`
	Period time.Duration `yaml:"period"`
	// Steps is the number of steps of a period of a sine; default 256.
	Steps int `yaml:"steps"`
	// Hurst is in (0.5, 1).
	Hurst float64 `yaml:"hurst"`
	// Shape of the gaps, in [0, 0.5).
	Shape float64 `yaml:"shape"`
	// Replay is the trace whose times are replayed; default the workload's.
	Replay Replay `yaml:"replay"`
}

// Change is one change of the keys over time. Steps, drifts and growth apply to
// the shares, in the order of the list; then swaps move them; then flash crowds
// come on top.
type Change struct {
	Kind string        `yaml:"kind"`
	At   time.Duration `yaml:"at"`
	For  time.Duration `yaml:"for"`
	// Every is the period of swaps.
	Every time.Duration `yaml:"every"`
	// Exponent after a step or drift; used unless HotLoad is set.
	Exponent float64 `yaml:"exponent"`
	// HotKeys and HotLoad after a step or drift, as in Spec.
	HotKeys float64 `yaml:"hotKeys"`
	HotLoad float64 `yaml:"hotLoad"`
	// By is how many keys a swap moves the load on by; default a tenth of the
	// keys, at least 1.
	By int64 `yaml:"by"`
	// Key is the number (rank) of the key of a flash crowd.
	Key int64 `yaml:"key"`
	// Share of all records that a flash crowd has, in (0, 1].
	Share float64 `yaml:"share"`
	// From is the number of keys before growth.
	From int64 `yaml:"from"`
}

// Value describes the value column.
type Value struct {
	// Kind is none (default), one (always 1), index (the record's number),
	// uniform (0 … Max−1), or flag (1 for Share of the records, else 0).
	Kind  string  `yaml:"kind"`
	Max   int64   `yaml:"max"`
	Share float64 `yaml:"share"`
}

// Measure describes a distribution of sizes (bytes) or times (ns).
type Measure struct {
	// Kind is none (default), constant (Mean), uniform (Min … Max), exponential
	// (Mean), lognormal (Mean, Sigma), pareto or gev (Location, Scale, Shape).
	Kind     string  `yaml:"kind"`
	Mean     float64 `yaml:"mean"`
	Sigma    float64 `yaml:"sigma"`
	Location float64 `yaml:"location"`
	Scale    float64 `yaml:"scale"`
	Shape    float64 `yaml:"shape"`
	// Min and Max bound the values; Max 0 means no bound.
	Min float64 `yaml:"min"`
	Max float64 `yaml:"max"`
	// Plus is another distribution whose values are added, as the size of a key
	// to that of a value.
	Plus *Measure `yaml:"plus"`
	// By says, for what a key has, how it goes with the key's load: independent
	// (default), load (the hottest key has the largest value) or inverse.
	By string `yaml:"by"`
}

// Replay describes a trace file and how it is used.
type Replay struct {
	// Path of the file: compact (.trc), .csv, or .jsonl, each plain or with .gz.
	Path string `yaml:"path"`
	// Format is compact, csv or jsonl; default by the file's name.
	Format string `yaml:"format"`
	// Key, Time, Value and Size name the columns; in compact files they are
	// column numbers, and column 0 is the time. Time is needed to replay
	// arrivals, Key to replay keys.
	Key   string `yaml:"key"`
	Time  string `yaml:"time"`
	Value string `yaml:"value"`
	Size  string `yaml:"size"`
	// Unit of the times: ns, us, ms (default) or s.
	Unit string `yaml:"unit"`
	// Speed divides all times; default 1.
	Speed float64 `yaml:"speed"`
	// Loop starts again at the end; else the stream ends.
	Loop bool `yaml:"loop"`
	// Scale makes each key into this many, which share its records; default 1.
	Scale int64 `yaml:"scale"`
	// OnBadRow is fail (default) or skip, which counts them.
	OnBadRow string `yaml:"onBadRow"`
}

// CatchUp describes what a feed does with records that are overdue.
type CatchUp struct {
	// Policy is burst (default: send all at once), limit (at most Factor times
	// the scheduled rate), or skip (drop what is overdue by more than After,
	// and count it).
	Policy string        `yaml:"policy"`
	Factor float64       `yaml:"factor"`
	After  time.Duration `yaml:"after"`
}
