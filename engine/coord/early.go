package coord

// early says when a checkpoint must come early because a sender log that waits for it fills. Each checkpoint has its price,
// so it comes as late as may be: when the log, as fast as it grows, would reach its bound before a checkpoint that begins
// now is complete, with the same time again to spare, and at three quarters of its bound in any case.
type early struct {
	logs   map[int]logSize // by task, as it was last reported
	tookNS int64           // how long the last complete checkpoint took; 0: there was none
	doneNS int64           // when it was complete
}

// logSize is the size of the fullest log of a task that waits for checkpoints.
type logSize struct {
	bytes int64
	atNS  int64
}

// watchLog takes a report of the fullest log of a task.
func (k *checkpoints) watchLog(task int, bytes, bound int64) {
	now := k.c.Clock()
	last := k.early.logs[task]
	k.early.logs[task] = logSize{bytes, now}
	if k.pending != nil || k.c.job.Checkpoint == 0 || now < k.early.doneNS+2*int64(k.c.job.Heartbeat) {
		return // the report may be of before the log was trimmed
	}
	if k.early.fills(last, logSize{bytes, now}, bound, int64(k.c.job.Heartbeat)) {
		k.nextNS = min(k.nextNS, now)
	}
}

// fills says that a log must be trimmed soon.
func (e *early) fills(last, now logSize, bound, heartbeatNS int64) bool {
	if 4*now.bytes > 3*bound {
		return true // one at its bound grows no more
	}
	if e.tookNS == 0 {
		return 2*now.bytes > bound
	}
	grown, span := float64(now.bytes-last.bytes), float64(now.atNS-last.atNS)
	needNS := 2 * float64(e.tookNS+heartbeatNS)
	return last.atNS > 0 && span > 0 && float64(now.bytes)+grown/span*needNS > float64(bound)
}
