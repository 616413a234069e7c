// Package check verifies that the stored data of the SQL layer is consistent, as of one snapshot. It is the SQL
// part of `percodb check`; package kv checks locks and write records.
//
//	descriptors ── names, columns, indexes, owners agree with each other
//	partitions  ── they and their table list each other; bounds do not overlap
//	rows        ── decode; are in the partition of their bound; satisfy NOT NULL and CHECK constraints, of domains, too; generated columns
//	               are what their expressions give; each row has its entry in every index, and the parents of its foreign keys exist
//	entries     ── decode; each points at a row, and is the entry of that row
//	sequences   ── lie within their bounds; noted if they have not passed what their columns have
//	guards      ── have no values
//	keys        ── belong to a relation, to the temporary one of a session, or to what waits for garbage collection
//
// It reports every difference as a Finding and continues; only a failed read ends it. It changes nothing and blocks no
// writers, since it reads a snapshot.
//
// Constraints that are NOT VALID are not verified. It repairs nothing.
package check
