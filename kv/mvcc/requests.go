package mvcc

// RangeRef names a range as of one epoch; every request carries the refs it was routed by.
//
// The requests of this package are those of package kv, which compares their Range or Ranges with the ranges that the
// shard owns. This package does not look at them.
type RangeRef struct{ ID, Epoch uint64 }
