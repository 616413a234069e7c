package ddl

import (
	"context"
	"errors"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
)

// chunks writes rows and entries under index ids that no descriptor names yet: alone in transactions
// of bounded size, in a block through the block's transaction. One goroutine's, but for the commit of
// the last chunk, which runs beside the making of the next.
type chunks struct {
	r   *run
	txn *percolator.Txn
	// fresh are the keys inserted in this transaction: kv would notice two of them only at commit,
	// and then without saying which.
	fresh map[string]struct{}
	// committing delivers the outcome of the chunk sent last; nil when none is under way.
	committing chan error
}

func (r *run) newChunks() *chunks {
	c := &chunks{r: r, fresh: map[string]struct{}{}}
	if !r.alone {
		c.txn = r.txn
	}
	return c
}

// put writes a key that may exist.
func (c *chunks) put(ctx context.Context, key, value []byte) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	return c.txn.Put(key, value)
}

// insert writes a key that must be new; *mvcc.KeyExistsError, now or from a later call, if it is not.
func (c *chunks) insert(ctx context.Context, key, value []byte) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	if _, twice := c.fresh[string(key)]; twice {
		return &mvcc.KeyExistsError{Key: key}
	}
	c.fresh[string(key)] = struct{}{}
	return c.txn.Insert(key, value)
}

// ready makes sure that there is a transaction with room.
func (c *chunks) ready(ctx context.Context) error {
	if c.r.alone && c.txn != nil && c.txn.SizeBytes() >= int64(c.r.ChunkBytes) {
		if err := c.send(ctx); err != nil {
			return err
		}
	}
	if c.txn == nil {
		txn, err := c.r.DB.Begin(ctx)
		if err != nil {
			return err
		}
		c.txn = txn
	}
	return nil
}

// send commits the present chunk behind the caller's back, once the one before is through.
func (c *chunks) send(ctx context.Context) error {
	if err := c.wait(); err != nil {
		return err
	}
	txn := c.txn
	c.txn = nil
	clear(c.fresh)
	c.committing = make(chan error, 1)
	go func(done chan<- error) {
		_, err := txn.Commit(ctx)
		done <- err
	}(c.committing)
	return nil
}

// wait returns the outcome of the chunk under way. A lost answer is an error: the change starts again
// under other index ids.
func (c *chunks) wait() error {
	if c.committing == nil {
		return nil
	}
	err := <-c.committing
	c.committing = nil
	return err
}

// finish makes everything written durable, or part of the block. err is why the caller stopped early;
// nothing runs any more when finish returns.
func (c *chunks) finish(ctx context.Context, err error) error {
	if !c.r.alone {
		return err
	}
	if err == nil && c.txn != nil {
		err = c.send(ctx)
	}
	return errors.Join(err, c.wait())
}
