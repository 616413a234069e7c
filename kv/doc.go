// Package kv stores ranges of keys. A Router locates the shard that owns a key; a Shard executes requests
// on the ranges it owns; Store is the Shard that keeps its ranges in one storage engine of this process.
//
//	percolator ──Locate(key)──▶ Router ──▶ Directory (ranges and their shards)
//	     │                                      │ CreateRange: release, adopt
//	     └──Get, Prewrite, Commit…──▶ Shard ◀───┘
//	                                    │ admission, latches
//	                                  mvcc.State ──Apply(batch), iterator──▶ storage.Engine
//
// Invariants:
//
//	I1 Every key belongs to one range, and every range to one shard. A range's epoch increases when its
//	   span changes; a request with another epoch is rejected as a whole, and nothing is applied.
//	I2 A shard that releases a span makes the change durable and visible first. Only then does it report
//	   up to which timestamp it has served reads of the span; the new owner commits above that.
//	I3 All ranges of a store share one engine, one lock table and one max_ts: a split moves no data and
//	   does not interrupt running requests.
//	I4 Every write ends in one atomic batch (mvcc.State.apply) and every read begins with a barrier
//	   (mvcc.State.BeginRead). Replication would be added in these two functions.
//	I5 A shard executes each plan of the directory once: a repeated request to release or adopt a range
//	   changes nothing, however late it arrives.
//	I6 A shard's ranges are served from one data directory (incarnation.go). A shard does not serve
//	   with an oracle whose timestamps are behind those that the shard has seen (seen.go).
//
// Package kv/mvcc defines what the requests do to locks and versions, percolator how transactions use
// them, kv/rpc how they are sent between processes.
package kv
