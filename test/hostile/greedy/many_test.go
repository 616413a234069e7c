package greedy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Goal: what clients keep open without end is cheap or bounded. Method: idle connections up to the limit and one more; 100,000
// savepoints, pipelined messages and statements of a text; 65,535 parameters; portals WITH HOLD.
func TestManyOfEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	const idle, most = 800, 100 << 10 // connections, and the bytes of each
	s := start(t, "--memory", "1GB", "--max-connections", fmt.Sprint(idle+4))
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create role client login"); err != nil {
		t.Fatal(err)
	}
	client, err := pgconn.ParseConfig(s.dsn) // The last slots are the superuser's.
	if err != nil {
		t.Fatal(err)
	}
	client.User = "client"
	before := s.resident(t, "VmRSS")
	for range idle {
		c, err := pgconn.ConnectConfig(ctx, client)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		if _, err := c.Exec(ctx, "select 1").ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	if each := (s.resident(t, "VmRSS") - before) / idle; each > most {
		t.Errorf("an idle connection takes %d bytes", each)
	} else {
		t.Logf("%d bytes for an idle connection", each)
	}
	var answer *pgconn.PgError
	if c, err := pgconn.ConnectConfig(ctx, client); !errors.As(err, &answer) || answer.Code != "53300" {
		t.Errorf("one more: %v %v", c, err)
	}

	exec := func(sql string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Errorf("%.60s: %v", sql, err)
		}
	}
	const many = 100_000
	exec("create table many (id int primary key, v int); insert into many values (1, 0)")
	exec(strings.Repeat("select 1;", many))
	exec("begin; " + strings.Repeat("savepoint s;", many) + "update many set v = v + 1; rollback to s; commit")
	exec("begin; " + strings.Repeat("savepoint s; update many set v = v + 1;", 2000) + "commit")
	held := &strings.Builder{}
	for i := range 2000 {
		fmt.Fprintf(held, "declare c%d cursor with hold for select repeat('x', 1000);", i)
	}
	exec("begin; " + held.String() + "commit")
	batch := &pgx.Batch{}
	for range many / 4 {
		batch.Queue("update many set v = v + $1", 1)
	}
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		t.Errorf("pipeline: %v", err)
	}
	var v int
	if err := conn.QueryRow(ctx, "select v from many").Scan(&v); err != nil || v != 2000+many/4 {
		t.Errorf("v = %d, %v", v, err)
	}
	values, args := &strings.Builder{}, make([]any, 65535)
	for i := range args {
		fmt.Fprintf(values, ",($%d::int)", i+1)
		args[i] = i
	}
	if err := conn.QueryRow(ctx, "select count(*) from (values "+values.String()[1:]+") v", args...).Scan(&v); err != nil || v != len(args) {
		t.Errorf("%d parameters: %d, %v", len(args), v, err)
	}
	if _, err := conn.Prepare(ctx, "more", "select $65536::int"); !errors.As(err, &answer) {
		t.Errorf("parameter 65536: %v", err)
	}
	if peak := s.resident(t, "VmHWM"); peak > 1200<<20 {
		t.Errorf("%d MB were resident", peak>>20)
	}
}
