package damage

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// mountSmall mounts a small filesystem.
func mountSmall(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small filesystem cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

const insert = "insert into filler select coalesce(max(id), 0) + 1, (select string_agg(md5(random()::text), '') from generate_series(1, 30000)) from filler"

func isDiskFull(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "53100"
}

// fill inserts until the disk is full, and returns how many rows were acknowledged.
func fill(t *testing.T, conn *pgx.Conn) (rows int) {
	t.Helper()
	for range 2000 {
		_, err := conn.Exec(t.Context(), insert)
		if isDiskFull(err) {
			if err := conn.QueryRow(t.Context(), "select count(*) from filler").Scan(&rows); err != nil {
				t.Fatalf("a read on the full disk: %v", err)
			}
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the disk is never full")
	return 0
}

func wantRows(t *testing.T, conn *pgx.Conn, want int) {
	t.Helper()
	var rows int
	if err := conn.QueryRow(t.Context(), "select count(*) from filler where length(v) = 960000").Scan(&rows); err != nil || rows != want {
		t.Errorf("%d rows, %v; %d were acknowledged", rows, err, want)
	}
}

// Goal: a server whose disk fills up refuses writes with 53100, answers reads, also after kill -9 and a start on the full
// disk, and with not a byte free; it takes writes again by itself when there is room. Method: a mount of 256 MB, 80 MB of them
// a file of somebody else's.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := mountSmall(t, "256m")
	other := filepath.Join(disk, "other")
	if err := os.WriteFile(other, make([]byte, 80<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, addr, dir := build(t), freeAddr(t), filepath.Join(disk, "data")
	p := launch(t, binary, "--listen", addr, "--data", dir)
	conn := connect(t, p, addr)
	mustExec(t, conn, "create table filler (id int primary key, v text)")
	rows := fill(t, conn)
	t.Logf("full with %d MB of data", rows*960_000>>20)
	if rows < 80 {
		t.Errorf("the disk was full with %d rows of 1 MB", rows)
	}
	wantRows(t, conn, rows)
	p.Kill()

	p = launch(t, binary, "--listen", addr, "--data", dir)
	if conn = connect(t, p, addr); conn == nil {
		t.Fatalf("the server does not start on a full disk:\n%s", p.Output())
	}
	wantRows(t, conn, rows)
	rows = fill(t, conn)
	for i := 0; ; i++ { // somebody else takes the rest
		f, err := os.OpenFile(other, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(make([]byte, 1<<20))
		_ = f.Close()
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
	}
	wantRows(t, conn, rows)
	if _, err := conn.Exec(t.Context(), insert); !isDiskFull(err) {
		t.Errorf("insert with not a byte free: %v", err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		_, err := conn.Exec(t.Context(), insert)
		if err == nil {
			break
		}
		if !isDiskFull(err) || time.Now().After(deadline) {
			t.Fatalf("insert after 80 MB were freed: %v\n%s", err, p.Output())
		}
	}
	wantRows(t, conn, rows+1)
	end(t, p)
	p = launch(t, binary, "--listen", addr, "--data", dir)
	if conn = connect(t, p, addr); conn == nil {
		t.Fatalf("the server does not start again:\n%s", p.Output())
	}
	wantRows(t, conn, rows+1)
}

// Goal: one store's full disk does not stop the others. Method: a cluster of two stores, one of them on a small mount; tables
// of both.
func TestFullDiskOfOneStore(t *testing.T) {
	t.Parallel()
	disk := mountSmall(t, "64m")
	binary, join, addr := build(t), freeAddr(t), freeAddr(t)
	launch(t, binary, "--role=tso", "--rpc-listen", join, "--data", filepath.Join(t.TempDir(), "tso"))
	small := launch(t, binary, "--role=kv", "--join", join, "--data", filepath.Join(disk, "kv1"))
	launch(t, binary, "--role=kv", "--join", join, "--data", filepath.Join(t.TempDir(), "kv2"))
	p := launch(t, binary, "--role=sql", "--join", join, "--listen", addr)
	conn := connect(t, p, addr)
	tables := []string{"t1", "t2", "t3", "t4"}
	for _, table := range tables {
		mustExec(t, conn, "create table "+table+" (id int primary key, v text)")
	}
	full, open := 0, 0
	row := "(select string_agg(md5(random()::text), '') from generate_series(1, 30000))"
	for _, table := range tables {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			_, err = conn.Exec(t.Context(), "insert into "+table+" select $1, "+row, i)
		}
		switch {
		case isDiskFull(err):
			full++
		case err != nil:
			t.Fatalf("%s: %v", table, err)
		default:
			open++
		}
	}
	if full == 0 || open == 0 {
		t.Errorf("%d tables met the full disk, %d did not", full, open)
	}
	for _, table := range tables {
		var n int
		if err := conn.QueryRow(t.Context(), "select count(*) from "+table).Scan(&n); err != nil || n == 0 {
			t.Errorf("%s: %d rows, %v", table, n, err)
		}
	}
	if small.HasExited() {
		t.Errorf("the store with the full disk has ended:\n%s", small.Output())
	}
}
