package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
)

// TemporarySchema is the name by which a session finds its schema of temporary relations.
const TemporarySchema = "pg_temp"

// Temporary is the schema of a session's temporary relations. Their descriptors stay in memory, where no other session sees
// them: to make one changes no version of the schema and waits for nobody. Their rows are keys like those of other tables. A
// record for each relation says which process has the session, so that the rows are removed though the process is killed.
//
// Changes belong to the session's transaction and are undone with it, or with its savepoints. One goroutine's.
type Temporary struct {
	catalog *Catalog
	name    string // pg_temp_N
	oid     uint32 // 0: not given yet
	// relations is replaced, not changed: resolvers keep it.
	relations map[uint64]*TableDescriptor
	stats     map[uint64]*TableStats
	// version numbers the states of relations; no number is used twice. changes counts them.
	version, changes uint64
	undo             []undoTemporary
	// written are the tables whose rows the transaction has changed.
	written map[uint64]bool
	over    *withTemporary // what Over last returned
}

// undoTemporary restores a relation as it was before a change; former is nil if there was none.
type undoTemporary struct {
	id     uint64
	former *TableDescriptor
}

// TemporaryRecords is the span of the records of temporary relations, of all sessions.
func TemporaryRecords() kv.Span { return wordSpan(wordTemporary) }

// NewTemporary makes the schema of a session, which its process id names.
func (c *Catalog) NewTemporary(session uint32) *Temporary {
	return &Temporary{catalog: c, name: fmt.Sprintf("%s_%d", TemporarySchema, session)}
}

// Temporary reports whether the relation is one of a session.
func (t *TableDescriptor) Temporary() bool { return IsTemporary(t.Schema) }

// IsTemporary reports whether a schema is that of a session's temporary relations, whichever session's.
func IsTemporary(schema string) bool {
	return schema == TemporarySchema || strings.HasPrefix(schema, TemporarySchema+"_")
}

// Name is the schema's name. Relations may be looked up by TemporarySchema as well.
func (t *Temporary) Name() string { return t.name }

// OID is the schema's number towards PostgreSQL clients, 0 while it has no relation.
func (t *Temporary) OID() uint32 {
	if t == nil || len(t.relations) == 0 {
		return 0
	}
	return t.oid
}

// Version identifies the present relations: 0 if there are none.
func (t *Temporary) Version() uint64 {
	if t == nil || len(t.relations) == 0 {
		return 0
	}
	return t.version
}

// Relation returns the relation of that name, nil if there is none.
func (t *Temporary) Relation(name string) *TableDescriptor {
	if t == nil {
		return nil
	}
	for _, r := range t.relations {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// All lists the relations in order of their ids.
func (t *Temporary) All() []*TableDescriptor {
	if t == nil {
		return nil
	}
	list := slices.Collect(maps.Values(t.relations))
	slices.SortFunc(list, func(a, b *TableDescriptor) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// AtCommit lists the tables, in order of their ids, of which a commit of the transaction drops all, or deletes the rows.
func (t *Temporary) AtCommit() (drop, empty []*TableDescriptor) {
	for _, r := range t.All() {
		switch {
		case r.OnCommit == CommitDrops:
			drop = append(drop, r)
		case r.OnCommit == CommitEmpties && t.written[r.ID]:
			empty = append(empty, r)
		}
	}
	return drop, empty
}

// wrote notes that the transaction changes rows of a table.
func (t *Temporary) wrote(id uint64) {
	if t.written == nil {
		t.written = map[uint64]bool{}
	}
	t.written[id] = true
}

// put makes r the relation of its id, or removes it if r is nil.
func (t *Temporary) put(id uint64, r *TableDescriptor) {
	t.undo = append(t.undo, undoTemporary{id, t.relations[id]})
	t.set(id, r)
}

func (t *Temporary) set(id uint64, r *TableDescriptor) {
	next := maps.Clone(t.relations)
	if next == nil {
		next = map[uint64]*TableDescriptor{}
	}
	if r == nil {
		delete(next, id)
	} else {
		next[id] = r
	}
	t.changes++
	t.relations, t.version, t.over = next, t.changes, nil
}

// rollbackTo undoes the changes after the first n of the transaction.
func (t *Temporary) rollbackTo(n int) {
	for i := len(t.undo) - 1; i >= n; i-- {
		t.set(t.undo[i].id, t.undo[i].former)
	}
	t.undo = t.undo[:n]
}

// end follows the transaction's commit or rollback.
func (t *Temporary) end(committed bool) {
	if t == nil {
		return
	}
	if !committed {
		t.rollbackTo(0)
	}
	t.undo = nil
	clear(t.written)
}

// Drop removes all relations, of a session that ends: no transaction of it is open. What it cannot remove waits for the end of the
// process (sweep).
func (t *Temporary) Drop(ctx context.Context) error {
	if t == nil || len(t.relations) == 0 {
		return nil
	}
	err := t.catalog.retry(ctx, func(txn *percolator.Txn) error {
		for _, r := range t.relations {
			if err := t.catalog.dropTemporary(ctx, txn, r.ID, temporaryOf(r)); err != nil {
				return err
			}
		}
		return nil
	})
	for id := range t.relations {
		t.set(id, nil)
	}
	return err
}

// temporaryRecord is stored for each temporary relation.
type temporaryRecord struct {
	// Process is the key of the member that has the session, of a Shared catalog.
	Process string `json:",omitempty"`
	// Created is when, in milliseconds since 1970.
	Created int64
	// ValueID is that of a sequence.
	ValueID uint64 `json:",omitempty"`
}

func temporaryOf(t *TableDescriptor) (rec temporaryRecord) {
	if t.Sequence != nil {
		rec.ValueID = t.Sequence.ValueID
	}
	return rec
}

// putTemporary stores the record of a new relation, or one whose sequence has another value.
func (ch *Change) putTemporary(t *TableDescriptor) error {
	rec := temporaryOf(t)
	rec.Process, rec.Created = string(ch.catalog.lease.member.key), time.Now().UnixMilli()
	return ch.txn.Put(idKey(wordTemporary, t.ID), encode(rec))
}

// dropTemporary queues the keys of a temporary relation for the garbage collector, and deletes its record.
func (c *Catalog) dropTemporary(ctx context.Context, txn *percolator.Txn, id uint64, rec temporaryRecord) error {
	if rec.ValueID != 0 {
		if err := txn.Delete(idKey(wordSequence, rec.ValueID)); err != nil {
			return err
		}
	} else if err := c.dropSpan(ctx, txn, DroppedSpan{Table: id}); err != nil {
		return err
	}
	return txn.Delete(idKey(wordTemporary, id))
}

// temporaryGrace is how long the relations of a process that is not a member any more are left alone: a process that stood still for
// less finds them as they were.
const temporaryGrace = 24 * time.Hour

// sweepTemporary removes what processes that were killed have left of their sessions' temporary relations.
func (c *Catalog) sweepTemporary(ctx context.Context) error {
	return c.retry(ctx, func(txn *percolator.Txn) error {
		left := map[uint64]temporaryRecord{}
		err := scan(ctx, txn, wordTemporary, func(key, value []byte) error {
			id, err := idOfKey(wordTemporary, key)
			if err != nil {
				return err
			}
			var rec temporaryRecord
			err = decode(key, value, &rec)
			left[id] = rec
			return err
		})
		if err != nil {
			return err
		}
		for id, rec := range left {
			if gone, err := c.processGone(ctx, txn, rec); err != nil {
				return err
			} else if !gone {
				continue
			}
			if err := c.dropTemporary(ctx, txn, id, rec); err != nil {
				return err
			}
		}
		return nil
	})
}

// processGone reports whether the process of a temporary relation has ended. A data directory that is not shared has one process:
// this one, which has just begun.
func (c *Catalog) processGone(ctx context.Context, txn *percolator.Txn, rec temporaryRecord) (bool, error) {
	if !c.opts.Shared || rec.Process == "" {
		return true, nil
	}
	if time.Since(time.UnixMilli(rec.Created)) < temporaryGrace {
		return false, nil
	}
	member, err := readMember(ctx, txn, []byte(rec.Process))
	return member == nil, err
}

// Over returns r with the session's temporary relations, whose bare names are found before all others.
func (t *Temporary) Over(r Resolver) Resolver {
	if t == nil || len(t.relations) == 0 || r == nil {
		return r
	}
	if t.over != nil && t.over.Resolver == r {
		return t.over
	}
	w := &withTemporary{Resolver: r, schema: t.name, oid: t.oid, stats: t.stats, byID: maps.Clone(t.relations)}
	w.link()
	t.over = w
	return w
}

// withTemporary is a schema with the temporary relations of a session.
type withTemporary struct {
	Resolver
	schema string
	oid    uint32
	byID   map[uint64]*TableDescriptor
	stats  map[uint64]*TableStats
	types  *Types
}

// Types implements Resolver.
func (w *withTemporary) Types() *Types { return w.types }

func (w *withTemporary) named(name string) *TableDescriptor {
	for _, t := range w.byID {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Relation implements Resolver.
func (w *withTemporary) Relation(ctx context.Context, schema, name string) (*TableDescriptor, error) {
	switch schema {
	case "":
		if t := w.named(name); t != nil {
			return t, nil
		}
	case TemporarySchema, w.schema:
		return w.named(name), nil
	}
	return w.Resolver.Relation(ctx, schema, name)
}

// RelationByID implements Resolver.
func (w *withTemporary) RelationByID(ctx context.Context, id uint64) (*TableDescriptor, error) {
	if t := w.byID[id]; t != nil {
		return t, nil
	}
	return w.Resolver.RelationByID(ctx, id)
}

// Relations implements Resolver.
func (w *withTemporary) Relations(ctx context.Context) ([]*TableDescriptor, error) {
	others, err := w.Resolver.Relations(ctx)
	if err != nil {
		return nil, err
	}
	list := slices.Concat(others, slices.Collect(maps.Values(w.byID)))
	slices.SortFunc(list, func(a, b *TableDescriptor) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// SchemaExists implements Resolver.
func (w *withTemporary) SchemaExists(ctx context.Context, schema string) (bool, error) {
	if schema == w.schema || schema == TemporarySchema {
		return true, nil
	}
	return w.Resolver.SchemaExists(ctx, schema)
}

// Schemas implements Resolver.
func (w *withTemporary) Schemas(ctx context.Context) ([]string, error) {
	others, err := w.Resolver.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	all := append(slices.Clone(others), w.schema)
	slices.Sort(all)
	return all, nil
}

// Stats implements Resolver.
func (w *withTemporary) Stats(ctx context.Context, tableID uint64) (*TableStats, error) {
	if w.byID[tableID] == nil {
		return w.Resolver.Stats(ctx, tableID)
	}
	if s := w.stats[tableID]; s != nil {
		return s, nil
	}
	return &TableStats{}, nil
}

// SchemaOID implements SchemaDetails.
func (w *withTemporary) SchemaOID(name string) uint32 {
	if name == w.schema {
		return w.oid
	}
	if d, ok := w.Resolver.(SchemaDetails); ok {
		return d.SchemaOID(name)
	}
	return 0
}

// SchemaComment implements SchemaDetails.
func (w *withTemporary) SchemaComment(name string) string {
	if d, ok := w.Resolver.(SchemaDetails); ok {
		return d.SchemaComment(name)
	}
	return ""
}

// SequenceValue implements SchemaDetails.
func (w *withTemporary) SequenceValue(ctx context.Context, t *TableDescriptor) (int64, bool, error) {
	if d, ok := w.Resolver.(SchemaDetails); ok {
		return d.SequenceValue(ctx, t)
	}
	return t.Sequence.Start, false, nil
}

// ownTemporary returns the session's temporary relation of that id, or nil.
func (ch *Change) ownTemporary(id uint64) *TableDescriptor {
	if ch.temporary == nil {
		return nil
	}
	return ch.temporary.relations[id]
}

func (ch *Change) createTemporary(ctx context.Context, t *TableDescriptor) error {
	own := ch.temporary
	if own.oid == 0 {
		id, err := ch.NewID(ctx)
		if err != nil {
			return err
		}
		own.oid = uint32(id)
	}
	t.Schema = own.name
	t.Version = own.changes + 1
	t.WriterVersion = t.Version
	if t.Kind == KindSequence {
		ch.catalog.describeSequence(t)
	}
	ch.created = append(ch.created, t.ID)
	own.put(t.ID, t)
	return ch.putTemporary(t)
}

func (ch *Change) updateTemporary(old, t *TableDescriptor, exclusive bool) error {
	t.Version = ch.temporary.changes + 1
	if exclusive {
		t.WriterVersion = t.Version
	}
	ch.temporary.put(t.ID, t)
	if t.Sequence == nil || t.Sequence.ValueID == old.Sequence.ValueID {
		return nil
	}
	return ch.putTemporary(t)
}

func (ch *Change) forgetTemporary(t *TableDescriptor) error {
	ch.temporary.put(t.ID, nil)
	if t.Sequence != nil {
		if err := ch.txn.Delete(idKey(wordSequence, t.Sequence.ValueID)); err != nil {
			return err
		}
	}
	return ch.txn.Delete(idKey(wordTemporary, t.ID))
}

// putTemporaryStats keeps statistics for as long as the relation exists, whether or not the transaction commits.
func (ch *Change) putTemporaryStats(t *TableDescriptor, stats *TableStats) {
	next := t.Clone()
	next.Version = ch.temporary.changes + 1
	next.StatsVersion = next.Version
	ch.temporary.put(t.ID, next)
	kept := maps.Clone(ch.temporary.stats)
	if kept == nil {
		kept = map[uint64]*TableStats{}
	}
	kept[t.ID] = stats
	ch.temporary.stats = kept
}

// TemporaryIDs lists the temporary relations of all sessions that have keys, as of a snapshot.
func TemporaryIDs(ctx context.Context, r percolator.Reader) (ids []uint64, err error) {
	err = scan(ctx, r, wordTemporary, func(key, _ []byte) error {
		id, err := idOfKey(wordTemporary, key)
		ids = append(ids, id)
		return err
	})
	return ids, err
}
