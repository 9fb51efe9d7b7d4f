package archtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/recovery"
)

// TestPromiseTable keeps the table of promises in the documents equal to the one that the code goes by.
func TestPromiseTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| strategy | scope | sink | answers | state exactly once | why |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, g := range recovery.Promises() {
		state := "no"
		if g.State {
			state = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", g.Strategy, g.Scope, g.Sink, g.Output, state, g.Reason)
	}
	generated(t, "docs/strategies.md", "promises", b.String())
}
