package storage

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// Goal: tables become part of the store all at once, survive a restart, and take precedence over what was
// there; iterators that rest do not hide them. Tables that were aborted, or left by a crash, leave no
// files.
func TestTablesAreIngestedWhole(t *testing.T) {
	fs := NewMemFS()
	open := func() *Engine {
		e, err := Open(Options{Dir: "data", FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	files := func() (n int) {
		names, err := fs.List("data")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, ingestSuffix) {
				n++
			}
		}
		return n
	}
	key := func(tag byte, i int) []byte {
		return AppendVersion(AppendSentinel(fmt.Appendf([]byte{tag}, "key%06d", i)), 7)
	}
	count := func(e *Engine) (n int) {
		it, err := e.NewRangeIter([]byte{'W'}, []byte{'Z'})
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			if v, err := it.Value(); err != nil || string(v) != "new" {
				t.Fatalf("%q: %q %v", it.Key(), v, err)
			}
			n++
		}
		return n
	}
	fill := func(e *Engine) *Tables {
		tables := e.NewTables()
		w, x := tables.NewSet(), tables.NewSet()
		for i := range 5000 {
			for _, err := range []error{w.Put(key('W', i), []byte("new")), x.Put(key('X', i), []byte("new"))} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		return tables
	}
	e := open()
	b := e.NewBatch(0)
	b.Put(key('W', 17), []byte("old"))
	if err := e.Apply(b, NoSync); err != nil {
		t.Fatal(err)
	}
	b.Close()
	aborted := fill(e)
	aborted.Abort()
	if n := files(); n != 0 {
		t.Fatalf("%d files are left of what was aborted", n)
	}
	rest, err := e.NewRangeIter([]byte{'W'}, []byte{'Z'}) // Close keeps it for the next user
	if err != nil {
		t.Fatal(err)
	}
	rest.Close()
	if err := fill(e).Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(e); n != 10_000 {
		t.Fatalf("%d keys after ingestion", n)
	}
	if n := files(); n != 0 {
		t.Fatalf("%d files are left of what was ingested", n)
	}
	for _, s := range fill(e).mu.sets { // as a crash would leave it
		if err := s.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	if files() == 0 {
		t.Fatal("no files are being written")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	defer e.Close()
	if n := count(e); n != 10_000 {
		t.Fatalf("%d keys after a restart", n)
	}
	if n := files(); n != 0 {
		t.Fatalf("%d files are left after a restart", n)
	}
}

// Goal: tables that lie around what the store has are ingested below it, and so not written again by a compaction,
// if the writer says where another part of the key space begins; however often it says so, files are few.
func TestBreaksKeepTablesApart(t *testing.T) {
	e, err := Open(Options{Dir: "data", FS: NewMemFS()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	key := func(tag byte, i int) []byte {
		return AppendVersion(AppendSentinel(fmt.Appendf([]byte{tag}, "key%06d", i)), 7)
	}
	b := e.NewBatch(0)
	b.Put(key('X', 0), []byte("in between"))
	if err := e.Apply(b, Sync); err != nil {
		t.Fatal(err)
	}
	b.Close()
	ingest := func(breaks int, first byte) {
		t.Helper()
		tables := e.NewTables()
		s := tables.NewSet()
		for part := range byte(2) {
			for i := range 1000 {
				if err := s.Put(key(first+2*part, i), []byte("new")); err != nil {
					t.Fatal(err)
				}
				if part == 0 && i < breaks {
					if err := s.Break(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if breaks > 0 {
				if err := s.Break(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := len(tables.mu.paths); n > maxBreaks+1 {
			t.Fatalf("%d files", n)
		}
		if err := tables.Ingest(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	inLowest := func() int { m := e.db.Metrics(); return int(m.Levels[6].TablesIngested) }
	ingest(1, 'W') // W and Y, about X
	if n := inLowest(); n != 3 {
		t.Fatalf("%d of 3 tables are in the lowest level", n)
	}
	ingest(1000, 'a')
	if n := inLowest(); n != 3+maxBreaks+1 {
		t.Fatalf("%d tables are in the lowest level", n)
	}
}

// Goal: damage to the log takes nothing from before ingested tables while it leaves these. Method: commit rows, ingest
// tables, damage every log as soon as the memtable is flushed, and accept the loss.
func TestDamageDoesNotReachBehindTables(t *testing.T) {
	fs := NewMemFS()
	e, err := Open(Options{Dir: "data", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	key := func(tag byte) []byte { return AppendVersion(AppendSentinel([]byte{tag, 'k'}), 7) }
	b := e.NewBatch(0)
	b.Put(key('W'), []byte("before"))
	if err := e.Apply(b, Sync); err != nil {
		t.Fatal(err)
	}
	b.Close()
	tables := e.NewTables()
	if err := tables.NewSet().Put(key('X'), []byte("ingested")); err != nil {
		t.Fatal(err)
	}
	if err := tables.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); e.db.Metrics().Flush.Count == 0; {
		if time.Since(begun) > time.Minute {
			t.Fatal("the memtable is not flushed")
		}
		time.Sleep(time.Millisecond) // A flush has no signal that a test could wait for.
	}
	files := snapshot(t, fs)
	for again := snapshot(t, fs); !maps.Equal(files, again); again = snapshot(t, fs) {
		files = again // The engine was still writing: the files were not of one moment.
	}
	for name, content := range files {
		if strings.HasSuffix(name, ".log") && len(content) > 0 {
			damaged := []byte(content)
			for i := range damaged {
				damaged[i] ^= 0x55
			}
			files[name] = string(damaged)
		}
	}
	after, err := Open(Options{Dir: "data", FS: restore(t, files), AcceptDataLoss: true})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	for tag, want := range map[byte]string{'W': "before", 'X': "ingested"} {
		if v, ok, err := after.Get(nil, key(tag)); err != nil || !ok || string(v) != want {
			t.Errorf("%c: %q %v %v", tag, v, ok, err)
		}
	}
}
