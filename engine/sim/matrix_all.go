package sim

import (
	"fmt"
	"strings"

	"github.com/weir-bench/weir/engine/core"
	"github.com/weir-bench/weir/engine/migration"
)

// MatrixOptions say which part of the crash matrix to run: every migration strategy × the recovery strategies that go with
// it × what is moved × every step of the protocol × every victim.
type MatrixOptions struct {
	// First is the first seed, Seeds how many there are; each is a whole matrix under other delays and sizes.
	First, Seeds uint64
	// Migration, Recovery and Operator restrict the matrix to one of each, Victims to some; empty: all.
	Migration, Recovery, Operator string
	Victims                       []string
	// Bugs are planted bugs.
	Bugs []string
	// Thin n takes every n-th step, with one victim, each in turn; 0: every step with every victim.
	Thin int
}

// guarantee is a recovery strategy, with its scope behind a colon, and a kind of sink.
type guarantee struct {
	recovery      string
	transactional bool
}

func guarantees() []guarantee {
	return []guarantee{
		{"none", false}, {"checkpoint", false}, {"checkpoint", true}, {"active", false},
		{"passive", false}, {"passive", true}, {"upstream", false}, {"upstream", true},
		{"checkpoint:region", false}, {"checkpoint:region", true}, {"checkpoint:task", false}, {"checkpoint:task", true},
	}
}

// with says whether the guarantee can be given for an operator that is migrated with a strategy.
func (g guarantee) with(s migration.Strategy, operator string) bool {
	base, _, _ := strings.Cut(g.recovery, ":")
	return goesWith(s, base) && (base != core.RecoveryUpstream || operator == "windows")
}

// Matrix runs the crash matrix and calls visit with each cell, until it returns false. Per seed and combination, the first
// cell is the one without a fault, which tells the steps.
func Matrix(o MatrixOptions, visit func(Cell, *CellResult) bool) error {
	for seed := o.First; seed < o.First+o.Seeds; seed++ {
		for _, operator := range []string{"count", "windows"} {
			for _, s := range migration.Strategies() {
				if o.Migration != "" && o.Migration != s.Name || o.Operator != "" && o.Operator != operator || operator == "windows" && (s.Plain || s.External) {
					continue
				}
				ref, err := Refer(seed, operator, s.External)
				if err != nil {
					return fmt.Errorf("seed %d of %s without a migration: %w", seed, operator, err)
				}
				for i, g := range guarantees() {
					if o.Recovery != "" && o.Recovery != g.recovery || !g.with(s, operator) {
						continue
					}
					c := Cell{Seed: seed, Operator: operator, Migration: s.Name, Recovery: g.recovery, Transactional: g.transactional, Bugs: o.Bugs}
					if !o.row(c, i, ref, visit) {
						return nil
					}
				}
			}
		}
	}
	return nil
}

// row runs the cells of one combination.
func (o *MatrixOptions) row(c Cell, turn int, ref *Reference, visit func(Cell, *CellResult) bool) bool {
	plain := RunCell(c, ref)
	if !visit(c, &plain) {
		return false
	}
	victims := o.Victims
	if len(victims) == 0 {
		victims = Victims()
	}
	shift := turn + int(c.Seed)
	for step := range plain.Steps {
		for i, victim := range victims {
			if n := o.Thin; n > 0 && ((step+shift)%n > 0 || i != ((step+shift)/n+shift)%len(victims)) {
				continue
			}
			c.Victim, c.Step = victim, step
			if r := RunCell(c, ref); !visit(c, &r) {
				return false
			}
		}
	}
	return true
}

// String names the cell in the form that ParseCell reads.
func (c Cell) String() string {
	return fmt.Sprintf("%d/%s/%s/%s/%v/%s/%d", c.Seed, c.Operator, c.Migration, c.Recovery, c.Transactional, c.Victim, c.Step)
}
