package text

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-bench/weir/engine/core"
)

//go:embed opticks.txt
var opticks string

// Book is a text cut into words. It is immutable and safe for concurrent use.
type Book struct {
	words []string // by rank: most frequent first, ties alphabetically
	keys  []uint64 // by rank
	seq   []uint32 // rank of the word at each position
	ranks map[uint64]uint32
}

// Opticks returns the embedded book. Cutting it takes about 10 ms; keep the
// result.
func Opticks() *Book {
	b, err := NewBook(opticks)
	if err != nil {
		panic("embedded book: " + err.Error()) // checked by a test
	}
	return b
}

// NewBook cuts text into words by the rule in the package comment. It fails if
// there is no word, or if two words would get the same key.
func NewBook(text string) (*Book, error) {
	counts := map[string]int{}
	var order []string // the word at each position
	for word := range strings.FieldsFuncSeq(strings.Map(lowerASCII, text), notLetter) {
		counts[word]++
		order = append(order, word)
	}
	if len(order) == 0 {
		return nil, fmt.Errorf("cut text into words: no word in %d bytes; a word is a run of letters a-z", len(text))
	}
	b := &Book{ranks: make(map[uint64]uint32, len(counts)), seq: make([]uint32, len(order))}
	for word := range counts {
		b.words = append(b.words, word)
	}
	slices.SortFunc(b.words, func(x, y string) int {
		if d := counts[y] - counts[x]; d != 0 {
			return d
		}
		return strings.Compare(x, y)
	})
	rank := make(map[string]uint32, len(counts))
	for r, word := range b.words {
		key := Key(word)
		if other, taken := b.ranks[key]; taken {
			return nil, fmt.Errorf("give words keys: %q and %q have the same key %#x", b.words[other], word, key)
		}
		b.ranks[key], rank[word] = uint32(r), uint32(r)
		b.keys = append(b.keys, key)
	}
	for i, word := range order {
		b.seq[i] = rank[word]
	}
	return b, nil
}

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r - 'A' + 'a'
	}
	return r
}

func notLetter(r rune) bool { return r < 'a' || r > 'z' }

// Key returns the 64-bit key of a word. It is the same in every process.
func Key(word string) uint64 { return core.HashBytes([]byte(word)) }

// Len is the number of words of the text, repetitions included.
func (b *Book) Len() int { return len(b.seq) }

// Distinct is the number of different words.
func (b *Book) Distinct() int { return len(b.words) }

// Word returns the word at a position in [0, Len()).
func (b *Book) Word(position int) string { return b.words[b.seq[position]] }

// Keys returns the key of each distinct word, most frequent first. The caller
// must not change it.
func (b *Book) Keys() []uint64 { return b.keys }

// Ranks returns, for each position, the index into Keys of its word. The
// caller must not change it.
func (b *Book) Ranks() []uint32 { return b.seq }

// Name returns the word whose key is given.
func (b *Book) Name(key uint64) (string, bool) {
	r, ok := b.ranks[key]
	if !ok {
		return "", false
	}
	return b.words[r], true
}
