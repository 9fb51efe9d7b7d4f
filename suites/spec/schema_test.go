package spec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema(testKnown())))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("suite.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("suite.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON gives a suite's text, after overrides, as the values that an editor
// would check.
func asJSON(t *testing.T, text string, sets ...string) any {
	t.Helper()
	c := newCollector("t.yaml")
	root := readTree(c, []byte(text))
	for _, s := range sets {
		root = applySet(c, root, s)
	}
	if err := c.err(); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal([]byte(asRun(root)), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sweeping is a cell with a sweep that no objective names.
var sweeping = strings.Replace(good, "cells:", "cells:\n  - {name: s, sweep: {workload.exponent: [0, 0.5], workload.kind: [zipf]}}", 1)

func TestSchemaKnowsSweeps(t *testing.T) {
	mustParse(t, sweeping)
	if err := compileSchema(t).Validate(asJSON(t, sweeping)); err != nil {
		t.Error(err)
	}
}

// TestSchemaAgreesWithParser gives the same values to both. What one field alone
// can tell, both refuse; what is right, both accept.
func TestSchemaAgreesWithParser(t *testing.T) {
	schema := compileSchema(t)
	for _, c := range []struct {
		set string
		ok  bool
	}{
		{"seed=7", true},
		{"x-anything={a: [1, 2]}", true},
		{"workload.arrivals=poisson", true},
		{"workload.arrivals={kind: poisson, spacing: even}", true},
		{"workload.arrivals=poison", false},
		{"cells.die.recovery={strategy: checkpoint, logBytes: 1MiB}", true},
		{"cells.move.job={operators: [{name: count, keyGroups: 32}]}", true},
		{"cells.move.job={operators: [{keyGroups: 32}]}", false},
		{"objectives=[]", true},
		{"cells.move.sweep={workload.exponent: []}", false},
		{"cells.move.migration={strategy: async-rounds, rounds: auto}", true},
		{"cells.move.migration={strategy: async-rounds, rounds: 0}", false},
		{"cells.move.migration={strategy: async-rounds, rounds: all}", true},
		{"cells.move.migration={strategy: async-rounds, rounds: some}", false},
		{"cells.move.migration={strategy: stop-restart, trigger: detect, detect: {theta: 0.3, hold: 1s}}", true},
		{"cells.move.migration={strategy: stop-restart, trigger: detect, detect: {theta: -0.3}}", false},
		{"cells.move.migration={strategy: stop-restart, trigger: never}", false},
		{"cells.move.migration={planner: greedy}", false},
		{"checkpoint.interval=auto", true},
		{"checkpoint.interval=1500ms", true},
		{"checkpoint.interval=1m30s", true},
		{"checkpoint.interval=5", false},
		{"timing.warmup=0", true},
		{"timing.warmup=-5s", false},
		{"timing.warmup=1d", false},
		{"timing.warmup=400", false},
		{"timing.warmpu=4s", false},
		{"timing=4", false},
		{"workload.rate=1.5M/s", true},
		{"workload.rate=1e5/s", true},
		{"workload.rate=300/min", true},
		{"workload.rate=50000", false},
		{"workload.keys=10M", true},
		{"workload.keys=-1", false},
		{"workload.keys=1.5", false},
		{"workload.exponent=-1", false},
		{"workload.exponent=x", false},
		{"job.operators.count.state.bytesPerKey=1.5KiB", true},
		{"job.operators.count.state.bytesPerKey=10MB", true},
		{"job.operators.count.state.bytesPerKey=10mb", false},
		{"job.operators.count.state.bytesPerKey=10", false},
		{"job.operators.count.kind=cuont", false},
		{"job.operators.count.inputs=source", false},
		{"job.workers=0", false},
		{"job.workers=two", false},
		{"cells.die.faults.0={kind: kill, target: task count/1, on: barrier-injected 3}", true},
		{"cells.die.faults.0={kind: kill, target: 2}", false},
		{"cells.die.faults.0={kind: kill}", false},
		{"cells.die.faults.0={kind: bite, target: worker 1}", false},
		{"order=sorted", false},
		{"repeat=0", false},
		{"seed=-1", false},
		{"name=12", false},
		{"checkpoint.incremental=true", true},
		{"checkpoint.incremental=1", false},
		{"cells.die.labels={a: 1, b: true, c: x}", true},
		{"cells.die.labels={a: [1]}", false},
		{"nonsense=1", false},
	} {
		_, perr := parse(t, good, c.set)
		serr := schema.Validate(asJSON(t, good, c.set))
		if (perr == nil) != c.ok || (serr == nil) != c.ok {
			t.Errorf("%s: want accepted %v\nparser: %v\nschema: %v", c.set, c.ok, perr, serr)
		}
	}
}

// TestSchemaHasEveryField walks the structs and the schema side by side: the
// same fields, each with a description, and in the file no field that cannot be
// read.
func TestSchemaHasEveryField(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(JSONSchema(testKnown()), &schema); err != nil {
		t.Fatal(err)
	}
	defs := schema["$defs"].(map[string]any)
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type, obj map[string]any)
	walk = func(typ reflect.Type, obj map[string]any) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		props := obj["properties"].(map[string]any)
		fields := fieldsOf(typ)
		if len(props) != len(fields) {
			t.Errorf("%s: %d fields, %d properties", typ, len(fields), len(props))
		}
		for _, f := range fields {
			p, ok := props[f.name].(map[string]any)
			if !ok || p["description"] == "" || p["description"] == nil {
				t.Errorf("%s.%s: not in the schema, or without description", typ, f.name)
			}
			ft := f.typ
			for ft.Kind() == reflect.Pointer || ft.Kind() == reflect.Slice {
				ft = ft.Elem()
			}
			if ft.Kind() == reflect.Struct && !isScalarType(ft) {
				def, ok := defs[ft.Name()].(map[string]any)
				if !ok {
					t.Errorf("%s.%s: no definition %s", typ, f.name, ft.Name())
					continue
				}
				walk(ft, def)
			}
		}
	}
	walk(reflect.TypeFor[Suite](), schema)
	if len(seen) < 15 {
		t.Errorf("walked only %d structs", len(seen))
	}
	// The sections that cells may override are exactly the fields of Config.
	var sections []string
	for _, f := range fieldsOf(reflect.TypeFor[Config]()) {
		sections = append(sections, f.name)
	}
	if strings.Join(sections, " ") != strings.Join(configSections, " ") {
		t.Errorf("sections %v, Config has %v", configSections, sections)
	}
}

// Every default must itself be something that the file could say.
func TestDefaultsAreInRange(t *testing.T) {
	s := mustParse(t, good)
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for _, f := range fieldsOf(v.Type()) {
			x := v.FieldByIndex(f.index)
			p := joinPath(path, f.name)
			if x.Kind() == reflect.Struct && !isScalarType(x.Type()) {
				walk(x, p)
				continue
			}
			if x.Kind() == reflect.String && len(f.enum) > 0 && x.String() != "" && indexOf(f.enum, x.String()) < 0 {
				t.Errorf("%s: %q is not in %v", p, x, f.enum)
			}
			var n float64
			switch x.Kind() {
			case reflect.Int:
				n = float64(x.Int())
			case reflect.Float64:
				n = x.Float()
			default:
				continue
			}
			if f.lo != nil && n < *f.lo && n != 0 || f.hi != nil && n > *f.hi {
				t.Errorf("%s: %v is out of range", p, n)
			}
		}
	}
	walk(reflect.ValueOf(*s), "")
	walk(reflect.ValueOf(s.Cells[0]), "cells.move")
}
