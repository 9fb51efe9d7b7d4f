package sim

import (
	"encoding/binary"
	"slices"

	"github.com/weir-bench/weir/engine/state"
)

// undead is a planted bug: state whose chunks are installed without what they delete.
type undead struct{ state.Keyed }

// Install implements state.Keyed. See the state package for what a chunk looks like.
func (u undead) Install(group uint32, chunk []byte) error {
	const head, deletedAt = 24, 12
	n := int(binary.LittleEndian.Uint32(chunk[deletedAt:]))
	chunk = slices.Concat(chunk[:head], chunk[head+8*n:])
	binary.LittleEndian.PutUint32(chunk[deletedAt:], 0)
	return u.Keyed.Install(group, chunk)
}
