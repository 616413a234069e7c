package observer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/percodb/percodb/node"
)

// Goal: observers run in all SQL processes of a cluster, over rows in several stores; one that stops, and one that starts, lose and
// double nothing. What one process commits wakes a consumer in another.
func TestCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	start := func(opts node.Options) *node.Node {
		t.Helper()
		opts.Version = "15.8"
		n, err := node.Start(ctx, opts)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	stop := func(n *node.Node) { n.Close(context.Background()) }
	oracle := start(node.Options{Role: node.RoleTSO, Data: t.TempDir(), RPCListen: "127.0.0.1:0"})
	defer stop(oracle)
	join := oracle.RPCAddr().String()
	for range 2 {
		defer stop(start(node.Options{Role: node.RoleKV, Data: t.TempDir(), RPCListen: "127.0.0.1:0", Join: join}))
	}
	front := func() (*node.Node, *testServer) {
		n := start(node.Options{Role: node.RoleSQL, Listen: "127.0.0.1:0", Join: join})
		pool, err := pgxpool.New(ctx, "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		return n, &testServer{t: t, ctx: ctx, pool: pool}
	}
	first, one := front()
	defer stop(first)
	defer one.pool.Close()
	second, two := front()
	one.exec("create table a (id int primary key, v int); create table b (id int primary key, n int)")
	one.exec("create observer o on a as 'insert into b values (key.id, 1) on conflict (id) do update set n = b.n + 1'")
	one.exec("create observer clients on a")
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := one.pool.Exec(ctx, "insert into a values ($1, 0)", w*1000+i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	two.eventually("true", "select count(*) > 50 from b")
	two.pool.Close()
	stop(second)
	third, three := front()
	defer stop(third)
	defer three.pool.Close()
	wg.Wait()
	three.exec("wait for observer o")
	three.want("200 1", "select count(*) || ' ' || max(n) from b")

	three.want("200", "select count(*) from percodb.changes('clients', 1000)")
	time.AfterFunc(100*time.Millisecond, func() { _, _ = one.pool.Exec(ctx, "update a set v = 1 where id = 7") })
	began := time.Now()
	three.want("7", "select id from percodb.changes('clients', wait => '10min')")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("a change arrived after %s", took)
	}
}
