package durable

import (
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/weir-bench/weir/engine/state"
	"github.com/weir-bench/weir/engine/storage"
	"github.com/weir-bench/weir/engine/task"
)

// loader installs what is wanted of one file. Its goroutines read chunks in turns, check them and build the tables of
// key groups beside each other, and install them in the order in which they were read: what comes of it does not depend
// on how many there are.
type loader struct {
	req    *task.LoadRequest
	heap   *state.Heap // nil: the state is of another kind
	newest bool        // the file is the checkpoint's own

	reading sync.Mutex // guards the reader and the fields below
	file    *storage.Reader
	chunks  uint64 // that were read
	over    bool   // nothing more is read

	installing sync.Mutex // guards the state and the fields below
	turn       *sync.Cond // installed has changed
	installed  uint64
	err        error // the first one; io.EOF at the end of the file
}

// loadFile installs what is wanted of one file, on as many goroutines as the store has readers, the caller's one of them.
func loadFile(s *storage.Store, l storage.Link, from int, newest bool, req *task.LoadRequest) error {
	r, err := s.OpenFile(uint32(from), l)
	if err != nil {
		return err
	}
	ld := &loader{req: req, newest: newest, file: r}
	ld.heap, _ = req.Into.(*state.Heap)
	ld.turn = sync.NewCond(&ld.installing)
	var others sync.WaitGroup
	for range s.Readers() - 1 {
		others.Go(ld.run)
	}
	ld.run()
	others.Wait()
	if closeErr := r.Close(); errors.Is(ld.err, io.EOF) {
		return closeErr
	}
	return ld.err
}

func (ld *loader) run() {
	var buf []byte
	for {
		p, ok := ld.read(buf)
		if !ok {
			return
		}
		ld.build(&p)
		if !ld.install(&p) {
			return
		}
		buf = p.buf
	}
}

// piece is a chunk on its way from a file into the state.
type piece struct {
	number  uint64
	section string
	chunk   []byte
	buf     []byte // that chunk is in
	wanted  bool
	group   uint32
	built   state.Built
	err     error
}

// read reads the next chunk into buf, which it takes over; false when nobody reads any more.
func (ld *loader) read(buf []byte) (p piece, ok bool) {
	ld.reading.Lock()
	defer ld.reading.Unlock()
	if ld.over {
		return p, false
	}
	ld.file.Swap(buf)
	p.section, p.chunk, p.err = ld.file.Next()
	p.buf = ld.file.Swap(nil)
	p.number = ld.chunks
	ld.chunks++
	ld.over = p.err != nil
	return p, true
}

// build does what does not need the others to have installed theirs.
func (ld *loader) build(p *piece) {
	if p.err != nil || p.section != sectionState {
		return
	}
	p.group, p.err = state.ChunkGroup(p.chunk)
	if p.err != nil || int(p.group) >= len(ld.req.Want) || !ld.req.Want[p.group] {
		return
	}
	if p.wanted = true; ld.heap != nil {
		p.built, p.err = ld.heap.Build(p.group, p.chunk)
	}
}

// install takes in a chunk when its turn has come, and says whether to go on.
func (ld *loader) install(p *piece) bool {
	ld.installing.Lock()
	defer ld.installing.Unlock()
	for ld.installed != p.number {
		ld.turn.Wait()
	}
	if ld.err == nil {
		ld.err = ld.take(p)
	}
	ld.installed++
	ld.turn.Broadcast()
	if ld.err == nil {
		return true
	}
	ld.reading.Lock() // nobody waits for a turn with it
	ld.over = true
	ld.reading.Unlock()
	return false
}

func (ld *loader) take(p *piece) error {
	switch {
	case p.err != nil:
		return p.err
	case p.section == sectionInFlight && ld.newest:
		ld.req.InFlight = append(ld.req.InFlight, slices.Clone(p.chunk))
	case !p.wanted: // of other groups, or of another section
	case ld.heap != nil:
		ld.heap.InstallBuilt(&p.built)
	default:
		return ld.req.Into.Install(p.group, p.chunk)
	}
	return nil
}
