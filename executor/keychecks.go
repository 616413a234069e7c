package executor

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// keyChecks is what a statement has to do for foreign keys and late constraints (latekeys.go). While rows are written the keys concerned are queued; when the statement has written
// all its rows, run looks them up, in groups, and has the actions of foreign keys change other rows, which queues further keys.
//
//	child   a row gets a reference    shares the lock of the parent key's guard, then looks for the parent
//	parent  a key goes                locks its guard, then looks for children
//
// Both look at what has been committed when they have the lock (percolator.Txn.AsideNow), not at the statement's snapshot: a row that the snapshot
// does not see counts. The lock is held, or its loss fails the commit, until the transaction ends; see rowenc.AppendGuard. Where the transaction
// ends with the statement, a parent that the snapshot sees takes no lock: the commit checks its guard (existAtCommit).
type keyChecks struct {
	ex      *execution
	queues  map[*planner.References]*keyQueue
	pending []*keyQueue             // those with entries
	writers map[uint64]*tableWriter // of the tables that actions change, by id
	moves   map[*planner.Parts]*actionMoves
	changed map[uint64]int64 // rows changed by actions, by table
	depth   int
	fires   map[*planner.ForeignKey]*triggers // of the tables that actions change
	fired   []*triggers                       // those, in the order in which they have begun
	// resume: locked keys are looked up under the snapshot that a lock may have advanced, instead of restarting the statement; for COPY.
	resume bool
}

// keyQueue is one table's part.
type keyQueue struct {
	checks   *keyChecks
	refs     *planner.References
	outgoing []outgoingKeys
	incoming []incomingKeys
	late     []lateRows
	pending  bool
	key      []byte // scratch
	values   types.Row
}

// outgoingKeys are keys of parents that rows written reference.
type outgoingKeys struct {
	*planner.ForeignKey
	keys   [][]byte // nil: the values of a MATCH FULL key that are partly NULL
	values rowBuffer
	seen   map[string]struct{}
}

// incomingKeys are keys that rows written no longer have: the old values of the referenced columns, those of updated rows followed by the new ones.
type incomingKeys struct {
	*planner.IncomingKey
	deleted, updated rowBuffer
	// moved are updated keys of rows that a statement has moved to another partition of the table movedIn.
	moved   rowBuffer
	movedIn *catalog.TableDescriptor
}

// maxActionDepth bounds how deep the actions of foreign keys may follow each other.
const maxActionDepth = 2000

// keyEntryBytes is the memory of a queued key apart from its bytes.
const keyEntryBytes = 64

// queueFor returns the queue of a table; nil for refs nil.
func (ex *execution) queueFor(refs *planner.References) *keyQueue {
	if refs == nil {
		return nil
	}
	if ex.keys == nil {
		ex.keys = &keyChecks{ex: ex, queues: map[*planner.References]*keyQueue{}, writers: map[uint64]*tableWriter{}, changed: map[uint64]int64{}}
	}
	if q := ex.keys.queues[refs]; q != nil {
		return q
	}
	q := &keyQueue{checks: ex.keys, refs: refs}
	for _, k := range refs.Outgoing {
		q.outgoing = append(q.outgoing, outgoingKeys{ForeignKey: k, values: rowBuffer{mem: &ex.mem}, seen: map[string]struct{}{}})
	}
	for _, k := range refs.Incoming {
		q.incoming = append(q.incoming, incomingKeys{IncomingKey: k, deleted: rowBuffer{mem: &ex.mem}, updated: rowBuffer{mem: &ex.mem}, moved: rowBuffer{mem: &ex.mem}})
	}
	for _, k := range refs.Late {
		q.late = append(q.late, lateRows{LateKey: k, mem: &ex.mem})
	}
	ex.keys.queues[refs] = q
	return q
}

// reset drops what is queued.
func (k *keyChecks) reset() {
	if k == nil {
		return
	}
	k.pending, k.depth = k.pending[:0], 0
	clear(k.changed)
	for _, q := range k.queues {
		q.pending = false
		for i := range q.outgoing {
			q.outgoing[i].reset()
		}
		for i := range q.incoming {
			q.incoming[i].deleted.release()
			q.incoming[i].updated.release()
			q.incoming[i].moved.release()
		}
		for i := range q.late {
			q.late[i].reset()
		}
	}
	for _, w := range k.writers {
		w.sink.discard()
	}
	for _, m := range k.moves {
		m.discard()
	}
	for _, g := range k.fired {
		_ = g.release() // A temporary file that cannot be removed is the system's.
	}
	clear(k.fires)
	k.fired = nil
}

func (o *outgoingKeys) reset() {
	clear(o.keys)
	o.keys = o.keys[:0]
	clear(o.seen)
	o.values.release()
}

// mark lists the queue among those with entries.
func (q *keyQueue) mark() {
	if !q.pending {
		q.pending = true
		q.checks.pending = append(q.checks.pending, q)
	}
}

// inserted queues the references of a new row.
func (q *keyQueue) inserted(ctx context.Context, row types.Row) error {
	if q == nil || q.checks.ex.rt.Replica {
		return nil
	}
	for i := range q.outgoing {
		if err := q.reference(ctx, &q.outgoing[i], row); err != nil {
			return err
		}
	}
	return q.wroteLate(nil, row, false)
}

// deleted queues the keys of a row that is gone.
func (q *keyQueue) deleted(row types.Row) error {
	if q == nil || q.checks.ex.rt.Replica {
		return nil
	}
	for i := range q.incoming {
		in := &q.incoming[i]
		if err := q.lost(in, &in.deleted, row, nil); err != nil {
			return err
		}
	}
	return nil
}

// moved queues the keys of a row that becomes next, in another partition of a table: for foreign keys to that table, or to one above it, this is
// an update.
func (q *keyQueue) moved(old, next types.Row, table *catalog.TableDescriptor) error {
	if q == nil || q.checks.ex.rt.Replica {
		return nil
	}
	for i := range q.incoming {
		in := &q.incoming[i]
		err := error(nil)
		switch {
		case in.Parent.ID == in.Table.ID:
			err = q.lost(in, &in.deleted, old, nil)
		case in.Parent.ID == table.ID, in.Declared.Key.HasPart(table.ID):
			if !in.SameParentKey(old, next) {
				in.movedIn = table
				err = q.lost(in, &in.moved, old, next)
			}
		default:
			err = movedBeneath(in.Parent, table)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// updated queues the references and keys of a row that have changed; moved: it has another primary key.
func (q *keyQueue) updated(ctx context.Context, old, row types.Row, moved bool) error {
	if q == nil || q.checks.ex.rt.Replica {
		return nil
	}
	for i := range q.incoming {
		in := &q.incoming[i]
		if in.SameParentKey(old, row) {
			continue
		}
		if err := q.lost(in, &in.updated, old, row); err != nil {
			return err
		}
	}
	for i := range q.outgoing {
		o := &q.outgoing[i]
		if o.SameKey(old, row) && !(moved && q.checks.deferred(o.ForeignKey)) {
			continue
		}
		if err := q.reference(ctx, o, row); err != nil {
			return err
		}
	}
	return q.wroteLate(old, row, moved)
}

// reference queues the key that a row references.
func (q *keyQueue) reference(ctx context.Context, o *outgoingKeys, row types.Row) (err error) {
	var null int
	if q.key, null, err = o.ParentKey(q.key[:0], &q.checks.ex.ev, row); err != nil {
		return err
	}
	switch {
	case null == len(o.Columns), null > 0 && !o.MatchFull:
		return nil
	case q.checks.deferred(o.ForeignKey):
		return q.checks.ex.rt.Deferred.addChild(o.ForeignKey, row)
	case null > 0:
		q.key = q.key[:0]
	}
	if _, found := o.seen[string(q.key)]; found {
		return nil
	}
	if err := o.add(q, row, null > 0); err != nil || len(o.keys) < eagerGroup {
		return err
	}
	return q.checks.verify(ctx, o, false)
}

// add queues q.key; mixed: it is none.
func (o *outgoingKeys) add(q *keyQueue, row types.Row, mixed bool) error {
	q.mark()
	q.values = q.values[:0]
	for _, ord := range o.ChildOrdinals {
		q.values = append(q.values, row[ord])
	}
	if err := o.values.add(q.values); err != nil {
		return err
	}
	if err := o.values.book(keyEntryBytes + 2*int64(len(q.key))); err != nil {
		return err
	}
	var key []byte
	if !mixed {
		key = bytes.Clone(q.key)
	}
	o.keys = append(o.keys, key)
	o.seen[string(q.key)] = struct{}{}
	return nil
}

// lost queues a key that a row of the parent no longer has; row is the row's new state, nil for none.
func (q *keyQueue) lost(in *incomingKeys, to *rowBuffer, old, row types.Row) error {
	q.values = q.values[:0]
	for _, ord := range in.Ordinals {
		if old[ord].IsNull() {
			return nil
		}
		q.values = append(q.values, old[ord])
	}
	action := in.OnDelete
	if row != nil {
		action = in.OnUpdate
		for _, ord := range in.Ordinals {
			q.values = append(q.values, row[ord])
		}
	}
	if action == catalog.KeyNoAction && q.checks.deferred(in.ForeignKey) {
		return q.checks.ex.rt.Deferred.addParent(&q.checks.ex.ev, in.ForeignKey, q.values[:len(in.Columns)])
	}
	q.mark()
	return to.add(q.values)
}

// deferred reports whether the checks of a foreign key wait for the end of the transaction.
func (k *keyChecks) deferred(key *planner.ForeignKey) bool {
	return key.Deferrable && k.ex.rt.Deferred.defers(key.OID, key.Deferred)
}

// run does what is queued. It is called when the statement has written its rows, and by actions when they have.
func (k *keyChecks) run(ctx context.Context) error {
	if k == nil || len(k.pending) == 0 {
		return nil
	}
	if k.depth++; k.depth > maxActionDepth {
		return pgerror.New(pgerror.StatementTooComplex, "actions of foreign keys follow each other more than %d deep", maxActionDepth).
			WithHint("Delete or update the rows in several statements.")
	}
	for len(k.pending) > 0 {
		round := slices.Clone(k.pending)
		k.pending = k.pending[:0]
		for _, q := range round {
			q.pending = false
		}
		for _, q := range round {
			for i := range q.late {
				l := &q.late[i]
				if err := k.checkLate(ctx, l.LateKey, l.rows); err != nil {
					return err
				}
				l.reset()
			}
		}
		for _, q := range round {
			if err := k.act(ctx, q); err != nil {
				return err
			}
		}
		for _, q := range round {
			for i := range q.outgoing {
				if err := k.verify(ctx, &q.outgoing[i], true); err != nil {
					return err
				}
			}
		}
	}
	k.depth--
	return nil
}

// verify looks for the parents of queued references. The keys of those that are found leave the queue. With final, one that is not is an error;
// otherwise it stays queued, since the statement may yet write it.
func (k *keyChecks) verify(ctx context.Context, o *outgoingKeys, final bool) error {
	if len(o.keys) == 0 {
		return nil
	}
	keys := make([][]byte, 0, len(o.keys))
	for i, key := range o.keys {
		if key == nil && final {
			return k.violation(ctx, o.ForeignKey, o.values.rows[i], mixedNulls)
		}
		if key != nil {
			keys = append(keys, key)
		}
	}
	if final {
		if exist, err := k.existAtCommit(ctx, o.ForeignKey, keys); exist || err != nil {
			o.reset()
			return err
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	if err := k.lockGuards(ctx, o.ForeignKey, keys, true); err != nil {
		return err
	}
	var found [][]byte
	err := k.ex.txn.AsideNow(ctx, func(r percolator.Reader) (err error) {
		found, err = r.BatchGet(ctx, keys)
		return err
	})
	if err != nil {
		return err
	}
	missing := map[string]bool{}
	for i, key := range keys {
		if found[i] == nil {
			missing[string(key)] = true
		}
	}
	return k.keepMissing(ctx, o, missing, final)
}

// existAtCommit reports that the parents exist, and leaves to the commit what a lock of their guards would prevent: a transaction that ends with
// its only statement is run again after a conflict, and then locks them. False: they have to be looked for under the lock.
func (k *keyChecks) existAtCommit(ctx context.Context, key *planner.ForeignKey, parents [][]byte) (bool, error) {
	if k.ex.rt.EagerUnique || k.resume || len(parents) > maxGuardsAtCommit {
		return false, nil
	}
	for _, parent := range parents {
		exists, err := k.ex.txn.ExistsAtCommit(ctx, parent, key.AppendGuard(nil, parent))
		if !exists || err != nil {
			return false, err
		}
	}
	return true, nil
}

// maxGuardsAtCommit is how many parents of one foreign key are left to the commit.
const maxGuardsAtCommit = 8

// keepMissing removes the keys from a queue that are not missing.
func (k *keyChecks) keepMissing(ctx context.Context, o *outgoingKeys, missing map[string]bool, final bool) error {
	var kept [][]byte
	values := rowBuffer{mem: o.values.mem}
	for i, key := range o.keys {
		switch {
		case key != nil && !missing[string(key)]:
			continue
		case final:
			return k.violation(ctx, o.ForeignKey, o.values.rows[i], notPresent)
		}
		kept = append(kept, key)
		if err := values.add(o.values.rows[i]); err != nil {
			return err
		}
	}
	o.reset()
	o.values = values
	for _, key := range kept {
		o.keys = append(o.keys, key)
		o.seen[string(key)] = struct{}{}
	}
	return nil
}

// lockGuards locks the guards of ascending keys of a foreign key's parent.
func (k *keyChecks) lockGuards(ctx context.Context, key *planner.ForeignKey, keys [][]byte, shared bool) error {
	var arena rowenc.Arena
	for group := range slices.Chunk(keys, eagerGroup) {
		guards := make([][]byte, len(group))
		for i, parent := range group {
			guards[i] = arena.Finish(key.AppendGuard(arena.Start(), parent))
		}
		if err := k.lock(ctx, percolator.LockOptions{Shared: shared}, guards); err != nil {
			return err
		}
	}
	return nil
}

// lock locks keys until the transaction ends. An optimistic transaction becomes a pessimistic one: what others do with these keys cannot be
// left to the commit.
func (k *keyChecks) lock(ctx context.Context, opts percolator.LockOptions, keys [][]byte) error {
	k.ex.txn.BeginLocking()
	for {
		_, err := k.ex.txn.AcquireLocks(ctx, opts, keys...)
		if k.resume && errors.Is(err, percolator.ErrRestartStatement) && ctx.Err() == nil {
			continue // They are held now, and what follows reads all that has been committed.
		}
		return err
	}
}
