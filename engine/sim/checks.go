package sim

import "slices"

// Check is a named check: a family of trials that must keep every promise.
type Check struct {
	Name  string
	Doc   string
	Seeds uint64
	Of    func(seed uint64) Config
}

func yes() *bool { t := true; return &t }
func no() *bool  { f := false; return &f }

// Checks lists the checks. Each planted bug names the one that must catch it.
func Checks() []Check {
	return slices.Concat(wholeChecks(), moveChecks(), checkpointChecks(), taskChecks(), spillChecks())
}

// wholeChecks are those of recovery that brings the whole job back, or its standbys, and of links.
func wholeChecks() []Check {
	return []Check{
		{"rollback", "checkpoints with an eager sink under crashes: nothing lost, nothing wrong", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "none", Transactional: no(), Faults: 2, Kinds: []string{"crash"}}
		}},
		{"exactly-once", "checkpoints with a transactional sink under crashes: each answer once", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "none", Transactional: yes(), Faults: 2, Kinds: []string{"crash"}}
		}},
		{"takeover", "active standbys under one crash: as if nothing had happened", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "active", Migration: "none", Transactional: no(), Faults: 1, Kinds: []string{"crash"}}
		}},
		{"takeover-after-blip", "links break and heal, then a worker crashes", 400, func(s uint64) Config {
			return Config{Seed: s, Recovery: "active", Migration: "none", Transactional: no(), Faults: 3, Kinds: []string{"blip", "partition", "crash"}}
		}},
		{"zombie", "a worker freezes for about its lease, is replaced, and wakes; or it is cut off from the coordinator alone", 600, func(s uint64) Config {
			return Config{Seed: s, Recovery: []string{"active", "checkpoint"}[s%2], Migration: "none", Transactional: no(), Faults: 2,
				Kinds: []string{"freeze", "wake", "cut-off"}}
		}},
		{"links", "links break and heal: every input once, in order", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "none", Migration: "none", Transactional: no(), Faults: 3, Kinds: []string{"blip", "partition"}}
		}},
	}
}

// moveChecks are those of migrations.
func moveChecks() []Check {
	return []Check{
		{"rounds", "migrations in rounds while links break", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "none", Migration: "async-rounds", Transactional: no(), Faults: 1, Kinds: []string{"partition"}}
		}},
		{"rounds-in-order", "migrations in rounds while links break again and again: the answers of a key keep their order", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "async-rounds", Transactional: no(), Faults: 5, Kinds: []string{"partition"}}
		}},
		{"rounds-and-checkpoints", "migrations in rounds between checkpoints, under crashes", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "async-rounds", Transactional: yes(), Faults: 2, Kinds: []string{"crash"}}
		}},
		{"stop-restart-eager", "without a fault a planned restart repeats nothing, even with an eager sink", 100, func(s uint64) Config {
			return Config{Seed: s, Recovery: "active", Migration: "stop-restart", Transactional: no(), Faults: 0}
		}},
		{"pre-copy", "state copied ahead while it changes, under a crash now and then", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "pre-copy", Transactional: yes(), Faults: int(s % 2), Kinds: []string{"crash"}}
		}},
		{"on-demand", "groups that records ask for come first, while links break", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "on-demand", Transactional: yes(), Faults: int(s % 2), Kinds: []string{"partition", "crash"}}
		}},
		{"replicate-input", "a task works alongside and takes over, while links break or a worker crashes", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "replicate-input", Transactional: yes(), Faults: int(s % 2), Kinds: []string{"partition", "crash"}}
		}},
		{"pause-move", "two tasks pause while all moving groups travel; standbys take over in between", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "active", Migration: "pause-move", Transactional: no(), Faults: int(s % 2), Kinds: []string{"crash"}}
		}},
		{"externalise", "state in an external store under a small cache, while links break or a worker crashes or freezes", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "none", Migration: "externalise", Transactional: no(), Faults: int(s % 2), Kinds: []string{"partition", "crash", "freeze"}}
		}},
		{"rescale", "stop-restart migrations between checkpoints", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "stop-restart", Transactional: yes(), Faults: 0}
		}},
	}
}

// checkpointChecks are those of the kinds of checkpoints.
func checkpointChecks() []Check {
	return []Check{
		{"increments", "checkpoints of what changed, under crashes and a disk that fills up", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "none", Transactional: yes(), Incremental: yes(), Unaligned: no(),
				FullEvery: 10, Records: 2500, Keys: 400, Faults: 6, Kinds: []string{"disk-hiccup", "disk-hiccup", "crash"}}
		}},
		{"increments-damaged", "checkpoints of what changed, files of which are damaged before a crash", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "none", Transactional: no(), Incremental: yes(),
				Faults: 3, Kinds: []string{"damage", "crash"}}
		}},
		{"increments-and-rounds", "checkpoints of what changed while key groups change their owners, under crashes", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "async-rounds", Transactional: yes(), Incremental: yes(),
				FullEvery: 10, Faults: 2, Kinds: []string{"crash"}}
		}},
		{"unaligned", "barriers that block no channel, under crashes: each answer once", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: []string{"none", "stop-restart"}[s%2], Transactional: yes(), Unaligned: yes(),
				Faults: 2, Kinds: []string{"crash"}}
		}},
	}
}

// taskChecks are those of recovery task by task.
func taskChecks() []Check {
	return []Check{
		{"task-scope", "lost tasks alone go back to a checkpoint and replay, under one crash: as if nothing had happened", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint:task", Migration: "none", Transactional: no(), Faults: 1, Kinds: []string{"crash"}, Records: 1500}
		}},
		{"two-in-a-row", "a second worker is lost soon after the first, with tasks that replay alone", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint:task", Migration: "none", Transactional: no(), Faults: 2, Kinds: []string{"crash", "cut-off"}, Records: 1500}
		}},
		{"shipped", "passive standbys under one crash or freeze: as if nothing had happened", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "passive", Migration: "none", Transactional: no(), Faults: 1, Kinds: []string{"crash", "freeze"}, Records: 1500}
		}},
		{"backup", "stateless tasks replay from their senders' logs, under one crash or freeze", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "upstream", Migration: "none", Transactional: no(), Faults: 1, Kinds: []string{"crash", "freeze"}, Records: 1500}
		}},
		{"region", "one of two pipelines goes back to a checkpoint; the other goes on", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint:region", Migration: "none", Transactional: yes(), Faults: 1, Kinds: []string{"crash"}, Records: 1500}
		}},
		{"gap", "without protection: only what was under way in the outage is lost, and nothing comes twice", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: "none", Migration: "none", Transactional: no(), Faults: 1, Kinds: []string{"crash"}, Records: 3000}
		}},
		{"mixed", "strategies mixed by operator and task, under one crash: as if nothing had happened", 200, func(s uint64) Config {
			return Config{Seed: s, Recovery: Mixed, Migration: "none", Transactional: no(), Faults: 1, Kinds: []string{"crash"}, Records: 1500}
		}},
	}
}

// CheckByName returns the check with the given name.
func CheckByName(name string) Check {
	for _, c := range Checks() {
		if c.Name == name {
			return c
		}
	}
	panic("sim: no check named " + name)
}
