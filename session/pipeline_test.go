package session

import (
	"strings"
	"testing"
)

// Goal: a schema change joins the transaction of its pipeline: what the pipeline has written before it is committed with
// it, and rolled back with it.
func TestSchemaChangeInPipeline(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create table t (id int primary key)")
	for _, step := range []struct{ got, want string }{
		{c.execute("insert into t values (1)", 0), ""},
		{c.execute("create table u (id int primary key)", 0), ""},
		{c.execute("insert into u values (2)", 0), ""},
		{c.sync(), "I"},
		{c.query("select t.id, u.id from t, u"), "columns id id; row 1 2; SELECT 1; I"},
		{c.execute("insert into t values (2)", 0), ""},
		{c.execute("create table v (id int primary key)", 0), ""},
		{c.execute("insert into t values (2)", 0), "23505"},
		{c.sync(), "I"},
		{c.query("select id from t"), "columns id; row 1; SELECT 1; I"},
		{c.query("select * from v"), "error 42P01; I"},
	} {
		if !strings.HasSuffix(step.got, step.want) {
			t.Errorf("got %s, want %s", step.got, step.want)
		}
	}
}
