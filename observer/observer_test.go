package observer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/percodb/percodb/client/observer"
	"github.com/percodb/percodb/node"
)

// testServer is a server in this process.
type testServer struct {
	t    *testing.T
	ctx  context.Context
	opts node.Options
	node *node.Node
	pool *pgxpool.Pool
}

func newServer(t *testing.T) *testServer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	s := &testServer{t: t, ctx: ctx, opts: node.Options{Role: node.RoleAll, Data: t.TempDir(), Listen: "127.0.0.1:0", Version: "15.8"}}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *testServer) start() {
	s.t.Helper()
	var err error
	if s.node, err = node.Start(context.Background(), s.opts); err != nil {
		s.t.Fatal(err)
	}
	if s.pool, err = pgxpool.New(s.ctx, "postgres://postgres@"+s.node.Addr().String()+"/percodb?sslmode=disable&pool_max_conns=16"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testServer) stop() {
	if s.node == nil {
		return
	}
	s.pool.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.node.Close(ctx)
	s.node = nil
}

func (s *testServer) exec(text string, args ...any) {
	s.t.Helper()
	if _, err := s.pool.Exec(s.ctx, text, args...); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
}

// value returns the text of a query's only value.
func (s *testServer) value(text string, args ...any) string {
	s.t.Helper()
	var v any
	if err := s.pool.QueryRow(s.ctx, text, args...).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return fmt.Sprint(v)
}

func (s *testServer) want(want, text string, args ...any) {
	s.t.Helper()
	if got := s.value(text, args...); got != want {
		s.t.Errorf("%s: %s, want %s", text, got, want)
	}
}

// notice returns the message of a statement's notice.
func (s *testServer) notice(text string) (message string) {
	s.t.Helper()
	config := s.pool.Config().ConnConfig
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { message = n.Message }
	conn, err := pgx.ConnectConfig(s.ctx, config)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.ctx)
	if _, err := conn.Exec(s.ctx, text); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return message
}

// eventually waits until a query has a value.
func (s *testServer) eventually(want, text string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got := s.value(text)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %s, want %s", text, got, want)
		}
	}
}

// Goal: an observer keeps a projection of a table, under inserts, updates, updates of unobserved columns, deletes and moved keys; WAIT
// FOR OBSERVER returns when it has. Each change is handled once.
func TestProjection(t *testing.T) {
	s := newServer(t)
	s.exec("create table orders (id int primary key, customer text, amount int, note text)")
	s.exec("create table totals (id int primary key, line text, runs int default 1)")
	s.exec(`create observer project on orders (customer, amount) as $$
		delete from totals where id = key.id and new.id is null;
		insert into totals (id, line) select new.id, new.customer || ':' || new.amount where new.id is not null
			on conflict (id) do update set line = excluded.line, runs = totals.runs + 1 $$`)
	s.exec("insert into orders select g, 'c' || g, g * 10 from generate_series(1, 200) g")
	s.exec("wait for observer project")
	s.want("200 200", "select count(*) || ' ' || sum(runs) from totals")
	s.exec("update orders set note = 'x'")
	s.exec("wait for observer project")
	s.want("200", "select sum(runs) from totals")
	s.exec("update orders set amount = 5 where id <= 50")
	s.exec("delete from orders where id > 190")
	s.exec("update orders set id = 1000 where id = 100")
	s.exec("wait for observer project")
	s.want("0", `select count(*) from (select id, customer || ':' || amount from orders except select id, line from totals) d`)
	s.want("190 240", "select count(*) || ' ' || sum(runs) from totals")
	s.eventually("0", "select pending from percodb.observers where name = 'project'")
}

// Goal: rows that an aborted transaction or savepoint has written notify nobody.
func TestRollbackDoesNotNotify(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key); create table seen (id int)")
	s.exec("create observer o on a as 'insert into seen values (key.id)'")
	s.exec("begin; insert into a values (1); rollback")
	s.exec("begin; savepoint s; insert into a values (2); rollback to s; insert into a values (3); commit")
	s.exec("wait for observer o")
	s.want("3", "select string_agg(id::text, ',') from seen")
}

// Goal: a batch observer keeps sums right under collapsing, updates and deletes, by the last contribution of each row; many workers
// of one counter lose nothing.
func TestCounterWithBatch(t *testing.T) {
	s := newServer(t)
	s.exec("create table sales (id int primary key, shop int, amount int)")
	s.exec("create table last (id int primary key, shop int, amount int)")
	s.exec("create table sums (shop int primary key, amount int)")
	s.exec("insert into sums select g, 0 from generate_series(0, 4) g")
	s.exec(`create observer add on sales with (batch = 50, concurrency = 4) as $$
		update sums set amount = sums.amount + d.amount from (
			select shop, sum(amount) as amount from (
				select shop, amount from changed where not _deleted
				union all select l.shop, -l.amount from last l join changed c on c.id = l.id) x group by shop) d
			where sums.shop = d.shop;
		delete from last where id in (select id from changed);
		insert into last select id, shop, amount from changed where not _deleted $$`)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				id := w*25 + i%25
				var err error
				switch i % 7 {
				case 6:
					_, err = s.pool.Exec(s.ctx, "delete from sales where id = $1", id)
				default:
					_, err = s.pool.Exec(s.ctx, `insert into sales values ($1, $2, $3)
						on conflict (id) do update set shop = excluded.shop, amount = excluded.amount`, id, i%5, i)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s.exec("wait for observer add")
	s.want("0", `select count(*) from (select s.shop, coalesce(sum(x.amount), 0) from sums s left join sales x on x.shop = s.shop group by s.shop
		except select shop, amount from sums) d`)
	s.want("0", "select errors from percodb.observers where name = 'add'")
}

// Goal: T-OBS-8: observers that change what others observe form a chain; a cycle of them is ended.
func TestProto_T_OBS_8(t *testing.T) {
	t.Run("chain", testChain)
	t.Run("cycle", testCycle)
}

// testChain: three observers, of which WHEN chooses rows.
func testChain(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v int); create table b (id int primary key, v int)")
	s.exec("create table c (id int primary key, v int); create table d (id int primary key, v int)")
	for _, pair := range []string{"ab", "bc", "cd"} {
		s.exec(fmt.Sprintf(`create observer %s on %c when (new.v > 0) as $$
			insert into %c values (new.id, new.v + 1) on conflict (id) do update set v = excluded.v $$`, pair, pair[0], pair[1]))
	}
	s.exec("insert into a select g, g - 1 from generate_series(1, 20) g")
	for _, name := range []string{"ab", "bc", "cd"} {
		s.exec("wait for observer " + name)
	}
	s.want("19 247", "select count(*) || ' ' || sum(v) from d")
}

// testCycle: the key is set aside with a message that names the chain, and other keys are handled.
func testCycle(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v int); create table b (id int primary key, v int)")
	s.exec("create observer ping on a when (new.id = 1 or new.v < 3) as 'insert into b values (new.id, new.v) on conflict (id) do update set v = b.v + 1'")
	s.exec("create observer pong on b as 'update a set v = a.v + 1 where id = new.id'")
	s.exec("insert into a values (1, 0), (2, 0)")
	s.eventually("1", "select count(*) from percodb.observer_errors")
	s.exec("wait for observer ping")
	text := s.value("select sqlstate || ' ' || error from percodb.observer_errors")
	if !strings.HasPrefix(text, "54000") || !strings.Contains(text, "ping → pong → ping") && !strings.Contains(text, "pong → ping → pong") {
		t.Error(text)
	}
	s.want("3", "select v from a where id = 2")
}

// Goal: a key whose statements fail is set aside after max_attempts, and holds up no other; WAIT FOR warns; RETRY has it handled.
func TestErrors(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v int); create table b (id int primary key, v int)")
	for _, batch := range []string{"1", "10"} {
		s.exec("delete from b")
		from := "select new.id, 100 / new.v where new.id is not null"
		if batch != "1" {
			from = "select id, 100 / v from changed where not _deleted"
		}
		s.exec("create or replace observer o on a with (max_attempts = 3, batch = " + batch + ") as $$ insert into b " + from +
			" on conflict (id) do update set v = excluded.v $$")
		s.exec("insert into a select g, g % 10 from generate_series(1, 40) g")
		s.eventually("4", "select count(*) from percodb.observer_errors")
		if notice := s.notice("wait for observer o"); !strings.Contains(notice, "has not handled 4 rows") {
			t.Errorf("the notice is %q", notice)
		}
		s.want("36", "select count(*) from b")
		s.want("22012 3 10,20,30,40", `select max(sqlstate) || ' ' || max(attempts) || ' ' ||
			(select string_agg(id::text, ',' order by id) from a where v = 0) from percodb.observer_errors`)
		s.exec("update a set v = 1 where id = 10")
		s.exec("wait for observer o")
		s.eventually("3", "select count(*) from percodb.observer_errors")
		s.exec("alter observer o retry")
		s.eventually("3", "select count(*) from percodb.observer_errors")
		s.exec("delete from a")
		s.exec("wait for observer o")
		s.eventually("0", "select count(*) from percodb.observer_errors")
	}
}

// Goal: WAIT FOR OBSERVER obeys the statement's timeout, refuses a disabled observer, and warns of rows that are set aside. What is
// committed while an observer is disabled, or the server is down, is handled later.
func TestDisabledAndRestarted(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key); create table b (id int primary key, n int)")
	s.exec("create observer o on a as 'insert into b values (key.id, 1) on conflict (id) do update set n = b.n + 1'")
	s.exec("create observer clients on a")
	s.exec("alter observer o disable")
	s.exec("insert into a select generate_series(1, 100)")
	if _, err := s.pool.Exec(s.ctx, "wait for observer o"); code(err) != "55000" {
		t.Errorf("a disabled observer: %v", err)
	}
	if _, err := s.pool.Exec(s.ctx, "set statement_timeout = '100ms'; wait for observer clients"); code(err) != "57014" {
		t.Errorf("nobody consumes the changes: %v", err)
	}
	s.want("100", "select pending from percodb.observers where name = 'o'")
	s.stop()
	s.start()
	s.want("0", "select count(*) from b")
	s.exec("alter observer o enable")
	s.exec("wait for observer o")
	s.want("100 100", "select count(*) || ' ' || sum(n) from b")
	s.exec("notify observer o where id <= 10")
	s.exec("wait for observer o")
	s.want("110", "select sum(n) from b")
}

// Goal: FROM BEGINNING handles the rows from before, once each, also those that change meanwhile.
func TestFromBeginning(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v int); create table b (id int primary key, v int, n int)")
	s.exec("insert into a select g, 0 from generate_series(1, 3000) g")
	s.exec(`create observer o on a from beginning as $$
		insert into b values (key.id, new.v, 1) on conflict (id) do update set v = excluded.v, n = b.n + 1 $$`)
	s.exec("update a set v = 1 where id <= 100")
	s.exec("wait for observer o")
	s.want("3000 100", "select count(*) || ' ' || sum(v) from b")
}

// Goal: T-OBS-9: an observer is dropped, its table is dropped, and its body replaced, while it runs: nothing hangs, and no error is left.
func TestProto_T_OBS_9(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v int); create table b (id int primary key, v int)")
	define := "create or replace observer o on a as 'insert into b values (key.id, new.v) on conflict (id) do update set v = excluded.v + %d'"
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				_, err := s.pool.Exec(s.ctx, "insert into a values ($1, $2) on conflict (id) do update set v = excluded.v", w*100+i%100, i)
				if err != nil && code(err) != "42P01" && code(err) != "40001" {
					t.Error(err)
				}
			}
		})
	}
	for i := range 10 {
		s.exec(fmt.Sprintf(define, i))
		time.Sleep(10 * time.Millisecond) // The observer works meanwhile.
		if i%3 == 2 {
			s.exec("drop observer o")
		}
		s.exec(fmt.Sprintf("alter table a add column c%d int default 1", i))
	}
	s.exec("drop table a")
	s.exec("create table a (id int primary key, v int)")
	s.exec(fmt.Sprintf(define, 0))
	time.Sleep(50 * time.Millisecond) // The new observer works beside the writers.
	stop.Store(true)
	wg.Wait()
	s.exec("notify observer o") // Some were inserted between CREATE TABLE and CREATE OBSERVER.
	s.exec("wait for observer o")
	s.want("0", "select count(*) from (select id, v from a except select id, v from b) d")
	s.want("0", "select count(*) from percodb.observer_errors")
}

func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// Goal: percodb.changes gives changes to one of two consumers, gives them back on a rollback, acknowledges them on commit whether the
// query shows them or not, and waits.
func TestChanges(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v text)")
	s.exec("create observer o on a")
	s.exec("insert into a select g, 'v' || g from generate_series(1, 10) g")
	ids := "select string_agg(id::text, ',' order by id) from percodb.changes('o', max => %d)"
	begin := func() pgx.Tx {
		tx, err := s.pool.Begin(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	take := func(tx pgx.Tx, n int) (list string) {
		t.Helper()
		if err := tx.QueryRow(s.ctx, "select coalesce(("+fmt.Sprintf(ids, n)+"), '')").Scan(&list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	one, two := begin(), begin()
	if a, b := take(one, 4), take(two, 100); a != "1,2,3,4" || b != "5,6,7,8,9,10" {
		t.Errorf("two consumers: %s and %s", a, b)
	}
	if err := one.Rollback(s.ctx); err != nil {
		t.Fatal(err)
	}
	if err := two.Commit(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.want("1,2,3,4", fmt.Sprintf(ids, 100))
	s.want("<nil>", fmt.Sprintf(ids, 100))

	s.exec("delete from a where id = 1; update a set v = 'new' where id = 2; insert into a values (11, 'x')")
	s.want("11", "select id from percodb.changes('o') where not _deleted and v = 'x'")
	s.want("0", "select count(*) from percodb.changes('o')")

	s.exec("update a set v = 'sp'")
	three := begin()
	for _, text := range []string{"savepoint s", "select count(*) from percodb.changes('o', max => 3)", "rollback to s"} {
		if _, err := three.Exec(s.ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := three.Commit(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.want("10", "select count(*) from percodb.changes('o')")

	began := time.Now()
	s.want("0", "select count(*) from percodb.changes('o', wait => '50ms')")
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("it waited for %s", took)
	}
	time.AfterFunc(50*time.Millisecond, func() { _, _ = s.pool.Exec(s.ctx, "update a set v = 'late' where id = 5") })
	s.want("5 late false", "select id || ' ' || v || ' ' || _deleted from percodb.changes('o', 10, '10s')")
	for text, want := range map[string]string{
		"select * from percodb.changes('none')":                                             "42704",
		"select * from percodb.changes('o', max => 0)":                                      "22023",
		"select * from percodb.changes('o', wait => '2 days')":                              "22023",
		"select * from percodb.changes('o', most => 1)":                                     "42883",
		"select * from percodb.changes(v) from a":                                           "42601",
		"begin read only; select * from percodb.changes('o')":                               "25006",
		"set statement_timeout = '50ms'; select * from percodb.changes('o', wait => '10s')": "57014",
	} {
		if _, err := s.pool.Exec(s.ctx, text, pgx.QueryExecModeSimpleProtocol); code(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Goal: changes are consumed by an application: what fails is tried again, alone, and given up; nothing is handled twice.
func TestClient(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int, part text, v int, primary key (part, id)); create table b (id int primary key, n int); create table bad (id int)")
	s.exec("create observer o on a")
	s.exec("insert into a select g, 'p', g from generate_series(1, 300) g")
	ctx, cancel := context.WithCancel(s.ctx)
	var commits atomic.Int64
	ended := make(chan error)
	go func() {
		ended <- observer.Run(ctx, s.pool, "o", func(ctx context.Context, tx pgx.Tx, changes []observer.Change) error {
			for _, c := range changes {
				if c.Row["v"] == int32(77) {
					return errors.New("bad")
				}
				if _, err := tx.Exec(ctx, "insert into b values ($1, 1) on conflict (id) do update set n = b.n + 1", c.Key[1]); err != nil {
					return err
				}
			}
			return nil
		}, observer.Options{
			Batch: 20, Concurrency: 3, Wait: time.Second, MaxAttempts: 3,
			GiveUp: func(ctx context.Context, tx pgx.Tx, c observer.Change, cause error) error {
				_, err := tx.Exec(ctx, "insert into bad values ($1)", c.Key[1])
				return err
			},
			Done: func(r observer.Result) {
				if r.Err == nil {
					commits.Add(int64(r.Changes))
				}
			},
		})
	}()
	s.exec("wait for observer o")
	s.want("299 299", "select count(*) || ' ' || sum(n) from b")
	s.want("77", "select string_agg(id::text, ',') from bad")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := commits.Load(); n != 300 {
		t.Errorf("%d changes were committed", n)
	}
	if err := observer.Run(s.ctx, s.pool, "none", nil, observer.Options{}); code(err) != "42704" {
		t.Errorf("an observer that does not exist: %v", err)
	}
}
