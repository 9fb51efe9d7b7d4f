package spec

import "time"

// Suite is one parsed, defaulted and validated suite file. It is a plain value:
// after Parse returned it, nobody changes it, and it may be read concurrently.
//
// The struct tags are the schema. `yaml` names the field in the file, `doc` is
// its description in the JSON Schema, `enum` the closed list of words it takes,
// `known` the list in Known it is checked against, `min`/`max` its range (both
// inclusive), and `need:"yes"` marks a field that has no default.
type Suite struct {
	Name        string        `yaml:"name" need:"yes" doc:"Name of the suite: lower-case letters, digits and dashes; also the folder of its runs."`
	Description string        `yaml:"description" doc:"What the suite answers, in a sentence or two."`
	Seed        uint64        `yaml:"seed" doc:"Seed of everything random: workload, order of trials, choice of moved groups."`
	Repeat      int           `yaml:"repeat" min:"1" max:"1000" doc:"Repetitions of each cell, each with fresh workers."`
	Order       string        `yaml:"order" enum:"interleaved|random|blocked" doc:"interleaved: each repetition runs all cells once, in a seeded random order; random: all trials shuffled; blocked: as written."`
	Deadline    time.Duration `yaml:"deadline" doc:"Longest time the whole suite may take; 0 means no limit."`
	Runtime     string        `yaml:"runtime" enum:"process|sim|docker" doc:"Where workers live: child processes, the simulator, or containers."`

	// The base configuration; each cell holds its own resolved copy.
	Config `yaml:",inline"`

	Cells      []Cell      `yaml:"cells" need:"yes" doc:"What is compared: one row of the result table each."`
	Objectives []Objective `yaml:"objectives" doc:"Conditions such as 'active.recovery_ms.median < 50'; a missed one gives exit code 3, and a missing figure counts as missed."`

	// File is the name given to Parse; Sets the overrides applied; AsRun the
	// suite's text after them, aliases and merges expanded.
	File  string   `yaml:"-"`
	Sets  []string `yaml:"-"`
	AsRun string   `yaml:"-"`
}

// Config is everything that one trial needs except its strategies and faults.
type Config struct {
	Job        Job        `yaml:"job" need:"yes" doc:"The operators and the workers they run on."`
	Workload   Workload   `yaml:"workload" need:"yes" doc:"The open-loop load."`
	Timing     Timing     `yaml:"timing" doc:"The phases of a trial and how delay is judged."`
	Checkpoint Checkpoint `yaml:"checkpoint" doc:"Barrier snapshots."`
	Detection  Detection  `yaml:"detection" doc:"How a dead or frozen worker is found."`
}

// Cell is one row of the result table: a strategy, a fault, a load.
type Cell struct {
	Name   string            `yaml:"name" need:"yes" doc:"Name of the cell, unique in the suite."`
	Labels map[string]string `yaml:"labels" doc:"Free labels that go to the results and group the report."`

	Migration *Migration `yaml:"migration" doc:"The move of key groups in this cell, if any."`
	Recovery  Recovery   `yaml:"recovery" doc:"The fault-tolerance strategies of this cell."`
	Faults    []Fault    `yaml:"faults" doc:"What goes wrong, and when."`
	Storm     *Storm     `yaml:"storm" doc:"Random faults besides, drawn from the trial's seed."`

	// Sweep makes one cell of each combination of values; it is empty in a
	// parsed suite, whose cells are the expanded ones.
	Sweep map[string][]string `yaml:"sweep" doc:"Fields of the cell, such as workload.exponent or migration.rounds, each with a list of values: one cell for each combination."`

	// Config is the base with this cell's own sections laid over it: mappings
	// merge field by field, operators merge by name, other lists replace.
	Config `yaml:",inline"`
}

// Job is the dataflow graph and its workers.
type Job struct {
	Operators []Operator `yaml:"operators" doc:"The operators, a directed acyclic graph from sources to sinks; or give a query instead."`
	Query     *Query     `yaml:"query" doc:"A query of a benchmark, such as q5, instead of operators; the workload has to be that of the benchmark."`
	Workers   int        `yaml:"workers" min:"1" max:"1024" doc:"Worker processes that hold tasks from the start."`
	Spares    int        `yaml:"spares" min:"0" max:"1024" doc:"Idle workers kept ready to replace a failed one."`
	Slots     int        `yaml:"slots" min:"1" max:"4096" doc:"Tasks and standbys that fit on one worker."`
}

// Operator is one vertex of the job.
type Operator struct {
	Name        string   `yaml:"name" need:"yes" doc:"Name of the operator, unique in the job."`
	Kind        string   `yaml:"kind" need:"yes" known:"kinds" doc:"What the operator does."`
	Inputs      []string `yaml:"inputs" doc:"Names of the operators it reads from; a source has none."`
	Parallelism int      `yaml:"parallelism" min:"1" max:"32768" doc:"Number of tasks."`
	KeyGroups   int      `yaml:"keyGroups" min:"1" doc:"Key groups of a keyed operator: the unit of routing and of movement."`
	State       State    `yaml:"state" doc:"State of a keyed operator."`
	Service     Service  `yaml:"service" doc:"Time a record takes, on top of the operator's own work."`
	Sink        string   `yaml:"sink" enum:"eager|transactional" doc:"How a sink releases output: at once, or when the checkpoint is complete."`
	Idle        int      `yaml:"idle" min:"0" max:"32767" doc:"Tasks of a keyed operator, the last ones, that own no key groups until a migration gives them some."`
	Placement   []int    `yaml:"placement" doc:"Worker of each task, numbered from 1; without it tasks are dealt round-robin."`

	StandbyPlacement []int `yaml:"standbyPlacement" doc:"Worker of each task's standby, numbered from 1; without it, the worker after the task's."`
}

// State of a keyed operator.
type State struct {
	Backend     string `yaml:"backend" known:"backends" doc:"Where state lives: in the tasks' memory, on their workers' disks, or in an external store."`
	BytesPerKey Bytes  `yaml:"bytesPerKey" doc:"State of one key, such as 16KiB; 0B means only what the operator itself keeps."`
	Preload     Count  `yaml:"preload" doc:"Keys 0 to preload-1 of an operator of kind count are there from the start, with a count of 0; a workload that is not scrambled has such keys."`
	URL         string `yaml:"url" doc:"Address of the external store of the remote backend, as redis://user:password@host:6379/0; without it, the trial starts the embedded one. A password in it is in no file that a run writes."`
	Cache       Bytes  `yaml:"cache" doc:"Most that one task keeps in memory of a state on disk or in an external store, keys and values; 0B means nothing beyond the records under way."`

	// Where is the place of url, or else of backend, when the backend is remote.
	Where Place `yaml:"-"`
}

// Service is the artificial service time of a record.
type Service struct {
	Mode         string        `yaml:"mode" enum:"none|busy|timed" doc:"busy burns the core; timed occupies the task but not the core."`
	Distribution string        `yaml:"distribution" enum:"constant|exponential|lognormal" doc:"Distribution of the service time."`
	Mean         time.Duration `yaml:"mean" doc:"Mean service time of a record."`
	Sigma        float64       `yaml:"sigma" min:"0" max:"5" doc:"Shape of the log-normal: standard deviation of the logarithm."`
}

// Timing gives the phases of a trial: warm-up, steady (the level before the
// event), the event, after, and optionally a saturating burst.
type Timing struct {
	Warmup   time.Duration `yaml:"warmup" doc:"Runs but is not measured."`
	Steady   time.Duration `yaml:"steady" doc:"Measured level before the event; an event without a time of its own happens at its end."`
	After    time.Duration `yaml:"after" doc:"Measured after the last event."`
	Hold     time.Duration `yaml:"hold" doc:"Delay has settled when it stays in the band for this long."`
	Band     float64       `yaml:"band" min:"0" max:"100" doc:"Width of the band around the steady p99: 0.25 means up to 25 % above it."`
	Interval time.Duration `yaml:"interval" doc:"Length of one measuring interval."`
	Capacity time.Duration `yaml:"capacity" doc:"Length of a saturating burst at the end, to measure capacity; 0s means none."`
	Drain    time.Duration `yaml:"drain" doc:"Longest wait for the last outputs; what is missing then counts as never answered."`
}

// Checkpoint configures barrier snapshots.
type Checkpoint struct {
	Interval    Interval      `yaml:"interval" doc:"Time between checkpoints; 0s means none, auto follows the interval model."`
	Dir         string        `yaml:"dir" doc:"Folder or URL of the checkpoints; without it, a folder in the run directory."`
	Timeout     time.Duration `yaml:"timeout" doc:"A checkpoint that takes longer is given up."`
	Retain      int           `yaml:"retain" min:"1" max:"1000" doc:"Complete checkpoints kept."`
	Mode        string        `yaml:"mode" enum:"aligned|unaligned" doc:"Whether a task waits for the barrier on all inputs."`
	Scope       string        `yaml:"scope" enum:"global|region|task" doc:"What is rolled back after a failure: the whole job, what is connected with the lost tasks, or these alone."`
	Incremental bool          `yaml:"incremental" doc:"Write only what changed since the checkpoint before; of state on disk (backend pebble), only the tables that are not there yet."`
	FullEvery   int           `yaml:"fullEvery" min:"1" max:"1000" doc:"With incremental: of so many checkpoints one is whole all the same; of no effect on state on disk, whose checkpoints are whole sets of tables."`
	InFlight    Bytes         `yaml:"inFlight" doc:"With mode unaligned: most bytes under way to one task that are kept with a checkpoint; one with more is given up."`

	// Where is the place of dir when it is given.
	Where Place `yaml:"-"`
}

// Detection configures how failures are found.
type Detection struct {
	Heartbeat time.Duration `yaml:"heartbeat" doc:"Time between signs of life of a worker."`
	Lease     time.Duration `yaml:"lease" doc:"A worker silent for this long is replaced."`
}

// Migration is one move of key groups while the job runs.
type Migration struct {
	Strategy  string         `yaml:"strategy" need:"yes" known:"migrations" doc:"How state moves."`
	Planner   string         `yaml:"planner" known:"planners" doc:"Who decides what moves where, when groups is 'plan'."`
	Operator  string         `yaml:"operator" doc:"The keyed operator that is adjusted; may be left out when the job has only one."`
	Rounds    Rounds         `yaml:"rounds" doc:"Rounds the move is split into, all (one for each moving key group), or auto (from the cost model)."`
	Groups    string         `yaml:"groups" enum:"plan|hottest|coldest|random" doc:"Which groups move: the planner's choice, or by load."`
	Share     float64        `yaml:"share" min:"0" max:"1" doc:"Share of the source task's key groups that move, when groups is not 'plan'."`
	Count     int            `yaml:"count" min:"0" max:"32768" doc:"Number of key groups that move, instead of a share; 0 means use share."`
	Theta     float64        `yaml:"theta" min:"0" max:"10" doc:"Imbalance allowed: the planner keeps load within (1+theta) of the mean."`
	From      int            `yaml:"from" min:"0" max:"1024" doc:"Worker that gives groups away, from 1; 0 means the most loaded."`
	To        int            `yaml:"to" min:"0" max:"1024" doc:"Worker that receives them, from 1; 0 means the least loaded."`
	At        *time.Duration `yaml:"at" doc:"When, from the end of the warm-up; without it, at the end of the steady phase."`
	Bandwidth Bytes          `yaml:"bandwidth" doc:"Limit on moved bytes a second, as a size such as 100MiB; 0B means none."`
	Back      *time.Duration `yaml:"back" doc:"Move everything back this long after the move began."`
	Trigger   string         `yaml:"trigger" enum:"time|detect" doc:"What begins the move: its time, or the detector of skew."`
	Detect    Detect         `yaml:"detect" doc:"The detector of skew, when the trigger is detect."`
	Peak      time.Duration  `yaml:"peak" doc:"With rounds auto: the longest that a record may wait; the fewest rounds that keep it are taken. 0s means none."`
	Wait      string         `yaml:"wait" enum:"moving|all" doc:"With rounds auto and no peak: whose waiting the cost model weighs, that of the records of moving key groups or that of all."`
}

// Detect sets the detector of skew.
type Detect struct {
	Theta     float64       `yaml:"theta" min:"0" max:"10" doc:"Imbalance of the most loaded task, (load - mean) / mean, above which it counts as skewed."`
	Signal    string        `yaml:"signal" enum:"records|cpu|state" doc:"What counts as load: records, processor time, or bytes of state."`
	Hold      time.Duration `yaml:"hold" doc:"How long the imbalance has to last before it counts."`
	Window    time.Duration `yaml:"window" doc:"Time between two looks at the meters."`
	Smoothing time.Duration `yaml:"smoothing" doc:"Half-life of the meters: a count of that age weighs half."`
}

// Recovery gives the fault-tolerance strategies of a cell.
type Recovery struct {
	Strategy    string             `yaml:"strategy" short:"yes" known:"recoveries" doc:"Strategy of every operator that has no override."`
	Overrides   []RecoveryOverride `yaml:"overrides" doc:"Other strategies for some operators or tasks."`
	Standbys    int                `yaml:"standbys" min:"0" max:"32768" doc:"Most standbys the job may have; 0 means one for each task that needs it."`
	Every       time.Duration      `yaml:"every" doc:"Time between state deltas of passive standbys."`
	LogBytes    Bytes              `yaml:"logBytes" doc:"Bound of each sender log in memory."`
	Spill       Spill              `yaml:"spill" doc:"Room on disk for what a sender log keeps for replays beyond its bound in memory."`
	MaxRestarts int                `yaml:"maxRestarts" min:"1" max:"1000000" doc:"Most recoveries without half a minute of running in between; then the job ends with the last cause."`
	Budget      float64            `yaml:"budget" min:"0" max:"1" doc:"Share of the tasks that partial-active may protect actively."`
}

// Spill gives sender logs that wait for their reader's next base room on the disks of the workers.
type Spill struct {
	Bytes Bytes  `yaml:"bytes" doc:"Bound of each sender log on disk; 0B means that nothing goes there."`
	Dir   string `yaml:"dir" doc:"Folder for it, which must be there; without it, a folder in the run directory."`
}

// RecoveryOverride gives one operator, or one of its tasks, its own strategy.
type RecoveryOverride struct {
	Operator string `yaml:"operator" need:"yes" doc:"Name of the operator."`
	Task     *int   `yaml:"task" min:"0" max:"32767" doc:"Number of the task, from 0; without it, all of them."`
	Strategy string `yaml:"strategy" need:"yes" known:"recoveries" doc:"Its strategy."`
	Scope    string `yaml:"scope" enum:"global|region|task" doc:"With strategy checkpoint, for a whole operator: what is rolled back, instead of checkpoint.scope."`
}

// Fault is one thing that goes wrong. Exactly one of At and On is set, or none:
// then it happens at the end of the steady phase.
type Fault struct {
	Kind   string         `yaml:"kind" need:"yes" known:"faults" doc:"What goes wrong."`
	Target Target         `yaml:"target" need:"yes" doc:"Whom it hits: 'worker 2', 'task count/1' (whoever holds it), or 'link 1-2'."`
	At     *time.Duration `yaml:"at" doc:"When, from the end of the warm-up."`
	On     *Trigger       `yaml:"on" doc:"Or: on this event of the protocol, such as 'barrier-injected 3'."`
	For    time.Duration  `yaml:"for" doc:"How long it lasts; 0s means until the end of the trial."`
	Factor float64        `yaml:"factor" min:"1" max:"1000" doc:"How many times slower, for slow."`
}
