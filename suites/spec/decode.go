package spec

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// fieldSpec is one field of the schema, read from a struct tag.
type fieldSpec struct {
	name   string
	doc    string
	index  []int
	typ    reflect.Type
	need   bool
	short  bool // a bare word in place of the mapping sets this field
	enum   []string
	known  string
	lo, hi *float64
}

// fieldsOf lists the fields of a struct, those of inlined structs included, in
// the order of the source.
func fieldsOf(t reflect.Type) []fieldSpec {
	var out []fieldSpec
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("yaml")
		if tag == "-" {
			continue
		}
		if tag == ",inline" {
			for _, f := range fieldsOf(sf.Type) {
				f.index = append([]int{i}, f.index...)
				out = append(out, f)
			}
			continue
		}
		f := fieldSpec{name: tag, doc: sf.Tag.Get("doc"), index: []int{i}, typ: sf.Type,
			need: sf.Tag.Get("need") == "yes", short: sf.Tag.Get("short") == "yes", known: sf.Tag.Get("known")}
		if e := sf.Tag.Get("enum"); e != "" {
			f.enum = strings.Split(e, "|")
		}
		f.lo, f.hi = tagNumber(sf, "min"), tagNumber(sf, "max")
		out = append(out, f)
	}
	return out
}

func tagNumber(sf reflect.StructField, key string) *float64 {
	s, ok := sf.Tag.Lookup(key)
	if !ok {
		return nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("spec: tag %s of %s is not a number", key, sf.Name))
	}
	return &v
}

// defaulter is a struct whose fields have defaults other than zero.
type defaulter interface{ setDefaults() }

// decoder fills structs from a tree and remembers which node each path came
// from, so that later checks can name a place.
type decoder struct {
	c     *collector
	known Known
	nodes map[string]*node // by path in the structs, as cells[0].job.workers
	bad   map[string]bool  // paths with a problem: what follows from them is not said
}

// fail reports a problem with the field at a struct path, at its own place or,
// when the file does not have it, at that of the nearest thing around it.
func (d *decoder) fail(path, problem, fix string) {
	d.bad[path] = true
	suffix := ""
	for p := path; ; {
		if n := d.nodes[p]; n != nil {
			shown := n.path
			if suffix != "" {
				shown = strings.TrimPrefix(shown+suffix, ".")
			}
			d.c.add(n.at, shown, problem, fix)
			return
		}
		cut := strings.LastIndexAny(p, ".[")
		if cut < 0 {
			suffix = "." + p + suffix
			p = ""
			if d.nodes[p] == nil {
				d.c.add(pos{line: 1, col: 1}, strings.TrimPrefix(suffix, "."), problem, fix)
				return
			}
			continue
		}
		suffix = p[cut:] + suffix
		p = p[:cut]
	}
}

func (d *decoder) has(path string) bool { return d.nodes[path] != nil }

// decode fills v from n. Problems are collected; v keeps its defaults there.
func (d *decoder) decode(n *node, v reflect.Value, f fieldSpec, path string) {
	d.nodes[path] = n
	if n.kind == scalarNode && n.tag == "!!null" && !n.quoted {
		d.fail(path, "is empty", "give "+wants(f)+" or remove the line")
		return
	}
	switch t := v.Type(); {
	case isScalarType(t):
		d.scalar(n, v, f, path)
	case t.Kind() == reflect.Pointer:
		p := reflect.New(t.Elem())
		if x, ok := p.Interface().(defaulter); ok {
			x.setDefaults()
		}
		f.typ = t.Elem()
		d.decode(n, p.Elem(), f, path)
		v.Set(p)
	case t.Kind() == reflect.Struct:
		d.structure(n, v, f, path)
	case t.Kind() == reflect.Slice:
		d.slice(n, v, f, path)
	case t.Kind() == reflect.Map:
		d.stringMap(n, v, f, path)
	default:
		panic("spec: no decoding for " + t.String())
	}
}

func (d *decoder) structure(n *node, v reflect.Value, f fieldSpec, path string) {
	specs := fieldsOf(v.Type())
	if n.kind == scalarNode {
		for _, s := range specs {
			if s.short {
				d.scalar(n, v.FieldByIndex(s.index), s, path)
				return
			}
		}
	}
	if n.kind != mappingNode {
		d.fail(path, "is "+n.what(), "give "+wants(f))
		return
	}
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.name
	}
	for _, nf := range n.fields {
		i := indexOf(names, nf.key)
		if i < 0 {
			if path != "" || !strings.HasPrefix(nf.key, "x-") {
				d.unknown(nf, n, names)
			}
			continue
		}
		d.decode(nf.val, v.FieldByIndex(specs[i].index), specs[i], joinPath(path, nf.key))
	}
	for _, s := range specs {
		if v.Type() == reflect.TypeFor[Cell]() && indexOf(configSections, s.name) >= 0 {
			continue // a cell has the base's; what the base lacks is said there
		}
		if s.need && n.get(s.name) == nil {
			d.fail(path, "has no "+s.name, "add '"+s.name+":' with "+wants(s))
		}
	}
}

func (d *decoder) unknown(f field, in *node, names []string) {
	shown := joinPath(in.path, f.key)
	if near := Nearest(f.key, names); near != "" {
		d.c.add(f.at, shown, "unknown field", "did you mean "+near+"?")
		return
	}
	d.c.add(f.at, shown, "unknown field", "known: "+strings.Join(names, ", "))
}

func indexOf(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return -1
}

func (d *decoder) slice(n *node, v reflect.Value, f fieldSpec, path string) {
	if n.kind != sequenceNode {
		d.fail(path, "is "+n.what(), "give "+wants(f))
		return
	}
	et := v.Type().Elem()
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	ef := fieldSpec{name: f.name, typ: et}
	for i, it := range n.items {
		e := out.Index(i)
		if x, ok := e.Addr().Interface().(defaulter); ok {
			x.setDefaults()
		}
		d.decode(it, e, ef, fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

// stringMap decodes free text by name, or lists of it. Numbers and truth values
// count as the text that is written.
func (d *decoder) stringMap(n *node, v reflect.Value, f fieldSpec, path string) {
	if n.kind != mappingNode {
		d.fail(path, "is "+n.what(), "give "+wants(f))
		return
	}
	out := reflect.MakeMap(v.Type())
	for _, nf := range n.fields {
		p := joinPath(path, nf.key)
		d.nodes[p] = nf.val
		if v.Type().Elem().Kind() == reflect.Slice {
			continue // sweeps are expanded, and checked, on the tree
		}
		if nf.val.kind != scalarNode {
			d.fail(p, "is "+nf.val.what(), "give text")
			continue
		}
		out.SetMapIndex(reflect.ValueOf(nf.key), reflect.ValueOf(nf.val.value))
	}
	v.Set(out)
}

// The types that are written as one scalar, with their reader and the words in
// which a message asks for one.
var scalarTypes = []struct {
	typ   reflect.Type
	read  func(string) (any, *valueError)
	wants string
}{
	{reflect.TypeFor[time.Duration](), reader(parseDuration), "a time with a unit, such as 400ms"},
	{reflect.TypeFor[Rate](), reader(parseRate), "records a second, such as 50000/s or 1M/s"},
	{reflect.TypeFor[Bytes](), reader(parseBytes), "a size with a unit, such as 16KiB"},
	{reflect.TypeFor[Count](), reader(parseCount), "a whole number, such as 100000 or 10M"},
	{reflect.TypeFor[Interval](), reader(parseInterval), "a time with a unit, such as 1s, or auto"},
	{reflect.TypeFor[Rounds](), reader(parseRounds), "a whole number from 1, all or auto"},
	{reflect.TypeFor[Target](), reader(parseTarget), "'worker 2', 'task OPERATOR/0' or 'link 1-2'"},
	{reflect.TypeFor[Trigger](), reader(parseTrigger), "an event and its number, such as 'barrier-injected 3'"},
	{reflect.TypeFor[Objective](), reader(parseObjective), "a condition, such as 'active.recovery_ms.median < 50'"},
}

func reader[T any](f func(string) (T, *valueError)) func(string) (any, *valueError) {
	return func(s string) (any, *valueError) {
		v, err := f(s)
		return v, err
	}
}

func isScalarType(t reflect.Type) bool {
	for _, s := range scalarTypes {
		if s.typ == t {
			return true
		}
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return true
	}
	return false
}

// wants says in words what a field takes.
func wants(f fieldSpec) string {
	t := f.typ
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(f.enum) > 0 {
		return "one of " + strings.Join(f.enum, ", ")
	}
	for _, s := range scalarTypes {
		if s.typ == t {
			return s.wants
		}
	}
	if t == nil {
		return "a value"
	}
	switch t.Kind() {
	case reflect.Slice:
		return "a list, such as [a, b]"
	case reflect.Struct, reflect.Map:
		return "a mapping of fields"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// scalar reads one value and checks its word list and range.
func (d *decoder) scalar(n *node, v reflect.Value, f fieldSpec, path string) {
	if n.kind != scalarNode {
		d.fail(path, "is "+n.what(), "give "+wants(f))
		return
	}
	for _, s := range scalarTypes {
		if s.typ != v.Type() {
			continue
		}
		x, err := s.read(strings.TrimSpace(n.value))
		if err != nil {
			d.fail(path, err.problem, err.fix)
			return
		}
		v.Set(reflect.ValueOf(x))
		return
	}
	switch v.Kind() {
	case reflect.String:
		d.text(n, v, f, path)
	case reflect.Bool:
		if n.value != "true" && n.value != "false" {
			d.fail(path, "is "+n.what(), "write true or false")
			return
		}
		v.SetBool(n.value == "true")
	case reflect.Float64:
		x, err := parseFloat(n.value)
		if err != nil {
			d.fail(path, err.problem, err.fix)
		} else if d.inRange(x, f, path) {
			v.SetFloat(x)
		}
	case reflect.Uint64:
		x, err := strconv.ParseUint(strings.ReplaceAll(n.value, "_", ""), 10, 64)
		if err != nil {
			d.fail(path, "is "+n.what(), "write a whole number from 0 to 18446744073709551615")
			return
		}
		v.SetUint(x)
	default:
		x, err := parseInt(n.value)
		if err != nil {
			d.fail(path, err.problem, err.fix)
		} else if d.inRange(float64(x), f, path) {
			v.SetInt(x)
		}
	}
}

func (d *decoder) text(n *node, v reflect.Value, f fieldSpec, path string) {
	list := f.enum
	if f.known != "" {
		list = d.known.Names(f.known)
	}
	if list != nil && indexOf(list, n.value) < 0 {
		fix := suggest(n.value, list)
		if len(list) <= 12 && !strings.HasPrefix(fix, "known") {
			fix += " (known: " + strings.Join(list, ", ") + ")"
		}
		d.fail(path, fmt.Sprintf("unknown %s %q", noun(f), n.value), fix)
		return
	}
	if list == nil && n.tag != "!!str" && !n.quoted {
		d.fail(path, "is "+n.what()+", not text", fmt.Sprintf("write it in quotes: %q", n.value))
		return
	}
	v.SetString(n.value)
}

// noun gives the word for what a field names.
func noun(f fieldSpec) string {
	if f.known != "" {
		return map[string]string{"kinds": "operator kind", "migrations": "migration strategy", "recoveries": "recovery strategy",
			"planners": "planner", "workloads": "workload", "arrivals": "arrival process", "presets": "preset",
			"backends": "state backend", "faults": "fault", "queries": "query"}[f.known]
	}
	if f.name == "" {
		return "value"
	}
	return f.name
}

func (d *decoder) inRange(x float64, f fieldSpec, path string) bool {
	if (f.lo == nil || x >= *f.lo) && (f.hi == nil || x <= *f.hi) {
		return true
	}
	fix := "write "
	switch {
	case f.hi == nil:
		fix += "at least " + trimFloat(*f.lo)
	case f.lo == nil:
		fix += "at most " + trimFloat(*f.hi)
	default:
		fix += trimFloat(*f.lo) + " to " + trimFloat(*f.hi)
	}
	d.fail(path, "is "+trimFloat(x), fix)
	return false
}
