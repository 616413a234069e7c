package pgcatalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// fixed is a resolver over a schema that does not change.
type fixed struct{ all []*catalog.TableDescriptor }

func (f *fixed) Relation(_ context.Context, schema, name string) (*catalog.TableDescriptor, error) {
	for _, t := range f.all {
		if t.Name == name && (t.Schema == schema || schema == "" && (t.Schema == catalog.SystemSchema || t.Schema == catalog.PublicSchema)) {
			return t, nil
		}
	}
	return nil, nil
}

func (f *fixed) RelationByID(_ context.Context, id uint64) (*catalog.TableDescriptor, error) {
	for _, t := range f.all {
		if t.ID == id {
			return t, nil
		}
	}
	return nil, nil
}

func (f *fixed) Relations(context.Context) ([]*catalog.TableDescriptor, error) { return f.all, nil }
func (f *fixed) Schemas(context.Context) ([]string, error) {
	return []string{catalog.InformationSchema, "other", catalog.SystemSchema, catalog.PublicSchema}, nil
}
func (f *fixed) SchemaExists(ctx context.Context, name string) (bool, error) {
	names, _ := f.Schemas(ctx)
	return slices.Contains(names, name), nil
}
func (f *fixed) Stats(context.Context, uint64) (*catalog.TableStats, error) {
	return &catalog.TableStats{Rows: 1000}, nil
}
func (f *fixed) Version() uint64 { return 1 }
func (f *fixed) Roles() *catalog.Roles {
	until := int64(0)
	return catalog.NewRoles(
		&catalog.Role{OID: 16400, Name: "team", Inherit: true, ConnectionLimit: -1, Comment: "people"},
		&catalog.Role{OID: 16401, Name: "App", Login: true, ConnectionLimit: 5, Verifier: "SCRAM-SHA-256$…", ValidUntil: &until,
			Settings: []catalog.RoleSetting{{Name: "work_mem", Value: "1MB"}, {Database: "percodb", Name: "search_path", Value: "a, b"}},
			MemberOf: []catalog.Membership{{Role: 16400, Grantor: 10, Admin: true}}},
	)
}
func (f *fixed) Types() *catalog.Types         { return catalog.NewTypes() }
func (f *fixed) Databases() *catalog.Databases { return catalog.NewDatabases() }
func (f *fixed) Database() *catalog.DatabaseDescriptor {
	return catalog.NewDatabases().ByOID(catalog.FirstDatabase)
}
func (f *fixed) Extensions() *catalog.Extensions { return catalog.NewExtensions() }

func (f *fixed) Routines() *catalog.Routines     { return catalog.NewRoutines() }
func (f *fixed) TextSearch() *catalog.TextSearch { return new(catalog.TextSearch) }
func (f *fixed) Collations() *catalog.Collations { return &catalog.Collations{} }
func (f *fixed) Operations() *catalog.Operations { return &catalog.Operations{} }
func (f *fixed) Grants() *catalog.Grants         { return catalog.NewGrants() }
func (f *fixed) SchemaOID(name string) uint32 {
	return map[string]uint32{catalog.PublicSchema: 2200, catalog.SystemSchema: 11, catalog.InformationSchema: 13183, "other": 20000}[name]
}
func (f *fixed) SchemaComment(name string) string {
	if name == catalog.PublicSchema {
		return "standard"
	}
	return ""
}
func (f *fixed) SequenceValue(context.Context, *catalog.TableDescriptor) (int64, bool, error) {
	return 42, true, nil
}

// session is what system tables show of a session.
type session struct{}

func (session) User() string { return "joe" }
func (session) ViewColumns(context.Context, catalog.Resolver, *catalog.TableDescriptor) ([]catalog.RelationColumns, error) {
	return nil, nil
}
func (session) ExprText(_ context.Context, _ catalog.Resolver, e catalog.StoredExpr, _ bool) (string, error) {
	return e.Text, nil
}

func (session) Uses(context.Context, catalog.Resolver, *catalog.TableDescriptor, catalog.StoredExpr) ([]catalog.ObjectUse, error) {
	return nil, nil
}

func (session) ViewText(_ context.Context, _ catalog.Resolver, t *catalog.TableDescriptor, _ bool, _ int) (string, error) {
	return " " + t.ViewQuery + ";", nil
}
func (session) UpdatesOf(_ context.Context, _ catalog.Resolver, t *catalog.TableDescriptor, _ bool, _ int) (catalog.Updates, error) {
	if t.Kind == catalog.KindTable {
		return catalog.CanAll, nil
	}
	return 0, nil
}
func (session) Settings() []catalog.Setting {
	return []catalog.Setting{{Name: "timezone", Value: "UTC", Type: "string", Default: "UTC", Description: "zone", Source: "default", Context: "user"}}
}
func (session) Prepared() []catalog.Prepared {
	return []catalog.Prepared{{Name: "p", Statement: "select $1", At: 1, Params: []types.Type{types.TInt4}}}
}
func (session) Cursors() []catalog.Cursor {
	return []catalog.Cursor{{Name: "c", Statement: "select 1", At: 1, Holdable: true}}
}
func (session) FileSettings(context.Context) ([]catalog.FileSetting, error) {
	return []catalog.FileSetting{{Name: "timezone", Value: "UTC", Applied: true}, {Name: "max_connections", Value: "5", Error: "setting could not be applied"}}, nil
}
func (session) AccessRules(context.Context) ([]catalog.AccessRule, error) {
	return []catalog.AccessRule{
		{Line: 1, Type: "hostssl", Databases: []string{"all"}, Users: []string{"all"}, Address: "10.0.0.0", Netmask: "255.0.0.0", Method: "cert", Options: []string{"clientcert=verify-full"}},
		{Line: 2, Error: "end-of-line before database specification"},
	}, nil
}
func (session) IndexProgress(context.Context) ([]catalog.IndexProgress, error) {
	return []catalog.IndexProgress{{PID: 1, Database: 5, DatabaseName: "percodb", Table: 16384, Index: 16385, Command: "CREATE INDEX", Phase: "initializing"}}, nil
}
func (session) Activity() []catalog.Activity {
	return []catalog.Activity{{PID: 7, User: "joe", State: "active", Query: "select 1", ClientAddr: "127.0.0.1", ClientPort: 9, QueryStart: 1}}
}

func (session) AdvisoryLocks() []catalog.AdvisoryLock {
	return []catalog.AdvisoryLock{{PID: 1, High: 2, Low: 3, Pair: true, Granted: true}}
}

func (session) RoutineText(_ context.Context, _ catalog.Resolver, d *catalog.RoutineDescriptor) (string, error) {
	return d.Body, nil
}

func (session) SessionLocks() []catalog.SessionLocks {
	return []catalog.SessionLocks{{PID: 1, XID: 9, Held: []catalog.RelationLock{{OID: 16384, Mode: catalog.RowShareLock}}, Awaited: []catalog.RelationLock{{OID: 16384, Mode: catalog.ShareLock}}}}
}

func (session) Transactions() []catalog.Transaction {
	return []catalog.Transaction{
		{PID: 7, User: "joe", Isolation: "read committed", Pessimistic: true, State: "active", StartTS: ticks(10), ReadTS: ticks(30), Reads: 1, Locks: 2, Writes: 3},
		{PID: 8, User: "ann", Isolation: "serializable", State: "idle in transaction", StartTS: ticks(20), ReadTS: ticks(20)},
	}
}
func (session) Locks(_ context.Context, yield func(*kv.RangeDescriptor, *mvcc.LockInfo) error) error {
	desc := &kv.RangeDescriptor{ID: 3, Epoch: 2, Shard: "s1"}
	primary := exampleKey(1, types.Int(5))
	for _, l := range []mvcc.LockInfo{
		{Key: []byte("\x01ids\x00"), Lock: mvcc.Lock{Op: mvcc.OpPut, StartTS: ticks(5), Primary: []byte("\x01ids\x00"), TTLMillis: 3000}},
		{Key: primary, Lock: mvcc.Lock{Op: mvcc.OpPessimistic, StartTS: ticks(10), Primary: primary, TTLMillis: 20_000}, Waiters: []tso.Timestamp{ticks(20), ticks(25)}},
		{Key: exampleKey(2, types.Text("a\"b"), types.Null), Lock: mvcc.Lock{Op: mvcc.OpPessimistic, Shared: true, StartTS: ticks(10), Primary: primary}},
		{Key: exampleKey(3, types.Null, types.Text("x"), types.Int(7)), Lock: mvcc.Lock{Op: mvcc.OpDelete, StartTS: ticks(10), Primary: primary}},
		{Key: exampleKey(99), Lock: mvcc.Lock{Op: mvcc.OpLock, StartTS: ticks(10), Primary: primary}},
		{Key: rowenc.AppendIndexPrefix(nil, 77777, 1), Lock: mvcc.Lock{Op: mvcc.OpCheckNotExists, StartTS: ticks(10), Primary: primary}},
	} {
		if err := yield(desc, &l); err != nil {
			return err
		}
	}
	return nil
}
func (session) Role() uint32 { return catalog.BootstrapSuperuser }

func (session) InForce(_ context.Context, r catalog.Resolver) (catalog.Resolver, error) {
	return r, nil
}

func (session) Ranges(context.Context) ([]catalog.Range, error) {
	middle := exampleKey(1, types.Int(1000))
	t, _ := example().Relation(context.Background(), catalog.PublicSchema, "t")
	tableStart, tableEnd := rowenc.TableSpan(t.ID)
	return []catalog.Range{
		{RangeDescriptor: kv.RangeDescriptor{ID: 1, Epoch: 4, Shard: "s1", Span: kv.Span{End: middle}}, SizeBytes: 1 << 20},
		{RangeDescriptor: kv.RangeDescriptor{ID: 2, Epoch: 1, Shard: "s2", Span: kv.Span{Start: middle}}, SizeBytes: -1},
		{RangeDescriptor: kv.RangeDescriptor{ID: 3, Epoch: 1, Shard: "s2", Span: kv.Span{Start: tableStart, End: tableEnd}}, SizeBytes: 7},
	}, nil
}
func (session) Oracle(context.Context) (catalog.Oracle, error) {
	return catalog.Oracle{Now: ticks(1000), WindowEnd: ticks(3000), SafePoint: ticks(1), OldestActive: ticks(9)}, nil
}

func (session) ObserverActivity(context.Context) (map[uint64]catalog.ObserverActivity, error) {
	return map[uint64]catalog.ObserverActivity{16400: {Pending: 3, Oldest: ticks(500), Runs: 7, RunsPerSecond: 0.5, LatencyP50: 1.5}}, nil
}
func (session) ObserverErrors(_ context.Context, yield func(*catalog.ObserverError) error) error {
	for _, observer := range []uint64{16400, 99} { // The second is being dropped.
		err := yield(&catalog.ObserverError{
			Observer: observer, Key: exampleKey(1, types.Int(5)), Code: "22012", Message: "division by zero", Attempts: 16, At: ticks(900), CommitTS: ticks(400),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
func (session) Changed(func(types.Row) error) error { return nil }

// ticks is a timestamp so many milliseconds after 2024-01-01 UTC.
func ticks(ms int64) tso.Timestamp { return tso.FromPhysical(1_704_067_200_000 + ms) }

// exampleKey is a key of an index of the example's table t.
func exampleKey(indexID uint32, values ...types.Datum) []byte {
	t, _ := example().Relation(context.Background(), catalog.PublicSchema, "t")
	for _, ix := range append(t.Indexes, t.Primary) {
		if ix.ID == indexID {
			key, err := rowenc.AppendKeyPrefix(nil, t, &ix, values...)
			if err != nil {
				panic(err)
			}
			return key
		}
	}
	return rowenc.AppendIndexPrefix(nil, t.ID, indexID)
}

// example is a schema with one of everything.
func example() *fixed {
	serial := &catalog.TableDescriptor{
		ID: 16385, Kind: catalog.KindSequence, Schema: catalog.PublicSchema, Name: "t_id_seq",
		Sequence: &catalog.SequenceDescriptor{Start: 1, Increment: 1, Min: 1, Max: 100, Type: types.TInt4, OwnerTable: 16384, OwnerColumn: 1},
	}
	numeric, _ := types.Lookup("numeric", []int{10, 2}, 0)
	varchar, _ := types.Lookup("varchar", []int{40}, 0)
	t := &catalog.TableDescriptor{
		ID: 16384, Kind: catalog.KindTable, Schema: catalog.PublicSchema, Name: "t", StatsVersion: 1, Comment: "a table", NextColumnID: 9, NextIndexID: 9,
		Columns: []catalog.ColumnDescriptor{
			{ID: 1, Name: "id", Type: types.TInt4, NotNull: true, Default: "nextval('16385'::regclass)", Sequence: 16385},
			{ID: 2, Name: "Name", Type: varchar, Comment: "a column"},
			{ID: 3, Name: "price", Type: numeric, Default: "0"},
			{ID: 5, Name: "tags", Type: types.TText.ArrayOf()},
			{ID: 6, Name: "at", Type: types.TTimestamptz, Identity: ""},
		},
		Primary: catalog.IndexDescriptor{ID: 1, OID: 16386, Name: "t_pkey", Unique: true, Constraint: true, Columns: []catalog.IndexColumn{{ColumnID: 1}}},
		Indexes: []catalog.IndexDescriptor{
			{ID: 2, OID: 16387, Name: "t_u", Unique: true, Constraint: true, Columns: []catalog.IndexColumn{{ColumnID: 2}, {ColumnID: 3}}},
			{ID: 3, OID: 16388, Name: "t_i", Comment: "an index", Include: []uint32{6},
				Columns: []catalog.IndexColumn{{ColumnID: 3, Desc: true}, {ColumnID: 2, NullsFirst: true}, {ColumnID: 1, Desc: true, NullsFirst: true}}},
		},
		Checks: []catalog.CheckDescriptor{{OID: 16389, Name: "t_price_check", Expr: "price >= 0"}},
		Observers: []catalog.ObserverDescriptor{
			{ID: 16400, Name: "o", Columns: []uint32{2, 3}, When: "new.price > 0", Body: "SELECT '$$'", AckIndex: 4, Concurrency: 8, Batch: 1, MaxAttempts: 16},
			{ID: 16401, Name: "Seeds", State: catalog.ObserverSeeding, AckIndex: 5, Concurrency: 1, Batch: 100, MaxAttempts: 1, Weak: true, Comment: "slow"},
		},
	}
	hidden := &catalog.TableDescriptor{
		ID: 16390, Kind: catalog.KindTable, Schema: "other", Name: "h",
		Columns: []catalog.ColumnDescriptor{{ID: 1, Name: "a", Type: types.TInt8}, {ID: 2, Name: "rowid", Type: types.TInt8, NotNull: true, Hidden: true}},
		Primary: catalog.IndexDescriptor{ID: 1, Unique: true, Columns: []catalog.IndexColumn{{ColumnID: 2}}},
	}
	view := &catalog.TableDescriptor{
		ID: 16391, Kind: catalog.KindView, Schema: catalog.PublicSchema, Name: "v", ViewQuery: "SELECT id FROM public.t", DependsOn: []uint64{16384},
		Columns: []catalog.ColumnDescriptor{{ID: 1, Name: "id", Type: types.TInt4}},
	}
	return &fixed{all: append(Tables(), hidden, t, serial, view)}
}

// Goal: every system table yields rows of its columns' types, with no NULL where PostgreSQL has none.
// Method: read all of them over a schema with one of everything, with and without a session.
func TestAllTablesYieldSoundRows(t *testing.T) {
	r := example()
	filled := 0
	for _, table := range Tables() {
		for _, view := range []catalog.SystemView{session{}, nil} {
			n := 0
			err := table.Rows(context.Background(), r, view, func(row types.Row) error {
				n++
				for i := range table.Columns {
					c := &table.Columns[i]
					if row[i].IsNull() {
						if c.NotNull {
							return fmt.Errorf("%s.%s is NULL", table.Name, c.Name)
						}
						continue
					}
					if row[i].Kind() != c.Type.KindOf() {
						return fmt.Errorf("%s.%s has kind %d, type %s", table.Name, c.Name, row[i].Kind(), c.Type.String())
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if n > 0 {
				filled++
			}
		}
	}
	if filled < 50 {
		t.Fatalf("only %d tables had rows", filled)
	}
}

// Goal: what clients read of one of everything. Method: transcripts:
//
//	rows TABLE [from=OID] COLUMN…   the rows about the example's own objects
//	define KIND OID      a definition, as the functions give it
//	oid NAME | name OID  regclass in both directions
func TestTranscripts(t *testing.T) {
	r := example()
	objects := &Objects{Resolver: func() catalog.Resolver { return r }, ViewText: session{}.ViewText, UpdatesOf: session{}.UpdatesOf}
	datadriven.RunTest(t, "testdata/pgcatalog.txt", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		switch d.Cmd {
		case "rows":
			printRows(t, r, d, &out)
		case "define":
			for _, line := range strings.Split(d.Input, "\n") {
				out.WriteString(define(objects, line) + "\n")
			}
		case "oid":
			for _, line := range strings.Split(d.Input, "\n") {
				id, err := objects.RelationOID(line)
				fmt.Fprintf(&out, "%s: %d %v\n", line, id, err)
			}
		}
		return out.String()
	})
}

func printRows(t *testing.T, r *fixed, d *datadriven.TestData, out *strings.Builder) {
	t.Helper()
	schema, name, _ := strings.Cut(d.CmdArgs[0].Key, ".")
	table, _ := r.Relation(context.Background(), schema, name)
	if table == nil {
		d.Fatalf(t, "no table %s.%s", schema, name)
	}
	from := 0
	d.MaybeScanArgs(t, "from", &from)
	err := table.Rows(context.Background(), r, session{}, func(row types.Row) error {
		if name == "pg_description" && slices.Contains([]int64{classPgProc, classPgOperator, classPgType}, row[1].Int()) {
			return nil // the comments on PostgreSQL's own
		}
		if name == "table_constraints" && row[table.ColumnNamed("table_schema")].Text() == catalog.SystemSchema {
			return nil
		}
		var fields []string
		for _, arg := range d.CmdArgs[1:] {
			if arg.Key == "from" {
				if row[0].Int() < int64(from) {
					return nil
				}
				continue
			}
			ord := table.ColumnNamed(arg.Key)
			if ord < 0 {
				d.Fatalf(t, "no column %s", arg.Key)
			}
			if row[ord].IsNull() {
				fields = append(fields, "NULL")
				continue
			}
			fields = append(fields, string(types.AppendText(nil, row[ord], table.Columns[ord].Type, nil)))
		}
		if line := strings.Join(fields, " | "); !strings.HasPrefix(line, "pg_catalog") && !strings.HasPrefix(line, "information_schema") && !strings.HasPrefix(line, "percodb |") {
			out.WriteString(line + "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func define(o *Objects, line string) string {
	var kind string
	var id types.OID
	var column int
	fmt.Sscan(line, &kind, &id, &column)
	show := func(s string, ok bool) string { return fmt.Sprintf("%s %v: %s", kind, ok, s) }
	switch kind {
	case "index":
		return show(o.IndexDefinition(id, column, false))
	case "constraint":
		return show(o.ConstraintDefinition(id, false))
	case "view":
		return show(o.ViewDefinition(id, false, 0))
	case "name":
		return show(o.RelationName(id))
	case "comment":
		return show(o.Comment(id, "pg_class", column))
	case "schema":
		return show(o.SchemaName(id))
	case "role":
		return show(o.RoleName(id))
	}
	return "unknown " + kind
}

// Goal: pg_get_serial_sequence, visibility and sizes answer for what is there and what is not.
func TestObjects(t *testing.T) {
	r := example()
	o := &Objects{Resolver: func() catalog.Resolver { return r }, ViewText: session{}.ViewText, UpdatesOf: session{}.UpdatesOf}
	if name, ok, err := o.SerialSequence("t", "id"); err != nil || !ok || name != "public.t_id_seq" {
		t.Error(name, ok, err)
	}
	if _, ok, err := o.SerialSequence("t", "price"); err != nil || ok {
		t.Error(ok, err)
	}
	if _, _, err := o.SerialSequence("t", "nosuch"); err == nil {
		t.Error("column nosuch has a sequence")
	}
	if visible, ok := o.RelationVisible(16384); !visible || !ok {
		t.Error("t is not visible")
	}
	if visible, ok := o.RelationVisible(16390); visible || !ok {
		t.Error("other.h is visible")
	}
	if _, ok := o.RelationVisible(1); ok {
		t.Error("relation 1 exists")
	}
	if size, err := o.RelationSize(context.Background(), 16384, true); err != nil || size < 1000 {
		t.Error(size, err)
	}
	none := &Objects{Resolver: func() catalog.Resolver { return nil }}
	if _, err := none.RelationOID("t"); err == nil {
		t.Error("found t without a resolver")
	}
	if _, ok := none.ConstraintDefinition(1, false); ok {
		t.Error("found a constraint without a resolver")
	}
	if _, ok := none.Comment(2200, "", 0); ok {
		t.Error("found a comment without a resolver")
	}
}
