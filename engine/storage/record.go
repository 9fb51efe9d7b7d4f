package storage

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// A record is a header and a payload, little-endian:
//
//	0  kind (32 bits)
//	4  length of the payload (32 bits)
//	8  CRC32C of the payload
//	12 CRC32C of the twelve bytes before, so that a damaged length is not obeyed
//	16 payload
//
// The file starts with the magic and the format version, which are read before
// anything else so that another version is told from damage.
const (
	magic             = "WEIRCKPT"
	formatVersion     = 2
	preambleBytes     = len(magic) + 4
	recordHeaderBytes = 16
	maxChunkBytes     = 1 << 30

	kindIdentity     = 1 // job, checkpoint, task
	kindSectionStart = 2 // name
	kindData         = 3 // one chunk
	kindSectionEnd   = 4 // bytes (64 bits), CRC32C of the section's data
	kindTrailer      = 5 // number of sections (32 bits), data bytes (64 bits)
)

// castagnoli returns the table with which crc32 uses the processor's instruction;
// MakeTable gives the same one every time.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// FileID says what a state file belongs to.
type FileID struct {
	Job        string
	Checkpoint uint64
	Task       uint32
}

func (id FileID) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, id.Checkpoint)
	b = binary.LittleEndian.AppendUint32(b, id.Task)
	return append(b, id.Job...)
}

func decodeFileID(b []byte) (FileID, bool) {
	if len(b) < 12 {
		return FileID{}, false
	}
	return FileID{
		Checkpoint: binary.LittleEndian.Uint64(b),
		Task:       binary.LittleEndian.Uint32(b[8:]),
		Job:        string(b[12:]),
	}, true
}

// encoder writes the records of a file and keeps its size and checksum.
type encoder struct {
	out      *bufio.Writer
	size     int64
	crc      uint32
	header   [recordHeaderBytes]byte
	sections uint32
	data     uint64

	open        bool // a section is open
	sectionSize uint64
	sectionCRC  uint32
}

func (e *encoder) raw(b []byte) error {
	e.size += int64(len(b))
	e.crc = crc32.Update(e.crc, castagnoli(), b)
	_, err := e.out.Write(b)
	return err
}

func (e *encoder) record(kind uint32, payload []byte) error {
	return e.summed(kind, payload, crc32.Checksum(payload, castagnoli()))
}

// summed writes a record whose payload's checksum is known.
func (e *encoder) summed(kind uint32, payload []byte, crc uint32) error {
	h := e.header[:]
	binary.LittleEndian.PutUint32(h, kind)
	binary.LittleEndian.PutUint32(h[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(h[8:], crc)
	binary.LittleEndian.PutUint32(h[12:], crc32.Checksum(h[:12], castagnoli()))
	if err := e.raw(h); err != nil {
		return err
	}
	if len(payload) < joinBytes {
		return e.raw(payload)
	}
	e.size += int64(len(payload))
	e.crc = joinCRC(e.crc, crc, len(payload))
	_, err := e.out.Write(payload)
	return err
}

func (e *encoder) begin(id FileID) error {
	preamble := binary.LittleEndian.AppendUint32([]byte(magic), formatVersion)
	if err := e.raw(preamble); err != nil {
		return err
	}
	return e.record(kindIdentity, id.encode())
}

func (e *encoder) startSection(name string) error {
	if err := e.endSection(); err != nil {
		return err
	}
	e.open, e.sectionSize, e.sectionCRC = true, 0, 0
	e.sections++
	return e.record(kindSectionStart, []byte(name))
}

func (e *encoder) endSection() error {
	if !e.open {
		return nil
	}
	e.open = false
	b := binary.LittleEndian.AppendUint64(nil, e.sectionSize)
	return e.record(kindSectionEnd, binary.LittleEndian.AppendUint32(b, e.sectionCRC))
}

func (e *encoder) chunk(b []byte) error {
	e.sectionSize += uint64(len(b))
	e.data += uint64(len(b))
	crc := crc32.Checksum(b, castagnoli())
	e.sectionCRC = foldCRC(e.sectionCRC, crc)
	return e.summed(kindData, b, crc)
}

func (e *encoder) finish() error {
	if err := e.endSection(); err != nil {
		return err
	}
	b := binary.LittleEndian.AppendUint32(nil, e.sections)
	return e.record(kindTrailer, binary.LittleEndian.AppendUint64(b, e.data))
}

// foldCRC adds a chunk's checksum to that of its section: the checksum of the
// checksums, which sees chunks missing, doubled or in another order without a second pass
// over the data.
func foldCRC(section, chunk uint32) uint32 {
	return crc32.Update(section, castagnoli(), binary.LittleEndian.AppendUint32(nil, chunk))
}

// Reader gives the chunks of a state file in order. It checks every record before
// it hands out a byte of it, and the trailer before io.EOF. A Reader is used by
// one goroutine.
type Reader struct {
	in     *bufio.Reader
	closer io.Closer
	path   string
	id     FileID
	offset int64
	buf    []byte
	header [recordHeaderBytes]byte

	section     string
	open        bool
	sectionSize uint64
	sectionCRC  uint32
	sections    uint32
	data        uint64
	err         error
}

// NewReader reads a state file from in and checks that it is that of want. path
// is for messages. Errors wrap ErrDamaged, ErrVersion, ErrOtherJob or what in returned.
func NewReader(in io.Reader, path string, want FileID) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 64<<10), path: path, id: want}
	var preamble [preambleBytes]byte
	if err := r.fill(preamble[:]); err != nil {
		return nil, err
	}
	if string(preamble[:len(magic)]) != magic {
		return nil, r.damaged("not a state file: it starts with %q", preamble[:len(magic)])
	}
	if v := binary.LittleEndian.Uint32(preamble[len(magic):]); v != formatVersion {
		return nil, fmt.Errorf("%s: %w: version %d, this program reads %d", path, ErrVersion, v, formatVersion)
	}
	kind, payload, err := r.record()
	if err != nil {
		return nil, err
	}
	got, ok := decodeFileID(payload)
	if kind != kindIdentity || !ok {
		return nil, r.damaged("no identity record")
	}
	if got.Job != want.Job {
		return nil, fmt.Errorf("%s: %w: it is of job %q, want %q", path, ErrOtherJob, got.Job, want.Job)
	}
	if got != want {
		return nil, r.damaged("it is checkpoint %d task %d, want checkpoint %d task %d",
			got.Checkpoint, got.Task, want.Checkpoint, want.Task)
	}
	return r, nil
}

// Next returns the next chunk and the section it is in; the chunk is valid until
// the next call. At the end of a whole file it returns io.EOF. Sections without chunks
// do not show. After an error every call returns it again.
func (r *Reader) Next() (section string, chunk []byte, err error) {
	if r.err != nil {
		return "", nil, r.err
	}
	section, chunk, err = r.next()
	r.err = err
	return section, chunk, err
}

func (r *Reader) next() (string, []byte, error) {
	for {
		kind, payload, err := r.record()
		if err != nil {
			return "", nil, err
		}
		switch {
		case kind == kindSectionStart && !r.open:
			r.section, r.open, r.sectionSize, r.sectionCRC = string(payload), true, 0, 0
			r.sections++
		case kind == kindData && r.open:
			r.sectionSize += uint64(len(payload))
			r.data += uint64(len(payload))
			r.sectionCRC = foldCRC(r.sectionCRC, binary.LittleEndian.Uint32(r.header[8:]))
			return r.section, payload, nil
		case kind == kindSectionEnd && r.open && len(payload) == 12:
			size, crc := binary.LittleEndian.Uint64(payload), binary.LittleEndian.Uint32(payload[8:])
			if size != r.sectionSize || crc != r.sectionCRC {
				return "", nil, r.damaged("section %q: %d bytes with checksum %08x, want %d and %08x",
					r.section, r.sectionSize, r.sectionCRC, size, crc)
			}
			r.open = false
		case kind == kindTrailer && !r.open && len(payload) == 12:
			return "", nil, r.end(payload)
		default:
			return "", nil, r.damaged("record of kind %d with %d bytes out of place", kind, len(payload))
		}
	}
}

// Swap gives the reader another buffer and returns the one with the last chunk, which is the caller's then.
func (r *Reader) Swap(buf []byte) []byte {
	last := r.buf
	r.buf = buf
	return last
}

// end checks the trailer and that nothing follows; it returns io.EOF if all is well.
func (r *Reader) end(trailer []byte) error {
	sections, data := binary.LittleEndian.Uint32(trailer), binary.LittleEndian.Uint64(trailer[4:])
	if sections != r.sections || data != r.data {
		return r.damaged("%d sections with %d bytes, the trailer says %d and %d", r.sections, r.data, sections, data)
	}
	switch _, err := r.in.ReadByte(); {
	case err == nil:
		return r.damaged("bytes after the trailer")
	case err != io.EOF:
		return fmt.Errorf("read %s: %w", r.path, err)
	}
	return io.EOF
}

// record reads one record; the payload is valid until the next call.
func (r *Reader) record() (kind uint32, payload []byte, err error) {
	h := r.header[:]
	if err := r.fill(h); err != nil {
		return 0, nil, err
	}
	if crc32.Checksum(h[:12], castagnoli()) != binary.LittleEndian.Uint32(h[12:]) {
		return 0, nil, r.damaged("record header: wrong checksum")
	}
	n := int(binary.LittleEndian.Uint32(h[4:]))
	if n > maxChunkBytes {
		return 0, nil, r.damaged("record of %d bytes", n)
	}
	r.buf = r.buf[:0]
	for len(r.buf) < n { // grows with what is there, so a wrong length costs no memory
		from := len(r.buf)
		step := min(n-from, max(cap(r.buf)-from, 1<<20))
		r.buf = slices.Grow(r.buf, step)[:from+step]
		if err := r.fill(r.buf[from:]); err != nil {
			return 0, nil, err
		}
	}
	if crc32.Checksum(r.buf, castagnoli()) != binary.LittleEndian.Uint32(h[8:]) {
		return 0, nil, r.damaged("record of %d bytes: wrong checksum", n)
	}
	return binary.LittleEndian.Uint32(h), r.buf, nil
}

func (r *Reader) fill(b []byte) error {
	n, err := io.ReadFull(r.in, b)
	r.offset += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.damaged("cut off")
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", r.path, err)
	}
	return nil
}

func (r *Reader) damaged(format string, args ...any) error {
	return fmt.Errorf("%s: %w at byte %d: %s", r.path, ErrDamaged, r.offset, fmt.Sprintf(format, args...))
}

// Close closes the file that Store.Open opened.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}
