// Package text is the library with one book in it: Newton's Opticks, as a
// sequence of words that is naturally skewed (the commonest word has about
// 8 % of the load).
//
// A word is a maximal run of ASCII letters; upper and lower case are the same
// word. The whole file counts, front matter included: 99,935 words, 4,208
// distinct. File PROVENANCE says where the text is from.
//
// May import: engine/core and the standard library.
package text
