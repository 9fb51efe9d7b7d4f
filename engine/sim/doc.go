// Package sim is the simulated world: one goroutine, an event heap and a seeded random source run the same machines as
// the real world. The network delays, breaks and partitions, disks tear and fill, workers crash, freeze and wake. The same
// seed gives the same run, always; its trace hash says so. Simulated time is never a performance result.
//
// May import: everything under engine except engine/host, and the standard library without os, net, sync and time.Now.
package sim
