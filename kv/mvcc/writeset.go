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
	// Read calls f with all mutations, in order and in small batches that are valid until f returns. It ends
	// with f's first error or the context's.
	Read(ctx context.Context, f func(ms []Mutation) error) error
}
