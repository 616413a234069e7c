package wire_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// endless runs far longer than any test.
const endless = "select count(*) from generate_series(1, 1000000000) a"

// Goal: statements outside blocks never report a conflict, and none is lost, in either protocol; RETURNING shows the
// attempt that committed. Method: several connections increment one row; every RETURNING value must occur once.
func TestAutocommitConflictsAreRetried(t *testing.T) {
	const clients, each = 4, 50
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		execAll(t, connect(t, ""), "drop table if exists retry_t", "create table retry_t (id int primary key, n int)", "insert into retry_t values (1, 0)")
		seen := make([]int, clients*each+1)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range clients {
			conn := connect(t, "")
			ctx := testContext(t)
			wg.Go(func() {
				for range each {
					var n int
					if err := conn.QueryRow(ctx, "update retry_t set n = n + $1 where id = $2 returning n", mode, 1, 1).Scan(&n); err != nil {
						t.Errorf("%v: %v", mode, err)
						return
					}
					mu.Lock()
					seen[n]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for n := 1; n < len(seen); n++ {
			if seen[n] != 1 {
				t.Fatalf("%v: %d was returned %d times", mode, n, seen[n])
			}
		}
	}
}

// Goal: when the snapshot of a writer that waited is advanced, the block's schema advances with it. Method: a TRUNCATE
// and an UPDATE commit during a block; the block updates the same row, and then reads the truncated table.
func TestSchemaMovesWithTheSnapshot(t *testing.T) {
	for _, level := range []string{"repeatable read", "serializable"} {
		ctx, a, b := testContext(t), connect(t, ""), connect(t, "")
		execAll(t, a, "drop table if exists moved_r, moved_u, moved_w", "create table moved_r (id int primary key)",
			"create table moved_u (id int primary key, v int)", "create table moved_w (id int primary key)",
			"insert into moved_r values (1), (2)", "insert into moved_u values (1, 0)")
		execAll(t, a, "begin isolation level "+level, "select count(*) from moved_w")
		execAll(t, b, "truncate moved_r", "insert into moved_r values (7)", "update moved_u set v = 100")
		var v, id int
		if err := a.QueryRow(ctx, "update moved_u set v = v + 1 where id = 1 returning v").Scan(&v); err != nil || v != 101 {
			t.Fatalf("%s: the snapshot has not moved: %d, %v", level, v, err)
		}
		if err := a.QueryRow(ctx, "select min(id) from moved_r").Scan(&id); err != nil || id != 7 {
			t.Errorf("%s: sees the UPDATE that followed the TRUNCATE, and %d, %v, not 7", level, id, err)
		}
		execAll(t, a, "commit")
	}
}

// Goal: a retried statement's pipeline keeps the answers to the messages around it.
func TestRetryKeepsPipelineAnswers(t *testing.T) {
	execAll(t, connect(t, ""), "drop table if exists retrypipe_t", "create table retrypipe_t (id int primary key, n int)", "insert into retrypipe_t values (1, 0)")
	const clients, each = 4, 50
	var wg sync.WaitGroup
	for range clients {
		r := open(t)
		wg.Go(func() {
			for range each {
				for _, m := range messages(parse("u", "update retrypipe_t set n = n + 1 where id = 1"), bind("p", "u"), execute("p", 0), closeP("p"), closeS("u"), syncing) {
					r.f.Send(m)
				}
				if err := r.f.Flush(); err != nil {
					t.Error(err)
					return
				}
				var answers []string
				for len(answers) == 0 || !strings.HasPrefix(answers[len(answers)-1], "ready") {
					m, err := r.f.Receive()
					if err != nil {
						t.Error(err)
						return
					}
					answers = append(answers, describe(m))
				}
				if got := strings.Join(answers, ", "); got != "parsecomplete, bindcomplete, complete UPDATE 1, closecomplete, closecomplete, ready I" {
					t.Errorf("answers: %s", got)
					return
				}
			}
		})
	}
	wg.Wait()
	var n int
	if err := connect(t, "").QueryRow(testContext(t), "select n from retrypipe_t").Scan(&n); err != nil || n != clients*each {
		t.Errorf("n is %d (%v), want %d", n, err, clients*each)
	}
}

// Goal: in a block the loser of a conflict receives 40001, and can continue after ROLLBACK.
func TestConflictInBlock(t *testing.T) {
	a, b, ctx := connect(t, ""), connect(t, ""), testContext(t)
	execAll(t, a, "drop table if exists block_t", "create table block_t (id int primary key, n int)", "insert into block_t values (1, 0)")
	execAll(t, a, "begin", "select * from block_t")
	execAll(t, b, "update block_t set n = n + 1")
	_, err := a.Exec(ctx, "update block_t set n = n + 1")
	if err == nil {
		_, err = a.Exec(ctx, "commit")
	}
	if code(err) != "40001" {
		t.Errorf("the loser hears %v, want 40001", err)
	}
	execAll(t, a, "rollback", "update block_t set n = n + 1")
	var n int
	if err := a.QueryRow(ctx, "select n from block_t").Scan(&n); err != nil || n != 2 {
		t.Errorf("n is %d, %v; want 2", n, err)
	}
}

// Goal: statement_timeout and CancelRequest cancel a statement, and only that one.
func TestTimeoutAndCancel(t *testing.T) {
	for _, query := range []string{endless, "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b",
		"select a from generate_series(1, 1000000000) a order by a desc"} {
		r := open(t)
		r.query("set statement_timeout = 500")
		r.send(&pgproto3.Query{String: query})
		if got := r.ready(); !strings.HasSuffix(got, "error 57014 canceling statement due to statement timeout\nready I\n") {
			t.Errorf("%s: %s", query, got)
		}
		r.send(parse("", query), bind("", ""), execute("", 0), syncing)
		if got := r.ready(); !strings.HasSuffix(got, "error 57014 canceling statement due to statement timeout\nready I\n") {
			t.Errorf("extended %s: %s", query, got)
		}
		expect(t, "goes on", r.query("select 1 as a"), "columns a:23/0\nrow 1\ncomplete SELECT 1\nready I\n")
	}
	conn, ctx := connect(t, ""), testContext(t)
	done := make(chan error, 1)
	execAll(t, conn, "begin")
	go func() {
		_, err := conn.Exec(ctx, endless)
		done <- err
	}()
	var err error
	for finished := false; !finished; { // The request may arrive before the statement has begun.
		if cancelErr := conn.PgConn().CancelRequest(ctx); cancelErr != nil && !errors.Is(cancelErr, net.ErrClosed) {
			t.Fatal(cancelErr)
		}
		select {
		case err = <-done:
			finished = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	if code(err) != "57014" {
		t.Errorf("canceled statement: %v", err)
	}
	if status := conn.PgConn().TxStatus(); status != 'E' {
		t.Errorf("status %c, want E", status)
	}
	execAll(t, conn, "rollback", "select 1")
	// A wrong key, and an unknown process id, have no effect.
	for _, pid := range []uint32{conn.PgConn().PID(), 1 << 30} {
		s := dialSilent(t)
		s.send(&pgproto3.CancelRequest{ProcessID: pid, SecretKey: []byte{1, 2, 3, 4}})
		if got := s.end(); got != "" {
			t.Errorf("a cancel request was answered: %s", got)
		}
	}
	execAll(t, conn, "select 1")
}

// Goal: savepoints undo part of a block, and make a failed one usable again.
func TestSavepoints(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	execAll(t, conn, "drop table if exists save_t", "create table save_t (id int primary key)")
	execAll(t, conn, "begin", "insert into save_t values (1)", "savepoint a", "insert into save_t values (2)", "savepoint b", "insert into save_t values (3)")
	if _, err := conn.Exec(ctx, "insert into save_t values (1)"); code(err) != "23505" {
		t.Fatalf("duplicate in block: %v", err)
	}
	execAll(t, conn, "rollback to b", "insert into save_t values (4)", "release a")
	if _, err := conn.Exec(ctx, "rollback to b"); code(err) != "3B001" {
		t.Errorf("released savepoint: %v", err)
	}
	execAll(t, conn, "rollback", "begin", "insert into save_t values (1)", "savepoint a", "insert into save_t values (2)", "rollback to a", "insert into save_t values (3)", "commit")
	rows, err := conn.Query(ctx, "select id from save_t order by id")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil || fmt.Sprint(ids) != "[1 3]" {
		t.Errorf("rows %v, %v; want [1 3]", ids, err)
	}
}

// Goal: pgx's batches, pipelines and transactions work.
func TestPgxBatchAndPipeline(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	execAll(t, conn, "drop table if exists batch_t", "create table batch_t (id int primary key, v text)")
	var b pgx.Batch
	for i := range 100 {
		b.Queue("insert into batch_t values ($1, $2)", i, fmt.Sprint("v", i))
	}
	b.Queue("select count(*) from batch_t")
	results := conn.SendBatch(ctx, &b)
	for range 100 {
		if _, err := results.Exec(); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := results.QueryRow().Scan(&n); err != nil || n != 100 {
		t.Errorf("%d, %v", n, err)
	}
	if err := results.Close(); err != nil {
		t.Fatal(err)
	}
	b = pgx.Batch{}
	b.Queue("insert into batch_t values (1000, 'x')")
	b.Queue("insert into batch_t values (1, 'x')")
	if err := conn.SendBatch(ctx, &b).Close(); code(err) != "23505" {
		t.Errorf("batch with a duplicate: %v", err)
	}
	if err := conn.QueryRow(ctx, "select count(*) from batch_t").Scan(&n); err != nil || n != 100 {
		t.Errorf("after the failed batch: %d, %v", n, err)
	}
	p := conn.PgConn().StartPipeline(ctx)
	p.SendQueryParams("select $1::int", [][]byte{[]byte("7")}, nil, nil, nil)
	p.SendFlushRequest()
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := p.GetResults()
	if err != nil {
		t.Fatal(err)
	}
	if r := got.(*pgconn.ResultReader).Read(); r.Err != nil || string(r.Rows[0][0]) != "7" {
		t.Errorf("flushed pipeline: %v", r)
	}
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// Goal: serializable holds across TRUNCATE, which changes no key of the rows that it removes: what a transaction has
// read of the table must still exist when it commits. ANALYZE removes nothing, and read-only transactions are not
// delayed.
func TestSerializableAndTruncate(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists ser_r, ser_w
		a: create table ser_r (id int primary key)
		a: create table ser_w (id int primary key)
		a: insert into ser_r values (1)
		a: begin isolation level serializable → BEGIN
		a: select count(*) from ser_r → rows (1)
		a: insert into ser_w values (1) → INSERT 0 1
		b: begin isolation level serializable → BEGIN
		b: select count(*) from ser_w → rows (0)
		b: truncate ser_r → TRUNCATE TABLE
		b: commit → COMMIT
		a: commit → error 40001 could not serialize access due to a concurrent schema change
		a: select count(*) from ser_w → rows (0)
		a: insert into ser_r values (1) → INSERT 0 1
		a: begin isolation level serializable → BEGIN
		a: select count(*) from ser_r → rows (1)
		a: insert into ser_w values (1) → INSERT 0 1
		b: analyze ser_r → ANALYZE
		a: commit → COMMIT
		a: begin isolation level serializable → BEGIN
		a: select count(*) from ser_r → rows (1)
		b: begin → BEGIN
		b: truncate ser_r → TRUNCATE TABLE
		a: commit → COMMIT
		b: rollback → ROLLBACK
		a: begin isolation level repeatable read → BEGIN
		a: select count(*) from ser_r → rows (1)
		a: insert into ser_w values (2) → INSERT 0 1
		b: truncate ser_r → TRUNCATE TABLE
		a: commit → COMMIT
	`)
}

// Goal: new statistics do not fail a statement that has waited for a row; an added column does, because the plan is not
// valid for such rows.
func TestSchemaMovesWhileAStatementWaits(t *testing.T) {
	for change, outcome := range map[string]string{
		"analyze waited_t → ANALYZE":                          "UPDATE 1",
		"alter table waited_t add column x int → ALTER TABLE": "error 40001 could not serialize access due to a concurrent schema change",
	} {
		s := newScript(t)
		s.run(`
			a: drop table if exists waited_t
			a: create table waited_t (id int primary key, n int)
			a: insert into waited_t values (1, 0), (2, 0)
			a: begin isolation level read committed → BEGIN
			a: select n from waited_t where id = 1 for update → rows (0)
			b: begin isolation level repeatable read → BEGIN
			b: update waited_t set n = n + 1 where id = 1 → waits
			c: ` + change + `
			a: update waited_t set n = n + 1 where id = 1 → UPDATE 1
			a: commit → COMMIT
			b → ` + outcome + `
			b: rollback → ROLLBACK
		`)
	}
}

// Goal: a block that has waited for other changes of the schema, or began before them, conflicts with none that leaves alone what the block
// has read and what it changes. Method: at each level, blocks create tables and write rows while others create and drop tables.
func TestBlocksCreateBesideSchemaChanges(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read"} {
		s := newScript(t)
		s.run(`
			a: drop table if exists create_t, create_old, create_a, create_b, create_c
			a: create table create_t (id int primary key)
			a: create table create_old (id int)
			b: begin isolation level ` + level + ` → BEGIN
			b: savepoint s → SAVEPOINT
			a: begin → BEGIN
			a: drop table create_old → DROP TABLE
			percodb b: create table create_b (id int primary key) → waits
			a: create table create_a (id int) → CREATE TABLE
			a: commit → COMMIT
			percodb b → CREATE TABLE
			b: insert into create_t values (1) → INSERT 0 1
			percodb b: insert into create_b values (1) → INSERT 0 1
			b: commit → COMMIT
			b: begin isolation level ` + level + ` → BEGIN
			b: select count(*) from create_t → rows (1)
			a: insert into create_t values (2) → INSERT 0 1
			a: create table create_c (id int) → CREATE TABLE
			b: create table create_d (id int) → CREATE TABLE
			b: insert into create_d values (1) → INSERT 0 1
			b: drop table create_d → DROP TABLE
			b: create table create_d (id int) → CREATE TABLE
			b: commit → COMMIT
			a: select count(*) from create_c, create_d → rows (0)
			a: drop table create_d → DROP TABLE
		`)
	}
}

// Goal: LOCK TABLE in a mode that PostgreSQL's writers wait for holds back their commits until the transaction ends, and another LOCK TABLE;
// readers go on.
func TestLockTable(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists lock_t
		a: create table lock_t (id int primary key)
		a: begin → BEGIN
		a: lock table lock_t in exclusive mode → LOCK TABLE
		b: insert into lock_t values (1) → waits
		c: select count(*) from lock_t → rows (0)
		c: begin → BEGIN
		c: lock table lock_t in share mode nowait → error 55P03 could not obtain lock on relation "lock_t"
		c: rollback → ROLLBACK
		a: select count(*) from lock_t → rows (0)
		a: commit → COMMIT
		b → INSERT 0 1
		a: begin → BEGIN
		a: lock table lock_t in share mode → LOCK TABLE
		c: begin → BEGIN
		c: lock table lock_t in access exclusive mode → waits
		a: select count(*) from lock_t → rows (1)
		a: commit → COMMIT
		c → LOCK TABLE
		c: insert into lock_t values (2) → INSERT 0 1
		c: commit → COMMIT
	`)
}
