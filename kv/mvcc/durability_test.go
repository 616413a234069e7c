package mvcc

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// syncGate delays syncs of the write-ahead log while it is closed, or fails them.
type syncGate struct {
	mu   sync.Mutex
	open *sync.Cond
	shut bool
	err  error
}

func newSyncGate() *syncGate {
	g := &syncGate{}
	g.open = sync.NewCond(&g.mu)
	return g
}

func (g *syncGate) set(shut bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.err = shut, err
	g.open.Broadcast()
}

func (g *syncGate) wrap(fs storage.FS) storage.FS {
	return allFiles{errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !strings.HasSuffix(op.Path, ".log") || op.Kind != errorfs.OpFileSync && op.Kind != errorfs.OpFileSyncData && op.Kind != errorfs.OpFileSyncTo {
			return nil
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		for g.shut {
			g.open.Wait()
		}
		return g.err
	}))}
}

// allFiles shows an injector the changes of files that are used once more, too: those that errorfs returns from
// ReuseForWrite pass it by.
type allFiles struct{ *errorfs.FS }

func (fs allFiles) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.Remove(oldName); err != nil {
		return nil, err
	}
	return fs.Create(newName, category)
}

// await yields until cond holds.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for n, end := 0, time.Now().Add(time.Minute); n%1000 != 0 || time.Now().Before(end); n++ {
		if cond() {
			return
		}
		runtime.Gosched()
	}
	t.Fatalf("%s: never", what)
}

// waitedFor reports whether a request waits for the lock on key.
func (w *world) waitedFor(key string) bool {
	w.locks.mu.RLock()
	defer w.locks.mu.RUnlock()
	e := w.locks.getLocked([]byte(key))
	return e != nil && e.done != nil
}

// visible reports whether the store shows a version of key, synced or not.
func (w *world) visible(key string) bool {
	it, err := w.eng.NewPointIter(storage.PointRead)
	if err != nil {
		w.t.Fatal(err)
	}
	defer it.Close()
	return it.SeekPrefixGE(appendPrefix(nil, tagWrite, []byte(key)))
}

func (w *world) get(key string, readTS tso.Timestamp) (string, error) {
	ctx := context.Background()
	if err := w.BeginRead(ctx, readTS); err != nil {
		return "", err
	}
	value, err := w.getOrLatest(ctx, []byte(key), &ReadOptions{ReadTS: readTS})
	return string(value), err
}

// getOrLatest is Get, or GetLatest.
func (w *world) getOrLatest(ctx context.Context, key []byte, o *ReadOptions) ([]byte, error) {
	if o.ReadTS != tso.MaxTimestamp {
		return w.Get(ctx, key, o)
	}
	latest, err := w.GetLatest(ctx, key, o.FloorTS)
	return latest.Value, err
}

// Goal: Pebble shows a batch before it is synced, and readers still never see what a power cut could undo. Method:
// delay the sync of a one-phase commit and of a primary's commit; examine the store, a reader, and what a power cut
// would leave.
func TestProto_T_DUR_1(t *testing.T) {
	readerWaitsForSync(t, true, false)
	readerWaitsForSync(t, false, false)
}

// Goal: a read of the latest value waits for the sync of a primary's commit, and of a one-phase one.
// Method: as for T-DUR-1.
func TestProto_T_DUR_3(t *testing.T) {
	readerWaitsForSync(t, false, true)
	readerWaitsForSync(t, true, true)
}

// Goal: while the batch of a one-phase commit is in flight a reader at or above its commit_ts waits and then sees it;
// one below ignores it. Method: as for T-DUR-1; the reader below comes first.
func TestProto_T_1PC_3(t *testing.T) { readerWaitsForSync(t, true, false) }

func readerWaitsForSync(t *testing.T, onePC, latest bool) {
	ctx := context.Background()
	gate := newSyncGate()
	w := newWorld(t, true, gate.wrap)
	startTS := w.now()
	args := &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: []byte("x"), Value: []byte("1")}},
		Primary: []byte("x"), StartTS: startTS, TTLMillis: 3000, TryOnePC: onePC}
	finish := func() error {
		_, err := w.Prewrite(ctx, admitAll{}, args)
		return err
	}
	if !onePC {
		if err := finish(); err != nil {
			t.Fatal(err)
		}
		finish = func() error {
			_, err := w.Commit(ctx, admitAll{}, [][]byte{[]byte("x")}, startTS, w.now(), true)
			return err
		}
	}
	below := w.now()
	gate.set(true, nil)
	done := make(chan error, 1)
	go func() { done <- finish() }()
	await(t, "the version shows in the store", func() bool { return w.visible("x") })
	if onePC { // a two-phase lock existed before; its reader below waits or checks its status
		if v, err := w.get("x", below); v != "" || err != nil {
			t.Errorf("read below the commit_ts: %q, %v", v, err)
		}
	}
	readTS := tso.MaxTimestamp
	if !latest {
		readTS = w.now()
	}
	read := make(chan string, 1)
	go func() {
		v, err := w.get("x", readTS)
		if err != nil {
			v = err.Error()
		}
		read <- v
	}()
	await(t, "the reader waits", func() bool { return w.waitedFor("x") })
	lost := storage.CrashClone(w.fs, 0, nil)
	select {
	case v := <-read:
		t.Errorf("read %q before the sync", v)
	default:
	}
	gate.set(false, nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if v := <-read; v != "1" {
		t.Errorf("read %q after the sync", v)
	}
	w.checkLost(lost)
}

// checkLost verifies that a filesystem does not contain the version of x.
func (w *world) checkLost(fs *storage.MemFS) {
	w.t.Helper()
	eng, err := storage.Open(storage.Options{Dir: "d", FS: fs})
	if err != nil {
		w.t.Fatal(err)
	}
	defer eng.Close()
	it, err := eng.NewPointIter(storage.PointRead)
	if err != nil {
		w.t.Fatal(err)
	}
	defer it.Close()
	if it.SeekPrefixGE(appendPrefix(nil, tagWrite, []byte("x"))) {
		w.t.Error("the test proves nothing: the version was durable when the reader waited")
	}
}

// Goal: a failed sync is an error for the writer and for every request that waits for it; no reader sees the version.
// Method: delay a sync, let readers wait, fail it.
func TestFailedSyncReachesAllWaiters(t *testing.T) {
	gate := newSyncGate()
	w := &world{t: t, fs: storage.NewCrashableMemFS(), oracle: &stepOracle{}, embedded: true, wrap: gate.wrap}
	w.open()
	gate.set(true, nil)
	done := make(chan error, 2)
	go func() {
		_, err := w.Prewrite(context.Background(), admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: []byte("x"), Value: []byte("1")}},
			Primary: []byte("x"), StartTS: w.now(), TryOnePC: true})
		done <- err
	}()
	await(t, "the version shows in the store", func() bool { return w.visible("x") })
	go func() {
		_, err := w.get("x", w.now())
		done <- err
	}()
	await(t, "the reader waits", func() bool { return w.waitedFor("x") })
	gate.set(false, syscall.EIO)
	var failed *storage.FailedError
	for range 2 {
		if err := <-done; !errors.As(err, &failed) || !errors.Is(err, syscall.EIO) {
			t.Errorf("error %v", err)
		}
	}
	if _, err := w.get("x", w.now()); !errors.As(err, &failed) {
		t.Errorf("a later read: %v", err)
	}
	gate.set(false, nil)
	_ = w.eng.Close() // the engine has failed; what counts is that Close returns
}

// Goal: who reads notify cells does not see the change of a commit that a power cut could undo, and that nobody would deliver again in
// the same way. Method: delay the sync of a one-phase commit, and read its cell, by key and among all.
func TestCellsWaitForSync(t *testing.T) {
	for name, end := range map[string]string{"one": "x\x00", "all": ""} {
		t.Run(name, func(t *testing.T) { cellsWaitForSync(t, []byte(end)) })
	}
}

func cellsWaitForSync(t *testing.T, end []byte) {
	gate := newSyncGate()
	w := newWorld(t, true, gate.wrap)
	gate.set(true, nil)
	done := make(chan error, 1)
	go func() {
		_, err := w.Prewrite(context.Background(), admitAll{}, &PrewriteRequest{Mutations: []Mutation{notified(OpPut, "x", "1")}, Notify: testSets,
			Primary: []byte("x"), StartTS: w.now(), TTLMillis: 3000, TryOnePC: true})
		done <- err
	}()
	await(t, "the version shows in the store", func() bool { return w.visible("x") })
	cells := make(chan int, 1)
	go func() {
		page, err := w.NotifyScan(context.Background(), []byte("x"), end, testObserver, 10, 1000)
		if err != nil {
			t.Error(err)
		}
		cells <- len(page.Cells)
	}()
	await(t, "the scan waits", func() bool { return w.waitedFor("x") || len(cells) > 0 })
	lost := storage.CrashClone(w.fs, 0, nil)
	early := len(cells)
	gate.set(false, nil)
	if early > 0 {
		t.Error("the cells were told before the sync")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := <-cells; n != 1 {
		t.Errorf("%d cells after the sync", n)
	}
	w.checkLost(lost)
}
