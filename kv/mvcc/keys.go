package mvcc

import (
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// The keyspaces, by the first byte of a stored key. docs/format/keys.md.
const (
	tagLock   = 0x10
	tagWrite  = 0x20
	tagData   = 0x30
	tagStatus = 0x40
	tagNotify = 0x50
)

// appendLockKey appends the stored key of the lock on key.
func appendLockKey(dst, key []byte) []byte { return appendPrefix(dst, tagLock, key) }

// appendPrefix appends the common prefix of all versions of key in a keyspace, which is also their lower bound.
func appendPrefix(dst []byte, tag byte, key []byte) []byte {
	dst = append(dst, tag)
	dst = append(dst, key...)
	return storage.AppendSentinel(dst)
}

// appendVersioned appends the stored key of one version of key.
func appendVersioned(dst []byte, tag byte, key []byte, ts tso.Timestamp) []byte {
	return storage.AppendVersion(appendPrefix(dst, tag, key), uint64(ts))
}

// appendUpper appends the bound above all stored keys below end; an empty end bounds the keyspace.
func appendUpper(dst []byte, tag byte, end []byte) []byte {
	if len(end) == 0 {
		return storage.AppendSentinel(append(dst, tag+1))
	}
	return appendPrefix(dst, tag, end)
}

// userKey returns the key within a prefix (tag, key, sentinel).
func userKey(prefix []byte) []byte { return prefix[1 : len(prefix)-1 : len(prefix)-1] }

// WriteBounds returns the bounds of the stored write records of [start, end).
func WriteBounds(start, end []byte) (lower, upper []byte) {
	return appendPrefix(nil, tagWrite, start), appendUpper(nil, tagWrite, end)
}
