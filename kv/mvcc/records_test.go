package mvcc

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// Goal: the bytes on disk are those of docs/format; changing them requires a new format version. Method: golden bytes
// of every record and key.
func TestGoldenFormats(t *testing.T) {
	lock := Lock{Op: OpPut, StartTS: 0x10, Primary: []byte("pk"), TTLMillis: 3000, MinCommitTS: 0x21, TxnSize: 2, Value: []byte("v")}
	async := lock
	async.Async, async.Secondaries = true, [][]byte{[]byte("z")}
	observed := async
	observed.Notify = &NotifySet{Hop: 2, Observers: []uint64{7, 0x1007}}
	for _, c := range []struct {
		name, want string
		got        []byte
	}{
		{"lock", "0100" + "0000000000000010" + "0000000000000021" + "b817" + "02" + "02706b" + "76", appendLock(nil, &lock, false)},
		{"lock, long value", "0101" + "0000000000000010" + "0000000000000021" + "b817" + "02" + "02706b", appendLock(nil, &lock, true)},
		{"lock, async primary", "0106" + "0000000000000010" + "0000000000000021" + "b817" + "02" + "02706b" + "01" + "017a" + "76", appendLock(nil, &async, false)},
		{"lock, async primary, observed", "010e" + "0000000000000010" + "0000000000000021" + "b817" + "02" + "02706b" + "01" + "017a" + "02" + "02" + "07" + "8020" + "76",
			appendLock(nil, &observed, false)},
		{"write, put", "01" + "11" + "76", appendWrite(nil, OpPut, false, 0x10, 0x21, []byte("v"))},
		{"write, put, long value", "11" + "8002", appendWrite(nil, OpPut, true, 0x10, 0x110, []byte("v"))},
		{"write, delete", "02" + "01", appendWrite(nil, OpDelete, false, 0x10, 0x11, nil)},
		{"status, rollback", "01" + "0000000000000010", appendStatus(nil, statusRollback, 0x10)},
		{"status, lock commit", "02" + "0000000000000010", appendStatus(nil, statusLockCommit, 0x10)},
		{"key of a lock", "10" + "6b" + "00", appendLockKey(nil, []byte("k"))},
		{"key of a version", "20" + "6b" + "00" + "ffffffffffffffde" + "09", appendVersioned(nil, tagWrite, []byte("k"), 0x21)},
		{"key of a value", "30" + "6b" + "00" + "ffffffffffffffef" + "09", appendVersioned(nil, tagData, []byte("k"), 0x10)},
		{"key of a status", "40" + "6b" + "00" + "ffffffffffffffef" + "09", appendVersioned(nil, tagStatus, []byte("k"), 0x10)},
		{"key of a notify cell", "50" + "0000000000000107" + "6b" + "00", appendNotifyKey(nil, 0x107, []byte("k"))},
		{"notify cell", "0000000000000021" + "8001", appendNotifyCell(nil, notifyCell{latest: 0x21, hop: 128})},
		{"bound of a keyspace", "21" + "00", appendUpper(nil, tagWrite, nil)},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Goal: records round-trip. Method: extreme values of every field.
func TestRecordsRoundTrip(t *testing.T) {
	for _, l := range []Lock{
		{Op: OpPut, StartTS: 1, Primary: []byte{}, Value: []byte{}},
		{Op: OpDelete, StartTS: math.MaxUint64, Primary: bytes.Repeat([]byte{0xff}, 300), TTLMillis: math.MaxUint64, MinCommitTS: math.MaxUint64, TxnSize: math.MaxUint32, Value: []byte{}},
		{Op: OpLock, StartTS: 3, Primary: []byte("a"), Value: []byte{}},
		{Op: OpPut, StartTS: 3, Primary: []byte("a"), Value: []byte("v"), Async: true},
		{Op: OpDelete, StartTS: 3, Primary: []byte("a"), Value: []byte{}, Async: true, Secondaries: [][]byte{{}, []byte("b")}},
		{Op: OpPut, StartTS: 3, Primary: []byte("a"), Value: []byte("v"), Notify: &NotifySet{Hop: 255, Observers: []uint64{1, 2, math.MaxUint64}}},
		{Op: OpDelete, StartTS: 3, Primary: []byte("a"), Value: []byte{}, Async: true, Secondaries: [][]byte{[]byte("b")}, Notify: &NotifySet{Observers: []uint64{math.MaxUint64}}},
	} {
		got, long, err := decodeLock(appendLock(nil, &l, false))
		if err != nil || long || !cmp.Equal(got, l) {
			t.Errorf("lock %+v came back as %+v, %v, %v", l, got, long, err)
		}
	}
	for _, delta := range []tso.Timestamp{1, 127, 128, 1 << 62} {
		commitTS := delta + 5
		w, err := decodeWrite(commitTS, appendWrite(nil, OpPut, false, 5, commitTS, []byte("x")))
		if err != nil || w.startTS != 5 || w.commitTS != commitTS || string(w.value) != "x" {
			t.Errorf("write with distance %d came back as %+v, %v", delta, w, err)
		}
	}
}

// Goal: no bytes on disk make a decoder panic, and accepted bytes are in canonical form. Method: fuzzing; decode,
// encode, compare; the reader's short decoder must agree.
func FuzzRecords(f *testing.F) {
	f.Add(appendLock(nil, &Lock{Op: OpPut, Primary: []byte("p"), Value: []byte("v")}, false))
	f.Add(appendLock(nil, &Lock{Op: OpPut, Primary: []byte("p"), Value: []byte("v"), Async: true, Secondaries: [][]byte{[]byte("s")}}, false))
	f.Add(appendWrite(nil, OpPut, false, 16, 33, []byte("v")))
	f.Add(appendStatus(nil, statusRollback, 16))
	f.Add(appendLock(nil, &Lock{Op: OpPut, Primary: []byte("p"), Value: []byte("v"), Notify: &NotifySet{Hop: 1, Observers: []uint64{1, 300}}}, false))
	f.Add(appendNotifyCell(nil, notifyCell{latest: 33, hop: 200}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, long, err := decodeLock(b); err == nil {
			if again := appendLock(nil, &l, long); !bytes.Equal(again, b) {
				t.Errorf("lock %x is written as %x", b, again)
			}
		}
		const commitTS = 1 << 50
		if w, err := decodeWrite(commitTS, b); err == nil {
			if again := appendWrite(nil, w.op, w.longValue, w.startTS, commitTS, w.value); !bytes.Equal(again, b) {
				t.Errorf("write %x is written as %x", b, again)
			}
			op, long, value, err := writeValue(b)
			if err != nil || op != w.op || long != w.longValue || !bytes.Equal(value, w.value) {
				t.Errorf("write %x: the readers' decoder says %v %v %x %v", b, op, long, value, err)
			}
		} else if _, _, _, err := writeValue(nil); err == nil {
			t.Error("an empty record was read")
		}
		_, _, _, _ = writeValue(b)
		_, _, _ = decodeStatus(b)
		if c, err := decodeNotifyCell(b); err == nil {
			if again := appendNotifyCell(nil, c); !bytes.Equal(again, b) {
				t.Errorf("notify cell %x is written as %x", b, again)
			}
		}
	})
}

// Goal: stored keys of one keyspace are in the order of the user keys, for any bytes, and can be decoded. Method:
// fuzzing.
func FuzzStoredKeys(f *testing.F) {
	f.Add([]byte("a"), []byte("a\x00"), uint64(1), uint64(2))
	f.Add([]byte{}, []byte{9}, uint64(0), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, a, b []byte, av, bv uint64) {
		ka := appendVersioned(nil, tagWrite, a, tso.Timestamp(av))
		kb := appendVersioned(nil, tagWrite, b, tso.Timestamp(bv))
		prefix, v, ok := storage.SplitVersion(ka)
		if !ok || v != av || !bytes.Equal(userKey(prefix), a) {
			t.Errorf("key %x gave back %x, %d, %v", ka, prefix, v, ok)
		}
		want := bytes.Compare(a, b)
		if want == 0 && av != bv {
			want = 1
			if av > bv {
				want = -1
			}
		}
		if got := storage.Compare(ka, kb); got != want {
			t.Errorf("keys %x@%d and %x@%d compare as %d, want %d", a, av, b, bv, got, want)
		}
	})
}
