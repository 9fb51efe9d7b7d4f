package keys

// Dist is a distribution of records over the ranks [0, Keys()). Values are
// immutable and safe for concurrent use.
type Dist interface {
	// Fill sets ranks[j] to the rank of record first + j·stride, whose intended
	// time in ns since the start of the run is times[j]. Times do not decrease;
	// len(times) >= len(ranks). It does not keep either slice.
	Fill(ranks []uint64, times []int64, first, stride uint64)
	// Keys is the number of ranks that exist at any time.
	Keys() uint64
	// Share is the probability that a record with intended time at (ns) has the
	// given rank.
	Share(rank uint64, at int64) float64
}
