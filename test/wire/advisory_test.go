package wire_test

import (
	"testing"
)

// Goal: advisory locks exclude each other as PostgreSQL's do, at both levels and in both modes, and end with the transaction, the savepoint,
// the session. Method: three sessions lock the same keys; the same lines run on PostgreSQL.
func TestAdvisoryLocks(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: select pg_advisory_lock(1) → rows ()
		a: select pg_advisory_lock(1) → rows ()
		b: select pg_try_advisory_lock(1), pg_try_advisory_lock_shared(1), pg_try_advisory_lock(0, 1), pg_try_advisory_lock(2) → rows (false,false,true,true)
		b: select pg_advisory_lock(1) → waits
		c: select pg_advisory_lock_shared(1) → waits
		a: select pg_advisory_unlock(1) → rows (true)
		a: select pg_advisory_unlock(1) → rows (true)
		b → rows ()
		b: select pg_advisory_unlock(1) → rows (true)
		c → rows ()
		a: select pg_advisory_unlock(1) → rows (false)
		a: select pg_try_advisory_lock_shared(1), pg_try_advisory_lock(1) → rows (true,false)
		a: select pg_advisory_lock(1) → waits
		c: select pg_advisory_unlock_all() → rows ()
		a → rows ()
		a: select pg_advisory_unlock_all() → rows ()
		b: select pg_advisory_unlock(2), pg_advisory_unlock(0, 1) → rows (true,true)

		a: begin → BEGIN
		a: select pg_advisory_xact_lock(3) → rows ()
		a: savepoint s → SAVEPOINT
		a: select pg_advisory_xact_lock(4), pg_advisory_lock(5) → rows (,)
		b: select pg_try_advisory_xact_lock(3), pg_try_advisory_xact_lock(4), pg_try_advisory_lock(5) → rows (false,false,false)
		a: rollback to s → ROLLBACK
		b: select pg_try_advisory_xact_lock(3), pg_try_advisory_xact_lock(4), pg_try_advisory_lock(5) → rows (false,true,false)
		a: select pg_advisory_unlock(3) → rows (false)
		a: select 1/0 → error 22012 division by zero
		b: select pg_try_advisory_xact_lock(4), pg_try_advisory_lock(5) → rows (true,false)
		a: rollback → ROLLBACK
		b: select pg_try_advisory_xact_lock(3), pg_try_advisory_lock(5) → rows (true,false)
		a: select pg_advisory_unlock(5) → rows (true)

		a: begin → BEGIN
		a: select pg_advisory_xact_lock(6) → rows ()
		b: select pg_advisory_xact_lock(6) → waits
		a: commit → COMMIT
		b → rows ()
		a: select pg_try_advisory_lock(6) → rows (true)
		b: set lock_timeout = 50 → SET
		b: select pg_advisory_lock(6) → error 55P03 canceling statement due to lock timeout
		a: select pg_advisory_unlock_all() → rows ()
	`)
	for _, locked := range []string{"pg_advisory_lock(-7)", "pg_advisory_lock_shared(8, -9)"} {
		holder := connect(t, "")
		execAll(t, holder, "select "+locked)
		var row string
		const listed = "select concat_ws(' ', classid, objid, objsubid, mode, granted) from pg_locks where locktype = 'advisory' and pid = $1"
		if err := s.observer.QueryRow(s.ctx, listed, holder.PgConn().PID()).Scan(&row); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"pg_advisory_lock(-7)": "4294967295 4294967289 1 ExclusiveLock t", "pg_advisory_lock_shared(8, -9)": "8 4294967287 2 ShareLock t"}[locked]
		if row != want {
			t.Errorf("%s: %s", locked, row)
		}
		if err := holder.Close(s.ctx); err != nil {
			t.Fatal(err)
		}
		execAll(t, connect(t, ""), "select pg_advisory_xact_lock(-7), pg_advisory_xact_lock(8, -9)") // It does not wait for a session that has ended.
	}
}

// Goal: a circle of waits is a deadlock for one of its sessions, of advisory locks and of advisory and row locks.
func TestAdvisoryDeadlocks(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists circle_t
		a: create table circle_t (id int primary key, n int)
		a: insert into circle_t values (1, 0), (2, 0)
		a: select pg_advisory_lock(11) → rows ()
		b: select pg_advisory_lock(12) → rows ()
		a: select pg_advisory_lock(12) → waits
		percodb b: select pg_advisory_lock(11) → error 40P01 deadlock detected
		percodb b: select pg_advisory_unlock(12) → rows (true)
		percodb a → rows ()
		percodb a: select pg_advisory_unlock_all() → rows ()

		percodb a: begin → BEGIN
		percodb a: update circle_t set n = 1 where id = 1 → UPDATE 1
		percodb b: begin → BEGIN
		percodb b: select pg_advisory_xact_lock(13) → rows ()
		percodb a: select pg_advisory_lock(13) → waits
		percodb b: update circle_t set n = 2 where id = 1 → error 40P01 deadlock detected
		percodb b: rollback → ROLLBACK
		percodb a → rows ()
		percodb a: rollback → ROLLBACK

		percodb c: select pg_advisory_lock(14) → rows ()
		percodb c: begin → BEGIN
		percodb b: begin → BEGIN
		percodb b: update circle_t set n = 3 where id = 2 → UPDATE 1
		percodb c: update circle_t set n = 4 where id = 2 → waits
		percodb b: select pg_advisory_lock(14) → error 40P01 deadlock detected
		percodb b: rollback → ROLLBACK
		percodb c → UPDATE 1
		percodb c: commit → COMMIT
	`)
}
