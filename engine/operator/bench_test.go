package operator

import (
	"testing"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/state"
)

// BenchmarkProcess measures one core's work on runs of 1,024 records of 1,000 keys, a watermark after each.
func BenchmarkProcess(b *testing.B) {
	for _, c := range []struct {
		kind string
		ps   map[string]string
	}{
		{"map", map[string]string{"layout": rowTime, "where": "n % 3 > 0", "key": "n", "value": "value * 908 / 1000", "row": "time; key"}},
		{"tumbling", map[string]string{"layout": rowTime, "time": "time", "size": "10us"}},
		{"sliding", map[string]string{"layout": rowTime, "time": "time", "size": "10us", "slide": "2us"}},
		{"session", map[string]string{"layout": rowTime, "time": "time", "gap": "500ns"}},
		{"top-k", map[string]string{"layout": rowTime, "time": "time", "size": "10us", "order": "-value"}},
	} {
		b.Run(c.kind, func(b *testing.B) {
			spec := core.OperatorSpec{Name: "op", Kind: c.kind, Params: c.ps}
			k, _ := Lookup(c.kind)
			op := k.New(&spec)
			ctx := Context{Groups: 128, Loads: make([]uint64, 128), Blob: state.NewBlob(128)}
			const run = 1024
			recs := make([]rec, run)
			now := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for i := range recs {
					now++
					h := core.Mix64(uint64(now))
					recs[i] = rec{h % 1000, now, int64(h >> 40), []int64{now, int64(h >> 20 & 1023)}}
				}
				cols := columns(recs)
				b.StartTimer()
				ctx.Out.Reset()
				op.Process(&ctx, cols)
				if timed, ok := op.(Timed); ok {
					for g := uint32(0); g < 128; g++ {
						timed.Watermark(&ctx, g, now)
					}
				}
			}
			b.ReportMetric(float64(b.N)*run/b.Elapsed().Seconds()/1e6, "Mrecords/s")
		})
	}
}
