package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestDirect writes files of odd sizes in pieces of odd sizes, past the page cache from some place on, and reads them back.
func TestDirect(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			name := filepath.Join(t.TempDir(), "file")
			file, err := create(name)
			if err != nil {
				t.Fatal(err)
			}
			f := file.(*osFile)
			f.cached = int64(rng.IntN(3)) * blockBytes
			want := make([]byte, rng.IntN(5*stagedBytes))
			for i := range want {
				want[i] = byte(rng.Uint32())
			}
			refuseAt := -1
			if seed%3 == 0 { // as a file system that turns out not to be able to do it
				refuseAt = rng.IntN(len(want) + 1)
			}
			for at := 0; at < len(want); {
				n := min(1+rng.IntN(2*stagedBytes), len(want)-at)
				if rng.IntN(3) == 0 {
					n = min(1+rng.IntN(50), len(want)-at)
				}
				got, err := f.Write(want[at : at+n])
				if err != nil || got != n {
					t.Fatalf("wrote %d bytes of %d: %v", got, n, err)
				}
				at += n
				if rng.IntN(8) == 0 {
					f.Expect(int64(rng.IntN(2 * stagedBytes)))
				}
				if at > refuseAt && refuseAt >= 0 && !f.refused && f.direct != nil {
					if err := f.refuse(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if seed%2 == 0 {
				if err := f.Sync(); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(name)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes read, %d written, the same: %v; %v", len(got), len(want), bytes.Equal(got, want), err)
			}
		})
	}
}

// TestDirectAbort gives a file up with bytes that are not written yet.
func TestDirectAbort(t *testing.T) {
	file, err := create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	f := file.(*osFile)
	f.cached = 0
	if _, err := f.Write(make([]byte, 3*stagedBytes/2)); err != nil {
		t.Fatal(err)
	}
	f.Abort()
	if _, err := f.file.Write([]byte{0}); err == nil {
		t.Fatal("the file is open still")
	}
}

// BenchmarkDirect writes and syncs 512 MiB through the page cache and past it, and removes it.
func BenchmarkDirect(b *testing.B) {
	const bytes = 512 << 20
	piece := make([]byte, stagedBytes)
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	for _, cached := range []int64{bytes, 0} {
		b.Run(fmt.Sprintf("cached=%dMiB", cached>>20), func(b *testing.B) {
			name := filepath.Join(b.TempDir(), "file")
			b.SetBytes(bytes)
			from := used()
			for b.Loop() {
				file, err := create(name)
				if err != nil {
					b.Fatal(err)
				}
				file.(*osFile).cached = cached
				for range bytes / len(piece) {
					if _, err := file.Write(piece); err != nil {
						b.Fatal(err)
					}
				}
				if err := errors.Join(file.Sync(), file.Close(), os.Remove(name)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(used()-from)/1e6/(bytes/1e9*float64(b.N)), "cpu-ms/GB")
		})
	}
}
