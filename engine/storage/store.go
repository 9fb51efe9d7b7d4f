package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	manifestName = "MANIFEST"
	tempSuffix   = ".tmp"
	jobPrefix    = "job-"
	chkPrefix    = "chk-"
	// maxManifestBytes bounds what is read of a file that calls itself a manifest.
	maxManifestBytes = 256 << 20
)

// maxJobBytes bounds a job's name; maxHeadBytes is what a file's preamble and
// identity take at most.
const (
	maxJobBytes  = 64
	maxHeadBytes = preambleBytes + recordHeaderBytes + 12 + maxJobBytes
)

// Expected outcomes. Skipped.Reason and the errors of Newest wrap them.
var (
	// ErrNoCheckpoint: the job never completed a checkpoint; it starts from the beginning.
	ErrNoCheckpoint = errors.New("no checkpoint was ever completed")
	// ErrNoUsableCheckpoint: there are completed checkpoints and none verifies.
	ErrNoUsableCheckpoint = errors.New("no usable checkpoint")
	// ErrIncomplete: the checkpoint has no MANIFEST, so it was never acknowledged.
	ErrIncomplete = errors.New("incomplete checkpoint (no MANIFEST)")
	// ErrDamaged: content that is not what was written.
	ErrDamaged = errors.New("damaged")
	// ErrOtherJob: the file says that it belongs to another job.
	ErrOtherJob = errors.New("checkpoint of another job")
	// ErrVersion: the file has a format version that this program does not read.
	ErrVersion = errors.New("other checkpoint format version")
	// ErrForeign: a name that no checkpoint has; such files are never touched.
	ErrForeign = errors.New("not a checkpoint")
	// ErrExists: the checkpoint is complete already.
	ErrExists = errors.New("checkpoint is complete already")
)

// Checkpoint is a complete checkpoint: what its MANIFEST says.
type Checkpoint struct {
	Job    string     `json:"job"`
	Number uint64     `json:"checkpoint"`
	Files  []FileInfo `json:"files"`
	// Meta is the coordinator's own record (routes, offsets …), opaque here.
	Meta []byte `json:"meta,omitempty"`
}

// Bytes returns the size of all state files in bytes.
func (c Checkpoint) Bytes() int64 {
	var sum int64
	for _, f := range c.Files {
		sum += f.Bytes
	}
	return sum
}

// Skipped is a directory entry that Newest passed over, and why.
type Skipped struct {
	Path   string
	Reason error
}

func (s Skipped) String() string { return s.Path + ": " + s.Reason.Error() }

// Store is the checkpoints of one job in a directory.
type Store struct {
	fs   FS
	job  string
	dir  string // of the job
	sync bool
	// whole says that files appear whole under their own names, see Objects.
	whole   bool
	readers int

	mu sync.Mutex
	// verified are the files that were read and found right, by their path, as they were then.
	verified map[string]verified
}

type verified struct {
	stamp Stamp
	crc   uint32
}

// Options are the settings of a Store.
type Options struct {
	// NoSync leaves writing back to the operating system: a crash of the process is
	// survived, a crash of the machine may damage checkpoints (Newest finds out).
	NoSync bool
	// Readers is how many goroutines verify files or load state at once; 0: one, and then it is the caller's. The FS must
	// allow it.
	Readers int
}

// New returns the checkpoints of job under dir; nothing is read or written yet. dir
// is made when needed; its parent should be there, or a crash of the machine may lose it.
// The job's name has 1 to 64 letters, digits, dots, dashes and underscores, and does
// not start with a dot.
func New(fsys FS, dir, job string, opts Options) (*Store, error) {
	const others = "-_."
	bad := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune(others, r)
	}
	if job == "" || len(job) > maxJobBytes || job[0] == '.' || strings.ContainsFunc(job, bad) {
		return nil, fmt.Errorf("job name %q: want 1 to 64 letters, digits, dots, dashes or underscores, no leading dot", job)
	}
	return &Store{fs: fsys, job: job, dir: path.Join(dir, jobPrefix+job), sync: !opts.NoSync, whole: isObjects(fsys),
		readers: max(opts.Readers, 1), verified: map[string]verified{}}, nil
}

// Readers returns how many goroutines may read at once.
func (s *Store) Readers() int { return s.readers }

// tempName returns the name under which a file is written before it gets its own.
func (s *Store) tempName(final string) string {
	if s.whole {
		return final
	}
	return final + tempSuffix
}

// taskName is the name of a task's state file. The epoch of the task's deployment is part of it: one that was replaced may
// write its part of the same checkpoint later, and must not do so over the file of its successor.
func taskName(task, epoch uint32) string {
	if epoch == 0 {
		return fmt.Sprintf("task-%d.state", task)
	}
	return fmt.Sprintf("task-%d-e%d.state", task, epoch)
}

func (s *Store) checkpointDir(number uint64) string {
	return path.Join(s.dir, chkPrefix+strconv.FormatUint(number, 10))
}

// syncParents makes the directories above a checkpoint's durable: the job's, the
// one given to New, and its entry in its parent.
func (s *Store) syncParents() error {
	if !s.sync {
		return nil
	}
	for _, dir := range []string{s.dir, path.Dir(s.dir), path.Dir(path.Dir(s.dir))} {
		if err := s.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// Commit completes a checkpoint by writing its MANIFEST; when it returns nil, the
// checkpoint is durable. The files are those that the tasks' Writer.Close returned; those that they link to, and
// their tables, must be there.
// Committing a checkpoint that is complete gives ErrExists. After any other error the
// checkpoint may turn out complete or not, as after a lost acknowledgement: what it would
// have made superfluous has to stay.
func (s *Store) Commit(ck Checkpoint) error {
	dir := s.checkpointDir(ck.Number)
	fail := func(err error) error { return fmt.Errorf("commit checkpoint %d in %s: %w", ck.Number, dir, err) }
	names, err := s.fs.ReadDir(dir)
	if err != nil {
		return fail(err)
	}
	if slices.Contains(names, manifestName) {
		return fail(ErrExists)
	}
	ck.Job = s.job
	ck.Files = slices.Clone(ck.Files)
	slices.SortFunc(ck.Files, func(a, b FileInfo) int { return strings.Compare(a.Name, b.Name) })
	if err := checkFiles(ck.Number, ck.Files); err != nil {
		return fail(err)
	}
	for _, f := range ck.Files {
		if !slices.Contains(names, f.Name) {
			return fail(fmt.Errorf("state file %s: %w", f.Name, fs.ErrNotExist))
		}
		for _, l := range f.Links {
			if err := s.linked(f.Task, l); err != nil {
				return fail(err)
			}
		}
	}
	if err := s.haveTables(ck.Files); err != nil {
		return fail(err)
	}
	if err := s.syncParents(); err != nil {
		return fail(err)
	}
	final := path.Join(dir, manifestName)
	temp := s.tempName(final)
	file, err := s.fs.Create(temp)
	if err != nil {
		return fail(err)
	}
	if _, err := file.Write(encodeManifest(ck)); err != nil {
		s.abandon(file, temp) // the write's error is the one to report
		return fail(err)
	}
	if err := s.publish(file, temp, final); err != nil {
		return fail(err)
	}
	return nil
}

// linked says what is wrong with a file of an earlier checkpoint, short of reading it.
func (s *Store) linked(task uint32, l Link) error {
	if _, err := s.fs.Stat(path.Join(s.checkpointDir(l.Checkpoint), manifestName)); err != nil {
		return fmt.Errorf("link to checkpoint %d, which is not complete: %w", l.Checkpoint, err)
	}
	name := path.Join(s.checkpointDir(l.Checkpoint), taskName(task, l.Epoch))
	stamp, err := s.fs.Stat(name)
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	if stamp.Bytes != l.Bytes {
		return fmt.Errorf("link to %s: %w: %d bytes, want %d", name, ErrDamaged, stamp.Bytes, l.Bytes)
	}
	return nil
}

func checkFiles(number uint64, files []FileInfo) error {
	if len(files) == 0 {
		return errors.New("a checkpoint without state files")
	}
	for i, f := range files {
		if want := taskName(f.Task, f.Epoch); f.Name != want {
			return fmt.Errorf("task %d has file %q, want %q", f.Task, f.Name, want)
		}
		if slices.ContainsFunc(files[:i], func(o FileInfo) bool { return o.Task == f.Task }) {
			return fmt.Errorf("file %q is listed twice, or another one of its task", f.Name)
		}
		for k, l := range f.Links {
			if l.Checkpoint >= number || k > 0 && l.Checkpoint <= f.Links[k-1].Checkpoint {
				return fmt.Errorf("file %q of checkpoint %d links to checkpoint %d out of order", f.Name, number, l.Checkpoint)
			}
		}
		if err := checkTables(number, &f); err != nil {
			return err
		}
	}
	return nil
}

// The MANIFEST is text for people to read: a line with the format's name and
// version, a JSON object, a line with the CRC32C of all before it.
const manifestTitle = "weir-checkpoint "

func encodeManifest(ck Checkpoint) []byte {
	body, err := json.MarshalIndent(ck, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("storage: encode manifest: %v", err)) // numbers, strings and bytes always encode
	}
	b := fmt.Appendf(nil, "%s%d\n%s\n", manifestTitle, formatVersion, body)
	return fmt.Appendf(b, "crc32c %08x\n", crc32.Checksum(b, castagnoli()))
}

const checksumLineBytes = len("crc32c 01234567\n")

func (s *Store) decodeManifest(b []byte, number uint64) (Checkpoint, error) {
	var ck Checkpoint
	if len(b) == 0 {
		return ck, fmt.Errorf("%w: empty", ErrDamaged)
	}
	first, _, _ := strings.Cut(string(b[:min(len(b), 64)]), "\n")
	version, ok := strings.CutPrefix(first, manifestTitle)
	if !ok {
		return ck, fmt.Errorf("%w: it starts with %q, want %q", ErrDamaged, first, manifestTitle+"…")
	}
	body := b[:max(0, len(b)-checksumLineBytes)]
	if want := fmt.Sprintf("crc32c %08x\n", crc32.Checksum(body, castagnoli())); want != string(b[len(body):]) {
		return ck, fmt.Errorf("%w: cut off or changed (it ends with %q, want %q)", ErrDamaged, b[len(body):], want)
	}
	if version != strconv.Itoa(formatVersion) {
		return ck, fmt.Errorf("%w: version %q, this program reads %d", ErrVersion, version, formatVersion)
	}
	if err := json.Unmarshal(body[len(first):], &ck); err != nil {
		return ck, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if ck.Job != s.job {
		return ck, fmt.Errorf("%w: it is of job %q, want %q", ErrOtherJob, ck.Job, s.job)
	}
	if ck.Number != number {
		return ck, fmt.Errorf("%w: it is of checkpoint %d, want %d", ErrDamaged, ck.Number, number)
	}
	if err := checkFiles(number, ck.Files); err != nil {
		return ck, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return ck, nil
}

// Load reads a checkpoint's MANIFEST without looking at its files.
func (s *Store) Load(number uint64) (Checkpoint, error) {
	name := path.Join(s.checkpointDir(number), manifestName)
	f, err := s.fs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, fmt.Errorf("%s: %w", s.checkpointDir(number), ErrIncomplete)
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("open %s: %w", name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifestBytes))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read %s: %w", name, err)
	}
	ck, err := s.decodeManifest(b, number)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%s: %w", name, err)
	}
	return ck, nil
}

// Open reads one task's state file of a checkpoint.
func (s *Store) Open(ck Checkpoint, task uint32) (*Reader, error) {
	for _, f := range ck.Files {
		if f.Task == task {
			return s.OpenFile(task, Link{ck.Number, f.Epoch, f.Stamp, f.CRC32C})
		}
	}
	return nil, fmt.Errorf("checkpoint %d: state file of task %d: %w", ck.Number, task, fs.ErrNotExist)
}

// OpenFile reads a task's state file that a link names.
func (s *Store) OpenFile(task uint32, l Link) (*Reader, error) {
	checkpoint := l.Checkpoint
	name := path.Join(s.checkpointDir(checkpoint), taskName(task, l.Epoch))
	f, err := s.fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open state file %s: %w", name, err)
	}
	r, err := NewReader(f, name, FileID{Job: s.job, Checkpoint: checkpoint, Task: task})
	if err != nil {
		_ = f.Close() // nothing was written; the reader's error is the one to report
		return nil, err
	}
	r.closer = f
	return r, nil
}
