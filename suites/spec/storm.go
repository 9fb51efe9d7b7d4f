package spec

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Storm is a random schedule of faults: the same for the same seed.
type Storm struct {
	Faults int           `yaml:"faults" need:"yes" min:"1" max:"10000" doc:"How many faults happen."`
	Kinds  []string      `yaml:"kinds" need:"yes" doc:"Their kinds, drawn with equal chances."`
	From   time.Duration `yaml:"from" doc:"Earliest time of a fault, from the end of the warm-up."`
	To     time.Duration `yaml:"to" need:"yes" doc:"Latest time; the faults are spread evenly, each at a random moment of its share."`
	For    time.Duration `yaml:"for" doc:"Longest that a fault lasts that heals; each lasts between a quarter of it and all of it."`
	Factor float64       `yaml:"factor" min:"1" max:"1000" doc:"How many times slower, for slow."`
}

// Draw returns the faults of a storm over the given workers, in the order of their times.
func (s *Storm) Draw(seed uint64, workers int, known []FaultInfo) []Fault {
	r := rand.New(rand.NewPCG(seed, 0x73746f726d))
	share := float64(s.To-s.From) / float64(s.Faults)
	out := make([]Fault, s.Faults)
	for i := range out {
		f := Fault{Kind: s.Kinds[r.IntN(len(s.Kinds))]}
		f.Target = Target{Kind: TargetWorker, Worker: 1 + r.IntN(workers)}
		if link(f.Kind, known) {
			f.Target.Kind, f.Target.Peer = TargetLink, r.IntN(workers) // another node than the worker; 0 is the harness
			if f.Target.Peer >= f.Target.Worker {
				f.Target.Peer++
			}
		}
		// One is over before the next begins: two on one target would be in each other's way.
		lasts := min(float64(s.For)*(1+3*r.Float64())/4, share*0.9)
		if f.Kind == "kill" {
			lasts = 0
		}
		f.For = time.Duration(lasts)
		at := s.From + time.Duration(float64(i)*share+r.Float64()*(share-lasts))
		f.At = &at
		if f.Kind == "slow" {
			f.Factor = s.Factor
		}
		out[i] = f
	}
	return out
}

// link says whether faults of a kind hit links.
func link(kind string, known []FaultInfo) bool {
	for _, k := range known {
		if k.Name == kind {
			for _, t := range k.Targets {
				if t == TargetLink {
					return true
				}
			}
		}
	}
	return false
}

func (c *cellChecker) storm(s *Storm) {
	var names []string
	for _, k := range c.d.known.Faults {
		names = append(names, k.Name)
	}
	lasting := false
	for i, k := range s.Kinds {
		if len(names) > 0 && indexOf(names, k) < 0 {
			c.fail(fmt.Sprintf("storm.kinds[%d]", i), fmt.Sprintf("unknown fault %q", k), suggest(k, names))
		}
		if k == "slow-link" {
			c.fail(fmt.Sprintf("storm.kinds[%d]", i), "slow-link needs limits of its own", "write it under faults")
		}
		lasting = lasting || k != "kill"
		if k == "slow" && s.Factor <= 1 {
			c.fail("storm.factor", fmt.Sprintf("is %v, which slows nothing", s.Factor), "write more than 1, such as 4")
		}
	}
	if len(s.Kinds) == 0 {
		c.fail("storm.kinds", "is empty", "name at least one fault, such as kill")
	}
	if s.From < 0 || s.To <= s.From {
		c.fail("storm.to", fmt.Sprintf("is %v, which is not after from, %v", s.To, s.From), "write a later time")
	}
	if lasting && s.For <= 0 {
		c.fail("storm.for", "is 0s, but some of the kinds last", "write the longest time, such as 1s")
	}
}
