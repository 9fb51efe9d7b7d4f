// Package archtest is the surveyor of the house: its tests read the source of the whole module and measure it against the
// plan in ARCHITECTURE.md — which room may import which, what pure rooms must not touch, how long functions and files may
// be, and what may not be left lying about. Each rule is also tried on source that breaks it.
//
// The rules are plain functions over parsed source; nothing is type-checked, so the whole house takes a second.
//
// May import: the standard library.
package archtest
