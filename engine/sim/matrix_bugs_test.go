package sim

import "testing"

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
