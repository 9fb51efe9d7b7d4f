package blob

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/weir-bench/weir/engine/storage"
)

type object struct{ bytes.Buffer }

func (*object) Close() error { return nil }

// TestTablesInBuckets: tables are sent once, named by several checkpoints, removed with the last one, and come back whole.
func TestTablesInBuckets(t *testing.T) {
	eachBucket(t, func(t *testing.T, fsys storage.FS, dir string) {
		s := store(t, fsys, dir, "tables")
		var tables []storage.TableInfo
		for number := uint64(1); number <= 4; number++ {
			body := fmt.Sprint("table ", number)
			x, err := s.PutTable(number, 0, 1, number, storage.TableSource{Path: "/nowhere", Open: func() (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader([]byte(body))), nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if tables = append(tables, x); len(tables) > 2 {
				tables = tables[1:]
			}
			info, err := writeTask(s, number, 0)
			if err != nil {
				t.Fatal(err)
			}
			info.Tables = tables
			if err := s.Commit(storage.Checkpoint{Number: number, Files: []storage.FileInfo{info}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Retain(2); err != nil {
			t.Fatal(err)
		}
		names, err := s.TableNames()
		if err != nil || len(names) != 3 {
			t.Fatal(names, err)
		}
		ck, _, err := s.Newest()
		if err != nil || ck.Number != 4 {
			t.Fatal(ck.Number, err)
		}
		for i, x := range ck.Files[0].Tables {
			var got object
			if err := s.GetTable(x, "/nowhere", func() (io.WriteCloser, error) { return &got, nil }); err != nil || got.String() != fmt.Sprint("table ", 3+i) {
				t.Errorf("%q, %v", got.String(), err)
			}
		}
		if err := s.Clear(); err != nil {
			t.Error(err)
		}
	})
}
