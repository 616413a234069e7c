package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func TestMain(m *testing.M) {
	// Pebble leaves its scheduler behind where its Open fails late.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}

func mustOpen(t *testing.T, fs FS) *Engine {
	t.Helper()
	e, err := Open(Options{Dir: "data", FS: fs, MemTableBytes: 1 << 20, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustClose(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func apply(t *testing.T, e *Engine, d Durability, keys ...string) {
	t.Helper()
	b := e.NewBatch(0)
	defer b.Close()
	for _, k := range keys {
		b.Put(AppendSentinel([]byte(k)), []byte(k))
	}
	if err := errors.Join(e.Apply(b, d), b.SyncWait()); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, e *Engine, k string) bool {
	t.Helper()
	_, found, err := e.Get(nil, AppendSentinel([]byte(k)))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Goal: directories of others are refused with errors that say why. Method: one directory in each
// of the states.
func TestOpenRefusesDirectoriesOfOthers(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, fs)
	if _, err := Open(Options{Dir: "data", FS: fs}); !errors.Is(err, ErrLocked) {
		t.Errorf("directory in use: %v", err)
	}
	mustClose(t, e)
	mustClose(t, mustOpen(t, fs))

	write := func(text string) {
		f, err := fs.Create("data/"+formatFile, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var format *FormatError
	write("percodb-format 7\n")
	if _, err := Open(Options{Dir: "data", FS: fs}); !errors.As(err, &format) || format.Found != "7" {
		t.Errorf("another format version: %v", err)
	}
	if err := fs.Remove("data/" + formatFile); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: "data", FS: fs}); !errors.As(err, &format) || format.Found != "" {
		t.Errorf("a Pebble that is not ours: %v", err)
	}
}

// Goal (I2): what was synced survives a power cut, and a batch survives whole or not at all. Method:
// cut the power at random points of a run of synced and unsynced batches of two keys.
func TestSyncedBatchesSurviveAPowerCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 20 {
		fs := vfs.NewCrashableMem()
		e := mustOpen(t, fs)
		synced := -1
		n := rng.IntN(40)
		for i := range n {
			d := NoSync
			if rng.IntN(3) == 0 {
				d, synced = Sync, i
			}
			apply(t, e, d, fmt.Sprintf("a%03d", i), fmt.Sprintf("b%03d", i))
		}
		crashed := CrashClone(fs, rng.IntN(101), rng)
		mustClose(t, e)
		e = mustOpen(t, crashed)
		for i := range n {
			a, b := has(t, e, fmt.Sprintf("a%03d", i)), has(t, e, fmt.Sprintf("b%03d", i))
			if a != b || i <= synced && !a {
				t.Errorf("round %d: batch %d of %d (synced up to %d): %v, %v", round, i, n, synced, a, b)
			}
		}
		mustClose(t, e)
	}
}

// brokenLog returns a filesystem on which writes to the log fail once broken is set: new files, or
// writes to those it has.
func brokenLog(fs vfs.FS, broken *atomic.Bool, creating bool) vfs.FS {
	return reusedLogs{errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && strings.HasSuffix(op.Path, ".log") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite &&
			creating == (op.Kind == errorfs.OpCreate) {
			return syscall.EIO
		}
		return nil
	}))}
}

// reusedLogs lets the injector see the writes of files that are used once more, too: those that errorfs returns from
// ReuseForWrite pass it by.
type reusedLogs struct{ *errorfs.FS }

func (fs reusedLogs) ReuseForWrite(_, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.Create(newName, category)
}

// Goal (I3): without an owner to tell, a failed write is an error, and the engine refuses all writes
// from then on. Method: the log cannot be written from some point on.
func TestFailedWriteIsAnError(t *testing.T) {
	var broken atomic.Bool
	e, err := Open(Options{Dir: "data", FS: brokenLog(vfs.NewMem(), &broken, false)})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, e, Sync, "before")
	broken.Store(true)
	write := func() error {
		b := e.NewBatch(0)
		defer b.Close()
		b.Put(AppendSentinel([]byte("after")), nil)
		return errors.Join(e.Apply(b, Sync), b.SyncWait())
	}
	var failed *FailedError
	if err := write(); !errors.As(err, &failed) || !errors.Is(err, syscall.EIO) {
		t.Errorf("first write: %v", err)
	}
	if err := write(); !errors.As(err, &failed) {
		t.Errorf("second write: %v", err)
	}
	broken.Store(false)
	_ = e.Close() // Pebble may complain; what counts is that it returns
}

// Goal: a disk without any space is told of at start too, where Pebble tries for ever to flush what it found
// in its log. Method: leave a log behind, open it on a disk without space for tables.
func TestOpenOnAFullDiskFails(t *testing.T) {
	mem := vfs.NewMem()
	e := mustOpen(t, mem)
	apply(t, e, Sync, "k")
	mustClose(t, e)
	var healed atomic.Bool // lets Pebble come to an end behind the test
	full := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".sst") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && !healed.Load() {
			return syscall.ENOSPC
		}
		return nil
	}))
	_, err := Open(Options{Dir: "data", FS: full})
	healed.Store(true)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("opened: %v", err)
	}
}

const brokenLogChild = "PERCODB_TEST_BROKEN_LOG"

// Goal: whatever write of the log fails, the owner is told once and can end the process in order:
// Pebble does not bring it down first. Method: a child process whose disk breaks, for new files
// and for writes, with many writers; its output and exit code.
func TestFailedWriteTellsTheOwner(t *testing.T) {
	if kind := os.Getenv(brokenLogChild); kind != "" {
		writeUntilBroken(kind == "create")
		return
	}
	for _, kind := range []string{"create", "write"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestFailedWriteTellsTheOwner$")
		cmd.Env = append(os.Environ(), brokenLogChild+"="+kind)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 7 || strings.Count(string(out), "told: ") != 1 ||
			!strings.Contains(string(out), "input/output error") || strings.Contains(string(out), "goroutine") {
			t.Errorf("%s: %v\n%s", kind, err, out)
		}
	}
}

// writeUntilBroken writes until the log breaks, and then exits by OnFatal, or not at all.
func writeUntilBroken(creating bool) {
	var broken atomic.Bool
	e, err := Open(Options{Dir: "data", FS: brokenLog(vfs.NewMem(), &broken, creating), MemTableBytes: 256 << 10, OnFatal: func(err error) {
		fmt.Println("told:", err)
		time.Sleep(50 * time.Millisecond) // others go on meanwhile
		os.Exit(7)
	}})
	if err != nil {
		panic(err)
	}
	value := make([]byte, 1000)
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				b := e.NewBatch(0)
				b.Put(AppendSentinel(fmt.Appendf(nil, "%d/%d", w, i)), value)
				if errors.Join(e.Apply(b, Sync), b.SyncWait()) != nil {
					return
				}
				b.Close()
				if i == 300 {
					broken.Store(true)
				}
			}
		}()
	}
	time.Sleep(time.Minute) // the process is killed meanwhile
}

// Goal: an iterator never misses what was applied before it was asked for, however many are kept
// open. Method: write, iterate, write, iterate; keep some aside between.
func TestIteratorsSeeEveryBatchApplied(t *testing.T) {
	e := mustOpen(t, vfs.NewMem())
	defer mustClose(t, e)
	lower, upper := []byte{'k', 0}, []byte{'l', 0}
	for i := range 200 {
		apply(t, e, NoSync, fmt.Sprintf("k%03d", i))
		for range 2 { // the second may be a kept one
			it, err := e.NewRangeIter(lower, upper)
			if err != nil {
				t.Fatal(err)
			}
			if !it.Last() || string(it.Key()) != fmt.Sprintf("k%03d\x00", i) {
				t.Fatalf("after batch %d the last key is %q", i, it.Key())
			}
			it.Close()
			p, err := e.NewPointIter(PointRead)
			if err != nil {
				t.Fatal(err)
			}
			if !p.SeekPrefixGE([]byte(fmt.Sprintf("k%03d\x00", i))) {
				t.Fatalf("after batch %d its key is missing", i)
			}
			p.Close()
		}
	}
}

// Goal: reading only blocks that hold some versions finds the same versions of them as reading all,
// though versions have been deleted, by keys and by ranges, in other files. Method: many tables, written and
// deleted from at random, some of them compacted; the version filter against a walk.
func TestProto_T_LAY_4(t *testing.T) {
	e := mustOpen(t, vfs.NewMem())
	defer mustClose(t, e)
	rng := rand.New(rand.NewPCG(5, 6))
	for table := range 16 {
		b := e.NewBatch(0)
		for range 500 {
			b.Put(key(fmt.Sprintf("k%04d", rng.IntN(2000)), uint64(table*50+rng.IntN(150)), false), []byte("v"))
		}
		for range 300 {
			b.Delete(key(fmt.Sprintf("k%04d", rng.IntN(2000)), uint64(rng.IntN(table*50+1)), false))
		}
		at := rng.IntN(1900)
		b.DeleteRange(key(fmt.Sprintf("k%04d", at), 0, true), key(fmt.Sprintf("k%04d", at+20), 0, true))
		if err := e.Apply(b, NoSync); err != nil {
			t.Fatal(err)
		}
		b.Close()
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		if table == 9 {
			if err := e.Compact(t.Context(), []byte{'W', 0}, []byte{'X', 0}); err != nil {
				t.Fatal(err)
			}
		}
	}
	walk := func(it *Iterator, from, to uint64) (keys []string) {
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			if _, v, _ := SplitVersion(it.Key()); from <= v && v < to {
				keys = append(keys, string(it.Key()))
			}
		}
		return keys
	}
	for range 100 {
		from := uint64(rng.IntN(900))
		to := from + uint64(rng.IntN(200))
		all, err := e.NewRangeIter([]byte{'W', 0}, []byte{'X', 0})
		if err != nil {
			t.Fatal(err)
		}
		some, err := e.NewVersionIter([]byte{'W', 0}, []byte{'X', 0}, from, to)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := walk(all, from, to), walk(some, from, to); !slices.Equal(a, b) {
			t.Errorf("versions [%d, %d): %d in a full walk, %d through the filter", from, to, len(a), len(b))
		}
	}
}
