package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/internal/process"
)

// Goal: CREATE and DROP DATABASE happen wholly or not at all when the server is killed in the middle: each database that is listed can be used, and
// has what the acknowledged statements made; one whose DROP was acknowledged is gone, and a new one of the name is empty; check finds nothing.
// Method: a client makes, fills and drops databases without end, until the process is killed at a random moment.
func TestKillInDatabases(t *testing.T) {
	binary, err := process.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	for round := range 4 {
		p, err := process.Start(binary, nil, "start", "--listen", "127.0.0.1:0", "--data", data)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		addr, err := p.AwaitReady(t.Context())
		if err != nil {
			t.Fatal(err, p.Output())
		}
		verifyDatabases(t, addr)
		ended := make(chan error)
		go func() { ended <- makeDatabases(t.Context(), addr, round) }()
		select {
		case err := <-ended:
			t.Fatalf("before the kill: %v", err)
		case <-time.After(time.Second + rand.N(time.Second)):
		}
		p.Kill()
		<-ended
	}
}

func connectTo(ctx context.Context, addr, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, "postgres://postgres@"+addr+"/"+database+"?sslmode=disable")
}

// makeDatabases makes and drops databases until an error.
func makeDatabases(ctx context.Context, addr string, round int) error {
	admin, err := connectTo(ctx, addr, "percodb")
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("made_%d_%d", round, i)
		if _, err := admin.Exec(ctx, "create database "+name); err != nil {
			return err
		}
		c, err := connectTo(ctx, addr, name)
		if err != nil {
			return err
		}
		// One transaction: the table is there with its rows, or not at all.
		_, err = c.Exec(ctx, "create table t (id serial primary key, v text unique); insert into t (v) select 'row ' || g from generate_series(1, 100) g; create view w as select * from t")
		if err != nil {
			return err
		}
		if err := c.Close(ctx); err != nil {
			return err
		}
		if i%3 == 0 {
			continue
		}
		if _, err := admin.Exec(ctx, "drop database "+name); err != nil {
			return err
		}
		if _, err := admin.Exec(ctx, "create database "+name); err != nil {
			return err
		}
		if _, err := admin.Exec(ctx, "drop database "+name); err != nil {
			return err
		}
	}
}

// verifyDatabases uses every database, drops it, and has the server checked.
func verifyDatabases(t *testing.T, addr string) {
	t.Helper()
	ctx := t.Context()
	admin, err := connectTo(ctx, addr, "percodb")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	rows, err := admin.Query(ctx, "select datname::text from pg_database where datname like 'made%'")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		c, err := connectTo(ctx, addr, name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var relations int
		if err := c.QueryRow(ctx, "select count(*) from pg_class where relname in ('t', 'w', 't_pkey', 't_v_key', 't_id_seq')").Scan(&relations); err != nil || relations != 0 && relations != 5 {
			t.Errorf("%s has %d relations: %v", name, relations, err)
		}
		if relations == 5 {
			var n, last int
			if err := c.QueryRow(ctx, "select count(*), max(id) from w").Scan(&n, &last); err != nil || n != 100 {
				t.Errorf("%s has %d rows: %v", name, n, err)
			}
			if _, err := c.Exec(ctx, "insert into t (v) values ('one more')"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		c.Close(ctx)
		if _, err := admin.Exec(ctx, "drop database "+name); err != nil {
			t.Errorf("drop %s: %v", name, err)
		}
	}
	t.Logf("%d databases after a kill", len(names))
}
