package operator

import (
	"errors"
	"strconv"

	"github.com/weir-bench/weir/engine/core"
)

// maxPreload bounds the keys that are there from the start: 64 GiB of the smallest entries.
const maxPreload = 1 << 32

var errPreload = errors.New("want a number of keys from 1 to 4294967296")

// Preload returns how many keys a count begins with: its parameter preload. The state of the keys 0 to n−1 is zeros then, as
// if their first records were still to come, unless the task is restored from a checkpoint. 0: none.
func Preload(spec *core.OperatorSpec) uint64 {
	if spec.Kind != "count" || spec.Params["preload"] == "" {
		return 0
	}
	n, err := parsePreload(spec)
	if err != nil {
		panic("operator: unchecked " + err.Error())
	}
	return n
}

func checkPreload(spec *core.OperatorSpec) error {
	_, err := parsePreload(spec)
	return err
}

func parsePreload(spec *core.OperatorSpec) (uint64, error) {
	p := readParams(spec, "preload")
	n := uint64(0)
	if p.has("preload") {
		var err error
		if n, err = strconv.ParseUint(spec.Params["preload"], 10, 64); err != nil || n < 1 || n > maxPreload {
			p.fail("preload", errPreload)
		}
		if spec.Store != "" {
			p.fail("preload", errors.New("the state is in an external store, which is filled by whoever owns it"))
		}
	}
	return n, p.err
}
