package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// shard returns the shard's name, as the process's metrics tell it.
func (p *member) shard() string {
	p.d.t.Helper()
	res, err := http.Get("http://" + p.admin + "/metrics")
	if err != nil {
		p.d.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.d.t.Fatal(err)
	}
	found := regexp.MustCompile(`shard="([^"]+)"`).FindSubmatch(body)
	if found == nil {
		p.d.t.Fatalf("no shard in the metrics of %s", p.name)
	}
	return string(found[1])
}

// Goal: percodb.ranges names the table of each range and its size in a cluster, too.
func TestRangesHaveNamesAndSizes(t *testing.T) {
	d := deploy(t, 2, 1)
	c := d.sql[0].connect()
	d.exec(c, "create table named (id int primary key, v text)", "insert into named select i, repeat('x', 100) from generate_series(1, 1000) i")
	got, err := d.value(c, "select string_agg(concat_ws(' ', schema_name, table_name, size_bytes > 50000, start_key), ',') from percodb.ranges where table_name = 'named'")
	if err != nil || got != "public named t " {
		t.Errorf("%q %v", got, err)
	}
	if got, err := d.value(c, "select count(*) from percodb.ranges where size_bytes is null"); got != "0" || err != nil {
		t.Errorf("%s ranges without a size (%v)", got, err)
	}
}

// Goal: a request to a store that is gone, or has stopped, answers 08006 within seconds; tables of other
// stores go on meanwhile, and the store's when it is back. What could not be sent is not reported as unknown.
func TestStoreThatIsGone(t *testing.T) {
	d := deploy(t, 3, 1)
	c := d.sql[0].connect()
	byTable, schema := d.threeTables(c)
	table := "a"
	for table < "c" && byTable[table] == schema {
		table = string(table[0] + 1)
	}
	victim := byTable[table]
	if victim == schema {
		t.Fatal("all tables lie on the store of the schema")
	}
	for _, way := range []struct {
		name        string
		away, again func()
		limit       time.Duration
		insert      string // SQLSTATE
	}{
		{"killed", func() { victim.end(syscall.SIGKILL) }, victim.start, 6500 * time.Millisecond, "08006"},
		{"stopped", victim.pause, victim.resume, 11 * time.Second, ""},
	} {
		way.away()
		d.within(way.limit, way.name+": a query", func() {
			if _, err := d.value(c, "select count(*) from "+table); code(err) != "08006" {
				t.Errorf("%s: a query answers %v", way.name, err)
			}
		})
		if way.insert != "" {
			d.within(way.limit, way.name+": an insert", func() {
				if _, err := c.Exec(d.context(), "insert into "+table+" values (5000, 1)"); code(err) != way.insert {
					t.Errorf("%s: an insert answers %v", way.name, err)
				}
			})
		}
		for other, p := range byTable {
			if p == victim {
				continue
			}
			d.within(4*time.Second, way.name+": a query of another store", func() {
				if got, err := d.value(c, "select count(*) from "+other); got != "1000" {
					t.Errorf("%s: table %s of another store: %s rows, %v", way.name, other, got, err)
				}
			})
		}
		way.again()
		if got, err := d.value(c, "select count(*) from "+table); got != "1000" {
			t.Errorf("%s: afterwards %s rows, %v", way.name, got, err)
		}
	}
}

// within repeats what may take as long as the machine is slow, until it has taken less than limit once.
func (d *deployment) within(limit time.Duration, what string, do func()) {
	d.t.Helper()
	for end := time.Now().Add(waitTimeout); ; {
		began := time.Now()
		do()
		took := time.Since(began)
		if took < limit || d.t.Failed() {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("%s takes %v each time", what, took)
		}
	}
}

// answersSoon checks the answer of a query that does not wait for the store that is away, as each query to that
// store does, for five seconds or more: of several tries one takes less than a second.
func (d *deployment) answersSoon(c *pgx.Conn, query, want string) {
	d.t.Helper()
	d.within(time.Second, query, func() {
		if got, err := d.value(c, query); got != want || err != nil {
			d.t.Errorf("%s: %q, %v", query, got, err)
		}
	})
}

// Goal: clients of a SQL process that stops are told 57P01, whatever they do.
func TestClientsOfAProcessThatStops(t *testing.T) {
	d := deploy(t, 1, 1)
	c := d.sql[0].connect()
	d.exec(c, "create table s (id int primary key)", "insert into s values (1)")
	blocker, waiter := d.sql[0].connect(), d.sql[0].connect()
	d.exec(blocker, "begin", "update s set id = 2 where id = 1")
	said := make(chan error, 2)
	go func() {
		_, err := waiter.Exec(d.context(), "update s set id = 3 where id = 1")
		said <- err
	}()
	go func() {
		_, err := blocker.Exec(d.context(), "select pg_sleep(100)")
		said <- err
	}()
	for _, busy := range []*pgx.Conn{waiter, blocker} {
		for end := time.Now().Add(waitTimeout); ; time.Sleep(10 * time.Millisecond) {
			state, err := d.value(c, fmt.Sprintf("select state from pg_stat_activity where pid = %d", busy.PgConn().PID()))
			if err != nil {
				t.Fatal(err)
			}
			if state == "active" {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("a statement does not begin: its session is %s", state)
			}
		}
	}
	d.sql[0].end(syscall.SIGTERM)
	for range 2 {
		if err := <-said; code(err) != "57P01" {
			t.Error(err)
		}
	}
	if _, err := c.Exec(d.context(), "select 1"); code(err) != "57P01" && !strings.Contains(err.Error(), "conn closed") {
		t.Error("idle:", err)
	}
}

// Goal: while the store that has the schema is stopped, or gone, reads of tables on other stores go on, and a
// schema change waits or fails and does no harm. Method: leases of the schema are granted once an authority
// that may have run before has no holds left; then the store is stopped for longer than a lease.
func TestSchemaStoreIsAway(t *testing.T) {
	d := deploy(t, 3, 2)
	c := d.sql[0].connect()
	byTable, schema := d.threeTables(c)
	other := d.sql[1].connect()
	time.Sleep(11 * time.Second) // readlease.Options.MaxHold
	for _, way := range []struct {
		name        string
		away, again func()
	}{
		{"stopped", schema.pause, schema.resume},
		{"killed", func() { schema.end(syscall.SIGKILL) }, schema.start},
	} {
		d.awaitLeasedSchema(other, byTable, schema)
		way.away()
		for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			for table, p := range byTable {
				if p == schema {
					continue
				}
				for _, sql := range []string{"select count(*) from " + table, "select sum(1) from " + table + " where id between 1 and 1000", "select 1000 from " + table + " where id = 7"} {
					d.answersSoon(other, sql, "1000")
				}
			}
		}
		if _, err := c.Exec(d.context(), "create table never (id int)"); code(err) != "08006" {
			t.Errorf("%s: a schema change answers %v", way.name, err)
		}
		way.again()
		d.exec(c, "create table again (id int primary key)", "insert into again values (1)")
		if got, err := d.value(other, "select count(*) from again"); got != "1" || err != nil {
			t.Errorf("%s: the other process sees %q, %v", way.name, got, err)
		}
		d.exec(other, "drop table again")
		if _, err := c.Exec(d.context(), "select * from again"); code(err) != "42P01" {
			t.Errorf("%s: a dropped table: %v", way.name, err)
		}
	}
}

// awaitLeasedSchema returns when the process of c has a lease on the schema as it is now: when it reads a table of
// another store while the schema's store is stopped.
func (d *deployment) awaitLeasedSchema(c *pgx.Conn, byTable map[string]*member, schema *member) {
	d.t.Helper()
	for table, p := range byTable {
		for p != schema {
			schema.pause()
			_, err := d.value(c, "select count(*) from "+table)
			schema.resume()
			if err == nil {
				return
			}
			if code(err) != "08006" {
				d.t.Fatalf("a read while the schema's store is stopped: %v", err)
			}
			time.Sleep(time.Second) // The process reads the schema, and has a lease once it has read it.
		}
	}
}

// Goal: a check of a running cluster tells which parts it could not see, and fails for it. Method: all processes;
// without a store; with a store that is gone.
func TestCheckTellsWhatItCouldNotSee(t *testing.T) {
	d := deploy(t, 2, 1)
	c := d.sql[0].connect()
	d.exec(c, "create table x (id int primary key)", "insert into x values (1)", "create table y (id int primary key)", "insert into y values (1)")
	gone := d.kv[1].shard()
	check := func(want bool, says string, addrs ...string) {
		t.Helper()
		out, err := exec.Command(binary, "check", "--live", strings.Join(addrs, ",")).CombinedOutput()
		if (err == nil) != want || !strings.Contains(string(out), says) {
			t.Errorf("check of %d processes: %v, want %v and %q:\n%s", len(addrs), err, want, says, out)
		}
	}
	all := []string{d.admin, d.kv[0].admin, d.kv[1].admin, d.sql[0].admin}
	check(true, "no findings", all...)
	check(false, "not verified: store "+gone, d.admin, d.kv[0].admin, d.sql[0].admin)
	check(false, "not verified: the tables", d.admin, d.kv[0].admin, d.kv[1].admin)
	d.kv[1].end(syscall.SIGKILL)
	check(false, "not verified: store "+gone, d.admin, d.kv[0].admin)
	check(false, "not verified: no answer from "+d.kv[1].admin, all...)
	check(false, "not verified: store "+gone, all...)
}

// Goal: the views of the machinery show what is there while a store is away, and say what is missing; its
// tables can be dropped. Method: locks on both stores, and one store gone.
func TestViewsWhileAStoreIsAway(t *testing.T) {
	d := deploy(t, 3, 1)
	c := d.sql[0].connect()
	byTable, schema := d.threeTables(c)
	var here, there string // tables on a store that stays, and on one that goes
	for table, p := range byTable {
		if p != schema {
			there = table
		}
	}
	for table, p := range byTable {
		if p != byTable[there] {
			here = table
		}
	}
	if here == "" || there == "" {
		t.Skip("all tables lie on one store")
	}
	gone := byTable[there].shard()
	holder := d.sql[0].connect()
	d.exec(holder, "begin", "select * from "+here+" where id = 1 for update", "select * from "+there+" where id = 1 for update")
	config, err := pgx.ParseConfig("postgres://postgres@" + d.sql[0].sql + "/percodb?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	var notices []string
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices = append(notices, n.Code+" "+n.Message) }
	observer, err := pgx.ConnectConfig(d.context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close(context.Background())
	const locked = "select string_agg(table_name, ',' order by table_name) from percodb.locks where kind = 'for update'"
	if got, err := d.value(observer, locked); len(got) != 3 || err != nil || len(notices) != 0 {
		t.Errorf("before: %q %v %q", got, err, notices)
	}
	byTable[there].end(syscall.SIGKILL)
	if got, err := d.value(observer, locked); got != here || err != nil {
		t.Errorf("while the store is away: %q %v, want %q", got, err, here)
	}
	if len(notices) == 0 || notices[0] != "01000 the locks of store "+gone+" are missing: it does not answer" {
		t.Errorf("notices %q", notices)
	}
	for _, view := range []string{"oracle", "transactions", "ranges"} {
		if _, err := d.value(observer, "select count(*) from percodb."+view); err != nil {
			t.Errorf("percodb.%s: %v", view, err)
		}
	}
	d.exec(observer, "drop table "+there)
}

// Goal: a cluster whose oracle has lost its data directory comes back with all its data, and goes on above it.
// Method: everything is stopped, the directory removed, and everything started, the stores in another order.
func TestLostOracleDirectory(t *testing.T) {
	d := deploy(t, 3, 1)
	c := d.sql[0].connect()
	d.threeTables(c)
	for _, p := range append([]*member{d.sql[0], d.tso}, d.kv...) {
		p.end(syscall.SIGKILL)
	}
	if err := os.RemoveAll(filepath.Join(d.dir, "tso")); err != nil {
		t.Fatal(err)
	}
	d.tso.start()
	d.kv[2].launch()
	d.kv[1].launch()
	time.Sleep(time.Second) // A store announces itself every 200 ms.
	for _, p := range d.kv[1:] {
		if p.run.IsReady() {
			t.Errorf("%s is ready before all stores are there", p.name)
		}
	}
	d.kv[0].launch()
	for _, p := range d.kv {
		if err := p.awaitReady(); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
	}
	d.sql[0].start()
	c = d.sql[0].connect()
	for _, table := range []string{"a", "b", "c"} {
		d.exec(c, "update "+table+" set v = v + 1 where id <= 10")
		if got, err := d.value(c, "select sum(v) from "+table); got != "500510" || err != nil {
			t.Errorf("table %s: sum %s, %v", table, got, err)
		}
	}
	d.exec(c, "create table d (id int primary key)", "insert into d values (1)")
	out, err := exec.Command(binary, "check", "--live", strings.Join([]string{d.admin, d.kv[0].admin, d.kv[1].admin, d.kv[2].admin, d.sql[0].admin}, ",")).CombinedOutput()
	if err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}
}

// Goal: an oracle that has lost its directory goes on without a store that is gone for good once it is told to
// forget it; what the other stores had is there, the lost keys are empty, and the store cannot come
// back. The stores that went on running need no restart. Method: of three stores, one with a table
// and without the schema is killed, with the oracle.
func TestForgetStore(t *testing.T) {
	d := deploy(t, 3, 1, "--gc-life", "1s", "--gc-interval", "500ms", "--gc-lease", "2s")
	c := d.sql[0].connect()
	byTable, schema := d.threeTables(c)
	var lost string
	for table, p := range byTable {
		if p != schema {
			lost = table
		}
	}
	gone := byTable[lost]
	id := gone.shard()
	time.Sleep(3 * time.Second) // Every store has announced itself since the last one registered.
	forget := func(says string) {
		t.Helper()
		out, err := d.forget(id)
		if !strings.Contains(string(out), says) {
			t.Fatalf("forget: %v, want %q:\n%s", err, says, out)
		}
	}
	forget("it is not gone")
	gone.end(syscall.SIGKILL)
	d.tso.end(syscall.SIGKILL)
	if err := os.RemoveAll(filepath.Join(d.dir, "tso")); err != nil {
		t.Fatal(err)
	}
	d.tso.start()
	for end := time.Now().Add(waitTimeout); !strings.Contains(d.tso.run.Output(), "waiting for the newest timestamps of "+id+" (percodb store forget"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the oracle does not say what it waits for")
		}
	}
	forget("is forgotten")
	for table := range byTable {
		want := "1000"
		if byTable[table] == gone {
			want = "0"
		}
		var got string
		var err error
		for end := time.Now().Add(waitTimeout); ; time.Sleep(200 * time.Millisecond) {
			if got, err = d.value(c, "select count(*) from "+table); err == nil && got == want || time.Now().After(end) {
				break
			}
		}
		if got != want || err != nil {
			t.Errorf("table %s: %s rows, %v, want %s", table, got, err, want)
		}
	}
	d.exec(c, "insert into "+lost+" values (1, 1)")
	if err := gone.tryStart(); err == nil || !strings.Contains(gone.run.Output(), "was excluded from the cluster") {
		t.Errorf("a forgotten store has come back: %v\n%s", err, gone.run.Output())
	}
}

// Goal: of two processes with one store's data, the second is refused. Method: a copy of the data directory of
// a store, which runs; it is stopped while its files are copied, since it may remove some at any time.
func TestCopiedStore(t *testing.T) {
	d := deploy(t, 1, 0)
	copied := d.newStore("copy")
	d.kv[0].pause()
	out, err := exec.Command("cp", "-r", filepath.Join(d.dir, "kv1"), filepath.Join(d.dir, "copy")).CombinedOutput()
	d.kv[0].resume()
	if err != nil {
		t.Fatal(string(out))
	}
	if err := copied.tryStart(); err == nil || !strings.Contains(copied.run.Output(), "is a copy, or older") {
		t.Errorf("a copy of a store was started: %v\n%s", err, copied.run.Output())
	}
}
