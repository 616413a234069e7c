package wire_test

import "testing"

// Goal: under percodb.dialect a connection's texts are MySQL's, plans of the two dialects are kept apart, and a statement
// that becomes several runs whole. Method: transcripts.
func TestMySQLDialect(t *testing.T) {
	r := open(t)
	r.query("drop table if exists dialect_t")
	cases := []struct{ name, text, want string }{
		{"postgresql", "select 'a' || 'b' as x", "columns x:25/0\nrow ab\ncomplete SELECT 1\nready I\n"},
		{"set", "set percodb.dialect = 'mysql'", "complete SET\nready I\n"},
		{"the same text", "select 1 || 0 as x", "columns x:23/0\nrow 1\ncomplete SELECT 1\nready I\n"},
		{"table with key", "create table dialect_t (id int primary key, v int, key k (v))", "complete CREATE TABLE\ncomplete CREATE INDEX\nready I\n"},
		{"on duplicate key", "insert into dialect_t values (1, 1); insert into dialect_t values (1, 5) on duplicate key update v = v + values(v)",
			"complete INSERT 0 1\ncomplete INSERT 0 1\nready I\n"},
		{"replace", "replace into dialect_t (id) values (2)", "complete INSERT 0 1\nready I\n"},
		{"rows", "select id, v from dialect_t order by v limit 0, 2", "columns id:23/0 v:23/0\nrow 2|\nrow 1|6\ncomplete SELECT 2\nready I\n"},
		{"a literal", "select v from dialect_t where id = 1 and 'x' = 'x'", "columns v:23/0\nrow 6\ncomplete SELECT 1\nready I\n"},
		{"another one", "select v from dialect_t where id = 2 and 'x' = 'x'", "columns v:23/0\nrow \ncomplete SELECT 1\nready I\n"},
		{"none", "select v from dialect_t where id = 1 and 'x' = 'y'", "columns v:23/0\ncomplete SELECT 0\nready I\n"},
		{"not an integer", "select v from dialect_t where id = 'y'", "error 22P02 invalid input syntax for type integer: \"y\"\nready I\n"},
		{"order by 1", "select id, v from dialect_t order by 1", "columns id:23/0 v:23/0\nrow 1|6\nrow 2|\ncomplete SELECT 2\nready I\n"},
		{"order by 2", "select id, v from dialect_t order by 2", "columns id:23/0 v:23/0\nrow 2|\nrow 1|6\ncomplete SELECT 2\nready I\n"},
		{"show", "show columns from dialect_t like 'i%'", "columns Field:19/0 Type:1043/0 Null:1043/0 Default:1043/0\nrow id|integer|NO|\ncomplete SELECT 1\nready I\n"},
		{"second key", "create unique index u on dialect_t (v)", "complete CREATE INDEX\nready I\n"},
		{"several unique keys", "replace into dialect_t (id) values (2)", "error 0A000 ON DUPLICATE KEY UPDATE or REPLACE on a table with several unique keys is not supported\nready I\n"},
		{"syntax", "select from", "error 42601 syntax error at or near \"from\"\nready I\n"},
		{"drop", "drop table dialect_t", "complete DROP TABLE\nready I\n"},
		{"back", "set percodb.dialect = 'postgresql'", "complete SET\nready I\n"},
		{"postgresql again", "select 'a' || 'b' as x", "columns x:25/0\nrow ab\ncomplete SELECT 1\nready I\n"},
	}
	for _, c := range cases {
		expect(t, c.name, r.query(c.text), c.want)
	}
}
