package ddl

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/percodb/percodb/catalog"
)

// Goal: a cancel reaches an index build, or a rewrite, that is merging what it has written to files. Method: keys that
// are in no order, written under a context that has ended after the runs have become many.
func TestCancelReachesMergeOfChunks(t *testing.T) {
	s := newServer(t, catalog.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	block, err := s.db.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer block.Close()
	for _, alone := range []bool{true, false} {
		r := &run{Deps: &Deps{DB: s.db, OneTransaction: true}, alone: alone, txn: block}
		c := r.newChunks()
		ctx, cancel := context.WithCancel(ctx)
		key := func(i int) []byte {
			return binary.BigEndian.AppendUint32([]byte{0x02, 0x70, 0x01}, uint32(i)*2654435761)
		}
		n := 0
		for ; n < 10*mergeEvery; n++ {
			if err := c.put(ctx, key(n), []byte("value")); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		for ; err == nil && n < 12*mergeEvery; n++ {
			err = c.put(ctx, key(n), []byte("value"))
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("alone %v: after %d writes: %v", alone, n, err)
		}
		if alone {
			if err := c.finish(ctx, err); !errors.Is(err, context.Canceled) {
				t.Errorf("finish: %v", err)
			}
		}
		err = nil
	}
}
