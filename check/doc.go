// Package check compares what the SQL layer has stored with itself, as of one snapshot: the SQL part of
// `percodb check`. Locks and write records are kv's part.
//
//	descriptors ── names, columns, indexes, owners agree with each other
//	rows        ── decode; NOT NULL columns are not NULL; each has its entry in every index
//	entries     ── decode; each points at a row, and is the entry of that row
//	sequences   ── lie within their bounds
//
// It reports every difference as a Finding and goes on; only what keeps it from reading ends it. It
// changes nothing, and needs no table closed, since a snapshot stands still.
//
// Not here: CHECK constraints, which are expressions and need a session; repair.
package check
