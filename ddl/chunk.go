package ddl

import (
	"context"
	"errors"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
)

// chunks writes rows and entries under index ids to which no descriptor refers yet: outside a block in transactions of
// bounded size or, if it may have any size, in one transaction; in a block through the block's transaction. Not safe for
// concurrent use; the commit of one chunk runs concurrently with the preparation of the next.
type chunks struct {
	r         *run
	pending   []write
	sizeBytes int
	arena     rowenc.Arena // of keys and values
	// committing delivers the outcome of the chunk sent last; nil when none is under way.
	committing chan error
	// whole is the one transaction, nil until the first write.
	whole *percolator.Txn
	// out writes the one transaction, or the block's.
	out txnWriter
}

// txnWriter writes transactions that may grow large.
type txnWriter struct{ written int }

// mergeEvery is after how many writes a transaction's runs are merged if they have become many: so a cancel
// ends the merge.
const mergeEvery = 1024

// write is one key of a chunk.
type write struct {
	key, value []byte
	mustBeNew  bool
}

func (r *run) newChunks() *chunks { return &chunks{r: r} }

// put writes a key that may exist.
func (c *chunks) put(ctx context.Context, key, value []byte) error {
	return c.add(ctx, write{key: key, value: value})
}

// insert writes a key that must be new; otherwise it or a later call returns *mvcc.KeyExistsError.
func (c *chunks) insert(ctx context.Context, key, value []byte) error {
	if !c.r.alone { // Outside a block, the commit reports which key is not new.
		taken, err := c.r.txn.LockNew(ctx, key)
		if err != nil {
			return err
		}
		if taken >= 0 {
			return &mvcc.KeyExistsError{Key: key}
		}
	}
	return c.add(ctx, write{key, value, true})
}

func (c *chunks) add(ctx context.Context, w write) error {
	if !c.r.alone {
		return c.out.write(ctx, c.r.txn, &w)
	}
	if c.r.OneTransaction {
		if c.whole == nil {
			txn, err := c.r.DB.Begin(ctx)
			if err != nil {
				return err
			}
			c.whole = txn
		}
		return c.out.write(ctx, c.whole, &w)
	}
	c.pending = append(c.pending, w)
	c.sizeBytes += len(w.key) + len(w.value)
	if c.sizeBytes < c.r.ChunkBytes {
		return nil
	}
	return c.send(ctx)
}

// write writes w as a part of a transaction.
func (o *txnWriter) write(ctx context.Context, txn *percolator.Txn, w *write) error {
	if err := w.to(txn); err != nil {
		return err
	}
	if o.written++; o.written%mergeEvery != 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return txn.MergeRuns(ctx)
}

// send commits the current chunk in the background, after the previous one has committed: a chunk that began earlier
// would report equal keys as a write conflict, which does not name the cause.
func (c *chunks) send(ctx context.Context) error {
	if err := c.wait(); err != nil {
		return err
	}
	writes := c.pending
	c.pending, c.sizeBytes = make([]write, 0, len(writes)), 0
	c.committing = make(chan error, 1)
	go func(done chan<- error) { done <- c.commit(ctx, writes) }(c.committing)
	return nil
}

func (c *chunks) commit(ctx context.Context, writes []write) error {
	txn, err := c.r.DB.Begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	for i := range writes {
		if err := writes[i].to(txn); err != nil {
			return err
		}
	}
	_, err = txn.Commit(ctx)
	return err
}

func (w *write) to(txn *percolator.Txn) error {
	if w.mustBeNew {
		return txn.Insert(w.key, w.value)
	}
	return txn.Put(w.key, w.value)
}

// wait returns the outcome of the chunk under way. An unknown outcome is that of the chunk, not of the statement, which has not
// committed: it may be run again, and will use other index ids.
func (c *chunks) wait() error {
	if c.committing == nil {
		return nil
	}
	err := <-c.committing
	c.committing = nil
	return percolator.CauseOf(err)
}

// finish makes everything written durable, or part of the block. err is the reason why the caller stopped early; no
// commit is running when finish returns.
func (c *chunks) finish(ctx context.Context, err error) error {
	if err == nil && len(c.pending) > 0 {
		err = c.send(ctx)
	}
	if err = errors.Join(err, c.wait()); c.whole == nil {
		if err == nil && !c.r.alone {
			err = c.r.txn.VerifyNew(ctx)
		}
		return err
	}
	defer c.whole.Close()
	if err == nil {
		_, err = c.whole.Commit(ctx)
	}
	return percolator.CauseOf(err)
}
