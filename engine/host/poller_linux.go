package host

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller is the waiting part of an event loop. All but post belongs to the loop's thread.
type poller struct {
	epoll  int
	wakeFD int
	coarse bool // the kernel has no epoll_pwait2: timeouts in milliseconds
	events [128]unix.EpollEvent

	mu     sync.Mutex
	posted []func()
	closed bool
	run    []func()
}

func newPoller() (*poller, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		_ = unix.Close(ep) // nothing to lose in it
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	p := &poller{epoll: ep, wakeFD: wake}
	if err := p.add(wake, unix.EPOLLIN, 0); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// add watches fd; mark comes back as Pad of its events.
func (p *poller) add(fd int, events uint32, mark int32) error {
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd), Pad: mark}); err != nil {
		return fmt.Errorf("add to epoll: %w", err)
	}
	return nil
}

func (p *poller) modify(fd int, events uint32, mark int32) {
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd), Pad: mark}); err != nil {
		panic(fmt.Sprintf("host: change epoll events of a descriptor that is in use: %v", err))
	}
}

// wait returns what is ready, after at most timeoutNS (0: at once). A signal counts as nothing ready.
func (p *poller) wait(timeoutNS int64) []unix.EpollEvent {
	var n uintptr
	var errno unix.Errno
	first := uintptr(unsafe.Pointer(&p.events[0]))
	switch {
	case timeoutNS <= 0:
		// Raw: a call that never blocks need not tell the scheduler.
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), first, uintptr(len(p.events)), 0, 0, 0)
	case !p.coarse:
		ts := unix.NsecToTimespec(timeoutNS)
		n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), first, uintptr(len(p.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
		if errno == unix.ENOSYS {
			p.coarse = true
			return nil
		}
	default:
		n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), first, uintptr(len(p.events)), uintptr((timeoutNS+999_999)/1_000_000), 0, 0)
	}
	if errno == unix.EINTR {
		return nil
	}
	if errno != 0 {
		panic(fmt.Sprintf("host: wait on epoll: %v", errno))
	}
	return p.events[:n]
}

// post makes the loop call f in its next turn and says whether it still will. It is safe for concurrent use.
func (p *poller) post(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.posted = append(p.posted, f)
	if len(p.posted) > 1 {
		return true // woken already
	}
	one := [8]byte{1}
	if _, err := unix.Write(p.wakeFD, one[:]); err != nil && !errors.Is(err, unix.EAGAIN) {
		panic(fmt.Sprintf("host: wake the event loop: %v", err))
	}
	return true
}

// drain calls what was posted.
func (p *poller) drain() {
	var count [8]byte
	if _, err := unix.Read(p.wakeFD, count[:]); err != nil && !errors.Is(err, unix.EAGAIN) {
		panic(fmt.Sprintf("host: read eventfd: %v", err))
	}
	p.mu.Lock()
	p.run, p.posted = p.posted, p.run[:0]
	p.mu.Unlock()
	for i, f := range p.run {
		p.run[i] = nil
		f()
	}
}

// close ends the loop: later posts are refused, earlier ones are run.
func (p *poller) close() {
	p.mu.Lock()
	p.closed = true
	run := p.posted
	p.posted = nil
	p.mu.Unlock()
	for _, f := range run {
		f()
	}
	_ = unix.Close(p.wakeFD) // nothing to lose in them
	_ = unix.Close(p.epoll)
}

// preciseTimers makes timers of this thread fire on time instead of up to 50 µs late.
func preciseTimers() {
	// Best effort: a coarser timer only makes pacing coarser, and the send lag shows it.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}

func rawRead(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func rawWrite(fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// loopNice is the scheduling priority of event loops. On a machine that does something else as well, a time slice of
// another program is 10 to 40 ms long: it would be measured as delay of the engine.
const loopNice = -10

// aheadOfOthers gives the calling thread priority over programs that only compute. Without the right to do so (only root
// has it, as a rule) nothing changes, and a busy machine shows in the delays and in the lag of the harness.
func aheadOfOthers() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), loopNice)
}
