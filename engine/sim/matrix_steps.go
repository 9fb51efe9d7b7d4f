package sim

import (
	"github.com/weir-bench/weir/engine/coord"
)

// stepper tells the steps of a migration's protocol: an event is one when it changes what the coordinator or a task knows
// of the migration.
type stepper struct {
	w     *World
	watch *watcher
	on    bool
	was   progress
}

// progress sums up what the coordinator and the primaries know of a migration.
type progress struct {
	begun                               bool
	at                                  coord.Step
	deployed                            int
	paused, barriers                    int
	aligned                             uint64
	routed                              uint64
	rounds, markers, holding, following int
	owned, sending, copies, mirroring   int
	sent, received                      uint64
}

func (s *stepper) look() progress {
	var p progress
	p.at, p.begun = s.w.coord.MoveStep()
	for _, v := range s.watch.views {
		p.deployed += int(v.deploy)
		p.barriers += v.Barriers
		p.aligned += v.Aligning
		if v.Paused {
			p.paused++
		}
		for _, t := range v.Tables {
			p.routed += t.Version
		}
		p.rounds, p.markers, p.holding, p.following = p.rounds+v.Rounds, p.markers+v.Markers, p.holding+v.Holding, p.following+v.Following
		p.sending, p.copies, p.mirroring = p.sending+v.Sending, p.copies+v.Copies, p.mirroring+v.Mirroring
		p.sent, p.received = p.sent+v.PeerSent, p.received+v.PeerConsumed
		for _, owns := range v.Owns {
			if owns {
				p.owned++
			}
		}
	}
	return p
}

// next returns the name of the step that the last event was, empty when it was none, and whether the migration goes on.
func (s *stepper) next() (name string, more bool) {
	p, was := s.look(), s.was
	s.was = p
	if p == was {
		return "", true
	}
	return p.since(&was), p.begun
}

// since names the most telling difference to an earlier moment.
func (p *progress) since(was *progress) string {
	for _, s := range []struct {
		name string
		is   bool
	}{
		{"begun", p.begun && !was.begun},
		{"finished", !p.begun},
		{"round begun", p.at.Round > was.at.Round},
		{"copy begun", p.at.Copies > was.at.Copies},
		{"savepoint begun", p.at.Savepoint && !was.at.Savepoint},
		{"savepoint complete, redeploying", p.at.Redeploying && !was.at.Redeploying},
		{"snapshot durable", p.at.Durable > was.at.Durable},
		{"told", p.at.Waiting < was.at.Waiting},
		{"worker ready", p.at.Ready > was.at.Ready},
		{"tasks deployed", p.deployed != was.deployed},
		{"source paused", p.paused > was.paused},
		{"barrier aligned", p.aligned != was.aligned && p.barriers == 0},
		{"barrier", p.barriers != was.barriers || p.aligned != was.aligned},
		{"route changed", p.routed > was.routed},
		{"group installed", p.owned > was.owned},
		{"groups given", p.owned < was.owned},
		{"first marker, records held", p.holding > was.holding},
		{"marker", p.markers > was.markers || p.rounds > was.rounds},
		{"part of the round done", p.rounds < was.rounds},
		{"copy followed", p.following > was.following},
		{"copy cut", p.copies > was.copies || p.mirroring > was.mirroring},
		{"chunk sent", p.sent > was.sent},
		{"chunk received", p.received > was.received},
	} {
		if s.is {
			return s.name
		}
	}
	return "other"
}
