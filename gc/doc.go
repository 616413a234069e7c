// Package gc decides how long history is kept and has older versions removed.
//
//	SQL processes                          the process of the oracle
//	Reporter ──oldest transaction, lease──▶ Registry ─▶ Controller ──▶ every shard
//	    ◀──────── Status ──────────────────────────────────┘
//
// The controller works in rounds. Each step of a round completes on every available shard before the next begins:
//
//	choose    the safe point sp is the least of now - life, the oldest transaction that any process has reported, and the snapshots of builds of indexes
//	fence     from now on, nothing at or below sp is read, begun or prewritten
//	resolve   transactions that began at or below sp and have left locks are committed or rolled back
//	sync      the results of resolve are made durable
//	collect   versions, rollback records and dropped tables that only snapshots up to sp could need, and notify cells of dropped
//	          observers, are removed
//
// Invariants:
//
//	I1 The safe point never decreases, also across restarts: every shard stores it, and the controller stores
//	   it before it sends it to any shard.
//	I2 A shard that joins learns the safe point before it serves requests: the controller announces the safe
//	   point before it lists the shards to be fenced.
//	I3 No record that determines the outcome of a transaction is removed before all locks of the transaction have
//	   been removed, durably, on all shards.
//	I4 A process keeps history from being collected from its first report until its lease ends. After a start the
//	   controller waits for the duration of one lease, so that all processes have reported before it chooses a
//	   safe point. A transaction whose process did not report is rejected by the fence; it never reads wrong data.
//
// A shard that is unavailable takes no part in a round and keeps its own history. For I3 the other shards keep the
// records of all transactions that may still have a lock on some shard (protect):
//
//	on an unavailable shard    those with start_ts in (cleared, bound]. cleared is the safe point of the last round
//	                           after which the shard had no lock at or below it. bound is the lock bound that the
//	                           directory has stored for the shard: the shard has no lock of a later transaction, and
//	                           accepts none before it has learnt the announced safe point (kv/lockbound.go).
//	on the other shards        those whose locks were left unresolved, because only an unavailable shard knows their
//	                           outcome.
//
// So the records that determine the outcome of any remaining lock are complete; each shard stores for which transactions
// it keeps them (kv/mvcc/gckept.go). A shard counts as cleared only below the oldest lock that was left on it. A shard that
// is available again learns the safe point with its first lock bound. The next round resolves its locks and no longer
// protects their transactions, and the records kept for them are removed. A dropped span is not removed while a part of
// it is on an unavailable shard. An unavailable shard without a known lock bound prevents collection on all shards.
//
// Package kv/mvcc implements the requests on a shard, percolator the resolution of locks; gc/rpc sends reports between
// processes.
package gc
