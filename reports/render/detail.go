package render

import "slices"

// Choice says which figures a table shows.
type Choice int

const (
	// MainFigures are those that answer what was asked: what users felt, how long it took, what it cost.
	MainFigures Choice = iota
	// AllFigures are the main ones with what they are made of and how they were expected.
	AllFigures
)

func (c Choice) shows(metric string) bool {
	return c == AllFigures || !slices.Contains(details(), metric)
}

// details are the metrics that explain others. Nothing that could make a strategy look better by being left out is among
// them; a metric that nobody has heard of is shown.
func details() []string {
	return []string{
		"spike_max_ms", "spike_peak_moving_ms", "spike_peak_staying_ms", "moved_p99_ms", "spike_area_ms_s",
		"stable_mean_ms", "stable_mean_moving_ms", "stable_mean_staying_ms", "total_delay_rec_s", "excess_delay_rec_s",
		"false_alarms", "misses", "plan_ms", "plan_theta", "plan_reachable_theta", "plan_bound_bytes", "plan_gap_percent", "plan_table_entries",
		"last_byte_ms", "complete_ms", "duration_error_percent", "migration_back_ms",
		"round_freeze_ms", "round_transfer_ms", "round_install_ms", "round_drain_ms", "move_rss_bytes", "rounds_recommended",
		"wait_error_percent", "predicted_peak_ms", "peak_error_percent", "predicted_excess_rec_s", "waited_records",
		"fenced_frames", "log_bounds", "late_events", "store_reads_s", "store_writes_s", "cold_reads", "store_cpu_s_per_mrec", "store_rss_bytes",
		"standby_bytes", "sender_log_bytes", "order_log_bytes", "harness_cpu_s",
	}
}

// left returns how many figures are not shown.
func (v *View) left(show Choice) int {
	n := 0
	for _, g := range v.Groups {
		if show == MainFigures {
			n += more(g)
		}
	}
	return n
}

// more returns how many figures of a group its main table leaves out.
func more(g Group) int {
	n := 0
	for _, d := range g.Metrics {
		if !MainFigures.shows(d.metric) {
			n++
		}
	}
	return n
}
