package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/check"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

const checkedSchema = `
create extension btree_gist;
create function twice(int) returns int language plpgsql immutable as $$ begin return 2 * $1; end $$;
create domain small as int check (value < 1000);
create table parents (id int primary key, code text collate "en-x-icu" unique, twin int unique deferrable initially deferred);
create table things (id int primary key, a int not null, s text, j jsonb, tags text[], doc tsvector, during int4range,
	g int generated always as (a + 1) stored, d small, p int references parents, pc text references parents (code),
	constraint positive check (a > 0), constraint doubled check (twice(a) > 0),
	constraint apart exclude using gist (a with =, during with &&));
create index ix_plain on things (a desc nulls last);
create unique index ix_unique on things (s);
create index ix_expr on things (lower(s), (a % 3));
create index ix_routine on things (twice(a));
create index ix_partial on things (a) where id > 2;
create unique index ix_include on things (a, id) include (s, d);
create index ix_hash on things using hash (s);
create index ix_collated on things (s collate "de-x-icu");
create index ix_gin on things using gin (j);
create index ix_path on things using gin (j jsonb_path_ops);
create index ix_tags on things using gin (tags);
create index ix_doc on things using gin (doc);
create table cuts (k int not null, v text, r int) partition by range (k);
create table cuts_low partition of cuts for values from (0) to (10);
create table cuts_high partition of cuts for values from (10) to (20) partition by list (v);
create table cuts_high_x partition of cuts_high for values in ('x');
create table cuts_high_rest partition of cuts_high default;
create unique index ix_cuts on cuts (k, v);
create table spots (id int primary key, k int, v text, foreign key (k, v) references cuts (k, v));
insert into parents select g, 'code' || g, g from generate_series(1, 9) g;
alter table things add constraint old check (a > 0) not valid;
insert into things (id, a, s, j, tags, doc, during, d, p, pc) select g, g, 'S' || g, jsonb_build_object('k', g), array['t' || g], to_tsvector('word' || g), int4range(g, g + 2), g, g, 'code' || g
	from generate_series(1, 9) g;
insert into cuts select g, case when g % 2 = 0 then 'x' else 'y' end, g from generate_series(1, 19) g;
insert into spots select g, g, case when g % 2 = 0 then 'x' else 'y' end from generate_series(1, 19) g;
create temp table passing (a int primary key, b text unique); insert into passing values (1, 'a')`

// findings verifies the database, and returns what was found, one finding a line.
func (s *testServer) findings() string {
	s.t.Helper()
	c, err := NewChecking(context.Background(), s.deps)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	var found []string
	report := func(f check.Finding) error {
		found = append(found, f.Relation+" "+f.Index+": "+f.Problem)
		return nil
	}
	note := func(f check.Finding) { found = append(found, "note: "+f.Relation+": "+f.Problem) }
	if _, err := c.Run(check.Report{Finding: report, Note: note}); err != nil {
		s.t.Fatal(err)
	}
	source := c.Source()
	if err := check.Leftovers(context.Background(), []catalog.Resolver{source.Resolver}, source.Txn, report); err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(found, "\n")
}

// damage has change change keys behind the server's back, and returns what is found; then it takes the change back.
func (s *testServer) damage(change func(txn *recordingTxn)) string {
	s.t.Helper()
	ctx := context.Background()
	txn, err := s.deps.DB.Begin(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	before := txn.StartTS()
	recording := &recordingTxn{t: s.t.(*testing.T), txn: txn}
	change(recording)
	if _, err := txn.Commit(ctx); err != nil {
		s.t.Fatal(err)
	}
	found := s.findings()
	old := s.deps.DB.BeginAt(before)
	defer old.Close()
	undo, err := s.deps.DB.Begin(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, key := range recording.written {
		value, err := old.Get(ctx, key)
		if err == nil && value == nil {
			err = undo.Delete(key)
		} else if err == nil {
			err = undo.Put(key, value)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := undo.Commit(ctx); err != nil {
		s.t.Fatal(err)
	}
	return found
}

// recordingTxn notes which keys a transaction changes.
type recordingTxn struct {
	t       *testing.T
	txn     *percolator.Txn
	written [][]byte
}

func (r *recordingTxn) put(key, value []byte) {
	r.written = append(r.written, key)
	must(r.t, r.txn.Put(key, value))
}

func (r *recordingTxn) remove(key []byte) {
	r.written = append(r.written, key)
	must(r.t, r.txn.Delete(key))
}

// Goal: percodb check finds nothing in a sound database, and in one whose indexes are of every kind finds each lost entry, and each entry without
// its row. Method: of every index an entry is removed, then an entry is copied to where no row has one.
func TestCheckFindsDamagedIndexes(t *testing.T) {
	s := newTestServer(t)
	c := s.connect()
	if got := c.query(checkedSchema); strings.Contains(got, "error") {
		t.Fatal(got)
	}
	if found := s.findings(); found != "" {
		t.Fatalf("a sound database:\n%s", found)
	}
	indexes := 0
	for _, table := range s.tables() {
		for i := range table.Indexes {
			ix := &table.Indexes[i]
			keys := s.keys(table, ix)
			if len(keys) == 0 {
				if !table.IsPartitioned() {
					t.Errorf("index %s of %s has no entries", ix.Name, table.Name)
				}
				continue
			}
			indexes++
			lost := s.damage(func(txn *recordingTxn) { txn.remove(keys[len(keys)/2].key) })
			if !strings.Contains(lost, table.Name+" "+ix.Name+": row has no entry") {
				t.Errorf("%s of %s: a lost entry is not found:\n%s", ix.Name, table.Name, lost)
			}
			stray := s.damage(func(txn *recordingTxn) {
				last := keys[len(keys)-1]
				key := slices.Clone(last.key)
				key[len(key)-1]++ // of another row, or of another value
				txn.remove(keys[0].key)
				txn.put(key, last.value)
			})
			if !strings.Contains(stray, table.Name+" "+ix.Name+": ") || strings.Count(stray, table.Name+" "+ix.Name+": ") < 2 {
				t.Errorf("%s of %s: an entry of no row is not found:\n%s", ix.Name, table.Name, stray)
			}
		}
	}
	if t.Logf("%d indexes", indexes); indexes < 18 {
		t.Error("too few")
	}
	if found := s.findings(); found != "" {
		t.Fatalf("in the end:\n%s", found)
	}
}

// Goal: percodb check finds rows that violate constraints of every kind, rows in a wrong partition, and keys of no relation. Method: rows are stored
// as no statement would store them.
func TestCheckFindsViolations(t *testing.T) {
	s := newTestServer(t)
	c := s.connect()
	if got := c.query(checkedSchema); strings.Contains(got, "error") {
		t.Fatal(got)
	}
	tables := map[string]*catalog.TableDescriptor{}
	for _, table := range s.tables() {
		tables[table.Name] = table
	}
	things := tables["things"]
	set := func(column string, d types.Datum) func(*recordingTxn) {
		return func(txn *recordingTxn) {
			first := s.keys(things, &things.Primary)[4]
			row := s.row(things, first)
			row[things.ColumnNamed(column)] = d
			value, err := rowenc.AppendRow(nil, things, row)
			must(t, err)
			txn.put(first.key, value)
		}
	}
	remove := func(table string) func(*recordingTxn) {
		return func(txn *recordingTxn) {
			txn.remove(s.keys(tables[table], &tables[table].Primary)[3].key)
		}
	}
	move := func(from, to string) func(*recordingTxn) {
		return func(txn *recordingTxn) {
			first := s.keys(tables[from], &tables[from].Primary)[0]
			_, _, rest, err := rowenc.SplitKey(first.key)
			must(t, err)
			txn.put(append(rowenc.AppendIndexPrefix(nil, tables[to].ID, tables[to].Primary.ID), rest...), first.value)
		}
	}
	for _, tc := range []struct {
		name   string
		damage func(*recordingTxn)
		want   string
	}{
		{"CHECK", set("a", types.Int(-5)), `things : row violates the CHECK constraint "positive"`},
		{"CHECK with a function", set("a", types.Int(-5)), `things : row violates the CHECK constraint "doubled"`},
		{"NOT NULL", set("a", types.Null), `things : column "a" is NULL`},
		{"generated", set("g", types.Int(77)), `things : generated column "g" is not what its expression gives`},
		{"domain", set("d", types.Int(5000)), `things : column "d": value for domain small violates check constraint "small_check"`},
		{"EXCLUDE", set("a", types.Int(6)), `things apart: conflicts with the row`},
		{"no parent", set("p", types.Int(1234)), `things : foreign key "things_p_fkey": the parent`},
		{"no parent by a collated key", set("pc", types.Text("Code5")), `things : foreign key "things_pc_fkey": the parent`},
		{"parent removed", remove("parents"), `things : foreign key "things_p_fkey": the parent`},
		{"parent in a partition removed", func(txn *recordingTxn) {
			remove("cuts_high_x")(txn)
			txn.remove(s.keys(tables["cuts_high_x"], &tables["cuts_high_x"].Indexes[0])[3].key)
		}, `spots : foreign key "spots_k_v_fkey": the parent`},
		{"wrong partition", move("cuts_low", "cuts_high_x"), "cuts_high_x : row does not belong to the partition"},
		{"default partition", move("cuts_high_x", "cuts_high_rest"), "cuts_high_rest : row does not belong to the partition"},
		{"above", move("cuts_low", "cuts"), "cuts : a partitioned table has a row of its own"},
		{"no relation", func(txn *recordingTxn) {
			txn.put(rowenc.AppendIndexPrefix(nil, 999_999, 1), []byte("x"))
		}, "relation 999999 : keys of index 1 belong to nothing"},
		{"guard with a value", func(txn *recordingTxn) {
			first := s.keys(tables["parents"], &tables["parents"].Primary)[0]
			txn.put(rowenc.AppendGuard(nil, tables["parents"], &tables["parents"].Primary, first.key), []byte("x"))
		}, "parents : the guard of a key has a value"},
		{"no index", func(txn *recordingTxn) {
			txn.put(append(rowenc.AppendIndexPrefix(nil, things.ID, 999), 1), []byte("x"))
		}, fmt.Sprintf("relation %d : keys of index 999 belong to nothing", things.ID)},
	} {
		if got := s.damage(tc.damage); !strings.Contains(got, tc.want) || strings.Contains(got, `"old"`) {
			t.Errorf("%s: found\n%s\nwant %s", tc.name, got, tc.want)
		}
	}
	if found := s.findings(); found != "" {
		t.Fatalf("in the end:\n%s", found)
	}
}

// Goal: a sequence that will reach values which rows have already is noted, and it is no finding. Method: rows with values from sequences and with other
// ones, for sequences that ascend, descend, begin anew after their last value, and were never used.
func TestSequencesBehindTheirColumns(t *testing.T) {
	s := newTestServer(t)
	c := s.connect()
	run := func(sql string) {
		t.Helper()
		if got := c.query(sql); strings.Contains(got, "error") {
			t.Fatal(got)
		}
	}
	run("create table numbered (id serial primary key, down int generated by default as identity (increment -1), round int generated by default as identity (maxvalue 3 cycle))")
	run("create table unused (id bigserial, n smallint generated always as identity)")
	run("insert into numbered default values; insert into numbered default values; insert into unused (id, n) overriding system value values (0, 0)")
	if found := s.findings(); found != "" {
		t.Errorf("of values that were drawn:\n%s", found)
	}
	run("insert into numbered values (100, -100, 3); insert into unused (id, n) overriding system value values (1, 2)")
	var names []string
	for _, line := range strings.Split(s.findings(), "\n") {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "note: "), ":")
		names = append(names, name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "public.numbered_down_seq public.numbered_id_seq public.unused_id_seq public.unused_n_seq" {
		t.Errorf("noted: %s", got)
	}
	run("select setval('numbered_id_seq', 100), setval('numbered_down_seq', -100), setval('unused_id_seq', 1), setval('unused_n_seq', 2)")
	if found := s.findings(); found != "" {
		t.Errorf("after setval:\n%s", found)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tables are the tables of the database that have rows.
func (s *testServer) tables() (all []*catalog.TableDescriptor) {
	s.t.Helper()
	present, err := s.deps.Catalog.Present(context.Background())
	must(s.t.(*testing.T), err)
	relations, err := present.Relations(context.Background())
	must(s.t.(*testing.T), err)
	for _, r := range relations {
		if r.Kind == catalog.KindTable {
			all = append(all, r)
		}
	}
	return all
}

// stored is a key with its value.
type stored struct{ key, value []byte }

// keys are those of an index.
func (s *testServer) keys(table *catalog.TableDescriptor, ix *catalog.IndexDescriptor) (all []stored) {
	s.t.Helper()
	txn, err := s.deps.DB.Begin(context.Background())
	must(s.t.(*testing.T), err)
	defer txn.Close()
	start, end := rowenc.IndexSpan(table.ID, ix.ID)
	it := txn.Scan(context.Background(), kv.Span{Start: start, End: end}, percolator.ScanOptions{})
	defer it.Close()
	for it.Next(context.Background()) {
		all = append(all, stored{slices.Clone(it.Key()), slices.Clone(it.Value())})
	}
	must(s.t.(*testing.T), it.Err())
	return all
}

// row decodes a row.
func (s *testServer) row(table *catalog.TableDescriptor, at stored) types.Row {
	s.t.Helper()
	ordinals := make([]int, len(table.Columns))
	for i := range ordinals {
		ordinals[i] = i
	}
	var d rowenc.Decoder
	must(s.t.(*testing.T), d.Init(table, &table.Primary, ordinals))
	row := make(types.Row, len(table.Columns))
	must(s.t.(*testing.T), d.Decode(at.key, at.value, row))
	return row
}
