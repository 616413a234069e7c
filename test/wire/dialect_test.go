package wire_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// Goal: under percodb.dialect a connection's statements are MySQL's, the plans of the two dialects are separate, and a
// statement that becomes several is atomic. Method: transcripts.
func TestMySQLDialect(t *testing.T) {
	r := open(t)
	r.query("drop table if exists dialect_t")
	cases := []struct{ name, text, want string }{
		{"postgresql", "select 'a' || 'b' as x", "columns x:25/0\nrow ab\ncomplete SELECT 1\nready I\n"},
		{"set", "set percodb.dialect = 'mysql'", "complete SET\nready I\n"},
		{"the same text", "select 1 || 0 as x", "columns x:23/0\nrow 1\ncomplete SELECT 1\nready I\n"},
		{"table with key", "create table dialect_t (id int primary key, v int, key k (v))", "complete CREATE TABLE\nready I\n"},
		{"if not exists", "create table if not exists dialect_t (id int primary key, v int, key k (v), key l (v))", "notice 42P07 relation \"dialect_t\" already exists, skipping\ncomplete CREATE TABLE\nready I\n"},
		{"the key is there", "create index k on dialect_t (v)", "error 42P07 relation \"dialect_t_k\" already exists\nready I\n"},
		{"a key twice", "create table dialect_u (a int, key k (a), key k (a))", "error 42P07 relation \"dialect_u_k\" already exists\nready I\n"},
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

// Goal: statements of MySQL's dialect with parameters, as ? and as $1, and CREATE TABLE with keys work in the extended
// protocol.
func TestMySQLExtended(t *testing.T) {
	ctx := testContext(t)
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+address+"/percodb?sslmode=disable&percodb.dialect=mysql")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(ctx, text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	exec("DROP TABLE IF EXISTS dialect_x")
	if _, err := conn.Prepare(ctx, "create", "CREATE TABLE dialect_x (id INT PRIMARY KEY, v VARCHAR(9), n BIGINT, KEY v (v), KEY n (n, v))"); err != nil {
		t.Fatal(err)
	}
	exec("create")
	exec("INSERT INTO dialect_x VALUES (?, ?, ?), (2, ?, 7)", 1, "a", 5, "b")
	exec("INSERT INTO dialect_x VALUES ($2, $1, $2)", "c", 3)
	exec("INSERT INTO dialect_x (id, n) VALUES (?, ?) ON DUPLICATE KEY UPDATE n = n + VALUES(n)", 1, 10)
	for _, c := range []struct {
		text string
		args []any
		want string
	}{
		{"SELECT v FROM dialect_x WHERE id = ? AND n = ?", []any{1, 15}, "a"},
		{"SELECT v FROM dialect_x WHERE n = $2 AND id = $1", []any{3, 3}, "c"},
		{"SELECT v FROM dialect_x ORDER BY id LIMIT ?, ?", []any{1, 1}, "b"},
		{"SELECT v FROM dialect_x ORDER BY id LIMIT $2 OFFSET $1", []any{2, 1}, "c"},
		{"SELECT CONCAT('$1?', v) FROM dialect_x WHERE v = $1 /* $2 ? */", []any{"b"}, "$1?b"},
	} {
		var got string
		if err := conn.QueryRow(ctx, c.text, c.args...).Scan(&got); err != nil || got != c.want {
			t.Errorf("%s %v: %q, %v, want %q", c.text, c.args, got, err, c.want)
		}
	}
}
