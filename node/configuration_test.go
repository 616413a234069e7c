package node

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Goal: pg_reload_conf has every SQL process of a cluster load what ALTER SYSTEM has stored.
// Method: a client of one process stores and reloads; a session of the other one is asked until it has the value.
func TestReloadReachesOtherProcesses(t *testing.T) {
	oracle := start(t, Options{Role: RoleTSO, Data: t.TempDir(), RPCListen: "127.0.0.1:0"})
	join := oracle.RPCAddr().String()
	start(t, Options{Role: RoleKV, Data: t.TempDir(), RPCListen: "127.0.0.1:0", Join: join})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connect := func() *pgx.Conn {
		t.Helper()
		n := start(t, Options{Role: RoleSQL, Listen: "127.0.0.1:0", Join: join, SchemaLease: time.Second})
		conn, err := pgx.Connect(ctx, "postgres://postgres@"+n.Addr().String()+"/percodb")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn
	}
	one, other := connect(), connect()
	for _, s := range []string{"alter system set lock_timeout = '77s'", "select pg_reload_conf()"} {
		if _, err := one.Exec(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	for value := ""; value != "77s"; {
		if err := other.QueryRow(ctx, "show lock_timeout").Scan(&value); err != nil {
			t.Fatal(err)
		}
	}
}
