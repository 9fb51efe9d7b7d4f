package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// procStat is what is needed of /proc/PID/stat (proc_pid_stat(5)).
type procStat struct {
	state  byte
	parent int
	start  uint64
	cpu    time.Duration
}

func readStat(path string) (procStat, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return procStat{}, err
	}
	return parseStat(b)
}

func parseStat(b []byte) (s procStat, err error) {
	// The command in parentheses may hold anything, also parentheses; behind the last one come fields 3, 4, …
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return s, fmt.Errorf("stat line has %d fields behind the command, not 20 or more", len(f))
	}
	s.state = f[0][0]
	parent, err1 := strconv.Atoi(f[1])
	user, err2 := strconv.ParseInt(f[11], 10, 64)
	system, err3 := strconv.ParseInt(f[12], 10, 64)
	start, err4 := strconv.ParseUint(f[19], 10, 64)
	const tick = time.Second / 100 // USER_HZ, fixed for programs on all architectures
	s.parent, s.cpu, s.start = parent, time.Duration(user+system)*tick, start
	return s, errors.Join(err1, err2, err3, err4)
}

func proc(pid int, file string) string { return "/proc/" + strconv.Itoa(pid) + "/" + file }

// Identify returns the identity of a running child process of this process. It wraps ErrGone if it has ended, and
// ErrForeign if it is not a child.
func Identify(pid int) (Process, error) {
	if pid <= 0 {
		return Process{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	s, err := readStat(proc(pid, "stat"))
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) || (err == nil && (s.state == 'Z' || s.state == 'X')):
		return Process{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	case err != nil:
		return Process{}, fmt.Errorf("identify process %d: %w", pid, err)
	case s.parent != os.Getpid():
		return Process{}, fmt.Errorf("process %d is a child of %d: %w", pid, s.parent, ErrForeign)
	}
	return Process{PID: pid, StartTicks: s.start}, nil
}

// handle refers to one process for good, also after its number was given to another.
type handle struct {
	Process
	fd int
}

// open returns a handle on p. The pidfd is opened first: what is checked afterwards is then true of what it refers to.
func open(p Process) (*handle, error) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, fmt.Errorf("process %d: %w", p.PID, ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", p.PID, err)
	}
	h := &handle{p, fd}
	now, err := Identify(p.PID)
	if err == nil && now != p {
		err = fmt.Errorf("process %d started at tick %d, not %d: %w", p.PID, now.StartTicks, p.StartTicks, ErrGone)
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *handle) signal(sig unix.Signal) error {
	err := unix.PidfdSendSignal(h.fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %w", h.PID, ErrGone)
	}
	if err != nil {
		return fmt.Errorf("send %v to process %d: %w", sig, h.PID, err)
	}
	return nil
}

func (h *handle) kill() error   { return h.signal(unix.SIGKILL) }
func (h *handle) stop() error   { return h.signal(unix.SIGSTOP) }
func (h *handle) resume() error { return h.signal(unix.SIGCONT) }
func (h *handle) close() error  { return unix.Close(h.fd) }

// exited waits until the process has ended, and says whether it has within the limit. Its parent may reap it meanwhile.
func (h *handle) exited(limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for {
		left := max(time.Until(deadline), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if n > 0 {
			return true
		}
		if left == 0 || (err != nil && !errors.Is(err, unix.EINTR)) {
			return false
		}
	}
}

// threads returns the states of all threads, each once and in order, and their number.
func (h *handle) threads() (states string, n int) {
	dir, err := os.ReadDir(proc(h.PID, "task"))
	if err != nil {
		return "", 0 // it has ended
	}
	var seen []byte
	for _, d := range dir {
		s, err := readStat(proc(h.PID, "task/"+d.Name()+"/stat"))
		if err != nil {
			continue // this thread has ended
		}
		n++
		if !slices.Contains(seen, s.state) {
			seen = append(seen, s.state)
		}
	}
	slices.Sort(seen)
	return string(seen), n
}

// until looks at the threads again and again until ok says yes to their states, and whether it did within the limit.
func (h *handle) until(limit time.Duration, ok func(states string) bool) (states string, threads int, yes bool) {
	deadline := time.Now().Add(limit)
	for {
		states, threads = h.threads()
		if ok(states) {
			return states, threads, true
		}
		if time.Now().After(deadline) || h.exited(0) {
			return states, threads, false
		}
		time.Sleep(100 * time.Microsecond) // the kernel gives no notice of a stop to others than wait(2)
	}
}

func (h *handle) stopped(limit time.Duration) (string, int, bool) {
	return h.until(limit, func(s string) bool { return s == "T" })
}

func (h *handle) running(limit time.Duration) (string, int, bool) {
	return h.until(limit, func(s string) bool { return s != "" && !strings.Contains(s, "T") })
}

// cpu returns the processor time that it has used, 0 if it has ended.
func (h *handle) cpu() time.Duration {
	s, err := readStat(proc(h.PID, "stat"))
	if err != nil || s.start != h.StartTicks {
		return 0
	}
	return s.cpu
}
