// Package host is the room of the real world: sockets, disks, clocks and child processes around the pure machines of
// engine/task and engine/coord.
//
// Each process has one event loop on a locked thread, which owns a machine and all its connections: it waits with epoll,
// decodes what came, steps the machine and writes what the machine wants sent, once a connection and turn. Nothing on the
// record path takes a lock or allocates. Disks and external stores are used by other goroutines, which post their results
// to the loop.
//
// Connections carry frames in one direction: every node listens, and who has something to send to a node dials it and
// says who it is. What a broken connection has swallowed is sent again from the sender logs.
//
// The harness process holds feed, coordinator and collector (Harness); its children are workers (WorkerMain). All share
// one clock, the machine's monotonic one, counted from the run's start. Linux only: other systems get ErrUnsupported.
//
// May import: engine/core, engine/operator, engine/durable, engine/state, engine/state/pebble, engine/storage, engine/task, engine/coord,
// engine/state/remote, engine/state/remote/server, golang.org/x/sys and the standard library.
package host
