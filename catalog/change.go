package catalog

import (
	"context"
	"errors"
	"slices"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// Change is the schema changes of one transaction: its methods write descriptors through the
// transaction. One goroutine's; it ends with Guard.Done.
type Change struct {
	catalog *Catalog
	txn     *percolator.Txn
	// id is the start_ts under which others wait for the change. Transactions may follow each other (Guard.Continue); it is
	// that of the first, 0 until a change that runs alone closes a table.
	id    tso.Timestamp
	token bool // holds catalog.changing
	// session is Guard.Session, temporary Guard.Temporary.
	session   uint32
	temporary *Temporary
	// ofBuild: it is a step of the build of an index.
	ofBuild bool
	// local: nothing but temporary relations has been changed.
	local bool
	// granting: a change of privileges that runs alone, which holds catalog.granting.
	granting bool
	// base is the schema before the transaction's first change, wrote what it has changed since; see meet.
	base  *schemaSnapshot
	wrote wrote
	seen  overlay
	// committing: counted in catalog.committing.
	committing bool
	closed     []uint64   // the tables shut to writers; after a rollback to a savepoint they stay so
	tried      []uint64   // those to be shut, also if that has failed: there may be something to open
	touched    []touch    // the tables of which the transaction wrote the descriptor
	created    []uint64   // those among touched that are new
	gone       []*Catalog // of databases that the transaction drops
	// versions are those that the transaction has given the schema, undone ones included.
	versions []uint64
	markers  *markers // of closed tables (Shared only)
	final    *outcome // the schema as the commit will leave it
	// bumped: the commit gives the schema a new version. While held lasts no process has a lease of the old
	// one (Shared only).
	bumped bool
	held   versionHold
}

// touch is a write of a relation's descriptor, which had the WriterVersion base before the transaction.
type touch struct{ id, base uint64 }

// Change begins or continues the schema changes of the guarded transaction. Within a process one transaction at a time
// changes more of the schema than privileges; Change waits for the others.
func (g *Guard) Change(ctx context.Context) (*Change, error) {
	if g.change == nil || !g.change.token {
		c := g.catalog
		if err := c.takeToken(ctx, g.waiter()); err != nil {
			return nil, err
		}
		if g.change == nil {
			g.change = g.newChange()
		}
		g.change.token, g.change.local = true, false
		c.changerSession.Store(g.Session)
	}
	return g.continueChange(), nil
}

// ChangePrivileges is Change for owners, roles and privileges: it waits for no open transaction. Those that run alone take turns.
func (g *Guard) ChangePrivileges(ctx context.Context) (*Change, error) {
	if g.change == nil {
		c := g.catalog
		ch := g.newChange()
		if g.txn == nil {
			w := c.watch(ctx, g.waiter(), "", func() []tso.Timestamp { return nil })
			defer w.stop()
			if err := w.until(ctx, c.granting, 0); err != nil {
				return nil, err
			}
			ch.granting = true
		}
		g.change = ch
	}
	g.change.local = false
	return g.continueChange(), nil
}

// ChangeTemporary is Change for the session's temporary relations: it waits for nobody, and nobody waits for it.
func (g *Guard) ChangeTemporary(context.Context) (*Change, error) {
	if g.change == nil {
		g.change = g.newChange()
		g.change.local = true
	}
	return g.continueChange(), nil
}

// Changed reports whether the transaction has changed more of the schema than temporary relations.
func (g *Guard) Changed() bool { return g.change != nil && !g.change.local }

// space is where the objects of the guarded transaction's database are.
func (ch *Change) space() space { return ch.catalog.space }

func (g *Guard) newChange() *Change {
	return &Change{catalog: g.catalog, markers: newMarkers(g.catalog), session: g.Session, temporary: g.Temporary}
}

func (g *Guard) continueChange() *Change {
	ch := g.change
	if ch.id == 0 && g.txn != nil {
		ch.identify(g.txn.StartTS())
	} else if ch.token {
		ch.catalog.changer.Store(uint64(ch.id))
	}
	ch.txn, ch.markers.limit = g.txn, g.LockTimeout
	return ch
}

// takeToken waits until no other transaction of the process changes the schema.
func (c *Catalog) takeToken(ctx context.Context, who waiter) error {
	select {
	case <-c.changing:
		return nil
	default:
	}
	who.blockers = func() []uint32 { return []uint32{c.changerSession.Load()} }
	w := c.watch(ctx, who, "", func() []tso.Timestamp { return known(tso.Timestamp(c.changer.Load())) })
	defer w.stop()
	return w.until(ctx, c.changing, 0)
}

// identify sets the id.
func (ch *Change) identify(id tso.Timestamp) {
	ch.id, ch.markers.txn = id, id
	if ch.token {
		ch.catalog.changer.Store(uint64(id))
	}
}

// Resolver returns the schema as the transaction has made it so far, over the one in force. It must be called before the transaction's
// first change. If others have changed the schema so that what the transaction changes cannot be committed, it is the schema as of the
// snapshot, or a *ConflictError if privileges are among what they have changed.
func (ch *Change) Resolver(ctx context.Context) (Resolver, error) {
	s, err := ch.catalog.at(ctx, ch.txn)
	if err != nil {
		return nil, err
	}
	if ch.local {
		return ch.temporary.Over(s), nil
	}
	if ch.base == nil {
		ch.base = s
	}
	if ch.txn.Isolation() == percolator.ReadCommitted {
		return ch.temporary.Over(s), nil // Its snapshot is that of the statement.
	}
	over, err := ch.over(ctx, s)
	if conflict := (*ConflictError)(nil); errors.As(err, &conflict) && !conflict.privileges {
		return ch.temporary.Over(s), nil
	}
	if err != nil {
		return nil, err
	}
	return ch.temporary.Over(over), nil
}

// NewID returns a number never used before.
func (ch *Change) NewID(ctx context.Context) (uint64, error) { return ch.catalog.NewID(ctx) }

// Close blocks writers of t in other transactions and waits for their commits in flight: a transaction that begins
// afterwards reads all rows of t. t stays blocked until the transaction ends. A table that the transaction itself
// created need not be closed. After an error t is not closed, although others may be kept out, and Close may be called again.
func (ch *Change) Close(ctx context.Context, t *TableDescriptor) (err error) {
	if ch.Closed(t.ID) {
		return nil
	}
	if err := ch.waitsForBuild(t); err != nil {
		return err
	}
	if t.Temporary() { // No other transaction writes it.
		ch.closed = append(ch.closed, t.ID)
		return nil
	}
	if !slices.Contains(ch.tried, t.ID) {
		ch.tried = append(ch.tried, t.ID)
	}
	if ch.id == 0 {
		ch.identify(ch.txn.StartTS())
	}
	if ch.catalog.opts.Shared {
		err = ch.markers.close(ctx, t)
	} else {
		err = ch.catalog.gate.close(ctx, ch, t.ID)
	}
	if err == nil {
		ch.closed = append(ch.closed, t.ID)
	}
	return err
}

// Closed reports whether Close has shut the relation.
func (ch *Change) Closed(id uint64) bool { return slices.Contains(ch.closed, id) }

// Created reports whether the transaction made the relation.
func (ch *Change) Created(id uint64) bool { return slices.Contains(ch.created, id) }

// permits reports whether the transaction wrote the descriptor of a table that it has written rows of under planned, and if so,
// whether these may be committed: planned must be the descriptor that the change replaces, or one of its own. A change of others that
// comes after the replaced one conflicts with the transaction's write of the descriptor.
func (ch *Change) permits(planned *TableDescriptor) (touched, ok bool) {
	if ch == nil {
		return false, false
	}
	i := slices.IndexFunc(ch.touched, func(t touch) bool { return t.id == planned.ID })
	if i < 0 {
		return false, false
	}
	return true, planned.WriterVersion == ch.touched[i].base || slices.Contains(ch.versions, planned.WriterVersion)
}

// touch notes that the transaction writes the descriptor of t, as it has been so far.
func (ch *Change) touch(t *TableDescriptor) {
	ch.touched = append(ch.touched, touch{t.ID, t.WriterVersion})
}

// rollbackTo forgets what the transaction wrote since m, and returns those relations.
func (ch *Change) rollbackTo(m Mark) (undone []touch) {
	undone = ch.touched[m.touched:]
	ch.touched, ch.created = ch.touched[:m.touched:m.touched], ch.created[:m.created]
	return undone
}

// bump gives the schema a new version, which it returns.
func (ch *Change) bump(ctx context.Context) (uint64, error) {
	version, err := ch.NewID(ctx)
	if err != nil {
		return 0, err
	}
	ch.bumped = true
	ch.versions = append(ch.versions, version)
	return version, putNumber(ch.txn, keyVersion, version)
}

// Create adds a relation. Its ID must come from NewID; its name must be free.
func (ch *Change) Create(ctx context.Context, t *TableDescriptor) error {
	if t.Temporary() {
		return ch.createTemporary(ctx, t)
	}
	version, err := ch.bump(ctx)
	if err != nil {
		return err
	}
	t.Version, t.WriterVersion = version, version
	ch.touch(t)
	ch.wrote.relation(t.ID)
	ch.created = append(ch.created, t.ID)
	if err := ch.txn.Insert(ch.space().nameKey(t.Schema, t.Name), encode(t.ID)); err != nil {
		return err
	}
	return ch.txn.Insert(ch.space().idKey(wordRelation, t.ID), encode(t))
}

// Update replaces the descriptor old by t, which has its ID. If exclusive is set, writers planned under old must not
// commit any more; the relation must have been closed, or created by this transaction.
func (ch *Change) Update(ctx context.Context, old, t *TableDescriptor, exclusive bool) error {
	if t.Temporary() {
		return ch.updateTemporary(old, t, exclusive)
	}
	if err := ch.waitsForBuild(old); err != nil {
		return err
	}
	version, err := ch.bump(ctx)
	if err != nil {
		return err
	}
	t.Version = version
	ch.wrote.relation(t.ID)
	if len(t.Observers) > len(old.Observers) {
		if err := ch.observe(ctx); err != nil {
			return err
		}
	}
	if exclusive {
		ch.touch(old)
		t.WriterVersion = version
	}
	if old.Schema != t.Schema || old.Name != t.Name {
		if err := ch.txn.Delete(ch.space().nameKey(old.Schema, old.Name)); err != nil {
			return err
		}
		if err := ch.txn.Insert(ch.space().nameKey(t.Schema, t.Name), encode(t.ID)); err != nil {
			return err
		}
	}
	return ch.txn.Put(ch.space().idKey(wordRelation, t.ID), encode(t))
}

// Drop removes a relation with its statistics and its sequence value.
func (ch *Change) Drop(ctx context.Context, t *TableDescriptor) error {
	if t.Temporary() {
		return ch.forgetTemporary(t)
	}
	if err := ch.waitsForBuild(t); err != nil {
		return err
	}
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.touch(t)
	ch.wrote.relation(t.ID)
	for _, key := range [][]byte{ch.space().nameKey(t.Schema, t.Name), ch.space().idKey(wordRelation, t.ID), idKey(wordStats, t.ID)} {
		if err := ch.txn.Delete(key); err != nil {
			return err
		}
	}
	if t.Sequence != nil {
		return ch.txn.Delete(idKey(wordSequence, t.Sequence.ValueID))
	}
	return nil
}

// Reserve raises the table's NextIndexID by n, in a separate transaction, and returns the first of the n ids. They are
// not given to another index even if this change fails after having written keys under them. The change's own
// transaction must begin afterwards.
func (ch *Change) Reserve(ctx context.Context, tableID uint64, n uint32) (first uint32, err error) {
	if own := ch.ownTemporary(tableID); own != nil {
		next := own.Clone()
		next.NextIndexID += n
		ch.temporary.put(tableID, next)
		return own.NextIndexID, nil
	}
	key := ch.space().idKey(wordRelation, tableID)
	version, err := ch.NewID(ctx)
	if err != nil {
		return 0, err
	}
	held, err := ch.catalog.version.hold(ctx)
	if err != nil {
		return 0, err
	}
	var final *outcome
	at, err := ch.catalog.retryAt(ctx, func(txn *percolator.Txn) error {
		first, final = 0, nil // of an attempt that met a conflict
		if held.until != 0 {
			txn.SetCommitPermit(until(held.until))
		}
		value, err := txn.Get(ctx, key)
		if err != nil || value == nil {
			return err
		}
		t := new(TableDescriptor)
		if err := decode(key, value, t); err != nil {
			return err
		}
		first = t.NextIndexID
		t.NextIndexID += n
		t.Version = version
		if err := txn.Put(key, encode(t)); err != nil {
			return err
		}
		if err := putNumber(txn, keyVersion, version); err != nil {
			return err
		}
		under, err := ch.catalog.committedAt(ctx, txn.ReadTS())
		if err == nil {
			final, err = ch.catalog.foresee(ctx, txn, under)
		}
		return err
	})
	if errkind.Of(err) != errkind.Undetermined { // Else it may yet be committed while the hold lasts.
		ch.catalog.version.release(context.WithoutCancel(ctx), held)
	}
	if err != nil {
		return 0, percolator.CauseOf(err)
	}
	if final == nil { // The table is gone.
		return first, ch.catalog.refresh(ctx)
	}
	ch.catalog.keep(final, at)
	return first, nil
}

// DroppedSpan is a part of the key space to which no descriptor refers any more; its versions can be removed when no
// snapshot from before its commit is read.
type DroppedSpan struct {
	Table uint64
	Index uint32 // 0: the whole table
	// Observer is set for the notify cells of an observer, wherever they are; Table and Index are then 0.
	Observer uint64 `json:",omitempty"`
}

// DropSpan queues keys for the garbage collector.
func (ch *Change) DropSpan(ctx context.Context, span DroppedSpan) error {
	return ch.catalog.dropSpan(ctx, ch.txn, span)
}

func (c *Catalog) dropSpan(ctx context.Context, txn *percolator.Txn, span DroppedSpan) error {
	id, err := c.NewID(ctx)
	if err != nil {
		return err
	}
	return txn.Put(idKey(wordDropped, id), encode(span))
}

// CreateSchema adds a schema.
func (ch *Change) CreateSchema(ctx context.Context, name string, o Owned) error {
	id, err := ch.bump(ctx)
	if err != nil {
		return err
	}
	ch.wrote.schema(name)
	return ch.txn.Insert(ch.space().schemaKey(name), encode(schemaRecord{ID: id, Owned: o}))
}

// DropSchema removes a schema, which must be empty.
func (ch *Change) DropSchema(ctx context.Context, name string) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.schema(name)
	return ch.txn.Delete(ch.space().schemaKey(name))
}

// RenameSchema gives a schema another name, which none has; o is its owner and privileges. What names it is the caller's to change.
func (ch *Change) RenameSchema(ctx context.Context, from, to string, o Owned) error {
	var rec schemaRecord
	if err := ch.changeSchema(ctx, from, func(have *schemaRecord) { rec = *have }); err != nil {
		return err
	}
	rec.Owned = o
	ch.wrote.schema(to)
	if err := ch.txn.Delete(ch.space().schemaKey(from)); err != nil {
		return err
	}
	return ch.txn.Insert(ch.space().schemaKey(to), encode(rec))
}

// CommentSchema sets a schema's comment.
func (ch *Change) CommentSchema(ctx context.Context, name, comment string) error {
	return ch.changeSchema(ctx, name, func(rec *schemaRecord) { rec.Comment = comment })
}

// prepare is called when the transaction is ready to commit; it keeps the schema as it will be after the commit. Until
// finish returns, other transactions read theirs from the store.
func (ch *Change) prepare(ctx context.Context) (err error) {
	if ch.local {
		return nil
	}
	if ch.bumped {
		former := ch.held // of a commit that was too late for it
		if ch.held, err = ch.catalog.version.hold(ctx); err != nil {
			ch.held = former
			return err
		}
		ch.catalog.version.release(ctx, former)
	}
	if !ch.committing {
		ch.committing = true
		ch.catalog.committing.Add(1)
	}
	var under *schemaSnapshot
	if ch.bumped && ch.base != nil && ch.txn.Pessimistic() {
		under, err = ch.meet(ctx)
	} else {
		under, err = ch.catalog.committedAt(ctx, ch.txn.ReadTS()) // The commit fails if others have written the version since.
	}
	if err == nil {
		ch.final, err = ch.catalog.foresee(ctx, ch.txn, under)
	}
	return err
}

// finish publishes a committed change and opens what was closed. If the outcome is unknown, it reads it from the store
// before it opens anything. With several processes, the commit may still happen after that read, but not after the
// markers have expired, so they are left to expire.
func (ch *Change) finish(ctx context.Context, commitTS tso.Timestamp, err error) {
	pending := false
	switch {
	case err == nil && commitTS != 0 && ch.final != nil:
		ch.catalog.keep(ch.final, commitTS)
		for _, dropped := range ch.gone {
			dropped.forget()
		}
	case errkind.Of(err) == errkind.Undetermined:
		ch.catalog.current.Store(nil) // Until then every transaction asks the store itself.
		ch.catalog.inForce.Store(nil)
		if err := ch.catalog.refresh(ctx); err != nil {
			ch.catalog.opts.Logger.Warn("schema not known after a lost commit", "err", err)
		}
		p := ch.catalog.current.Load()
		pending = p == nil || ch.final == nil || p.version != ch.final.version
	}
	if ch.committing {
		ch.committing = false
		ch.catalog.committing.Add(-1)
	}
	if !pending {
		ch.catalog.version.release(ctx, ch.held)
	}
	switch {
	case !ch.catalog.opts.Shared:
		ch.catalog.gate.open(ch, ch.tried)
	case pending:
		ch.markers.abandon()
	default:
		ch.markers.open(ctx)
	}
	if ch.token {
		ch.token = false
		ch.catalog.changer.Store(0)
		ch.catalog.changerSession.Store(0)
		ch.catalog.changing <- struct{}{}
	}
	if ch.granting {
		ch.granting = false
		ch.catalog.granting <- struct{}{}
	}
}
