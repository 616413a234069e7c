package ddl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// schema is the schema of now.
func (s *server) schema() catalog.Resolver {
	s.t.Helper()
	ctx := context.Background()
	txn, err := s.db.Begin(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	defer txn.Close()
	r, err := s.catalog.At(ctx, txn)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// cellsOf returns all notify cells of an observer.
func (s *server) cellsOf(observer uint64) (all []kv.NotifyCell) {
	s.t.Helper()
	var from []byte
	for {
		cells, next, err := s.db.Observers().Scan(context.Background(), observer, kv.Span{}, 100, from)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, cells...)
		if next == nil {
			return all
		}
		from = next
	}
}

// cells lists the rows with notify cells by observer, and clears the cells.
func (s *session) cells() string {
	ctx := context.Background()
	all, err := s.schema().Relations(ctx)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, t := range all {
		for _, o := range t.Observers {
			var keys []string
			for _, cell := range s.cellsOf(o.ID) {
				row, err := rowenc.KeyColumns(t, &t.Primary, cell.Key)
				if err != nil {
					return err.Error()
				}
				var fields []string
				for i, c := range t.Primary.Columns {
					fields = append(fields, string(types.AppendText(nil, row[i], t.Columns[t.Ordinal(c.ColumnID)].Type, nil)))
				}
				keys = append(keys, strings.Join(fields, "/"))
				if _, err := s.db.Observers().Clear(ctx, o.ID, []kv.NotifyUpTo{{Key: cell.Key, UpTo: cell.Latest}}); err != nil {
					return err.Error()
				}
			}
			if len(keys) > 0 {
				fmt.Fprintf(&out, "%s: %s\n", o.Name, strings.Join(keys, " "))
			}
		}
	}
	return out.String()
}

// observer finds an observer of now.
func (s *server) observer(name string) (*catalog.TableDescriptor, *catalog.ObserverDescriptor) {
	s.t.Helper()
	t, o, err := catalog.FindObserver(context.Background(), s.schema(), "", name)
	if err != nil || o == nil {
		s.t.Fatalf("observer %s: %v, %v", name, o, err)
	}
	return t, o
}

// Goal: T-OBS-9: a change notifies an observer if and only if it commits after CREATE OBSERVER and before DROP OBSERVER. Method: writers
// insert rows, each once, while an observer is created and dropped again and again, in one process and in two; in the order of their
// commits, the inserts that have cells of one observer are consecutive, and all rows of an observer that is there are notified.
func TestProto_T_OBS_9(t *testing.T) {
	for _, setting := range []struct{ shared, split bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("shared=%v/split=%v", setting.shared, setting.split), func(t *testing.T) {
			opts := catalog.Options{Shared: setting.shared, Lease: 60 * time.Millisecond, PollInterval: 10 * time.Millisecond}
			open := newServer
			if setting.split {
				open = newSplitServer
			}
			first := open(t, opts)
			servers := []*server{first}
			if setting.shared {
				servers = append(servers, &server{t: t, db: first.db, catalog: first.open(opts), chunk: first.chunk})
			}
			first.session().exec("create table t (a int primary key, b int)")
			log := &insertLog{}
			var wg sync.WaitGroup
			for w := range 3 {
				s := servers[w%len(servers)].session()
				wg.Go(func() { log.insertUntilStopped(t, s, w) })
			}
			var observers []uint64
			for i := range 5 {
				c := servers[i%len(servers)].session()
				for _, statement := range []string{"create observer o on t", "", "drop observer o"} {
					waitFor(&log.n, log.n.Load()+10)
					if statement == "" {
						_, o := first.observer("o")
						observers = append(observers, o.ID)
					} else if got := c.exec(statement); strings.Contains(got, "ERROR") {
						t.Errorf("%s: %s", statement, got)
					}
				}
			}
			log.stop.Store(true)
			wg.Wait()
			slices.Sort(log.commits)
			for _, id := range observers {
				log.requireConsecutive(t, first.cellsOf(id))
			}
		})
	}
}

// insertLog has the commit_ts of inserts.
type insertLog struct {
	stop    atomic.Bool
	n       atomic.Int64
	mu      sync.Mutex
	commits []tso.Timestamp
}

func (l *insertLog) insertUntilStopped(t *testing.T, s *session, worker int) {
	for i := 0; !l.stop.Load(); i++ {
		if got := s.exec(fmt.Sprintf("insert into t values (%d, 0)", worker*1_000_000+i)); got != "INSERT 1\n" {
			t.Errorf("insert: %s", got)
			return
		}
		l.mu.Lock()
		l.commits = append(l.commits, s.committed)
		l.mu.Unlock()
		l.n.Add(1)
	}
}

// requireConsecutive checks that the changes of cells are consecutive commits of the log.
func (l *insertLog) requireConsecutive(t *testing.T, cells []kv.NotifyCell) {
	t.Helper()
	notified := map[tso.Timestamp]bool{}
	for _, c := range cells {
		notified[c.Latest] = true
	}
	begun, ended, n := false, false, 0
	for _, ts := range l.commits {
		switch {
		case notified[ts] && ended:
			t.Errorf("the commit at %d notifies although one before it, behind the first, does not", ts)
		case notified[ts]:
			begun = true
			n++
		case begun:
			ended = true
		}
	}
	if n < 10 || n < len(notified) {
		t.Errorf("%d of %d cells are of logged commits", n, len(notified))
	}
}

// Goal: FROM BEGINNING notifies every row, those that are changed meanwhile included, and is not at the end before. Method: writers
// change rows while the observer is created; every row has a cell afterwards, and the state is enabled.
func TestFromBeginningUnderWriters(t *testing.T) {
	s := newServer(t, catalog.Options{})
	c := s.session()
	c.exec("create table t (a int primary key, b int); insert into t select g, 0 from generate_series(1, 3500) g")
	log := &insertLog{}
	var wg sync.WaitGroup
	for w := 1; w < 3; w++ {
		wg.Go(func() { log.insertUntilStopped(t, s.session(), w) })
	}
	waitFor(&log.n, 10)
	if got := c.exec("create observer o on t from beginning"); got != "CREATE OBSERVER\n" {
		t.Fatal(got)
	}
	log.stop.Store(true)
	wg.Wait()
	_, o := s.observer("o")
	want := fmt.Sprintf("%d\n", len(s.cellsOf(o.ID)))
	if got := c.exec("select count(*) from t"); got != want || o.State != catalog.ObserverEnabled {
		t.Fatalf("%s rows, %s notified; state %d", got, want, o.State)
	}
	if got := s.verify(); got != "" {
		t.Fatal(got)
	}
}

// Goal: FROM BEGINNING that is interrupted by a crash is continued by another process, once the lease has ended, and not before. Method:
// create the observer without the statement's second part; notify one chunk; open another catalog over the store.
func TestSeedingIsResumed(t *testing.T) {
	ctx := context.Background()
	s := newServer(t, catalog.Options{})
	c := s.session()
	c.exec("create table t (a int primary key, b int); insert into t select g, 0 from generate_series(1, 2500) g")
	deps := c.deps().ensureDefaults()
	var observer uint64
	tree, err := sql.ParseStatement("create observer o on t from beginning")
	if err != nil {
		t.Fatal(err)
	}
	_, err = runAlone(ctx, &deps, func(r *run) (tag string, err error) {
		observer, _, err = r.createObserver(ctx, tree.(*ast.CreateObserver))
		return "", err
	})
	if err != nil {
		t.Fatal(err)
	}
	seeding := func() *catalog.Seeding {
		txn, err := s.db.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer txn.Close()
		p, err := catalog.SeedingOf(ctx, txn, observer)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if more, _, err := seedChunk(ctx, &deps, observer, seeding().Until); !more || err != nil {
		t.Fatal(more, err)
	}
	other := (&server{t: t, db: s.db, catalog: s.open(catalog.Options{})}).session().deps()
	resume := func(state catalog.ObserverState, cells int) {
		t.Helper()
		if err := ResumeSeeding(ctx, other, observer); err != nil {
			t.Fatal(err)
		}
		if _, o := s.observer("o"); o.State != state || len(s.cellsOf(observer)) != cells {
			t.Fatalf("state %d, %d cells", o.State, len(s.cellsOf(observer)))
		}
	}
	resume(catalog.ObserverSeeding, seedRows)
	txn, err := s.db.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	expired := seeding()
	expired.Until = 1
	if err := catalog.PutSeeding(txn, observer, expired); err != nil {
		t.Fatal(err)
	}
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ResumeSeeding(ctx, other, observer); err != nil {
		t.Fatal(err)
	}
	if p := seeding(); p != nil {
		t.Fatalf("progress %+v is left", p)
	}
	if n := len(s.cellsOf(observer)); n != 2500 {
		t.Fatalf("%d cells", n)
	}
}

// Goal: a CREATE OBSERVER … FROM BEGINNING that is canceled leaves no observer. Method: cancel it when it reports its first rows.
func TestCanceledFromBeginningLeavesNothing(t *testing.T) {
	s := newServer(t, catalog.Options{})
	c := s.session()
	c.exec("create table t (a int primary key, b int); insert into t select g, 0 from generate_series(1, 2500) g")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.cancelRow = func(int64) { cancel() }
	if got := c.execCtx(ctx, "create observer o on t from beginning"); !strings.Contains(got, "canceled") {
		t.Fatal(got)
	}
	if _, o, err := catalog.FindObserver(context.Background(), s.schema(), "", "o"); o != nil || err != nil {
		t.Fatal(o, err)
	}
	if got := s.verify(); got != "" {
		t.Fatal(got)
	}
}

// Goal: ALTER OBSERVER … RETRY notifies the chosen rows that are set aside, and removes their records. Method: records of three rows.
func TestRetry(t *testing.T) {
	ctx := context.Background()
	s := newServer(t, catalog.Options{})
	c := s.session()
	c.exec("create table t (a int primary key, b int); insert into t values (1, 0), (2, 0), (3, 0); create observer o on t")
	table, o := s.observer("o")
	txn, err := s.db.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for a := range 3 {
		key, err := rowenc.AppendKeyPrefix(nil, table, &table.Primary, types.Int(int64(a+1)))
		if err != nil {
			t.Fatal(err)
		}
		e := &catalog.ObserverError{Observer: o.ID, Key: key, Code: "22012", Message: "division by zero", Attempts: 16}
		if err := catalog.PutObserverError(txn, e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][2]string{
		{"alter observer o retry where key.a = 2", "o: 2\n"}, {"alter observer o retry where key.a = 2", ""}, {"alter observer o retry", "o: 1 3\n"},
		{"alter observer o retry where new.a = 2", ""},
	} {
		if got := c.exec(step[0]); (got != "ALTER OBSERVER\n") != strings.Contains(step[0], "new") {
			t.Fatal(got)
		}
		if got := c.cells(); got != step[1] {
			t.Fatalf("%s notifies %q", step[0], got)
		}
	}
}
