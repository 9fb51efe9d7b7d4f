package storage

import (
	"io"
	"testing"
)

const benchBytes = 256 << 20

func writeBig(b *testing.B, s *Store, number uint64) Checkpoint {
	b.Helper()
	w, err := s.Create(number, 0, 0)
	if err != nil {
		b.Fatal(err)
	}
	chunk := make([]byte, 256<<10)
	if err := w.Section("state"); err != nil {
		b.Fatal(err)
	}
	for range benchBytes / len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
	info, err := w.Close()
	if err != nil {
		b.Fatal(err)
	}
	ck := Checkpoint{Number: number, Files: []FileInfo{info}}
	if err := s.Commit(ck); err != nil {
		b.Fatal(err)
	}
	return ck
}

// BenchmarkRestore finds, verifies and reads a checkpoint from the page cache.
func BenchmarkRestore(b *testing.B) {
	s, err := New(OS{}, b.TempDir(), "bench", Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	writeBig(b, s, 1)
	b.SetBytes(benchBytes)
	for b.Loop() {
		ck, _, err := s.Newest()
		if err != nil {
			b.Fatal(err)
		}
		r, err := s.Open(ck, 0)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, _, err = r.Next()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	s, err := New(OS{}, b.TempDir(), "bench", Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(benchBytes)
	number := uint64(0)
	for b.Loop() {
		number++
		writeBig(b, s, number)
		b.StopTimer()
		if err := s.Remove(number); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
