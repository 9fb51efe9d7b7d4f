package blob

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/weir-bench/weir/engine/storage"
)

// fakeS3 is a server in this process that speaks S3, with a bucket called "bucket".
type fakeS3 struct {
	*httptest.Server
	// trouble, if set, answers a request and says so.
	trouble atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
}

func newFakeS3(t testing.TB) *fakeS3 {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	real := gofakes3.New(backend).Server()
	f := &fakeS3{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if trouble := f.trouble.Load(); trouble != nil && (*trouble)(w, r) {
			return
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_REGION", "")
	return f
}

// fail makes requests whose method and path match fail with a status and S3's code for it.
func (f *fakeS3) fail(method, part string, status int, code string) {
	trouble := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || !strings.Contains(r.URL.Path, part) {
			return false
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>planted</Message></Error>")) // the client may be gone
		return true
	}
	f.trouble.Store(&trouble)
}

func (f *fakeS3) heal() { f.trouble.Store(nil) }

func (f *fakeS3) address(t testing.TB, bucket string) storage.Address {
	t.Helper()
	a, err := storage.ParseAddress("s3://" + bucket + "/runs/one?endpoint=" + f.URL)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (f *fakeS3) open(t testing.TB, bucket string) (storage.FS, string) {
	t.Helper()
	a := f.address(t, bucket)
	fsys, err := Open(a)
	if err != nil {
		t.Fatal(err)
	}
	return fsys, a.Dir
}

// eachBucket runs a test on every kind of bucket.
func eachBucket(t *testing.T, test func(t *testing.T, fsys storage.FS, dir string)) {
	t.Helper()
	t.Run("mem", func(t *testing.T) {
		bucket := memblob.OpenBucket(nil)
		closeInEnd(t, bucket)
		test(t, New(bucket), "some/dir")
	})
	t.Run("file", func(t *testing.T) {
		bucket := folderBucket(t, t.TempDir())
		test(t, New(bucket), "/some/dir")
	})
	t.Run("s3", func(t *testing.T) {
		fsys, dir := newFakeS3(t).open(t, "bucket")
		test(t, fsys, dir)
	})
}

func folderBucket(t *testing.T, dir string) *blob.Bucket {
	t.Helper()
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		t.Fatal(err)
	}
	closeInEnd(t, bucket)
	return bucket
}

func closeInEnd(t *testing.T, bucket *blob.Bucket) {
	t.Cleanup(func() {
		if err := bucket.Close(); err != nil {
			t.Error(err)
		}
	})
}

// put writes an object.
func put(t *testing.T, fsys storage.FS, name string, content []byte) {
	t.Helper()
	if err := fsys.(*FS).bucket.WriteAll(context.Background(), key(name), content, nil); err != nil {
		t.Fatal(err)
	}
}

// get reads an object.
func get(t *testing.T, fsys storage.FS, name string) []byte {
	t.Helper()
	b, err := fsys.(*FS).bucket.ReadAll(context.Background(), key(name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
