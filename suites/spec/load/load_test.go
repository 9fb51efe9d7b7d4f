package load

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-bench/weir/suites/spec"
	"github.com/weir-bench/weir/workloads"
)

// fill gives every field below v a value of its own.
func fill(v reflect.Value, n *int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
		return
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
		return
	case reflect.Pointer:
		if *n > 200 {
			return // a measure may be added to a measure, without end
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
		return
	}
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("x", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n))
	default:
		v.SetInt(int64(*n))
	}
}

// leaves lists the values below v by their path.
func leaves(v reflect.Value, path string, out map[string]any) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			leaves(v.Field(i), path+"."+v.Type().Field(i).Name, out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			leaves(v.Index(i), path+"[]", out)
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		leaves(v.Elem(), path, out)
	case reflect.String:
		out[path] = v.String()
	case reflect.Bool:
		out[path] = v.Bool()
	case reflect.Float64:
		out[path] = v.Float()
	case reflect.Uint64:
		out[path] = float64(v.Uint())
	default:
		out[path] = float64(v.Int())
	}
}

// Every field of a suite's workload arrives under its own name, and the
// generators have none that a suite cannot say.
func TestEveryFieldArrives(t *testing.T) {
	var w spec.Workload
	n := 0
	fill(reflect.ValueOf(&w).Elem(), &n)
	from, to := map[string]any{}, map[string]any{}
	leaves(reflect.ValueOf(w), "", from)
	leaves(reflect.ValueOf(Spec(w, 4711)), "", to)
	if to[".Seed"] != float64(4711) {
		t.Errorf("seed: %v", to[".Seed"])
	}
	delete(to, ".Seed")
	delete(from, ".Splits") // parts of the stream, which workloads.Split makes
	for path, want := range from {
		if got, ok := to[path]; !ok || got != want {
			t.Errorf("%s: %v arrives as %v", path, want, got)
		}
	}
	for path := range to {
		if _, ok := from[path]; !ok {
			t.Errorf("%s: a suite cannot set it", path)
		}
	}
	if len(from) < 60 {
		t.Errorf("only %d fields", len(from))
	}
}

func TestCheckSpeaksTheWordsOfSuites(t *testing.T) {
	ok := spec.Workload{Kind: workloads.KindBook, Rate: 50000}
	if got := Check(ok); got != nil {
		t.Errorf("%+v", got)
	}
	presets := workloads.Presets()
	if len(presets) == 0 {
		t.Fatal("no presets")
	}
	for _, p := range presets {
		if got := Check(spec.Workload{Preset: p.Name}); got != nil {
			t.Errorf("preset %s: %+v", p.Name, got)
		}
	}
	for _, c := range []struct {
		w     spec.Workload
		field string
	}{
		{spec.Workload{Kind: "hotset", Keys: 10, Rate: 1, HotKeys: 2, HotLoad: 0.5}, "hotKeys"},
		{spec.Workload{Kind: "zipf", Keys: 10, Rate: 1, Exponent: -1}, "exponent"},
		{spec.Workload{Kind: "uniform", Keys: 10, Rate: 1, CatchUp: spec.CatchUp{Policy: "limit", Factor: 0.5}}, "catchUp.factor"},
		{spec.Workload{Kind: "uniform", Keys: 10, Rate: 1, Arrivals: spec.Arrivals{Kind: "square", Period: time.Second, High: 2 * time.Second}}, "arrivals.period"},
	} {
		got := Check(c.w)
		if len(got) == 0 || got[0].Field != c.field || got[0].Problem == "" || got[0].Fix == "" {
			t.Errorf("%+v: %+v, want field %s", c.w, got, c.field)
		}
	}
}

// The word lists in the schema are those of the generators.
func TestWordLists(t *testing.T) {
	words := func(typ any, field string) []string {
		f, _ := reflect.TypeOf(typ).FieldByName(field)
		return strings.Split(f.Tag.Get("enum"), "|")
	}
	if got, want := words(spec.Change{}, "Kind"), names(workloads.ChangeKinds()); !slices.Equal(got, want) {
		t.Errorf("changes: the schema has %v, the generators %v", got, want)
	}
	base := spec.Workload{Kind: "uniform", Keys: 10, Rate: 1}
	for _, c := range []struct {
		field string
		words []string
		set   func(w *spec.Workload, word string)
	}{
		{"value.kind", words(spec.Value{}, "Kind"), func(w *spec.Workload, s string) { w.Value.Kind = s }},
		{"payload.kind", words(spec.Measure{}, "Kind"), func(w *spec.Workload, s string) { w.Payload.Kind = s }},
		{"state.by", words(spec.Measure{}, "By"), func(w *spec.Workload, s string) { w.State = spec.Measure{Kind: "constant", Mean: 1, By: s} }},
		{"catchUp.policy", words(spec.CatchUp{}, "Policy"), func(w *spec.Workload, s string) { w.CatchUp.Policy = s }},
		{"arrivals.spacing", words(spec.Arrivals{}, "Spacing"), func(w *spec.Workload, s string) { w.Arrivals.Spacing = s }},
	} {
		for _, word := range append(c.words, "zzz") {
			w := base
			c.set(&w, word)
			refused := slices.ContainsFunc(Check(w), func(p spec.Problem) bool { return p.Field == c.field })
			if refused != (word == "zzz") {
				t.Errorf("%s %s: refused %v: %+v", c.field, word, refused, Check(w))
			}
		}
	}
	k := Fill(spec.Known{})
	if len(k.Workloads) < 5 || len(k.Arrivals) < 5 || len(k.Presets) < 5 || k.ValidateWorkload == nil {
		t.Errorf("%+v", k)
	}
}
