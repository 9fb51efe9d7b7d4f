package main

import (
	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/suites/spec/load"
)

// wire connects the commands to the parts of the program that do the work.
func wire() app { return app{known: known} }

// known lists what this build can run.
func known() spec.Known {
	return load.Fill(spec.Known{
		Kinds: []spec.Kind{
			{Name: "source", Role: spec.RoleSource}, {Name: "count", Role: spec.RoleKeyed},
			{Name: "forward", Role: spec.RoleStateless}, {Name: "filter", Role: spec.RoleStateless},
			{Name: "sink", Role: spec.RoleSink},
		},
		Migrations: []spec.MigrationInfo{
			{Name: "none", None: true}, {Name: "stop-restart"}, {Name: "async-rounds", Rounds: true},
		},
		Recoveries: []spec.RecoveryInfo{
			{Name: "none", None: true}, {Name: "checkpoint", Checkpoint: true}, {Name: "active", Standby: true},
		},
		Planners: []string{"greedy"},
		Backends: []string{"heap"},
		Faults: []spec.FaultInfo{
			{Name: "kill", Targets: []spec.TargetKind{spec.TargetWorker, spec.TargetTask}},
			{Name: "freeze", Targets: []spec.TargetKind{spec.TargetWorker, spec.TargetTask}},
			{Name: "cut", Targets: []spec.TargetKind{spec.TargetLink}},
			{Name: "slow", Targets: []spec.TargetKind{spec.TargetWorker, spec.TargetTask}},
		},
		Triggers:     []string{},
		MaxKeyGroups: 32768,
	})
}
