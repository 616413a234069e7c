package wire_test

import "testing"

// Goal: a dump reads what it has found in the catalogs: within its snapshot a table stays the table that it was, whatever its owner puts in its place.
func TestCVE_2024_7348(t *testing.T) {
	h := startHoles(t, append(spy, "set role alice", "create table spy.plain (id int)", "insert into spy.plain values (7)", "create sequence spy.s", "reset role")...)
	h.try("postgres", attempt{"begin isolation level repeatable read, read only; select relkind from pg_class where relname = 'plain'", "r"})
	execAll(t, h.roles["alice"], "drop table spy.plain", "create view spy.plain as select spy.attack(1) as id", "drop sequence spy.s", "create view spy.s as select spy.attack(1) as last_value, true as is_called")
	h.try("postgres", attempt{"select relkind from pg_class where relname = 'plain'", "r"}, attempt{"copy spy.plain (id) to stdout", ""}, attempt{"select * from only spy.plain", "7"},
		attempt{"select last_value from spy.s", "1"}, attempt{"commit", ""}, attempt{"select * from spy.note", ""})
}
