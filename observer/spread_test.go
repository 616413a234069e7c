package observer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/storetest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// lastRow is a ResultWriter that keeps the last row.
type lastRow struct {
	*session.Buffer
	row types.Row
}

func (w *lastRow) Columns([]session.Column, []int16, bool) error { return nil }
func (w *lastRow) Row(row types.Row) error                       { w.row = row.Clone(); return nil }
func (w *lastRow) Complete(session.Tag) error                    { return nil }
func (w *lastRow) Empty() error                                  { return nil }
func (w *lastRow) Notice(*pgerror.Error)                         {}
func (w *lastRow) Setting(string, string)                        {}
func (w *lastRow) Suspended() error                              { return nil }
func (w *lastRow) CopyIn(int, bool) (io.Reader, error)           { return nil, io.EOF }
func (w *lastRow) CopyOut(int, bool) (io.Writer, error)          { return nil, io.EOF }
func (w *lastRow) CopyDone() error                               { return nil }

// openDeps opens a store in memory, and returns what sessions share and a function that runs statements.
func openDeps(t *testing.T) (session.Deps, func(text string) types.Row) {
	t.Helper()
	store := storetest.Open(t, nil)
	deps := session.Deps{
		DB: store.DB, Catalog: store.Catalog, Router: store.Router, Oracle: store.Oracle, Plans: session.NewPlanCache(),
		Metrics: session.NewMetrics(nil), Logger: slog.New(slog.DiscardHandler), Version: "15.8", Sessions: func(func(*session.Session)) {},
	}
	s, err := session.New(context.Background(), deps, 1, session.Client{}, map[string]string{"user": "postgres"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	w := &lastRow{Buffer: session.NewBuffer(io.Discard, nil)}
	return deps, func(text string) types.Row {
		t.Helper()
		if err := s.Query(text, w); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return w.row
	}
}

// Goal: T-OBS-6: several processes, which know nothing of each other and get no hints, share a backlog: each change is handled once, and no
// process handles most of them. Method: four managers over one store.
func TestProto_T_OBS_6(t *testing.T) {
	deps, run := openDeps(t)
	run("create table a (id int primary key); create table b (id int primary key, n int)")
	run("create observer o on a with (concurrency = 2) as 'insert into b values (key.id, 1) on conflict (id) do update set n = b.n + 1'")
	run("alter observer o disable")
	const rows = 2000
	run("insert into a select generate_series(1, 2000)")
	managers := make([]*Manager, 4)
	for i := range managers {
		managers[i] = Start(Options{Deps: deps, NoHints: true})
		defer managers[i].Close(context.Background())
	}
	run("alter observer o enable")
	run("set statement_timeout = '5min'; wait for observer o")
	row := run("select count(*)::int, sum(n)::int from b")
	if row[0].Int() != rows || row[1].Int() != rows {
		t.Errorf("%d rows were handled %d times, want %d of both", row[0].Int(), row[1].Int(), rows)
	}
	most, sum := int64(0), int64(0)
	for deadline := time.Now().Add(time.Minute); sum < rows && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		most, sum = 0, 0
		for _, m := range managers {
			for _, a := range m.Activity() { // The last transactions are counted shortly after they have committed.
				most, sum = max(most, a.Runs), sum+a.Runs
			}
		}
	}
	if sum != rows || most > rows*8/10 {
		t.Errorf("one of %d processes handled %d of %d", len(managers), most, sum)
	}
}

// Goal: a manager ends its transactions, and starts no more, when it is closed; another one goes on.
func TestCloseDrains(t *testing.T) {
	deps, run := openDeps(t)
	run("create table a (id int primary key); create table b (id int primary key, n int)")
	run("create observer o on a as 'insert into b values (key.id, 1) on conflict (id) do update set n = b.n + 1'")
	for i := range 5 {
		m := Start(Options{Deps: deps, NoHints: i%2 == 0})
		run("insert into a select (select coalesce(max(id), 0) from a) + g from generate_series(1, 100) g")
		time.Sleep(time.Duration(i) * 5 * time.Millisecond) // Transactions are at work when it is closed.
		m.Close(context.Background())
	}
	m := Start(Options{Deps: deps})
	defer m.Close(context.Background())
	run("set statement_timeout = '5min'; wait for observer o")
	if row := run("select (select count(*) from a)::int - count(*)::int, max(n) from b"); row[0].Int() != 0 || row[1].Int() != 1 {
		t.Errorf("%d rows were not handled, one %d times", row[0].Int(), row[1].Int())
	}
}

// Goal: the record of a row that was set aside does not outlive its handling, although the process that has handled it did not know of the
// record. Method: a record that is older than the acknowledgement, and one that is not.
func TestRecordsOfHandledRows(t *testing.T) {
	ctx := context.Background()
	deps, run := openDeps(t)
	run("create table a (id int primary key)")
	run("create observer o on a as 'select 1'")
	m := Start(Options{Deps: deps, NoHints: true})
	run("insert into a values (1), (2)")
	run("set statement_timeout = '60s'; wait for observer o")
	m.Close(ctx)
	txn, err := deps.DB.BeginTxn(ctx, percolator.TxnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer txn.Close()
	table, o, err := catalog.FindObserver(ctx, deps.Catalog.Latest(), "public", "o")
	if err != nil {
		t.Fatal(err)
	}
	for id, at := range map[int64]tso.Timestamp{1: 1, 2: txn.ReadTS()} {
		key, err := rowenc.AppendKeyPrefix(nil, table, &table.Primary, types.Int(id))
		if err != nil {
			t.Fatal(err)
		}
		if err := catalog.PutObserverError(txn, &catalog.ObserverError{Observer: o.ID, Key: key, Code: "22012", At: at, CommitTS: at}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	m = Start(Options{Deps: deps, NoHints: true})
	defer m.Close(ctx)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		row := run("select coalesce(string_agg(key, ' '), '') from percodb.observer_errors")
		if row[0].Text() == "(id)=(2)" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the records are %s", row[0].Text())
		}
	}
}

// observerNamed returns an observer of the schema public, and its table.
func observerNamed(t *testing.T, deps session.Deps, name string) target {
	t.Helper()
	table, o, err := catalog.FindObserver(context.Background(), deps.Catalog.Latest(), "public", name)
	if err != nil || o == nil {
		t.Fatal(o, err)
	}
	return target{table: table, observer: o}
}

// Goal: a change that others have handled after it has failed here is not recorded as set aside. Method: set a handled change aside.
func TestNothingIsSetAside(t *testing.T) {
	ctx := context.Background()
	deps, run := openDeps(t)
	run("create table a (id int primary key); create observer o on a as 'select 1'")
	m := Start(Options{Deps: deps, NoHints: true})
	defer m.Close(ctx)
	run("insert into a values (1)")
	run("set statement_timeout = '60s'; wait for observer o")
	of := observerNamed(t, deps, "o")
	key, err := rowenc.AppendKeyPrefix(nil, of.table, &of.table.Primary, types.Int(1))
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.NewObserving(ctx, deps, of.table.ID, of.observer.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h, err := s.SetAside(ctx, kv.NotifyCell{Key: key, Latest: 1}, 16, errors.New("it failed"))
	if err != nil || len(h.Changes) != 0 {
		t.Errorf("%d changes were set aside, %v", len(h.Changes), err)
	}
	if row := run("select count(*)::int from percodb.observer_errors"); row[0].Int() != 0 {
		t.Errorf("%d rows are recorded", row[0].Int())
	}
	r := testRunner()
	r.add(change{NotifyCell: kv.NotifyCell{Key: key, Latest: 1}}, false)
	r.running = 1
	r.finish(result{worker: &worker{}, items: []*item{r.items[string(key)]}, h: h, ended: time.Now()})
	if r.aside || len(r.items) != 0 {
		t.Errorf("set aside: %v, %d keys are kept", r.aside, len(r.items))
	}
}

// Goal: notifying an observer of the rows from before it ends when the process closes, without a warning, and another process goes on.
// Method: an observer whose notification nobody is at; a manager that has been closed, and one that has not.
func TestSeedingEndsWithTheProcess(t *testing.T) {
	ctx := context.Background()
	deps, run := openDeps(t)
	run("create table a (id int primary key); insert into a select generate_series(1, 2500); create observer o on a")
	of := observerNamed(t, deps, "o")
	txn, err := deps.DB.BeginTxn(ctx, percolator.TxnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := catalog.PutSeeding(txn, of.observer.ID, &catalog.Seeding{TS: txn.StartTS(), Until: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	run("alter observer o disable; alter observer o enable") // It goes on with what is recorded.
	state := func() catalog.ObserverState { return observerNamed(t, deps, "o").observer.State }
	if state() != catalog.ObserverSeeding {
		t.Fatalf("the observer's state is %d", state())
	}
	var log strings.Builder
	manager := func() *Manager {
		m := Start(Options{Deps: deps, NoHints: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for {
			m.mu.Lock()
			n := len(m.mu.observers)
			m.mu.Unlock()
			if n > 0 {
				return m
			}
			time.Sleep(time.Millisecond) // The manager looks at the schema at intervals.
		}
	}
	m := manager()
	seeding, cancel := m.untilClosing()
	defer cancel()
	m.Close(ctx)
	<-seeding.Done()
	if m.resumeSeeding(seeding); state() != catalog.ObserverSeeding || log.Len() > 0 {
		t.Errorf("the process that has closed leaves the state %d and says %q", state(), log.String())
	}
	m = manager()
	if m.resumeSeeding(ctx); state() != catalog.ObserverEnabled {
		t.Errorf("another process leaves the state %d", state())
	}
	m.Close(ctx)
	if row := run("select count(*)::int from percodb.changes('o', max => 10000)"); row[0].Int() != 2500 {
		t.Errorf("%d rows are notified", row[0].Int())
	}
}
