package kvtest

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// writeSet is an mvcc.WriteSet in memory: ascending mutations.
type writeSet []mvcc.Mutation

func (s writeSet) Len() int { return len(s) }

func (s writeSet) SizeBytes() (n int64) {
	for i := range s {
		n += int64(len(s[i].Key) + len(s[i].Value))
	}
	return n
}

func (s writeSet) Read(ctx context.Context, _ func(*mvcc.Batch) (bool, error), f func([]mvcc.Mutation) error) error {
	for some := range slices.Chunk(s, 64) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(some); err != nil {
			return err
		}
	}
	return nil
}

func (s writeSet) Parts(n int) (parts []mvcc.WriteSetPart) {
	for i := range n {
		parts = append(parts, s[i*len(s)/n:(i+1)*len(s)/n])
	}
	return parts
}

func (s writeSet) Has(key []byte) (bool, error) {
	_, found := slices.BinarySearchFunc(s, key, func(m mvcc.Mutation, key []byte) int { return bytes.Compare(m.Key, key) })
	return found, nil
}

func (s writeSet) Spans() []kv.Span {
	return []kv.Span{{Start: s[0].Key, End: append(bytes.Clone(s[len(s)-1].Key), 0)}}
}
