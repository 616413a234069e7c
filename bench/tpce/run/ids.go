package run

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"github.com/percodb/percodb/bench/tpce/journal"
)

// Ranges of trade ids above those of the load: consecutive blocks, scattered blocks, and the
// sequence's. They are disjoint.
const (
	blockSize     = 10_000
	scatterSize   = 1_000
	scatterOpen   = 64 // blocks in use at a time
	scatterBase   = 1 << 41
	scatterStride = 1 << 24 // distance of neighbouring blocks
	sequenceBase  = 1 << 42
)

// place returns the first id of a scattered block. Consecutive blocks are far apart: the low 16
// bits of their number, reversed, determine their position.
func place(block int64) int64 {
	return scatterBase + int64(bits.Reverse16(uint16(block)))*scatterStride + block>>16*scatterSize
}

// span is the unused ids [next, end) of a block.
type span struct{ next, end int64 }

// leased is a txn.IDSource of ids from blocks leased from the database.
type leased struct {
	meta    *metaStore
	journal *journal.Writer
	first   int64 // first id above those of the load
	scatter bool

	mu    sync.Mutex
	spans []span // of the blocks with unused ids
	turn  int
}

// Next returns an unused id. If none are left it leases more, and waits for the server.
func (l *leased) Next(ctx context.Context) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.spans) == 0 {
		if err := l.lease(ctx); err != nil {
			return 0, err
		}
	}
	l.turn = (l.turn + 1) % len(l.spans)
	s := &l.spans[l.turn]
	id := s.next
	if s.next++; s.next == s.end {
		l.spans = append(l.spans[:l.turn], l.spans[l.turn+1:]...)
	}
	return id, nil
}

func (l *leased) lease(ctx context.Context) error {
	if !l.scatter {
		from, err := l.meta.take(ctx, keyNextID, l.first, blockSize)
		if err != nil {
			return err
		}
		l.spans = append(l.spans, span{from, from + blockSize})
	} else {
		block, err := l.meta.take(ctx, keyNextBlock, 0, scatterOpen)
		if err != nil {
			return err
		}
		for b := block; b < block+scatterOpen; b++ {
			l.spans = append(l.spans, span{place(b), place(b) + scatterSize})
		}
	}
	for _, s := range l.spans {
		record := journal.Record{Kind: journal.Lease, TradeID: s.next, Qty: s.end - s.next, At: time.Now()}
		if err := l.journal.Append(record); err != nil {
			l.spans = nil
			return err
		}
	}
	return nil
}
