package verify

import (
	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/recovery"
)

// Promise returns what a job promises, see recovery.Weakest: the table there is the oracle's as well.
func Promise(g *core.Graph) recovery.Guarantee { return recovery.Weakest(g) }

// Observed returns the strongest promise of outputs that the answers would keep: none lost and none twice, none lost, or
// less than that. Answers that are wrong or out of order keep none, which is said by Judge.
func Observed(a Answers) recovery.Promise {
	switch {
	case a.Lost > 0:
		return recovery.Gap
	case a.Duplicated > 0:
		return recovery.Rollback
	}
	return recovery.Precise
}
