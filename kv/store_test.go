package kv

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testStore is a store on a filesystem in memory, with its own oracle.
type testStore struct {
	*Store
	t      testing.TB
	engine *Engine
	oracle *tso.Local
}

func openTestStore(t testing.TB, fs storage.FS, change func(*Options)) *testStore {
	t.Helper()
	ctx := context.Background()
	engine, err := OpenEngine(EngineOptions{Dir: "data", FS: fs, MemTableBytes: 4 << 20, CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	oracle, err := tso.NewLocal(ctx, engine.WindowStore(), tso.Options{})
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Engine: engine, Oracle: oracle, EmbeddedOracle: true, ShardID: "a"}
	if change != nil {
		change(&opts)
	}
	store, err := Open(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	ts := &testStore{Store: store, t: t, engine: engine, oracle: oracle}
	t.Cleanup(ts.close)
	return ts
}

func (ts *testStore) close() {
	if ts.Store == nil {
		return
	}
	for _, err := range []error{ts.Store.Close(), ts.oracle.Close(), ts.engine.Close()} {
		if err != nil {
			ts.t.Error(err)
		}
	}
	ts.Store = nil
}

func (ts *testStore) now() tso.Timestamp {
	ts.t.Helper()
	now, err := ts.oracle.Now(context.Background())
	if err != nil {
		ts.t.Fatal(err)
	}
	return now
}

// refs returns the refs of all ranges.
func (ts *testStore) refs() []RangeRef {
	var refs []RangeRef
	for _, d := range ts.ownedRanges() {
		refs = append(refs, d.Ref())
	}
	return refs
}

func (ts *testStore) ref(key string) RangeRef {
	ts.t.Helper()
	d, _, err := ts.Router().Locate(context.Background(), []byte(key))
	if err != nil {
		ts.t.Fatal(err)
	}
	return d.Ref()
}

func put(key, value string) mvcc.Mutation {
	return mvcc.Mutation{Op: mvcc.OpPut, Key: []byte(key), Value: []byte(value)}
}

// onePC commits mutations, ascending by key, in one phase.
func (ts *testStore) onePC(ms ...mvcc.Mutation) tso.Timestamp {
	ts.t.Helper()
	res, err := ts.Prewrite(context.Background(), &PrewriteRequest{Ranges: ts.refs(), Mutations: ms,
		Primary: ms[0].Key, StartTS: ts.now(), TTLMillis: 3000, TxnSize: uint32(len(ms)), TryOnePC: true})
	if err != nil {
		ts.t.Fatal(err)
	}
	if res.OnePCCommitTS == 0 {
		ts.t.Fatal("not committed in one phase")
	}
	return res.OnePCCommitTS
}

func (ts *testStore) get(key string, readTS tso.Timestamp) string {
	ts.t.Helper()
	value, err := ts.Get(context.Background(), ts.ref(key), []byte(key), ReadOptions{ReadTS: readTS})
	if err != nil {
		ts.t.Fatal(err)
	}
	if value == nil {
		return "<none>"
	}
	return string(value)
}

// scanAll reads all pages of all ranges.
func (ts *testStore) scanAll(reverse bool, limit int) []string {
	ts.t.Helper()
	ctx, readTS := context.Background(), ts.now()
	var rows []string
	var at []byte
	for {
		locate, span := ts.Router().Locate, Span{Start: at}
		if reverse {
			locate, span = ts.Router().LocateEnd, Span{End: at}
		}
		d, shard, err := locate(ctx, at)
		if err != nil {
			ts.t.Fatal(err)
		}
		if reverse {
			span.Start = d.Span.Start
		} else {
			span.End = d.Span.End
		}
		res, err := shard.Scan(ctx, &ScanRequest{Ranges: []RangeRef{d.Ref()}, Spans: []Span{span}, Reverse: reverse, Limit: limit,
			ReadOptions: ReadOptions{ReadTS: readTS}})
		var stale *StaleRangeError
		if errors.As(err, &stale) {
			continue // split meanwhile
		}
		if err != nil {
			ts.t.Error(err)
			return rows
		}
		for _, row := range res.Rows {
			rows = append(rows, fmt.Sprintf("%s=%s", row.Key, row.Value))
		}
		switch {
		case res.ResumeKey != nil:
			at = res.ResumeKey
		case reverse && len(d.Span.Start) > 0:
			at = d.Span.Start
		case !reverse && len(d.Span.End) > 0:
			at = d.Span.End
		default:
			return rows
		}
	}
}

// Goal: what was committed is read at and above its commit_ts, before and after a restart, and a
// second store on the directory is refused. Method: one key, three readers, reopening.
func TestStoreKeepsWhatWasCommitted(t *testing.T) {
	fs := storage.NewMemFS()
	ts := openTestStore(t, fs, nil)
	before := ts.now()
	commitTS := ts.onePC(put("a", "1"), put("b", "2"))
	if got := ts.get("a", before); got != "<none>" {
		t.Errorf("read below the commit_ts gave %q", got)
	}
	if got := ts.get("a", commitTS); got != "1" {
		t.Errorf("read at the commit_ts gave %q", got)
	}
	if _, err := OpenEngine(EngineOptions{Dir: "data", FS: fs}); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("second engine: %v", err)
	}
	ts.close()
	ts = openTestStore(t, fs, nil)
	if got := ts.get("b", ts.now()); got != "2" {
		t.Errorf("after restart: %q", got)
	}
}

func mutations(ms ...mvcc.Mutation) []mvcc.Mutation { return ms }
