package rpc

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// requestShard keeps the request that it is sent.
type requestShard struct {
	kv.Shard
	got any
}

func (s *requestShard) BatchGet(_ context.Context, r *kv.BatchGetRequest) (*kv.BatchGetResponse, error) {
	s.got = r
	return &kv.BatchGetResponse{Values: make([][]byte, len(r.Keys))}, nil
}

func (s *requestShard) Scan(_ context.Context, r *kv.ScanRequest) (*kv.ScanResponse, error) {
	s.got = r
	return &kv.ScanResponse{}, nil
}

func (s *requestShard) Prewrite(_ context.Context, r *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	s.got = r
	return kv.PrewriteResponse{}, nil
}

func (s *requestShard) Commit(_ context.Context, r *kv.CommitRequest) error { s.got = r; return nil }
func (s *requestShard) Rollback(_ context.Context, r *kv.RollbackRequest) error {
	s.got = r
	return nil
}

func (s *requestShard) CheckTxnStatus(_ context.Context, r *kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	s.got = r
	return mvcc.TxnStatus{}, nil
}

func (s *requestShard) ResolveLock(_ context.Context, r *kv.ResolveLockRequest) error {
	s.got = r
	return nil
}

func (s *requestShard) Heartbeat(_ context.Context, r *kv.HeartbeatRequest) (uint64, error) {
	s.got = r
	return 0, nil
}

func (s *requestShard) ScanLock(_ context.Context, r *kv.ScanLockRequest) ([]mvcc.LockInfo, error) {
	s.got = r
	return nil, nil
}

func (s *requestShard) AcquireLocks(_ context.Context, r *kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
	s.got = r
	return kv.AcquireLocksResponse{LockedAt: make([]tso.Timestamp, len(r.Keys))}, nil
}

func (s *requestShard) ReleaseLocks(_ context.Context, r *kv.ReleaseLocksRequest) error {
	s.got = r
	return nil
}

func (s *requestShard) CheckSecondaryLocks(_ context.Context, r *kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	s.got = r
	return mvcc.SecondaryStatus{}, nil
}

func (s *requestShard) Refresh(_ context.Context, r *kv.RefreshRequest) error { s.got = r; return nil }

func (s *requestShard) CollectGarbage(_ context.Context, r *kv.CollectGarbageRequest) (kv.CollectGarbageResponse, error) {
	s.got = r
	return kv.CollectGarbageResponse{}, nil
}

func (s *requestShard) DropSpan(_ context.Context, r *kv.DropSpanRequest) (bool, error) {
	s.got = r
	return false, nil
}

func (s *requestShard) NotifyScan(_ context.Context, r *kv.NotifyScanRequest) (*kv.NotifyScanResponse, error) {
	s.got = r
	return &kv.NotifyScanResponse{}, nil
}

func (s *requestShard) NotifyClear(_ context.Context, r *kv.NotifyClearRequest) (int, error) {
	s.got = r
	return 0, nil
}

func (s *requestShard) NotifyPut(_ context.Context, r *kv.NotifyPutRequest) error {
	s.got = r
	return nil
}

func (s *requestShard) NotifyDrop(_ context.Context, r *kv.NotifyDropRequest) error {
	s.got = r
	return nil
}

// Goal: a field that is added to a request is not lost on its way to a shard in another process. Method: every request
// of kv.Shard with every field set, compared with what arrives; the memory for the answer stays behind.
func TestRequestsArriveAsTheyWere(t *testing.T) {
	behind := &requestShard{}
	conn, _ := serveShard(t, behind)
	shard := reflect.ValueOf(NewShard(conn, "s", ClientOptions{}))
	requests := 0
	for i := range reflect.TypeFor[kv.Shard]().NumMethod() {
		m := reflect.TypeFor[kv.Shard]().Method(i)
		if m.Type.NumIn() != 2 || m.Type.In(1).Kind() != reflect.Pointer || m.Name == "CommitLarge" { // which is not sent
			continue
		}
		requests++
		want := reflect.New(m.Type.In(1).Elem())
		fillFields(want.Elem())
		results := shard.MethodByName(m.Name).Call([]reflect.Value{reflect.ValueOf(t.Context()), want})
		if err := results[len(results)-1]; !err.IsNil() {
			t.Errorf("%s: %v", m.Name, err)
		}
		if diff := cmp.Diff(want.Interface(), behind.got); diff != "" {
			t.Errorf("%s arrives changed:\n%s", m.Name, diff)
		}
	}
	if requests < 19 {
		t.Errorf("%d requests only", requests)
	}
}

// fillFields sets all fields but pointers.
func fillFields(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillFields(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fillFields(v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(7 * time.Millisecond))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	}
}
