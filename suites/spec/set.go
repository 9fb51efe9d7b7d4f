package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

var indexRE = regexp.MustCompile(`\[(\d+)\]`)

// splitPath turns job.operators[1].kind or job.operators.count.kind into its
// segments.
func splitPath(path string) []string {
	return strings.Split(strings.TrimPrefix(indexRE.ReplaceAllString(path, ".$1"), "."), ".")
}

// applySet lays one PATH=VALUE over the tree.
func applySet(c *collector, root *node, set string) *node {
	at := pos{source: "--set " + Redact(set)}
	path, text, found := strings.Cut(set, "=")
	if !found || path == "" {
		c.add(at, "", "not of the form PATH=VALUE", "write for example --set workload.rate=20000/s")
		return root
	}
	var y yaml.Node
	if err := yaml.Unmarshal([]byte(text), &y); err != nil {
		c.add(at, path, "the value is not YAML: "+yamlLineRE.ReplaceAllString(err.Error(), ""), "quote it, or write a list as [a, b]")
		return root
	}
	val := &node{kind: scalarNode, tag: "!!null", at: at, path: path}
	if len(y.Content) > 0 {
		b := &treeBuilder{c: c, source: at.source, open: map[*yaml.Node]bool{}}
		val = b.build(y.Content[0], path, 0)
		if b.stopped {
			return root
		}
	}
	out, problem := root.with(splitPath(path), "", val)
	if problem != nil {
		c.add(at, problem.Field, problem.Problem, problem.Fix)
		return root
	}
	return out
}

// with gives a copy of the tree in which the value at a path is replaced or
// added. Elements of lists are named by their name or their index.
func (n *node) with(segs []string, done string, val *node) (*node, *Problem) {
	if len(segs) == 0 {
		return val, nil
	}
	seg := segs[0]
	if seg == "" {
		return nil, &Problem{Field: done, Problem: "the path has an empty part", Fix: "write names joined by dots, such as workload.rate"}
	}
	out := *n
	switch n.kind {
	case sequenceNode:
		i, problem := n.item(seg, done)
		if problem != nil {
			return nil, problem
		}
		child, problem := n.items[i].with(segs[1:], itemPath(done, i, n.items[i].name()), val)
		if problem != nil {
			return nil, problem
		}
		out.items = append([]*node(nil), n.items...)
		out.items[i] = child
		return &out, nil
	case scalarNode:
		if n.tag != "!!null" {
			return nil, &Problem{Field: done, Problem: fmt.Sprintf("is %s, which has no field %s", n.what(), seg), Fix: "set " + done + " itself"}
		}
		out.kind, out.tag = mappingNode, "!!map"
	}
	old := n.get(seg)
	if old == nil {
		old = &node{kind: mappingNode, tag: "!!map", at: val.at, path: joinPath(done, seg)}
	}
	child, problem := old.with(segs[1:], joinPath(done, seg), val)
	if problem != nil {
		return nil, problem
	}
	out.fields = withField(n.fields, field{key: seg, at: val.at, val: child})
	return &out, nil
}

func (n *node) item(seg, done string) (int, *Problem) {
	var names []string
	for i, it := range n.items {
		name := it.name()
		if name == seg {
			return i, nil
		}
		if name == "" {
			name = strconv.Itoa(i)
		}
		names = append(names, name)
	}
	i, err := strconv.Atoi(seg)
	if err != nil {
		return 0, &Problem{Field: done, Problem: fmt.Sprintf("has no element %q", seg), Fix: suggest(seg, names)}
	}
	if i < 0 || i >= len(n.items) {
		return 0, &Problem{Field: done, Problem: fmt.Sprintf("has no element %d", i), Fix: fmt.Sprintf("it has %d, counted from 0", len(n.items))}
	}
	return i, nil
}

// withField gives a copy of the list in which a field is replaced or added.
func withField(fields []field, f field) []field {
	out := append([]field(nil), fields...)
	for i := range out {
		if out[i].key == f.key {
			out[i] = f
			return out
		}
	}
	return append(out, f)
}
