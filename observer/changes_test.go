package observer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/client/observer"
)

// Goal: a rollback to a savepoint gives changes back, also if the transaction has looked for them again before it.
func TestChangesTakenBack(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key)")
	s.exec("create observer o on a")
	s.exec("insert into a values (1), (2)")
	tx, err := s.pool.Begin(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	const take = "select count(*) from percodb.changes('o')"
	for _, text := range []string{"savepoint s", take, take, "rollback to s"} {
		if _, err := tx.Exec(s.ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.want("2", take)
}

// Goal: a statement claims changes once, however often a join reads them.
func TestChangesReadAgain(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key)")
	s.exec("create observer o on a")
	s.exec("insert into a values (1), (2), (3)")
	s.want("1,2,3", "select string_agg(a.id::text, ',' order by a.id) from a, lateral (select * from percodb.changes('o') c where c.id = a.id) l")
}

// Goal: the condition of an observer without a body holds for the rows that clients get; the others are handled.
func TestChangesOfCondition(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v int)")
	s.exec("create observer o on a when (new.v > 1)")
	s.exec("insert into a values (1, 1), (2, 2), (3, 3), (4, null)")
	s.want("2,3", "select string_agg(id::text, ',' order by id) from percodb.changes('o', wait => '10s')")
	s.exec("update a set v = 0")
	s.want("0", "select count(*) from percodb.changes('o', max => 3, wait => '50ms')")
	s.eventually("0", "select pending from percodb.observers")
}

// Goal: a call that waits goes on until there is a row for which the condition holds, however many others precede it; these are
// handled by then. Method: in a block, with other statements before it, and without a block.
func TestChangesWaitForCondition(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v int)")
	s.exec("create observer o on a when (new.v > 1)")
	for i, text := range []string{
		"select id from percodb.changes('o', max => 1, wait => '1min')",
		"begin; select id from percodb.changes('o', max => 1, wait => '1min'); commit",
		"begin isolation level read committed; select 1; select id from percodb.changes('o', max => 1, wait => '1min'); commit",
	} {
		s.exec("insert into a select g, 0 from generate_series($1::int * 10000, $1 * 10000 + 2500) g", i)
		s.exec("insert into a values ($1 * 10000 + 5000, 2)", i)
		conn, err := s.pool.Acquire(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		results, err := conn.Conn().PgConn().Exec(s.ctx, text).ReadAll()
		conn.Release()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var ids []string
		for _, r := range results {
			for _, row := range r.Rows {
				ids = append(ids, string(row[0]))
			}
		}
		if want := fmt.Sprint(i*10000 + 5000); len(ids) == 0 || ids[len(ids)-1] != want {
			t.Errorf("%s: %v, want %s", text, ids, want)
		}
	}
}

// Goal: a row that makes every transaction fail that gets it holds up no other, however many each client wants. Method: clients want 20 of
// 200 rows, and roll back when they get a certain one.
func TestChangesBesideFailingRow(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key)")
	s.exec("create observer o on a")
	s.exec("insert into a select generate_series(1, 200)")
	handled := map[int32]bool{}
	for i := 0; len(handled) < 199 && i < 2000; i++ {
		tx, err := s.pool.Begin(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := tx.Query(s.ctx, "select id from percodb.changes('o', max => 20)")
		if err != nil {
			t.Fatal(err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(ids, 130) {
			err = tx.Rollback(s.ctx)
		} else {
			err = tx.Commit(s.ctx)
			for _, id := range ids {
				handled[id] = true
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(handled) != 199 {
		t.Errorf("%d rows were handled, want 199", len(handled))
	}
	s.want("130", "select id from percodb.changes('o', wait => '1min')")
}

// Goal: a row for which the condition fails is the client's, and holds up no other.
func TestChangesOfFailingCondition(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v int)")
	s.exec("create observer o on a when (10 / new.v > 1)")
	s.exec("insert into a values (1, 0), (2, 1), (3, 10)")
	s.want("1,2", "select string_agg(id::text, ',' order by id) from percodb.changes('o')")
	s.eventually("0", "select pending from percodb.observers")
}

// Goal: what a body sets by set_config holds for its transaction, and not for those after it.
func TestSettingsOfBodies(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key)")
	s.exec("create table b (id int primary key, zone text)")
	s.exec("create observer o on a with (concurrency = 1) as $$ insert into b values (key.id, current_setting('timezone'));" +
		" select set_config('timezone', 'Asia/Tokyo', false) $$")
	before := s.value("show timezone")
	for _, text := range []string{"insert into a values (1)", "insert into a values (2)"} {
		s.exec(text)
		s.exec("wait for observer o")
	}
	s.want("2", "select count(*) from b where zone = $1", before)
}

// Goal: a call that waits does so in statements that contain the query, too. Method: nothing has changed; each of them is the first
// statement of its transaction.
func TestChangesWaitWithinStatements(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v text)")
	s.exec("create observer o on a")
	const query = "select * from percodb.changes('o', max => 10, wait => '20ms')"
	for _, text := range []string{
		"explain analyze " + query,
		"copy (" + query + ") to stdout",
		"begin; declare c cursor for " + query + "; fetch all from c; commit",
		"begin; explain analyze " + query + "; commit",
		"create table taken as " + query,
		"prepare p as " + query + "; execute p",
		"begin isolation level serializable; explain analyze " + query + "; commit",
	} {
		conn, err := s.pool.Acquire(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Conn().PgConn().Exec(s.ctx, text).ReadAll(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		conn.Release()
	}
}

// Goal: a client that consumes an observer ends when the server handles its changes, and acknowledges changes for which WHEN does
// not hold. Method: an observer with a body; more rows than a batch that do not match, before one that does.
func TestClientsOfOtherObservers(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v text)")
	s.exec("create observer body on a as $$ select 1 $$")
	handle := func(context.Context, pgx.Tx, []observer.Change) error { return nil }
	if err := observer.Run(s.ctx, s.pool, "body", handle, observer.Options{}); code(err) != "42809" {
		t.Errorf("an observer with a body: %v", err)
	}
	s.exec("create observer o on a when (new.v = 'yes')")
	s.exec("insert into a select i, 'no' from generate_series(1, 50) i")
	s.exec("insert into a values (51, 'yes')")
	ctx, cancel := context.WithCancel(s.ctx)
	var got []string
	_ = observer.Run(ctx, s.pool, "o", func(_ context.Context, _ pgx.Tx, changes []observer.Change) error {
		for _, c := range changes {
			got = append(got, fmt.Sprint(c.Row["id"]))
		}
		cancel()
		return nil
	}, observer.Options{Batch: 10})
	if fmt.Sprint(got) != "[51]" {
		t.Errorf("got %v", got)
	}
}

// Goal: percodb.changes is refused where it cannot be: in views, in bodies, and in read-only transactions; CREATE TABLE AS may contain it.
// Errors of columns have their position.
func TestRefusedChanges(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key); create table b (id int primary key)")
	s.exec("create observer o on a")
	for _, c := range []struct{ text, code, at string }{
		{"create view v as select * from percodb.changes('o')", "0A000", "percodb"},
		{"create view v as select 1 where exists (select from percodb.changes('o'))", "0A000", "percodb"},
		{"create observer x on a as $$ insert into b select id from percodb.changes('o') $$", "0A000", "percodb"},
		{"create observer x on a (id, nothing)", "42703", "nothing"},
		{"create observer x on a (id, id)", "42701", "id)"},
	} {
		_, err := s.pool.Exec(s.ctx, c.text)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != c.code || int(pg.Position) != strings.Index(c.text, c.at)+1 {
			t.Errorf("%s: %v, at %d", c.text, err, pg.Position)
		}
	}
	_, err := s.pool.Exec(s.ctx, "begin read only; select * from percodb.changes('o')", pgx.QueryExecModeSimpleProtocol)
	if err == nil || !strings.Contains(err.Error(), "cannot execute percodb.changes() in a read-only transaction") {
		t.Error(err)
	}
	s.exec("insert into a values (1)")
	s.exec("create table taken as select * from percodb.changes('o')")
	s.want("1", "select id from taken")
}

// Goal: WAIT FOR OBSERVER returns although rows are added as fast as changes are handled. Method: who handles changes adds as many rows
// behind the last one.
func TestWaitBesideNewRows(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key)")
	s.exec("create observer o on a")
	s.exec("insert into a select generate_series(1, 1500)")
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error)
	go func() {
		next := 2000
		ended <- observer.Run(ctx, s.pool, "o", func(ctx context.Context, tx pgx.Tx, changes []observer.Change) error {
			next += len(changes)
			_, err := tx.Exec(ctx, "insert into a select generate_series($1::int, $2::int)", next-len(changes), next-1)
			return err
		}, observer.Options{})
	}()
	s.exec("wait for observer o")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Goal: a client names its observer as SQL does: names are folded unless they are quoted, and may contain dots then.
func TestNamesOfClientsObservers(t *testing.T) {
	s := newServer(t)
	s.exec(`create schema "S.x"; create table a (id int primary key); create table "S.x".a (id int primary key)`)
	s.exec("create observer plain on a")
	s.exec(`create observer "My.""Observer" on a`)
	s.exec(`create observer "x.y" on "S.x".a`)
	s.exec(`insert into a values (1); insert into "S.x".a values (1)`)
	for name, table := range map[string]string{
		"Plain": "public.a", `"My.""Observer"`: "public.a", `"S.x"."x.y"`: "S.x.a",
	} {
		ctx, cancel := context.WithCancel(s.ctx)
		got := ""
		err := observer.Run(ctx, s.pool, name, func(_ context.Context, _ pgx.Tx, changes []observer.Change) error {
			got = changes[0].Table
			cancel()
			return nil
		}, observer.Options{})
		if err != nil || got != table {
			t.Errorf("%s: a change of %q, want %q: %v", name, got, table, err)
		}
		cancel()
	}
}
