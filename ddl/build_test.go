package ddl

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
)

// buildKinds are indexes of each kind on the table of newBuildTable.
var buildKinds = []string{
	"create index ix on t (b)",
	"create unique index ix on t (u)",
	"create unique index ix on t (u desc nulls last) include (b)",
	"create unique index ix on t (n, u)",
	"create index ix on t (b) where b % 3 = 0",
	"create unique index ix on t ((u + 1)) where b > 10",
	"create index ix on t (lower(s), b desc)",
	"create index ix on t using gin (j)",
	"create index ix on t using gin (j jsonb_path_ops)",
	"create index ix on t using gin (l)",
	"create index ix on t using hash (s)",
	"create index ix on t using brin (a)",
	"create index concurrently ix on t (s) include (b)",
}

// buildServer opens a server on which indexes of all tables are built while these are written.
func buildServer(t *testing.T, split, whole bool, opts catalog.Options) *server {
	open := newServer
	if split {
		open = newSplitServer
	}
	s := open(t, opts)
	s.online, s.whole, s.chunk = -1, whole, 4<<10
	return s
}

const buildRows = 600

func newBuildTable(c *session) {
	c.t.Helper()
	got := c.exec("create table t (a int primary key, b int, u int, n int, s text, j jsonb, l int[])")
	got += c.exec(fmt.Sprintf("insert into t select "+buildRow+" from generate_series(1, %d) g", buildRows))
	if strings.Contains(got, "ERROR") {
		c.t.Fatal(got)
	}
}

// buildRow are the columns of row g: u is unique, n is NULL in some rows.
const buildRow = "g, g %% 37, g, nullif(g %% 5, 0), 'S' || g %% 11, jsonb_build_object('k', g %% 13, 'l', jsonb_build_array(g %% 7, g %% 3)), array[g %% 17, g %% 19]"

// changeUntil changes rows at random until stop. Values of u are exchanged between rows, and stay unique.
func changeUntil(t *testing.T, s *session, worker int, stop *atomic.Bool, changed *atomic.Int64) {
	rng := rand.New(rand.NewSource(int64(worker)))
	next := buildRows + 1 + worker*1_000_000
	for !stop.Load() {
		a, other := rng.Intn(buildRows)+1, rng.Intn(buildRows)+1
		var statement string
		switch rng.Intn(6) {
		case 0:
			statement = fmt.Sprintf("insert into t select "+buildRow+" from generate_series(%d, %d) g", next, next)
			next++
		case 1:
			statement = fmt.Sprintf("delete from t where a = %d", rng.Intn(next-buildRows)+worker*1_000_000+buildRows)
		case 2:
			statement = fmt.Sprintf("update t set b = %d where a = %d", rng.Intn(50), a)
		case 3:
			statement = fmt.Sprintf("begin; update t set u = -u where a = %d; delete from t where a = %d; insert into t select "+buildRow+" from generate_series(%d, %d) g; update t set u = -u where a = %d; commit", a, other, other, other, a)
		case 4:
			statement = fmt.Sprintf("update t set s = 'S%d', j = jsonb_build_object('k', %d), l = array[%d] where a = %d", rng.Intn(30), rng.Intn(30), rng.Intn(30), a)
		case 5:
			statement = fmt.Sprintf("update t set n = %d where a = %d", rng.Intn(5), a)
		}
		got := s.exec(statement)
		if strings.Contains(got, "ERROR") {
			s.rollback()
			if !strings.Contains(got, "Conflict") && !strings.Contains(got, "SchemaChanged") && !strings.Contains(got, "23505") {
				t.Errorf("%s: %s", statement, got)
				return
			}
		}
		changed.Add(1)
	}
}

// Goal: an index of any kind that is built while its table is written has exactly the entries of the rows. Method: writers change rows while
// indexes are built, one after the other, in one process and in two, in steps of one transaction and of several; the checker compares.
func TestIndexesBuiltUnderWriters(t *testing.T) {
	defer func(few int) { mergeFew = few }(mergeFew)
	mergeFew = 4 // so that rounds are needed
	for _, setting := range []struct{ shared, split, whole bool }{{false, false, true}, {false, false, false}, {true, true, false}} {
		t.Run(fmt.Sprintf("%+v", setting), func(t *testing.T) {
			opts := catalog.Options{Shared: setting.shared, Lease: 60 * time.Millisecond, PollInterval: 10 * time.Millisecond}
			s := buildServer(t, setting.split, setting.whole, opts)
			newBuildTable(s.session())
			var stop atomic.Bool
			var changed atomic.Int64
			var wg sync.WaitGroup
			for w := range 2 {
				c := s.session()
				wg.Go(func() { changeUntil(t, c, w, &stop, &changed) })
			}
			c := s.session()
			for _, statement := range buildKinds {
				waitFor(&changed, changed.Load()+5)
				if got := c.exec(statement); strings.Contains(got, "ERROR") {
					t.Errorf("%s: %s", statement, got)
					break
				}
				waitFor(&changed, changed.Load()+5)
				if findings := s.verify(); findings != "" {
					t.Errorf("%s: %s", statement, findings)
					break
				}
				c.exec("drop index ix")
			}
			stop.Store(true)
			wg.Wait()
			t.Logf("%d changes", changed.Load())
		})
	}
}

// beginBuild begins the build of an index, and returns the builder.
func (s *session) beginBuild(statement string) *indexBuilder {
	s.t.Helper()
	ctx := context.Background()
	lexer := sql.NewLexer()
	lexer.Reset(statement)
	st, err := lexer.Next()
	if err != nil {
		s.t.Fatal(err)
	}
	tree, err := sql.Parse(st, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	d := s.deps().ensureDefaults()
	begun := onlineBuilds{owner: newBuildOwner()}
	_, err = repeatAlone(ctx, &d, changeFor(tree, &d), func(r *run) (string, error) {
		begun.indexes, r.online = nil, &begun
		return r.execute(ctx, tree.(*ast.CreateIndex))
	})
	if err != nil || len(begun.indexes) == 0 {
		s.t.Fatalf("%s: %d builds, %v", statement, len(begun.indexes), err)
	}
	return &indexBuilder{Deps: &d, index: begun.indexes[0], owner: begun.owner}
}

// Goal: a build that has been interrupted between any two of its steps is continued from there, and the index then has exactly the entries of
// the rows. Method: the process ends after each number of rows; rows change before another one continues.
func TestInterruptedBuildsContinue(t *testing.T) {
	defer func(few int) { mergeFew = few }(mergeFew)
	mergeFew = 4
	s := buildServer(t, false, false, catalog.Options{})
	c := s.session()
	newBuildTable(c)
	rng := rand.New(rand.NewSource(1))
	change := func() {
		for range 20 {
			a := rng.Intn(buildRows) + 1
			got := c.exec(fmt.Sprintf("update t set u = u + 10000, b = b + 1, s = 's', l = l || 3 where a = %d; delete from t where a = %d; "+
				"update t set u = -u where a = %d; insert into t select "+buildRow+" from generate_series(%d, %d) g on conflict do nothing", a, a+1, a+2, a+3, a+3))
			if strings.Contains(got, "ERROR") && !strings.Contains(got, "23505") {
				t.Fatal(got)
			}
		}
	}
	for _, statement := range buildKinds {
		b := c.beginBuild(statement)
		for cut := 1; ; cut++ {
			ctx, cancel := context.WithCancel(context.Background())
			steps := 0
			b.stepped = func() {
				if steps++; steps == cut {
					cancel()
				}
			}
			err := b.complete(ctx)
			cancel()
			if err == nil {
				break
			}
			if ctx.Err() == nil {
				t.Fatalf("%s: %v", statement, err)
			}
			change()
			before := b.rec.Rows
			d := s.session().deps().ensureDefaults()
			d.OneTransaction = true // There is no other process.
			b = &indexBuilder{Deps: &d, index: b.index, owner: newBuildOwner()}
			rec, err := takeBuild(context.Background(), &d, b.index, b.owner)
			if err != nil || rec == nil {
				t.Fatalf("%s: %v", statement, err)
			}
			if rec.Phase == catalog.BuildScans && cut > 2 && rec.Rows == 0 || rec.Rows > before {
				t.Fatalf("%s: continued at row %d of %d", statement, rec.Rows, before)
			}
		}
		if findings := s.verify(); findings != "" {
			t.Fatalf("%s: %s", statement, findings)
		}
		if got := c.exec("drop index ix"); got != "DROP INDEX\n" {
			t.Fatal(got)
		}
	}
}

// Goal: the build of a unique index that rows contradict leaves what PostgreSQL leaves: nothing, or with CONCURRENTLY an invalid index, which no
// statement maintains and DROP INDEX removes. Method: as the title says.
func TestFailedBuilds(t *testing.T) {
	s := buildServer(t, false, true, catalog.Options{})
	c := s.session()
	newBuildTable(c)
	const failed = "ERROR 23505: could not create unique index \"ix\"\nDETAIL: Key (b)=(0) is duplicated.\n"
	invalid := func() string {
		return c.exec("select relname, indisvalid, indisready from pg_index join pg_class c on c.oid = indexrelid where relname = 'ix'")
	}
	if got := c.exec("create unique index ix on t (b) where b = 0"); !strings.HasPrefix(got, failed) {
		t.Fatal(got)
	}
	if got := invalid(); got != "\n" {
		t.Fatal(got)
	}
	if got := c.exec("create unique index concurrently ix on t (b) where b = 0"); !strings.HasPrefix(got, failed) {
		t.Fatal(got)
	}
	if got := invalid(); got != "ix|f|f\n" {
		t.Fatal(got)
	}
	if got := c.exec("create index ix on t (b)"); got != "ERROR 42P07: relation \"ix\" already exists\n" {
		t.Fatal(got)
	}
	if got := c.exec("insert into t (a, b) values (9999, 0); alter table t add column c int; alter table t drop column n"); got != "INSERT 1\nALTER TABLE\nALTER TABLE\n" {
		t.Fatal(got)
	}
	if got := c.exec("drop index ix; create unique index ix on t (u)"); got != "DROP INDEX\nCREATE INDEX\n" {
		t.Fatal(got)
	}
	if findings := s.verify(); findings != "" {
		t.Fatal(findings)
	}
}

// Goal: other changes of a table's schema wait until its indexes have been built; a block, which does not wait, is told so. Method: a build is
// begun, and continued when a statement has waited.
func TestChangesWaitForBuilds(t *testing.T) {
	s := buildServer(t, false, true, catalog.Options{})
	c, other := s.session(), s.session()
	newBuildTable(c)
	b := c.beginBuild("create index ix on t (b)")
	want := "BEGIN\nERROR 55006: cannot change table \"t\" because an index of it is being built\n"
	if got := other.exec("begin; drop table t"); !strings.HasPrefix(got, want) {
		t.Fatal(got)
	}
	other.rollback()
	done := make(chan string)
	go func() { done <- other.exec("alter table t alter b type bigint") }()
	select {
	case got := <-done:
		t.Fatalf("it has not waited: %s", got)
	case <-time.After(200 * time.Millisecond):
	}
	if err := b.complete(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got != "ALTER TABLE\n" {
		t.Fatal(got)
	}
	if findings := s.verify(); findings != "" {
		t.Fatal(findings)
	}
}

// Goal: an index of a partitioned table is built on the partitions while they are written; if one of them cannot have it, none has. Method: as
// the title says, with partitions of partitions.
func TestBuildsOfPartitions(t *testing.T) {
	s := buildServer(t, false, true, catalog.Options{})
	c := s.session()
	for _, statement := range []string{
		"create table p (k int, v int) partition by range (k)",
		"create table p1 partition of p for values from (0) to (10)",
		"create table p2 partition of p for values from (10) to (30) partition by range (k)",
		"create table p21 partition of p2 for values from (10) to (20)",
		"create table p22 partition of p2 for values from (20) to (30)",
		"insert into p select g % 30, g from generate_series(1, 300) g",
		"create index pi on p (v)",
	} {
		if got := c.exec(statement); strings.Contains(got, "ERROR") {
			t.Fatalf("%s: %s", statement, got)
		}
	}
	indexes := func() string {
		return c.exec("select string_agg(relname || ' ' || indisvalid, ', ' order by relname) from pg_index join pg_class c on c.oid = indexrelid where relname like 'p%' and relname not like 'pg%'")
	}
	if got := indexes(); got != "p1_v_idx true, p21_v_idx true, p22_v_idx true, p2_v_idx true, pi true\n" {
		t.Fatal(got)
	}
	if got := c.exec("insert into p values (25, 300), (25, 300); create unique index pu on p (k, v)"); !strings.Contains(got, "ERROR 23505") {
		t.Fatal(got)
	}
	if got := indexes(); got != "p1_v_idx true, p21_v_idx true, p22_v_idx true, p2_v_idx true, pi true\n" {
		t.Fatal(got)
	}
	if findings := s.verify(); findings != "" {
		t.Fatal(findings)
	}
}
