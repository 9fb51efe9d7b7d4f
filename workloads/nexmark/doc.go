// Package nexmark is the auction house: the events of the NEXMark benchmark
// (Tucker, Tufte, Papadimos, Maier: "NEXMark – a benchmark for queries over data
// streams", 2002; proportions, hot ratios and sizes as in Apache Beam's
// implementation), and the answers to its queries from a plain, single-threaded
// evaluation that shares nothing with the engine.
//
// Of each 50 events the first is a person, the next three are auctions and the
// other 46 are bids. Unlike in Beam no event names a person or an auction that
// has not been emitted before it: there is no look-ahead.
//
// May import: engine/core, workloads/rng and the standard library.
package nexmark
