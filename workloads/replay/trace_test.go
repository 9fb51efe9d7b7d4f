package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func zipped(t testing.TB, data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var full = Options{Key: "user", Time: "at", Value: "amount", Size: "bytes", Unit: "ms"}

// TestFormatsAgree reads the same four rows in each format, plain and gzipped.
func TestFormatsAgree(t *testing.T) {
	csv := "at,user,amount,bytes,other\n1000,bob,5,10,x\n1000.5,eve,-2,0,\"a,\n b\"\n1002,bob,7,3,y\n1002,\"c,d\",1,1,z\n"
	jsonl := `{"at":1000,"user":"bob","amount":5,"bytes":10}
{"at":1000.5,"user":"eve","amount":-2,"bytes":0,"other":[1]}

{"at":1002,"user":"bob","amount":7,"bytes":3}
{"at":"1002","user":"c,d","amount":1,"bytes":1}
`
	for _, c := range []struct{ path, data string }{
		{"a.csv", csv}, {"a.csv", "\ufeff" + strings.ReplaceAll(csv, "\n", "\r\n")}, {"a.jsonl", jsonl},
		{"a.csv.gz", string(zipped(t, []byte(csv)))}, {"a.ndjson.gz", string(zipped(t, []byte(jsonl)))},
	} {
		tr, err := ReadFrom(strings.NewReader(c.data), c.path, full)
		if err != nil {
			t.Fatalf("%s: %v", c.path, err)
		}
		if tr.Rows != 4 || !slices.Equal(tr.Times, []int64{0, 500_000, 2_000_000, 2_000_000}) ||
			!slices.Equal(tr.Ranks, []uint32{0, 1, 0, 2}) || !slices.Equal(tr.Names, []string{"bob", "eve", "c,d"}) ||
			!slices.Equal(tr.Values, []int64{5, -2, 7, 1}) || !slices.Equal(tr.Sizes, []uint32{10, 0, 3, 1}) {
			t.Errorf("%s: read %+v", c.path, tr)
		}
	}
}

func TestCompactRoundTrip(t *testing.T) {
	data := Encode([]uint64{9, 1, 0, 3}, []uint64{70, 1 << 60, 1 << 60, 70}, []uint64{1, 2, 300, 4})
	for _, d := range [][]byte{data, zipped(t, data)} {
		tr, err := ReadFrom(bytes.NewReader(d), "a.trc", Options{Key: "1", Size: "2", Unit: "us"})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(tr.Times, []int64{0, 1000, 1000, 4000}) || !slices.Equal(tr.Ranks, []uint32{0, 1, 1, 0}) ||
			!slices.Equal(tr.Keys, []uint64{70, 1 << 60}) || !slices.Equal(tr.Sizes, []uint32{1, 2, 300, 4}) || tr.Names != nil {
			t.Errorf("read %+v", tr)
		}
	}
}

func TestBadRowsNameFileLineAndReason(t *testing.T) {
	for name, c := range map[string]struct {
		path, data string
		line       int
		reason     string
		good       int // rows left when skipping
	}{
		"unsorted":     {"t.csv", "at,user,amount,bytes\n5,a,1,1\n9,b,1,1\n7,c,1,1\n", 4, "must not decrease", 2},
		"no number":    {"t.csv", "at,user,amount,bytes\n5,a,1,1\nx,b,1,1\n", 3, `"x" is not a number`, 1},
		"nan":          {"t.csv", "at,user,amount,bytes\nNaN,b,1,1\n5,a,1,1\n", 2, "not a number", 1},
		"empty key":    {"t.csv", "at,user,amount,bytes\n5,a,1,1\n5,,1,1\n", 3, "key is empty", 1},
		"fields":       {"t.csv", "at,user,amount,bytes\n5,a,1,1\n5,a,1\n", 3, "3 fields, but the header has 4", 1},
		"quote":        {"t.csv", "at,user,amount,bytes\n5,a,1,1\n5,\"a\"b,1,1\n", 3, "quote", 1},
		"value":        {"t.csv", "at,user,amount,bytes\n5,a,1.5,1\n5,a,1,1\n", 2, "not a whole number", 1},
		"size":         {"t.csv", "at,user,amount,bytes\n5,a,1,-1\n5,a,1,1\n", 2, "not a size", 1},
		"json":         {"t.jsonl", "{\"at\":1,\"user\":\"a\",\"amount\":1,\"bytes\":1}\n{at:2}\n", 2, "not a JSON object", 1},
		"json missing": {"t.jsonl", "{\"at\":1,\"user\":\"a\",\"amount\":1,\"bytes\":1}\n\n{\"at\":2}\n", 3, "key is empty", 1},
	} {
		_, err := ReadFrom(strings.NewReader(c.data), c.path, full)
		var row *RowError
		if !errors.As(err, &row) || row.Path != c.path || row.Line != c.line || !strings.Contains(row.Reason, c.reason) {
			t.Errorf("%s: error %v, want %s:%d: …%s…", name, err, c.path, c.line, c.reason)
		}
		skip := full
		skip.SkipBad = true
		tr, err := ReadFrom(strings.NewReader(c.data), c.path, skip)
		if err != nil || tr.Rows != c.good || tr.Skipped != 1 {
			t.Errorf("%s: skipping gives %+v, %v; want %d rows and 1 skipped", name, tr, err, c.good)
		}
	}
}

func TestUnusableFilesAreRefused(t *testing.T) {
	good := Encode([]uint64{0, 1}, []uint64{1, 2})
	for name, c := range map[string]struct {
		path, data string
		o          Options
		want       error
		text       string
	}{
		"no column":        {"t.csv", "a,b\n1,2\n", Options{Key: "user"}, ErrNoColumn, "the columns are a, b"},
		"no field":         {"t.jsonl", "{\"b\":1,\"a\":2}\n", Options{Key: "user"}, ErrNoColumn, "the columns are a, b"},
		"no column number": {"t.trc", string(good), Options{Key: "2"}, ErrNoColumn, "0, 1"},
		"empty":            {"t.csv", "", Options{}, ErrEmpty, ""},
		"only a header":    {"t.csv", "a\n", Options{Key: "a"}, ErrEmpty, ""},
		"not compact":      {"t.trc", "hello", Options{}, ErrFormat, "TRC1"},
		"cut off":          {"t.trc", string(good[:len(good)-1]), Options{}, ErrFormat, "cut off"},
		"huge header":      {"t.trc", "TRC1\xff\xff\xff\xff\xff\xff\x01\x01\x00", Options{}, ErrFormat, "does not fit"},
		"format":           {"t.txt", "x", Options{}, nil, "unknown"},
		"unit":             {"t.csv", "x", Options{Unit: "h"}, nil, "unit"},
	} {
		_, err := ReadFrom(strings.NewReader(c.data), c.path, c.o)
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: error %v, want %v with %q and the path", name, err, c.want, c.text)
		}
	}
	if _, err := Read("does-not-exist.csv", full); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

func FuzzCompact(f *testing.F) {
	f.Add(Encode([]uint64{0, 1}, []uint64{1, 2}))
	f.Add([]byte("TRC1\x01\x01\x01\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := ReadFrom(bytes.NewReader(data), "f.trc", Options{Key: "1"})
		if err == nil && (len(tr.Times) != tr.Rows || len(tr.Ranks) != tr.Rows || !slices.IsSorted(tr.Times)) {
			t.Errorf("accepted an inconsistent trace: %d rows, %d times, %d keys", tr.Rows, len(tr.Times), len(tr.Ranks))
		}
	})
}
