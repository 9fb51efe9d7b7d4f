// Package queries is the menu of the house: the queries of NEXMark, of the Yahoo Streaming Benchmark and of
// ShuffleBench, each written once on the engine's built-in operators. A query is a function that gives the operators of a
// job; it knows the layout of the workload's events and says what is to be done with them in the operators' parameters,
// so that neither the workloads know the engine nor the engine the workloads.
//
// May import: engine/core, workloads/nexmark, workloads/ysb, workloads/shufflebench and the standard library without os,
// net, sync, time.Now and global math/rand.
package queries
