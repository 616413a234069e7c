// Package tsearch implements the values of full-text search: tsvector, the sorted lexemes of a document with their
// positions, and tsquery, a condition on lexemes.
//
//	text, binary form  ParseVector, ParseQuery, …  ▶  Vector, *Query  ▶  Encode  ▶  the bytes of a datum
//
// Invariants:
//
//  1. The words of a Vector are distinct and sorted by their bytes; the positions of a lexeme ascend.
//  2. The encoded forms order by their bytes as PostgreSQL orders the values. A tsquery's weights and prefix marks follow
//     the part that PostgreSQL compares, QueryOrder.
//  3. Decoding does not copy words: what DecodeVector and DecodeQuery return aliases the encoded bytes.
//  4. A tree of a query is at most MaxDepth high, so that functions may recurse over it.
//
// The package knows nothing about dictionaries and parsers of documents: packages tsparser and textsearch do.
package tsearch
