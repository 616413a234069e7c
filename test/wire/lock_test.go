package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The scripts pass on PostgreSQL 15 as well, except for lines marked percodb, and for differences that their comments
// state.

// Goal: at read committed a writer waits for the other and then sees its row; there is no 40001, in a block or outside
// one, and a row that no longer matches is skipped.
func TestReadCommittedWritersWait(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists rc_t
		a: create table rc_t (id int primary key, n int)
		a: insert into rc_t values (1, 10), (2, 20)
		a: begin isolation level read committed → BEGIN
		b: begin isolation level read committed → BEGIN
		b: select n from rc_t where id = 1 → rows (10)
		a: update rc_t set n = n + 1 where id = 1 → UPDATE 1
		b: update rc_t set n = n + 5 where id = 1 returning n → waits
		a: commit → COMMIT
		b → rows (16)
		b: select n from rc_t where id = 1 → rows (16)
		b: commit → COMMIT
		a: begin isolation level read committed → BEGIN
		a: update rc_t set n = 99 where id = 2 → UPDATE 1
		b: update rc_t set n = 0 where n = 20 → waits
		a: commit → COMMIT
		b → UPDATE 0
		a: begin isolation level read committed → BEGIN
		a: delete from rc_t where id = 2 → DELETE 1
		b: delete from rc_t where id = 2 → waits
		a: rollback → ROLLBACK
		b → DELETE 1
		a: select * from rc_t → rows (1,16)
	`)
}

// Goal: at repeatable read a writer that waited continues if nothing that its transaction has read has changed, and
// receives 40001 otherwise. PostgreSQL answers 40001 in both cases.
func TestRepeatableReadRefreshes(t *testing.T) {
	s := newScript(t)
	if s.postgres {
		t.Skip("PostgreSQL does not refresh snapshots")
	}
	s.run(`
		a: drop table if exists rr_t
		a: create table rr_t (id int primary key, n int)
		a: insert into rr_t values (1, 10), (2, 20)
		a: begin isolation level repeatable read → BEGIN
		b: begin isolation level repeatable read → BEGIN
		b: select n from rr_t where id = 2 → rows (20)
		a: update rr_t set n = n + 1 where id = 1 → UPDATE 1
		b: update rr_t set n = n + 5 where id = 1 returning n → waits
		a: commit → COMMIT
		b → rows (16)
		b: commit → COMMIT
		a: begin isolation level repeatable read → BEGIN
		b: begin isolation level repeatable read → BEGIN
		b: select n from rr_t where id = 1 → rows (16)
		a: update rr_t set n = n + 1 where id = 1 → UPDATE 1
		b: update rr_t set n = n + 5 where id = 1 → waits
		a: commit → COMMIT
		b → error 40001 could not serialize access due to concurrent update
		b: select 1 → error 25P02 current transaction is aborted, commands ignored until end of transaction block
		b: commit → ROLLBACK
		a: select n from rr_t where id = 1 → rows (17)
	`)
}

// Goal: a 40001, a 55P03 and a 40P01 name the row, what the other transaction did, and what to do.
func TestErrorsOfConflicts(t *testing.T) {
	s := newScript(t)
	if s.postgres {
		t.Skip("PostgreSQL tells less")
	}
	s.run(`
		a: drop table if exists story_t
		a: create table story_t (region text, id int, n int, primary key (region, id))
		a: insert into story_t values ('eu', 7, 1), ('eu', 8, 1)
		b: begin → BEGIN
		b: select n from story_t where id = 7 → rows (1)
		a: update story_t set n = 2 where id = 7 → UPDATE 1
	`)
	check := func(session, statement, code, detail string) {
		t.Helper()
		_, err := s.connection(session).Exec(s.ctx, statement)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != code || !strings.HasPrefix(pg.Detail, detail) || pg.Hint == "" ||
			pg.TableName != "story_t" || pg.SchemaName != "public" || pg.ConstraintName != "story_t_pkey" {
			t.Errorf("%s: %v %+v", statement, err, pg)
		}
		s.run(session + ": rollback → ROLLBACK")
	}
	year := fmt.Sprint(time.Now().UTC().Year())
	check("b", "update story_t set n = 3 where id = 7", "40001",
		`Key (region, id)=(eu, 7) of table "story_t" was changed by a transaction that committed at `+year)
	s.run(`
		a: begin → BEGIN
		a: update story_t set n = 2 where id = 7 → UPDATE 1
		b: begin → BEGIN
	`)
	check("b", "select * from story_t for update nowait", "55P03",
		`Key (region, id)=(eu, 7) of table "story_t" is locked by a transaction that began at `+year)
	s.run(`
		b: begin → BEGIN
		b: update story_t set n = 2 where id = 8 → UPDATE 1
		a: update story_t set n = 2 where id = 8 → waits
	`)
	check("b", "update story_t set n = 2 where id = 7", "40P01",
		`Key (region, id)=(eu, 7) of table "story_t" is locked by a transaction that began at `+year)
	s.run("a → UPDATE 1\na: rollback → ROLLBACK")
}

// Goal: NOWAIT and lock_timeout, in a block and outside one.
func TestNoWaitAndLockTimeout(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists nowait_t
		a: create table nowait_t (id int primary key, n int)
		a: insert into nowait_t values (1, 10), (2, 20)
		a: begin → BEGIN
		a: select n from nowait_t where id = 1 for update → rows (10)
		b: select n from nowait_t where id = 1 for update nowait → error 55P03 could not obtain lock on row in relation "nowait_t"
		b: select n from nowait_t where id = 2 for update nowait → rows (20)
		b: begin → BEGIN
		b: select n from nowait_t where id = 1 for share nowait → error 55P03 could not obtain lock on row in relation "nowait_t"
		b: rollback → ROLLBACK
		b: set lock_timeout = '20ms' → SET
		b: update nowait_t set n = 1 where id = 1 → error 55P03 canceling statement due to lock timeout
		b: begin → BEGIN
		b: set local lock_timeout = '10ms' → SET
		b: select n from nowait_t where id = 1 for update → error 55P03 canceling statement due to lock timeout
		b: rollback → ROLLBACK
		b: set statement_timeout = '500ms' → SET
		b: set lock_timeout = 0 → SET
		b: update nowait_t set n = 1 where id = 1 → error 57014 canceling statement due to statement timeout
		b: set statement_timeout = 0 → SET
		a: commit → COMMIT
		b: update nowait_t set n = 1 where id = 1 → UPDATE 1
	`)
}

// Goal: shared locks are compatible, and block writers.
func TestSharedLocks(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists share_t
		a: create table share_t (id int primary key, n int)
		a: insert into share_t values (1, 10)
		a: begin → BEGIN
		b: begin → BEGIN
		a: select n from share_t where id = 1 for share → rows (10)
		b: select n from share_t where id = 1 for share nowait → rows (10)
		c: select n from share_t where id = 1 for update nowait → error 55P03 could not obtain lock on row in relation "share_t"
		c: select n from share_t where id = 1 → rows (10)
		c: update share_t set n = 11 where id = 1 → waits
		a: commit → COMMIT
		b: commit → COMMIT
		c → UPDATE 1
	`)
}

// Goal: a queue of jobs: each worker takes a row that is not locked, in one statement or in a block, and no job is done
// twice. Method: workers take rows until none is left.
func TestSkipLockedQueue(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists job_t
		a: create table job_t (id int primary key, done bool default false, worker int)
		a: insert into job_t select i from generate_series(1, 100) i
		a: begin → BEGIN
		a: select id from job_t where not done order by id limit 2 for update skip locked → rows (1) (2)
		b: begin → BEGIN
		b: select id from job_t where not done order by id limit 1 for update skip locked → rows (3)
		a: rollback → ROLLBACK
		b: rollback → ROLLBACK
	`)
	const workers = 6
	var wg sync.WaitGroup
	took := make([]int, workers)
	for w := range workers {
		conn := connect(t, "")
		wg.Go(func() {
			for {
				tag, err := conn.Exec(s.ctx, `update job_t set done = true, worker = coalesce(worker * 1000, 0) + $1 where id =
					(select id from job_t where not done order by id limit 1 for update skip locked)`, w+1)
				if err != nil {
					t.Error(err)
					return
				}
				if tag.RowsAffected() == 0 {
					return
				}
				took[w]++
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range took {
		sum += n
	}
	if sum != 100 {
		t.Errorf("workers took %v, %d together; want 100", took, sum)
	}
	s.run(`a: select count(*) from job_t where done and worker between 1 and 6 → rows (100)`)
}

// Goal: a deadlock ends with one victim; the other transactions continue.
func TestDeadlockHasOneVictim(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists dead_t
		a: create table dead_t (id int primary key, n int)
		a: insert into dead_t values (1, 0), (2, 0), (3, 0)
		a: begin → BEGIN
		b: begin → BEGIN
		c: begin → BEGIN
		a: update dead_t set n = 1 where id = 1 → UPDATE 1
		b: update dead_t set n = 2 where id = 2 → UPDATE 1
		c: update dead_t set n = 3 where id = 3 → UPDATE 1
		a: update dead_t set n = 1 where id = 2 → waits
		b: update dead_t set n = 2 where id = 3 → waits
		percodb c: update dead_t set n = 3 where id = 1 → error 40P01 deadlock detected
		percodb c: rollback → ROLLBACK
		percodb b → UPDATE 1
		percodb b: commit → COMMIT
	`)
	if s.postgres {
		t.Skip("the victim is another one")
	}
	s.run(`
		a → UPDATE 1
		a: commit → COMMIT
		a: select * from dead_t order by id → rows (1,1) (2,1) (3,2)
	`)
}

// Goal: ROLLBACK TO releases the locks acquired since.
func TestSavepointFreesLocks(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists free_t
		a: create table free_t (id int primary key, n int)
		a: insert into free_t values (1, 0), (2, 0)
		a: begin → BEGIN
		a: update free_t set n = 1 where id = 1 → UPDATE 1
		a: savepoint s → SAVEPOINT
		a: update free_t set n = 1 where id = 2 → UPDATE 1
		b: update free_t set n = 2 where id = 2 → waits
		a: rollback to s → ROLLBACK
		b → UPDATE 1
		c: select n from free_t where id = 1 for update nowait → error 55P03 could not obtain lock on row in relation "free_t"
		a: commit → COMMIT
		a: select * from free_t order by id → rows (1,1) (2,2)
	`)
}

// Goal: a transaction that inserts a key which another has inserted waits for it: 23505 if that commits, otherwise the
// insert succeeds; also for unique columns, and for keys that are freed.
func TestInsertersWait(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists ins_t
		a: create table ins_t (id int primary key, u int unique)
		a: begin → BEGIN
		a: insert into ins_t values (1, 1) → INSERT 0 1
		b: insert into ins_t values (1, 2) → waits
		a: commit → COMMIT
		b → error 23505 duplicate key value violates unique constraint "ins_t_pkey"
		a: begin → BEGIN
		a: insert into ins_t values (2, 2) → INSERT 0 1
		b: begin → BEGIN
		b: insert into ins_t values (3, 2) → waits
		a: rollback → ROLLBACK
		b → INSERT 0 1
		b: commit → COMMIT
		a: begin → BEGIN
		a: delete from ins_t where id = 3 → DELETE 1
		b: begin isolation level read committed → BEGIN
		b: insert into ins_t values (4, 2) → waits
		a: commit → COMMIT
		b → INSERT 0 1
		b: commit → COMMIT
		a: begin → BEGIN
		a: insert into ins_t values (5, 5) → INSERT 0 1
		b: begin isolation level read committed → BEGIN
		b: insert into ins_t values (5, 6) on conflict do nothing → waits
		a: commit → COMMIT
		b → INSERT 0 0
		b: insert into ins_t values (5, 6) on conflict (id) do update set u = excluded.u → INSERT 0 1
		b: commit → COMMIT
		a: select * from ins_t order by id → rows (1,1) (4,2) (5,6)
	`)
}

// Goal: inside a block a duplicate is an error of the statement, whatever inserted the key: other rows of the
// statement, the block itself, an index created in it, or another transaction, at once or after a wait; keys that the
// block has deleted can be inserted again. At each level, as in PostgreSQL.
func TestUniqueKeysInABlock(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			newScript(t).run(strings.ReplaceAll(`
				a: drop table if exists uniq_t
				a: create table uniq_t (id int primary key, u int unique, n int)
				a: create index on uniq_t (n)
				a: insert into uniq_t values (1, 1, 1), (2, 2, 2) → INSERT 0 2
				a: begin isolation level LEVEL
				a: savepoint s
				a: insert into uniq_t values (3, 3, 1), (4, 4, 1), (3, 5, 1) → error 23505 duplicate key value violates unique constraint "uniq_t_pkey"
				a: rollback to s
				a: insert into uniq_t values (5, 5, 1), (6, 2, 1) → error 23505 duplicate key value violates unique constraint "uniq_t_u_key"
				a: rollback to s
				a: insert into uniq_t select g, g, 7 from generate_series(10, 2000) g → INSERT 0 1991
				a: insert into uniq_t values (1500, 5000, 1) → error 23505 duplicate key value violates unique constraint "uniq_t_pkey"
				a: rollback to s
				a: insert into uniq_t values (10, 10, 8) → INSERT 0 1
				a: delete from uniq_t where id in (1, 10) → DELETE 2
				a: insert into uniq_t values (10, 1, 9), (1, 10, 9) → INSERT 0 2
				a: update uniq_t set u = u + 1 where id = 2 → UPDATE 1
				a: insert into uniq_t values (11, 2, 9) → INSERT 0 1
				a: insert into uniq_t values (10, 0, 0), (12, 12, 9) on conflict (id) do update set n = excluded.n → INSERT 0 2
				b: insert into uniq_t values (12, 13, 1) → waits
				a: commit → COMMIT
				b → error 23505 duplicate key value violates unique constraint "uniq_t_pkey"
				a: select id, u, n from uniq_t order by id → rows (1,10,9) (2,3,2) (10,1,0) (11,2,9) (12,12,9)
				a: begin isolation level LEVEL
				a: insert into uniq_t values (20, 20, 1) → INSERT 0 1
				b: begin isolation level LEVEL
				b: insert into uniq_t values (19, 19, 1), (20, 21, 1), (22, 22, 1) → waits
				a: rollback
				b → INSERT 0 3
				b: commit → COMMIT
				a: begin isolation level LEVEL
				a: create table uniq_new (id int)
				a: insert into uniq_new values (1), (2)
				a: create unique index uniq_new_id on uniq_new (id)
				a: insert into uniq_new values (3), (2) → error 23505 duplicate key value violates unique constraint "uniq_new_id"
				a: rollback
				a: drop table uniq_t`, "LEVEL", level))
		})
	}
}

// Goal: write skew is possible at repeatable read and refused at serializable, where rows that a transaction only reads
// must not change either, predicates included.
func TestSerializableRefusesWriteSkew(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists skew_t
		a: create table skew_t (id int primary key, n int)
		a: insert into skew_t values (1, 10), (2, 20)
		a: begin isolation level serializable → BEGIN
		b: begin isolation level serializable → BEGIN
		a: select sum(n) from skew_t → rows (30)
		b: select sum(n) from skew_t → rows (30)
		a: update skew_t set n = 0 where id = 1 → UPDATE 1
		b: update skew_t set n = 0 where id = 2 → UPDATE 1
		a: commit → COMMIT
		b: commit → error 40001 could not serialize access due to read/write dependencies among transactions
		a: begin isolation level serializable → BEGIN
		b: begin isolation level serializable → BEGIN
		a: select count(*) from skew_t where id > 10 → rows (0)
		b: select count(*) from skew_t where id > 10 → rows (0)
		a: insert into skew_t values (11, 1) → INSERT 0 1
		b: insert into skew_t values (12, 1) → INSERT 0 1
		a: commit → COMMIT
		b: commit → error 40001 could not serialize access due to read/write dependencies among transactions
		c: begin isolation level serializable read only deferrable → BEGIN
		c: select count(*) from skew_t → rows (3)
		a: insert into skew_t values (13, 1) → INSERT 0 1
		c: select count(*) from skew_t → rows (3)
		c: commit → COMMIT
		a: begin isolation level repeatable read → BEGIN
		b: begin isolation level repeatable read → BEGIN
		a: select count(*) from skew_t where id > 10 → rows (2)
		b: select count(*) from skew_t where id > 10 → rows (2)
		a: insert into skew_t values (14, 1) → INSERT 0 1
		b: insert into skew_t values (15, 1) → INSERT 0 1
		a: commit → COMMIT
		b: commit → COMMIT
	`)
}

// Goal: a retried statement sends one result, that of the last attempt, in every protocol and with rows both before and
// after the wait.
func TestRetriedStatementAnswersOnce(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		s := newScript(t)
		s.mode = mode
		s.run(`
			a: drop table if exists again_t
			a: create table again_t (id int primary key, n int)
			a: insert into again_t select i, 0 from generate_series(1, 50) i
			a: begin isolation level read committed → BEGIN
			a: update again_t set n = 100 where id = 40 → UPDATE 1
			a: delete from again_t where id = 41 → DELETE 1
			b: begin isolation level read committed → BEGIN
			b: update again_t set n = n + 1 where id > 37 and id < 43 returning id, n → waits
			a: commit → COMMIT
			b → rows (38,1) (39,1) (40,101) (42,1)
			b: with x as (select id from again_t where id < 3 for update) select * from x order by id → rows (1) (2)
			a: update again_t set n = 7 where id = 2 → waits
			b: prepare p(int) as update again_t set n = n + $1 where id = 3 returning n → PREPARE
			b: execute p(5) → rows (5)
			b: insert into again_t select id + 100, n from again_t where id in (2, 3) returning id, n → rows (102,0) (103,5)
			b: commit → COMMIT
			a → UPDATE 1
		`)
		s.run("b: deallocate p")
	}
}

// Goal: sessions that increment one row in transaction blocks lose no update and receive no error, at the default level
// too.
func TestHotCounter(t *testing.T) {
	const sessions, each = 64, 10
	s := newScript(t)
	s.run(`
		a: drop table if exists hot_t
		a: create table hot_t (id int primary key, n int)
		a: insert into hot_t values (1, 0)
	`)
	level := "repeatable read"
	if s.postgres {
		level = "read committed"
	}
	var wg sync.WaitGroup
	for range sessions {
		conn := connect(t, "")
		wg.Go(func() {
			for range each {
				for _, q := range []string{"begin isolation level " + level, "update hot_t set n = n + 1 where id = 1", "commit"} {
					if _, err := conn.Exec(s.ctx, q); err != nil {
						t.Errorf("%s: %v", q, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	s.run(fmt.Sprintf("a: select n from hot_t → rows (%d)", sessions*each))
}

// Goal: pipelines wait as blocks do. Method: batches that begin with a write or a read, on two rows, at both levels;
// PostgreSQL at its default only.
func TestPipelinesWait(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read"} {
		s := newScript(t)
		if s.postgres && level != "read committed" {
			continue
		}
		s.run(`
			a: drop table if exists pipewait_t
			a: create table pipewait_t (id int primary key, n int)
			a: insert into pipewait_t values (1, 0), (2, 0), (3, 0)
		`)
		const clients, each = 8, 20
		var wg sync.WaitGroup
		for range clients {
			conn := connect(t, "&default_transaction_isolation="+strings.ReplaceAll(level, " ", "%20"))
			wg.Go(func() {
				for i := range each {
					var b pgx.Batch
					if i%2 == 1 {
						b.Queue("select n from pipewait_t where id = 3")
					}
					b.Queue("update pipewait_t set n = n + 1 where id = 1")
					b.Queue("update pipewait_t set n = n + 1 where id = 2")
					if err := conn.SendBatch(s.ctx, &b).Close(); err != nil {
						t.Errorf("%s: %v", level, err)
						return
					}
				}
			})
		}
		wg.Wait()
		s.run(fmt.Sprintf("a: select n from pipewait_t where id < 3 → rows (%d) (%d)", clients*each, clients*each))
	}
}

// Goal: the modes of transactions are PostgreSQL's.
func TestTransactionModes(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: set default_transaction_isolation = 'read committed' → SET
		a: show transaction_isolation → rows (read committed)
		a: begin isolation level read uncommitted → BEGIN
		a: show transaction_isolation → rows (read uncommitted)
		a: set transaction isolation level serializable → SET
		a: savepoint x → SAVEPOINT
		a: set transaction isolation level read committed → error 25001 SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction
		a: rollback → ROLLBACK
		a: begin isolation level serializable, read only, deferrable → BEGIN
		a: show transaction_isolation → rows (serializable)
		a: show transaction_read_only → rows (on)
		a: show transaction_deferrable → rows (on)
		a: select 1 → rows (1)
		a: set transaction isolation level serializable → SET
		a: set transaction isolation level read committed → error 25001 SET TRANSACTION ISOLATION LEVEL must be called before any query
		a: rollback → ROLLBACK
		a: begin isolation level serializable → BEGIN
		a: commit and chain → COMMIT
		a: show transaction_isolation → rows (serializable)
		a: set transaction read write → SET
		a: set transaction read only → SET
		a: select 1 → rows (1)
		a: set transaction read write → error 25001 transaction read-write mode must be set before any query
		a: rollback → ROLLBACK
		a: begin read only → BEGIN
		a: savepoint x → SAVEPOINT
		a: set transaction read write → error 25001 cannot set transaction read-write mode inside a read-only transaction
		a: rollback → ROLLBACK
		a: begin → BEGIN
		a: set transaction_isolation = 'nonsense' → error 22023 invalid value for parameter "transaction_isolation": "nonsense"
		a: rollback → ROLLBACK
		a: begin → BEGIN
		a: savepoint x → SAVEPOINT
		a: set transaction_deferrable = on → error 25001 SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction
		a: rollback → ROLLBACK
		a: set session characteristics as transaction isolation level serializable, read only → SET
		a: show default_transaction_isolation → rows (serializable)
		a: show transaction_read_only → rows (on)
		a: create table mode_t (a int) → error 25006 cannot execute CREATE TABLE in a read-only transaction
		a: select * from pg_class for update → error 25006 cannot execute SELECT FOR UPDATE in a read-only transaction
		a: set default_transaction_isolation = 'x' → error 22023 invalid value for parameter "default_transaction_isolation": "x"
		a: select current_setting('transaction_isolation') → rows (serializable)
		a: begin isolation level read committed → BEGIN
		a: select set_config('transaction_isolation', 'serializable', true) → error 25001 SET TRANSACTION ISOLATION LEVEL must be called before any query
		a: rollback → ROLLBACK
		a: set deadlock_timeout = '2s' → SET
		a: show deadlock_timeout → rows (2s)
		a: set transaction_isolation = 'serializable' → SET
	`)
}

// Goal: an idle transaction is ended after the timeout.
func TestIdleInTransaction(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists idle_t
		a: create table idle_t (id int primary key)
		b: set idle_in_transaction_session_timeout = '1s' → SET
		b: begin → BEGIN
		b: insert into idle_t values (1) → INSERT 0 1
		a: insert into idle_t values (1) → INSERT 0 1
	`)
	_, err := s.connection("b").Exec(s.ctx, "select 1")
	if err == nil || code(err) != "25P03" && code(err) != "" {
		t.Errorf("the forgotten session hears %v", err)
	}
}
