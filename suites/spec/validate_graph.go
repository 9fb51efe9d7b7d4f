package spec

import (
	"fmt"
	"strings"
)

// graph checks that the operators form a directed acyclic graph in which every
// operator lies on a way from a source to a sink.
func (c *checker) graph() {
	ops := c.cfg.Job.Operators
	index := map[string]int{}
	names := make([]string, len(ops))
	for i, op := range ops {
		index[op.Name] = i
		names[i] = op.Name
	}
	ok := true
	outs := make([][]int, len(ops))
	for i, op := range ops {
		seen := map[string]bool{}
		for j, in := range op.Inputs {
			at := fmt.Sprintf("job.operators[%d].inputs[%d]", i, j)
			src, found := index[in]
			switch {
			case !found:
				c.fail(at, fmt.Sprintf("there is no operator %q", in), suggest(in, names))
				ok = false
			case seen[in]:
				c.fail(at, fmt.Sprintf("names %q a second time", in), "name each input once")
				ok = false
			default:
				outs[src] = append(outs[src], i)
			}
			seen[in] = true
		}
	}
	ok = c.roles(outs) && ok
	if cycle := findCycle(ops, outs); cycle != "" {
		c.fail("job.operators", "the operators form a cycle: "+cycle, "a job flows from sources to sinks: remove one of these inputs")
		return
	}
	if ok {
		c.reach(outs)
	}
}

// roles checks each operator's place. It returns false if more checks of the
// graph would only repeat what was said.
func (c *checker) roles(outs [][]int) bool {
	ok := true
	count := map[Role]int{}
	for i := range c.cfg.Job.Operators {
		op := &c.cfg.Job.Operators[i]
		at := fmt.Sprintf("job.operators[%d]", i)
		role := c.role(op)
		count[role]++
		switch {
		case role == "":
			ok = false // unknown kind
		case role == RoleSource && len(op.Inputs) > 0:
			c.fail(at+".inputs", "a source has no inputs", "remove them, or change its kind")
			ok = false
		case role != RoleSource && len(op.Inputs) == 0:
			c.fail(at, fmt.Sprintf("an operator of kind %s needs inputs", op.Kind), "add 'inputs: [NAME]'")
			ok = false
		case role == RoleSink && len(outs[i]) > 0:
			reader := outs[i][0]
			c.fail(fmt.Sprintf("job.operators[%d].inputs", reader), fmt.Sprintf("%s is a sink, which has no outputs", op.Name), "read from an operator before it")
			ok = false
		}
	}
	if count[""] > 0 || len(c.d.known.Kinds) == 0 {
		return false
	}
	if count[RoleSource] == 0 {
		c.fail("job.operators", "the job has no source", "add '{name: source, kind: source}'")
	}
	if count[RoleSink] == 0 {
		c.fail("job.operators", "the job has no sink", "add '{name: sink, kind: sink, inputs: [NAME]}'")
	}
	return ok && count[RoleSource] > 0 && count[RoleSink] > 0
}

// findCycle names a cycle as a → b → a, or gives "".
func findCycle(ops []Operator, outs [][]int) string {
	const white, grey, black = 0, 1, 2
	colour := make([]int, len(ops))
	var stack []int
	var visit func(int) string
	visit = func(i int) string {
		colour[i] = grey
		stack = append(stack, i)
		for _, j := range outs[i] {
			if colour[j] == grey {
				var names []string
				for k := len(stack) - 1; ; k-- {
					names = append([]string{ops[stack[k]].Name}, names...)
					if stack[k] == j {
						return strings.Join(append(names, ops[j].Name), " → ")
					}
				}
			}
			if colour[j] == white {
				if s := visit(j); s != "" {
					return s
				}
			}
		}
		stack = stack[:len(stack)-1]
		colour[i] = black
		return ""
	}
	for i := range ops {
		if colour[i] == white {
			if s := visit(i); s != "" {
				return s
			}
		}
	}
	return ""
}

// reach reports operators whose output no sink sees. In an acyclic graph where
// all but sources have inputs, each is reached from a source.
func (c *checker) reach(outs [][]int) {
	ops := c.cfg.Job.Operators
	seen := make([]bool, len(ops))
	var up func(int)
	index := map[string]int{}
	for i, op := range ops {
		index[op.Name] = i
	}
	up = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, in := range ops[i].Inputs {
			up(index[in])
		}
	}
	for i := range ops {
		if c.role(&ops[i]) == RoleSink {
			up(i)
		}
	}
	for i, op := range ops {
		if !seen[i] {
			c.fail(fmt.Sprintf("job.operators[%d]", i), fmt.Sprintf("nothing that %s produces reaches a sink", op.Name), "name it in the inputs of another operator, or remove it")
		}
	}
}
