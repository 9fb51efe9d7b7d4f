package suites

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestShelf(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) || !slices.Contains(names, "quickstart") || !slices.Contains(names, "smoke") {
		t.Errorf("names: %q", names)
	}
	for _, n := range names {
		if data, ok := Read(n); !ok || len(data) == 0 {
			t.Errorf("%s cannot be read", n)
		}
	}
	for _, n := range []string{"", "nothing", "quickstart.yaml", "../suites/quickstart", "./quickstart", `.\quickstart`, "suite.schema.json", "a\x00b"} {
		if _, ok := Read(n); ok {
			t.Errorf("%q is not a name of a suite", n)
		}
	}
	// What a caller does to the bytes stays with it.
	data, _ := Read("smoke")
	data[0] = 'X'
	if again, _ := Read("smoke"); again[0] == 'X' {
		t.Error("two readers share bytes")
	}
	if !json.Valid(Schema()) {
		t.Error("the schema is not JSON")
	}
}
