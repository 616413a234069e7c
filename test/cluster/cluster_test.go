package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// patience is how long anything here may take.
const patience = 60 * time.Second

var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "percodb-cluster-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "percodb")
		if out, err := exec.Command("go", "build", "-o", binary, "github.com/percodb/percodb/cmd/percodb").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
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
	tso           *process
	kv, sql       []*process
}

// deploy starts an oracle, stores and SQL processes, each when the one before is ready. flags are those of
// the tso process.
func deploy(t *testing.T, stores, sqls int, flags ...string) *deployment {
	t.Helper()
	d := &deployment{t: t, dir: t.TempDir(), oracle: freeAddr(t), admin: freeAddr(t)}
	d.tso = d.process("tso", append([]string{"--role=tso", "--rpc-listen", d.oracle, "--data", filepath.Join(d.dir, "tso"), "--admin-listen", d.admin}, flags...)...)
	d.tso.start()
	for i := range stores {
		d.kv = append(d.kv, d.newStore(fmt.Sprintf("kv%d", i+1)))
		d.kv[i].start()
	}
	for i := range sqls {
		p := d.process(fmt.Sprintf("sql%d", i+1), "--role=sql", "--join", d.oracle)
		p.sql, p.admin = freeAddr(t), freeAddr(t)
		p.args = append(p.args, "--listen", p.sql, "--admin-listen", p.admin)
		d.sql = append(d.sql, p)
		p.start()
	}
	return d
}

// newStore describes a store with its data in a directory of its name.
func (d *deployment) newStore(name string) *process {
	p := d.process(name, "--role=kv", "--rpc-listen", freeAddr(d.t), "--join", d.oracle, "--data", filepath.Join(d.dir, name))
	p.admin = freeAddr(d.t)
	p.args = append(p.args, "--admin-listen", p.admin)
	return p
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// process is one of the deployment's. One goroutine's.
type process struct {
	d          *deployment
	name       string
	args       []string
	sql, admin string
	cmd        *exec.Cmd
	exited     chan struct{}
	output     *output
}

func (d *deployment) process(name string, args ...string) *process {
	p := &process{d: d, name: name, args: append([]string{"start"}, args...)}
	d.t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if d.t.Failed() && p.output != nil {
			d.t.Logf("%s:\n%s", name, p.output.text())
		}
	})
	return p
}

// output collects what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start starts the process and returns when it is ready.
func (p *process) start() {
	p.d.t.Helper()
	if err := p.tryStart(); err != nil {
		p.d.t.Fatalf("%s: %v\n%s", p.name, err, p.output.text())
	}
}

// tryStart starts the process and returns when it is ready, or why it ended.
func (p *process) tryStart() error {
	p.launch()
	return p.awaitReady()
}

// awaitReady returns when a process that was launched is ready, or why it ended.
func (p *process) awaitReady() error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if bytes.Contains([]byte(p.output.text()), []byte(" is ready")) {
			return nil
		}
		select {
		case <-p.exited:
			p.cmd = nil
			return errors.New("ended")
		default:
		}
	}
	return errors.New("not ready in time")
}

// launch starts the process and does not wait for it.
func (p *process) launch() {
	p.d.t.Helper()
	p.output = &output{}
	p.cmd = exec.Command(binary, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		p.d.t.Fatal(err)
	}
	exited := make(chan struct{})
	p.exited = exited
	cmd := p.cmd
	go func() {
		_ = cmd.Wait() // that it ended says enough
		close(exited)
	}()
}

// end sends a signal that ends the process, and waits for the end.
func (p *process) end(signal syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(signal) // It may have ended.
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	select {
	case <-p.exited:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	p.cmd = nil
}

// pause stops the process as it stands, until resume.
func (p *process) pause() {
	p.d.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.d.t.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			p.d.t.Fatal(err)
		}
		if i := bytes.LastIndexByte(stat, ')'); bytes.HasPrefix(stat[i+1:], []byte(" T")) {
			return
		}
	}
	p.d.t.Fatalf("%s does not stop", p.name)
}

func (p *process) resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// connect opens a connection of a SQL process.
func (p *process) connect() *pgx.Conn {
	p.d.t.Helper()
	c, err := pgx.Connect(p.d.context(), "postgres://tester@"+p.sql+"/percodb?sslmode=disable")
	if err != nil {
		p.d.t.Fatal(err)
	}
	p.d.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (d *deployment) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
func (d *deployment) threeTables(c *pgx.Conn) (byTable map[string]*process, schema *process) {
	d.t.Helper()
	for _, table := range []string{"a", "b", "c"} {
		d.exec(c, "create table "+table+" (id int primary key, v int)", "insert into "+table+" select i, i from generate_series(1, 1000) i")
	}
	byTable = map[string]*process{}
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
func (d *deployment) store(shard string) *process {
	d.t.Helper()
	for _, p := range d.kv {
		if p.shard() == shard {
			return p
		}
	}
	d.t.Fatalf("no process of shard %q", shard)
	return nil
}
