package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/weir-bench/weir/suites"
	"github.com/weir-bench/weir/suites/spec"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestSchemaFile keeps the published schema equal to what this build reads and
// knows. To write it anew: go test ./cmd/bench -run TestSchemaFile -update
func TestSchemaFile(t *testing.T) {
	want := spec.JSONSchema(known())
	if *update {
		if err := os.WriteFile("../../suites/suite.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(suites.Schema(), want) {
		t.Error("suites/suite.schema.json is out of date; run: go test ./cmd/bench -run TestSchemaFile -update")
	}
}

// TestShippedSuites checks each suite that comes with the program as a user's
// editor and as the parser would.
func TestShippedSuites(t *testing.T) {
	if *update {
		t.Skip("the embedded schema is the one from before the update")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(suites.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("suite.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("suite.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(suites.Names()) == 0 {
		t.Fatal("no suites")
	}
	for _, name := range suites.Names() {
		data, _ := suites.Read(name)
		if !strings.HasPrefix(string(data), "# yaml-language-server: $schema=suite.schema.json\n") {
			t.Errorf("%s: the first line should name the schema for editors", name)
		}
		s, err := spec.Parse(name+".yaml", data, spec.Options{Known: known()})
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if s.Name != name || s.Description == "" {
			t.Errorf("%s: is called %q, described %q", name, s.Name, s.Description)
		}
		var v any
		if err := yaml.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		inst, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(inst); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The main job has a budget of two minutes, its short form of half a minute.
func TestTimeOfShippedSuites(t *testing.T) {
	for name, limit := range map[string]float64{"quickstart": 110, "smoke": 28} {
		data, _ := suites.Read(name)
		s, err := spec.Parse(name+".yaml", data, spec.Options{Known: known()})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := spec.Plan(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := spec.Total(plan).Seconds(); got > limit || len(plan) != 4*s.Repeat {
			t.Errorf("%s: %d trials in %.0f s, want at most %.0f s", name, len(plan), got, limit)
		}
	}
}
