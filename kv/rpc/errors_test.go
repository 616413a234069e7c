package rpc

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/rpc/kvpb"
	"github.com/percodb/percodb/tso"
)

// equateText compares errors that are carried as text only by their text.
var equateText = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Err" },
	cmp.Comparer(func(a, b error) bool { return errorText(a) == errorText(b) }))

// Goal: I1, for every error that kv promises, bare and wrapped. Method: through the bytes on the wire.
func TestErrorsRoundTrip(t *testing.T) {
	lock := mvcc.Lock{Op: mvcc.OpPut, StartTS: 16, Primary: []byte("p"), TTLMillis: 3000, MinCommitTS: 17, TxnSize: 2, Value: []byte{}}
	desc := kv.RangeDescriptor{ID: 3, Epoch: 4, Span: kv.Span{Start: []byte("a")}, Shard: "s1"}
	for _, want := range []error{
		&kv.StaleRangeError{Refs: []kv.RangeRef{{ID: 3, Epoch: 2}}, Current: []kv.RangeDescriptor{desc}},
		&kv.StaleRangeError{},
		kv.ErrClosed,
		&kv.UnavailableError{Shard: "s1", Err: errors.New("no route")},
		&kv.CorruptionError{Key: []byte("k"), Detail: "write record", Err: errors.New("checksum")},
		&kv.CorruptionError{Key: []byte("k"), Detail: "data file"},
		&kv.ShardReplacedError{Shard: "s1", Addr: "host:1"},
		&kv.LostRangesError{Shard: "s1", Lost: []kv.RangeDescriptor{desc}},
		&kv.DiskFullError{Shard: "s1"},
		&tso.UnavailableError{Err: errors.New("disk full")},
		tso.ErrClosed,
		&mvcc.KeyLockedError{Key: []byte("k"), Lock: lock},
		&mvcc.KeyLockedError{Key: []byte("k"), Lock: mvcc.Lock{Op: mvcc.OpDelete, StartTS: 16}},
		&mvcc.WriteConflictError{Key: []byte("k"), StartTS: 16, ConflictingStartTS: 32, ConflictingCommitTS: 48},
		&mvcc.WriteConflictError{Key: []byte("k"), StartTS: 16, Cause: mvcc.CauseLockLost},
		&mvcc.KeyExistsError{Key: []byte("k")},
		&mvcc.AlreadyCommittedError{CommitTS: 48},
		&mvcc.RolledBackError{StartTS: 16},
		&mvcc.LockNotFoundError{Key: []byte("k"), StartTS: 16},
		&mvcc.CommitTSExpiredError{MinCommitTS: 64},
		&mvcc.TxnNotFoundError{StartTS: 16},
		&mvcc.PrimaryMismatchError{Key: []byte("k"), Lock: lock},
		&mvcc.TooOldError{TS: 16, SafePoint: 32},
		&mvcc.TSInFutureError{TS: 1 << 60},
		&mvcc.LockLostError{Key: []byte("k"), StartTS: 16, LockedAt: 32},
		&mvcc.RefreshConflictError{Key: []byte("k"), StartTS: 16, CommitTS: 32},
		&mvcc.DeadlockError{Key: []byte("k"), Waiter: 16, Holder: 32, Cycle: []tso.Timestamp{16, 32}},
		&mvcc.KeyLockedError{Key: []byte("k"), Lock: mvcc.Lock{Op: mvcc.OpPessimistic, StartTS: 16, ForUpdateTS: 32, Shared: true}},
		&mvcc.KeyLockedError{Key: []byte("k"), Lock: mvcc.Lock{Op: mvcc.OpPut, StartTS: 16, Async: true, Secondaries: [][]byte{[]byte("s")}}},
		&mvcc.InvalidRequestError{Detail: "keys do not ascend"},
		errors.New("something else"),
	} {
		for _, err := range []error{want, fmt.Errorf("while reading: %w", want)} {
			data, marshalErr := proto.Marshal(encodeError(err))
			if marshalErr != nil {
				t.Fatal(marshalErr)
			}
			var message kvpb.Error
			if err := proto.Unmarshal(data, &message); err != nil {
				t.Fatal(err)
			}
			got := decodeError(&message)
			if err != want && message.GetOther() != "" {
				continue // an error of no known type is its text
			}
			if errors.Is(got, want) {
				continue
			}
			if got.Error() != want.Error() || fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) {
				t.Errorf("%T %v came back as %T %v", want, want, got, got)
				continue
			}
			if message.GetOther() == "" {
				if diff := cmp.Diff(want, got, equateText); diff != "" {
					t.Errorf("%T: %s", want, diff)
				}
			}
		}
	}
	if err := decodeError(&kvpb.Error{}); err == nil {
		t.Error("an error of an unknown kind is none")
	}
}

// FuzzRows: whatever lengths a page claims, cutting it up neither panics nor reads outside, and a page
// that was made comes back as it was.
func FuzzRows(f *testing.F) {
	f.Add([]byte("abc"), []byte{1, 2})
	f.Add([]byte{}, []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data, lens []byte) {
		lengths := make([]uint32, len(lens))
		for i, n := range lens {
			lengths[i] = uint32(n)
		}
		rows, ok := decodeRows(data, lengths)
		if !ok {
			return
		}
		gotData, gotLengths := encodeRows(rows)
		if string(gotData) != string(data) || fmt.Sprint(gotLengths) != fmt.Sprint(lengths) {
			t.Fatalf("%q %v became %q %v", data, lengths, gotData, gotLengths)
		}
	})
}
