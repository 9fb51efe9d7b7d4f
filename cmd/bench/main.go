package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/weir-bench/weir/suites/spec"
)

func main() {
	a := wire()
	if a.child != nil {
		if code, is := a.child(os.Args[1:]); is {
			os.Exit(code)
		}
	}
	// The first signal cancels; a second one ends the process at once, since
	// stop restores the default.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, a, world{
		args: os.Args[1:], in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv,
		outWidth: terminalWidth(os.Stdout), errWidth: terminalWidth(os.Stderr),
	}))
}

// world is what surrounds a command; tests have their own.
type world struct {
	args     []string
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	// Columns of the terminal behind out and err; 0 if there is none.
	outWidth, errWidth int
}

func terminalWidth(f *os.File) int {
	if !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w <= 0 {
		return 80
	}
	return w
}

func (w world) streams() Streams {
	return Streams{Out: w.out, Err: w.err, Width: w.outWidth,
		Color: w.outWidth > 0 && w.env("NO_COLOR") == "" && w.env("CI") == "" && w.env("TERM") != "dumb"}
}

// usageError is a mistake on the command line; help names the command that
// explains it.
type usageError struct {
	err  error
	help string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// codeError ends a command with a code after everything was said.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// execute runs one command line and gives its exit code. It writes the one
// message of an error; a panic becomes a message too, as a dump of goroutines
// tells a user nothing.
func execute(ctx context.Context, a app, w world) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(w.err, "bench: internal error, please report it: %v\n", r)
			if w.env("BENCH_DEBUG") != "" {
				fmt.Fprintf(w.err, "%s", debug.Stack())
			} else {
				fmt.Fprintln(w.err, "bench: set BENCH_DEBUG=1 to see where")
			}
			code = exitInternal
		}
	}()
	root := newRoot(a, w)
	root.SetArgs(w.args)
	return explain(ctx, w, root.ExecuteContext(ctx))
}

// explain writes what went wrong, if anything, and gives the exit code.
func explain(ctx context.Context, w world, err error) int {
	var usage *usageError
	var code codeError
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &code):
		return int(code)
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		fmt.Fprintln(w.err, "bench: interrupted")
		return exitInterrupted
	case errors.As(err, &usage):
		fmt.Fprintf(w.err, "bench: %s\n", oneLine(err))
		if usage.help != "" {
			fmt.Fprintf(w.err, "bench: see '%s --help'\n", usage.help)
		}
		return exitUsage
	case errors.Is(err, spec.ErrInvalid):
		fmt.Fprintln(w.err, err)
		return exitUsage
	}
	fmt.Fprintf(w.err, "bench: %s\n", oneLine(err))
	return exitInternal
}

func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " ")
}
