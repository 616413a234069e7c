package kv

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/percodb/percodb/kv/storage"
)

// The meta keyspace: a store's records about itself. docs/format/keys.md.
const tagMeta = 0x01

const (
	metaWindow      = "tso_window"    // u64: the oracle's saved bound
	metaMode        = "mode"          // text: what the directory is used for
	metaShardID     = "shard_id"      // text
	metaIncarnation = "incarnation"   // u64 u64: the accepted one of the shard's directory, and the last
	metaNextRange   = "next_range_id" // u64, of a store without a directory
	metaSeen        = "seen_ts"       // u64: a timestamp that has been issued, about the newest
	metaCluster     = "cluster"       // u64, ids: the number of the cluster, and its shards as last announced
	metaSafePoint   = "safe_point"    // u64
	metaCollected   = "gc_pass"       // how far garbage collection has come
	metaKept        = "gc_kept"       // which records the last pass keeps for unavailable stores
	metaGC          = "gc"            // the stored settings of the controller of garbage collection
	metaGCCleared   = "gc_cleared/"   // + shard id → u64: the shard has no lock of a transaction at or below it
	metaRange       = "range/"        // + u64 id → descriptor: ranges this store owns

	metaRelease = "plan/release/" // + u64 id of the plan → 1: released, 0: kept
	metaAdopt   = "plan/adopt/"   // + u64 id of the plan: adopted

	metaDirRange       = "dir/range/"       // + u64 id → descriptor
	metaDirIncarnation = "dir/incarnation/" // + shard id → u64
	metaDirShard       = "dir/shard/"       // + id → address
	metaDirPlan        = "dir/plan/"        // + u64 range id → plan
	metaDirNextID      = "dir/next_range"   // u64
	metaDirCluster     = "dir/cluster"      // u64: the number of the cluster
	metaDirDoubt       = "dir/doubt"        // 1: the oracle waits for all shards
	metaDirLost        = "dir/lost"         // 1: the directory was lost, and not all shards have registered
	metaDirNamed       = "dir/named/"       // + shard id → 1: named by others, not registered
	metaDirLockBound   = "dir/lock_bound/"  // + shard id → u64: the highest lock bound that the shard was given
	metaDirForgotten   = "dir/forgotten/"   // + shard id → 1: permanently excluded
)

var errMalformedMeta = errors.New("kv: malformed meta record")

func metaKey(name string) []byte {
	return storage.AppendSentinel(append([]byte{tagMeta}, name...))
}

func metaIDKey(prefix string, id uint64) []byte {
	key := append([]byte{tagMeta}, prefix...)
	return storage.AppendSentinel(binary.BigEndian.AppendUint64(key, id))
}

func metaShardKey(id string) []byte { return metaKey(metaDirShard + id) }

// metaBounds bounds the keys of a prefix that ends in '/'.
func metaBounds(prefix string) (lower, upper []byte) {
	lower = metaKey(prefix)
	end := []byte(prefix)
	end[len(end)-1]++
	return lower, metaKey(string(end))
}

// scanMeta calls f with the rest of each key after prefix, and the value.
func (e *Engine) scanMeta(prefix string, f func(rest, value []byte) error) error {
	lower, upper := metaBounds(prefix)
	it, err := e.NewRangeIter(lower, upper)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.Value()
		if err != nil {
			return err
		}
		key := it.Key()
		if err := f(key[1+len(prefix):len(key)-1], value); err != nil {
			return fmt.Errorf("meta record %q: %w", key, err)
		}
	}
	return it.Error()
}

// getMetaU64 returns a number, or 0 if it was never stored.
func (e *Engine) getMetaU64(name string) (uint64, error) {
	value, found, err := e.Get(nil, metaKey(name))
	if err != nil || !found {
		return 0, err
	}
	if len(value) != 8 {
		return 0, &CorruptionError{Key: metaKey(name), Detail: "not a number"}
	}
	return binary.BigEndian.Uint64(value), nil
}

// The uses of a data directory. It has one for life: a store of a cluster that came up on its own
// would take itself for the owner of all keys.
const (
	modeSingle    = "single"    // a store that owns all keys
	modeCluster   = "cluster"   // a store whose ranges a directory assigns
	modeDirectory = "directory" // oracle and directory of a cluster
)

// ModeError: the data directory is in use for something else.
type ModeError struct{ Stored, Wanted string }

func (e *ModeError) Error() string {
	return fmt.Sprintf("the data directory is that of %s, not of %s", modeUses[e.Stored], modeUses[e.Wanted])
}

var modeUses = map[string]string{
	modeSingle:    "a server on its own (--role=all)",
	modeCluster:   "a store of a cluster (--role=kv)",
	modeDirectory: "the oracle of a cluster (--role=tso)",
}

// storedMode returns what the data directory is used for, "" if for nothing yet.
func (e *Engine) storedMode() (string, error) {
	stored, _, err := e.Get(nil, metaKey(metaMode))
	return string(stored), err
}

// IsSingle reports whether the data directory is that of a server on its own.
func (e *Engine) IsSingle() (bool, error) {
	mode, err := e.storedMode()
	return mode == modeSingle, err
}

// IsDirectory reports whether the data directory is that of a cluster's oracle and directory, and not of
// a store.
func (e *Engine) IsDirectory() (bool, error) {
	mode, err := e.storedMode()
	return mode == modeDirectory, err
}

// claimMode makes sure that the data directory is, and stays, used for one thing.
func (e *Engine) claimMode(mode string) error {
	stored, err := e.storedMode()
	switch {
	case err != nil || stored == mode:
		return err
	case stored != "":
		return &ModeError{Stored: stored, Wanted: mode}
	}
	b := e.NewBatch(0)
	defer b.Close()
	b.Put(metaKey(metaMode), []byte(mode))
	return e.applySync(b)
}

// appendDescriptor encodes: id(8) epoch(8) len start, len end, len shard, each with its bytes.
func appendDescriptor(dst []byte, d *RangeDescriptor) []byte {
	dst = binary.BigEndian.AppendUint64(dst, d.ID)
	dst = binary.BigEndian.AppendUint64(dst, d.Epoch)
	dst = appendBytes(dst, d.Span.Start)
	dst = appendBytes(dst, d.Span.End)
	return appendBytes(dst, []byte(d.Shard))
}

func decodeDescriptor(b []byte) (d RangeDescriptor, rest []byte, err error) {
	if len(b) < 16 {
		return d, nil, errMalformedMeta
	}
	d.ID, d.Epoch = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	b = b[16:]
	var shard []byte
	if d.Span.Start, b, err = cutBytes(b); err != nil {
		return d, nil, err
	}
	if d.Span.End, b, err = cutBytes(b); err != nil {
		return d, nil, err
	}
	if shard, b, err = cutBytes(b); err != nil {
		return d, nil, err
	}
	d.Shard = string(shard)
	return d, b, nil
}

// appendCluster encodes: number(8), then len id, id of each shard.
func appendCluster(dst []byte, cluster uint64, shards []string) []byte {
	dst = binary.BigEndian.AppendUint64(dst, cluster)
	for _, id := range shards {
		dst = appendBytes(dst, []byte(id))
	}
	return dst
}

func decodeCluster(b []byte) (cluster uint64, shards []string, err error) {
	if len(b) < 8 {
		return 0, nil, errMalformedMeta
	}
	cluster, b = binary.BigEndian.Uint64(b), b[8:]
	for len(b) > 0 {
		var id []byte
		if id, b, err = cutBytes(b); err != nil {
			return 0, nil, err
		}
		shards = append(shards, string(id))
	}
	return cluster, shards, nil
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// cutBytes returns a copy of the first field, so that records outlive the iterator.
func cutBytes(b []byte) (field, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, errMalformedMeta
	}
	b = b[size:]
	return append([]byte(nil), b[:n]...), b[n:], nil
}
