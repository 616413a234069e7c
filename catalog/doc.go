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
// Options.Shared it goes through the store: the change commits a marker, and works when no process can
// commit any more without having seen it.
//
// Between processes. All timestamps are the oracle's: clocks of processes only decide when to look again.
// L is Options.Lease. A look is one read, as of Q, of the schema, of the markers and of the process's own
// record among the members. Who may commit what, and who waits for whom:
//
//	P1 A commit is allowed by one look, and has a commit_ts of at most Q+L. The look shows no marker on the
//	   tables it wrote, their WriterVersion as planned, and the process registered and not struck out (Out).
//	   A commit that has taken longer is allowed by another look, of Q' > Q, and keeps the commit_ts that it
//	   took in between: P1 sets no lower bound. By then nothing can commit that the look of Q allowed.
//	P2 A process acknowledges s (Seen), a look's timestamp, when everything that its looks before s allowed
//	   is decided: committed, or certain never to be. What was left undecided under a look at Q is decided
//	   from Q+L on, by P1.
//	P3 A change whose marker was committed at M goes on at T once, for every member, Seen ≥ M, or
//	   T > M+L, or T > Out+L.
//	P4 Anybody may strike a process out: the record is given Out, by a commit at D ≤ Out. Nobody but the
//	   process itself takes that back, by registering; looks it had before stay in P2's account.
//	P5 A record is deleted only by one who finds Out set and reads after Out+L; or by the process itself,
//	   when it commits nothing more and all is decided.
//	P6 A change commits while its markers hold. If it does not know whether it did, they are left to end.
//
// Claim: what looks from before M allow has commit_ts < T, so T reads it; by P1 looks from after M allow
// nothing on the table until the change has committed, or the marker is gone and by P6 the change with it.
// Argument: let a look at Q < M allow a commit. By P1 there was a record without Out as of Q. If T's read
// finds that record, or what its process has made of it, P3 holds: with Seen ≥ M the commit was decided
// before T, by P2; with T > M+L it is at most at Q+L < M+L; and if Out is set, then Q < D ≤ Out by P1 and
// P4, and T > Out+L. If there is no record, it was deleted after Q: by the process, and all was decided; or
// by another who read after Out+L, where again Q < D ≤ Out, for a process that had been struck out before Q
// would have registered before it trusted Q, and so taken Out back. A record that was struck out, and
// registered anew at G, has Seen = 0: the change waits for it until M+L, or until P2.
//
// Reads go by leases of their own, where there is an authority for them (Options.Leases, package readlease):
// a transaction whose snapshot lies within its process's lease asks the store for no schema, so that tables
// stay readable while the store that has the schema is away. Every commit of a new version holds the leases
// of all processes back.
//
// It follows that a change waits for the next look of each process, or for L where one does not answer; and
// that a process killed without a word holds up, each for L at most, the first change and those that come
// within 5/4 L after it.
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
//
// Not here: what statements do to descriptors and data (ddl), rows of system tables
// (catalog/pgcatalog), keys of rows (rowenc).
package catalog
