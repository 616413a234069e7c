package ddl

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/tso"
)

// CREATE INDEX outside of a block builds an index while the table is written, unless the table has few rows:
//
//	begin    the table is closed, its descriptor gets a catalog.IndexBuild, the table is opened: from here on, whoever changes a row notes
//	         its key in the notify cells of IndexBuild.Log
//	scan     the entries of all rows as of a snapshot From are written, in steps
//	merge    in rounds, until few are left: for the keys that have been noted, the entries of the row as of From are replaced by those as of a later snapshot To,
//	         which becomes From
//	finish   the table is closed, the last few rows are merged, the descriptor names the index
//
// Each step is a transaction that stores how far the build has come (catalog.BuildRecord), so whoever finds the record of a build that nobody
// is at continues it (ResumeBuild). Garbage collection keeps the versions of rows that From shows. A round may be repeated with the same
// snapshots: it deletes entries that only From has, and writes those of To. Of a unique index it first deletes all of the former, because
// the key of one row may have become that of another.
//
// Other changes of the table's schema wait until the build has ended (catalog.BuildingError).

const (
	// onlineRows is the number of rows up to which an index is built while the table is closed, which takes no longer than a commit.
	onlineRows = 1024
	// buildLease is the time after which another process may continue a build whose process does not report.
	buildLease = 30 * time.Second
	// buildBytes and buildTime bound a step, if a transaction may have any size.
	buildBytes = 128 << 20
	buildTime  = 5 * time.Second
	// mergePage is the number of rows that are merged together.
	mergePage = 512
	// mergeRounds is the number of rounds after which any number of rows is merged while the table is closed.
	mergeRounds = 20
	// buildPause is the time between two attempts at a step that has failed, and between two looks at a build that somebody else is at.
	buildPause = 50 * time.Millisecond
)

// mergeFew is the number of noted rows that may be left to merge while the table is closed. Tests change it.
var mergeFew = 1024

// errBuildTaken says that another process has continued the build, errBuildEnded that there is none.
var (
	errBuildTaken = errors.New("the build of the index is continued by another process")
	errBuildEnded = errors.New("the build of the index has ended")
)

// onlineBuilds are the builds that a statement has begun.
type onlineBuilds struct {
	owner   string
	indexes []uint32
}

// treeBuild is an index of a partitioned table that is to be built: its OID, and the number of tables that have rows.
type treeBuild struct {
	root  uint32
	parts int64
}

func newBuildOwner() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// createIndexAlone is CREATE INDEX outside of a block.
func createIndexAlone(ctx context.Context, d *Deps, n *ast.CreateIndex) (string, error) {
	begun := onlineBuilds{owner: newBuildOwner()}
	defer func() { d.Builds.end(begun.indexes) }()
	tag, err := repeatAlone(ctx, d, changeFor(n, d), func(r *run) (string, error) {
		d.Builds.end(begun.indexes)
		begun.indexes, r.online = nil, &begun
		return r.execute(ctx, n)
	})
	for _, index := range begun.indexes {
		if err == nil {
			err = build(ctx, d, index, begun.owner)
		}
	}
	return tag, err
}

// buildsOnline reports whether an index of tables is to be built while they are written.
func (r *run) buildsOnline(ctx context.Context, tables ...*catalog.TableDescriptor) (bool, error) {
	if r.online == nil {
		return false, nil
	}
	rows := r.OnlineRows
	for _, t := range tables {
		if t.Temporary() || len(t.Observers)+len(t.Builds) >= catalog.MaxObservers {
			return false, nil
		}
		var err error
		if rows, err = r.countDown(ctx, t, rows); err != nil {
			return false, err
		}
	}
	return rows < 0, nil
}

// countDown subtracts the number of rows of t, until the result is negative.
func (r *run) countDown(ctx context.Context, t *catalog.TableDescriptor, rows int) (int, error) {
	if t.IsPartitioned() || rows < 0 {
		return rows, nil
	}
	start, end := rowenc.IndexSpan(t.ID, t.Primary.ID)
	it := r.txn.Scan(ctx, kv.Span{Start: start, End: end}, percolator.ScanOptions{KeysOnly: true, PageHint: rows + 1})
	defer it.Close()
	for rows >= 0 && it.Next(ctx) {
		rows--
	}
	return rows, it.Err()
}

// beginBuild gives t, which is closed, an index that is to be built. next is t with what the index needs.
func (r *run) beginBuild(ctx context.Context, t, next *catalog.TableDescriptor, b catalog.IndexBuild) error {
	r.ch.ForBuild()
	log, err := r.ch.NewID(ctx)
	if err != nil {
		return err
	}
	b.Log, b.Columns = log, notedColumns(next, &b.Index)
	b.Computed = slices.Clone(next.Computed[len(t.Computed):])
	next.Computed = next.Computed[:len(t.Computed):len(t.Computed)]
	next.NextIndexID = b.Index.ID + 1
	next.Builds = append(next.Builds, b)
	rec := &catalog.BuildRecord{
		Database: r.Catalog.OID(), Table: t.ID, Role: r.User, Session: r.Session, Owner: r.online.owner, Until: buildLeaseFrom(r.txn.StartTS()), Phase: catalog.BuildScans,
		Total: r.estimatedRows(ctx, t),
	}
	if r.tree != nil {
		rec.Parts, rec.Part = r.tree.parts, int64(len(r.online.indexes))
	}
	if err := catalog.PutBuild(r.txn, b.Index.OID, rec); err != nil {
		return err
	}
	r.Builds.begin(b.Index.OID, rec, r.Database, b.KeepInvalid)
	r.online.indexes = append(r.online.indexes, b.Index.OID)
	return r.update(ctx, t, next, true)
}

// estimatedRows is the number of rows of t by its statistics, 0 if they are not known.
func (r *run) estimatedRows(ctx context.Context, t *catalog.TableDescriptor) int64 {
	stats, err := r.r.Stats(ctx, t.ID)
	if err != nil || stats == nil {
		return 0
	}
	return int64(stats.Rows)
}

func buildLeaseFrom(now tso.Timestamp) tso.Timestamp {
	return tso.FromPhysical(now.Physical() + buildLease.Milliseconds())
}

// notedColumns are the columns of which the entries of an index of t are made; nil if they are computed.
func notedColumns(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) []uint32 {
	if ix.Where != nil || ix.Inverted != nil {
		return nil
	}
	ids := slices.Clone(ix.Include)
	for i := range ix.Columns {
		id := ix.Columns[i].ColumnID
		if t.Ordinal(id) >= len(t.Columns) {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// build completes a build that owner is at. If it fails, the index is removed, or left as an invalid one.
func build(ctx context.Context, d *Deps, index uint32, owner string) error {
	b := &indexBuilder{Deps: d, index: index, owner: owner}
	err := b.complete(ctx)
	switch {
	case errors.Is(err, errBuildTaken), errors.Is(err, errBuildEnded):
		return b.await(ctx)
	case err != nil:
		b.undo(ctx)
	}
	return err
}

// ResumeBuild continues a build that nobody is at, in the database of d.Catalog.
func ResumeBuild(ctx context.Context, d Deps, index uint32) error {
	d = d.ensureDefaults()
	owner := newBuildOwner()
	rec, err := takeBuild(ctx, &d, index, owner)
	if err != nil || rec == nil {
		return err
	}
	d.Builds.begin(index, rec, d.Database, false)
	defer d.Builds.end([]uint32{index})
	d.Logger.Info("the build of an index is continued", "table", rec.Table, "index", index, "phase", rec.Phase, "rows", rec.Rows)
	return build(ctx, &d, index, owner)
}

// takeBuild makes owner the one who is at a build. It returns nil if another process is, or there is none.
func takeBuild(ctx context.Context, d *Deps, index uint32, owner string) (*catalog.BuildRecord, error) {
	txn, err := d.DB.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer txn.Close()
	rec, err := catalog.BuildRecordOf(ctx, txn, index)
	if err != nil || rec == nil || !d.OneTransaction && rec.Until > txn.StartTS() {
		return nil, err
	}
	rec.Owner, rec.Until, rec.Session = owner, buildLeaseFrom(txn.StartTS()), 0
	if err := catalog.PutBuild(txn, index, rec); err != nil {
		return nil, err
	}
	_, err = txn.Commit(ctx)
	if kind := errkind.Of(err); kind == errkind.WriteConflict {
		return nil, nil
	}
	return rec, err
}

// await returns when another process has ended the build: nil if the table has the index.
func (b *indexBuilder) await(ctx context.Context) error {
	for {
		r, err := b.Catalog.Present(ctx)
		if err != nil {
			return err
		}
		all, err := r.Relations(ctx)
		if err != nil {
			return err
		}
		under := false
		for _, t := range all {
			if t.IndexByOID(b.index) != nil {
				return nil
			}
			build := t.BuildOf(b.index)
			under = under || build != nil && !build.Failed()
		}
		if !under {
			return pgerror.New(pgerror.ObjectNotInPrerequisite, "the build of the index was continued by another process, and failed").
				WithHint("The log of that process has the error.")
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(buildPause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// undo ends a build that has failed.
func (b *indexBuilder) undo(failed context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(failed), undoTimeout)
	defer cancel()
	_, err := runAlone(ctx, b.Deps, func(r *run) (string, error) {
		t, build, err := r.closeBuild(ctx, b.index)
		if err != nil || build == nil {
			return "", err
		}
		if build.Root != 0 {
			return "", r.removeTreeOf(ctx, t, build)
		}
		return "", r.abandonBuild(ctx, t, build.Index.OID, build.KeepInvalid)
	})
	if err != nil {
		b.Logger.Warn("the build of an index has failed, and the index is still there", "index", b.index, "err", err)
	}
}

// closeBuild closes the table of a build, as a step of the build. It returns nil if there is none, or another process has continued it.
func (r *run) closeBuild(ctx context.Context, index uint32) (*catalog.TableDescriptor, *catalog.IndexBuild, error) {
	r.ch.ForBuild()
	t, err := r.tableOfBuild(ctx, index)
	if err != nil || t == nil {
		return nil, nil, err
	}
	if err := r.ch.Close(ctx, t); err != nil {
		return nil, nil, err
	}
	if err := r.begin(ctx); err != nil {
		return nil, nil, err
	}
	if t, err = r.tableOfBuild(ctx, index); err != nil || t == nil {
		return nil, nil, err
	}
	return t, t.BuildOf(index), nil
}

// tableOfBuild returns the table of which an index is being built, or nil.
func (r *run) tableOfBuild(ctx context.Context, index uint32) (*catalog.TableDescriptor, error) {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if b := t.BuildOf(index); b != nil && !b.Failed() {
			return t, nil
		}
	}
	return nil, nil
}

// abandonBuild ends a build of t, which is closed, without success.
func (r *run) abandonBuild(ctx context.Context, t *catalog.TableDescriptor, index uint32, keep bool) error {
	next := t.Clone()
	b := next.BuildOf(index)
	if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Observer: b.Log}); err != nil {
		return err
	}
	if err := catalog.DeleteBuild(r.txn, index); err != nil {
		return err
	}
	if b.Log, b.Columns = 0, nil; keep {
		return r.update(ctx, t, next, true)
	}
	return r.removeFailed(ctx, t, index)
}

// removeFailed removes an index that is not complete from t.
func (r *run) removeFailed(ctx context.Context, t *catalog.TableDescriptor, index uint32) error {
	next := t.Clone()
	exclusive := !next.BuildOf(index).Failed()
	if err := r.dropBuilds(ctx, next, func(b *catalog.IndexBuild) (bool, error) { return b.Index.OID == index, nil }); err != nil {
		return err
	}
	return r.update(ctx, t, next, exclusive)
}

// dropBuilds removes the chosen ones of the indexes of t that are not complete.
func (r *run) dropBuilds(ctx context.Context, t *catalog.TableDescriptor, chosen func(b *catalog.IndexBuild) (bool, error)) error {
	kept := t.Builds[:0:0]
	for i := range t.Builds {
		drop, err := chosen(&t.Builds[i])
		if err != nil {
			return err
		}
		if !drop {
			kept = append(kept, t.Builds[i])
			continue
		}
		if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Table: t.ID, Index: t.Builds[i].Index.ID}); err != nil {
			return err
		}
	}
	if t.Builds = kept; len(kept) == 0 {
		t.Builds = nil
	}
	return nil
}

// awaitBuilds returns when no index of a table is being built.
func awaitBuilds(ctx context.Context, d *Deps, e *catalog.BuildingError) error {
	var expired <-chan time.Time
	if d.LockTimeout > 0 {
		expired = time.After(d.LockTimeout)
	}
	for {
		r, err := d.Catalog.Present(ctx)
		if err != nil {
			return err
		}
		t, err := r.RelationByID(ctx, e.Table)
		if err != nil || t == nil || !t.Building() {
			return err
		}
		select {
		case <-time.After(buildPause):
		case <-ctx.Done():
			return ctx.Err()
		case <-expired:
			return &catalog.LockTimeoutError{Relation: e.Name}
		}
	}
}

// explainBuilding makes the client's error of *catalog.BuildingError: a block does not wait until an index has been built.
func explainBuilding(err error) error {
	var e *catalog.BuildingError
	if !errors.As(err, &e) {
		return err
	}
	return pgerror.New(pgerror.ObjectInUse, "cannot change table %q because an index of it is being built", e.Name).
		WithHint("Retry the transaction when pg_stat_progress_create_index shows no build of the table.")
}

// sameKey reports whether a key is among those of entries, which are few.
func sameKey(list []entry, key []byte) *entry {
	for i := range list {
		if bytes.Equal(list[i].key, key) {
			return &list[i]
		}
	}
	return nil
}
