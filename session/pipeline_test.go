package session

import "testing"

// Goal: the statements between two Syncs share a transaction, and the answer to each comes once and in its place although
// the first runs again. Method: transcripts of what the client is sent.
func TestPipelines(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key, n int)", "insert into t values (1, 0), (2, 0), (3, 0)")
	for _, step := range []struct{ got, want string }{
		{c.pipeline("select n from t where id = 1"), "parsed; row 0; SELECT 1; I"},
		{c.pipeline("select n from t where id = $1 | 1", "select n from t where id = $1 | 2"), "parsed; row 0; SELECT 1; parsed; row 0; SELECT 1; I"},
		{c.pipeline("select n from t where id = 1", "update t set n = 1 where id = 2"), "parsed; row 0; SELECT 1; parsed; UPDATE 1; I"},
		{c.pipeline("update t set n = 2 where id = 1", "select n from t where id = 1"), "parsed; UPDATE 1; parsed; row 2; SELECT 1; I"},
		{c.pipeline("insert into t values (4, 0)", "insert into t values (4, 0)"), "parsed; INSERT 0 1; parsed; error 23505; I"},
		{c.pipeline("insert into t values (1, 0)"), "parsed; error 23505; I"},
		{c.pipeline("insert into t values (1, 0)", "select 1"), "parsed; error 23505; I"},
		{c.pipeline("select n from t where id = $1 | x"), "parsed; error 22P02; I"},
		{c.pipeline("select n from t where id = 1", "nonsense"), "parsed; row 2; SELECT 1; error 42601; I"},
		{c.pipeline("2: select id from t order by id"), "parsed; row 1; row 2; suspended; I"},
		{c.pipeline("2: show transaction_isolation"), "parsed; row repeatable read; SHOW; I"},
		{c.pipeline("begin", "insert into t values (4, 0)"), "parsed; BEGIN; parsed; INSERT 0 1; T"},
		{c.pipeline("insert into t values (4, 0)"), "parsed; error 23505; E"},
		{c.pipeline("select 1"), "error 25P02; E"},
		{c.pipeline("rollback"), "parsed; ROLLBACK; I"},
		{c.query("select id, n from t order by id"), "columns id n; row 1 2; row 2 1; row 3 0; SELECT 3; I"},
		{c.query(""), "empty; I"},
		{c.pipeline(""), "parsed; empty; I"},
	} {
		if step.got != step.want {
			t.Errorf("got %s, want %s", step.got, step.want)
		}
	}
}

// Goal: what a pipeline has SET stays when a transaction that takes locks replaces its own, and is undone when the pipeline fails.
func TestSettingsInPipeline(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key, n int)", "insert into t values (1, 0)", "set default_transaction_isolation = 'read committed'")
	for _, step := range []struct{ got, want string }{
		{c.pipeline("set datestyle = 'German'", "select id from t", "update t set n = 1 where id = 1"),
			"parsed; SET; parsed; row 1; SELECT 1; parsed; UPDATE 1; I"},
		{c.query("show datestyle"), "columns DateStyle; row German, DMY; SHOW; I"},
		{c.pipeline("set datestyle = 'SQL, MDY'", "update t set n = 2 where id = 1", "insert into t values (1, 0)"),
			"parsed; SET; parsed; UPDATE 1; parsed; error 23505; I"},
		{c.query("show datestyle"), "columns DateStyle; row German, DMY; SHOW; I"},
	} {
		if step.got != step.want {
			t.Errorf("got %s, want %s", step.got, step.want)
		}
	}
}

// Goal: a schema change joins the transaction of its pipeline: what the pipeline has written before it is committed with
// it, and rolled back with it.
func TestSchemaChangeInPipeline(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key)")
	for _, step := range []struct{ got, want string }{
		{c.pipeline("insert into t values (1)", "create table u (id int primary key)", "insert into u values (2)"),
			"parsed; INSERT 0 1; parsed; CREATE TABLE; parsed; INSERT 0 1; I"},
		{c.query("select t.id, u.id from t, u"), "columns id id; row 1 2; SELECT 1; I"},
		{c.pipeline("insert into t values (2)", "create table v (id int primary key)", "insert into t values (2)"),
			"parsed; INSERT 0 1; parsed; CREATE TABLE; parsed; error 23505; I"},
		{c.query("select id from t"), "columns id; row 1; SELECT 1; I"},
		{c.query("select * from v"), "error 42P01; I"},
	} {
		if step.got != step.want {
			t.Errorf("got %s, want %s", step.got, step.want)
		}
	}
}

// Goal: portals of one transaction that are fetched from in turns go on where they were, each with its own columns.
func TestPortalsInTurns(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key, s text)", "insert into t values (1, 'a'), (2, 'b'), (3, 'c')", "begin")
	for name, text := range map[string]string{"ids": "select id from t order by id", "texts": "select s, id from t order by id desc"} {
		if err := c.Parse(name, text, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Bind(BindRequest{Portal: name, Statement: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		portal string
		rows   int
		want   string
	}{
		{"ids", 1, "row 1; suspended; T"},
		{"texts", 2, "row c 3; row b 2; suspended; T"},
		{"ids", 1, "row 2; suspended; T"},
		{"ids", 0, "row 3; SELECT 1; T"},
		{"texts", 0, "row a 1; SELECT 1; T"},
		{"texts", 0, "SELECT 0; T"},
		{"none", 0, "error 34000; E"},
		{"ids", 0, "error 25P02; E"},
	} {
		if got := c.report(c.Execute(step.portal, step.rows, &c.recordingWriter)); got != step.want {
			t.Errorf("%s: got %s, want %s", step.portal, got, step.want)
		}
	}
}
