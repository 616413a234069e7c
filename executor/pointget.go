package executor

import (
	"context"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// pointGet reads at most one row by a whole unique key. It is the fastest read of a row: one key encoded into a reused
// buffer, one read, the requested columns decoded.
type pointGet struct {
	access
	key    keyBuilder
	filter expr.Scalar
	buf    []byte
	done   bool
	// lock: the row is about to be changed, so with Runtime.Lock the key is locked before it is read; a transaction that
	// has to wait for the lock then reads only once.
	lock  bool
	arena rowenc.Arena
	keys  [1][]byte
}

func newPointGet(ex *execution, n *planner.PointGet) (*pointGet, error) {
	o := &pointGet{key: newKeyBuilder(&n.Access, n.Key), filter: n.Filter, lock: n.LockFirst}
	return o, o.init(ex, &n.Access)
}

func (o *pointGet) Open(context.Context) error { o.done = false; return nil }
func (o *pointGet) Close() error               { return nil }

func (o *pointGet) Next(ctx context.Context) (types.Row, error) {
	if o.done {
		return nil, nil
	}
	o.done = true
	key, ok, err := o.key.append(o.buf[:0], &o.ex.ev, nil)
	o.buf = key
	if !ok || err != nil {
		return nil, err
	}
	if o.lock && o.ex.rt.Lock {
		o.keys[0] = o.arena.Keep(key)
		if _, err := o.ex.txn.AcquireLocks(ctx, percolator.LockOptions{}, o.keys[:]...); err != nil {
			return nil, err
		}
	}
	value, err := o.ex.txn.Get(ctx, key)
	if value == nil || err != nil {
		return nil, err
	}
	if o.fetch {
		if key, err = rowenc.AppendRowKey(nil, o.table, o.index, key, value); err != nil {
			return nil, err
		}
		if value, err = o.ex.txn.Get(ctx, key); err != nil {
			return nil, err
		}
		if value == nil {
			return nil, o.dangling(key)
		}
	}
	row, err := o.decode(key, value)
	if err != nil || o.filter == nil {
		return row, err
	}
	ok, err = o.ex.holds(o.filter, row)
	if !ok || err != nil {
		return nil, err
	}
	return row, nil
}
