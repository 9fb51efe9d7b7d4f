package sim

import (
	"flag"
	"testing"
	"time"

	"github.com/weir-bench/weir/engine/migration"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this seed only")
	seedsFlag = flag.Uint64("seeds", 150, "how many seeds TestSeeds runs")
	partFlag  = flag.Uint("part", 16, "TestChecksPass runs one seed of so many")
	fromFlag  = flag.Uint64("from", 1, "the first seed of TestSeeds")
)

func report(t *testing.T, r Result) {
	t.Helper()
	t.Errorf("%s\n  recovery %s, migration %s, transactional %v, faults %v\n  repro: go run ./cmd/bench sim --from %d --seeds 1",
		r.Violation, r.Recovery, r.Migration, r.Transactional, r.Faults, r.Seed)
}

// TestSeeds runs trials in which everything is drawn from the seed: strategies, sinks, faults, migrations. One seed is
// fresh each time.
func TestSeeds(t *testing.T) {
	if *seedFlag > 0 {
		if r := Run(Config{Seed: *seedFlag, Faults: -1}); r.Violation != "" {
			report(t, r)
		}
		return
	}
	for s := *fromFlag; s < *fromFlag+*seedsFlag; s++ {
		if r := Run(Config{Seed: s, Faults: -1}); r.Violation != "" {
			report(t, r)
		}
	}
	if r := Run(Config{Seed: uint64(time.Now().UnixNano()) >> 8, Faults: -1}); r.Violation != "" {
		report(t, r)
	}
}

// TestSeedsThatOnceFailed runs again what found a bug once: stale acks of a broken connection taken for loss, an ack that
// nobody repeated, order logs that did not begin again on a new connection, a checkpoint that was complete without the
// coordinator's knowing, two tasks that mirrored to each other while a checkpoint aligned.
func TestSeedsThatOnceFailed(t *testing.T) {
	for _, s := range []uint64{52046, 56151, 300147, 306122, 706941} {
		if r := Run(Config{Seed: s, Faults: -1, Incremental: no(), Unaligned: no()}); r.Violation != "" {
			report(t, r)
		}
	}
}

// TestSeedsThatOnceFailedByRecovery runs again what found a bug once in recovery task by task: a second loss of who knew an
// order, acks of tasks that were deployed again, tasks started before their state was there, a migration between two
// ticks, unaligned barriers, a source that did not know where it stood,
// a standby whose state, when it took over, overtook its predecessor's answers.
func TestSeedsThatOnceFailedByRecovery(t *testing.T) {
	for _, c := range []Config{
		{Recovery: "checkpoint:task", Seed: 39, Migration: "none"}, {Recovery: "checkpoint:task", Seed: 72, Migration: "none"},
		{Recovery: "checkpoint:task", Seed: 196, Migration: "none"}, {Recovery: "checkpoint:task", Seed: 20011},
		{Recovery: "checkpoint:task", Seed: 20190}, {Recovery: "checkpoint:task", Seed: 20571}, {Recovery: "upstream", Seed: 20092},
		{Recovery: "upstream", Seed: 20513}, {Recovery: "passive", Seed: 1019}, {Recovery: "checkpoint:region", Seed: 397, Migration: "none"},
		{Recovery: "checkpoint:region", Seed: 398, Migration: "none"}, {Recovery: Mixed, Seed: 1120}, {Recovery: "none", Seed: 30277},
		{Recovery: "none", Seed: 30297}, {Seed: 3014472},
		{Seed: 7000349}, {Seed: 7022611}, {Seed: 7220053}, {Seed: 7035473},
	} {
		c.Faults = -1
		if r := Run(c); r.Violation != "" {
			report(t, r)
		}
	}
}

// TestSameSeedSameHash says that a run depends on nothing but its seed.
func TestSameSeedSameHash(t *testing.T) {
	for s := uint64(1); s <= 20; s++ {
		a, b := Run(Config{Seed: s, Faults: 2}), Run(Config{Seed: s, Faults: 2})
		if a.Hash != b.Hash || a.Hash == 0 || a.Answers != b.Answers || a.SimulatedNS != b.SimulatedNS {
			t.Fatalf("seed %d ran two ways: hash %x and %x", s, a.Hash, b.Hash)
		}
	}
}

// TestMetamorphic says that the same input gives the same answers whatever happens on the way: every recovery strategy
// with every migration strategy.
func TestMetamorphic(t *testing.T) {
	for _, rec := range []string{"none", "checkpoint", "active"} {
		for _, mig := range []string{"none", "all-at-once", "async-rounds", "stop-restart", "pause-move", "on-demand", "pre-copy", "replicate-input", "externalise"} {
			if s, err := migration.Lookup(mig); err == nil && !goesWith(s, rec) {
				continue
			}
			for s := uint64(1); s <= 8; s++ {
				r := Run(Config{Seed: s, Recovery: rec, Migration: mig, Faults: 0, Records: 800, Transactional: no()})
				if r.Violation != "" {
					report(t, r)
				}
				if a := r.Answers; a.Lost+a.Duplicated+a.Wrong+a.Reordered > 0 || a.Expected != 800 {
					t.Errorf("seed %d, %s, %s: without a fault every answer comes once: %+v", s, rec, mig, a)
				}
			}
		}
	}
}

// TestChecksPass runs a part of each check; -part=1 runs all of it.
func TestChecksPass(t *testing.T) {
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			for s := uint64(1); s <= max(c.Seeds/uint64(*partFlag), 1); s++ {
				if r := Run(c.Of(s)); r.Violation != "" {
					report(t, r)
				}
			}
		})
	}
}

// shownAt are the seeds of its check at which a planted bug is known to show, of those that the first seeds do not show. It only
// saves time: where one does not show there any more, all seeds are tried.
func shownAt() map[string]uint64 {
	return map[string]uint64{
		"base-before-safe": 9, "commit-at-barrier": 13, "delta-since-aborted": 27, "delta-without-link": 27,
		"early-complete": 9, "end-before-held": 24, "forget-in-flight": 13, "forget-lag": 41, "give-at-first-marker": 78,
		"hand-over-before-written": 6, "holder-lost-too": 24, "in-flight-twice": 13, "last-too-early": 7,
		"order-to-standby-only": 6, "promote-without-order": 5, "region-without-neighbours": 17, "retain-forgets-links": 27,
		"ship-committed-early": 66, "skip-alignment": 14, "skip-fence": 112, "skip-hold": 13, "source-does-not-rewind": 11,
		"stale-checkpoint": 11,
	}
}

// TestPlantedBugs says that each deliberately broken variant is caught by its named check.
func TestPlantedBugs(t *testing.T) {
	for _, b := range Bugs() {
		t.Run(b.Name, func(t *testing.T) {
			c := CheckByName(b.Check)
			known := shownAt()[b.Name]
			for k := uint64(0); k <= c.Seeds; k++ {
				s := k
				if k == 0 {
					if s = known; known == 0 {
						continue
					}
				}
				cfg := c.Of(s)
				cfg.Bugs = []string{b.Name}
				if r := Run(cfg); r.Violation != "" {
					t.Logf("caught by %s at seed %d: %s", c.Name, s, r.Violation)
					return
				}
			}
			t.Errorf("check %s does not catch %q (%s) in %d seeds", c.Name, b.Name, b.Doc, c.Seeds)
		})
	}
}
