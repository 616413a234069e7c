package bigtable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/tsotest"
)

// Goal: the size of the table is what Bigtable states, asked for once in a while; it is missing if Bigtable does not answer, and an error if it
// refuses. Method: a table of a mebibyte; the emulator is then stopped, and another table named.
func TestTableSize(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ctx := t.Context()
	for i := range 64 {
		e.mustPut(t, fmt.Sprintf("row%d=%s", i, strings.Repeat("x", 16<<10)))
	}
	var size int64
	got := e.requestsOf(func() {
		for range 3 {
			sizes, err := e.RangeSizes(ctx)
			if size = sizes[theRange().ID]; err != nil {
				t.Error(err)
			}
		}
		if st, err := e.shard.Status(ctx); err != nil || st.RangeSizes[theRange().ID] != size {
			t.Errorf("status %+v %v", st, err)
		}
	})
	if got != "SampleRowKeys 1" || size < 1<<20 || size > 3<<19 {
		t.Errorf("%d bytes by %s", size, got)
	}
	e.client.tableSize.read = time.Now().Add(-2 * sizeLife)
	if got := e.requestsOf(func() { _, _ = e.RangeSizes(ctx) }); got != "SampleRowKeys 1" {
		t.Errorf("after its life: %q", got)
	}
	e.client.tableSize.read = time.Time{}
	table := e.client.opts.Table
	e.client.opts.Table = "other"
	if sizes, err := e.RangeSizes(ctx); errkind.Of(err) != errkind.Refused {
		t.Errorf("of no table: %v %v", sizes, err)
	}
	e.client.opts.Table, e.client.opts.RequestTimeout = table, 100*time.Millisecond
	e.server.Close()
	if sizes, err := e.RangeSizes(ctx); err != nil || len(sizes) != 0 {
		t.Errorf("without an answer: %v %v", sizes, err)
	}
}
