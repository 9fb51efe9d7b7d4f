// Package need is the checklist at the door of the tests: a test says which part of the machine it needs, and is skipped
// with a reason where the part is missing. With WEIR_REQUIRE_ALL=1, as in CI, a missing part is a failure instead, so
// that no test falls silent there.
//
// It is for tests only.
//
// May import: the standard library.
package need
