package executor

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memTxn is a Txn over a map, which counts calls. Inserts of existing keys are remembered and
// reported by commit, as percolator does.
type memTxn struct {
	data     map[string][]byte
	gets     int
	batches  int
	batchKey int
	scans    int
	spans    int // of all scans
	scanned  int // pairs that iterators have shown
	locked   [][]byte
	others   map[string]bool // locked by other transactions
	changed  map[string]bool // changed since the snapshot
	asked    percolator.LockOptions
	calls    int    // of AcquireLocks
	exists   []byte // the first key inserted though it existed
	deleted  map[string]bool
	last     []byte // written
	notified map[string]*mvcc.NotifySet
	beside   bool // it admits readers beside it
}

func newMemTxn() *memTxn { return &memTxn{data: map[string][]byte{}, deleted: map[string]bool{}} }

func (t *memTxn) StartTS() tso.Timestamp { return 1 }

func (t *memTxn) Get(_ context.Context, key []byte) ([]byte, error) {
	t.gets++
	return t.data[string(key)], nil
}

func (t *memTxn) BatchGet(_ context.Context, keys [][]byte) ([][]byte, error) {
	t.batches++
	t.batchKey += len(keys)
	values := make([][]byte, len(keys))
	for i, k := range keys {
		values[i] = t.data[string(k)]
	}
	return values, nil
}

func (t *memTxn) Put(key, value []byte) error {
	t.data[string(key)] = value
	t.last = key
	return nil
}

func (t *memTxn) Insert(key, value []byte) error {
	if _, ok := t.data[string(key)]; ok && t.exists == nil {
		t.exists = key
	}
	return t.Put(key, value)
}

func (t *memTxn) Delete(key []byte) error {
	delete(t.data, string(key))
	t.last = key
	return nil
}

func (t *memTxn) LockKeys(_ context.Context, keys ...[]byte) error {
	t.locked = append(t.locked, keys...)
	return nil
}

// AcquireLocks locks what others have not (others), and says of keys in changed, once each, that they
// were not what was read.
func (t *memTxn) AcquireLocks(_ context.Context, opts percolator.LockOptions, keys ...[]byte) (skipped []bool, err error) {
	t.calls++
	t.asked = opts
	for i, key := range keys {
		if t.others[string(key)] {
			if !opts.SkipLocked {
				return nil, &percolator.LockNotAvailableError{Key: key}
			}
			if skipped == nil {
				skipped = make([]bool, len(keys))
			}
			skipped[i] = true
			continue
		}
		t.locked = append(t.locked, key)
		if t.changed[string(key)] {
			delete(t.changed, string(key))
			err = percolator.ErrRestartStatement
		}
	}
	return skipped, err
}

// Notify keeps the set of the last write.
func (t *memTxn) Notify(set *mvcc.NotifySet) {
	if t.notified == nil {
		t.notified = map[string]*mvcc.NotifySet{}
	}
	t.notified[string(t.last)] = set
}

func (t *memTxn) VerifyNew(context.Context) error { return nil }

func (t *memTxn) CheckNew(context.Context) error { return t.commitError() }

func (t *memTxn) BeginLocking() {}

func (t *memTxn) ExistsAtCommit(context.Context, []byte, []byte) (bool, error)      { return false, nil }
func (t *memTxn) AsideNow(_ context.Context, f func(percolator.Reader) error) error { return f(t) }

func (t *memTxn) MergeRuns(context.Context) error { return nil }

// LockNew locks the keys and looks for the first that may not be inserted.
func (t *memTxn) LockNew(ctx context.Context, keys ...[]byte) (taken int, err error) {
	if _, err := t.AcquireLocks(ctx, percolator.LockOptions{}, keys...); err != nil {
		return -1, err
	}
	seen := map[string]bool{}
	for i, key := range keys {
		if _, ok := t.data[string(key)]; ok || seen[string(key)] {
			return i, nil
		}
		seen[string(key)] = true
	}
	return -1, nil
}

// commitError is what Commit would say.
func (t *memTxn) commitError() error {
	if t.exists != nil {
		return &mvcc.KeyExistsError{Key: t.exists}
	}
	return nil
}

func (t *memTxn) Scan(ctx context.Context, span kv.Span, opts percolator.ScanOptions) percolator.Iterator {
	return t.ScanSpans(ctx, []kv.Span{span}, opts)
}

// ScanSpans panics where spans are not as they have to be.
func (t *memTxn) ScanSpans(_ context.Context, spans []kv.Span, opts percolator.ScanOptions) percolator.Iterator {
	t.scans++
	t.spans += len(spans)
	for i := range spans {
		if !spans[i].Valid() || i > 0 && bytes.Compare(spans[i-1].End, spans[i].Start) > 0 {
			panic("spans are empty, overlap, or do not ascend")
		}
	}
	it := &memIterator{t: t, at: -1}
	for k, v := range t.data {
		key := []byte(k)
		i, _ := slices.BinarySearchFunc(spans, key, func(s kv.Span, key []byte) int {
			if len(s.End) > 0 && bytes.Compare(s.End, key) <= 0 {
				return -1
			}
			return 1
		})
		if i < len(spans) && spans[i].Contains(key) {
			it.pairs = append(it.pairs, kv.KeyValue{Key: key, Value: v})
		}
	}
	slices.SortFunc(it.pairs, func(a, b kv.KeyValue) int {
		if opts.Reverse {
			a, b = b, a
		}
		return bytes.Compare(a.Key, b.Key)
	})
	return it
}

// Walk returns to the caller what is left of a single span after each pair.
func (t *memTxn) Walk(ctx context.Context, spans []kv.Span, w percolator.Walk) (n int64, _ error) {
	spans = slices.Clone(spans)
	for it := t.ScanSpans(ctx, spans, percolator.ScanOptions{}); it.Next(ctx); {
		if len(spans) == 1 && !spans[0].Contains(it.Key()) {
			break
		}
		if n++; w.Pair != nil {
			if err := w.Pair(it.Key(), it.Value()); err != nil {
				return n, err
			}
		}
		if w.Stop != nil && n%int64(max(w.PageRows, 1)) == 0 && w.Stop() {
			break
		}
		if len(spans) == 1 && w.Rest != nil {
			runtime.Gosched()
			spans[0] = w.Rest(kv.Span{Start: append(bytes.Clone(it.Key()), 0), End: spans[0].End})
		}
	}
	return n, ctx.Err()
}

// Beside returns a reader with counters of its own, if beside is set: what workers do to them is not looked at.
func (t *memTxn) Beside() percolator.Reader {
	if !t.beside {
		return nil
	}
	return &memTxn{data: t.data}
}

// memIterator hands out copies that it wipes at the following Next, as the interface permits.
type memIterator struct {
	t     *memTxn
	pairs []kv.KeyValue
	at    int
	value []byte
}

func (it *memIterator) Next(context.Context) bool {
	for i := range it.value {
		it.value[i] = 0xFF
	}
	if it.at++; it.at >= len(it.pairs) {
		return false
	}
	it.value = bytes.Clone(it.pairs[it.at].Value)
	it.t.scanned++
	return true
}
func (it *memIterator) Key() []byte   { return it.pairs[it.at].Key }
func (it *memIterator) Value() []byte { return it.value }
func (it *memIterator) Err() error    { return nil }
func (it *memIterator) Close()        {}

// rowIDs counts up.
type rowIDs struct{ last int64 }

func (r *rowIDs) NextRowID(context.Context, uint64) (int64, error) {
	r.last++
	return r.last, nil
}

// oneTable resolves its tables by id.
type oneTable []*catalog.TableDescriptor

func (o oneTable) Relation(context.Context, string, string) (*catalog.TableDescriptor, error) {
	return nil, nil
}
func (o oneTable) RelationByID(_ context.Context, id uint64) (*catalog.TableDescriptor, error) {
	for _, t := range o {
		if t.ID == id {
			return t, nil
		}
	}
	return nil, nil
}
func (o oneTable) Relations(context.Context) ([]*catalog.TableDescriptor, error) { return o, nil }
func (o oneTable) SchemaExists(context.Context, string) (bool, error)            { return true, nil }
func (o oneTable) Schemas(context.Context) ([]string, error)                     { return nil, nil }
func (o oneTable) Stats(context.Context, uint64) (*catalog.TableStats, error) {
	return &catalog.TableStats{}, nil
}
func (o oneTable) Version() uint64               { return 1 }
func (o oneTable) Roles() *catalog.Roles         { return catalog.NewRoles() }
func (o oneTable) Types() *catalog.Types         { return catalog.NewTypes() }
func (o oneTable) Databases() *catalog.Databases { return catalog.NewDatabases() }
func (o oneTable) Database() *catalog.DatabaseDescriptor {
	return catalog.NewDatabases().ByOID(catalog.FirstDatabase)
}
func (o oneTable) Extensions() *catalog.Extensions { return catalog.NewExtensions() }

func (o oneTable) Routines() *catalog.Routines     { return catalog.NewRoutines() }
func (o oneTable) TextSearch() *catalog.TextSearch { return new(catalog.TextSearch) }
func (o oneTable) Collations() *catalog.Collations { return &catalog.Collations{} }
func (o oneTable) Operations() *catalog.Operations { return &catalog.Operations{} }
func (o oneTable) Grants() *catalog.Grants         { return catalog.NewGrants() }

// testScratch is shared by all tests, so that what one leaves in it shows in the others.
var testScratch = &Scratch{}

func testRuntime(txn Txn, tables ...*catalog.TableDescriptor) *Runtime {
	return &Runtime{Txn: txn, Env: &builtin.Env{}, RowIDs: &rowIDs{}, Resolver: oneTable(tables), Scratch: testScratch}
}

// testTable makes a table of the named columns ("name type", type int or text, both nullable
// unless "!" is added) whose first pk columns are the primary key; 0 gives it a rowid.
func testTable(id uint64, pk int, columns ...string) *catalog.TableDescriptor {
	t := &catalog.TableDescriptor{ID: id, Version: 1, Kind: catalog.KindTable, Schema: "public", Name: fmt.Sprintf("t%d", id)}
	for i, c := range columns {
		f := strings.Fields(strings.TrimSuffix(c, "!"))
		col := catalog.ColumnDescriptor{ID: uint32(i + 1), Name: f[0], Type: types.TInt8, NotNull: strings.HasSuffix(c, "!") || i < pk}
		if f[1] == "text" {
			col.Type = types.TText
		}
		t.Columns = append(t.Columns, col)
	}
	t.Primary = catalog.IndexDescriptor{ID: 1, Name: t.Name + "_pkey", Unique: true, Constraint: true}
	for i := range pk {
		t.Primary.Columns = append(t.Primary.Columns, catalog.IndexColumn{ColumnID: uint32(i + 1)})
	}
	if pk == 0 {
		t.Columns = append(t.Columns, catalog.ColumnDescriptor{ID: uint32(len(columns) + 1), Name: "rowid", Type: types.TInt8, NotNull: true, Hidden: true})
		t.Primary.Columns = []catalog.IndexColumn{{ColumnID: uint32(len(columns) + 1)}}
	}
	t.NextIndexID = 2
	return t
}

// addIndex adds an index over the columns with the given ordinals.
func addIndex(t *catalog.TableDescriptor, unique bool, ordinals ...int) *catalog.IndexDescriptor {
	ix := catalog.IndexDescriptor{ID: t.NextIndexID, Name: fmt.Sprintf("%s_idx%d", t.Name, t.NextIndexID), Unique: unique}
	for _, o := range ordinals {
		ix.Columns = append(ix.Columns, catalog.IndexColumn{ColumnID: t.Columns[o].ID})
	}
	t.NextIndexID++
	t.Indexes = append(t.Indexes, ix)
	return &t.Indexes[len(t.Indexes)-1]
}

// Scalars.

func col(i int, t types.Type) expr.Scalar { return &expr.Column{Ordinal: i, Typ: t} }
func intCol(i int) expr.Scalar            { return col(i, types.TInt8) }
func lit(v any) expr.Scalar {
	d := datum(v)
	t := types.TInt8
	if d.Kind() == types.KindBytes {
		t = types.TText
	}
	return &expr.Const{Value: d, Typ: t}
}

func lits(vs ...any) []expr.Scalar {
	out := make([]expr.Scalar, len(vs))
	for i, v := range vs {
		out[i] = lit(v)
	}
	return out
}

func datum(v any) types.Datum {
	switch v := v.(type) {
	case nil:
		return types.Null
	case int:
		return types.Int(int64(v))
	case string:
		return types.Text(v)
	case bool:
		return types.Bool(v)
	case types.Datum:
		return v
	}
	panic(fmt.Sprintf("no datum for %T", v))
}

// fn is a scalar made of a function.
type fn struct {
	typ types.Type
	f   func(ev *expr.Context, in types.Row) (types.Datum, error)
}

func (f *fn) Type() types.Type                                         { return f.typ }
func (f *fn) String() string                                           { return "fn" }
func (f *fn) Eval(ev *expr.Context, in types.Row) (types.Datum, error) { return f.f(ev, in) }

func cond(f func(in types.Row) bool) expr.Scalar {
	return &fn{types.TBool, func(_ *expr.Context, in types.Row) (types.Datum, error) { return types.Bool(f(in)), nil }}
}

func intFn(f func(in types.Row) int64) expr.Scalar {
	return &fn{types.TInt8, func(_ *expr.Context, in types.Row) (types.Datum, error) { return types.Int(f(in)), nil }}
}

// Nodes.

func columns(ts ...types.Type) planner.Base {
	b := planner.Base{}
	for i, t := range ts {
		b.Out = append(b.Out, planner.Column{Name: fmt.Sprintf("c%d", i), Type: t})
	}
	return b
}

func ints(n int) planner.Base {
	ts := make([]types.Type, n)
	for i := range ts {
		ts[i] = types.TInt8
	}
	return columns(ts...)
}

// rowsOf is a Values node.
func rowsOf(width int, rows ...[]any) *planner.Values {
	v := &planner.Values{Base: ints(width)}
	for _, r := range rows {
		v.Rows = append(v.Rows, lits(r...))
	}
	if len(rows) > 0 {
		for i, e := range v.Rows[0] {
			v.Out[i].Type = e.Type()
		}
	}
	return v
}

func join(a, b planner.Node) planner.Base {
	return planner.Base{Out: append(slices.Clone(a.Columns()), b.Columns()...)}
}

func tableColumns(t *catalog.TableDescriptor, ordinals ...int) planner.Base {
	var ts []types.Type
	for _, o := range ordinals {
		ts = append(ts, t.Columns[o].Type)
	}
	return columns(ts...)
}

func all(t *catalog.TableDescriptor) []int {
	out := make([]int, len(t.Columns))
	for i := range out {
		out[i] = i
	}
	return out
}

// wholeScan reads whole rows through an index.
func wholeScan(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, spans ...planner.KeySpan) *planner.Scan {
	return &planner.Scan{
		Base:   tableColumns(t, all(t)...),
		Access: planner.Access{Table: t, Index: ix, Ordinals: all(t), Fetch: ix.ID != t.Primary.ID},
		Spans:  spans,
	}
}

// Running.

func show(row types.Row) string {
	var parts []string
	for _, d := range row {
		switch d.Kind() {
		case types.KindNull:
			parts = append(parts, "-")
		case types.KindInt:
			parts = append(parts, fmt.Sprint(d.Int()))
		case types.KindBytes:
			parts = append(parts, d.Text())
		case types.KindBool:
			parts = append(parts, fmt.Sprint(d.Bool()))
		case types.KindDecimal:
			parts = append(parts, d.Decimal().Text('f'))
		default:
			parts = append(parts, fmt.Sprintf("kind%d", d.Kind()))
		}
	}
	return strings.Join(parts, " ")
}

// planOf makes a plan of a tree.
func planOf(n planner.Node) *planner.Plan {
	p := &planner.Plan{Root: n}
	p.SetProperties()
	return p
}

// runPlan runs a plan and prints its rows.
func runPlan(p *planner.Plan, rt *Runtime) (rows []string, affected int64, err error) {
	p.SetProperties()
	r, err := Build(p, rt)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if closeErr := r.Close(); err == nil {
			err = closeErr
		}
		if err == nil && r.ex.mem.used != 0 {
			err = fmt.Errorf("%d bytes still booked after Close", r.ex.mem.used)
		}
	}()
	ctx := context.Background()
	if err := r.Open(ctx); err != nil {
		return nil, 0, err
	}
	for {
		row, err := r.Next(ctx)
		if err != nil {
			return rows, 0, err
		}
		if row == nil {
			return rows, r.Affected(), nil
		}
		rows = append(rows, show(row))
	}
}

// mustRun runs a node over nothing but itself.
func mustRun(t testing.TB, n planner.Node) []string {
	t.Helper()
	rows, _, err := runPlan(planOf(n), testRuntime(newMemTxn()))
	if err != nil {
		t.Fatalf("%T: %v", n, err)
	}
	return rows
}

func inAnyOrder(rows []string) []string {
	out := slices.Clone(rows)
	sort.Strings(out)
	return out
}

func wantRows(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("rows\n got %q\nwant %q", got, want)
	}
}
