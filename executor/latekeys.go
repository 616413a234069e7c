package executor

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/entries"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// lateRows are rows written, by their keys, for which a late constraint has to be checked.
//
// Who checks a row locks the guard of what conflicting rows share (rowenc.AppendGuard) and then looks at what has been committed: of two
// transactions that write such rows, the second waits for the first to end. For EXCLUDE without = this is the constraint as a whole.
type lateRows struct {
	*planner.LateKey
	rows [][]byte
	mem  *statementMemory
	held int64
}

func (l *lateRows) reset() {
	clear(l.rows)
	l.rows = l.rows[:0]
	l.mem.shrink(l.held)
	l.held = 0
}

// wroteLate queues a row written for the late constraints of its table; old is the row that it replaces, nil for none.
func (q *keyQueue) wroteLate(old, row types.Row, moved bool) error {
	for i := range q.late {
		l := &q.late[i]
		if old != nil && !moved {
			same, err := l.Same(old, row, q.sameDatum)
			if err != nil {
				return err
			}
			if same {
				continue
			}
		}
		key, _, err := rowenc.AppendKey(nil, l.Table, &l.Table.Primary, row)
		if err != nil {
			return err
		}
		if q.checks.ex.rt.Deferred.defersLate(l.Index) {
			if err := q.checks.ex.rt.Deferred.addRow(l.Table, l.Index.OID, key); err != nil {
				return err
			}
			continue
		}
		n := keyEntryBytes + int64(len(key))
		if err := l.mem.grow(n); err != nil {
			return err
		}
		q.mark()
		l.rows, l.held = append(l.rows, key), l.held+n
	}
	return nil
}

// sameDatum compares two values of a column as they are stored.
func (q *keyQueue) sameDatum(_ int, a, b types.Datum) (bool, error) {
	if a == b {
		return true, nil
	}
	x, err := rowenc.AppendDatum(nil, a)
	if err != nil {
		return false, err
	}
	y, err := rowenc.AppendDatum(nil, b)
	return bytes.Equal(x, y), err
}

// checkLate fails if one of the rows conflicts with another under a late constraint.
func (k *keyChecks) checkLate(ctx context.Context, key *planner.LateKey, rows [][]byte) error {
	if len(rows) == 0 {
		return nil
	}
	seeker, err := entries.NewSeeker(key, &k.ex.ev)
	if err != nil {
		return err
	}
	c := &lateChecker{k: k, key: key, seeker: seeker}
	slices.SortFunc(rows, bytes.Compare)
	for group := range slices.Chunk(slices.CompactFunc(rows, bytes.Equal), eagerGroup) {
		if err := c.check(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// lateChecker checks rows under one late constraint.
type lateChecker struct {
	k      *keyChecks
	key    *planner.LateKey
	seeker *entries.Seeker
}

// check checks a group of rows, by their keys.
func (c *lateChecker) check(ctx context.Context, keys [][]byte) error {
	var values [][]byte
	err := c.k.ex.txn.AsideNow(ctx, func(r percolator.Reader) (err error) {
		values, err = r.BatchGet(ctx, keys)
		return err
	})
	if err != nil {
		return err
	}
	row := make(types.Row, len(c.key.Table.Columns))
	var rows []types.Row
	var concerned, guards [][]byte
	for i, value := range values {
		if value == nil {
			continue // The transaction has deleted it, or moved it to another key, which is listed too.
		}
		if err := c.seeker.Decode(keys[i], value, row); err != nil {
			return err
		}
		ok, err := c.seeker.Begin(row)
		if err != nil {
			return err
		}
		if ok {
			rows, concerned = append(rows, row.Clone()), append(concerned, keys[i])
			guards = append(guards, rowenc.AppendGuard(nil, c.key.Table, c.key.Index, c.seeker.Shared()))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(guards, bytes.Compare)
	if err := c.k.lock(ctx, percolator.LockOptions{}, slices.CompactFunc(guards, bytes.Equal)); err != nil {
		return err
	}
	for i := range rows {
		if err := c.k.ex.tick(ctx); err != nil {
			return err
		}
		if _, err := c.seeker.Begin(rows[i]); err != nil {
			return err
		}
		found, err := c.find(ctx, concerned[i])
		if err != nil {
			return err
		}
		if found {
			return c.violation(ctx)
		}
	}
	return nil
}

// find reports whether a row conflicts with the one that has begun, whose guard is locked. A transaction that is about to change or delete that
// row is waited for.
func (c *lateChecker) find(ctx context.Context, own []byte) (bool, error) {
	var locked []byte
	for {
		var found []byte
		err := c.k.ex.txn.AsideNow(ctx, func(r percolator.Reader) (err error) {
			found, err = c.seeker.Find(ctx, r, own)
			return err
		})
		if found == nil || err != nil {
			return false, err
		}
		if bytes.Equal(found, locked) {
			return true, nil
		}
		// A write conflict says that the row has changed since the snapshot, and that whoever changed it has ended.
		err = c.k.lock(ctx, percolator.LockOptions{Shared: true}, [][]byte{found})
		if err != nil && errkind.Of(err) != errkind.WriteConflict {
			return false, err
		}
		locked = found
	}
}

// violation is the client's error for the row that has begun and the one found last.
func (c *lateChecker) violation(ctx context.Context) error {
	rt := c.k.ex.rt
	if c.key.Conflict == nil {
		return UniqueViolation(ctx, rt.Resolver, rt.inForce(ctx), rt.Role, c.seeker.Shared())
	}
	t, ix := c.key.Table, c.key.Index
	e := pgerror.New(pgerror.ExclusionViolation, "conflicting key value violates exclusion constraint %q", ix.Name)
	e.Schema, e.Table, e.Constraint = t.Schema, t.Name, ix.Name
	if rt.Role != 0 && !SeesKey(ctx, rt.inForce(ctx), rt.Role, &rowenc.KeyName{Table: t, Index: ix}) {
		return e.WithDetail("Key conflicts with existing key.")
	}
	names, texts := entries.Describe(c.key, c.seeker.Values(), &rt.Env.Format)
	_, others := entries.Describe(c.key, c.seeker.Found(), &rt.Env.Format)
	return e.WithDetail("Key (%s)=(%s) conflicts with existing key (%s)=(%s).", names, texts, names, others)
}

// lateArbiter decides whether a proposed row is in conflict under EXCLUDE.
type lateArbiter struct{ lateChecker }

// newLateArbiters makes the arbiters of INSERT … ON CONFLICT among late constraints.
func newLateArbiters(ex *execution, keys []*planner.LateKey) ([]lateArbiter, error) {
	var all []lateArbiter
	for _, key := range keys {
		seeker, err := entries.NewSeeker(key, &ex.ev)
		if err != nil {
			return nil, err
		}
		all = append(all, lateArbiter{lateChecker{k: &keyChecks{ex: ex}, key: key, seeker: seeker}})
	}
	return all, nil
}

// taken reports whether a row that is not stored yet conflicts with another.
func (a *lateArbiter) taken(ctx context.Context, row types.Row) (bool, error) {
	if a.key.Index.Deferrable {
		e := pgerror.New(pgerror.ObjectNotInPrerequisite, "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters")
		e.Schema, e.Table, e.Constraint = a.key.Table.Schema, a.key.Table.Name, a.key.Index.Name
		return false, e
	}
	ok, err := a.seeker.Begin(row)
	if !ok || err != nil {
		return false, err
	}
	guard := rowenc.AppendGuard(nil, a.key.Table, a.key.Index, a.seeker.Shared())
	if err := a.k.lock(ctx, percolator.LockOptions{}, [][]byte{guard}); err != nil {
		return false, err
	}
	return a.find(ctx, nil)
}
