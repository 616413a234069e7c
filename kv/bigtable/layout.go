package bigtable

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// The column families.
const (
	familyLock   = "l"
	familyWrite  = "w"
	familyData   = "d"
	familyStatus = "s"
	familyNotify = "n"
	familyMeta   = "m" // of the rows that belong to no key
)

var families = []string{familyLock, familyWrite, familyData, familyStatus, familyNotify, familyMeta}

// The first bytes of a row's name: rows of keys, and those of the oracle and of garbage collection.
const (
	rowOfKey  = 'k'
	rowOfMeta = 'm'
)

// The first bytes of qualifiers in the lock and status families.
const (
	exclusiveLock = 'x'
	sharedLock    = 's'

	statusRollback = 'r'
	statusCommit   = 'c'
	statusFence    = 'f'
)

func rowKey(key []byte) string { return string(rowOfKey) + string(key) }

// keyOf returns the key of a row.
func keyOf(row string) []byte { return []byte(row[1:]) }

// endRow returns the row that is the bound above a span that ends at end.
func endRow(end []byte) string {
	if len(end) == 0 {
		return string(rune(rowOfKey + 1))
	}
	return rowKey(end)
}

func plainTS(ts tso.Timestamp) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(ts)))
}

// inverted orders timestamps from the newest to the oldest.
func inverted(ts tso.Timestamp) string { return plainTS(^ts) }

func decodePlain(b string) (tso.Timestamp, error) {
	if len(b) != 8 {
		return 0, errMalformed
	}
	return tso.Timestamp(binary.BigEndian.Uint64([]byte(b))), nil
}

func decodeInverted(b string) (tso.Timestamp, error) {
	ts, err := decodePlain(b)
	return ^ts, err
}

var errMalformed = errors.New("bigtable: malformed cell")

// lockColumn is the qualifier of a lock.
func lockColumn(l *mvcc.Lock) string {
	kind := byte(exclusiveLock)
	if l.Shared {
		kind = sharedLock
	}
	return string(kind) + plainTS(l.StartTS)
}

// lockBytes is what a lock's value takes at most without the primary and the observers.
const lockBytes = 96

// The flags of a lock.
const lockFlagNotify = 1

// encodeLock returns the value of a lock cell; the start_ts, and whether it is shared, are in its qualifier.
//
//	op(1) for_update_ts(8) flags(1) min_commit_ts(8) process(8) heard(8, wall clock, ms) lease(uvarint) ttl(uvarint)
//	size(uvarint) len(primary)(uvarint) primary [hop(1) count(uvarint) observers(8 each)]
func encodeLock(l *mvcc.Lock) []byte {
	b := make([]byte, 0, lockBytes+len(l.Primary))
	b = append(b, byte(l.Op))
	b = binary.BigEndian.AppendUint64(b, uint64(l.ForUpdateTS))
	flags := byte(0)
	if l.Notify != nil {
		flags |= lockFlagNotify
	}
	b = append(b, flags)
	b = binary.BigEndian.AppendUint64(b, uint64(l.MinCommitTS))
	b = binary.BigEndian.AppendUint64(b, l.Process)
	b = binary.BigEndian.AppendUint64(b, l.HeardMillis)
	b = binary.AppendUvarint(b, l.LeaseMillis)
	b = binary.AppendUvarint(b, l.TTLMillis)
	b = binary.AppendUvarint(b, uint64(l.TxnSize))
	b = binary.AppendUvarint(b, uint64(len(l.Primary)))
	b = append(b, l.Primary...)
	if l.Notify != nil {
		b = append(b, l.Notify.Hop)
		b = binary.AppendUvarint(b, uint64(len(l.Notify.Observers)))
		for _, observer := range l.Notify.Observers {
			b = binary.BigEndian.AppendUint64(b, observer)
		}
	}
	return b
}

// decodeLock reads a lock cell; the lock keeps no part of value.
func decodeLock(column string, value []byte) (l mvcc.Lock, err error) {
	if len(column) != 9 || column[0] != exclusiveLock && column[0] != sharedLock || len(value) < 34 {
		return mvcc.Lock{}, errMalformed
	}
	l.Shared = column[0] == sharedLock
	if l.StartTS, err = decodePlain(column[1:]); err != nil {
		return mvcc.Lock{}, err
	}
	l.Op = mvcc.Op(value[0])
	if !l.Op.LeavesLock() && l.Op != mvcc.OpPessimistic {
		return mvcc.Lock{}, errMalformed
	}
	l.ForUpdateTS = tso.Timestamp(binary.BigEndian.Uint64(value[1:]))
	flags := value[9]
	l.MinCommitTS = tso.Timestamp(binary.BigEndian.Uint64(value[10:]))
	l.Process = binary.BigEndian.Uint64(value[18:])
	l.HeardMillis = binary.BigEndian.Uint64(value[26:])
	rest := value[34:]
	var size, length uint64
	for _, field := range []*uint64{&l.LeaseMillis, &l.TTLMillis, &size, &length} {
		n := 0
		if *field, n = binary.Uvarint(rest); n <= 0 {
			return mvcc.Lock{}, errMalformed
		}
		rest = rest[n:]
	}
	if size > math.MaxUint32 || length > uint64(len(rest)) {
		return mvcc.Lock{}, errMalformed
	}
	l.TxnSize = uint32(size)
	l.Primary = append([]byte{}, rest[:length]...)
	rest = rest[length:]
	if flags&lockFlagNotify == 0 {
		return l, nil
	}
	l.Notify, err = decodeNotifySet(rest)
	return l, err
}

func decodeNotifySet(b []byte) (*mvcc.NotifySet, error) {
	if len(b) < 2 {
		return nil, errMalformed
	}
	set := &mvcc.NotifySet{Hop: b[0]}
	count, n := binary.Uvarint(b[1:])
	if n <= 0 || count > mvcc.MaxNotifyObservers || uint64(len(b)-1-n) != 8*count {
		return nil, errMalformed
	}
	for b = b[1+n:]; len(b) > 0; b = b[8:] {
		set.Observers = append(set.Observers, binary.BigEndian.Uint64(b))
	}
	return set, nil
}

// encodeWrite returns the value of a write cell: op(1) start_ts(8).
func encodeWrite(op mvcc.Op, startTS tso.Timestamp) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(op)}, uint64(startTS))
}

// version is a write cell.
type version struct {
	op                mvcc.Op
	startTS, commitTS tso.Timestamp
}

func decodeWrite(column string, value []byte) (v version, err error) {
	if v.commitTS, err = decodeInverted(column); err != nil || len(value) != 9 {
		return version{}, errMalformed
	}
	v.op, v.startTS = mvcc.Op(value[0]), tso.Timestamp(binary.BigEndian.Uint64(value[1:]))
	if v.op != mvcc.OpPut && v.op != mvcc.OpDelete {
		return version{}, errMalformed
	}
	return v, nil
}

// observerColumn is the prefix of an observer's qualifiers in the notify family.
func observerColumn(observer uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, observer))
}

// notifyColumn is the qualifier of one notification.
func notifyColumn(observer uint64, ts tso.Timestamp) string {
	return observerColumn(observer) + inverted(ts)
}
