// Package chaos is the room of things that go wrong on purpose: faults, when they happen, how they are done and undone,
// and the proof that they took effect.
//
// A Schedule lists faults with their triggers. Machine, a pure state machine, turns it and the events it is fed into
// actions: inject, heal or refuse. Injector carries the actions out on processes and on the links of a Proxy, and
// writes each one to a Journal before it is done and after it has been confirmed. Driver runs a machine and an injector
// in real time. A fault is an injection, a healing and evidence; without evidence it is an error, so that no result can
// rest on a fault that never happened.
//
// Only child processes of this process are signalled, through a pidfd opened after the parent and the start time were
// checked, so that a reused process number is never hit. A link has a proxy only if the schedule has a fault for it.
//
// Processes and the proxy need Linux (pidfd: 5.3); other systems get ErrUnsupported.
//
// May import: golang.org/x/sys and the standard library; nothing else of this module.
package chaos
