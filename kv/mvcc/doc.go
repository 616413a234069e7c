// Package mvcc holds the rules a shard applies to locks and versions: what runs where the data
// lives. What runs where a transaction is coordinated is in package percolator.
//
//	            prewrite            commit(primary)       commit(secondaries)
//	primary     lock(start, value)  write(commit→start)   .
//	secondary   lock(start, →prim)  lock(start, →prim)    write(commit→start)
//	the fate    undecided           committed             committed
//	a reader ≥  waits, or asks      sees it; rolls the    sees it
//	commit_ts   the primary         other lock forward
//
// Four keyspaces share one ordered store (keys.go): L, the locks, one per locked key; W, the write
// records, which index the committed versions and carry the value when it is short; D, the long
// values; S, rollback records and the commits of keys that were locked only. The locks are also
// held in memory, so that reads never look for them on disk.
//
//	I1 A reader at R raises max_ts to R, then looks at the lock table, then opens its iterator. A
//	   writer puts its locks into the table, then reads max_ts, and commits above it. So either the
//	   reader meets the lock, or the writer commits above R. A write set larger than memory has one lock
//	   for all its keys (largecommit.go).
//	I2 A transaction's fate is decided by one change to its primary under one latch, and is durable
//	   before anybody is told. It never changes.
//	I3 A lock leaves the table only when the batch that removes it from disk has been applied, and,
//	   if the batch decides a transaction, synced: no reader sees what a power cut could undo.
//	I4 A timestamp computed here has a non-zero subtick, is above max_ts, and below every
//	   timestamp that the oracle has yet to issue.
//	I5 A rollback record refuses a late prewrite for as long as the record is above the safe point;
//	   below it, the safe point does.
//	I6 W holds puts and deletes only: the newest version is one seek away.
//	I7 A value that was read at one timestamp is taken for the value at a later one only by a reader that
//	   has looked at the lock table (I1), and then found the key's commit mark no higher than the first.
//	I8 A scan jumps over a span of deleted keys only if it has probed the locks (I1), and the span was verified
//	   at or below its timestamp. A writer takes its keys out of such spans before its versions are applied.
//
// The decisions are functions without side effects (decide.go): the server gathers what they need
// to know, and carries out what they say. A verb is one file.
//
// Not here: which shard serves a key, epochs and splits (kv); who asks for what when (percolator);
// when garbage is collected, and up to where (gc).
package mvcc
