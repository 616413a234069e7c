// Package jsonpath reads and prints SQL/JSON paths, the values of type jsonpath.
//
//	text ── Parse ──▶ *Path ── String ──▶ text, in PostgreSQL's form
//
// Package builtin evaluates them.
//
// Invariants:
//  1. Parse(p.String()) gives a path equal to p.
//  2. Whatever the text, Parse returns a path or a *pgerror.Error; nesting is bounded (54001).
package jsonpath
