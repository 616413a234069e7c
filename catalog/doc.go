// Package catalog stores the schema: descriptors of tables, columns, indexes, views and sequences, readable as
// of any transaction's snapshot, and changed by transactions; values of sequences, row ids and statistics.
//
//	At(txn) ──▶ snapshot (immutable, cached by schema version) ──▶ Resolver
//	Guard.Change(txn) ──▶ Change: Create, Update, Drop …        ──▶ ordinary writes of txn
//	Guard.Commit ──▶ gate: excludes writers and schema changes from each other, table by table
//
// Everything is stored through ordinary transactions under the key prefix 01, as readable JSON
// (docs/format/catalog.md), so a schema change is atomic with the other writes of its transaction,
// and is undone by rolling back. Every change raises the schema version, one key that all changes
// write: of two concurrent changes, one fails with a write conflict, unless one of them is about nothing
// but owners, roles and privileges, and no object that the other one has changed (Change.meet). Such changes wait for nobody's transaction.
//
// The gate. Index entries are written by transactions, so a transaction planned before an index
// existed must not commit after the index was filled. A schema change that depends on the table's
// data therefore closes the table, waits for commits in flight, reads, commits, publishes the new
// version, and opens the table. With all SQL in this process (the default) the gate is in memory. With
// Options.Shared it is in the store: the change commits a marker, and continues when no process can
// commit any more without having seen it.
//
// Waits. A change waits for commits in flight, which wait for no row lock of a transaction that has yet to commit. A transaction
// that has row locks may wait for a change: for a closed table before it commits (Guard.Wait), or to change the schema itself
// (Guard.Change, Change.Close). Since the change's transaction may wait for these row locks, such a wait is registered with the
// graph of waits for row locks (Options.WaitGraph), and one that closes a cycle is refused with *DeadlockError. No wait has a
// limit but the client's (Guard.LockTimeout): a change may take long.
//
// Between processes. All timestamps are the oracle's: clocks of processes only decide when to read again.
// L is Options.Lease. A look is one read, as of Q, of the schema, of the markers and of the process's own
// record among the members. The rules for commits and waits:
//
//	P1 A commit is allowed by one look, before it prewrites, and has a commit_ts of at most Q+L. The look shows no marker on the
//	   tables it wrote, their WriterVersion as planned, and the process registered and not struck out (Out).
//	   A commit that has taken longer is allowed by another look, of Q' > Q, and keeps the commit_ts that it
//	   took in between: P1 sets no lower bound. By then nothing can commit that the look of Q allowed.
//	P2 A process acknowledges s (Seen), a look's timestamp, when everything that its looks before s allowed
//	   is decided: committed, or certain never to be. What was left undecided under a look at Q is decided
//	   from Q+L on, by P1.
//	P3 A change whose marker was committed at M continues at T if, for every member, Seen ≥ M, or
//	   T > M+L, or T > Out+L.
//	P4 Any process may strike out another: it sets Out in the record, by a commit at D ≤ Out. Only the
//	   process itself clears Out, by registering; P2 still covers its earlier looks.
//	P5 A record is deleted by a process that finds Out set and reads after Out+L; or by the process itself,
//	   when it commits nothing more and everything is decided.
//	P6 A change commits while its markers are valid. If its outcome is unknown, they are left to expire.
//
// Claim: a commit that a look before M allows has commit_ts < T, so T reads it; by P1 looks after M allow
// no commit on the table until the change has committed, or has failed and the marker has expired (P6).
// Argument: let a look at Q < M allow a commit. By P1 there was a record without Out as of Q. If the read at T
// finds that record or a later version of it, P3 holds: with Seen ≥ M the commit was decided
// before T, by P2; with T > M+L its commit_ts is at most Q+L < M+L; and if Out is set, then Q < D ≤ Out by P1
// and P4, and T > Out+L. If there is no record, it was deleted after Q: either by the process, and everything
// was decided; or by another process that read after Out+L, where again Q < D ≤ Out, because a process that had
// been struck out before Q would have registered, and so cleared Out, before it relied on Q. A record that was
// struck out and registered again at G has Seen = 0: the change waits for it until M+L, or until P2.
//
// Reads use separate leases if there is an authority for them (Options.Leases, package readlease):
// a transaction whose snapshot lies within its process's lease does not read the schema from the store, so
// tables stay readable while the store that has the schema is unavailable. Every commit of a new version
// suspends the leases of all processes.
//
// It follows that a change waits for the next look of each process, or for L if a process does not answer; and
// that a killed process delays, by at most L each, the first change and those within 5/4 L after it.
//
// Invariants:
//
//	I1 A resolver's answers are those of its transaction's snapshot and own writes.
//	I2 A transaction that wrote a table commits only if the table's WriterVersion is the one it was
//	   planned under, and no closing change of the table lies between its commit and that version. So does
//	   a serializable one that wrote something, as to the tables it read.
//	I3 Ids of relations, indexes (OID) and sequence values are never used twice, rollbacks and crashes
//	   included; nor are column ids of one table.
//	I4 Published descriptors never change.
//	I5 A cached schema is that of its version, or of a transaction's changes over one committed schema (recentSnapshot.under).
//
// Other packages: execution of schema statements (ddl), rows of system tables
// (catalog/pgcatalog), keys of rows (rowenc).
package catalog
