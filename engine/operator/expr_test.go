package operator

import (
	"strings"
	"testing"

	"github.com/weir-bench/weir/engine/core"
)

func testLayout(t testing.TB) layout {
	l, err := parseLayout("kind u8@0, time i64@1, first text@9, second text@9+1, gone i64@100, lost text@9+2")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// testRecord has kind 200, time -5 and the texts ab and empty.
func testRecord() record {
	return record{key: 1 << 63, val: 7, due: 11, payload: []byte{200, 0xfb, 255, 255, 255, 255, 255, 255, 255, 2, 'a', 'b', 0}}
}

func TestExpressions(t *testing.T) {
	l := testLayout(t)
	e := env{rec: [2]record{testRecord(), {key: 3, val: 70}}}
	for src, want := range map[string]int64{
		"1 + 2 * 3 - 4": 3, "(1 + 2) * 3": 9, "-7 / 2": -3, "-7 % 4": -3, "7 / 0": 0, "7 % 0": 0, "10 - 3 - 2": 5,
		"!0": 1, "!5": 0, "--3": 3, "1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 2 && 1 != 2": 1, "0 || 2": 1, "1 == 1 == 1": 1,
		"kind": 200, "time": -5, "value": 7, "due": 11, "gone": 0, "shift(key, 63)": 1, "mod(key, 10)": 8, "mod(3, 0)": 0,
		"scale(key, 10)": 5, "mix(1) == mix(1)": 1, "first == 'ab'": 1, "first != 'ab'": 0, "lost == ''": 1, "second == ''": 1,
		"first + '-' + text(0 - 12) == 'ab--12'": 1, "kind > 100 ? 1 : 7 / 0": 1, "0 ? 1 : 0 ? 2 : 3": 3,
		"(value > 0 ? 'x' : 'y') == 'x'": 1, "1<2&&!0": 1,
	} {
		x, err := compile(src, l.names())
		if err != nil || x.num == nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got := x.num(&e); got != want {
			t.Errorf("%s = %d, want %d", src, got, want)
		}
	}
	if x, err := compile("mix(9)", l.names()); err != nil || uint64(x.num(&e)) != core.Mix64(9) {
		t.Errorf("mix(9): %v", err)
	}
	if x, err := compile("r.value - l.value + r.key", l.sides()); err != nil || x.num(&e) != 66 {
		t.Errorf("sides: %v", err)
	}
	if xs, err := compileList("kind; 'a'; time", l.names()); err != nil || len(xs) != 3 || xs[1].text == nil {
		t.Errorf("list: %d, %v", len(xs), err)
	}
}

func TestExpressionErrors(t *testing.T) {
	l := testLayout(t)
	for src, want := range map[string]string{
		"": "too early", "1 +": "too early", "1 2": `unexpected "2"`, "(1": `")" belongs`, "first + 1": "between a number and a text",
		"first < 'a'": "does not work on texts", "-'a'": "a number belongs", "'a": "has no end", "99999999999999999999": "out of range",
		"1 ? 'a' : 2": "one side", "nope(1)": "no function nope with 1", "scale(1)": "no function scale with 1", "unknown": "no field",
		"1 # 2": `unexpected "#"`, "1; 2": "2 expressions, want one", "1 ? 2": `":" belongs`,
	} {
		if _, err := compile(src, l.names()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", src, err, want)
		}
	}
}

// FuzzExpression says that any text either compiles, and then works on any record, or is an error.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{"1 + 2", "kind == 3 && time % 7 == 0", "first + ', ' + second", "a ? b : c", "((((", "''", "scale(mix(key), 9)"} {
		f.Add(s, []byte{1, 2, 3})
	}
	l := testLayout(f)
	f.Fuzz(func(t *testing.T, src string, payload []byte) {
		if len(src) > 1000 {
			return
		}
		xs, err := compileList(src, l.names())
		if err != nil {
			return
		}
		e := env{rec: [2]record{{payload: payload}}}
		appendRow(nil, xs, &e)
	})
}
