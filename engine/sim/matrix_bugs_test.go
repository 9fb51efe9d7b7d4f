package sim

import "testing"

// shownIn are cells in which a bug planted in migrations is known to show. They only save time: where it does not show there any more,
// its whole check is run.
func shownIn() map[string]string {
	return map[string]string{
		"any-word-closes-a-round": "2/count/async-rounds/active/false/target/11",
		"checkpoint-in-a-round":   "3/count/async-rounds/checkpoint/false//0",
		"done-ahead-of-order":     "3/count/async-rounds/active/false/source/39",
		"giver-keeps-groups":      "1/count/async-rounds/none/false//0",
		"giver-keeps-state":       "1/count/async-rounds/none/false//0",
		"input-overtakes-held":    "1/count/all-at-once/none/false/source-pause/7",
		"rollback-keeps-routes":   "1/count/async-rounds/checkpoint/false/source/7",
		"standby-skips-chunks":    "1/count/async-rounds/active/false//0",
		"switch-before-level":     "2/count/replicate-input/none/false/link/19",
		"timers-stay":             "1/windows/all-at-once/none/false//0",
		"two-at-once":             "1/count/stop-restart/none/false/second-migration/0",
		"word-dies-with-primary":  "2/count/async-rounds/active/false/source/4",
	}
}

// TestMatrixBugs says that each bug planted in migrations is caught by its named part of the matrix.
func TestMatrixBugs(t *testing.T) {
	t.Parallel()
	checks := map[string]MatrixCheck{}
	for _, c := range MatrixChecks() {
		checks[c.Name] = c
	}
	used := map[string]bool{}
	for _, b := range MatrixBugs() {
		used[b.Check] = true
		t.Run(b.Name, func(t *testing.T) {
			check, ok := checks[b.Check]
			if !ok {
				t.Fatalf("no check named %q", b.Check)
			}
			if at := shownIn()[b.Name]; at != "" {
				c := parseCell(t, at)
				whole := runCell(t, c).Violation == ""
				if c.Bugs = []string{b.Name}; whole && runCell(t, c).Violation != "" {
					return
				}
			}
			found, violation, kept, err := check.Run(b.Name)
			if err != nil {
				t.Fatal(err)
			}
			if found == nil {
				t.Fatalf("check %s does not catch %q (%s) in %d cells", b.Check, b.Name, b.Doc, kept)
			}
			if found.Bugs = nil; runCell(t, *found).Violation != "" {
				t.Fatalf("%s breaks a promise without the bug as well: %s", found, runCell(t, *found).Violation)
			}
			t.Logf("caught by %s behind %d cells, at %s: %s", b.Check, kept, found, violation)
		})
	}
	for name := range checks {
		if !used[name] {
			t.Errorf("check %s catches no bug", name)
		}
	}
}
