// Package catalog knows the schema: descriptors of tables, columns, indexes, views and sequences, as
// of any transaction's snapshot; how they change; sequences' values, row ids and statistics.
//
//	At(txn) ──▶ snapshot (immutable, cached by schema version) ──▶ Resolver
//	Guard.Change(txn) ──▶ Change: Create, Update, Drop …        ──▶ ordinary writes of txn
//	Guard.Enter at commit ──▶ gate: writers and schema changes kept apart, table by table
//
// Everything is stored through ordinary transactions under the key prefix 01, as readable JSON
// (docs/format/catalog.md), so a schema change is atomic with whatever else its transaction wrote,
// and is undone by rolling back. Every change raises the schema version, one key that all changes
// write: of two concurrent ones, one fails with a write conflict.
//
// The gate. Index entries are written by transactions, so a transaction planned before an index
// existed must not commit after the index was filled. A schema change that depends on the table's
// data therefore closes the table, waits for commits in flight, reads, commits, publishes the new
// version, and opens. With all SQL in this process (the default) that happens in memory. With
// Options.Shared it goes through the store: the change commits a marker, and works when every
// process must have seen it; a process may commit only up to Options.Lease after the timestamp at
// which it last looked (see lease.go).
//
// Invariants:
//
//	I1 A resolver's answers are those of its transaction's snapshot and own writes.
//	I2 A transaction that wrote a table commits only if the table's WriterVersion is the one it was
//	   planned under, and no closing change of the table lies between its commit and that version.
//	I3 Ids of relations, indexes (OID) and sequence values are never used twice, rollbacks and crashes
//	   included; nor are column ids of one table.
//	I4 Published descriptors never change.
//
// Not here: what statements do to descriptors and data (ddl), rows of system tables
// (catalog/pgcatalog), keys of rows (rowenc).
package catalog
