package catalog

import (
	"context"
	"sync"

	"github.com/percodb/percodb/percolator"
)

// Numbers are allocated from the store in blocks, in separate transactions: a number that was issued is never issued
// again, whatever the outcome of the transaction that requested it, and after a crash of the process.
const (
	idBlock    = 32
	rowIDBlock = 1 << 16
)

// block hands out growing numbers from one counter key. Safe for concurrent use.
type block struct {
	catalog *Catalog
	key     []byte
	first   uint64 // of a new store
	size    uint64
	mu      struct {
		sync.Mutex
		next, end uint64
	}
	// refill is held while a new block is fetched, so that mu is not held across I/O.
	refill sync.Mutex
}

func (b *block) take(ctx context.Context) (uint64, error) {
	for {
		if id, ok := b.tryTake(); ok {
			return id, nil
		}
		if err := b.fetch(ctx); err != nil {
			return 0, err
		}
	}
}

func (b *block) tryTake() (uint64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.next == b.mu.end {
		return 0, false
	}
	b.mu.next++
	return b.mu.next - 1, true
}

// fetch allocates the next block from the store, unless another caller has just done so.
func (b *block) fetch(ctx context.Context) error {
	b.refill.Lock()
	defer b.refill.Unlock()
	b.mu.Lock()
	left := b.mu.end - b.mu.next
	b.mu.Unlock()
	if left > 0 {
		return nil
	}
	var start uint64
	err := b.catalog.retry(ctx, func(txn *percolator.Txn) (err error) {
		if start, err = getNumber(ctx, txn, b.key); err != nil {
			return err
		}
		start = max(start, b.first)
		return putNumber(txn, b.key, start+b.size)
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.next, b.mu.end = start, start+b.size
	return nil
}

// NewID returns a number for a relation, an index, a sequence value or a schema version: never
// handed out before and never again.
func (c *Catalog) NewID(ctx context.Context) (uint64, error) { return c.ids.take(ctx) }

// NextRowID implements executor.RowIDSource. Row ids grow with every call in one process; two
// processes take from different blocks.
func (c *Catalog) NextRowID(ctx context.Context, _ uint64) (int64, error) {
	id, err := c.rowIDs.take(ctx)
	return int64(id), err
}
