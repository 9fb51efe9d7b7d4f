package sim

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
		{"zombie", "a worker freezes beyond its lease, is replaced, and wakes", 600, func(s uint64) Config {
			return Config{Seed: s, Recovery: []string{"active", "checkpoint"}[s%2], Migration: "none", Transactional: no(), Faults: 2, Kinds: []string{"freeze"}}
		}},
		{"links", "links break and heal: every input once, in order", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "none", Migration: "none", Transactional: no(), Faults: 3, Kinds: []string{"blip", "partition"}}
		}},
		{"rounds", "migrations in rounds while links break", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "none", Migration: "async-rounds", Transactional: no(), Faults: 1, Kinds: []string{"partition"}}
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
		{"rescale", "stop-restart migrations between checkpoints", 300, func(s uint64) Config {
			return Config{Seed: s, Recovery: "checkpoint", Migration: "stop-restart", Transactional: yes(), Faults: 0}
		}},
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

// Bug is a deliberately broken variant of the engine and the check that must catch it.
type Bug struct{ Name, Check, Doc string }

// Bugs lists the planted bugs.
func Bugs() []Bug {
	return []Bug{
		{"skip-fence", "zombie", "outputs of an older deployment are accepted"},
		{"skip-dedup", "links", "inputs that were seen before are consumed again"},
		{"skip-alignment", "exactly-once", "the snapshot is taken at the first barrier"},
		{"early-complete", "rollback", "a checkpoint is complete when one task's part is durable"},
		{"commit-at-barrier", "exactly-once", "a transaction commits before its checkpoint is complete"},
		{"source-does-not-rewind", "rollback", "a source goes on a little behind where the checkpoint was"},
		{"restore-own-file-only", "rescale", "key groups that had another owner are not restored"},
		{"forget-order-log", "takeover", "the standby is not told the primary's order"},
		{"order-to-standby-only", "takeover", "who saw an output does not hold the order that produced it"},
		{"promote-without-order", "takeover", "a standby is promoted without what others hold of the order"},
		{"trim-at-receipt", "links", "the sender log is trimmed before inputs are consumed"},
		{"never-ask-again", "links", "after a broken link nobody asks for what was lost"},
		{"drop-moving-buffer", "rounds", "records that waited for their state are dropped"},
		{"skip-hold", "rounds", "records do not wait for their state"},
		{"give-at-first-marker", "rounds", "state is given away while records for it are under way"},
		{"stop-without-pause", "stop-restart-eager", "sources go on behind the savepoint"},
		{"last-too-early", "rounds-and-checkpoints", "a group is taken for whole at its first chunk"},
		{"forget-lag", "replicate-input", "records that came before the copy was whole are dropped"},
		{"shadow-speaks", "replicate-input", "what the task that works alongside emits is not held back"},
		{"giver-is-not-told", "rounds", "the giving task gets no marker"},
		{"mirror-nothing", "replicate-input", "the task that works alongside is not sent the input"},
		{"skip-last-delta", "pre-copy", "what changed since the last copy does not travel"},
		{"own-what-is-copied", "pre-copy", "a group that was only copied ahead is taken for one's own"},
		{"hand-over-before-written", "externalise", "the new owner may read before the old one's writes are done"},
		{"skip-store-read", "externalise", "a key that is not in the cache is taken for a new one"},
		{"evict-unwritten", "externalise", "a value leaves the cache before it is written"},
		{"store-without-epoch", "externalise", "a job that starts again finds the state of before"},
		{"state-overtakes-answers", "rounds", "state goes out before the old owner's last answers have arrived"},
		{"delta-since-aborted", "increments", "a checkpoint holds what changed since one that was given up"},
		{"retain-forgets-links", "increments", "retention removes the files that a checkpoint links to"},
		{"delta-without-link", "increments", "a checkpoint of what changed is taken for a whole one"},
		{"forget-in-flight", "unaligned", "what comes between the barriers is not recorded"},
		{"in-flight-twice", "unaligned", "what came between the barriers is consumed twice after a restore"},
		{"end-before-held", "rounds", "the end of the stream overtakes records that wait"},
		{"fence-ignored", "zombie", "who has heard that a task is replaced still accepts what the old one sends"},
		{"order-not-held", "task-scope", "a task's order log does not reach back to its base"},
		{"log-forgets-early", "task-scope", "a sender log that waits for a checkpoint is trimmed when inputs are consumed"},
		{"stale-checkpoint", "task-scope", "a lost task goes back further than the newest complete checkpoint"},
		{"holder-lost-too", "two-in-a-row", "a second loss before those who knew its order are level again is taken over like the first"},
		{"ship-committed-early", "mixed", "a standby stands at a base before what was emitted until there is in safe hands"},
		{"base-before-safe", "backup", "senders forget what a task was sent before its effects are in safe hands"},
		{"region-keeps-outputs", "region", "the collector does not go back with the tasks that write to it"},
		{"region-without-neighbours", "region", "only tasks of the lost worker go back to the checkpoint"},
		{"gap-replays", "gap", "a task that begins empty is sent what its predecessor was sent"},
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
