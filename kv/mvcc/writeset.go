package mvcc

import "context"

// WriteSet is a transaction's write set that does not fit into memory: each key once, in order. It does not
// change. Safe for concurrent use.
type WriteSet interface {
	// Len is the number of mutations, SizeBytes their approximate size in memory.
	Len() int
	SizeBytes() int64
	WriteSetPart
	// Parts divides the set into at most n consecutive parts of about the same size.
	Parts(n int) []WriteSetPart
	// Has reports whether key is among the keys.
	Has(key []byte) (bool, error)
	// Spans cover all keys: ascending, disjoint, each beginning with one of the keys.
	Spans() []Span
}

// WriteSetPart is a part of a write set, or all of it. Safe for concurrent use.
type WriteSetPart interface {
	// Read calls f with all mutations, in order and in small batches that are valid until f returns, except those
	// batches for which pass returns true; pass may be nil. It ends with the first error, or the context's.
	Read(ctx context.Context, pass func(*Batch) (bool, error), f func(ms []Mutation) error) error
}

// Batch is what is known about a batch of mutations before it is read.
type Batch struct {
	First, Last []byte // the smallest and the largest key
	// Plain: all are valid mutations, each an OpPut or OpDelete, of keys that the transaction has not locked, as of its
	// snapshot (LockedAt is 0), and select no set of Notify.
	Plain bool
	// MustBeNew: some of the keys must be new.
	MustBeNew bool
}
