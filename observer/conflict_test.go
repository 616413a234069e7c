package observer_test

import "testing"

// Goal: bodies that change the same row, whose transactions are optimistic until one conflicts, and bodies that lock rows, also if they come in
// the place of others, handle each change once, upon what the change before has left.
func TestBodiesThatConflict(t *testing.T) {
	s := newServer(t)
	s.exec("create table a (id int primary key, v int); create table b (id int, n int); create table c (id int primary key, n int)")
	s.exec("insert into c values (1, 0)")
	s.exec("create observer o on a as 'insert into b select key.id, n from c where id = 1; update c set n = n + 1 where id = 1'")
	s.exec("insert into a select g, 0 from generate_series(1, 100) g")
	s.exec("wait for observer o")
	s.want("100 100 100", "select count(*) || ' ' || count(distinct n) || ' ' || (select n from c) from b")
	s.exec("update a set v = 1 where id <= 50")
	s.exec("create or replace observer o on a as 'insert into b select key.id, n from c where id = 1 for update; update c set n = n + 1 where id = 1'")
	s.exec("update a set v = 2 where id > 50")
	s.exec("wait for observer o")
	s.want("200 200 200", "select count(*) || ' ' || count(distinct n) || ' ' || (select n from c) from b")
}
