package ddl

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/catalog"
)

// Goal: I1, I2: schema changes of all kinds under writers, in one process and in two, leave every index
// in agreement with its table and lose no acknowledged row. Method: writers insert, update and delete
// while statements run one after another; in the end the checker runs and the rows are counted.
func TestSchemaChangesUnderWriters(t *testing.T) {
	statements := []string{
		"create index t_b on t (b)",
		"alter table t add column c int default 7",
		"alter table t add primary key (a)",
		"create unique index t_u on t (a, b)",
		"alter table t add column d serial",
		"alter table t alter column b type bigint",
		"alter table t drop column c",
		"alter table t drop constraint t_pkey",
		"drop index t_b",
		"alter table t add check (a >= 0)",
	}
	for _, setting := range []struct{ shared, split bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		shared := setting.shared
		t.Run(fmt.Sprintf("shared=%v/split=%v", shared, setting.split), func(t *testing.T) {
			opts := catalog.Options{Shared: shared, Lease: 60 * time.Millisecond, PollInterval: 10 * time.Millisecond}
			open := newServer
			if setting.split {
				open = newSplitServer
			}
			first := open(t, opts)
			servers := []*server{first}
			if shared {
				servers = append(servers, &server{t: t, db: first.db, catalog: first.open(opts), chunk: first.chunk})
			}
			if got := first.session().exec("create table t (a int not null, b int)"); got != "CREATE TABLE\n" {
				t.Fatal(got)
			}
			var stop atomic.Bool
			var inserted, deleted atomic.Int64
			var wg sync.WaitGroup
			for w := range 3 {
				s := servers[w%len(servers)].session()
				wg.Go(func() { writeUntil(t, s, w, &stop, &inserted, &deleted) })
			}
			for i, statement := range statements {
				waitFor(&inserted, inserted.Load()+10)
				if got := servers[i%len(servers)].session().exec(statement); strings.Contains(got, "ERROR") {
					t.Errorf("%s: %s", statement, got)
				}
			}
			stop.Store(true)
			wg.Wait()
			if findings := first.verify(); findings != "" {
				t.Fatal(findings)
			}
			want := fmt.Sprintf("%d\n", inserted.Load()-deleted.Load())
			if got := first.session().exec("select count(*) from t"); got != want {
				t.Fatalf("%s rows, acknowledged %s", got, want)
			}
			t.Logf("%d inserted, %d deleted", inserted.Load(), deleted.Load())
		})
	}
}

func waitFor(counter *atomic.Int64, n int64) {
	for counter.Load() < n {
		time.Sleep(time.Millisecond)
	}
}

// writeUntil inserts rows of its own and changes and deletes some.
func writeUntil(t *testing.T, s *session, worker int, stop *atomic.Bool, inserted, deleted *atomic.Int64) {
	rng := rand.New(rand.NewSource(int64(worker)))
	for i := 0; !stop.Load(); i++ {
		a := worker*1_000_000 + i
		if got := s.exec(fmt.Sprintf("insert into t (a, b) values (%d, %d)", a, rng.Intn(100))); got != "INSERT 1\n" {
			t.Errorf("insert: %s", got)
			return
		}
		inserted.Add(1)
		old := worker*1_000_000 + rng.Intn(i+1)
		switch rng.Intn(4) {
		case 0:
			if got := s.exec(fmt.Sprintf("update t set b = b + 1 where a = %d", old)); strings.Contains(got, "ERROR") {
				t.Errorf("update: %s", got)
				return
			}
		case 1:
			switch got := s.exec(fmt.Sprintf("delete from t where a = %d", old)); got {
			case "DELETE 1\n":
				deleted.Add(1)
			case "DELETE 0\n":
			default:
				t.Errorf("delete: %s", got)
				return
			}
		}
	}
}

// Goal: I3: an interrupted change leaves only unreachable keys, and later changes do not fail because of
// them. Method: cancel index builds and rewrites at every chunk, then run them to the end.
func TestInterruptedChangesLeaveNothingReachable(t *testing.T) {
	for _, whole := range []bool{false, true} {
		s := newServer(t, catalog.Options{})
		s.whole = whole
		interruptChanges(t, s)
	}
}

func interruptChanges(t *testing.T, s *server) {
	c := s.session()
	c.exec("create table t (a int, b int); insert into t select g, g % 50 from generate_series(1, 400) g")
	for _, statement := range []string{
		"create index t_b on t (b)", "alter table t add primary key (a)", "alter table t alter b type text", "alter table t add column s serial",
	} {
		for after := range 5 {
			ctx, cancel := context.WithCancel(context.Background())
			if c.cancelAfter(ctx, cancel, statement, after) {
				t.Fatalf("%s: was to be cut off after %d rows", statement, after)
			}
			// Rows change between the attempts: entries of the failed one would be wrong now.
			c.exec(fmt.Sprintf("update t set b = 99 where a = %d; delete from t where a = %d", 10+after, 100+after))
		}
		if got := c.exec(statement); strings.Contains(got, "ERROR") {
			t.Fatalf("%s: %s", statement, got)
		}
		if findings := s.verify(); findings != "" {
			t.Fatalf("after %s: %s", statement, findings)
		}
		c.exec("insert into t (a, b) values (100, 1), (101, 1), (102, 1), (103, 1), (104, 1)")
	}
	if got := c.exec("select count(*) from t"); got != "400\n" {
		t.Fatal(got)
	}
}

// cancelAfter runs a statement and cuts it off after some rows; it reports whether it ran to its end.
func (s *session) cancelAfter(ctx context.Context, cancel func(), statement string, after int) bool {
	s.cancelRow = func(rows int64) {
		if rows > int64(after*60) {
			cancel()
		}
	}
	defer func() { s.cancelRow = nil; cancel() }()
	return !strings.Contains(s.execCtx(ctx, statement), "ERROR")
}

// Goal: a process that dies in the middle of a change blocks others no longer than its markers hold,
// and what it has written stays unreachable. Method: two catalogs; one closes a table and is abandoned
// with its lease (here: its change finishes without a commit), the other goes on.
func TestAbandonedChange(t *testing.T) {
	opts := catalog.Options{Shared: true, Lease: time.Second, PollInterval: 10 * time.Millisecond}
	s := newServer(t, opts)
	other := &server{t: t, db: s.db, catalog: s.open(opts), chunk: s.chunk}
	a, b := s.session(), other.session()
	a.exec("create table t (a int primary key, b int); insert into t values (1, 1), (2, 2)")
	if got := a.exec("begin; create index on t (b)"); strings.Contains(got, "ERROR") {
		t.Fatal(got)
	}
	done := make(chan string)
	go func() { done <- b.exec("insert into t values (3, 3)") }()
	select {
	case got := <-done:
		t.Fatalf("a writer got past a closed table: %s", got)
	case <-time.After(150 * time.Millisecond):
	}
	a.rollback()
	if got := <-done; got != "INSERT 1\n" {
		t.Fatal(got)
	}
	if got := b.exec("create index on t (b); select a from t where b = 3"); got != "CREATE INDEX\n3\n" {
		t.Fatal(got)
	}
	if findings := s.verify(); findings != "" {
		t.Fatal(findings)
	}
}

// Goal: of two processes that detach one partition at the same time one succeeds, and the other says that it is none. Method: two catalogs, again
// and again; the later one has found the partition before the first one closed the tables.
func TestPartitionDetachedByTwo(t *testing.T) {
	opts := catalog.Options{Shared: true, Lease: time.Second, PollInterval: 10 * time.Millisecond}
	s := newServer(t, opts)
	other := &server{t: t, db: s.db, catalog: s.open(opts), chunk: s.chunk}
	a, b := s.session(), other.session()
	a.exec("create table p (a int) partition by list (a); create table p1 (a int)")
	for range 5 {
		if got := a.exec("alter table p attach partition p1 for values in (1)"); strings.Contains(got, "ERROR") {
			t.Fatal(got)
		}
		const detach = "alter table p detach partition p1"
		first := make(chan string)
		go func() { first <- a.exec(detach) }()
		results := []string{b.exec(detach), <-first}
		slices.Sort(results)
		if results[0] != "ALTER TABLE\n" || !strings.Contains(results[1], "is not a partition of relation") {
			t.Fatalf("%q", results)
		}
	}
}

// Goal: an index over an expression of a user's type is maintained, and found, by a process that has read the schema from the store. Method: a second
// catalog over the store changes the rows.
func TestExpressionOfUserTypeIsRead(t *testing.T) {
	s := newServer(t, catalog.Options{})
	s.session().exec(`create type mood as enum ('ok', 'sad'); create table t (id int primary key, m mood);
		create index on t (coalesce(m, 'ok')); insert into t values (1, 'ok'), (2, null)`)
	other := &server{t: t, db: s.db, catalog: s.open(catalog.Options{}), chunk: s.chunk}
	c := other.session()
	got := c.exec("update t set m = 'sad' where id = 2; alter table t add column x int; select id from t where coalesce(m, 'ok') = 'sad'")
	if got != "UPDATE 1\nALTER TABLE\n2\n" {
		t.Error(got)
	}
	if findings := other.verify(); findings != "" {
		t.Error(findings)
	}
}
