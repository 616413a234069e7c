package storage

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// killed returns the files of an engine that was killed: 300 keys, some in tables, the rest in several
// logs.
func killed(t *testing.T) map[string]string {
	t.Helper()
	fs := vfs.NewMem()
	e := mustOpen(t, fs)
	defer mustClose(t, e)
	for i := range 300 {
		apply(t, e, Sync, fmt.Sprintf("k%03d", i))
		if i%50 == 49 && i < 200 {
			if err := e.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return snapshot(t, fs)
}

// tryDamaged opens a damaged directory, read-only and for writing: it opens with every key, or refuses or
// fails a read, and has changed nothing if it refused. It returns whether it opened with every key.
func tryDamaged(t *testing.T, what string, files map[string]string) bool {
	t.Helper()
	fs := restore(t, files)
	_ = verifyWhole(t, fs, true)
	if !maps.Equal(snapshot(t, fs), files) {
		t.Errorf("%s: the read-only engine changed the directory", what)
	}
	e, err := Open(Options{Dir: "data", FS: fs, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	if err != nil {
		if !maps.Equal(snapshot(t, fs), files) {
			t.Errorf("%s: refused (%v), but the directory has changed", what, err)
		}
		var damage *DamageError
		var format *FormatError
		if !errors.As(err, &damage) && !errors.As(err, &format) {
			t.Errorf("%s: %v, which does not say what to do", what, err)
		}
		return false
	}
	defer mustClose(t, e)
	for i := range 300 {
		k := fmt.Sprintf("k%03d", i)
		v, found, err := e.Get(nil, AppendSentinel([]byte(k)))
		switch {
		case err != nil:
			return false // told
		case !found || string(v) != k:
			t.Errorf("%s: %s is lost (%q)", what, k, v)
			return false
		}
	}
	return true
}

// flips is how many bits of a file are flipped, one after another.
var flips = 25

// Goal: one flipped bit in any file of a data directory, of a server that was stopped or killed, loses
// nothing silently. Method: flip a bit of every byte of logs, manifests and small files, and of many of tables.
func TestFlippedBitsAreNoticed(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for what, files := range map[string]map[string]string{"stopped": filled(t, 150), "killed": killed(t)} {
		noticed, harmless := map[string]int{}, map[string]int{}
		for name, text := range files {
			step := len(text)/shorter(flips) + 1
			for at := rng.IntN(step); at < len(text); at += step {
				flipped := []byte(text)
				flipped[at] ^= 1 << rng.IntN(8)
				damaged := maps.Clone(files)
				damaged[name] = string(flipped)
				kind := strings.Trim(name, "0123456789")
				if tryDamaged(t, fmt.Sprintf("%s, %s, byte %d of %d", what, name, at, len(text)), damaged) {
					harmless[kind]++
				} else {
					noticed[kind]++
				}
			}
		}
		t.Logf("%s: noticed %v, harmless %v", what, noticed, harmless)
		if noticed[logSuffix] == 0 || noticed[manifestPrefix] == 0 || noticed[tableSuffix] == 0 {
			t.Errorf("%s: noticed %v", what, noticed)
		}
	}
}

// shorter is a tenth of n with -short: opening a store takes long under the race detector.
func shorter(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// Goal: a file of a data directory that was cut short, or emptied, loses nothing silently. Method: cut each
// at many lengths.
func TestCutFilesAreNoticed(t *testing.T) {
	for what, files := range map[string]map[string]string{"stopped": filled(t, 150), "killed": killed(t)} {
		for name, text := range files {
			for length := 0; length < len(text); length += len(text)/shorter(60) + 1 {
				damaged := maps.Clone(files)
				damaged[name] = text[:length]
				tryDamaged(t, fmt.Sprintf("%s, %s cut to %d of %d bytes", what, name, length, len(text)), damaged)
			}
		}
	}
}

// Goal: a flipped bit in the last record of a log is refused with the offset and the way forward, and
// AcceptDataLoss then keeps what was written before it, and the damaged log. Method: flip one in each of
// many records, in the newest log and in one before it.
func TestDamagedLogIsRefusedWithAWayForward(t *testing.T) {
	fs := vfs.NewMem()
	e := mustOpen(t, fs)
	var logs []recordFile // the log that holds the i-th key
	for i := range 300 {
		apply(t, e, Sync, fmt.Sprintf("k%03d", i))
		slots := slices.DeleteFunc(e.synced.all(), func(s syncedSlot) bool { return s.kind != logRecords })
		logs = append(logs, slots[len(slots)-1].recordFile)
	}
	files := snapshot(t, fs)
	mustClose(t, e)
	for i := 0; i < 300; i += 23 {
		name := logs[i].String()
		at := strings.Index(files[name], fmt.Sprintf("k%03d", i))
		flipped := []byte(files[name])
		flipped[at] ^= 4
		damaged := maps.Clone(files)
		damaged[name] = string(flipped)
		mem := restore(t, damaged)
		var damage *DamageError
		if err := verifyWhole(t, mem, false); !errors.As(err, &damage) || !damage.Log || !strings.Contains(damage.Detail, "offset") {
			t.Fatalf("key %d: %v", i, err)
		}
		if !maps.Equal(snapshot(t, mem), damaged) {
			t.Fatalf("key %d: refused, but the directory has changed", i)
		}
		e, err := Open(Options{Dir: "data", FS: mem, CacheBytes: 1 << 20, MemTableBytes: 1 << 20, AcceptDataLoss: true})
		if err != nil {
			t.Fatalf("key %d: data loss accepted: %v", i, err)
		}
		for j := range 300 {
			if k := fmt.Sprintf("k%03d", j); has(t, e, k) != (j < i) {
				t.Errorf("damage at key %d: key %d is there: %v", i, j, has(t, e, k))
			}
		}
		apply(t, e, Sync, "after")
		mustClose(t, e)
		if snapshot(t, mem)[name+damagedSuffix] != damaged[name] {
			t.Errorf("key %d: the damaged log was not kept", i)
		}
		e = mustOpen(t, mem)
		if !has(t, e, "after") {
			t.Error("a key written afterwards is lost")
		}
		mustClose(t, e)
	}
}

// Goal: no power cut makes a healthy directory look damaged, logs and manifests being created and removed all
// the time. Method: a small memtable, batches synced or not, flushes, cuts at random, several in a row.
func TestPowerCutsAreNoDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for round := range 20 {
		fs := vfs.NewCrashableMem()
		keys := 0
		for range 4 {
			e, err := Open(Options{Dir: "data", FS: fs, MemTableBytes: 64 << 10, CacheBytes: 1 << 20})
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			for i := range keys {
				if !has(t, e, fmt.Sprintf("k%d", i)) {
					t.Fatalf("round %d: synced key %d is lost", round, i)
				}
			}
			synced := keys
			for range rng.IntN(200) {
				b := e.NewBatch(0)
				b.Put(AppendSentinel(fmt.Appendf(nil, "k%d", keys)), make([]byte, rng.IntN(3000)))
				d := Durability(rng.IntN(2))
				if err := errors.Join(e.Apply(b, d), b.SyncWait()); err != nil {
					t.Fatal(err)
				}
				b.Close()
				if keys++; d == Sync {
					synced = keys
				}
				if rng.IntN(30) == 0 {
					if err := e.Flush(); err != nil {
						t.Fatal(err)
					}
					synced = keys
				}
			}
			keys = synced
			crashed := CrashClone(fs, rng.IntN(101), rng)
			mustClose(t, e)
			fs = crashed
		}
	}
}

// unpack returns the files of a data directory kept in an archive.
func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name[strings.LastIndexByte(h.Name, '/')+1:]] = string(text)
	}
}

// Goal: a directory of an older format, whose server was killed, is upgraded at start with all it holds; if the
// upgrade is cut off, the next start takes it up; reading it changes nothing. Method: kept directories.
func TestUpgradeFromFormat2(t *testing.T) { testUpgrade(t, "testdata/format2.tar.gz") }

func TestUpgradeFromFormat3(t *testing.T) { testUpgrade(t, "testdata/format3.tar.gz") }

func TestUpgradeFromFormat4(t *testing.T) { testUpgrade(t, "testdata/format4.tar.gz") }

func testUpgrade(t *testing.T, kept string) {
	files := unpack(t, kept)
	count := func(e *Engine) (n int) {
		it, err := e.NewRangeIter([]byte{0, 0}, []byte{255, 0})
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			n++
		}
		return n
	}
	readOnly := restore(t, files)
	e, err := Open(Options{Dir: "data", FS: readOnly, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	want := count(e)
	mustClose(t, e)
	if want < 1000 || !maps.Equal(snapshot(t, readOnly), files) {
		t.Errorf("read-only: %d keys; unchanged: %v", want, maps.Equal(snapshot(t, readOnly), files))
	}
	for n := 1; ; n++ {
		fs := restore(t, files)
		var mu sync.Mutex // Pebble deletes files, and the table of what was synced changes, in a goroutine of its own
		changes := 0
		var crashed map[string]string
		e := mustOpen(t, errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if strings.Contains(op.Path, "PERCODB_") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				mu.Lock()
				defer mu.Unlock()
				if changes++; changes == n {
					crashed = snapshot(t, fs)
				}
			}
			return nil
		})))
		mustClose(t, e)
		if crashed == nil {
			crashed = snapshot(t, fs)
		}
		e = mustOpen(t, restore(t, crashed))
		if got := count(e); got != want {
			t.Errorf("%d keys after an upgrade cut off at change %d, %d before", got, n, want)
		}
		mustClose(t, e)
		if changes < n {
			if got := crashed[formatFile]; got != fmt.Sprintf("%s%d\n", formatPrefix, FormatVersion) {
				t.Errorf("format after the upgrade: %q", got)
			}
			return
		}
	}
}
