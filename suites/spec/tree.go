package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Limits on a suite file. They are far above any real suite and far below what
// a hostile file would need.
const (
	maxFileBytes = 1 << 20
	maxNodes     = 50_000 // after aliases are expanded
	maxDepth     = 32
)

// pos is a place: a line and column of the file, or an override.
type pos struct {
	source    string // "--set PATH=VALUE"; empty for the file
	line, col int
}

type nodeKind uint8

const (
	scalarNode nodeKind = iota
	mappingNode
	sequenceNode
)

// node is a YAML value with aliases and merges expanded. Trees are never
// changed once built; overrides copy the nodes on their path.
type node struct {
	kind   nodeKind
	tag    string // of a scalar: !!str, !!int, …
	value  string
	quoted bool
	at     pos
	path   string // where it is written, for messages
	fields []field
	items  []*node
}

type field struct {
	key string
	at  pos
	val *node
}

// get gives the value of a mapping's field, or nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.key == key {
			return f.val
		}
	}
	return nil
}

// name gives the scalar in the field `name`, which stands for the index of a
// list's element in paths.
func (n *node) name() string {
	if v := n.get("name"); v != nil && v.kind == scalarNode {
		return v.value
	}
	return ""
}

func (n *node) what() string {
	switch {
	case n.kind == mappingNode:
		return "a mapping"
	case n.kind == sequenceNode:
		return "a list"
	case n.tag == "!!null":
		return "nothing"
	case n.tag == "!!int" || n.tag == "!!float":
		return "the number " + n.value
	case n.tag == "!!bool":
		return "the truth value " + n.value
	}
	return strconv.Quote(n.value)
}

// readTree turns a file into a tree. It returns nil if nothing can be said about
// the file beyond the errors it added.
func readTree(c *collector, data []byte) *node {
	if len(data) > maxFileBytes {
		c.add(pos{}, "", fmt.Sprintf("the file has %d bytes", len(data)), fmt.Sprintf("a suite has at most %d", maxFileBytes))
		return nil
	}
	// yaml.v3 would count the mark as a column of the first line.
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	doc, ok := readDocument(c, data)
	if !ok {
		return nil
	}
	if doc == nil || len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		c.add(pos{line: 1, col: 1}, "", "no suite: the file has nothing but blanks and comments", "begin with 'name: my-suite'")
		return nil
	}
	b := &treeBuilder{c: c, open: map[*yaml.Node]bool{}}
	root := b.build(doc.Content[0], "", 0)
	if b.stopped {
		return nil
	}
	if root.kind != mappingNode {
		c.add(root.at, "", "the suite is "+root.what(), "write fields, beginning with 'name: my-suite'")
		return nil
	}
	return root
}

// readDocument gives the one document of the file; false after an error.
func readDocument(c *collector, data []byte) (doc *yaml.Node, ok bool) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc, err := decodeNode(dec)
	if errors.Is(err, io.EOF) {
		return nil, true
	}
	if err != nil {
		addSyntaxError(c, data, err)
		return nil, false
	}
	second, err := decodeNode(dec)
	switch {
	case errors.Is(err, io.EOF):
		return doc, true
	case err != nil:
		addSyntaxError(c, data, err)
	default:
		c.add(pos{line: second.Line, col: second.Column}, "", "a second document begins here",
			"keep one suite a file: remove '---' or move the rest to its own file")
	}
	return nil, false
}

// decodeNode decodes one document. A panic in the parser is a parser error as
// far as the user of a bad file is concerned.
func decodeNode(dec *yaml.Decoder) (n *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: the parser gave up: %v", r)
		}
	}()
	n = new(yaml.Node)
	if err := dec.Decode(n); err != nil {
		return nil, err
	}
	return n, nil
}

var (
	yamlLineRE = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	tabRE      = regexp.MustCompile(`^ *\t`)
)

// addSyntaxError translates the parser's error. Its commonest cause, a tab as
// indentation, is reported by the parser in words that nobody understands.
func addSyntaxError(c *collector, data []byte, err error) {
	found := false
	for i, line := range strings.Split(string(data), "\n") {
		if m := tabRE.FindString(line); m != "" && strings.TrimSpace(line) != "" {
			c.add(pos{line: i + 1, col: len(m)}, "", "a tab is used for indentation", "use spaces: YAML allows no tab there")
			found = true
		}
	}
	if found {
		return
	}
	msg, line := err.Error(), 1
	if m := yamlLineRE.FindStringSubmatch(msg); m != nil {
		msg = msg[len(m[0]):]
		if m[1] != "" {
			// At most six digits: the file is bounded.
			line, _ = strconv.Atoi(m[1])
		}
	}
	c.add(pos{line: line, col: 1}, "", "not YAML: "+msg, "look at this line and the one before it")
}

// treeBuilder expands aliases and merges within the limits.
type treeBuilder struct {
	c       *collector
	source  string
	nodes   int
	open    map[*yaml.Node]bool // aliases being expanded, to find one inside itself
	stopped bool
}

func (b *treeBuilder) pos(y *yaml.Node) pos {
	return pos{source: b.source, line: y.Line, col: y.Column}
}

func (b *treeBuilder) build(y *yaml.Node, path string, depth int) *node {
	n := &node{at: b.pos(y), path: path, tag: "!!null"}
	b.nodes++
	if b.stopped {
		return n
	}
	if b.nodes > maxNodes || depth > maxDepth {
		b.stopped = true
		problem := fmt.Sprintf("more than %d values once aliases are expanded", maxNodes)
		if depth > maxDepth {
			problem = fmt.Sprintf("more than %d levels deep", maxDepth)
		}
		b.c.add(n.at, path, problem, "a suite is small: remove the nested aliases or levels")
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		if b.open[y.Alias] {
			b.stopped = true
			b.c.add(n.at, path, fmt.Sprintf("the alias *%s contains itself", y.Value), "remove it")
			return n
		}
		b.open[y.Alias] = true
		defer delete(b.open, y.Alias)
		return b.build(y.Alias, path, depth+1)
	case yaml.MappingNode:
		n.kind, n.tag = mappingNode, "!!map"
		b.mapping(n, y, depth)
	case yaml.SequenceNode:
		n.kind, n.tag = sequenceNode, "!!seq"
		b.sequence(n, y, depth)
	default:
		n.tag, n.value = y.ShortTag(), y.Value
		n.quoted = y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
		if !plainTags[n.tag] {
			b.c.add(n.at, path, fmt.Sprintf("the tag %s is not used in suites", n.tag), "remove it")
			n.tag = "!!str"
		}
	}
	return n
}

var plainTags = map[string]bool{"!!str": true, "!!int": true, "!!float": true, "!!bool": true, "!!null": true, "!!timestamp": true, "!!merge": true}

func (b *treeBuilder) mapping(n *node, y *yaml.Node, depth int) {
	var merges []*yaml.Node
	line := map[string]int{}
	for i := 0; i+1 < len(y.Content) && !b.stopped; i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			b.c.add(b.pos(k), n.path, "the name of a field is not text", "write a plain name")
			continue
		}
		key := k.Value
		if first, dup := line[key]; dup {
			b.c.add(b.pos(k), joinPath(n.path, key), fmt.Sprintf("given twice, first in line %d", first), "keep one of them")
			continue
		}
		line[key] = k.Line
		if k.ShortTag() == "!!merge" {
			merges = append(merges, v)
			continue
		}
		n.fields = append(n.fields, field{key: key, at: b.pos(k), val: b.build(v, joinPath(n.path, key), depth+1)})
	}
	for _, m := range merges {
		b.merge(n, m, depth)
	}
}

// merge adds the fields of a `<<` that the mapping does not give itself. In a
// list of mappings the earlier one wins, as YAML's merge key says.
func (b *treeBuilder) merge(n *node, y *yaml.Node, depth int) {
	src := b.build(y, n.path, depth+1)
	list := []*node{src}
	if src.kind == sequenceNode {
		list = src.items
	}
	for _, m := range list {
		if b.stopped {
			return
		}
		if m.kind != mappingNode {
			b.c.add(b.pos(y), n.path, "<< needs a mapping, not "+m.what(), "write '<<: *name' with the anchor of a mapping")
			continue
		}
		for _, f := range m.fields {
			if n.get(f.key) == nil {
				n.fields = append(n.fields, f)
			}
		}
	}
}

func (b *treeBuilder) sequence(n *node, y *yaml.Node, depth int) {
	for i, item := range y.Content {
		if b.stopped {
			return
		}
		n.items = append(n.items, b.build(item, itemPath(n.path, i, yamlName(item)), depth+1))
	}
}

// yamlName gives the `name` of a mapping, following one alias.
func yamlName(y *yaml.Node) string {
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	if y.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Value == "name" && y.Content[i+1].Kind == yaml.ScalarNode {
			return y.Content[i+1].Value
		}
	}
	return ""
}

var segmentRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// itemPath names an element of a list by its name where that can be written in
// a --set, else by its index.
func itemPath(path string, i int, name string) string {
	if segmentRE.MatchString(name) {
		return joinPath(path, name)
	}
	return fmt.Sprintf("%s[%d]", path, i)
}

// toYAML gives the tree back as a yaml.Node, for the suite as run.
func (n *node) toYAML() *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Tag: n.tag, Value: n.value}
	switch n.kind {
	case mappingNode:
		y.Kind = yaml.MappingNode
		for _, f := range n.fields {
			y.Content = append(y.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.key}, f.val.toYAML())
		}
	case sequenceNode:
		y.Kind = yaml.SequenceNode
		for _, it := range n.items {
			y.Content = append(y.Content, it.toYAML())
		}
	}
	return y
}
