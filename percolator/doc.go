// Package percolator runs transactions under snapshot isolation over sharded, versioned keys. A
// transaction reads as of its start_ts and keeps its writes to itself. To commit, it locks every
// written key (prewrite), takes a commit_ts, and turns the lock on one chosen key, the primary, into
// a write record. That single change is the commit point: from then on, whoever meets a lock of the
// transaction looks at the primary and finishes the work. No coordinator's state survives a crash,
// because none is needed. (The protocol is that of "Large-scale Incremental Processing Using
// Distributed Transactions and Notifications", OSDI 2010, with values in the write records and
// timestamps a shard may push.) What runs where the data lies is in kv/mvcc; this package runs where
// the transaction is coordinated.
//
//	                        key a (primary)               key b (secondary)
//	                     lock           write           lock            write
//	before               -              ...5            -               ...7
//	prewrite @10         10, primary a  ...5            10, primary a   ...7
//	commit primary @12   -              12→10 ...5      10, primary a   ...7        ◀ commit point
//	commit secondaries   -              12→10 ...5      -               12→10 ...7
//
// When all keys lie on one shard, the shard does it all in one step (one-phase commit) and no lock
// is ever seen. When they lie on several and are few, the transaction has committed as soon as all of them
// are locked, and the primary is written behind (async commit).
//
// A pessimistic transaction locks keys as it goes, and waits in the key's queue. If a key has changed
// since its snapshot, the snapshot moves up, provided that nothing it has read has changed (refresh.go).
// Keys to be inserted are looked up by the request that locks them, and no more until the lock goes
// (locknew.go).
// A serializable one has what it read checked once more at its commit_ts (serializable.go).
//
// Somebody else's lock in the way is one of three cases, and its primary tells which: committed (the
// lock is rolled forward), rolled back or expired (rolled back), or alive. A reader asks a live
// transaction to commit above the reader's snapshot and passes; a writer waits for it if it is older
// and gives way if it is younger, so that no two wait for each other.
//
// Invariants:
//
//	I1 A reader at ts sees exactly the writes with commit_ts <= ts, and its own.
//	I2 Of two transactions one of which commits a key between the other's snapshot and commit, the
//	   other does not commit that key.
//	I3 Once a primary has a write or rollback record, its transaction's fate never changes.
//	I4 A commit that was reported has happened, one reported as failed has not and never will; what
//	   cannot be known is reported as *UndeterminedError.
//	I5 A primary never changes in the life of a start_ts.
//	I6 Expiry is judged by timestamps of the oracle. The local clock decides only how long to wait.
//	I7 An iterator sees the write buffer as it was when the iterator was made.
//
// Under snapshot isolation two transactions that each read what the other writes may both commit (write
// skew; see TestWriteSkewIsAllowed).
//
// Where to read on: txn.go is the life of a transaction, buffer.go its writes, get.go, scan.go and
// scanspans.go its reads, locks.go and acquire.go its locks, resolve.go the three cases, commit.go,
// async.go and twophase.go the ways to commit, spill.go and large.go write sets larger than memory.
package percolator
