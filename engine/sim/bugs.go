package sim

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
