package ddl

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/entries"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// indexBuilder does the steps of the build of one index. One goroutine's.
type indexBuilder struct {
	*Deps
	index uint32
	owner string
	rec   *catalog.BuildRecord
	// table is the table as it will be with the index ix.
	table   *catalog.TableDescriptor
	ix      *catalog.IndexDescriptor
	log     uint64
	rows    kv.Span
	run     *run           // for messages, and to bind expressions
	make    *entries.Maker // nil: a row is all that the index holds
	decoder rowenc.Decoder
	row     types.Row
	arena   rowenc.Arena
	// stepped, if set, is called after each step.
	stepped func()
}

// entry is one entry of an index. claims: its key, without the row's, must be that of no other row.
type entry struct {
	key, value []byte
	claims     bool
}

// complete does all steps that are left. A step that has failed for a reason that goes by is repeated.
func (b *indexBuilder) complete(ctx context.Context) error {
	last, attempts := int64(-1), 0
	for {
		err := b.proceed(ctx)
		if err == nil || !passing(err) {
			return err
		}
		if b.rec != nil && b.rec.Rows != last {
			last, attempts = b.rec.Rows, 0
		}
		if attempts++; attempts == maxAttempts {
			return percolator.CauseOf(err)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// passing reports whether the cause of an error goes by. The outcome of a step that is not known stands in the record.
func passing(err error) bool {
	switch errkind.Of(err) {
	case errkind.WriteConflict, errkind.CommitTooLate, errkind.Undetermined, errkind.Unavailable, errkind.OracleUnavailable, errkind.SchemaChanged:
		return true
	}
	return false
}

// proceed does the steps that are left.
func (b *indexBuilder) proceed(ctx context.Context) error {
	if err := b.open(ctx); err != nil {
		return err
	}
	if b.make != nil {
		defer b.run.actAsOwner(b.table)()
	}
	if b.rec.Phase == catalog.BuildScans {
		if err := b.scan(ctx); err != nil {
			return b.run.explainDuplicate(b.table, err)
		}
	}
	for round := 1; ; round++ {
		many, err := b.manyNoted(ctx)
		if err == nil && (many && round < mergeRounds || b.rec.To != 0) {
			if err = b.merge(ctx); err == nil {
				continue
			}
		}
		done := false
		if err == nil {
			done, err = b.finish(ctx, round >= mergeRounds)
		}
		if done || err != nil {
			return b.run.explainDuplicate(b.table, err)
		}
	}
}

// manyNoted reports whether more rows have been noted than are merged while the table is closed.
func (b *indexBuilder) manyNoted(ctx context.Context) (bool, error) {
	cells, _, err := b.DB.Observers().Scan(ctx, b.log, b.rows, mergeFew+1, nil)
	return len(cells) > mergeFew, err
}

// open reads the record and the schema.
func (b *indexBuilder) open(ctx context.Context) error {
	txn, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	resolver, err := b.Catalog.At(ctx, txn)
	if err != nil {
		return err
	}
	t, err := resolver.RelationByID(ctx, b.rec.Table)
	if err != nil {
		return err
	}
	var own *catalog.IndexBuild
	if t != nil {
		own = t.BuildOf(b.index)
	}
	if own == nil || own.Failed() {
		return errBuildEnded
	}
	b.run = &run{Deps: b.Deps, txn: txn, alone: true}
	b.run.see(resolver)
	b.table, b.log = t.WithBuild(own), own.Log
	b.ix = &b.table.Indexes[len(b.table.Indexes)-1]
	if b.table.Outdated(b.ix) {
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "the rules of a collation have changed since the build of index %q began", b.ix.Name)
	}
	if b.make, err = b.run.entryMaker(ctx, b.table); err != nil {
		return err
	}
	b.row = make(types.Row, len(b.table.Columns))
	ordinals := make([]int, len(b.row))
	for i := range ordinals {
		if ordinals[i] = i; b.make == nil && !inEntries(b.table, b.ix, b.table.Columns[i].ID) {
			ordinals[i] = -1
		}
	}
	b.rows.Start, b.rows.End = rowenc.IndexSpan(b.table.ID, b.table.Primary.ID)
	return b.decoder.Init(b.table, &b.table.Primary, ordinals)
}

// inEntries reports whether entries of an index of t are made of a column.
func inEntries(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, column uint32) bool {
	is := func(c catalog.IndexColumn) bool { return c.ColumnID == column }
	return slices.Contains(ix.Include, column) || slices.ContainsFunc(ix.Columns, is) || slices.ContainsFunc(t.Primary.Columns, is)
}

// begin begins the transaction of a step, which commit ends. Nobody else does a step between the two.
func (b *indexBuilder) begin(ctx context.Context) (*percolator.Txn, error) {
	txn, err := b.DB.Begin(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.read(ctx, txn); err != nil {
		txn.Close()
		return nil, err
	}
	return txn, nil
}

// read reads the record, which must say that the builder is at the build.
func (b *indexBuilder) read(ctx context.Context, r percolator.Reader) error {
	rec, err := catalog.BuildRecordOf(ctx, r, b.index)
	switch {
	case err != nil:
		return err
	case rec == nil:
		return errBuildEnded
	case rec.Owner != b.owner:
		return errBuildTaken
	}
	b.rec = rec
	return nil
}

// commit commits a step with the record.
func (b *indexBuilder) commit(ctx context.Context, txn *percolator.Txn) error {
	b.rec.Until = buildLeaseFrom(txn.StartTS())
	if err := catalog.PutBuild(txn, b.index, b.rec); err != nil {
		return err
	}
	if _, err := txn.Commit(ctx); err != nil {
		return err
	}
	b.Builds.update(b.index, b.rec)
	if b.stepped != nil {
		b.stepped()
	}
	return nil
}

// scan writes the entries of the rows as of a snapshot.
func (b *indexBuilder) scan(ctx context.Context) error {
	if b.rec.From == 0 {
		if err := b.chooseFrom(ctx); err != nil {
			return err
		}
	}
	reader := b.DB.BeginAt(b.rec.From)
	defer reader.Close()
	span := b.rows
	if b.rec.Next != nil {
		span.Start = b.rec.Next
	}
	it := reader.Scan(ctx, span, percolator.ScanOptions{})
	defer it.Close()
	s := scanStep{b: b}
	defer s.close()
	if err := readAhead(ctx, it, func(key, value []byte) error { return s.add(ctx, key, value) }); err != nil {
		return err
	}
	return s.end(ctx)
}

// chooseFrom makes now the snapshot of which the entries are written.
func (b *indexBuilder) chooseFrom(ctx context.Context) error {
	txn, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	b.rec.From = txn.StartTS()
	return b.commit(ctx, txn)
}

// scanStep is the transactions of a scan, one after the other.
type scanStep struct {
	b     *indexBuilder
	txn   *percolator.Txn // nil: the next one has not begun
	out   txnWriter
	bytes int
	begun time.Time
	list  []entry
}

func (s *scanStep) close() {
	if s.txn != nil {
		s.txn.Close()
		s.txn = nil
	}
}

// add writes the entries of a row.
func (s *scanStep) add(ctx context.Context, key, value []byte) (err error) {
	b := s.b
	if err = s.begin(ctx); err != nil {
		return err
	}
	if s.list, err = b.entriesOf(s.list[:0], key, value); err != nil {
		return err
	}
	for i := range s.list {
		e := &s.list[i]
		if err := s.out.write(ctx, s.txn, &write{e.key, e.value, e.claims}); err != nil {
			return err
		}
		s.bytes += len(e.key) + len(e.value)
	}
	if b.rec.Rows++; b.rec.Rows%mergeEvery == 0 {
		b.Builds.update(b.index, b.rec)
	}
	if b.rec.Rows%b.ProgressRows == 0 {
		b.Report.Progress("building index", b.rec.Rows)
	}
	if s.bytes < b.stepBytes() && (b.rec.Rows%mergeEvery != 0 || time.Since(s.begun) < buildTime) {
		return nil
	}
	b.rec.Next = append(bytes.Clone(key), 0)
	return s.commit(ctx)
}

// stepBytes is the size of a step's entries.
func (d *Deps) stepBytes() int {
	if d.OneTransaction && d.ChunkBytes == defaultChunkBytes {
		return buildBytes
	}
	return d.ChunkBytes
}

func (s *scanStep) begin(ctx context.Context) (err error) {
	if s.txn == nil {
		s.txn, err = s.b.begin(ctx)
		s.bytes, s.begun = 0, time.Now()
	}
	return err
}

func (s *scanStep) commit(ctx context.Context) error {
	defer s.close()
	return s.b.commit(ctx, s.txn)
}

// end commits the last step.
func (s *scanStep) end(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.b.rec.Phase, s.b.rec.Next = catalog.BuildMerges, nil
	return s.commit(ctx)
}

// entriesOf appends the entries of a row, as it is stored; of none if value is nil.
func (b *indexBuilder) entriesOf(list []entry, key, value []byte) ([]entry, error) {
	if value == nil {
		return list, nil
	}
	if err := b.decoder.Decode(key, value, b.row); err != nil {
		return nil, err
	}
	add := func(held types.Row) error {
		k, hasNull, err := rowenc.AppendKey(b.arena.Start(), b.table, b.ix, held)
		if err != nil {
			return err
		}
		e := entry{key: b.arena.Finish(k), claims: b.ix.Unique && !hasNull}
		v, err := rowenc.AppendEntry(b.arena.Start(), b.table, b.ix, held)
		e.value = b.arena.Finish(v)
		list = append(list, e)
		return err
	}
	if b.make == nil {
		return list, add(b.row)
	}
	b.make.Begin(b.row)
	err := b.make.Entries(len(b.table.Indexes)-1, add)
	return list, err
}

// merge does one round of merging.
func (b *indexBuilder) merge(ctx context.Context) error {
	if b.rec.To == 0 {
		if err := b.chooseTo(ctx); err != nil {
			return err
		}
	}
	from, to := b.DB.BeginAt(b.rec.From), b.DB.BeginAt(b.rec.To)
	defer from.Close()
	defer to.Close()
	passes := []mergePass{deleteAndPut}
	if b.ix.Unique {
		passes = []mergePass{deleteOnly, putOnly}
	}
	for i, pass := range passes {
		last := i == len(passes)-1
		_, err := b.eachNoted(ctx, func(cells []kv.NotifyCell) error { return b.mergeStep(ctx, cells, from, to, pass, last) })
		if err != nil {
			return err
		}
	}
	txn, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	b.rec.From, b.rec.To = b.rec.To, 0
	return b.commit(ctx, txn)
}

// chooseTo makes now the snapshot of the next round. All changes that it shows have been noted when the round begins: a scan waits for one-phase
// commits under way, whose changes the snapshot shows although Settle does not see them.
func (b *indexBuilder) chooseTo(ctx context.Context) error {
	txn, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	it := txn.Scan(ctx, b.rows, percolator.ScanOptions{KeysOnly: true, ReadAhead: true})
	for it.Next(ctx) {
	}
	err = it.Err()
	it.Close()
	if err != nil {
		return err
	}
	if err := b.DB.Observers().Settle(ctx, b.rows, txn.StartTS()); err != nil {
		return err
	}
	b.rec.To = txn.StartTS()
	return b.commit(ctx, txn)
}

// eachNoted calls f with the keys of all rows that have been noted, and returns their number.
func (b *indexBuilder) eachNoted(ctx context.Context, f func(cells []kv.NotifyCell) error) (noted int, err error) {
	var next []byte
	for {
		var cells []kv.NotifyCell
		if cells, next, err = b.DB.Observers().Scan(ctx, b.log, b.rows, mergePage, next); err != nil {
			return 0, err
		}
		if len(cells) > 0 {
			if err := f(cells); err != nil {
				return 0, err
			}
		}
		if noted += len(cells); next == nil {
			return noted, nil
		}
	}
}

// mergePass says which entries of a row are written.
type mergePass int

const (
	deleteOnly mergePass = iota
	putOnly
	deleteAndPut
)

// mergeStep merges some rows in a transaction. After the last one for them they need no longer be noted.
func (b *indexBuilder) mergeStep(ctx context.Context, cells []kv.NotifyCell, from, to *percolator.Txn, pass mergePass, last bool) error {
	rows, err := b.changedRows(ctx, cells, from, to)
	if err != nil {
		return err
	}
	txn, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	if err := mergeRows(ctx, txn, rows, pass); err != nil {
		return err
	}
	snapshot := to.ReadTS()
	if err := b.commit(ctx, txn); err != nil || !last {
		return err
	}
	done := make([]kv.NotifyUpTo, len(cells))
	for i := range cells {
		done[i] = kv.NotifyUpTo{Key: cells[i].Key, UpTo: snapshot}
	}
	_, err = b.DB.Observers().Clear(ctx, b.log, done)
	return err
}

// changedRow is the entries of a row as of two snapshots.
type changedRow struct{ from, to []entry }

func (b *indexBuilder) changedRows(ctx context.Context, cells []kv.NotifyCell, from, to *percolator.Txn) ([]changedRow, error) {
	keys := make([][]byte, len(cells))
	for i := range cells {
		keys[i] = cells[i].Key
	}
	olds, err := from.BatchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	news, err := to.BatchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	rows := make([]changedRow, len(keys))
	for i, key := range keys {
		if rows[i].from, err = b.entriesOf(nil, key, olds[i]); err != nil {
			return nil, err
		}
		if rows[i].to, err = b.entriesOf(nil, key, news[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// mergeRows replaces the entries of rows.
func mergeRows(ctx context.Context, txn *percolator.Txn, rows []changedRow, pass mergePass) error {
	if pass != putOnly {
		for i := range rows {
			if err := rows[i].deleteOld(ctx, txn); err != nil {
				return err
			}
		}
	}
	if pass == deleteOnly {
		return nil
	}
	for i := range rows {
		if err := rows[i].putNew(ctx, txn); err != nil {
			return err
		}
	}
	return nil
}

// deleteOld deletes the entries that a row has no longer. In a unique index the key may be another row's by now: the round is repeated.
func (r *changedRow) deleteOld(ctx context.Context, txn *percolator.Txn) error {
	for i := range r.from {
		e := &r.from[i]
		if sameKey(r.to, e.key) != nil {
			continue
		}
		if e.claims {
			stored, err := txn.Get(ctx, e.key)
			if err != nil {
				return err
			}
			if !bytes.Equal(stored, e.value) {
				continue
			}
		}
		if err := txn.Delete(e.key); err != nil {
			return err
		}
	}
	return nil
}

// putNew writes the entries that a row has now.
func (r *changedRow) putNew(ctx context.Context, txn *percolator.Txn) error {
	for i := range r.to {
		e := &r.to[i]
		old := sameKey(r.from, e.key)
		if old != nil && bytes.Equal(old.value, e.value) {
			continue
		}
		if e.claims {
			stored, err := txn.Get(ctx, e.key)
			if err != nil {
				return err
			}
			if stored != nil && !bytes.Equal(stored, e.value) && (old == nil || !bytes.Equal(stored, old.value)) {
				return &mvcc.KeyExistsError{Key: e.key}
			}
		}
		if err := txn.Put(e.key, e.value); err != nil {
			return err
		}
	}
	return nil
}

// finish closes the table, merges the rows that have been noted since the last round, and gives the table the index. It does not if these are
// many, unless any number will do.
func (b *indexBuilder) finish(ctx context.Context, any bool) (done bool, err error) {
	b.Builds.finishing(b.index)
	_, err = runAlone(ctx, b.Deps, func(r *run) (string, error) {
		done = false
		t, build, err := r.closeBuild(ctx, b.index)
		switch {
		case err != nil:
			return "", err
		case build == nil:
			return "", errBuildEnded
		}
		if err := b.read(ctx, r.txn); err != nil {
			return "", err
		}
		if done, err = b.mergeLast(ctx, r.txn, any); err != nil || !done {
			return "", err
		}
		return "", r.publishBuild(ctx, t, build)
	})
	return done, err
}

// mergeLast merges the rest of the noted rows in txn, while the table is closed.
func (b *indexBuilder) mergeLast(ctx context.Context, txn *percolator.Txn, any bool) (bool, error) {
	to, err := b.DB.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer to.Close()
	if err := b.DB.Observers().Settle(ctx, b.rows, to.StartTS()); err != nil {
		return false, err
	}
	from := b.DB.BeginAt(b.rec.From)
	defer from.Close()
	var rows []changedRow
	count, err := b.eachNoted(ctx, func(cells []kv.NotifyCell) error {
		if len(rows) > 4*mergeFew && !any {
			return nil
		}
		more, err := b.changedRows(ctx, cells, from, to)
		rows = append(rows, more...)
		return err
	})
	if err != nil || count > len(rows) {
		return false, err
	}
	return true, mergeRows(ctx, txn, rows, deleteAndPut)
}

// publishBuild gives t the index whose entries are complete.
func (r *run) publishBuild(ctx context.Context, t *catalog.TableDescriptor, build *catalog.IndexBuild) error {
	next := t.WithBuild(build)
	if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Observer: build.Log}); err != nil {
		return err
	}
	if err := catalog.DeleteBuild(r.txn, build.Index.OID); err != nil {
		return err
	}
	if err := r.update(ctx, t, next, true); err != nil || build.Root == 0 {
		return err
	}
	return r.completeIndex(ctx, t.PartitionOf.Parent, build.Index.Parent)
}

// removeTreeOf removes an index of a partitioned table, of which one part cannot be built, with all its parts.
func (r *run) removeTreeOf(ctx context.Context, t *catalog.TableDescriptor, build *catalog.IndexBuild) error {
	root := build.Root
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	ofRoot := func(b catalog.IndexBuild) bool { return b.Root == root }
	var top uint64
	var building []uint64
	for _, o := range all {
		if o.IndexByOID(root) != nil {
			top = o.ID
		}
		if slices.ContainsFunc(o.Builds, ofRoot) {
			if err := r.ch.Close(ctx, o); err != nil {
				return err
			}
			building = append(building, o.ID)
		}
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	for _, id := range building {
		o, err := r.r.RelationByID(ctx, id)
		if err != nil || o == nil {
			return err
		}
		at := slices.IndexFunc(o.Builds, ofRoot)
		if at < 0 {
			continue
		}
		if err := r.abandonBuild(ctx, o, o.Builds[at].Index.OID, false); err != nil {
			return err
		}
	}
	if top == 0 {
		return nil
	}
	o, err := r.r.RelationByID(ctx, top)
	if err != nil || o == nil {
		return err
	}
	next := o.Clone()
	if err := r.removeIndex(ctx, next, next.IndexByOID(root)); err != nil {
		return err
	}
	if err := r.update(ctx, o, next, false); err != nil {
		return err
	}
	return r.dropIndexBelow(ctx, top, root)
}
