package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	ports "github.com/percodb/percodb/internal/process"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is an oracle's process with the directory, kv processes, and the connections of one
// SQL process, all of them here but joined by gRPC only.
type cluster struct {
	t      testing.TB
	oracle *tsorpc.Client
	dir    *Directory
	router kv.Router
	procs  []*process
	graph  waitgraph.Graph // of single

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn
}

func newCluster(t testing.TB, kvProcesses int) *cluster {
	t.Helper()
	c := &cluster{t: t, conns: map[string]*grpc.ClientConn{}}
	t.Cleanup(func() {
		for _, conn := range c.conns {
			conn.Close()
		}
	})
	engine, err := kv.OpenEngine(kv.EngineOptions{Dir: "oracle", FS: storage.NewMemFS(), CacheBytes: 1 << 20})
	c.must(err)
	local, err := tso.NewLocal(context.Background(), engine.WindowStore(), tso.Options{})
	c.must(err)
	dir, err := kv.OpenDirectory(kv.DirectoryOptions{Engine: engine, Dial: func(_ context.Context, info kv.ShardInfo) (kv.RangeOwner, error) {
		return NewOwner(c.connect(info.Addr), info.ID, ClientOptions{}), nil
	}})
	c.must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	server := tsorpc.NewGRPCServer()
	tsorpc.RegisterOracle(server, local)
	RegisterDirectory(server, dir)
	go server.Serve(l)
	t.Cleanup(func() {
		server.Stop()
		dir.Close()
		local.Close()
		engine.Close()
	})

	conn := c.connect(l.Addr().String())
	c.oracle = tsorpc.NewClient(conn, tsorpc.ClientOptions{})
	t.Cleanup(func() { c.oracle.Close() })
	c.dir = NewDirectory(conn, ClientOptions{})
	c.router, err = kv.NewRouter(kv.RouterOptions{Directory: c.dir, Dial: func(_ context.Context, info kv.ShardInfo) (kv.Shard, error) {
		return NewShard(c.connect(info.Addr), info.ID, ClientOptions{}), nil
	}})
	c.must(err)
	for i := range kvProcesses {
		p := &process{c: c, fs: storage.NewMemFS(), addr: freeAddr(t), id: fmt.Sprintf("kv%d", i)}
		c.procs = append(c.procs, p)
		p.start()
		t.Cleanup(p.kill)
	}
	return c
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// connect returns the connection to an address.
func (c *cluster) connect(addr string) *grpc.ClientConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns[addr] == nil {
		conn, err := tsorpc.Dial(addr)
		if err != nil {
			panic(err) // the address is a listener's own
		}
		c.conns[addr] = conn
	}
	return c.conns[addr]
}

func (c *cluster) db(opts percolator.Options) *percolator.DB {
	db := percolator.New(c.router, c.oracle, opts)
	c.t.Cleanup(func() { db.Close() })
	return db
}

// process is a kv process: a store behind a gRPC server, to be killed and started again on the same
// address and files.
type process struct {
	c      *cluster
	fs     storage.FS
	addr   string
	id     string
	store  *kv.Store
	server *grpc.Server
}

// freeAddr is an address that stays free while the process that listens there is away.
func freeAddr(t testing.TB) string {
	t.Helper()
	addr, err := ports.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func (p *process) start() {
	p.c.t.Helper()
	l, err := net.Listen("tcp", p.addr)
	p.c.must(err)
	p.addr = l.Addr().String()
	p.store, err = kv.Open(context.Background(), kv.Options{
		Dir: "data", FS: p.fs, CacheBytes: 8 << 20, ShardID: p.id, Addr: p.addr,
		Oracle: p.c.oracle, Directory: p.c.dir, RangeMaxBytes: 256 << 10})
	p.c.must(err)
	p.server = tsorpc.NewGRPCServer()
	RegisterShard(p.server, p.store)
	RegisterOwner(p.server, p.store)
	go p.server.Serve(l)
}

func (p *process) kill() {
	p.server.Stop()
	p.store.Close()
}

// spread puts a range on each kv process: keys with the prefixes a, b, ….
func (c *cluster) spread() {
	c.t.Helper()
	for i := range c.procs {
		prefix := byte('a' + i)
		c.must(c.router.CreateRange(context.Background(), kv.Span{Start: []byte{prefix}, End: []byte{prefix + 1}}))
	}
	owners := map[string]bool{}
	descs, err := c.router.Ranges(context.Background())
	c.must(err)
	for _, d := range descs {
		owners[d.Shard] = true
	}
	if len(owners) != len(c.procs) {
		c.t.Fatalf("ranges lie on %v", owners)
	}
}

// Goal: every verb of the Shard answers over gRPC as the store answers here: values and errors. Method:
// the protocol by hand, on the client, checked where the two could differ.
func TestVerbsOverTheNetwork(t *testing.T) {
	c := newCluster(t, 1)
	ctx := t.Context()
	now := func() tso.Timestamp {
		ts, err := c.oracle.Now(ctx)
		c.must(err)
		return ts
	}
	desc, shard, err := c.router.Locate(ctx, []byte("k"))
	c.must(err)
	refs := []kv.RangeRef{desc.Ref()}
	all := kv.Span{Start: desc.Span.Start, End: desc.Span.End}

	t1 := now()
	prewrite := &kv.PrewriteRequest{Ranges: refs, Primary: []byte("a"), StartTS: t1, TTLMillis: 5000, TxnSize: 3, Mutations: []mvcc.Mutation{
		{Op: mvcc.OpPut, Key: []byte("a"), Value: []byte("1")},
		{Op: mvcc.OpPut, Key: []byte("b"), Value: []byte{}, MustBeNew: true},
		{Op: mvcc.OpLock, Key: []byte("c")},
	}}
	res, err := shard.Prewrite(ctx, prewrite)
	c.must(err)
	if res.OnePCCommitTS != 0 || res.MinCommitTS <= t1 {
		t.Errorf("prewrite: %+v", res)
	}
	var locked *mvcc.KeyLockedError
	if _, err := shard.Get(ctx, refs[0], []byte("a"), kv.ReadOptions{ReadTS: now()}); !errors.As(err, &locked) || string(locked.Lock.Primary) != "a" || locked.Lock.TxnSize != 3 {
		t.Errorf("get of a locked key: %v", err)
	}
	if v, err := shard.GetLatest(ctx, refs[0], []byte("a"), 0); v.Value != nil || v.CommitTS != 0 || err != nil {
		t.Errorf("latest of a locked primary: %v %v", v, err)
	}
	if _, err := shard.GetLatest(ctx, refs[0], []byte("a"), res.MinCommitTS); !errors.As(err, &locked) || string(locked.Key) != "a" {
		t.Errorf("latest of a primary that may commit below the floor: %v", err)
	}
	locks, err := shard.ScanLock(ctx, &kv.ScanLockRequest{Range: refs[0], Span: all, MaxTS: now(), Limit: 10})
	if err != nil || len(locks) != 3 || string(locks[1].Key) != "b" {
		t.Errorf("locks: %v %v", locks, err)
	}
	if ttl, err := shard.Heartbeat(ctx, &kv.HeartbeatRequest{Range: refs[0], Primary: []byte("a"), StartTS: t1, TTLMillis: 9000}); ttl != 9000 || err != nil {
		t.Errorf("heartbeat: %d %v", ttl, err)
	}
	st, err := shard.CheckTxnStatus(ctx, &kv.CheckTxnStatusRequest{Range: refs[0], Primary: []byte("a"), StartTS: t1, NowTS: now()})
	if err != nil || st.Lock == nil || st.Lock.TTLMillis != 9000 {
		t.Errorf("status: %+v %v", st, err)
	}
	t2 := now()
	c.must(shard.Commit(ctx, &kv.CommitRequest{Ranges: refs, Keys: [][]byte{[]byte("a")}, StartTS: t1, CommitTS: t2, Primary: true}))
	through, err := shard.BatchGet(ctx, &kv.BatchGetRequest{Ranges: refs, Keys: [][]byte{[]byte("a"), []byte("b"), []byte("x")},
		ReadOptions: kv.ReadOptions{ReadTS: now(), Resolved: []kv.CommittedTxn{{StartTS: t1, CommitTS: t2}}}})
	if err != nil || string(through.Values[0]) != "1" || through.Values[1] == nil || len(through.Values[1]) != 0 || through.Values[2] != nil {
		t.Errorf("batch get through a lock: %+v %v", through, err)
	}
	st, err = shard.CheckTxnStatus(ctx, &kv.CheckTxnStatusRequest{Range: refs[0], Primary: []byte("a"), StartTS: t1, NowTS: now()})
	if err != nil || st.CommitTS != t2 || st.Lock != nil {
		t.Errorf("status: %+v %v", st, err)
	}
	c.must(shard.ResolveLock(ctx, &kv.ResolveLockRequest{Ranges: refs, Keys: [][]byte{[]byte("b"), []byte("c")}, StartTS: t1, CommitTS: t2}))
	page, err := shard.Scan(ctx, &kv.ScanRequest{Ranges: refs[:1], Spans: []kv.Span{all}, Limit: 1, ReadOptions: kv.ReadOptions{ReadTS: now()}})
	if err != nil || len(page.Rows) != 1 || string(page.Rows[0].Key) != "a" || page.ResumeKey == nil {
		t.Errorf("page: %+v %v", page, err)
	}
	page, err = shard.Scan(ctx, &kv.ScanRequest{Ranges: refs[:1], Spans: []kv.Span{all}, Limit: 9, Reverse: true, ReadOptions: kv.ReadOptions{ReadTS: now()}})
	if err != nil || len(page.Rows) != 2 || string(page.Rows[0].Key) != "b" || page.Rows[0].Value == nil || page.ResumeKey != nil {
		t.Errorf("page: %+v %v", page, err)
	}
	page, err = shard.Scan(ctx, &kv.ScanRequest{Ranges: refs, Spans: []kv.Span{{End: []byte("aa")}, {Start: []byte("c")}}, Limit: 9, KeysOnly: true,
		ReadOptions: kv.ReadOptions{ReadTS: now()}})
	if err != nil || len(page.Rows) != 1 || string(page.Rows[0].Key) != "a" || page.ResumeKey != nil {
		t.Errorf("page of two spans: %+v %v", page, err)
	}
	page, err = shard.Scan(ctx, &kv.ScanRequest{Ranges: refs, Spans: []kv.Span{{End: []byte("aa")}, {Start: []byte("b"), End: []byte("c")}}, Limit: 1, Reverse: true,
		ReadOptions: kv.ReadOptions{ReadTS: now()}})
	if err != nil || len(page.Rows) != 1 || string(page.Rows[0].Key) != "b" || string(page.ResumeKey) != "a\x00" {
		t.Errorf("page of two spans in reverse: %+v %v", page, err)
	}
	var unordered *mvcc.InvalidRequestError
	if _, err := shard.Scan(ctx, &kv.ScanRequest{Ranges: refs, Spans: []kv.Span{all, all}, Limit: 1, ReadOptions: kv.ReadOptions{ReadTS: now()}}); !errors.As(err, &unordered) {
		t.Errorf("overlapping spans: %v", err)
	}
	var staleSpans *kv.StaleRangeError
	if _, err := shard.Scan(ctx, &kv.ScanRequest{Ranges: []kv.RangeRef{{ID: 99, Epoch: 1}}, Spans: []kv.Span{all}, Limit: 1, ReadOptions: kv.ReadOptions{ReadTS: now()}}); !errors.As(err, &staleSpans) {
		t.Errorf("spans of a wrong range: %v", err)
	}
	t3 := now()
	_, err = shard.Prewrite(ctx, &kv.PrewriteRequest{Ranges: refs, Primary: []byte("b"), StartTS: t3, TTLMillis: 5000, TryOnePC: true,
		Mutations: []mvcc.Mutation{{Op: mvcc.OpDelete, Key: []byte("b")}}})
	c.must(err)
	page, err = shard.Scan(ctx, &kv.ScanRequest{Ranges: refs[:1], Spans: []kv.Span{all}, Limit: 9, ReadOptions: kv.ReadOptions{ReadTS: now()}})
	if err != nil || len(page.Rows) != 1 || page.Deleted != 1 {
		t.Errorf("page with a deleted key: %+v %v", page, err)
	}
	var committed *mvcc.AlreadyCommittedError
	if err := shard.Rollback(ctx, &kv.RollbackRequest{Ranges: refs, Keys: [][]byte{[]byte("a")}, StartTS: t1}); !errors.As(err, &committed) || committed.CommitTS != t2 {
		t.Errorf("rollback: %v", err)
	}
	var stale *kv.StaleRangeError
	if _, err := shard.Get(ctx, kv.RangeRef{ID: 99, Epoch: 1}, []byte("a"), kv.ReadOptions{ReadTS: now()}); !errors.As(err, &stale) || len(stale.Current) != 1 || stale.Current[0].Shard != "kv0" {
		t.Errorf("wrong range: %v", err)
	}
	if v, err := shard.GetLatest(ctx, refs[0], []byte("a"), t3); v.Value == nil || v.CommitTS != t2 || err != nil {
		t.Errorf("latest: %v %v", v, err)
	}
	if v, err := shard.GetLatest(ctx, refs[0], []byte("b"), t3); v.Value != nil || v.CommitTS <= t3 || err != nil {
		t.Errorf("latest of a deleted key: %v %v", v, err)
	}
	if v, err := shard.Get(ctx, refs[0], []byte("nothing"), kv.ReadOptions{ReadTS: now()}); v != nil || err != nil {
		t.Errorf("get of nothing: %q %v", v, err)
	}
}

// slowShard answers no prewrite before the request's context ends.
type slowShard struct {
	kv.Shard
	begun, ended chan error
}

func (s slowShard) Prewrite(ctx context.Context, _ *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	s.begun <- nil
	<-ctx.Done()
	s.ended <- ctx.Err()
	return kv.PrewriteResponse{}, ctx.Err()
}

// serveShard serves a shard by itself until the test ends, and returns a connection to it.
func serveShard(t *testing.T, shard kv.Shard) (*grpc.ClientConn, *grpc.Server) {
	t.Helper()
	server := tsorpc.NewGRPCServer()
	RegisterShard(server, shard)
	return connected(t, server), server
}

// connected starts a server that ends with the test, and returns a connection to it.
func connected(t *testing.T, server *grpc.Server) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	t.Cleanup(server.Stop)
	conn, err := tsorpc.Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Goal: I2 and I3. Method: a shard that does not answer; the caller cancels, has a deadline, or waits
// for the client's timeout; then the process goes away.
func TestSilenceAndCancellation(t *testing.T) {
	slow := slowShard{begun: make(chan error, 10), ended: make(chan error, 1)}
	conn, server := serveShard(t, slow)
	patient := NewShard(conn, "slow", ClientOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-slow.begun
		cancel()
	}()
	if _, err := patient.Prewrite(ctx, &kv.PrewriteRequest{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-slow.ended
	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond) // The request arrives within this time.
	defer cancel()
	if _, err := patient.Prewrite(ctx, &kv.PrewriteRequest{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	<-slow.ended
	var unavailable *kv.UnavailableError
	impatient := NewShard(conn, "slow", ClientOptions{Timeout: 500 * time.Millisecond})
	if _, err := impatient.Prewrite(t.Context(), &kv.PrewriteRequest{}); !errors.As(err, &unavailable) || unavailable.Shard != "slow" {
		t.Error(err)
	}
	<-slow.ended
	time.AfterFunc(20*time.Millisecond, server.Stop)
	if _, err := patient.Prewrite(t.Context(), &kv.PrewriteRequest{}); !errors.As(err, &unavailable) {
		t.Error(err)
	}
	if _, err := patient.Prewrite(t.Context(), &kv.PrewriteRequest{}); !errors.As(err, &unavailable) {
		t.Error(err)
	}
}

// Goal: large values and large pages fit.
func TestLargeMessages(t *testing.T) {
	c := newCluster(t, 1)
	db := c.db(percolator.Options{})
	txn, err := db.Begin(t.Context())
	c.must(err)
	big := bytes.Repeat([]byte("x"), 8<<20)
	c.must(txn.Put([]byte("big"), big))
	_, err = txn.Commit(t.Context())
	c.must(err)
	txn, err = db.Begin(t.Context())
	c.must(err)
	it := txn.Scan(t.Context(), kv.Span{}, percolator.ScanOptions{})
	defer it.Close()
	if !it.Next(t.Context()) || !bytes.Equal(it.Value(), big) {
		t.Fatal(it.Err())
	}
}

// Goal: money is neither made nor lost while kv processes are restarted and ranges split, and every
// transaction ends; a commit that was reported is there. Method: transfers between accounts on three
// processes; every client also writes a receipt with each transfer. At the end receipts are compared
// with what was reported, and the total with what it was.
func TestTransfersWhileProcessesRestart(t *testing.T) {
	c := newCluster(t, 3)
	c.spread()
	db := c.db(percolator.Options{})
	ctx := t.Context()
	const accounts = 12
	account := func(i int) []byte { return fmt.Appendf(nil, "%c-account-%02d", 'a'+i%3, i) }
	txn, err := db.Begin(ctx)
	c.must(err)
	for i := range accounts {
		c.must(txn.Put(account(i), []byte("100")))
	}
	_, err = txn.Commit(ctx)
	c.must(err)

	var stop atomic.Bool
	var reported sync.Map // receipt → true
	var committed atomic.Int64
	var wg sync.WaitGroup
	for client := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(client), 5))
			for n := 0; !stop.Load(); n++ {
				receipt := fmt.Sprintf("%c-receipt-%d-%d", 'a'+r.IntN(3), client, n)
				err := transfer(ctx, db, account(r.IntN(accounts)), account(r.IntN(accounts)), []byte(receipt))
				var conflict *mvcc.WriteConflictError
				var undetermined *percolator.UndeterminedError
				switch {
				case err == nil:
					reported.Store(receipt, true)
					committed.Add(1)
				case errors.As(err, &conflict):
					reported.Store(receipt, false)
				case errors.As(err, &undetermined):
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	commitMore := func() {
		for before := committed.Load(); committed.Load() < before+10 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
	}
	for i := range 6 {
		commitMore()
		p := c.procs[i%3]
		p.kill()
		time.Sleep(20 * time.Millisecond) // Clients send requests to the dead process.
		if i%2 == 1 {
			p.addr = freeAddr(t) // it comes back elsewhere
		}
		p.start()
	}
	commitMore()
	stop.Store(true)
	wg.Wait()
	checkBank(t, db, accounts*100, &reported)
}

// transfer moves one unit and leaves a receipt.
func transfer(ctx context.Context, db *percolator.DB, from, to, receipt []byte) error {
	txn, err := db.Begin(ctx)
	if err != nil {
		return err
	}
	values, err := txn.BatchGet(ctx, [][]byte{from, to})
	if err != nil {
		return err
	}
	a, errA := strconv.Atoi(string(values[0]))
	b, errB := strconv.Atoi(string(values[1]))
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if !bytes.Equal(from, to) {
		txn.Put(from, strconv.AppendInt(nil, int64(a-1), 10))
		txn.Put(to, strconv.AppendInt(nil, int64(b+1), 10))
	}
	if err := txn.Insert(receipt, []byte("x")); err != nil {
		return err
	}
	_, err = txn.Commit(ctx)
	return err
}

func checkBank(t *testing.T, db *percolator.DB, want int, reported *sync.Map) {
	t.Helper()
	ctx := t.Context()
	txn, err := db.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	total, receipts := 0, map[string]bool{}
	it := txn.Scan(ctx, kv.Span{}, percolator.ScanOptions{})
	defer it.Close()
	for it.Next(ctx) {
		if bytes.Contains(it.Key(), []byte("-account-")) {
			n, err := strconv.Atoi(string(it.Value()))
			if err != nil {
				t.Fatal(err)
			}
			total += n
		} else {
			receipts[string(it.Key())] = true
		}
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	if total != want {
		t.Errorf("total %d, want %d", total, want)
	}
	reported.Range(func(receipt, committed any) bool {
		if receipts[receipt.(string)] != committed.(bool) {
			t.Errorf("%s: reported as committed: %v, found: %v", receipt, committed, receipts[receipt.(string)])
		}
		return true
	})
}
