package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// snapshot returns the contents of all files of a directory.
func snapshot(t *testing.T, fs FS) map[string]string {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range names {
		f, err := fs.Open(fs.PathJoin("data", name))
		if isNotExist(err) {
			continue // an engine has removed it
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return files
}

// restore returns a filesystem with a directory of the files.
func restore(t *testing.T, files map[string]string) *MemFS {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("data", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		f, err := fs.Create(fs.PathJoin("data", name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil { // a copy: Write may change its argument
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// filled returns the files of a closed engine: table files of several levels and a log, with keys k000
// to k299. half says how many keys lie in table files.
func filled(t *testing.T, half int) map[string]string {
	t.Helper()
	fs := vfs.NewMem()
	e := mustOpen(t, fs)
	for i := range 300 {
		apply(t, e, Sync, fmt.Sprintf("k%03d", i))
		if i < half && i%50 == 49 {
			if err := e.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustClose(t, e)
	return snapshot(t, fs)
}

// verifyWhole opens a directory and returns the error, or nil with all keys there.
func verifyWhole(t *testing.T, fs FS, readOnly bool) (err error) {
	t.Helper()
	e, err := Open(Options{Dir: "data", FS: fs, ReadOnly: readOnly, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	if err != nil {
		return err
	}
	defer mustClose(t, e)
	for i := range 300 {
		k := fmt.Sprintf("k%03d", i)
		v, found, err := e.Get(nil, AppendSentinel([]byte(k)))
		if err != nil {
			return err
		}
		if !found || string(v) != k {
			t.Errorf("%s is lost", k)
			return nil
		}
	}
	return nil
}

// Goal: whichever file of a data directory is missing, the engine opens with every key, or refuses, and
// leaves the directory as it was. Method: remove each file in turn; then markers together.
func TestMissingFilesAreRefusedOrHarmless(t *testing.T) {
	for _, half := range []int{0, 150, 300} {
		files := filled(t, half)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			rest := maps.Clone(files)
			delete(rest, name)
			fs := restore(t, rest)
			if err := verifyWhole(t, fs, true); !maps.Equal(snapshot(t, fs), rest) {
				t.Errorf("without %s: the read-only engine changed the directory (%v)", name, err)
			}
			err := verifyWhole(t, fs, false)
			if err == nil {
				continue
			}
			if !maps.Equal(snapshot(t, fs), rest) {
				t.Errorf("without %s: %v, but the directory has changed", name, err)
			}
			var damage *DamageError
			var format *FormatError
			if !errors.As(err, &damage) && !errors.As(err, &format) {
				t.Errorf("without %s: %v, which does not say what to do", name, err)
			}
		}
	}
}

// Goal: a directory whose manifest marker is missing is refused, though all its other files are there; a
// directory with files of others as well. Method: each; the read-only engine too.
func TestOpenRefusesADirectoryWithoutItsMarker(t *testing.T) {
	files := filled(t, 150)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, manifestMarker) })
	for _, readOnly := range []bool{true, false} {
		fs := restore(t, files)
		var damage *DamageError
		if err := verifyWhole(t, fs, readOnly); !errors.As(err, &damage) || !strings.Contains(err.Error(), "marker.manifest.") {
			t.Errorf("without the manifest's marker: %v", err)
		}
		if !maps.Equal(snapshot(t, fs), files) {
			t.Error("the directory has changed")
		}
		fs = restore(t, map[string]string{"letter.txt": "dear"})
		var format *FormatError
		if _, err := Open(Options{Dir: "data", FS: fs, ReadOnly: readOnly}); !errors.As(err, &format) || format.Found != "" {
			t.Errorf("a directory of others: %v", err)
		}
		if len(snapshot(t, fs)) != 1 {
			t.Error("the directory of others has changed")
		}
	}
}

// Goal: creation that a power cut ended at any point is taken up at the next start. Method: open a new
// directory, and again what a power cut before the n-th change left.
func TestCreationThatWasCutOffGoesOn(t *testing.T) {
	for n := 1; ; n++ {
		fs := vfs.NewCrashableMem()
		changes := 0
		var crashed *MemFS
		e := mustOpen(t, beforeChanges(fs, func() {
			if changes++; changes == n {
				crashed = CrashClone(fs, 0, nil)
			}
		}))
		mustClose(t, e)
		if crashed == nil {
			return
		}
		e, err := Open(Options{Dir: "data", FS: crashed, MemTableBytes: 1 << 20, CacheBytes: 1 << 20})
		if err != nil {
			t.Fatalf("after a power cut before change %d: %v", n, err)
		}
		apply(t, e, Sync, "k")
		mustClose(t, e)
	}
}

// Goal: what a read-only engine is given to write can be read back, and is gone afterwards.
func TestReadOnlyEngineForgetsWhatIsWritten(t *testing.T) {
	files := filled(t, 150)
	fs := restore(t, files)
	e, err := Open(Options{Dir: "./data", FS: fs, ReadOnly: true, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		b := e.NewBatch(0)
		b.Put(AppendSentinel(fmt.Appendf(nil, "new%d", i)), bytes.Repeat([]byte("v"), 100_000))
		if err := errors.Join(e.Apply(b, Sync), b.SyncWait()); err != nil {
			t.Fatal(err)
		}
		b.Close()
	}
	if err := e.Compact(t.Context(), []byte{0}, []byte{255}); err != nil {
		t.Fatal(err)
	}
	if !has(t, e, "new49") || !has(t, e, "k000") || !has(t, e, "k299") {
		t.Error("a key is missing")
	}
	if _, err := Open(Options{Dir: "data", FS: fs}); !errors.Is(err, ErrLocked) {
		t.Errorf("a server starts meanwhile: %v", err)
	}
	mustClose(t, e)
	if !maps.Equal(snapshot(t, fs), files) {
		t.Error("the directory has changed")
	}
}

// beforeChanges returns a filesystem that calls f before each change.
func beforeChanges(fs FS, f func()) FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			f()
		}
		return nil
	}))
}
