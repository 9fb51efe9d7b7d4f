package replay

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// csv reads comma-separated values whose first line names the columns.
func (b *builder) csv(r io.Reader) error {
	in := csv.NewReader(skipBOM(r))
	in.ReuseRecord, in.FieldsPerRecord, in.TrimLeadingSpace = true, -1, true
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("read trace %s: %w", b.path, ErrEmpty)
	}
	if err != nil {
		return fmt.Errorf("read trace %s: %w", b.path, err)
	}
	header = slices.Clone(header)
	var at [4]int
	for k, name := range [4]string{b.o.Key, b.o.Time, b.o.Value, b.o.Size} {
		if at[k] = slices.Index(header, name); name != "" && at[k] < 0 {
			return b.noColumn(name, header)
		}
	}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		line, _ := in.FieldPos(0)
		if err != nil {
			var parse *csv.ParseError
			if !errors.As(err, &parse) {
				return fmt.Errorf("read trace %s: %w", b.path, err)
			}
			if err := b.bad(parse.Line, parse.Err.Error()); err != nil {
				return err
			}
			continue
		}
		if len(fields) != len(header) {
			if err := b.bad(line, fmt.Sprintf("%d fields, but the header has %d", len(fields), len(header))); err != nil {
				return err
			}
			continue
		}
		pick := func(k int) string {
			if at[k] < 0 {
				return ""
			}
			return strings.TrimSpace(fields[at[k]])
		}
		if err := b.add(row{line: line, key: pick(0), time: pick(1), value: pick(2), size: pick(3)}); err != nil {
			return err
		}
	}
}

func (b *builder) noColumn(name string, have []string) error {
	return fmt.Errorf("read trace %s: %w: %q; the columns are %s", b.path, ErrNoColumn, name, strings.Join(have, ", "))
}

func skipBOM(r io.Reader) io.Reader {
	in := bufio.NewReader(r)
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		in.Discard(3) //nolint:errcheck // these bytes have just been peeked at
	}
	return in
}

// jsonl reads one JSON object a line. Blank lines are passed over.
func (b *builder) jsonl(r io.Reader) error {
	in := bufio.NewScanner(skipBOM(r))
	in.Buffer(nil, 1<<24)
	first := true
	for line := 1; in.Scan(); line++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var fields map[string]any
		dec := json.NewDecoder(bytes.NewReader(in.Bytes()))
		dec.UseNumber()
		if err := dec.Decode(&fields); err != nil {
			if err := b.bad(line, "not a JSON object: "+err.Error()); err != nil {
				return err
			}
			continue
		}
		if first {
			for _, name := range []string{b.o.Key, b.o.Time, b.o.Value, b.o.Size} {
				if _, ok := fields[name]; name != "" && !ok {
					return b.noColumn(name, slices.Sorted(maps.Keys(fields)))
				}
			}
			first = false
		}
		pick := func(name string) string {
			switch v := fields[name].(type) {
			case string:
				return v
			case json.Number:
				return v.String()
			case bool:
				return strconv.FormatBool(v)
			}
			return ""
		}
		if err := b.add(row{line: line, key: pick(b.o.Key), time: pick(b.o.Time), value: pick(b.o.Value), size: pick(b.o.Size)}); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("read trace %s: %w", b.path, err)
	}
	return nil
}

// maxCompactBytes bounds what a compact file may hold once unpacked.
const maxCompactBytes = 1 << 31

// compact reads the compact format.
func (b *builder) compact(r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, maxCompactBytes+1))
	if err != nil {
		return fmt.Errorf("read trace %s: %w", b.path, err)
	}
	if len(data) > maxCompactBytes {
		return fmt.Errorf("read trace %s: more than %d bytes", b.path, maxCompactBytes)
	}
	if !bytes.HasPrefix(data, []byte("TRC1")) {
		return fmt.Errorf("read trace %s: %w: it does not start with TRC1", b.path, ErrFormat)
	}
	data = data[4:]
	rows, data, ok := uvarint(data)
	columns, data, ok2 := uvarint(data)
	// Each number takes a byte at least, so this bounds what is allocated.
	if !ok || !ok2 || columns == 0 || rows > uint64(len(data)) || columns > uint64(len(data)) {
		return fmt.Errorf("read trace %s: %w: its header does not fit its %d bytes", b.path, ErrFormat, len(data))
	}
	body := make([][]uint64, columns)
	for c := range body {
		var size uint64
		if size, data, ok = uvarint(data); !ok || size > uint64(len(data)) {
			return fmt.Errorf("read trace %s: %w: column %d is cut off", b.path, ErrFormat, c)
		}
		if body[c], err = b.column(data[:size], c, int(rows)); err != nil {
			return err
		}
		data = data[size:]
	}
	return b.useColumns(body, int(rows))
}

func uvarint(data []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil, false
	}
	return v, data[n:], true
}

func (b *builder) column(data []byte, c, rows int) ([]uint64, error) {
	out := make([]uint64, 0, min(rows, len(data)))
	for len(out) < rows {
		v, rest, ok := uvarint(data)
		if !ok {
			return nil, &RowError{b.path, len(out) + 1, fmt.Sprintf("column %d is cut off", c)}
		}
		out, data = append(out, v), rest
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("read trace %s: %w: column %d has %d bytes too many", b.path, ErrFormat, c, len(data))
	}
	return out, nil
}

// pickColumn returns the column that a name (its number) stands for; nil for
// the empty name.
func (b *builder) pickColumn(name string, body [][]uint64) ([]uint64, error) {
	if name == "" {
		return nil, nil
	}
	c, err := strconv.Atoi(name)
	if err != nil || c < 0 || c >= len(body) {
		var have []string
		for k := range body {
			have = append(have, strconv.Itoa(k))
		}
		return nil, b.noColumn(name, have)
	}
	return body[c], nil
}

func (b *builder) useColumns(body [][]uint64, rows int) error {
	var cols [3][]uint64
	for k, name := range [3]string{b.o.Key, b.o.Value, b.o.Size} {
		var err error
		if cols[k], err = b.pickColumn(name, body); err != nil {
			return err
		}
	}
	ids, sum := map[uint64]uint32{}, 0.0
	t := b.t
	for i := range rows {
		if i > 0 {
			sum += float64(body[0][i]) * b.scale
		}
		if reason := badCell(sum, cols, i); reason != "" {
			if err := b.bad(i+1, reason); err != nil {
				return err
			}
			continue
		}
		t.Times = append(t.Times, int64(sum))
		if cols[0] != nil {
			id, ok := ids[cols[0][i]]
			if !ok {
				id = uint32(len(b.numbers))
				ids[cols[0][i]], b.numbers = id, append(b.numbers, cols[0][i])
			}
			t.Ranks = append(t.Ranks, id)
		}
		if cols[1] != nil {
			t.Values = append(t.Values, int64(cols[1][i]))
		}
		if cols[2] != nil {
			t.Sizes = append(t.Sizes, uint32(cols[2][i]))
		}
		t.Rows++
	}
	return nil
}

func badCell(sum float64, cols [3][]uint64, i int) string {
	switch {
	case sum > 1<<62:
		return "the time is too large"
	case cols[1] != nil && cols[1][i] > math.MaxInt64:
		return fmt.Sprintf("value %d is too large", cols[1][i])
	case cols[2] != nil && cols[2][i] > 1<<30:
		return fmt.Sprintf("size %d is above 2^30 bytes", cols[2][i])
	}
	return ""
}

// Encode returns rows in the compact format; columns[0] holds the times since
// the row before, and all columns have the same length.
func Encode(columns ...[]uint64) []byte {
	out := []byte("TRC1")
	out = binary.AppendUvarint(out, uint64(len(columns[0])))
	out = binary.AppendUvarint(out, uint64(len(columns)))
	for _, c := range columns {
		var body []byte
		for _, v := range c {
			body = binary.AppendUvarint(body, v)
		}
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}
	return out
}
