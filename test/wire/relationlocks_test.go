package wire_test

import "testing"

// Goal: pg_locks shows a statement that waits for others' changes of the schema with locks that are not granted, and a commit that waits for a
// table which another session has locked with the lock that it had when it wrote.
func TestRelationLocksThatWait(t *testing.T) {
	s := newScript(t)
	listed := func(mode string) string {
		return "select count(*) from pg_locks where relation = 'waited_t'::regclass and mode = '" + mode + "' and not granted"
	}
	s.run(`
		a: drop table if exists waited_t
		a: create table waited_t (id int primary key)
		a: begin → BEGIN
		a: lock table waited_t in exclusive mode → LOCK TABLE
		b: begin → BEGIN
		b: alter table waited_t add column n int → waits
		c: ` + listed("AccessExclusiveLock") + ` → rows (1)
		c: select mode from pg_locks where relation = 'waited_t'::regclass and granted → rows (ExclusiveLock)
		a: commit → COMMIT
		b → ALTER TABLE
		c: select mode from pg_locks where relation = 'waited_t'::regclass and granted → rows (AccessExclusiveLock)
		b: rollback → ROLLBACK
		c: select count(*) from pg_locks where relation = 'waited_t'::regclass → rows (0)
		a: begin → BEGIN
		a: lock table waited_t in share mode → LOCK TABLE
		b: insert into waited_t values (1) → waits
		c: ` + listed("RowExclusiveLock") + ` → rows (1)
		a: commit → COMMIT
		b → INSERT 0 1
		a: drop table waited_t → DROP TABLE
	`)
}
