package spec

import (
	"fmt"
	"slices"
	"strings"
)

// configSections are the fields that a cell may lay over the base. A test
// compares them with the fields of Config.
var configSections = []string{"job", "workload", "timing", "checkpoint", "detection"}

// maxCells bounds what sweeps can multiply to.
const maxCells = 1000

// expandCells gives a copy of the tree in which sweeps are written out and each
// cell holds its whole configuration.
func expandCells(c *collector, root *node) *node {
	cells := root.get("cells")
	if cells == nil || cells.kind != sequenceNode {
		return root
	}
	list := *cells
	list.items = nil
	for _, cell := range cells.items {
		if cell.kind != mappingNode {
			list.items = append(list.items, cell)
			continue
		}
		full := overlayConfig(root, cell)
		list.items = append(list.items, sweepCell(c, full)...)
		if len(list.items) > maxCells {
			c.add(cell.at, cell.path, fmt.Sprintf("the suite has more than %d cells here", maxCells), "sweep over fewer values")
			return root
		}
	}
	out := *root
	for _, f := range root.fields {
		if f.key == "cells" {
			f.val = &list
			out.fields = withField(root.fields, f)
		}
	}
	return &out
}

func overlayConfig(root, cell *node) *node {
	out := *cell
	for _, section := range configSections {
		base, own := root.get(section), cell.get(section)
		if base == nil {
			continue
		}
		merged := base
		if own != nil {
			if section == "job" {
				base = withoutRivals(base, own)
			}
			merged = overlay(base, own)
		}
		out.fields = withField(out.fields, field{key: section, at: merged.at, val: merged})
	}
	return &out
}

// withoutRivals gives the suite's job without what a cell's own job stands in place of: a query replaces operators, and
// operators replace a query. Which is meant is not known when a cell gives both.
func withoutRivals(base, own *node) *node {
	drop := ""
	switch query, operators := own.get("query") != nil, own.get("operators") != nil; {
	case query && !operators:
		drop = "operators"
	case operators && !query:
		drop = "query"
	default:
		return base
	}
	out := *base
	out.fields = slices.DeleteFunc(slices.Clone(base.fields), func(f field) bool { return f.key == drop })
	return &out
}

// overlay lays own over base: mappings field by field, lists whose elements all
// have names element by element, anything else is replaced.
func overlay(base, own *node) *node {
	switch {
	case base.kind == mappingNode && own.kind == mappingNode:
		out := *own
		out.fields = append([]field(nil), base.fields...)
		for _, f := range own.fields {
			if old := base.get(f.key); old != nil {
				f.val = overlay(old, f.val)
			}
			out.fields = withField(out.fields, f)
		}
		return &out
	case base.named() && own.named():
		out := *own
		out.items = append([]*node(nil), base.items...)
	next:
		for _, it := range own.items {
			for i := range out.items {
				if out.items[i].name() == it.name() {
					out.items[i] = overlay(out.items[i], it)
					continue next
				}
			}
			out.items = append(out.items, it)
		}
		return &out
	}
	return own
}

func (n *node) named() bool {
	if n.kind != sequenceNode || len(n.items) == 0 {
		return false
	}
	for _, it := range n.items {
		if it.name() == "" {
			return false
		}
	}
	return true
}

// sweepCell gives one cell for each combination of the values in `sweep`, the
// last field changing fastest. Each has the values in its name and labels.
func sweepCell(c *collector, cell *node) []*node {
	sweep := cell.get("sweep")
	if sweep == nil || sweep.kind != mappingNode {
		return []*node{cell}
	}
	base := *cell
	base.fields = nil
	for _, f := range cell.fields {
		if f.key != "sweep" {
			base.fields = append(base.fields, f)
		}
	}
	cells := []*node{&base}
	for _, f := range sweep.fields {
		if f.val.kind != sequenceNode || len(f.val.items) == 0 {
			c.add(f.val.at, f.val.path, "a sweep needs a list of values, not "+f.val.what(), "write [1, 2, 4]")
			continue
		}
		if len(cells)*len(f.val.items) > maxCells {
			c.add(f.at, f.val.path, fmt.Sprintf("the sweep has more than %d combinations", maxCells), "sweep over fewer values")
			return nil
		}
		var next []*node
		for _, cell := range cells {
			for _, v := range f.val.items {
				one, problem := sweepValue(cell, f.key, v)
				if problem != nil {
					c.add(f.at, f.val.path, problem.Problem, problem.Fix)
					return nil
				}
				next = append(next, one)
			}
		}
		cells = next
	}
	return cells
}

func sweepValue(cell *node, path string, v *node) (*node, *Problem) {
	segs := splitPath(path)
	out, problem := cell.with(segs, "", v)
	if problem != nil {
		return nil, problem
	}
	leaf, text := segs[len(segs)-1], v.value
	if v.kind != scalarNode {
		return nil, &Problem{Problem: "a sweep needs a list of plain values", Fix: "write [1, 2, 4]"}
	}
	scalar := func(path, s string) *node {
		return &node{kind: scalarNode, tag: "!!str", value: s, at: v.at, path: path}
	}
	name := cell.name() + "/" + leaf + "=" + strings.ReplaceAll(text, " ", "")
	out, problem = out.with([]string{"name"}, "", scalar("name", name))
	if problem != nil {
		return nil, problem
	}
	return out.with([]string{"labels", leaf}, "", scalar("labels", text))
}
