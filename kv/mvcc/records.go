package mvcc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/percodb/percodb/tso"
)

// Record encodings; docs/format/records.md pins them.
//
//	lock    op(1) flags(1) start_ts(8) min_commit_ts(8) uvarint(ttl) uvarint(txn_size)
//	        uvarint(len primary) primary [secondaries] [notify] value…
//	        secondaries: uvarint(count), then for each uvarint(len) key
//	        notify: hop(1) uvarint(count), then for each observer uvarint(its distance from the one before)
//	write   op|flags(1) uvarint(commit_ts-start_ts) value…
//	status  kind(1) start_ts(8)
//	cell    latest commit_ts(8) uvarint(hop)

const (
	lockFlagLongValue   = 1 << 0 // the value is a data record
	lockFlagAsync       = 1 << 1 // of an async commit
	lockFlagSecondaries = 1 << 2 // the other keys follow the primary
	lockFlagNotify      = 1 << 3 // a notify set follows them

	writeFlagLongValue = 1 << 4
	writeOpMask        = 0x0f

	statusRollback   = 1
	statusLockCommit = 2
)

// useStartTS is the start_ts in the status record that a transaction leaves on a key that it has locked shared. The
// subtick distinguishes the record from that of an exclusive lock: no transaction begins at it.
func useStartTS(startTS tso.Timestamp) tso.Timestamp { return startTS + 1 }

// isUse reports whether a committed lock's record is of a shared one.
func isUse(recStartTS tso.Timestamp) bool { return recStartTS%tso.Tick == 1 }

var errMalformedRecord = errors.New("mvcc: malformed record")

// CorruptionError: a stored record cannot be read, or contradicts another.
type CorruptionError struct {
	Key    []byte
	Detail string
	Err    error
}

func (e *CorruptionError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("corruption at key %x: %s: %v", e.Key, e.Detail, e.Err)
	}
	return fmt.Sprintf("corruption at key %x: %s", e.Key, e.Detail)
}
func (e *CorruptionError) Unwrap() error { return e.Err }

func appendLock(dst []byte, l *Lock, longValue bool) []byte {
	flags := byte(0)
	if longValue {
		flags |= lockFlagLongValue
	}
	if l.Async {
		flags |= lockFlagAsync
	}
	if len(l.Secondaries) > 0 {
		flags |= lockFlagSecondaries
	}
	if l.Notify != nil {
		flags |= lockFlagNotify
	}
	dst = append(dst, byte(l.Op), flags)
	dst = binary.BigEndian.AppendUint64(dst, uint64(l.StartTS))
	dst = binary.BigEndian.AppendUint64(dst, uint64(l.MinCommitTS))
	dst = binary.AppendUvarint(dst, l.TTLMillis)
	dst = binary.AppendUvarint(dst, uint64(l.TxnSize))
	dst = binary.AppendUvarint(dst, uint64(len(l.Primary)))
	dst = append(dst, l.Primary...)
	if len(l.Secondaries) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(l.Secondaries)))
		for _, key := range l.Secondaries {
			dst = binary.AppendUvarint(dst, uint64(len(key)))
			dst = append(dst, key...)
		}
	}
	if l.Notify != nil {
		dst = appendNotifySet(dst, l.Notify)
	}
	if longValue {
		return dst
	}
	return append(dst, l.Value...)
}

func appendNotifySet(dst []byte, n *NotifySet) []byte {
	dst = append(dst, n.Hop)
	dst = binary.AppendUvarint(dst, uint64(len(n.Observers)))
	before := uint64(0)
	for _, observer := range n.Observers {
		dst = binary.AppendUvarint(dst, observer-before)
		before = observer
	}
	return dst
}

// decodeLock reads a lock record; primary and value are slices of b.
func decodeLock(b []byte) (l Lock, longValue bool, err error) {
	if len(b) < 18 {
		return Lock{}, false, errMalformedRecord
	}
	l.Op = Op(b[0])
	longValue = b[1]&lockFlagLongValue != 0
	flags := b[1]
	l.Async = flags&lockFlagAsync != 0
	if l.Op < OpPut || l.Op > OpLock || flags&^(lockFlagLongValue|lockFlagAsync|lockFlagSecondaries|lockFlagNotify) != 0 ||
		flags&lockFlagSecondaries != 0 && !l.Async || flags&lockFlagNotify != 0 && l.Op == OpLock {
		return Lock{}, false, errMalformedRecord
	}
	l.StartTS = tso.Timestamp(binary.BigEndian.Uint64(b[2:]))
	l.MinCommitTS = tso.Timestamp(binary.BigEndian.Uint64(b[10:]))
	b = b[18:]
	var size, primaryLen uint64
	if l.TTLMillis, b, err = cutUvarint(b); err != nil {
		return Lock{}, false, err
	}
	if size, b, err = cutUvarint(b); err != nil {
		return Lock{}, false, err
	}
	if primaryLen, b, err = cutUvarint(b); err != nil {
		return Lock{}, false, err
	}
	if size > 1<<32-1 || primaryLen > uint64(len(b)) {
		return Lock{}, false, errMalformedRecord
	}
	l.TxnSize = uint32(size)
	l.Primary = b[:primaryLen:primaryLen]
	b = b[primaryLen:]
	if flags&lockFlagSecondaries != 0 {
		if l.Secondaries, b, err = cutKeys(b); err != nil {
			return Lock{}, false, err
		}
	}
	if flags&lockFlagNotify != 0 {
		if l.Notify, b, err = cutNotifySet(b); err != nil {
			return Lock{}, false, err
		}
	}
	l.Value = b
	if len(l.Value) > 0 && (longValue || l.Op != OpPut) || longValue && l.Op != OpPut {
		return Lock{}, false, errMalformedRecord
	}
	return l, longValue, nil
}

// cutKeys reads a list of at least one key; the keys are slices of b.
func cutKeys(b []byte) (keys [][]byte, rest []byte, err error) {
	var n uint64
	if n, b, err = cutUvarint(b); err != nil {
		return nil, nil, err
	}
	if n == 0 || n > uint64(len(b)) {
		return nil, nil, errMalformedRecord
	}
	keys = make([][]byte, n)
	for i := range keys {
		var size uint64
		if size, b, err = cutUvarint(b); err != nil {
			return nil, nil, err
		}
		if size > uint64(len(b)) {
			return nil, nil, errMalformedRecord
		}
		keys[i], b = b[:size:size], b[size:]
	}
	return keys, b, nil
}

// cutNotifySet reads a set.
func cutNotifySet(b []byte) (n *NotifySet, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errMalformedRecord
	}
	hop := b[0]
	count, b, err := cutUvarint(b[1:])
	if err != nil {
		return nil, nil, err
	}
	if count == 0 || count > MaxNotifyObservers {
		return nil, nil, errMalformedRecord
	}
	n = &NotifySet{Hop: hop, Observers: make([]uint64, count)}
	before := uint64(0)
	for i := range n.Observers {
		var distance uint64
		if distance, b, err = cutUvarint(b); err != nil {
			return nil, nil, err
		}
		if distance == 0 || before+distance < before {
			return nil, nil, errMalformedRecord
		}
		before += distance
		n.Observers[i] = before
	}
	return n, b, nil
}

// writeRecord is one committed version.
type writeRecord struct {
	op        Op // OpPut or OpDelete
	longValue bool
	startTS   tso.Timestamp
	commitTS  tso.Timestamp
	value     []byte // nil if longValue
}

func appendWrite(dst []byte, op Op, longValue bool, startTS, commitTS tso.Timestamp, value []byte) []byte {
	head := byte(op)
	if longValue {
		head |= writeFlagLongValue
		value = nil
	}
	dst = append(dst, head)
	dst = binary.AppendUvarint(dst, uint64(commitTS-startTS))
	return append(dst, value...)
}

// decodeWrite reads the record of the version commitTS; the value is a slice of b.
func decodeWrite(commitTS tso.Timestamp, b []byte) (writeRecord, error) {
	if len(b) < 2 {
		return writeRecord{}, errMalformedRecord
	}
	w := writeRecord{op: Op(b[0] & writeOpMask), longValue: b[0]&writeFlagLongValue != 0, commitTS: commitTS}
	if w.op != OpPut && w.op != OpDelete || b[0]&^(writeOpMask|writeFlagLongValue) != 0 {
		return writeRecord{}, errMalformedRecord
	}
	delta, rest, err := cutUvarint(b[1:])
	if err != nil || delta > uint64(commitTS) {
		return writeRecord{}, errMalformedRecord
	}
	w.startTS = commitTS - tso.Timestamp(delta)
	if len(rest) > 0 && (w.op != OpPut || w.longValue) || w.longValue && w.op != OpPut {
		return writeRecord{}, errMalformedRecord
	}
	w.value = rest
	return w, nil
}

// writeValue is decodeWrite for readers, which need neither start_ts nor a check of every byte: it returns the operation
// and the value.
func writeValue(b []byte) (op Op, longValue bool, value []byte, err error) {
	i := 1
	for i < len(b) && b[i] >= 0x80 {
		i++
	}
	if i >= len(b) {
		return 0, false, nil, errMalformedRecord
	}
	return Op(b[0] & writeOpMask), b[0]&writeFlagLongValue != 0, b[i+1:], nil
}

func appendStatus(dst []byte, kind byte, startTS tso.Timestamp) []byte {
	dst = append(dst, kind)
	return binary.BigEndian.AppendUint64(dst, uint64(startTS))
}

func decodeStatus(b []byte) (kind byte, startTS tso.Timestamp, err error) {
	if len(b) != 9 || b[0] != statusRollback && b[0] != statusLockCommit {
		return 0, 0, errMalformedRecord
	}
	return b[0], tso.Timestamp(binary.BigEndian.Uint64(b[1:])), nil
}

func appendNotifyCell(dst []byte, c notifyCell) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.latest))
	return binary.AppendUvarint(dst, uint64(c.hop))
}

func decodeNotifyCell(b []byte) (notifyCell, error) {
	if len(b) < 9 {
		return notifyCell{}, errMalformedRecord
	}
	c := notifyCell{latest: tso.Timestamp(binary.BigEndian.Uint64(b))}
	hop, rest, err := cutUvarint(b[8:])
	if err != nil || len(rest) > 0 || hop > math.MaxUint8 || c.latest == 0 {
		return notifyCell{}, errMalformedRecord
	}
	c.hop = uint8(hop)
	return c, nil
}

// cutUvarint reads a uvarint in its shortest form and returns the bytes that follow it.
func cutUvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil, errMalformedRecord
	}
	return v, b[n:], nil
}
