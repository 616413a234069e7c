// Package mvcc implements the rules by which a shard reads and changes locks and versions. It is the part
// of the transaction protocol that runs where the data is stored; package percolator is the part that runs
// where a transaction is coordinated.
//
//	            prewrite                commit(primary)         commit(secondaries)
//	primary     lock(start, value)      write(commit→start)     .
//	secondary   lock(start, →primary)   lock(start, →primary)   write(commit→start)
//	outcome     undecided               committed               committed
//	a reader ≥  waits, or checks        reads it; commits       reads it
//	commit_ts   the primary             the secondary's lock
//
// One ordered store contains five keyspaces (keys.go): L, the locks, one per locked key; W, the write
// records, which index the committed versions and contain the value if it is short; D, the long
// values; S, rollback records and the commits of keys that were only locked; N, notify cells, the keys
// that observers have yet to look at (notify.go). The locks are also kept in a table in memory, so that
// reads never search for them on disk.
//
// Invariants:
//
//	I1 A reader at R raises max_ts to R, then checks the lock table, then opens its iterator. A
//	   writer puts its locks into the table, then reads max_ts, and commits above it. So either the
//	   reader encounters the lock, or the writer commits above R. A write set larger than memory has one
//	   lock for all its keys (largecommit.go).
//	I2 The outcome of a transaction is decided by one change to its primary under one latch. The change is
//	   durable before it is reported to anyone, and the outcome never changes.
//	I3 A lock leaves the table only after the batch that removes it from disk has been applied and,
//	   if the batch decides the outcome of a transaction, synced: no reader sees what a power cut could undo.
//	I4 A timestamp computed by this package has a non-zero subtick, is above max_ts, and is below every
//	   timestamp that the oracle will issue later.
//	I5 A rollback record rejects late prewrites of its transaction while the record is above the safe point;
//	   after that the safe point rejects them.
//	I6 W contains only puts and deletes, so one seek finds the newest version.
//	I7 A reader uses a value that was read at an earlier timestamp only after it has checked the lock table
//	   (I1) and then found that the key's commit mark is not above that earlier timestamp.
//	   A scan reads a block of rows of an earlier timestamp (scancache.go) in the same order: the locks, then the mark of the
//	   block's span. A writer raises that with its lock in the table, before its versions are applied.
//	I8 A scan skips a span of deleted keys only after it has checked the locks (I1), and only if the span was
//	   verified at or below the scan's timestamp. A writer removes its keys from such spans before its
//	   versions are applied.
//	I9 A notify cell is written in the batch of its version, whoever commits that, and removed under the key's
//	   latch, unless it is newer than what its observer has handled. Large commits ingest cells without latches:
//	   a removal looks for them in the lock table, and then reads the cell.
//
// Decisions are functions without side effects (decide.go): a request gathers their inputs and carries out
// their result. Each request has its own file.
//
// Other packages decide which shard owns a key and when it is split (kv), which requests a transaction
// sends (percolator), and when and up to which timestamp old versions are collected (gc).
package mvcc
