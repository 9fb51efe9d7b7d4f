package model

import (
	"fmt"
	"math"
)

// Regret is how much worse a choice is than the best, as a share of the best:
// chosen/best − 1, for costs (lower is better). It is false when the two cannot
// be compared: a negative or non-finite cost, or a best of 0 with a chosen
// above it. Two zeros have regret 0.
func Regret(chosen, best float64) (float64, bool) {
	if !(chosen >= 0) || !(best >= 0) || math.IsInf(chosen, 1) || math.IsInf(best, 1) {
		return 0, false
	}
	if best == 0 {
		return 0, chosen == 0
	}
	return chosen/best - 1, true
}

// BestOf returns the index of the lowest cost, the first among equals. Costs
// that are NaN count as unmeasured and are passed over. It errors, wrapping
// ErrParameter, when no cost is measured.
func BestOf(costs []float64) (int, error) {
	best := -1
	for i, c := range costs {
		if !math.IsNaN(c) && (best < 0 || c < costs[best]) {
			best = i
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("best of %d costs, none of them measured: %w", len(costs), ErrParameter)
	}
	return best, nil
}

// SweepRegret is the regret of the swept cost at index chosen against the best
// of the sweep. Errors wrap ErrParameter.
func SweepRegret(costs []float64, chosen int) (float64, error) {
	if chosen < 0 || chosen >= len(costs) {
		return 0, fmt.Errorf("choice %d of a sweep of %d: want an index of the sweep: %w", chosen, len(costs), ErrParameter)
	}
	best, err := BestOf(costs)
	if err != nil {
		return 0, err
	}
	r, ok := Regret(costs[chosen], costs[best])
	if !ok {
		return 0, fmt.Errorf("regret of cost %v against %v: want finite costs and a best above 0: %w", costs[chosen], costs[best], ErrParameter)
	}
	return r, nil
}
