package executor

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// act does what the foreign keys to a table require for its lost keys: the oldest first, each with all that follows from it.
func (k *keyChecks) act(ctx context.Context, q *keyQueue) error {
	for i := range q.incoming {
		in := &q.incoming[i]
		deleted, updated, moved := in.deleted, in.updated, in.moved
		in.deleted, in.updated, in.moved = rowBuffer{mem: &k.ex.mem}, rowBuffer{mem: &k.ex.mem}, rowBuffer{mem: &k.ex.mem}
		err := k.actOn(ctx, in.ForeignKey, nil, &deleted, in.OnDelete, false)
		if err == nil {
			err = k.actOn(ctx, in.ForeignKey, nil, &updated, in.OnUpdate, true)
		}
		if err == nil {
			err = k.actOn(ctx, in.ForeignKey, in.movedIn, &moved, in.OnUpdate, true)
		}
		deleted.release()
		updated.release()
		moved.release()
		if err != nil {
			return err
		}
	}
	return nil
}

// actOn does what a foreign key requires for lost keys: the values of the referenced columns, and the new ones if update is set. in is the
// table that errors name, nil for the one that had the key.
func (k *keyChecks) actOn(ctx context.Context, key *planner.ForeignKey, in *catalog.TableDescriptor, lost *rowBuffer, action catalog.KeyAction, update bool) error {
	for group := range slices.Chunk(lost.rows, eagerGroup) {
		f, err := k.newFinder(key, group)
		if err != nil {
			return err
		}
		f.in = in
		if err := k.lockGuards(ctx, key, f.sortedKeys(), false); err != nil {
			return err
		}
		if action < catalog.KeyCascade {
			err = k.refuse(ctx, f, action)
		} else {
			err = k.cascade(ctx, f, action, update)
		}
		if err == nil && action == catalog.KeySetDefault {
			err = k.requireOtherDefault(ctx, key, group)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// requireOtherDefault fails if the default is a lost key itself: the children that have it have not changed.
func (k *keyChecks) requireOtherDefault(ctx context.Context, key *planner.ForeignKey, lost []types.Row) error {
	f, err := k.newFinder(key, lost)
	if err != nil {
		return err
	}
	return k.refuse(ctx, f, catalog.KeyNoAction)
}

// refuse fails if a child references one of the keys; with NO ACTION, keys that another row has now do not count.
func (k *keyChecks) refuse(ctx context.Context, f *childFinder, action catalog.KeyAction) error {
	return k.ex.txn.AsideNow(ctx, func(r percolator.Reader) error {
		if action == catalog.KeyNoAction {
			if err := f.dropPresent(ctx, r); err != nil {
				return err
			}
		}
		if err := f.find(ctx, r, 1); err != nil || len(f.found) == 0 {
			return err
		}
		at := f.found[0].lost
		holder := f.in
		if holder == nil {
			holder = f.key.HolderOf(f.keys[at])
		}
		return k.stillReferenced(ctx, f.key, holder, f.lost[at])
	})
}

// cascade has an action change the children that reference the keys, and then does what follows from that.
func (k *keyChecks) cascade(ctx context.Context, f *childFinder, action catalog.KeyAction, update bool) error {
	g, event := k.triggersOf(f.key), catalog.TriggerUpdate
	if action == catalog.KeyCascade && !update {
		event = catalog.TriggerDelete
	}
	if g != nil {
		if err := g.beginEvent(ctx, event); err != nil {
			return err
		}
	}
	w := k.writers[f.key.Child.ID]
	if w == nil {
		rules := f.key.Rules
		w = newTableWriter(k.ex, rules.Table, rules.Checks, allOrdinals(rules.Table), rules.Observed, rules.Indexed)
		w.keys, w.generated, w.bound = k.ex.queueFor(rules), rules.Generated, rules.Bound
		k.writers[f.key.Child.ID] = w
	}
	if g != nil {
		g.sink = &w.sink
	}
	for !f.ended {
		err := k.ex.txn.AsideNow(ctx, func(r percolator.Reader) error { return f.find(ctx, r, eagerGroup) })
		if err != nil {
			return err
		}
		if len(f.found) == 0 {
			continue
		}
		rows := make([][]byte, len(f.found))
		for i := range f.found {
			rows[i] = f.found[i].key
		}
		if err := k.lock(ctx, percolator.LockOptions{}, rows); err != nil {
			return err
		}
		if err := k.changeFound(ctx, w, g, f, action, update); err != nil {
			return err
		}
		if err := w.sink.flush(ctx); err != nil {
			return err
		}
	}
	if err := w.sink.finish(ctx); err != nil {
		return err
	}
	if err := k.moves[f.key.Moves].finish(ctx); err != nil {
		return err
	}
	return k.run(ctx)
}

// changeFound has an action change the children that f has found, as the owner of their table: whoever changes the parent need not have privileges on it,
// and its constraints and triggers before rows do not get theirs.
func (k *keyChecks) changeFound(ctx context.Context, w *tableWriter, g *triggers, f *childFinder, action catalog.KeyAction, update bool) error {
	if owner := w.table.OwnerOID(); k.ex.rt.ActAs != nil && owner != k.ex.rt.Role {
		defer k.ex.rt.ActAs(owner)()
	}
	for i := range f.found {
		if err := k.ex.tick(ctx); err != nil {
			return err
		}
		if err := k.change(ctx, w, g, f, &f.found[i], action, update); err != nil {
			return err
		}
	}
	return nil
}

// change has an action change one child.
func (k *keyChecks) change(ctx context.Context, w *tableWriter, g *triggers, f *childFinder, c *foundChild, action catalog.KeyAction, update bool) error {
	if action == catalog.KeyCascade && !update {
		return k.deleteChild(ctx, w, g, c.row)
	}
	next := slices.Clone(c.row)
	for i, ord := range f.key.ChildOrdinals {
		var err error
		switch {
		case action == catalog.KeyCascade:
			next[ord], err = f.key.Values[i].Eval(&k.ex.ev, f.lost[c.lost][len(f.key.Columns):])
		case !update && f.key.DeleteColumns != nil && !slices.Contains(f.key.DeleteColumns, f.key.Columns[i]):
		case action == catalog.KeySetNull:
			next[ord] = types.Null
		default:
			next[ord], err = f.key.Defaults[i].Eval(&k.ex.ev, nil)
		}
		if err != nil {
			return err
		}
	}
	if ok, err := g.before(ctx, catalog.TriggerUpdate, c.row, next); !ok || err != nil {
		return err
	}
	if err := w.unmodified(ctx, c.row, "updated"); err != nil {
		return err
	}
	if err := w.generate(next); err != nil {
		return err
	}
	if f.key.Moves != nil {
		stays, err := w.bound.Holds(&k.ex.ev, next)
		if err != nil {
			return err
		}
		if !stays {
			return k.move(ctx, w, g, f.key, c.row, next)
		}
	}
	if err := w.check(ctx, next); err != nil {
		return err
	}
	k.changed[w.table.ID]++
	if err := w.update(ctx, c.row, next); err != nil {
		return err
	}
	return g.written(catalog.TriggerUpdate, c.row, next)
}

// deleteChild has ON DELETE CASCADE delete one child.
func (k *keyChecks) deleteChild(ctx context.Context, w *tableWriter, g *triggers, row types.Row) error {
	if ok, err := g.before(ctx, catalog.TriggerDelete, row, nil); !ok || err != nil {
		return err
	}
	if err := w.unmodified(ctx, row, "deleted"); err != nil {
		return err
	}
	k.changed[w.table.ID]++
	if err := w.delete(ctx, row); err != nil {
		return err
	}
	return g.written(catalog.TriggerDelete, row, nil)
}

// triggersOf returns the triggers of the child that a foreign key's actions execute; nil: none.
func (k *keyChecks) triggersOf(key *planner.ForeignKey) *triggers {
	if key.Triggers == nil {
		return nil
	}
	g := k.fires[key]
	if g == nil {
		g = newTriggers(k.ex, key.Child, key.Triggers, catalog.TriggerDelete, catalog.TriggerUpdate)
		if k.fires == nil {
			k.fires = map[*planner.ForeignKey]*triggers{}
		}
		k.fires[key] = g
		k.fired = append(k.fired, g)
	}
	return g
}

// triggers lists the triggers that actions have executed, in the order in which they began.
func (k *keyChecks) triggers() []*triggers {
	if k == nil {
		return nil
	}
	return k.fired
}

// childFinder finds the children that reference keys, by an index of theirs or else among all rows.
type childFinder struct {
	k    *keyChecks
	key  *planner.ForeignKey
	in   *catalog.TableDescriptor // the table that errors name; nil: the one that had the key
	lost []types.Row              // the referenced columns, in the order of the constraint
	keys [][]byte                 // of the parent's index, of each of lost; nil: not looked for
	// With an index: the spans to look in, and the key that each is for. Otherwise: the keys, and the span of the rows that are left.
	spans  []childSpan
	byKey  map[string]int
	rest   kv.Span
	values types.Row

	decoder rowenc.Decoder
	ended   bool // all have been found
	found   []foundChild
	rows    rowBuffer
	scratch []byte
	row     types.Row // nil before the first child
}

type childSpan struct {
	start, end []byte
	lost       int
}

// foundChild is a row, the key under which it is stored, and the lost key that it references.
type foundChild struct {
	row  types.Row
	key  []byte
	lost int
}

// newFinder prepares a search for the children of lost keys.
func (k *keyChecks) newFinder(key *planner.ForeignKey, lost []types.Row) (*childFinder, error) {
	f := &childFinder{k: k, key: key, lost: lost, rows: rowBuffer{mem: &k.ex.mem}}
	n := len(key.Columns)
	for i := range lost {
		parent, err := key.AppendParentKey(nil, &k.ex.ev, indexOrder(key, lost[i]))
		if err != nil {
			return nil, err
		}
		f.keys = append(f.keys, parent)
	}
	if key.ChildIndex == nil {
		f.byKey = make(map[string]int, len(lost))
		for i := range f.keys {
			f.byKey[string(f.keys[i])] = i
		}
		f.rest.Start, f.rest.End = rowenc.IndexSpan(key.Child.ID, key.Child.Primary.ID)
		return f, nil
	}
	for i := range lost {
		f.values = f.values[:0]
		for _, at := range key.ChildKey[:n] {
			f.values = append(f.values, lost[i][at])
		}
		start, err := rowenc.AppendKeyPrefix(nil, key.Child, key.ChildIndex, f.values...)
		if err != nil {
			return nil, err
		}
		f.spans = append(f.spans, childSpan{start, rowenc.PrefixEnd(start), i})
	}
	slices.SortFunc(f.spans, func(a, b childSpan) int { return bytes.Compare(a.start, b.start) })
	f.spans = slices.CompactFunc(f.spans, func(a, b childSpan) bool { return bytes.Equal(a.start, b.start) })
	return f, nil
}

// sortedKeys lists the parent's keys in order.
func (f *childFinder) sortedKeys() [][]byte {
	keys := slices.Clone(f.keys)
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal)
}

// dropPresent removes the keys that rows of the parent have.
func (f *childFinder) dropPresent(ctx context.Context, r percolator.Reader) error {
	values, err := r.BatchGet(ctx, f.keys)
	if err != nil {
		return err
	}
	for i := range values {
		if values[i] != nil {
			delete(f.byKey, string(f.keys[i]))
			f.spans = slices.DeleteFunc(f.spans, func(s childSpan) bool { return s.lost == i })
		}
	}
	return nil
}

// find finds up to limit further children.
func (f *childFinder) find(ctx context.Context, r percolator.Reader, limit int) error {
	f.found = f.found[:0]
	f.rows.release()
	if f.key.ChildIndex == nil {
		return f.findByScan(ctx, r, limit)
	}
	return f.findByIndex(ctx, r, limit)
}

// findByScan looks at all rows of the child.
func (f *childFinder) findByScan(ctx context.Context, r percolator.Reader, limit int) error {
	if len(f.byKey) == 0 {
		f.ended = true
		return nil
	}
	it := r.Scan(ctx, f.rest, percolator.ScanOptions{})
	defer it.Close()
	for len(f.found) < limit && it.Next(ctx) {
		if err := f.k.ex.tick(ctx); err != nil {
			return err
		}
		if err := f.decode(it.Key(), it.Value()); err != nil {
			return err
		}
		var null int
		var err error
		if f.scratch, null, err = f.key.ParentKey(f.scratch[:0], &f.k.ex.ev, f.row); err != nil {
			return err
		}
		if null > 0 {
			continue
		}
		if lost, found := f.byKey[string(f.scratch)]; found {
			if err := f.add(bytes.Clone(it.Key()), lost); err != nil {
				return err
			}
		}
	}
	if len(f.found) < limit {
		f.ended = true
		return it.Err()
	}
	f.rest.Start = append(bytes.Clone(it.Key()), 0)
	return it.Err()
}

// decode makes f.row a row of the child.
func (f *childFinder) decode(key, value []byte) error {
	if f.row == nil {
		f.row = make(types.Row, len(f.key.Child.Columns))
		if err := f.decoder.Init(f.key.Child, &f.key.Child.Primary, allOrdinals(f.key.Child)); err != nil {
			return err
		}
	}
	return f.decoder.Decode(key, value, f.row)
}

// add lists f.row.
func (f *childFinder) add(key []byte, lost int) error {
	row, err := f.rows.keep(f.row)
	if err != nil {
		return err
	}
	f.found = append(f.found, foundChild{row, key, lost})
	return f.rows.book(int64(len(key)) + keyEntryBytes)
}

// findByIndex looks into an index of the child, and then at the rows that it names.
func (f *childFinder) findByIndex(ctx context.Context, r percolator.Reader, limit int) error {
	if len(f.spans) == 0 {
		f.ended = true
		return nil
	}
	keys, owners, err := f.findEntries(ctx, r, limit)
	if err != nil {
		return err
	}
	values, err := r.BatchGet(ctx, keys)
	if err != nil {
		return err
	}
	for i, value := range values {
		if err := f.k.ex.tick(ctx); err != nil {
			return err
		}
		if value == nil {
			continue // an entry without a row, for percodb check
		}
		if err := f.decode(keys[i], value); err != nil {
			return err
		}
		if err := f.add(keys[i], owners[i]); err != nil {
			return err
		}
	}
	return nil
}

// findEntries returns the keys of up to limit rows, and the lost keys that they reference.
func (f *childFinder) findEntries(ctx context.Context, r percolator.Reader, limit int) (keys [][]byte, owners []int, err error) {
	spans := make([]kv.Span, len(f.spans))
	for i, s := range f.spans {
		spans[i] = kv.Span{Start: s.start, End: s.end}
	}
	it := r.ScanSpans(ctx, spans, percolator.ScanOptions{PageHint: limit})
	defer it.Close()
	at := 0
	for len(keys) < limit && it.Next(ctx) {
		if err := f.k.ex.tick(ctx); err != nil {
			return nil, nil, err
		}
		for f.spans[at].end != nil && bytes.Compare(it.Key(), f.spans[at].end) >= 0 {
			at++
		}
		key := bytes.Clone(it.Key())
		if f.key.ChildIndex.ID != f.key.Child.Primary.ID {
			if key, err = rowenc.AppendRowKey(nil, f.key.Child, f.key.ChildIndex, it.Key(), it.Value()); err != nil {
				return nil, nil, err
			}
		}
		keys, owners = append(keys, key), append(owners, f.spans[at].lost)
	}
	if it.Err() != nil {
		return nil, nil, it.Err()
	}
	if len(keys) < limit {
		f.ended, f.spans = true, nil
	} else {
		f.spans = f.spans[at:]
		f.spans[0].start = append(bytes.Clone(it.Key()), 0)
	}
	return keys, owners, nil
}
