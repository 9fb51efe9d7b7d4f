package operator

import (
	"encoding/binary"

	"github.com/weir-bench/weir/engine/core"
)

// sizedCount is count with a state size for each key: that of the first record's profile, at least the 8 bytes of the
// count. Every update writes the whole value anew, as an engine does that keeps values serialised.
type sizedCount struct{}

func newSizedCount(*core.OperatorSpec) Operator { return sizedCount{} }

func (sizedCount) Process(c *Context, in *core.Columns) {
	out := &c.Out
	out.Keys = append(out.Keys, in.Keys...)
	out.Times = append(out.Times, in.Times...)
	for i, k := range in.Keys {
		g := core.KeyGroup(k, c.Groups)
		c.Loads[g]++
		old, ok := c.Blob.Get(g, k)
		size := len(old)
		if !ok {
			size = 8
			if len(in.Vals) > 0 {
				size = max(8, core.ProfileState(in.Vals[i]))
			}
		}
		v := make([]byte, size)
		copy(v, old)
		n := binary.LittleEndian.Uint64(v) + 1
		binary.LittleEndian.PutUint64(v, n)
		c.Blob.Put(g, k, v)
		out.Vals = append(out.Vals, int64(n))
	}
}
