package archtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-bench/weir/workloads"
)

// TestWorkloadReference keeps the tables of docs/workloads.md equal to the lists of the generators.
func TestWorkloadReference(t *testing.T) {
	cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	for mark, list := range map[string][]workloads.Choice{
		"kinds": workloads.Kinds(), "arrivals": workloads.ArrivalKinds(), "changes": workloads.ChangeKinds(),
	} {
		var b strings.Builder
		b.WriteString("| kind | what it is | fields |\n| --- | --- | --- |\n")
		for _, c := range list {
			fields := "`" + strings.Join(strings.Fields(c.Fields), "`, `") + "`"
			if c.Fields == "" {
				fields = ""
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, cell(c.Doc), fields)
		}
		generated(t, "docs/workloads.md", mark, b.String())
	}
	var b strings.Builder
	b.WriteString("| preset | source, and the parameters that it names | what is added here |\n| --- | --- | --- |\n")
	for _, p := range workloads.Presets() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, cell(p.Source), cell(p.Note))
	}
	generated(t, "docs/workloads.md", "presets", b.String())
}
