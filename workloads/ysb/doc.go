// Package ysb is the advertisement board: the events of the Yahoo Streaming
// Benchmark (Chintapalli et al.: "Benchmarking streaming computation engines:
// Storm, Flink and Spark Streaming", 2016), with the disorder of its original
// generator: event times within 50 ms of the intended time, and one event in
// 100,000 late by up to a minute.
//
// Its query keeps the views, maps each ad to its campaign and counts by campaign
// and window of 10 s of event time.
//
// May import: engine/core, workloads/rng and the standard library.
package ysb
