package session

import (
	"strings"
	"testing"
	"time"
)

// Goal: the modes of transactions are set before the first query, follow savepoints and AND CHAIN, and have their defaults
// from the settings, as in PostgreSQL. Method: transcripts.
func TestModes(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key)")
	c.transcript(`
		begin isolation level serializable read only; show transaction_isolation; show transaction_read_only; commit → BEGIN; columns transaction_isolation; row serializable; SHOW; columns transaction_read_only; row on; SHOW; COMMIT; I
		begin read only; insert into t values (1) → BEGIN; error 25006; E
		rollback → ROLLBACK; I
		begin; select 1; set transaction isolation level serializable → BEGIN; columns ?column?; row 1; SELECT 1; error 25001; E
		rollback → ROLLBACK; I
		begin; savepoint s; set transaction isolation level serializable → BEGIN; SAVEPOINT; error 25001; E
		rollback → ROLLBACK; I
		begin read only; savepoint s; set transaction read write → BEGIN; SAVEPOINT; error 25001; E
		rollback → ROLLBACK; I
		begin; savepoint s; set transaction read only; rollback to s; insert into t values (1); rollback → BEGIN; SAVEPOINT; SET; ROLLBACK; INSERT 0 1; ROLLBACK; I
		begin isolation level read committed; commit and chain; show transaction_isolation; rollback → BEGIN; COMMIT; columns transaction_isolation; row read committed; SHOW; ROLLBACK; I
		begin; set transaction_isolation = 'serializable'; show transaction_isolation; reset transaction_isolation; show transaction_isolation; rollback → BEGIN; SET; columns transaction_isolation; row serializable; SHOW; RESET; columns transaction_isolation; row repeatable read; SHOW; ROLLBACK; I
		begin; set transaction_isolation = 'none' → BEGIN; error 22023; E
		rollback → ROLLBACK; I
		set transaction_read_only = on → SET; I
		show transaction_read_only → columns transaction_read_only; row off; SHOW; I
		reset transaction_read_only → notice 25P01; RESET; I
		set session characteristics as transaction isolation level read committed, read only, deferrable → SET; I
		begin; show transaction_isolation; show transaction_read_only; show transaction_deferrable; rollback → BEGIN; columns transaction_isolation; row read committed; SHOW; columns transaction_read_only; row on; SHOW; columns transaction_deferrable; row on; SHOW; ROLLBACK; I
		begin; set session characteristics as transaction read write; rollback; show default_transaction_read_only → BEGIN; SET; ROLLBACK; columns default_transaction_read_only; row on; SHOW; I
	`)
}

// Goal: savepoints nest, shadow each other by name, and restore rows, settings and schema. Method: transcripts.
func TestSavepoints(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key)")
	c.transcript(`
		begin; insert into t values (1); savepoint a; insert into t values (2); savepoint a; insert into t values (3) → BEGIN; INSERT 0 1; SAVEPOINT; INSERT 0 1; SAVEPOINT; INSERT 0 1; T
		rollback to a; select id from t order by id → ROLLBACK; columns id; row 1; row 2; SELECT 2; T
		release a; rollback to a; select id from t order by id → RELEASE; ROLLBACK; columns id; row 1; SELECT 1; T
		release b → error 3B001; E
		rollback to a; set datestyle = 'German'; alter table t add column s text; rollback to a; show datestyle; select * from t → ROLLBACK; SET; ALTER TABLE; ROLLBACK; columns DateStyle; row ISO, MDY; SHOW; columns id; row 1; SELECT 1; T
		commit → COMMIT; I
		select id from t → columns id; row 1; SELECT 1; I
	`)
}

// Goal: a block that has undone its schema change to a savepoint is refused if another change came before it, and only then.
func TestUndoneSchemaChanges(t *testing.T) {
	s := newTestServer(t)
	a, b := s.connect(), s.connect()
	a.must("create table t (id int primary key, s int)")
	a.transcript(`begin; insert into t values (1, 2) → BEGIN; INSERT 0 1; T`)
	b.must("create index on t (s)")
	a.transcript(`
		savepoint x; truncate t; rollback to x → SAVEPOINT; TRUNCATE TABLE; ROLLBACK; T
		commit → error 40001; I
		begin; insert into t values (1, 2) → BEGIN; INSERT 0 1; T
		savepoint x; alter table t add u int; insert into t values (2, 3, 4); create table v (id int); insert into v values (1); rollback to x → SAVEPOINT; ALTER TABLE; INSERT 0 1; CREATE TABLE; INSERT 0 1; ROLLBACK; T
		insert into t values (3, 4); commit → INSERT 0 1; COMMIT; I
		select * from t order by id → columns id s; row 1 2; row 3 4; SELECT 2; I
	`)
}

// Goal: a block that has written rows before another session's schema change is refused although it changes the table itself, on top
// of that change, which it sees at READ COMMITTED.
func TestSchemaChangeOnTopOfAnother(t *testing.T) {
	s := newTestServer(t)
	a, b := s.connect(), s.connect()
	a.must("create table t (id int primary key, s int)")
	a.transcript(`begin isolation level read committed; insert into t values (1, 2) → BEGIN; INSERT 0 1; T`)
	b.must("create index on t (s)")
	a.transcript(`
		create index on t (id, s); commit → notice 00000; CREATE INDEX; error 40001; I
		begin isolation level read committed; insert into t values (1, 2); create index on t (id, s); insert into t values (2, 2); commit → BEGIN; INSERT 0 1; notice 00000; CREATE INDEX; INSERT 0 1; COMMIT; I
		select id from t where s = 2 order by id → columns id; row 1; row 2; SELECT 2; I
	`)
}

// Goal: what a block undoes when it ends after an error, and what a savepoint closes, as in PostgreSQL.
func TestEndOfFailedBlocks(t *testing.T) {
	c := newTestServer(t).connect()
	c.transcript(`
		begin; set datestyle = 'German' → BEGIN; SET; T
		set nonsense = 1 → error 42704; E
		commit → ROLLBACK; I
		show datestyle → columns DateStyle; row ISO, MDY; SHOW; I
		begin; savepoint a; declare h cursor with hold for select 1; commit → BEGIN; SAVEPOINT; DECLARE CURSOR; COMMIT; I
		begin; savepoint b; rollback to b; fetch h; commit → BEGIN; SAVEPOINT; ROLLBACK; columns ?column?; row 1; FETCH 1; COMMIT; I
	`)
}

// Goal: a schema change in a block, and a transaction that waits for it while the block waits for a row lock of that transaction, are a
// deadlock: the second of them receives 40P01, and the other continues. Method: the first statement that waits is seen in the
// graph of waits before the second one is sent.
func TestDeadlocksWithSchemaChanges(t *testing.T) {
	for _, tc := range []struct{ name, a, b, first, second string }{
		{"commit last", "create index on t (n)", "insert into t values (1, 1)", "a: update r set n = 2", "b: commit"},
		{"commit first", "create index on t (n)", "insert into t values (1, 1)", "b: commit", "a: update r set n = 2"},
		{"schema change last", "create index on t (n)", "select 1", "a: update r set n = 2", "b: create table u (id int)"},
		{"schema change first", "create index on t (n)", "select 1", "b: create table u (id int)", "a: update r set n = 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newTestServer(t)
			a, b := s.connect(), s.connect()
			a.must("create table t (id int primary key, n int); create table r (id int primary key, n int); insert into r values (1, 0)")
			for c, statement := range map[*client]string{a: tc.a, b: tc.b} {
				c.must("set statement_timeout = '20s'") // ends the test if the deadlock lasts
				c.must("begin; " + statement)
			}
			b.must("update r set n = 1")
			send := func(line string) (c *client, answer chan string) {
				name, statement, _ := strings.Cut(line, ": ")
				if c = b; name == "a" {
					c = a
				}
				answer = make(chan string, 1)
				go func() { answer <- c.query(statement) }()
				return c, answer
			}
			_, first := send(tc.first)
			for s.waits.Len() == 0 {
				time.Sleep(time.Millisecond)
			}
			victim, second := send(tc.second)
			if got := <-second; !strings.HasPrefix(got, "error 40P01") {
				t.Errorf("%s is answered %q", tc.second, got)
			}
			victim.query("rollback")
			if got := <-first; strings.Contains(got, "error") {
				t.Errorf("%s is answered %q", tc.first, got)
			}
		})
	}
}

// Goal: an error in a block undoes at once what no savepoint can return to: another session does not wait for its row locks and
// schema changes until the client ends the block. Method: the other session would wait for ever.
func TestFailedBlocksHoldNothing(t *testing.T) {
	s := newTestServer(t)
	a, b := s.connect(), s.connect()
	a.must("create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)")
	b.must("set statement_timeout = '20s'")
	const failed = "select 1/0"
	a.transcript("begin; update t set n = 1; " + failed + " → BEGIN; UPDATE 2; columns ?column?; error 22012; E")
	b.transcript("update t set n = n + 10 → UPDATE 2; I")
	a.transcript(`
		commit → ROLLBACK; I
		select n from t where id = 1 → columns n; row 10; SELECT 1; I
		begin; create index on t (n); select 1/0 → BEGIN; notice 00000; CREATE INDEX; columns ?column?; error 22012; E
	`)
	b.transcript("create table u (id int); update t set n = n + 1 → CREATE TABLE; UPDATE 2; I")
	a.transcript(`
		rollback and chain; update t set n = 5 where id = 1; savepoint s; update t set n = 6 where id = 2; select 1/0 → ROLLBACK; UPDATE 1; SAVEPOINT; UPDATE 1; columns ?column?; error 22012; E
	`)
	b.transcript("update t set n = 7 where id = 2 → UPDATE 1; I")
	a.transcript(`
		rollback to s; select n from t order by id; commit → ROLLBACK; columns n; row 5; row 11; SELECT 2; COMMIT; I
		select n from t order by id → columns n; row 5; row 7; SELECT 2; I
	`)
}

// Goal: a failed block begins no transaction for the statements that it refuses. Method: a statement whose plan is cached; where one
// begins, the transaction's time changes.
func TestFailedBlocksBeginNothing(t *testing.T) {
	a := newTestServer(t).connect()
	const cached = "select n from t"
	a.must("create table t (id int primary key, n int)", cached, cached)
	a.transcript("begin; select 1/0 → BEGIN; columns ?column?; error 22012; E")
	began := a.env.TxnTime
	a.transcript(cached + " → error 25P02; E")
	if a.env.TxnTime != began {
		t.Error("a transaction has begun")
	}
}

// Goal: lock_timeout ends waits for schema changes of others as it does waits for row locks, also when it is set in the midst of a
// transaction. Method: the other transaction goes on for ever.
func TestLockTimeouts(t *testing.T) {
	s := newTestServer(t)
	a, b := s.connect(), s.connect()
	a.must("create table t (id int primary key, n int)", "insert into t values (1, 0)", "begin", "update t set n = 1", "create index on t (n)")
	b.must("set statement_timeout = '20s'") // ends the test if a wait lasts
	b.transcript(`
		begin; select n from t; set local lock_timeout = '10ms'; update t set n = 2 → BEGIN; columns n; row 0; SELECT 1; SET; error 55P03; E
		rollback → ROLLBACK; I
		set lock_timeout = '10ms' → SET; I
		insert into t values (2, 0) → error 55P03; I
		create table u (id int) → error 55P03; I
		begin; create table u (id int) → BEGIN; error 55P03; E
		rollback → ROLLBACK; I
		begin; insert into t values (2, 0); commit → BEGIN; INSERT 0 1; error 55P03; I
	`)
	a.must("commit")
	b.must("insert into t values (2, 0)", "create table u (id int)")
}
