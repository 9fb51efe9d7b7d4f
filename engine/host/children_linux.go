package host

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// children are the worker processes of a harness. It is safe for concurrent use.
type children struct {
	command []string
	env     []string
	stderr  io.Writer

	starts chan func()
	mu     sync.Mutex
	byNode map[int]*child
	closed bool
	alive  sync.WaitGroup
}

type child struct {
	cmd    *exec.Cmd
	tail   *tail
	exited bool
}

// tail keeps the end of what was written to it.
type tail struct {
	mu   sync.Mutex
	buf  []byte
	also io.Writer
}

const tailBytes = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf); n > tailBytes {
		t.buf = append(t.buf[:0], t.buf[n-tailBytes:]...)
	}
	if t.also != nil {
		return t.also.Write(p)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}

func newChildren(cfg *Config) (*children, error) {
	c := &children{command: cfg.Command, env: cfg.Env, stderr: cfg.Stderr, byNode: map[int]*child{}, starts: make(chan func(), 256)}
	if len(c.command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the program to start workers with: %w", err)
		}
		c.command = []string{self}
	}
	go func() {
		// The kernel sends a child's death signal when the thread that started it ends, so one thread starts them
		// all and lasts until they are gone. It ends with the goroutine, since it is never unlocked.
		runtime.LockOSThread()
		for f := range c.starts {
			f()
		}
	}()
	return c, nil
}

// start runs a worker and calls exited, on another goroutine, when it has ended. err says why it did not start.
func (c *children) start(node int, l *launch, exited func(why string), failed func(error)) {
	cmd := exec.Command(c.command[0], c.command[1:]...)
	cmd.Env = append(append(os.Environ(), c.env...), l.variable())
	ch := &child{cmd: cmd, tail: &tail{also: c.stderr}}
	cmd.Stdout, cmd.Stderr = ch.tail, ch.tail
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// A grandchild that keeps the pipe open must not keep Wait from returning.
	cmd.WaitDelay = time.Second
	c.alive.Add(1)
	c.starts <- func() {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			c.alive.Done()
			return
		}
		err := cmd.Start()
		if err == nil {
			c.byNode[node] = ch
		}
		c.mu.Unlock()
		if err != nil {
			c.alive.Done()
			failed(fmt.Errorf("start worker %d (%s): %w", node, strings.Join(c.command, " "), err))
			return
		}
		go func() {
			defer c.alive.Done()
			err := cmd.Wait()
			c.mu.Lock()
			ch.exited = true
			c.mu.Unlock()
			why := "exited"
			if err != nil {
				why = err.Error()
			}
			if t := ch.tail.String(); t != "" {
				why += ": " + t
			}
			exited(why)
		}()
	}
}

// signal sends sig to a node's process, which cannot have been reaped: Wait marks it under the same lock.
func (c *children) signal(node int, sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.byNode[node]
	if ch == nil || ch.exited {
		return fmt.Errorf("signal worker %d: %w", node, ErrNoProcess)
	}
	if err := ch.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal worker %d: %w", node, err)
	}
	return nil
}

func (c *children) pid(node int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.byNode[node]; ch != nil && !ch.exited {
		return ch.cmd.Process.Pid
	}
	return 0
}

// usage returns what a node's process has used; of one that ended, what it had used at its end.
func (c *children) usage(node int) (Usage, error) {
	c.mu.Lock()
	ch := c.byNode[node]
	exited := ch != nil && ch.exited
	c.mu.Unlock()
	if ch == nil {
		return Usage{}, fmt.Errorf("usage of worker %d: %w", node, ErrNoProcess)
	}
	if exited {
		s := ch.cmd.ProcessState
		u := Usage{UserCPU: s.UserTime(), SystemCPU: s.SystemTime()}
		if r, ok := s.SysUsage().(*syscall.Rusage); ok {
			u.PeakBytes = r.Maxrss << 10
		}
		return u, nil
	}
	return processUsage(ch.cmd.Process.Pid)
}

// processUsage reads the usage of a running process from /proc.
func processUsage(pid int) (Usage, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("usage of process %d: %w", pid, err)
	}
	// The command in parentheses may hold spaces; the fields behind it are numbers, state first.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("usage of process %d: %s/stat has %d fields", pid, dir, len(fields))
	}
	const tick = time.Second / 100 // USER_HZ, fixed for programs on all architectures
	ticks := func(s string) time.Duration {
		n, _ := strconv.ParseInt(s, 10, 64) // the kernel writes numbers
		return time.Duration(n) * tick
	}
	u := Usage{UserCPU: ticks(fields[11]), SystemCPU: ticks(fields[12])}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return Usage{}, fmt.Errorf("usage of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kb); err == nil {
			u.RSSBytes = kb << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kb); err == nil {
			u.PeakBytes = kb << 10
		}
	}
	return u, nil
}

// wait gives the children time to end by themselves.
func (c *children) wait(patience time.Duration) {
	gone := make(chan struct{})
	go func() { c.alive.Wait(); close(gone) }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
	}
}

// close kills all children, also stopped ones, and waits until they are gone.
func (c *children) close() {
	c.mu.Lock()
	c.closed = true
	for _, ch := range c.byNode {
		if !ch.exited {
			_ = ch.cmd.Process.Signal(unix.SIGKILL) // it may just have ended by itself
		}
	}
	c.mu.Unlock()
	c.alive.Wait()
	close(c.starts)
}
