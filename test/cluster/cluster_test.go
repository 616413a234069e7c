package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/process"
)

// waitTimeout bounds every wait of these tests.
const waitTimeout = 3 * time.Minute

// sideBySide is how many tests run at a time: nearly all of their time is that of leases and requests that expire.
const sideBySide = 6

var (
	binary string
	trial  string // the directory of the certificates of all deployments: their processes speak TLS
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		flag.Parse()
		if given := flag.Lookup("test.parallel"); given.Value.String() == given.DefValue {
			if err := given.Value.Set(strconv.Itoa(sideBySide)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		dir, err := os.MkdirTemp("", "percodb-cluster-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if binary, err = process.Build(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		trial = filepath.Join(dir, "certs")
		if err := certs.WriteTrial(trial, certs.Trial{Hosts: certs.Loopback}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// deployment is a cluster of processes of this test.
type deployment struct {
	t   *testing.T
	dir string

	oracle, admin string // addresses of the tso process
	tso           *member
	kv, sql       []*member
}

// deploy starts an oracle, stores and SQL processes, each when the one before is ready. flags are those of
// the tso process. The test runs beside others.
func deploy(t *testing.T, stores, sqls int, flags ...string) *deployment {
	t.Helper()
	t.Parallel()
	d := &deployment{t: t, dir: t.TempDir(), oracle: freeAddr(t), admin: freeAddr(t)}
	d.tso = d.member("tso", certs.TSO, append([]string{"--rpc-listen", d.oracle, "--data", filepath.Join(d.dir, "tso"), "--admin-listen", d.admin}, flags...)...)
	d.tso.start()
	for i := range stores {
		d.kv = append(d.kv, d.newStore(fmt.Sprintf("kv%d", i+1)))
		d.kv[i].start()
	}
	for i := range sqls {
		p := d.member(fmt.Sprintf("sql%d", i+1), certs.SQL, "--join", d.oracle)
		p.sql, p.admin = freeAddr(t), freeAddr(t)
		p.args = append(p.args, "--listen", p.sql, "--admin-listen", p.admin)
		d.sql = append(d.sql, p)
		p.start()
	}
	return d
}

// newStore describes a store with its data in a directory of its name.
func (d *deployment) newStore(name string) *member {
	p := d.member(name, certs.KV, "--rpc-listen", freeAddr(d.t), "--join", d.oracle, "--data", filepath.Join(d.dir, name))
	p.admin = freeAddr(d.t)
	p.args = append(p.args, "--admin-listen", p.admin)
	return p
}

// clusterTLS returns the flags of a role's certificate.
func clusterTLS(role certs.Role) []string {
	f := certs.ProcessFiles(trial, role)
	return []string{"--cluster-tls-cert", f.Cert, "--cluster-tls-key", f.Key, "--cluster-tls-ca", f.CA}
}

// forget runs percodb store forget as the operator.
func (d *deployment) forget(id string) (out []byte, err error) {
	args := append([]string{"store", "forget", id, "--join", d.oracle, "--yes"}, clusterTLS(certs.Operator)...)
	return exec.Command(binary, args...).CombinedOutput()
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// member is a process of the deployment, which can be restarted. Its methods are called by one goroutine.
type member struct {
	d          *deployment
	name       string
	args       []string
	sql, admin string
	run        *process.Process // the last one started
	running    bool             // run has not been ended
}

func (d *deployment) member(name string, role certs.Role, args ...string) *member {
	args = append(append([]string{"start", "--role=" + string(role)}, args...), clusterTLS(role)...)
	p := &member{d: d, name: name, args: args}
	d.t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if d.t.Failed() && p.run != nil {
			d.t.Logf("%s:\n%s", name, p.run.Output())
		}
	})
	return p
}

// start starts the process and returns when it is ready.
func (p *member) start() {
	p.d.t.Helper()
	if err := p.tryStart(); err != nil {
		p.d.t.Fatalf("%s: %v\n%s", p.name, err, p.run.Output())
	}
}

// tryStart starts the process and returns when it is ready, or the reason why it is not.
func (p *member) tryStart() error {
	p.launch()
	return p.awaitReady()
}

// awaitReady waits until a process that was launched is ready.
func (p *member) awaitReady() error {
	_, err := p.run.AwaitReady(p.d.context())
	if p.run.HasExited() {
		p.running = false
	}
	return err
}

// launch starts the process and does not wait for it.
func (p *member) launch() {
	p.d.t.Helper()
	run, err := process.Start(binary, nil, p.args...)
	if err != nil {
		p.d.t.Fatal(err)
	}
	p.run, p.running = run, true
}

// end sends a signal that ends the process, and waits for the end.
func (p *member) end(signal syscall.Signal) {
	if !p.running {
		return
	}
	if err := p.run.End(signal); err != nil {
		p.d.t.Logf("%s: %v", p.name, err)
	}
	p.running = false
}

// pause stops the process until resume.
func (p *member) pause() {
	p.d.t.Helper()
	if err := p.run.Pause(); err != nil {
		p.d.t.Fatalf("%s: %v", p.name, err)
	}
}

func (p *member) resume() { _ = p.run.Resume() } // It fails only if the process has ended.

// connect opens a connection of a SQL process.
func (p *member) connect() *pgx.Conn {
	p.d.t.Helper()
	c, err := pgx.Connect(p.d.context(), "postgres://postgres@"+p.sql+"/percodb?sslmode=disable")
	if err != nil {
		p.d.t.Fatal(err)
	}
	p.d.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (d *deployment) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	d.t.Cleanup(cancel)
	return ctx
}

// exec runs statements that succeed.
func (d *deployment) exec(c *pgx.Conn, statements ...string) {
	d.t.Helper()
	for _, s := range statements {
		if _, err := c.Exec(d.context(), s, pgx.QueryExecModeSimpleProtocol); err != nil {
			d.t.Fatalf("%s: %v", s, err)
		}
	}
}

// value returns the one value that a query answers with, as text.
func (d *deployment) value(c *pgx.Conn, query string) (text string, err error) {
	var v any
	err = c.QueryRow(d.context(), query).Scan(&v)
	return fmt.Sprint(v), err
}

// code returns the SQLSTATE of an error, "" for none.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// threeTables makes tables that lie on a store each, with rows, and returns the store of each: the first
// table's store is not the one that holds the schema.
func (d *deployment) threeTables(c *pgx.Conn) (byTable map[string]*member, schema *member) {
	d.t.Helper()
	for _, table := range []string{"a", "b", "c"} {
		d.exec(c, "create table "+table+" (id int primary key, v int)", "insert into "+table+" select i, i from generate_series(1, 1000) i")
	}
	byTable = map[string]*member{}
	for _, table := range []string{"a", "b", "c"} {
		shard, err := d.value(c, "select shard from percodb.ranges where table_name = '"+table+"'")
		if err != nil {
			d.t.Fatal(table, err)
		}
		byTable[table] = d.store(shard)
	}
	shard, err := d.value(c, "select shard from percodb.ranges where start_bytes = ''")
	if err != nil {
		d.t.Fatal(err)
	}
	return byTable, d.store(shard)
}

// store returns the process of a shard.
func (d *deployment) store(shard string) *member {
	d.t.Helper()
	for _, p := range d.kv {
		if p.shard() == shard {
			return p
		}
	}
	d.t.Fatalf("no process of shard %q", shard)
	return nil
}
