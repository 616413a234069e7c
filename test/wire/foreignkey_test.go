package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Goal: of a child's insert and its parent's delete or change of key that run at the same time one waits for the other, at every isolation
// level and in both orders, and no child is left without a parent. Method: each pair in blocks, the first committing or rolling back.
func TestForeignKeyConcurrency(t *testing.T) {
	s := newScript(t)
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		refused := "error 23503 insert or update on table \"fk_c\" violates foreign key constraint \"fk_c_p_fkey\""
		gone := refused
		if s.postgres && level != "read committed" {
			gone = "error 40001 could not serialize access due to concurrent update"
		}
		for _, ends := range []string{"commit", "rollback"} {
			done := strings.ToUpper(ends)
			lost, kept := gone, "INSERT 0 1"
			deleted := "error 23503 update or delete on table \"fk_p\" violates foreign key constraint \"fk_c_p_fkey\" on table \"fk_c\""
			if ends == "rollback" {
				lost, deleted = kept, "DELETE 1"
			} else {
				kept = deleted
			}
			s.run(strings.NewReplacer("LEVEL", level, "ENDS", ends, "DONE", done, "LOST", lost, "DELETED", deleted).Replace(`
				a: drop table if exists fk_c, fk_p
				a: create table fk_p (id int primary key, n int not null default 0)
				a: create table fk_c (id int primary key, p int references fk_p)
				a: insert into fk_p values (1), (2) → INSERT 0 2
				a: begin isolation level LEVEL → BEGIN
				b: begin isolation level LEVEL → BEGIN
				a: delete from fk_p where id = 1 → DELETE 1
				b: insert into fk_c values (1, 1) → waits
				a: ENDS → DONE
				b → LOST
				b: rollback → ROLLBACK
				a: begin isolation level LEVEL → BEGIN
				b: begin isolation level LEVEL → BEGIN
				a: insert into fk_c values (2, 2) → INSERT 0 1
				b: delete from fk_p where id = 2 → waits
				a: ENDS → DONE
				b → DELETED
				b: rollback → ROLLBACK
				a: select count(*) from fk_c c left join fk_p p on p.id = c.p where p.id is null → rows (0)
			`))
		}
	}
}

// Goal: an update of a parent's other columns and the insert of its children do not wait for each other, and neither do several inserts;
// FOR UPDATE keeps them out, the weaker locks do not. Method: blocks that overlap.
func TestForeignKeyHotParent(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists hot_c, hot_p
		a: create table hot_p (id int primary key, n int not null default 0)
		a: create table hot_c (id int primary key, p int references hot_p)
		a: insert into hot_p values (1) → INSERT 0 1
		a: begin isolation level read committed → BEGIN
		b: begin isolation level read committed → BEGIN
		a: insert into hot_c values (1, 1) → INSERT 0 1
		b: insert into hot_c values (2, 1) → INSERT 0 1
		c: update hot_p set n = n + 1 where id = 1 → UPDATE 1
		c: insert into hot_c values (3, 1) → INSERT 0 1
		a: update hot_p set n = n + 1 where id = 1 → UPDATE 1
		b: insert into hot_c values (4, 1) → INSERT 0 1
		c: insert into hot_c values (5, 1) → INSERT 0 1
		c: select id from hot_p for key share → rows (1)
		c: select id from hot_p for update skip locked → rows
		b: commit → COMMIT
		a: commit → COMMIT
		a: begin isolation level read committed → BEGIN
		a: select id from hot_p for no key update → rows (1)
		b: insert into hot_c values (6, 1) → INSERT 0 1
		a: commit → COMMIT
		a: begin isolation level read committed → BEGIN
		a: select id from hot_p for share → rows (1)
		b: insert into hot_c values (7, 1) → INSERT 0 1
		b: select id from hot_p for key share → rows (1)
		a: commit → COMMIT
		a: begin isolation level read committed → BEGIN
		a: select id from hot_p for update → rows (1)
		b: insert into hot_c values (8, 1) → waits
		a: commit → COMMIT
		b → INSERT 0 1
		a: begin isolation level read committed → BEGIN
		a: update hot_p set id = 1 where id = 1 → UPDATE 1
		b: insert into hot_c values (9, 1) → INSERT 0 1
		a: commit → COMMIT
		a: select count(*) from hot_c → rows (9)
	`)
}

// Goal: actions of a foreign key wait for the children that others change, and children that are committed while they wait are found.
func TestForeignKeyActionsWait(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists act_c, act_p
		a: create table act_p (id int primary key)
		a: create table act_c (id int primary key, p int references act_p on delete cascade on update cascade, n int default 0)
		a: insert into act_p values (1), (2) → INSERT 0 2
		a: insert into act_c values (1, 1), (2, 2) → INSERT 0 2
		a: begin isolation level read committed → BEGIN
		a: update act_c set n = 1 where id = 1 → UPDATE 1
		b: delete from act_p where id = 1 → waits
		a: insert into act_c values (3, 2) → INSERT 0 1
		a: commit → COMMIT
		b → DELETE 1
		a: select id from act_c order by id → rows (2) (3)
		a: begin isolation level read committed → BEGIN
		a: insert into act_c values (4, 2) → INSERT 0 1
		b: update act_p set id = 20 where id = 2 → waits
		a: commit → COMMIT
		b → UPDATE 1
		a: select id, p from act_c order by id → rows (2,20) (3,20) (4,20)
	`)
}

// Goal: sessions that insert children, delete parents, update parents and change their keys at random leave no child without a parent, and
// inserts of children of one parent do not fail. Method: statements of their own, and blocks at every isolation level.
func TestForeignKeyRandomSessions(t *testing.T) {
	ctx := testContext(t)
	setup := connect(t, "")
	for _, st := range []string{
		"drop table if exists rnd_c, rnd_p",
		"create table rnd_p (id int primary key, n int not null default 0)",
		"create table rnd_c (id serial primary key, p int references rnd_p, q int references rnd_p on delete cascade on update cascade)",
		"create index on rnd_c (q)",
		"insert into rnd_p select i from generate_series(0, 9) i",
	} {
		if _, err := setup.Exec(ctx, st); err != nil {
			t.Fatal(err)
		}
	}
	levels := []string{"", "read committed", "repeatable read", "serializable"}
	var wg sync.WaitGroup
	for w := range 8 {
		conn := connect(t, "")
		wg.Add(1)
		go func() {
			defer wg.Done()
			hostileKeys(t, conn, w, levels[w%len(levels)])
		}()
	}
	wg.Wait()
	var orphans int
	err := setup.QueryRow(ctx, `select count(*) from rnd_c c where p is not null and not exists (select 1 from rnd_p p where p.id = c.p)
		or q is not null and not exists (select 1 from rnd_p p where p.id = c.q)`).Scan(&orphans)
	if err != nil || orphans != 0 {
		t.Errorf("%d children without a parent, error %v", orphans, err)
	}
}

// hostileKeys runs one session of TestForeignKeyRandomSessions.
func hostileKeys(t *testing.T, conn *pgx.Conn, w int, level string) {
	ctx := testContext(t)
	for i := range 150 {
		k := (i*7 + w*3) % 10
		statements := []string{
			fmt.Sprintf("insert into rnd_c(p) values (%d)", k),
			fmt.Sprintf("insert into rnd_c(q) values (%d), (%d)", k, (k+1)%10),
			fmt.Sprintf("delete from rnd_p where id = %d", k),
			fmt.Sprintf("insert into rnd_p values (%d) on conflict do nothing", k),
			fmt.Sprintf("update rnd_p set n = n + 1 where id = %d", k),
			fmt.Sprintf("update rnd_p set id = %d where id = %d", (k+5)%10, k),
			fmt.Sprintf("delete from rnd_c where p = %d", k),
		}
		st := statements[(i+w)%len(statements)]
		if level != "" {
			st = "begin isolation level " + level + "; " + st + "; " + statements[(i*3+w)%len(statements)] + "; commit"
		}
		if err := conn.PgConn().Exec(ctx, st).Close(); err != nil {
			var e *pgconn.PgError
			if !errors.As(err, &e) {
				t.Errorf("%s: %v", st, err)
				return
			}
			switch e.Code {
			case "23503", "23505", "40001", "40P01":
			default:
				t.Errorf("%s: %v", st, err)
				return
			}
			if err := conn.PgConn().Exec(ctx, "rollback").Close(); err != nil {
				t.Error(err)
				return
			}
		}
	}
}
