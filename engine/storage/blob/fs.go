package blob

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/weir-bench/weir/engine/storage"
)

// partBytes is how much of a large file is uploaded as one part, and parts how many at the same time: a worker holds at
// most their product for each file.
const (
	partBytes = 8 << 20
	parts     = 3
)

// FS is the file system of a bucket; it implements storage.Objects and storage.Interruptible. Several goroutines may use
// it.
type FS struct {
	ctx    context.Context
	bucket *blob.Bucket
}

// New returns the files of a bucket, which stays the caller's.
func New(bucket *blob.Bucket) *FS { return &FS{ctx: context.Background(), bucket: bucket} }

// WithContext implements storage.Interruptible.
func (f *FS) WithContext(ctx context.Context) storage.FS { return &FS{ctx: ctx, bucket: f.bucket} }

// ObjectStore implements storage.Objects.
func (f *FS) ObjectStore() bool { return true }

// key is the name of an object: a path without a slash in front.
func key(name string) string { return strings.Trim(path.Clean("/"+name), "/") }

// fail gives an error the path, and the meaning that errors of files have.
func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var kind error
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		kind = fs.ErrNotExist
	case gcerrors.PermissionDenied:
		kind = fs.ErrPermission
	case gcerrors.ResourceExhausted:
		kind = syscall.ENOSPC
	default:
		if full(err) {
			kind = syscall.ENOSPC
		}
	}
	if kind != nil {
		err = fmt.Errorf("%w: %w", kind, err)
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// full says whether a server has no room: by the status that HTTP has for it, or what MinIO, Ceph and others say.
func full(err error) bool {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusInsufficientStorage {
		return true
	}
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains([]string{"XMinioStorageFull", "QuotaExceeded", "InsufficientStorage"}, api.ErrorCode())
}

// MkdirAll implements storage.FS: a directory is there as soon as something is in it.
func (f *FS) MkdirAll(string) error { return nil }

// SyncDir implements storage.FS: what was acknowledged is durable.
func (f *FS) SyncDir(string) error { return nil }

// Create implements storage.FS. The object appears at Close, in place of one of the same name.
func (f *FS) Create(name string) (storage.File, error) {
	ctx, cancel := context.WithCancel(f.ctx)
	w, err := f.bucket.NewWriter(ctx, key(name), &blob.WriterOptions{
		BufferSize: partBytes, MaxConcurrency: parts, ContentType: "application/octet-stream", DisableContentTypeDetection: true,
	})
	if err != nil {
		cancel()
		return nil, fail("create", name, err)
	}
	return &file{name: name, w: w, cancel: cancel}, nil
}

// Open implements storage.FS.
func (f *FS) Open(name string) (io.ReadCloser, error) {
	r, err := f.bucket.NewReader(f.ctx, key(name), nil)
	if err != nil {
		return nil, fail("open", name, err)
	}
	return &reader{name: name, r: r}, nil
}

// Stat implements storage.FS. Some object stores tell times in whole seconds, in which an object may be written twice: the
// entity tag, which changes with the content, stands for what is below a second then.
func (f *FS) Stat(name string) (storage.Stamp, error) {
	a, err := f.bucket.Attributes(f.ctx, key(name))
	if err != nil {
		return storage.Stamp{}, fail("stat", name, err)
	}
	at := a.ModTime.UnixNano()
	if a.ModTime.Nanosecond() == 0 {
		at += int64(crc32.ChecksumIEEE([]byte(a.ETag))) % int64(time.Second)
	}
	return storage.Stamp{Bytes: a.Size, ModifiedNS: at}, nil
}

// list calls each for what is directly in a directory, until it says no.
func (f *FS) list(dir string, each func(name string) bool) error {
	prefix := key(dir)
	if prefix != "" {
		prefix += "/"
	}
	it := f.bucket.List(&blob.ListOptions{Prefix: prefix, Delimiter: "/"})
	for {
		o, err := it.Next(f.ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil { // not fs.ErrNotExist, whatever the server says: it is the bucket that is missing
			return &fs.PathError{Op: "readdir", Path: dir, Err: err}
		}
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), "/")
		if name == "" {
			continue // an object that some tools make to show a directory
		}
		if !each(name) {
			return nil
		}
	}
}

// ReadDir implements storage.FS.
func (f *FS) ReadDir(name string) ([]string, error) {
	var names []string
	if err := f.list(name, func(n string) bool { names = append(names, n); return true }); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Rename implements storage.FS: a copy and a removal, so an observer may see both. A storage.Store does without.
func (f *FS) Rename(from, to string) error {
	if err := f.bucket.Copy(f.ctx, key(to), key(from), nil); err != nil {
		return fail("rename", from, err)
	}
	return f.Remove(from)
}

// Remove implements storage.FS. That there is nothing of the name is no error, as object stores do not tell: a directory
// is gone with the last object in it.
func (f *FS) Remove(name string) error {
	var inside string
	if err := f.list(name, func(n string) bool { inside = n; return false }); err != nil {
		return err
	}
	if inside != "" {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
	}
	if err := f.bucket.Delete(f.ctx, key(name)); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fail("remove", name, err)
	}
	return nil
}

// file is an object being uploaded.
type file struct {
	name   string
	w      *blob.Writer
	cancel context.CancelFunc
}

func (f *file) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	return n, fail("write", f.name, err)
}

// Sync implements storage.File: an object is durable once Close returns.
func (f *file) Sync() error { return nil }

func (f *file) Close() error {
	defer f.cancel()
	return fail("close", f.name, f.w.Close())
}

// Abort implements storage.Aborter.
func (f *file) Abort() {
	f.cancel()
	_ = f.w.Close() // it says that it was cancelled
}

type reader struct {
	name string
	r    *blob.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fail("read", r.name, err)
	}
	return n, err
}

func (r *reader) Close() error { return r.r.Close() }
