package spec

import (
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Options are what the command line adds to a suite file.
type Options struct {
	Known  Known
	Sets   []string // PATH=VALUE, laid over the file in this order
	Repeat int      // replaces the suite's repeat unless 0
	Seed   *uint64  // replaces the suite's seed unless nil

	// Runtime replaces the suite's runtime unless empty.
	Runtime string
}

// Parse reads, completes and checks a suite. file is the name for messages.
// The error, if any, is of type Errors and lists everything that is wrong;
// errors.Is finds ErrInvalid in it. The suite is nil then.
func Parse(file string, data []byte, opts Options) (*Suite, error) {
	c := newCollector(file)
	root := readTree(c, data)
	if root == nil {
		return nil, c.err()
	}
	sets := append([]string(nil), opts.Sets...)
	if opts.Repeat != 0 {
		sets = append(sets, "repeat="+strconv.Itoa(opts.Repeat))
	}
	if opts.Seed != nil {
		sets = append(sets, "seed="+strconv.FormatUint(*opts.Seed, 10))
	}
	if opts.Runtime != "" {
		sets = append(sets, "runtime="+opts.Runtime)
	}
	for _, set := range sets {
		root = applySet(c, root, set)
	}
	full := expandCells(c, root)

	s := new(Suite)
	s.setDefaults()
	d := &decoder{c: c, known: opts.Known, nodes: map[string]*node{}, bad: map[string]bool{}}
	d.decode(full, reflect.ValueOf(s).Elem(), fieldSpec{typ: reflect.TypeFor[Suite]()}, "")
	if s.Workload.Kind == "" && s.Workload.Preset == "" {
		s.Workload.Kind = "uniform"
	}
	for i := range s.Cells {
		if w := &s.Cells[i].Workload; w.Kind == "" && w.Preset == "" {
			w.Kind = "uniform"
		}
	}
	validate(s, d)
	if err := c.err(); err != nil {
		return nil, err
	}
	s.File, s.Sets, s.AsRun = file, sets, asRun(root)
	return s, nil
}

func asRun(root *node) string {
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root.toYAML()); err != nil {
		panic("spec: a tree that was read cannot be written: " + err.Error())
	}
	if err := enc.Close(); err != nil {
		panic("spec: a tree that was read cannot be written: " + err.Error())
	}
	return b.String()
}
