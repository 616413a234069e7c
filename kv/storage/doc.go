// Package storage is the ordered byte store under one shard: Pebble, opened with the settings,
// the key order and the format marker of percodb. It is the only package that imports Pebble.
//
// Every key describes its own shape by its last byte:
//
//	plain key      prefix                        = bytes… 0x00
//	versioned key  prefix ‖ ^version (8 B BE) ‖ 0x09
//
// Keys are ordered by prefix, bytewise, and within a prefix by descending version; a plain key
// comes before all versions of its prefix. The 0x00 at the end of a prefix makes the two shapes
// tell apart whatever the bytes before it are, so that user keys need no escaping. In the blocks of
// a table prefixes and versions are columns (keyschema.go).
//
//	I1 The order and the shape never change under the name "percodb.v1"; a change takes a new name
//	   and a new format version (format.go).
//	I2 A batch is applied whole or not at all, and is visible to iterators opened after Apply
//	   returned. It survives a crash once SyncWait returned nil, or once a later batch did.
//	I3 After the first failed write the engine accepts no other: what the disk holds is then
//	   unknown, and only a restart, which reads it back, may go on.
//
// It knows nothing of locks, timestamps or transactions: see kv/mvcc for what the keys mean.
package storage
