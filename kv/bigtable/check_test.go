package bigtable

import (
	"testing"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// Goal: what a transaction leaves that ends without a word is no finding, whatever it writes. Method: locks of all kinds over rows with a value.
func TestCheckOfLocksThatWereLeft(t *testing.T) {
	oracle := &tsotest.ClockOracle{}
	e := newEmulated(t, oracle)
	descriptor := theRange()
	refs := []kv.RangeRef{descriptor.Ref()}
	keys := [][]byte{[]byte("delete"), []byte("lock"), []byte("put")}
	prewrite := func(ops ...mvcc.Op) *kv.PrewriteRequest {
		t.Helper()
		req := &kv.PrewriteRequest{Ranges: refs, Primary: keys[0], StartTS: mustNow(t, oracle), TxnSize: uint32(len(keys)), TTLMillis: 60_000}
		for i, key := range keys {
			m := mvcc.Mutation{Op: ops[i], Key: key}
			if m.Op == mvcc.OpPut {
				m.Value = []byte("v")
			}
			req.Mutations = append(req.Mutations, m)
		}
		if _, err := e.shard.Prewrite(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		return req
	}
	first := prewrite(mvcc.OpPut, mvcc.OpPut, mvcc.OpPut)
	commitTS := mustNow(t, oracle)
	for i, key := range keys {
		if err := e.shard.Commit(t.Context(), &kv.CommitRequest{Ranges: refs, StartTS: first.StartTS, CommitTS: commitTS, Keys: [][]byte{key}, Primary: i == 0}); err != nil {
			t.Fatal(err)
		}
	}
	prewrite(mvcc.OpDelete, mvcc.OpLock, mvcc.OpPut)
	found, err := e.shard.Check(t.Context(), func(f mvcc.Finding) error {
		t.Error(f)
		return nil
	}, func(int64) {})
	if err != nil || found.Locks != 3 || found.Versions != 3 {
		t.Errorf("%+v, %v", found, err)
	}
}
