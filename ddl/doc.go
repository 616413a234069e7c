// Package ddl runs the statements that change the schema, and those that look after a table as a
// whole (TRUNCATE, ANALYZE, VACUUM).
//
//	Run ─▶ Guard.Change ─▶ handler of the statement ─▶ descriptors (catalog.Change)
//	                           │                          in one transaction
//	                           └─▶ rows and entries under index ids that no descriptor names yet
//
// A statement runs alone, in a transaction of its own, or within a block, in the block's. What
// depends on the table's data (a new index, a constraint, another row format) first closes the table to
// other writers. Alone, it then writes new rows and entries in chunks, each its own transaction, or, where the
// store is in the same process, in one transaction of any size (Deps.OneTransaction), under index ids never
// used before, and last of all the descriptor that names them: a crash on the way
// leaves only unreachable keys. In a block everything goes into the block's transaction, so that
// ROLLBACK undoes it; that is meant for new and small tables, and fails with 40001 if another transaction
// has changed the table since the block's snapshot. The first change of a block waits for those of other transactions, and
// advances the block's snapshot to see them, unless something that the block has read has changed; it then conflicts (40001)
// with other changes of the schema, except that both may create objects.
//
// Invariants:
//
//	I1 A descriptor never names an index id whose keys are not complete as of its commit.
//	I2 What a statement read to decide (rows to index, to check, to rewrite) is what the table holds
//	   when the statement commits: the table is closed meanwhile.
//	I3 Index ids with written keys are never given to another index, crashes included
//	   (catalog.Change.Reserve comes before the first chunk).
//	I4 Keys no longer named are queued with the catalog (DropSpan), for older snapshots still read
//	   them; a garbage collector of a later release removes them.
//
// Not here: binding of expressions and queries (planner), running them (executor), waits between transactions
// (catalog.Guard).
package ddl
