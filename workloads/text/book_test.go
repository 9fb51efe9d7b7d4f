package text

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestOpticksHasItsWords(t *testing.T) {
	b := Opticks()
	if b.Len() != 99_935 || b.Distinct() != 4_208 {
		t.Errorf("words %d, distinct %d; want 99935 and 4208", b.Len(), b.Distinct())
	}
	var got []string
	for i := range 8 {
		got = append(got, b.Word(i))
	}
	if want := "produced by suzanne lybarger steve harris josephine paolucci"; strings.Join(got, " ") != want {
		t.Errorf("first words %q, want %q", got, want)
	}
	if first, _ := b.Name(b.Keys()[0]); first != "the" {
		t.Errorf("commonest word %q, want \"the\"", first)
	}
	if b.Word(b.Len()-1) != "themselves" {
		t.Errorf("last word %q, want \"themselves\"", b.Word(b.Len()-1))
	}
}

func TestProvenanceNamesThisText(t *testing.T) {
	note, err := os.ReadFile("PROVENANCE")
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(opticks))); !strings.Contains(string(note), sum) {
		t.Errorf("PROVENANCE lacks the text's SHA-256 %s", sum)
	}
}

func TestWordsAndKeysCorrespond(t *testing.T) {
	b := Opticks()
	for i := range b.Len() {
		word := b.Word(i)
		key := b.Keys()[b.Ranks()[i]]
		if key != Key(word) {
			t.Fatalf("position %d: key %#x, want that of %q", i, key, word)
		}
		if name, ok := b.Name(key); !ok || name != word {
			t.Fatalf("Name(%#x) = %q, %t; want %q", key, name, ok, word)
		}
	}
	if name, ok := b.Name(12345); ok {
		t.Errorf("Name of a key without a word = %q", name)
	}
}

// TestKeyNeverChanges pins keys, because stored runs refer to them.
func TestKeyNeverChanges(t *testing.T) {
	for word, want := range map[string]uint64{"": 0xf52a15e9a9b5e89b, "the": 0x901962260b6a34d5, "light": 0x9f87b8ed7f7e8e9b} {
		if got := Key(word); got != want {
			t.Errorf("Key(%q) = %#x, want %#x", word, got, want)
		}
	}
}

func TestWordRule(t *testing.T) {
	b, err := NewBook("The scatter'd light--_Light_ of 1730; the Æther")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range b.Len() {
		got = append(got, b.Word(i))
	}
	if want := "the scatter d light light of the ther"; strings.Join(got, " ") != want {
		t.Errorf("words %q, want %q", got, want)
	}
	if _, err := NewBook("1730 -- 42"); err == nil {
		t.Error("a text without words was accepted")
	}
}
