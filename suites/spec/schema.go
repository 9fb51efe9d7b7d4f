package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// JSONSchema gives the JSON Schema (draft 2020-12) of suite files, from the same
// struct tags that the parser reads, with the caller's lists of names. It
// describes a file before overrides; what depends on several fields at once is
// checked by Parse only.
func JSONSchema(k Known) []byte {
	g := &schemaWriter{known: k, defs: map[string]any{}}
	root := g.object(reflect.TypeFor[Suite](), false)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Suite"
	root["patternProperties"] = map[string]any{"^x-": map[string]any{"description": "Ignored: a place for YAML anchors."}}
	root["$defs"] = g.defs
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("spec: the schema cannot be written: " + err.Error())
	}
	return append(out, '\n')
}

// schemaWriter collects a definition for each struct. Structs inside a cell's
// own sections are laid over the base's, so there nothing is required.
type schemaWriter struct {
	known Known
	defs  map[string]any
}

func (g *schemaWriter) object(t reflect.Type, partial bool) map[string]any {
	props := map[string]any{}
	var required []string
	defaults := reflect.New(t)
	if d, ok := defaults.Interface().(defaulter); ok {
		d.setDefaults()
	}
	for _, f := range fieldsOf(t) {
		section := t == reflect.TypeFor[Cell]() && indexOf(configSections, f.name) >= 0
		p := g.value(f, partial || section)
		p["description"] = f.doc
		if d := defaultText(defaults.Elem().FieldByIndex(f.index)); d != nil && !partial {
			p["default"] = d
		}
		props[f.name] = p
		if f.need && !section && (!partial || f.name == "name" && t != reflect.TypeFor[Query]()) {
			required = append(required, f.name)
		}
	}
	out := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if required != nil {
		out["required"] = required
	}
	return out
}

// reference gives a pointer to the definition of a struct, or, where a bare word
// may stand for it, the choice of both.
func (g *schemaWriter) reference(t reflect.Type, partial bool) map[string]any {
	name := t.Name()
	if partial {
		name += "Override"
	}
	if _, done := g.defs[name]; !done {
		g.defs[name] = nil // ends the recursion of a type that holds itself
		g.defs[name] = g.object(t, partial)
	}
	ref := map[string]any{"$ref": "#/$defs/" + name}
	for _, f := range fieldsOf(t) {
		if f.short {
			return map[string]any{"anyOf": []any{g.value(f, partial), ref}}
		}
	}
	return ref
}

const (
	durationPattern = `^(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)$`
	ratePattern     = `^[0-9][0-9_]*(\.[0-9]+)?(e[+-]?[0-9]+)?[kKMG]? ?/ ?(s|sec|min|h)$`
	bytesPattern    = `^(0|[0-9][0-9_]*(\.[0-9]+)? ?(B|[kKMGT]B|[KMGT]iB))$`
	targetPattern   = `^(worker +[0-9]+|task +[^ /]+/[0-9]+|link +[0-9]+-[0-9]+)$`
	triggerPattern  = `^[a-z][a-z0-9-]*( +[0-9]+)?$`
)

func pattern(p, example string) map[string]any {
	return map[string]any{"type": "string", "pattern": p, "examples": []any{example}}
}

// orZero adds the bare number 0, which needs no unit.
func orZero(p map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{p, map[string]any{"const": 0}}}
}

func (g *schemaWriter) value(f fieldSpec, partial bool) map[string]any {
	switch f.typ {
	case reflect.TypeFor[time.Duration]():
		return orZero(pattern(durationPattern, "400ms"))
	case reflect.TypeFor[Rate]():
		return pattern(ratePattern, "50000/s")
	case reflect.TypeFor[Bytes]():
		return orZero(pattern(bytesPattern, "16KiB"))
	case reflect.TypeFor[Count]():
		return map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": 0}, pattern(`^[0-9][0-9_]*[kKMG]?$`, "10M")}}
	case reflect.TypeFor[Interval]():
		return map[string]any{"anyOf": []any{map[string]any{"const": "auto"}, pattern(durationPattern, "1s"), map[string]any{"const": 0}}}
	case reflect.TypeFor[Rounds]():
		return map[string]any{"anyOf": []any{map[string]any{"const": "auto"}, map[string]any{"const": "all"}, map[string]any{"type": "integer", "minimum": 1}}}
	case reflect.TypeFor[Target]():
		return pattern(targetPattern, "worker 2")
	case reflect.TypeFor[Trigger]():
		return pattern(triggerPattern, "barrier-injected 3")
	case reflect.TypeFor[Objective]():
		return map[string]any{"type": "string", "examples": []any{"active.recovery_ms.median < 50"}}
	}
	switch f.typ.Kind() {
	case reflect.Pointer:
		f.typ = f.typ.Elem()
		return g.value(f, partial)
	case reflect.Struct:
		return g.reference(f.typ, partial)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.value(fieldSpec{typ: f.typ.Elem()}, partial)}
	case reflect.Map:
		word := map[string]any{"type": []any{"string", "number", "boolean"}}
		if f.typ.Elem().Kind() == reflect.Slice {
			word = map[string]any{"type": "array", "items": word, "minItems": 1}
		}
		return map[string]any{"type": "object", "additionalProperties": word}
	}
	return g.plain(f)
}

func (g *schemaWriter) plain(f fieldSpec) map[string]any {
	out := map[string]any{}
	switch f.typ.Kind() {
	case reflect.String:
		out["type"] = "string"
		list := f.enum
		if f.known != "" {
			list = g.known.Names(f.known)
		}
		if list != nil {
			out["enum"] = list
		}
	case reflect.Bool:
		out["type"] = "boolean"
	case reflect.Float64:
		out["type"] = "number"
	case reflect.Uint64:
		out["type"], out["minimum"] = "integer", 0
	default:
		out["type"] = "integer"
	}
	if f.lo != nil {
		out["minimum"] = *f.lo
	}
	if f.hi != nil {
		out["maximum"] = *f.hi
	}
	return out
}

// defaultText gives a default as it would be written, or nil if there is none
// worth showing.
func defaultText(v reflect.Value) any {
	if v.IsZero() {
		return nil
	}
	switch x := v.Interface().(type) {
	case fmt.Stringer: // time.Duration, Bytes, …
		return x.String()
	case string, bool, int, float64, uint64:
		return x
	}
	return nil
}
