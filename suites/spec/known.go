package spec

// Known holds the names that the program has, so that this package can check a
// suite without importing the engine. Each list is the engine's own literal, in
// the order in which it should be shown. A list left nil is not checked.
type Known struct {
	Kinds      []Kind
	Migrations []MigrationInfo
	Recoveries []RecoveryInfo
	Planners   []string
	Workloads  []string // values of workload.kind
	Arrivals   []string // values of workload.arrivals
	Presets    []string // values of workload.preset
	Backends   []string // values of state.backend
	Stored     []string // keyed kinds whose state may be in an external store
	Faults     []FaultInfo
	Triggers   []string // event names of faults[].on
	Queries    []QueryInfo

	// MaxKeyGroups is the most key groups an operator may have; 0 means 32768.
	MaxKeyGroups int

	// ValidateWorkload, if set, checks a workload that passed the checks here.
	// Problem.Field is relative to the workload, for example "exponent".
	ValidateWorkload func(Workload) []Problem

	// CheckStore, if set, says what is wrong with the URL of an external store, without connecting. Its errors do not
	// tell the password.
	CheckStore func(url string) error

	// BatchRecords is the most records in a batch, and RecordBytes what a record without payload takes; 0 checks no bounds.
	BatchRecords, RecordBytes int

	// CheckRecovery, if set, checks whether the strategies of a cell that passed the checks here can keep their promises
	// together. Problem.Field is relative to the cell; empty means its recovery.
	CheckRecovery func(*Cell) []Problem

	// CheckStorage, if set, says what is wrong with a folder or URL for checkpoints, by its text alone. What it says shows
	// no credentials.
	CheckStorage func(dir string) []Problem

	// ValidateQuery, if set, checks whether a query and a workload go together.
	// Problem.Field is relative to the cell, for example "workload.kind".
	ValidateQuery func(Query, Workload) []Problem
}

// Role says what place in a job an operator kind can take.
type Role string

// The roles.
const (
	RoleSource    Role = "source"    // no inputs
	RoleStateless Role = "stateless" // inputs and outputs, no key groups
	RoleKeyed     Role = "keyed"     // inputs and outputs, state by key group
	RoleSink      Role = "sink"      // inputs, no outputs
	RoleUnknown   Role = ""          // of a kind that is not in the list
)

// Kind is an operator kind and its role.
type Kind struct {
	Name string
	Role Role
}

// MigrationInfo is a migration strategy and what it needs.
type MigrationInfo struct {
	Name     string
	Rounds   bool // it splits the move, so that `rounds` has a meaning
	External bool // it needs a state backend outside the worker
	None     bool // it is the control: nothing moves
}

// RecoveryInfo is a fault-tolerance strategy and what it needs.
type RecoveryInfo struct {
	Name       string
	Checkpoint bool // it restores from checkpoints, so an interval is needed
	Standby    bool // each protected task needs a second slot on another worker
	None       bool // it restores nothing
}

// FaultInfo is a fault kind and what it can hit.
type FaultInfo struct {
	Name    string
	Targets []TargetKind
}

// QueryInfo is a query of a benchmark and the operators that it is made of.
type QueryInfo struct {
	Name      string
	Operators func(Query) []Operator
}

// Problem is one thing wrong with a value: which field, what, and what would be
// right.
type Problem struct {
	Field, Problem, Fix string
}

func (k Known) maxKeyGroups() int {
	if k.MaxKeyGroups > 0 {
		return k.MaxKeyGroups
	}
	return 32768
}

func (k Known) role(kind string) Role {
	for _, c := range k.Kinds {
		if c.Name == kind {
			return c.Role
		}
	}
	return RoleUnknown
}

func (k Known) migration(name string) (MigrationInfo, bool) {
	for _, m := range k.Migrations {
		if m.Name == name {
			return m, true
		}
	}
	return MigrationInfo{}, false
}

func (k Known) recovery(name string) (RecoveryInfo, bool) {
	for _, r := range k.Recoveries {
		if r.Name == name {
			return r, true
		}
	}
	return RecoveryInfo{}, false
}

// Names gives the list that a struct tag `known:"…"` stands for; nil means that
// the caller gave none, so that any word passes. A list that nobody knows is a bug.
func (k Known) Names(list string) []string {
	var out []string
	switch list {
	case "kinds":
		for _, c := range k.Kinds {
			out = append(out, c.Name)
		}
	case "migrations":
		for _, m := range k.Migrations {
			out = append(out, m.Name)
		}
	case "recoveries":
		for _, r := range k.Recoveries {
			out = append(out, r.Name)
		}
	case "faults":
		for _, f := range k.Faults {
			out = append(out, f.Name)
		}
	case "planners":
		out = k.Planners
	case "workloads":
		out = k.Workloads
	case "arrivals":
		out = k.Arrivals
	case "presets":
		out = k.Presets
	case "backends":
		out = k.Backends
	case "triggers":
		out = k.Triggers
	case "queries":
		for _, q := range k.Queries {
			out = append(out, q.Name)
		}
	default:
		panic("spec: no list of known names called " + list)
	}
	return out
}
