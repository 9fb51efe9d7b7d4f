package verify

import (
	"fmt"
	"strings"

	"github.com/weir-bench/weir/engine/recovery"
)

// Judge says how answers break a promise, or nothing when they keep it. A repeated answer is no broken promise of
// rollback, and a lost one none of gap when it was due in the outage; a wrong or reordered one always is. failed says whether anything failed: without
// a failure every strategy has to be precise.
func Judge(p recovery.Promise, failed bool, a Answers) (broken string) {
	if !failed {
		p = recovery.Precise
	}
	var parts []string
	for _, c := range []struct {
		n    uint64
		what string
		bad  bool
	}{
		{a.Lost, "lost", p != recovery.Gap},
		{a.Unconfined, "lost outside the outage", p == recovery.Gap},
		{a.Duplicated, "duplicated", p == recovery.Precise},
		{a.Wrong, "wrong", true},
		{a.Reordered, "reordered", true},
	} {
		if c.bad && c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %d answers, against the promise %q", strings.Join(parts, ", "), a.Expected, p)
}
