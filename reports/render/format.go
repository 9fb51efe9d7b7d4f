package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-bench/weir/reports/runlog"
)

// missing is shown where there is no figure; a note says why.
const missing = "n/a"

// display is how a metric is shown.
type display struct {
	metric, title, unit string
	// scale divides the stored value.
	scale float64
	// compare is true for metrics that the comparison shows; lower is better for all of these but capacity.
	compare bool
}

// metricOrder is every known metric in the order of reading: what users feel, how long it took, what it cost, and
// whether the harness can be trusted. Unknown metrics follow by name.
func metricOrder() []display { return slices.Concat(delayOrder(), migrationOrder(), otherOrder()) }

func delayOrder() []display {
	return []display{
		{"steady_p50_ms", "steady p50", "ms", 1, true},
		{"steady_p99_ms", "steady p99", "ms", 1, true},
		{"spike_peak_ms", "spike peak (p99)", "ms", 1, true},
		{"spike_max_ms", "spike maximum", "ms", 1, false},
		{"spike_peak_moving_ms", "· peak of moving keys", "ms", 1, false},
		{"spike_peak_staying_ms", "· peak of staying keys", "ms", 1, false},
		{"moved_p99_ms", "p99 of moved keys, 1 s after", "ms", 1, false},
		{"spike_length_ms", "spike length", "ms", 1, true},
		{"spike_area_ms_s", "spike area", "ms·s", 1, true},
		{"stable_ms", "trigger to stable", "ms", 1, true},
		{"stable_peak_ms", "· peak (p99) up to then", "ms", 1, true},
		{"stable_mean_ms", "· mean up to then", "ms", 1, true},
		{"stable_mean_moving_ms", "· mean of moving keys", "ms", 1, false},
		{"stable_mean_staying_ms", "· mean of staying keys", "ms", 1, false},
		{"total_delay_rec_s", "delay of all records", "rec·s", 1, false},
		{"excess_delay_rec_s", "· above the level before", "rec·s", 1, false},
	}
}

func migrationOrder() []display {
	return []display{
		{"detection_delay_ms", "skew to alarm", "ms", 1, true},
		{"false_alarms", "· false alarms", "", 1, false},
		{"misses", "· skew not detected", "", 1, false},
		{"plan_ms", "planning", "ms", 1, false},
		{"theta_before", "imbalance before", "", 1, false},
		{"plan_theta", "· imbalance planned", "", 1, false},
		{"plan_reachable_theta", "· no plan gets below", "", 1, false},
		{"theta_after", "imbalance after", "", 1, false},
		{"plan_bound_bytes", "· state to move at least", "MB", 1e6, false},
		{"plan_gap_percent", "· gap to that", "%", 1, false},
		{"plan_table_entries", "· entries of the route table", "", 1, false},
		{"complete_ms", "trigger to complete", "ms", 1, true},
		{"last_byte_ms", "· to last byte", "ms", 1, false},
		{"migration_ms", "migration time", "ms", 1, true},
		{"predicted_duration_ms", "· expected", "ms", 1, false},
		{"duration_error_percent", "· expectation off by", "%", 1, false},
		{"migration_back_ms", "· the way back", "ms", 1, false},
		{"migration_rounds", "· rounds", "", 1, false},
		{"suspension_ms", "longest suspension of a task", "ms", 1, true},
		{"round_freeze_ms", "· longest freeze of a round", "ms", 1, false},
		{"round_transfer_ms", "· longest transfer of a round", "ms", 1, false},
		{"round_install_ms", "· longest install of a round", "ms", 1, false},
		{"round_drain_ms", "· longest drain of a round", "ms", 1, false},
		{"move_rss_ratio", "highest memory while it moves, of that before", "×", 1, true},
		{"move_rss_bytes", "· in all", "MB", 1e6, true},
		{"rounds_recommended", "· rounds recommended", "", 1, false},
		{"longest_wait_ms", "longest delay while state moved", "ms", 1, true},
		{"predicted_wait_ms", "· expected", "ms", 1, false},
		{"wait_error_percent", "· expectation off by", "%", 1, false},
		{"predicted_peak_ms", "peak (p99) expected", "ms", 1, false},
		{"peak_error_percent", "· expectation off by", "%", 1, false},
		{"predicted_excess_rec_s", "delay above the level expected", "rec·s", 1, false},
		{"moved_bytes", "state moved", "MB", 1e6, true},
		{"waited_records", "records that waited", "", 1, false},
		{"reordered_at_handover", "reordered at the hand-over", "", 1, false},
	}
}

func otherOrder() []display {
	return []display{
		{"recovery_ms", "recovery time", "ms", 1, true},
		{"detection_ms", "· detection", "ms", 1, false},
		{"restart_ms", "· restart", "ms", 1, false},
		{"restore_ms", "· restore", "ms", 1, false},
		{"replay_ms", "· replay", "ms", 1, false},
		{"catchup_ms", "· catch-up", "ms", 1, false},
		{"first_output_ms", "first output", "ms", 1, true},
		{"unprotected_ms", "without a standby", "ms", 1, false},
		{"fenced_frames", "fenced frames", "", 1, false},
		{"log_bounds", "logs at their bound", "", 1, false},
		{"late_events", "events too late for a window", "", 1, false},
		{"capacity_rec_s", "capacity", "records/s", 1, true},
		{"cpu_s_per_mrec", "CPU per million records", "s", 1, true},
		{"rss_bytes", "resident memory", "MB", 1e6, true},
		{"network_bytes_s", "network traffic", "MB/s", 1e6, false},
		{"disk_bytes_s", "disk writes", "MB/s", 1e6, false},
		{"cache_hit_share", "state found in the cache", "%", 0.01, false},
		{"store_reads_s", "· values read", "values/s", 1, false},
		{"store_writes_s", "· values written", "values/s", 1, false},
		{"cold_reads", "· values read as caches were cold", "", 1, false},
		{"store_cpu_s_per_mrec", "store's CPU per million records", "s", 1, false},
		{"store_rss_bytes", "store's resident memory", "MB", 1e6, false},
		{"checkpoints", "checkpoints", "", 1, false},
		{"checkpoint_ms", "· time of one", "ms", 1, false},
		{"checkpoint_sync_ms", "· task stands still", "ms", 1, false},
		{"checkpoint_bytes", "· size of one", "MB", 1e6, false},
		{"standby_bytes", "state in standbys", "MB", 1e6, false},
		{"sender_log_bytes", "sender logs", "MB", 1e6, false},
		{"spill_peak_bytes", "sender logs on disk", "MB", 1e6, false},
		{"spilled_bytes", "· written there", "MB", 1e6, false},
		{"order_log_bytes", "order logs", "MB", 1e6, false},
		{"harness_cpu_s", "harness CPU", "s", 1, false},
		{"send_lag_p99_ms", "harness send lag p99", "ms", 1, false},
	}
}

// phases are the parts of a recovery in order; their metrics sum to recovery_ms.
func phases() []display {
	var out []display
	for _, d := range metricOrder() {
		switch d.metric {
		case "detection_ms", "restart_ms", "restore_ms", "replay_ms", "catchup_ms":
			d.title = strings.TrimPrefix(d.title, "· ")
			out = append(out, d)
		}
	}
	return out
}

// FormatNumber shows v with three significant digits, thousands separated, never as NaN or infinity.
func FormatNumber(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return missing
	case a == 0:
		return "0"
	case a >= 99.95:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a >= 0.0009995:
		digits := 2 - int(math.Floor(math.Log10(a*1.0005)))
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func thousands(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// formatSummary shows "median (min–max)", with bounds and missing repetitions where there are such.
func formatSummary(s runlog.Summary, scale float64) string {
	show := func(p *float64) string {
		if p == nil {
			return missing
		}
		return FormatNumber(*p / scale)
	}
	var text string
	switch {
	case s.Median == nil && s.AtLeast != nil:
		text = "> " + show(s.AtLeast)
	case s.Median == nil:
		return missing
	default:
		text = show(s.Median)
		low, high := show(s.Min), show(s.Max)
		if low != text || high != text {
			text += " (" + low + "–" + high + ")"
		}
	}
	if s.N < s.Of {
		text += fmt.Sprintf(" [%d of %d]", s.N, s.Of)
	}
	return text
}
