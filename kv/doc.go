// Package kv serves ranges of keys. A Router says which shard holds a key; a Shard answers for the
// ranges it owns; Store is the shard that keeps them in one engine of this process.
//
//	percolator ──Locate(key)──▶ Router ──▶ Directory (who serves what)
//	     │                                      │ CreateRange: release, adopt
//	     └──Get, Prewrite, Commit…──▶ Shard ◀───┘
//	                                    │ latches, admission
//	                                  mvcc.State ──Apply(batch), iterator──▶ storage.Engine
//
//	I1 Every key belongs to one range, and every range to one shard. A range's epoch grows when its
//	   span changes; a request that names another epoch is refused whole, with nothing applied.
//	I2 A shard that gives a span away first makes the change durable and visible, and only then
//	   tells up to which timestamp it has served reads there; the new owner writes above that.
//	I3 All ranges of a store share one engine, one lock table and one max_ts: a split moves no data,
//	   and requests under way need not notice it.
//	I4 Every write ends in one atomic batch and every read begins with a barrier (mvcc.State.apply,
//	   mvcc.State.BeginRead): replication would go there, and nowhere else.
//	I5 A shard carries out each plan of the directory once: a request to release or adopt a range that comes
//	   again, however late, changes nothing.
//	I6 A shard's ranges are served from one data directory: see incarnation.go. A shard does not serve
//	   under an oracle that is behind the timestamps it has seen: see seen.go.
//
// What the requests do to locks and versions is in kv/mvcc; how transactions use them in percolator;
// how requests travel between processes in kv/rpc.
package kv
