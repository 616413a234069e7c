package mvcc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// Goal (sig-transaction#46): a commit_ts that a shard has computed is never another transaction's start_ts, so that the
// record of a commit and that of a rollback never have the same key. Method: the shard must compute timestamps as close
// as possible above the start_ts of transactions that are rolled back on the same key, before or after; then every
// record must still exist and be correct.
func TestProto_T_RB_3(t *testing.T) {
	w := newWorld(t, false, nil)
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(46, 1))
	type written struct {
		key string
		ts  tso.Timestamp
	}
	commits, rollbacks := map[written]tso.Timestamp{}, map[written]bool{}
	for range 500 {
		key := []byte{'a' + byte(rng.IntN(4))}
		writer, victim := w.now(), w.now()
		if err := w.BeginRead(ctx, victim); err != nil { // later computed timestamps must lie above it
			t.Fatal(err)
		}
		rollBack := func() {
			if err := w.Rollback(ctx, admitAll{}, [][]byte{key}, victim); err != nil {
				t.Fatal(err)
			}
			rollbacks[written{string(key), victim}] = true
		}
		if rng.IntN(2) == 0 {
			rollBack()
		}
		op := []Op{OpPut, OpDelete, OpLock}[rng.IntN(3)]
		commitTS := w.commitClosely(key, op, writer, rng.IntN(2) == 0)
		if commitTS != victim+1 || commitTS%tso.Tick == 0 {
			t.Fatalf("commit_ts %s, computed above %s", show(commitTS), show(victim))
		}
		commits[written{string(key), commitTS}] = writer
		rollBack() // the second time there is a record already
	}
	for at, startTS := range commits {
		st, err := w.CheckTxnStatus(ctx, admitAll{}, &CheckTxnStatusRequest{Primary: []byte(at.key), StartTS: startTS, NowTS: w.now()})
		if err != nil || st.CommitTS != at.ts {
			t.Errorf("%s, committed on %s at %s: %+v, %v", show(startTS), at.key, show(at.ts), st, err)
		}
	}
	for at := range rollbacks {
		_, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{StartTS: at.ts, Primary: []byte(at.key), TTLMillis: 3000, TryOnePC: true,
			Mutations: []Mutation{{Op: OpLock, Key: []byte(at.key)}}})
		if refused := (*RolledBackError)(nil); !errors.As(err, &refused) {
			t.Errorf("%s, rolled back on %s: %v", show(at.ts), at.key, err)
		}
	}
	if n := w.countRecords(); n != len(commits)+len(rollbacks) {
		t.Errorf("%d records of %d commits and %d rollbacks", n, len(commits), len(rollbacks))
	}
}

// commitClosely commits a change of one key at the smallest timestamp that the shard can compute.
func (w *world) commitClosely(key []byte, op Op, startTS tso.Timestamp, onePC bool) tso.Timestamp {
	ctx := context.Background()
	args := &PrewriteRequest{StartTS: startTS, Primary: key, TTLMillis: 3000, FloorTS: startTS, TryOnePC: onePC, Async: !onePC,
		Mutations: []Mutation{{Op: op, Key: key}}}
	if op == OpPut {
		args.Mutations[0].Value = fmt.Append(nil, startTS)
	}
	res, err := w.Prewrite(ctx, admitAll{}, args)
	if err != nil {
		w.t.Fatal(err)
	}
	if onePC {
		return res.OnePCCommitTS
	}
	if _, err := w.Commit(ctx, admitAll{}, [][]byte{key}, startTS, res.MinCommitTS, true); err != nil {
		w.t.Fatal(err)
	}
	return res.MinCommitTS
}

// countRecords counts the stored records of commits and rollbacks.
func (w *world) countRecords() (n int) {
	for _, tag := range []byte{tagWrite, tagStatus} {
		it, err := w.eng.NewRangeIter(appendPrefix(nil, tag, nil), appendUpper(nil, tag, nil))
		if err != nil {
			w.t.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			if _, _, versioned := storage.SplitVersion(it.Key()); versioned {
				n++
			}
		}
		it.Close()
	}
	return n
}
