package runner

import (
	"github.com/weir-bench/weir/engine/coord"
	"github.com/weir-bench/weir/reports/runlog"
)

// roundMetrics are about the rounds of a trial's migrations.
func (t *trial) roundMetrics(m map[string]runlog.Metric) {
	var begins, ends []coord.Trace
	for _, tr := range t.traces {
		switch tr.Kind {
		case coord.TraceMigration:
			begins = append(begins, tr)
		case coord.TraceMigrated:
			ends = append(ends, tr)
		}
	}
	if len(begins) > 1 && len(ends) == len(begins) {
		m["migration_back_ms"] = runlog.Value(float64(ends[1].AtNS-begins[1].AtNS)/1e6, "ms")
	}
}
