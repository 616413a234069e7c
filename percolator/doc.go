// Package percolator runs transactions under snapshot isolation over sharded, versioned keys. A
// transaction reads a snapshot, as of its start_ts at first, and buffers its writes. To commit, it locks
// every written key (prewrite), obtains a commit_ts, and replaces the lock on one chosen key, the primary, by
// a write record. That single change is the commit point: after it, any transaction that encounters a remaining
// lock checks the primary and commits the locked key. The protocol needs no state of the coordinator after a
// crash. It is the protocol of "Large-scale Incremental Processing Using Distributed Transactions and
// Notifications", OSDI 2010, with short values in the write records and with locks whose
// minimum commit_ts readers can raise. This package is the part that runs where a transaction is coordinated; package kv/mvcc is the
// part that runs where the data is stored.
//
//	                        key a (primary)               key b (secondary)
//	                     lock           write           lock            write
//	before               -              ...5            -               ...7
//	prewrite @10         10, primary a  ...5            10, primary a   ...7
//	commit primary @12   -              12→10 ...5      10, primary a   ...7        ◀ commit point
//	commit secondaries   -              12→10 ...5      -               12→10 ...7
//
// If all keys lie on one shard and the write set is not too large, the shard commits them in one step
// (one-phase commit) and leaves no locks. If they lie on several shards and are few, the transaction has
// committed as soon as all of them are locked, and the write records follow after the client has been
// answered (async commit).
//
// A pessimistic transaction locks keys when a statement needs them and waits in the queue of a locked key. If
// a key has changed since the snapshot, the snapshot advances, provided that nothing the transaction has
// read has changed (refresh.go). The request that locks keys to be inserted also checks that they do not
// exist; the check is not repeated while the locks are held (locknew.go). Keys of tables and indexes that the
// transaction itself has made are not locked (private.go). A serializable transaction
// validates its reads at its commit_ts (serializable.go).
//
// The status of another transaction's lock is found at its primary: committed (the locked key is committed as
// well), rolled back or expired (it is rolled back), or alive. A reader pushes the commit_ts of a live
// transaction above its own snapshot and continues. A writer without a lock on the key waits for a live transaction
// that is older (has the smaller start_ts). If the other one is younger, or its lock is pessimistic, the writer fails with
// a write conflict at once, so that no two such writers wait for each other (wait-die).
//
// Invariants:
//
//	I1 A reader at ts sees exactly the writes with commit_ts <= ts, and its own.
//	I2 If a transaction commits a key between another one's snapshot and commit, the other one does not
//	   commit that key.
//	I3 Once a primary has a write or rollback record, the outcome of its transaction never changes.
//	I4 A transaction that is reported as committed is committed; one that is reported as failed is not and
//	   never will be. An unknown outcome is reported as *UndeterminedError.
//	I5 The primary of a start_ts never changes.
//	I6 The expiry of locks is computed from timestamps of the oracle. The local clock decides only how long
//	   to wait.
//	I7 An iterator sees the write buffer as it was when the iterator was created.
//
// Under snapshot isolation two transactions that each read what the other writes may both commit (write
// skew; see TestWriteSkewIsAllowed).
//
// Files: send.go divides requests among shards and repeats them, txn.go is the life cycle of a transaction, buffer.go its writes, get.go, scan.go and scanspans.go its
// reads, locks.go and acquire.go its locks, resolve.go and outcome.go the resolution of other transactions' locks, latest.go reads without a timestamp, commit.go,
// async.go and twophase.go the kinds of commit, spill.go and large.go write sets larger than memory, notify.go, observers.go and watch.go the
// notifications of observers: package observe delivers them.
package percolator
