package sim

import "testing"

func TestOneQuiet(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		r := Run(Config{Seed: seed, Faults: 0, Migration: "none"})
		if r.Violation != "" || r.Answers.Duplicated > 0 {
			t.Errorf("seed %d (%s): %s %+v", seed, r.Recovery, r.Violation, r.Answers)
		}
	}
}
