package host

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/weir-bench/weir/engine/state/remote/server"
)

// storePatienceToStart bounds how long an embedded store may take to start.
const storePatienceToStart = 10 * time.Second

// StoreProcess is an embedded store in a process of its own, so that it shares neither heap nor processor time with
// the harness or the workers. Its methods are safe for concurrent use.
type StoreProcess struct {
	cmd  *exec.Cmd
	url  string
	tail *tail
	hold io.Closer     // the store ends when this is closed, also by the end of this process
	gone chan struct{} // closed when the process has ended
	why  string        // valid then
}

// storeLaunch is what a store's process has to know, as JSON in its environment.
type storeLaunch struct{ Password string }

// StartStore starts an embedded store and returns when it takes connections. command and env are as in Config. The
// caller has to Close it.
func StartStore(command, env []string) (*StoreProcess, error) {
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the program to start the embedded store with: %w", err)
		}
		command = []string{self}
	}
	l := storeLaunch{Password: rand.Text()} // or anybody on this machine could write to it
	body, err := json.Marshal(l)
	if err != nil {
		panic(err) // a plain value
	}
	p := &StoreProcess{cmd: exec.Command(command[0], command[1:]...), tail: &tail{}, gone: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), env...), storeVariable+"="+string(body))
	p.cmd.Stderr = p.tail
	p.cmd.WaitDelay = time.Second
	hold, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the embedded store: %w", err)
	}
	p.hold = hold
	// A pipe of its own: that of exec.Cmd may not be read while Wait is under way.
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the embedded store: %w", err)
	}
	defer out.Close()
	p.cmd.Stdout = in
	err = p.cmd.Start()
	_ = in.Close() // the child has its own
	if err != nil {
		return nil, fmt.Errorf("start the embedded store (%s): %w", strings.Join(command, " "), err)
	}
	go p.wait()
	if err := out.SetReadDeadline(time.Now().Add(storePatienceToStart)); err != nil {
		return nil, errors.Join(fmt.Errorf("start the embedded store: %w", err), p.Close())
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = p.Close() // it never returns an error
		return nil, fmt.Errorf("start the embedded store (%s): it did not say its address: %w: %s", strings.Join(command, " "), err, p.why)
	}
	p.url = storeURL(strings.TrimSpace(addr), l.Password)
	return p, nil
}

func storeURL(addr, password string) string { return "redis://:" + password + "@" + addr + "/0" }

func (p *StoreProcess) wait() {
	err := p.cmd.Wait()
	p.why = "exited"
	if err != nil {
		p.why = err.Error()
	}
	if t := p.tail.String(); t != "" {
		p.why += ": " + t
	}
	close(p.gone)
}

// URL returns the store's URL, with its password.
func (p *StoreProcess) URL() string { return p.url }

// Pid returns the store's process.
func (p *StoreProcess) Pid() int { return p.cmd.Process.Pid }

// Ended says why the process has ended, if it has or does so within patience.
func (p *StoreProcess) Ended(patience time.Duration) (why string, ended bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.gone:
	case <-timer.C:
	}
	select {
	case <-p.gone:
		return p.why, true
	default:
		return "", false
	}
}

// Usage returns what the process has used so far. An error matches ErrNoProcess when it has ended.
func (p *StoreProcess) Usage() (Usage, error) {
	if why, ended := p.Ended(0); ended {
		return Usage{}, fmt.Errorf("usage of the embedded store: %w: %s", ErrNoProcess, why)
	}
	return processUsage(p.cmd.Process.Pid)
}

// Close ends the process, and with it all that it holds, and waits until it is gone. It may be called again.
func (p *StoreProcess) Close() error {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.gone
	_ = p.hold.Close() // its reader is gone
	return nil
}

// storeMain is the whole life of an embedded store's process: it says its address on standard output and ends when
// standard input does.
func storeMain() int {
	// A Ctrl-C goes to all processes of the terminal; the store is needed until the harness has cleaned up.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var l storeLaunch
	err := json.Unmarshal([]byte(os.Getenv(storeVariable)), &l)
	if err != nil {
		fmt.Fprintf(os.Stderr, "store: environment variable %s: want the JSON that a harness sets: %v\n", storeVariable, err)
		return 1
	}
	s, err := server.Start(server.Options{Password: l.Password})
	if err == nil {
		_, err = fmt.Println(s.Addr())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "store:", err)
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the harness is gone, however it ended
	return 0
}
