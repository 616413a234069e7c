package storage

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Goal: what was written is flushed once, when little more is written, and not before. Method: the bytes
// that were applied, look by look.
func TestRestFlusherWaitsForRest(t *testing.T) {
	var f idleFlusher
	for i, look := range []struct {
		written uint64
		want    bool
	}{
		{idleBytes / 2, false},              // too little to be worth it
		{8 << 20, false}, {16 << 20, false}, // busy
		{16<<20 + idleBytes, true},    // at rest
		{16<<20 + 2*idleBytes, false}, // nothing new
		{18 << 20, false}, {18 << 20, true},
	} {
		if got := f.due(look.written); got != look.want {
			t.Errorf("look %d, %d bytes: flush %v", i, look.written, got)
		}
	}
}

// Goal: an engine at rest has its data in tables. Method: write and wait for a table to appear.
func TestEngineFlushesAtRest(t *testing.T) {
	e, err := Open(Options{Dir: "db", FS: vfs.NewMem(), IdleFlushInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, e)
	b := e.NewBatch(0)
	for i := range 2048 {
		b.Put(key(fmt.Sprintf("k%04d", i), 1, false), bytes.Repeat([]byte{'v'}, 1024))
	}
	if err := e.Apply(b, NoSync); err != nil {
		t.Fatal(err)
	}
	b.Close()
	for m := e.db.Metrics(); m.Flush.Count == 0 || m.Total().TablesCount == 0; m = e.db.Metrics() {
		time.Sleep(time.Millisecond)
	}
}
