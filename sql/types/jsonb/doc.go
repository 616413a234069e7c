// Package jsonb reads JSON texts, with PostgreSQL's rules and errors, and implements the values of type jsonb.
//
//	text ── Reader ──▶ events ── Builder ──▶ Value ── AppendText ──▶ text
//	                                           │
//	                                           └── Find, Elem, Compare, Hash
//
// A Value is a byte string in which a member is found without decoding the others. Its first byte holds the kind (3 bits),
// for containers the width of the numbers that follow (2 bits: 1, 2 or 4 bytes, little-endian) and a flag: the depth
// follows. The rest is
//
//	null, false, true   nothing
//	number              its text: that of PostgreSQL's numeric, which is unique for a value and its display scale
//	string              its bytes
//	array               [depth:2] count ends[count] elements
//	object              [depth:2] count ends[2*count] keys values
//
// ends are the ends of the elements (of the keys, then of the values), counted from the end of the table. Keys are ordered
// by length, then by bytes; no two are equal. The depth of a container is 1 if it has no containers in it (and is
// then left out), otherwise one more than the deepest of them.
//
// Invariants:
//  1. A Value that Builder made prints as PostgreSQL prints it, and reading the text gives the same bytes.
//  2. Compare is PostgreSQL's order of jsonb in the C collation. Equal values, which may differ in the scales of numbers,
//     have equal hashes.
//  3. No value is deeper than MaxDepth, so that recursion over it is bounded.
//  4. No byte string makes a function of this package panic: parts of a damaged value read as null.
package jsonb
