// Package check verifies that the stored data of the SQL layer is consistent, as of one snapshot. It is the SQL
// part of `percodb check`; package kv checks locks and write records.
//
//	descriptors ── names, columns, indexes, owners agree with each other
//	rows        ── decode; NOT NULL columns are not NULL; each has its entry in every index, and the parents of its foreign keys exist
//	entries     ── decode; each points at a row, and is the entry of that row
//	sequences   ── lie within their bounds
//
// It reports every difference as a Finding and continues; only a failed read ends it. It changes nothing and blocks no
// writers, since it reads a snapshot.
//
// It does not verify CHECK constraints, which need a session, and repairs nothing.
package check
