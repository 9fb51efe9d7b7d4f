package verify

import "slices"

// Multiset checks outputs that have no running number, such as the results of windows: by what they are and how often
// they come, whatever their order. It keeps the hash of each output, 8 bytes. It is not safe for concurrent use.
type Multiset struct {
	hashes []uint64
	// unreadable counts outputs that were no answers at all.
	unreadable uint64
}

// Add takes an output by its hash, which equal outputs share and different ones as good as never do.
func (m *Multiset) Add(hash uint64) { m.hashes = append(m.hashes, hash) }

// AddUnreadable takes an output that is no answer; it counts as wrong.
func (m *Multiset) AddUnreadable() { m.unreadable++ }

// Compare holds the outputs against the hashes of the golden answers, in any order. An output that is due, but came more
// often than it is, is duplicated; one that is not due at all is wrong. missing are the positions in golden of the answers
// that did not come. It is meant for the end of a run, and may be called again.
func (m *Multiset) Compare(golden []uint64) (a Answers, missing []int) {
	a = Answers{Expected: uint64(len(golden)), Wrong: m.unreadable}
	slices.Sort(m.hashes)
	order := make([]int, len(golden))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case golden[i] != golden[j]:
			if golden[i] < golden[j] {
				return -1
			}
			return 1
		default:
			return i - j
		}
	})
	came := m.hashes
	for at := 0; at < len(order); {
		h, end := golden[order[at]], at+1
		for end < len(order) && golden[order[end]] == h {
			end++
		}
		for len(came) > 0 && came[0] < h {
			a.Wrong++
			came = came[1:]
		}
		n := 0
		for n < len(came) && came[n] == h {
			n++
		}
		came = came[n:]
		answered := min(n, end-at)
		a.Answered += uint64(answered)
		a.Duplicated += uint64(n - answered)
		missing = append(missing, order[at+answered:end]...)
		at = end
	}
	a.Wrong += uint64(len(came))
	a.Lost = uint64(len(missing))
	slices.Sort(missing)
	return a, missing
}
