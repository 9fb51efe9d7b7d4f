package sim

import (
	"slices"

	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// breakLink breaks the connection between two nodes in both directions: what is under way is lost (crash: a random
// later part of it; what was written before a crash may still arrive).
func (w *World) breakLink(a, b int) {
	for _, l := range []*link{w.link(a, b), w.link(b, a)} {
		l.generation++
		l.up = false
		l.lastNS = 0
		l.graceNS, l.graceDelayNS = 0, 0
		if w.rng.IntN(2) == 0 && a != task.Harness && b != task.Harness {
			l.graceNS, l.graceDelayNS = w.nowNS-w.rng.Int64N(ms)*w.rng.Int64N(2), reconnectNS+w.rng.Int64N(30*ms)
		}
	}
	w.after(detectNS, func() { w.noticeBreak(a, b); w.noticeBreak(b, a) })
}

// noticeBreak tells node that its connection to other is gone.
func (w *World) noticeBreak(node, other int) {
	if node == task.Harness {
		if w.link(other, task.Harness).up {
			return
		}
		w.harness(func(e *coord.Effects) {
			w.edge.ConnDown(other, &e.Edge)
			w.coord.NodeLost(other, "connection reset", e)
		})
		return
	}
	k := w.workers[node]
	w.on(k, func() {
		w.we.Reset()
		k.w.ConnDown(other, &w.we)
		w.perform(k)
	})
	w.after(reconnectNS, func() { w.reconnect(node, other) })
}

// reconnect brings the link from node to other up again when it can.
func (w *World) reconnect(node, other int) {
	l := w.link(node, other)
	if l.up || !w.reachable(node) || !w.reachable(other) {
		return
	}
	if l.blocked {
		w.after(reconnectNS, func() { w.reconnect(node, other) })
		return
	}
	l.up = true
	if node != task.Harness {
		k := w.workers[node]
		w.on(k, func() {
			w.we.Reset()
			k.w.LinkUp(other, &w.we)
			w.perform(k)
		})
	}
	if other == task.Harness {
		return // the coordinator has given it up
	}
	k := w.workers[other]
	w.on(k, func() {
		w.we.Reset()
		k.w.ConnUp(node, &w.we)
		w.perform(k)
		w.wake(k, 0)
	})
}

func (w *World) reachable(node int) bool { return node == task.Harness || w.workers[node].alive }

// crash ends a worker process at once.
func (w *World) crash(node int) {
	k := w.workers[node]
	if k == nil || !k.alive {
		return
	}
	w.note(0xdead, uint64(node))
	k.alive = false
	k.backlog = nil
	for other, o := range w.workers {
		if other == node || (other != 0 && (o == nil || !o.alive)) {
			continue
		}
		out := w.link(node, other)
		in := w.link(other, node)
		in.generation++
		in.up = false
		// What the dead process had written still arrives, up to a random point.
		generation := out.generation
		w.after(w.rng.Int64N(2*latencyNS+w.jitterNS), func() {
			if out.generation == generation {
				out.generation++
			}
		})
		out.up = false
		peer := other
		w.after(detectNS+2*latencyNS+w.jitterNS, func() { w.noticeBreak(peer, node) })
	}
}

// freeze stops a process for a while: it does not notice, then goes on as if nothing had happened.
func (w *World) freeze(node int, forNS int64) {
	k := w.workers[node]
	if k == nil || !k.alive || k.frozen {
		return
	}
	w.note(0xf7ee, uint64(node))
	k.frozen = true
	w.after(forNS, func() {
		k.frozen = false
		backlog := k.backlog
		k.backlog = nil
		for _, do := range backlog {
			if k.alive {
				do()
			}
		}
		if k.alive {
			w.wake(k, 0)
			// A woken zombie finds itself cut off in the end and exits; until then it sends.
			w.after(w.rng.Int64N(200*ms), func() {
				if !w.member(node) {
					w.crash(node)
				}
			})
		}
	})
}

func (w *World) member(node int) bool {
	for s := 0; s < w.coord.Graph().Job.Workers; s++ {
		if w.coord.NodeOfSlot(s) == node {
			return true
		}
	}
	return false
}

// partition cuts two nodes off from each other for a while.
func (w *World) partition(a, b int, forNS int64) {
	if !w.reachable(a) || !w.reachable(b) {
		return
	}
	w.note(0xca7, uint64(a), uint64(b))
	w.link(a, b).blocked, w.link(b, a).blocked = true, true
	w.breakLink(a, b)
	w.after(forNS, func() { w.link(a, b).blocked, w.link(b, a).blocked = false, false })
}

// fillDisk makes the disk refuse writes after n more bytes, for a while.
func (w *World) fillDisk(n, forNS int64) {
	w.note(0xd15c, uint64(n))
	w.disk.LimitSpace(n)
	w.after(forNS, w.disk.Heal)
}

// damageNewest flips a byte of the newest checkpoint's files, or of one that they link to.
func (w *World) damageNewest() {
	ck, _, err := w.store.Newest()
	if err != nil {
		return
	}
	f := ck.Files[w.rng.IntN(len(ck.Files))]
	l := f.Chain(ck.Number)[0]
	if n := len(f.Links); n > 0 {
		l = f.Chain(ck.Number)[w.rng.IntN(n+1)]
	}
	if !w.spare(ck.Number, f.Task, l.Checkpoint) {
		return // the last good one stays: a world in which all are damaged cannot recover
	}
	w.note(0xbadd, ck.Number)
	w.damage(l, f.At(l).Name)
}

// spare says whether a complete checkpoint older than number can be used without a task's file of another one.
func (w *World) spare(number uint64, task uint32, without uint64) bool {
	for number--; number > 0; number-- {
		ck, err := w.store.Verify(number)
		if err != nil {
			continue
		}
		needs := slices.ContainsFunc(ck.Files, func(f storage.FileInfo) bool {
			return f.Task == task && slices.ContainsFunc(f.Chain(number), func(l storage.Link) bool { return l.Checkpoint == without })
		})
		if !needs {
			return true
		}
	}
	return false
}

func (w *World) damage(l storage.Link, name string) {
	pos := w.rng.Int64N(max(l.Bytes, 1))
	w.disk.Damage("disk/job-sim/chk-"+itoa(l.Checkpoint)+"/"+name, func(b []byte) []byte {
		if int(pos) < len(b) {
			b[pos] ^= 0x40
		}
		return b
	})
}

func itoa(n uint64) string {
	if n >= 10 {
		return itoa(n/10) + string(rune('0'+n%10))
	}
	return string(rune('0' + n))
}
