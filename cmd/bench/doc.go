// Command bench is the front door of the house: flags, messages and exit codes.
// It reads the command line, has suites/spec check what is asked, hands the rest
// to the functions in an app, and turns their outcome into an exit code. Nothing
// is decided or measured here.
//
// Results go to standard output, all else to standard error.
//
// May import: everything.
package main
