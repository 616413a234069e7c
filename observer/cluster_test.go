package observer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/percodb/percodb/node"
)

// testCluster is an oracle and two stores, for SQL processes.
type testCluster struct {
	t    *testing.T
	ctx  context.Context
	join string
}

func newCluster(t *testing.T) *testCluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c := &testCluster{t: t, ctx: ctx}
	oracle := c.start(node.Options{Role: node.RoleTSO, Data: t.TempDir(), RPCListen: "127.0.0.1:0"})
	t.Cleanup(func() { oracle.Close(context.Background()) })
	c.join = oracle.RPCAddr().String()
	for range 2 {
		store := c.start(node.Options{Role: node.RoleKV, Data: t.TempDir(), RPCListen: "127.0.0.1:0", Join: c.join})
		t.Cleanup(func() { store.Close(context.Background()) })
	}
	return c
}

func (c *testCluster) start(opts node.Options) *node.Node {
	c.t.Helper()
	opts.Version = "15.8"
	n, err := node.Start(c.ctx, opts)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// front starts a SQL process, which stops with the test unless the test stops it.
func (c *testCluster) front() *testServer {
	c.t.Helper()
	n := c.start(node.Options{Role: node.RoleSQL, Listen: "127.0.0.1:0", Join: c.join})
	pool, err := pgxpool.New(c.ctx, "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
	if err != nil {
		c.t.Fatal(err)
	}
	s := &testServer{t: c.t, ctx: c.ctx, node: n, pool: pool}
	c.t.Cleanup(s.stop)
	return s
}

// Goal: observers run in all SQL processes of a cluster, over rows in several stores; one that stops, and one that starts, lose and
// double nothing. What one process commits wakes a consumer in another.
func TestCluster(t *testing.T) {
	c := newCluster(t)
	one, two := c.front(), c.front()
	one.exec("create table a (id int primary key, v int); create table b (id int primary key, n int)")
	one.exec("create observer o on a as 'insert into b values (key.id, 1) on conflict (id) do update set n = b.n + 1'")
	one.exec("create observer clients on a")
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := one.pool.Exec(c.ctx, "insert into a values ($1, 0)", w*1000+i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	two.eventually("true", "select count(*) > 50 from b")
	two.stop()
	three := c.front()
	wg.Wait()
	three.exec("wait for observer o")
	three.want("200 1", "select count(*) || ' ' || max(n) from b")

	three.want("200", "select count(*) from percodb.changes('clients', 1000)")
	time.AfterFunc(100*time.Millisecond, func() { _, _ = one.pool.Exec(c.ctx, "update a set v = 1 where id = 7") })
	began := time.Now()
	three.want("7", "select id from percodb.changes('clients', wait => '10min')")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("a change arrived after %s", took)
	}
}

// Goal: a SQL process that is to stop passes the changes on that its observers have claimed, although a client's statement goes on.
// Method: a body that ends under the next snapshot only; a drain that lasts until the test ends it.
func TestDrainingProcessReleasesChanges(t *testing.T) {
	c := newCluster(t)
	two := c.front()
	two.exec("create table a (id int primary key); create table b (id int primary key); create table length (n bigint); create sequence runs")
	two.exec("insert into length values (1000000000000)")
	two.exec(`create observer o on a as $$
		select nextval('runs'); select count(*) from length, generate_series(1, n); insert into b values (key.id) $$`)
	two.exec("insert into a values (1)")
	two.eventually("true", "select coalesce(last_value >= 1, false) from pg_sequences where sequencename = 'runs'")
	one := c.front()
	one.exec("update length set n = 0")

	ended := make(chan error)
	go func() {
		_, err := two.pool.Exec(c.ctx, "select pg_sleep(3600)", pgx.QueryExecModeSimpleProtocol)
		ended <- err
	}()
	two.eventually("1", "select count(*) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()")
	drain, cancel := context.WithCancel(c.ctx)
	defer cancel()
	drained := make(chan struct{})
	go func() {
		two.node.Close(drain)
		close(drained)
	}()
	one.exec("wait for observer o")
	one.want("1", "select count(*) from b")
	select {
	case err := <-ended:
		t.Errorf("the statement has ended: %v", err)
	default:
	}
	cancel()
	if err := <-ended; code(err) != "57P01" {
		t.Error(err)
	}
	<-drained
	two.node = nil
}
