package operator

import "github.com/weir-bench/weir/engine/state"

// HeadKey is the key whose value tells when something in a key group is due; operators that go by event time look at it
// with every record of the group.
const HeadKey = headerKey

// Due says whether a watermark lets something out of a key group, so that the operator looks through all of it.
func Due(b *state.Blob, group uint32, wm int64) bool {
	h := readHeader(b, group)
	return wm > h.wm && h.next <= wm
}
