package operator

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// A layout says where the fields of a payload are, so that the operators need not know any workload:
//
//	kind u8@0, time i64@1, name text@17, city text@17+2
//
// A field is a name, a type and an offset in bytes; `+2` skips two texts from there. Types are u8, i64 (little endian)
// and text (a length byte and the bytes). Fields may overlap. What lies behind the payload's end reads as 0 or "".

// field is a field of a layout.
type field struct {
	kind      string
	off, skip int
}

type layout map[string]field

func parseLayout(src string) (layout, error) {
	l := layout{}
	for _, part := range strings.Split(src, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		var f field
		name, rest, ok := strings.Cut(part, " ")
		kind, at, ok2 := strings.Cut(strings.TrimSpace(rest), "@")
		if !ok || !ok2 {
			return nil, fmt.Errorf("layout field %q: want name type@offset", part)
		}
		f.kind = kind
		off, skip, skips := strings.Cut(at, "+")
		if !digits(off, &f.off) || skips && !digits(skip, &f.skip) {
			return nil, fmt.Errorf("layout field %q: the offset is not a number", part)
		}
		if kind != "u8" && kind != "i64" && kind != "text" {
			return nil, fmt.Errorf("layout field %q: type %q, want u8, i64 or text", part, kind)
		}
		if _, dup := l[name]; dup || reserved(name) {
			return nil, fmt.Errorf("layout field %q: the name is taken", part)
		}
		l[name] = f
	}
	return l, nil
}

func reserved(name string) bool { return name == "key" || name == "value" || name == "due" }

func digits(s string, n *int) bool {
	if s == "" || len(s) > 6 {
		return false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
		*n = *n*10 + int(c-'0')
	}
	return true
}

// names returns the lookup of one record's names.
func (l layout) names() func(string) (expr, bool) {
	return func(name string) (expr, bool) { return l.name(name, 0) }
}

// sides returns the lookup of the names of a join's two sides, both with the same layout.
func (l layout) sides() func(string) (expr, bool) {
	return func(name string) (expr, bool) {
		side, rest, ok := strings.Cut(name, ".")
		switch {
		case ok && side == "l":
			return l.name(rest, 0)
		case ok && side == "r":
			return l.name(rest, 1)
		}
		return expr{}, false
	}
}

func (l layout) name(name string, side int) (expr, bool) {
	switch name {
	case "key":
		return expr{num: func(e *env) int64 { return int64(e.rec[side].key) }}, true
	case "value":
		return expr{num: func(e *env) int64 { return e.rec[side].val }}, true
	case "due":
		return expr{num: func(e *env) int64 { return e.rec[side].due }}, true
	}
	f, ok := l[name]
	if !ok {
		return expr{}, false
	}
	switch f.kind {
	case "u8":
		return expr{num: func(e *env) int64 {
			if p := e.rec[side].payload; f.off < len(p) {
				return int64(p[f.off])
			}
			return 0
		}}, true
	case "i64":
		return expr{num: func(e *env) int64 {
			if p := e.rec[side].payload; f.off+8 <= len(p) {
				return int64(binary.LittleEndian.Uint64(p[f.off:]))
			}
			return 0
		}}, true
	}
	return expr{text: func(e *env, dst []byte) []byte { return append(dst, textAt(e.rec[side].payload, f.off, f.skip)...) }}, true
}

func textAt(p []byte, off, skip int) []byte {
	for ; off < len(p); skip-- {
		end := off + 1 + int(p[off])
		if end > len(p) {
			return nil
		}
		if skip == 0 {
			return p[off+1 : end]
		}
		off = end
	}
	return nil
}

// maxTextBytes is what a length byte can say; longer texts are cut.
const maxTextBytes = 255

// appendRow appends the values of exprs as a payload: numbers as i64, texts with their length byte.
func appendRow(dst []byte, exprs []expr, e *env) []byte {
	for _, x := range exprs {
		if x.num != nil {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(x.num(e)))
			continue
		}
		at := len(dst)
		dst = x.text(e, append(dst, 0))
		if len(dst)-at-1 > maxTextBytes {
			dst = dst[:at+1+maxTextBytes]
		}
		dst[at] = byte(len(dst) - at - 1)
	}
	return dst
}
