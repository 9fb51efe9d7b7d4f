package task

import (
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/core"
)

// BenchmarkSynchronousPart measures what a checkpoint of 1 GB of state costs the loop: from the last barrier until the
// snapshot is handed to the disk, and when it comes back. The state is that of 64 million counters in 1,024 key groups.
func BenchmarkSynchronousPart(b *testing.B) {
	for _, incremental := range []bool{false, true} {
		name := map[bool]string{false: "whole", true: "incremental"}[incremental]
		b.Run(name, func(b *testing.B) {
			t := newBench(b, func(j *core.Job) { j.Operators[2].Groups, j.Incremental = 1024, incremental })
			task := t.w.tasks[countTask]
			task.ctx.State.Fill(1<<26, task.moves.owns)
			start := time.Now()
			t.w.Clock = func() int64 { return int64(time.Since(start)) + 1 }
			var cut, done time.Duration
			id := uint64(0)
			for b.Loop() {
				id++
				t.e.Reset()
				t.records(0, 1000)
				t.control(0, core.Control{Type: core.CtlBarrier, ID: id})
				t.control(1, core.Control{Type: core.CtlBarrier, ID: id})
				t.w.Run(&t.e)
				cut += time.Duration(t.e.Snapshots[0].CutNS)
				before := time.Now()
				t.w.SnapshotDone(countTask, 1, id, []byte("{}"), 1, nil, &t.e)
				t.w.Message(&core.Msg{Type: core.MsgCheckpointDone, ID: id}, &t.e)
				done += time.Since(before)
				out := task.outs[0]
				out.acknowledge(core.Ack{Next: out.next, Consumed: out.next - 1, Limit: out.next + 1<<16, From: otherNode})
			}
			b.ReportMetric(float64(cut.Microseconds())/float64(b.N), "cut-µs")
			b.ReportMetric(float64(done.Microseconds())/float64(b.N), "done-µs")
		})
	}
}
