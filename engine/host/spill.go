package host

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/weir-bench/weir/engine/durable"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// spiller carries out what a worker asks of its segments, one after the other on a goroutine of its own. The machine has at most
// one write and one read under way a channel, so that the queue stays short.
type spiller struct {
	dir   string
	disk  *disk // counts bytes
	mu    sync.Mutex
	more  *sync.Cond // there is something in the queue, or the end
	queue []spillJob
	ended bool
	made  bool // the folder is there
	gone  chan struct{}
}

type spillJob struct {
	r    task.SegmentRequest
	done func(task.SegmentRequest, error) // called on the goroutine
}

// spillDir is the folder in dir for the segments of a node.
func spillDir(dir string, node int) string { return filepath.Join(dir, fmt.Sprintf("spill-%d", node)) }

// newSpiller returns a worker's spiller. What a process of the same number has left is removed: it is of no use to anybody.
func newSpiller(dir string, node int, d *disk) (*spiller, error) {
	s := &spiller{dir: spillDir(dir, node), disk: d, gone: make(chan struct{})}
	s.more = sync.NewCond(&s.mu)
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, fmt.Errorf("segments of sender logs that an earlier worker has left: %w", err)
	}
	go s.run()
	return s, nil
}

// do carries r out and calls done on another goroutine, unless r has no answer.
func (s *spiller) do(r task.SegmentRequest, done func(task.SegmentRequest, error)) {
	s.mu.Lock()
	s.queue = append(s.queue, spillJob{r, done})
	s.mu.Unlock()
	s.more.Signal()
}

func (s *spiller) run() {
	defer close(s.gone)
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.ended {
			s.more.Wait()
		}
		if s.ended {
			s.mu.Unlock()
			return
		}
		jobs := s.queue
		s.queue = nil
		s.mu.Unlock()
		for _, j := range jobs {
			err := s.carryOut(&j.r)
			if j.r.Op != task.SegmentRemove {
				j.done(j.r, err)
			}
		}
	}
}

func (s *spiller) carryOut(r *task.SegmentRequest) error {
	if !s.made {
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return err
		}
		s.made = true
	}
	err := durable.DoSegment(storage.OS{}, s.dir, r)
	switch r.Op {
	case task.SegmentWrite:
		s.disk.written.Add(int64(len(r.Data)))
	case task.SegmentRead:
		s.disk.read.Add(int64(len(r.Data)))
	}
	return err
}

// close ends the goroutine and removes all segments.
func (s *spiller) close() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.more.Signal()
	<-s.gone
	_ = os.RemoveAll(s.dir) // the harness removes the folder around it
}
