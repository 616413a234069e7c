package session

import "testing"

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
		create index on t (id, s); commit → CREATE INDEX; error 40001; I
		begin isolation level read committed; insert into t values (1, 2); create index on t (id, s); insert into t values (2, 2); commit → BEGIN; INSERT 0 1; CREATE INDEX; INSERT 0 1; COMMIT; I
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
