// Package task is the room of the task machine: the worker's end of channels (In, Out), the Task that consumes numbered
// inputs, and the Worker that holds the tasks of one process. All of it is a pure machine: events go in, effects come
// out, and the same code runs over sockets (engine/host) and in the simulator (engine/sim).
//
// May import: engine/core, engine/state, engine/operator and the standard library without os, net, sync, time.Now and
// global math/rand.
package task
