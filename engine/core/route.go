package core

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Move says that a key group goes from one task of an operator to another; tasks are indices within the operator.
type Move struct {
	Group    uint32
	From, To int
}

// RouteChange is what a route control input and its markers carry.
type RouteChange struct {
	// Version numbers the changes of one operator's table: 1, 2, ….
	Version uint64
	// Operator is the index of the operator whose key groups move.
	Operator int
	// Mode says what waits while the state is on its way.
	Mode  MoveMode
	Moves []Move
	// BandwidthBytes is how many bytes of state a second one giving task sends at most; 0: no limit.
	BandwidthBytes uint64
}

// MoveMode says what waits while a round's state is on its way.
type MoveMode uint8

// The modes.
const (
	MoveHold    MoveMode = iota // records of the moving groups, each group until its state is there
	MovePause                   // everything at the two tasks concerned
	MoveDemand                  // as MoveHold; groups come hottest first, and one that a record needs comes next
	MoveDelta                   // as MoveHold; only what changed since the last copy travels
	MoveReplica                 // as MoveHold; the getting task has worked alongside and needs no state
	MoveStore                   // as MoveHold; the state stays in its external store, and only the right to it travels
	moveModes
)

// Routes is the route table of one operator: key group → task (index within the operator). An array, so that the record
// path pays one index.
type Routes struct {
	Version uint64
	Task    []int32
}

// NewRoutes deals groups key groups to tasks in ranges: group g belongs to task floor(g·tasks/groups).
func NewRoutes(groups uint32, tasks int) *Routes {
	r := &Routes{Task: make([]int32, groups)}
	for g := range r.Task {
		r.Task[g] = int32(uint64(g) * uint64(tasks) / uint64(groups))
	}
	return r
}

// Clone returns a copy.
func (r *Routes) Clone() *Routes {
	return &Routes{Version: r.Version, Task: append([]int32(nil), r.Task...)}
}

// Owned returns the groups of one task in ascending order.
func (r *Routes) Owned(task int) []uint32 {
	var gs []uint32
	for g, t := range r.Task {
		if int(t) == task {
			gs = append(gs, uint32(g))
		}
	}
	return gs
}

// Apply carries out c. A move from a task that does not own the group, or a version that is not the next one, is an
// error and changes nothing.
func (r *Routes) Apply(c *RouteChange) error {
	if c.Version != r.Version+1 {
		return fmt.Errorf("route change %d on a table of version %d", c.Version, r.Version)
	}
	for _, m := range c.Moves {
		if int(m.Group) >= len(r.Task) || int(r.Task[m.Group]) != m.From {
			return fmt.Errorf("route change %d moves key group %d from task %d, which does not own it", c.Version, m.Group, m.From)
		}
	}
	for _, m := range c.Moves {
		r.Task[m.Group] = int32(m.To)
	}
	r.Version = c.Version
	return nil
}

// AppendRouteChange encodes c.
func AppendRouteChange(dst []byte, c *RouteChange) []byte {
	dst = binary.AppendUvarint(dst, c.Version)
	dst = binary.AppendUvarint(dst, uint64(c.Operator))
	dst = binary.AppendUvarint(dst, uint64(c.Mode))
	dst = binary.AppendUvarint(dst, c.BandwidthBytes)
	dst = binary.AppendUvarint(dst, uint64(len(c.Moves)))
	for _, m := range c.Moves {
		dst = binary.AppendUvarint(dst, uint64(m.Group))
		dst = binary.AppendUvarint(dst, uint64(m.From))
		dst = binary.AppendUvarint(dst, uint64(m.To))
	}
	return dst
}

var errBadRoute = errors.New("bad route change encoding")

// DecodeRouteChange is the inverse of AppendRouteChange.
func DecodeRouteChange(p []byte) (*RouteChange, error) {
	next := func(limit uint64) uint64 {
		v, n := binary.Uvarint(p)
		if n <= 0 || v > limit {
			p = nil
			return 1<<64 - 1
		}
		p = p[n:]
		return v
	}
	const bad = 1<<64 - 1
	version, op, mode, bandwidth, n := next(1<<62), next(1<<20), next(uint64(moveModes)-1), next(1<<62), next(1<<20)
	if version == bad || op == bad || mode == bad || bandwidth == bad || n == bad || n > uint64(len(p)) {
		return nil, errBadRoute
	}
	c := &RouteChange{Version: version, Operator: int(op), Mode: MoveMode(mode), BandwidthBytes: bandwidth, Moves: make([]Move, n)}
	for i := range c.Moves {
		g, f, t := next(1<<31), next(1<<20), next(1<<20)
		if g == bad || f == bad || t == bad {
			return nil, errBadRoute
		}
		c.Moves[i] = Move{uint32(g), int(f), int(t)}
	}
	if len(p) != 0 {
		return nil, errBadRoute
	}
	return c, nil
}

// StateChunk is what a state control input carries: a part of one key group on its way to its new owner.
type StateChunk struct {
	Group uint32
	// Last marks the last chunk of the group.
	Last bool
	// Copy marks a chunk sent ahead: the group keeps its owner.
	Copy bool
	Data []byte
}

const (
	chunkLast = 1 << iota
	chunkCopy
)

// AppendStateChunk encodes s.
func AppendStateChunk(dst []byte, s *StateChunk) []byte {
	flags := byte(0)
	if s.Last {
		flags |= chunkLast
	}
	if s.Copy {
		flags |= chunkCopy
	}
	dst = append(dst, flags)
	dst = binary.LittleEndian.AppendUint32(dst, s.Group)
	return append(dst, s.Data...)
}

// DecodeStateChunk is the inverse of AppendStateChunk; Data shares memory with p.
func DecodeStateChunk(p []byte) (StateChunk, error) {
	if len(p) < 5 || p[0] > chunkLast|chunkCopy {
		return StateChunk{}, errors.New("bad state chunk encoding")
	}
	return StateChunk{Group: binary.LittleEndian.Uint32(p[1:]), Last: p[0]&chunkLast != 0, Copy: p[0]&chunkCopy != 0, Data: p[5:]}, nil
}
