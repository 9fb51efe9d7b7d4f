package runner

import (
	"github.com/weir-bench/weir/chaos"
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
	"github.com/weir-bench/weir/engine/migration/planner"
	"github.com/weir-bench/weir/engine/operator"
	"github.com/weir-bench/weir/engine/recovery"
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/suites/spec/load"
)

// maxKeyGroups bounds the key groups of an operator, as route tables and meters are sent whole.
const maxKeyGroups = 32768

// Known lists what this program can run, for the checks of suites.
func Known() spec.Known {
	k := spec.Known{
		Migrations: []spec.MigrationInfo{{Name: controlMigration, None: true}},
		Backends:   []string{"heap", core.BackendPebble, "remote"}, Stored: storedKinds(), CheckStore: checkStore, Triggers: triggers(), MaxKeyGroups: maxKeyGroups,
		CheckStorage: checkAddress, BatchRecords: core.MaxBatch, RecordBytes: recordBytes, CheckRecovery: checkRecovery,
	}
	for _, o := range operator.Kinds() {
		k.Kinds = append(k.Kinds, spec.Kind{Name: o.Name, Role: role(o)})
	}
	for _, m := range migration.Strategies() {
		k.Migrations = append(k.Migrations, spec.MigrationInfo{Name: m.Name, Rounds: m.UsesRounds, External: m.External})
	}
	for _, r := range recovery.Strategies() {
		k.Recoveries = append(k.Recoveries, spec.RecoveryInfo{Name: r.Name, Checkpoint: r.Checkpoints, Standby: r.Standby, None: r.Name == "none"})
	}
	for _, p := range planner.List() {
		k.Planners = append(k.Planners, p.Name)
	}
	for _, f := range chaos.Kinds() {
		if f.Kind == chaos.SlowLink {
			continue // suites have no fields for its limits
		}
		targets := []spec.TargetKind{spec.TargetWorker, spec.TargetTask}
		if f.Link {
			targets = []spec.TargetKind{spec.TargetLink}
		}
		k.Faults = append(k.Faults, spec.FaultInfo{Name: string(f.Kind), Targets: targets})
	}
	k.Queries, k.ValidateQuery = knownQueries(), checkQuery
	return load.Fill(k)
}

func role(o operator.Kind) spec.Role {
	switch {
	case o.Source:
		return spec.RoleSource
	case o.Sink:
		return spec.RoleSink
	case o.Keyed:
		return spec.RoleKeyed
	}
	return spec.RoleStateless
}
