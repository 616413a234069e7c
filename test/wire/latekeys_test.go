package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Goal: of two transactions that give rows values that exclude each other under a deferrable unique key or an exclusion constraint, the second
// waits for the first, and fails if it commits; one that takes a value which the first gives up waits, too, and succeeds. Method: each pair in
// blocks, at every isolation level, the first committing or rolling back.
func TestLateKeyConcurrency(t *testing.T) {
	s := newScript(t)
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		for _, ends := range []string{"commit", "rollback"} {
			unique := `error 23505 duplicate key value violates unique constraint "late_a_key"`
			excluded := `error 23P01 conflicting key value violates exclusion constraint "late_r_excl"`
			taken, freed := []string{unique, excluded}, []string{"INSERT 0 1", "INSERT 0 1"}
			if ends == "rollback" {
				taken, freed = freed, taken
			}
			s.run(strings.NewReplacer("LEVEL", level, "ENDS", ends, "DONE", strings.ToUpper(ends),
				"UNIQUE", taken[0], "EXCLUDED", taken[1], "FREED", freed[0], "LEFT", freed[1]).Replace(`
				a: drop table if exists late
				a: create table late (id int primary key, a int unique deferrable, r int4range, exclude using gist (r with &&))
				a: begin isolation level LEVEL → BEGIN
				b: begin isolation level LEVEL → BEGIN
				a: insert into late values (1, 1) → INSERT 0 1
				b: insert into late values (2, 1) → waits
				a: ENDS → DONE
				b → UNIQUE
				b: rollback → ROLLBACK
				a: begin isolation level LEVEL → BEGIN
				b: begin isolation level LEVEL → BEGIN
				a: insert into late values (3, null, '[1,9)') → INSERT 0 1
				b: insert into late values (4, null, '[3,5)') → waits
				a: ENDS → DONE
				b → EXCLUDED
				b: rollback → ROLLBACK
				a: truncate late
				a: insert into late values (5, 5, '[50,60)') → INSERT 0 1
				a: begin isolation level LEVEL → BEGIN
				b: begin isolation level LEVEL → BEGIN
				a: delete from late → DELETE 1
				b: insert into late values (6, 5) → waits
				a: ENDS → DONE
				b → FREED
				b: rollback → ROLLBACK
				a: truncate late
				a: insert into late values (5, 5, '[50,60)') → INSERT 0 1
				a: begin isolation level LEVEL → BEGIN
				b: begin isolation level LEVEL → BEGIN
				a: delete from late → DELETE 1
				b: insert into late values (6, 6, '[55,57)') → waits
				a: ENDS → DONE
				b → LEFT
				b: rollback → ROLLBACK
			`))
		}
	}
}

// Goal: a deferred key is checked by the commit, which waits for others that have the value. Method: two blocks, both with the value, commit.
func TestLateKeyCommit(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists late_d
		a: create table late_d (id int primary key, a int unique deferrable initially deferred)
		a: begin → BEGIN
		b: begin → BEGIN
		a: insert into late_d values (1, 1) → INSERT 0 1
		b: insert into late_d values (2, 1)
		a: commit → COMMIT
		b: commit → error 23505 duplicate key value violates unique constraint "late_d_a_key"
	`)
}

// Goal: clients that insert values at random, in statements of their own and in blocks, never leave two rows that exclude each other. Method:
// eight clients over few values; afterwards the rows are compared with each other.
func TestLateKeyLoad(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists late_l
		a: create table late_l (id int generated always as identity primary key, a int unique deferrable initially deferred, r int4range, exclude using gist (r with &&))
	`)
	var wg sync.WaitGroup
	for client := range 8 {
		conn := connect(t, "")
		wg.Go(func() {
			for i := range 40 {
				n := (client*7 + i*13) % 30
				insert := fmt.Sprintf("insert into late_l (a, r) values (%d, int4range(%d, %d))", n, n*3, n*3+4)
				if i%2 == 0 {
					insert = "begin; " + insert + "; commit"
				}
				_, err := conn.Exec(t.Context(), insert)
				var pg *pgconn.PgError
				if errors.As(err, &pg) && (pg.Code == "23505" || pg.Code == "23P01" || pg.Code == "40P01" || pg.Code == "40001") {
					_, err = conn.Exec(t.Context(), "rollback")
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	s.run(`
		a: select count(*) from late_l x join late_l y on x.id < y.id and (x.a = y.a or x.r && y.r) → rows (0)
	`)
}
