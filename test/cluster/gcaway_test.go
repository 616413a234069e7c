package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// metric returns the value of a metric of the process at an address, 0 if there is none.
func (d *deployment) metric(admin, name string) float64 {
	d.t.Helper()
	res, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + `(?:{[^}]*})? (\S+)$`).FindSubmatch(body)
	if found == nil {
		return 0
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		d.t.Fatal(err)
	}
	return value
}

// collectedPast waits until garbage collection has come to its end at or above a time.
func (d *deployment) collectedPast(at time.Time) {
	d.t.Helper()
	for end := time.Now().Add(waitTimeout); d.metric(d.admin, "percodb_gc_collected_seconds") < float64(at.UnixMilli())/1000; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("garbage collection is at %f, and does not reach %v", d.metric(d.admin, "percodb_gc_collected_seconds"), at)
		}
	}
}

func (d *deployment) checkLive() {
	d.t.Helper()
	addrs := []string{d.admin, d.sql[0].admin}
	for _, p := range d.kv {
		if p.running {
			addrs = append(addrs, p.admin)
		}
	}
	if out, err := exec.Command(binary, "check", "--live", strings.Join(addrs, ",")).CombinedOutput(); err != nil {
		d.t.Errorf("check: %v\n%s", err, out)
	}
}

// load is clients that run transactions, and counts of their commits.
type load struct {
	acked, unknown atomic.Int64 // acknowledged, and with an unknown outcome
	stopped        chan struct{}
	clients        sync.WaitGroup
}

// stop stops the clients.
func (l *load) stop() {
	close(l.stopped)
	l.clients.Wait()
}

// spread starts clients whose transactions add 1 to one row of each table, and returns after 100 commits.
func (d *deployment) spread(rows int) *load {
	d.t.Helper()
	l := &load{stopped: make(chan struct{})}
	for i := range 8 {
		c := d.sql[0].connect()
		l.clients.Go(func() {
			for n := i; ; n++ {
				select {
				case <-l.stopped:
					return
				default:
				}
				var err error
				for _, sql := range []string{"begin", "update a set v = v + 1 where id = %d", "update b set v = v + 1 where id = %d", "update c set v = v + 1 where id = %d"} {
					if strings.Contains(sql, "%") {
						sql = fmt.Sprintf(sql, 1+n%rows)
					}
					if _, err = c.Exec(d.context(), sql); err != nil {
						break
					}
				}
				if err != nil {
					_, _ = c.Exec(d.context(), "rollback") // If it fails, the server rolls back.
					continue
				}
				switch _, err = c.Exec(d.context(), "commit"); {
				case err == nil:
					l.acked.Add(1)
				case code(err) != "40001":
					l.unknown.Add(1)
				}
			}
		})
	}
	for end := time.Now().Add(waitTimeout); l.acked.Load() < 100; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("only %d commits", l.acked.Load())
		}
	}
	return l
}

// otherThan returns a store with a table that is not the store of the schema.
func otherThan(t *testing.T, byTable map[string]*member, schema *member) *member {
	t.Helper()
	for _, p := range byTable {
		if p != schema {
			return p
		}
	}
	t.Fatal("all tables lie on one store: new ranges go to the store with the fewest")
	return nil
}

// Goal: while a store is killed for many times the history's life, garbage collection goes on on the others, and
// names the store; when it is back, the locks that transactions had left there, and for it elsewhere, get the outcome that
// they have: nothing acknowledged is lost, nothing is half. Method: transactions over three stores that a kill cuts
// off; then the rows on the other stores are changed many times over, so that the record of the outcome is old.
func TestCollectionWithoutAStore(t *testing.T) {
	d := deploy(t, 3, 1, "--gc-life", "1s", "--gc-interval", "300ms", "--gc-lease", "2s")
	c := d.sql[0].connect()
	byTable, schema := d.threeTables(c)
	victim := otherThan(t, byTable, schema)
	id := victim.shard()
	const rows = 20
	for _, table := range []string{"a", "b", "c"} {
		d.exec(c, "update "+table+" set v = 0")
	}
	d.collectedPast(time.Now())
	var acked, unknown int64
	for round := range 2 {
		l := d.spread(rows)
		victim.end(syscall.SIGKILL)
		killed := time.Now()
		l.stop()
		acked, unknown = acked+l.acked.Load(), unknown+l.unknown.Load()
		t.Logf("round %d: %d acknowledged, %d unknown, after %v", round, acked, unknown, time.Since(killed))
		removed := d.metric(d.admin, "percodb_gc_versions_removed_total")
		for n := 0; n < 10 || time.Since(killed) < 3*time.Second; n++ {
			for table, p := range byTable {
				if p == victim {
					continue
				}
				// A row whose lock only the store that is away can decide is passed over by its client.
				_, err := c.Exec(d.context(), "set statement_timeout = 300")
				if err == nil {
					_, err = c.Exec(d.context(), fmt.Sprintf("update %s set v = v + 1000000 where id = %d", table, 1+n%rows))
				}
				if err != nil && code(err) != "57014" && code(err) != "08006" && code(err) != "40001" {
					t.Fatal(err)
				}
				d.exec(c, "set statement_timeout = 0", fmt.Sprintf("update %s set v = v + 1000000 where id = %d", table, rows+1+n%100))
			}
		}
		d.collectedPast(time.Now())
		d.collectedPast(time.Now())
		if now := d.metric(d.admin, "percodb_gc_versions_removed_total"); now < removed+10 {
			t.Errorf("round %d: %v versions were removed while the store was away", round, now-removed)
		}
		if n := d.metric(d.admin, "percodb_gc_stores_away"); n != 1 {
			t.Errorf("round %d: %v stores are away", round, n)
		}
		if got, err := d.value(c, "show percodb.gc_stage"); !strings.Contains(got, "not reached: "+id) || strings.Contains(got, "stopped") {
			t.Errorf("round %d: stage %q, %v", round, got, err)
		}
		t.Logf("round %d: %v locks left, %v records kept", round, d.metric(d.admin, "percodb_gc_locks_left"), d.metric(d.admin, "percodb_gc_records_kept_total"))
		// Of its directory alone the records are in order, and that its tables cannot be verified is said.
		out, err := exec.Command(binary, "check", "--data", filepath.Join(d.dir, victim.name)).CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), "not verified: the tables (give") ||
			!regexp.MustCompile(`(?m)^0 findings in \S+, 1 part of the data not verified$`).Match(out) {
			t.Errorf("round %d: check of the directory: %v\n%s", round, err, out)
		}
		victim.start()
		var sums [3]int64
		for i, table := range []string{"a", "b", "c"} {
			got, err := d.value(c, fmt.Sprintf("select sum(v %% 1000000) from %s where id <= %d", table, rows))
			if err != nil {
				t.Fatal(err)
			}
			sums[i], _ = strconv.ParseInt(got, 10, 64)
		}
		if got, err := d.value(c, fmt.Sprintf("select count(*) from a join b using (id) join c using (id) where id <= %d and (a.v %% 1000000 <> b.v %% 1000000 or a.v %% 1000000 <> c.v %% 1000000)", rows)); got != "0" || err != nil {
			t.Errorf("round %d: half a transaction in %s rows, %v; sums %v", round, got, err, sums)
		}
		if sums[0] < acked || sums[0] > acked+unknown {
			t.Errorf("round %d: %d committed, %d acknowledged, %d unknown", round, sums[0], acked, unknown)
		}
		d.collectedPast(time.Now())
		for end := time.Now().Add(waitTimeout); ; time.Sleep(100 * time.Millisecond) {
			if got, err := d.value(c, "show percodb.gc_stage"); err == nil && !strings.Contains(got, "not reached") {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the store does not take part again")
			}
		}
		d.checkLive()
	}
	// Everything stops while the store is away: the records kept on the others show the outcomes of its locks.
	l := d.spread(rows)
	victim.end(syscall.SIGKILL)
	l.stop()
	d.collectedPast(time.Now())
	args := []string{"check"}
	for _, p := range append(append([]*member{d.tso}, d.kv...), d.sql...) {
		p.end(syscall.SIGKILL)
		if p != d.sql[0] {
			args = append(args, "--data", filepath.Join(d.dir, p.name))
		}
	}
	if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
		t.Errorf("check of all directories: %v\n%s", err, out)
	}
}

// Goal: a store that is forgotten while garbage collection goes without it holds nothing up any more: collection and
// check are clean, and the locks that it alone could decide are gone. Method: transactions over three stores that a
// kill cuts off, rounds without the store, and then percodb store forget.
func TestCollectionAfterForgetting(t *testing.T) {
	d := deploy(t, 3, 1, "--gc-life", "1s", "--gc-interval", "300ms", "--gc-lease", "2s")
	c := d.sql[0].connect()
	byTable, schema := d.threeTables(c)
	victim := otherThan(t, byTable, schema)
	id := victim.shard()
	l := d.spread(20)
	victim.end(syscall.SIGKILL)
	l.stop()
	d.collectedPast(time.Now())
	if out, err := d.forget(id); err != nil {
		t.Fatalf("forget: %v\n%s", err, out)
	}
	d.collectedPast(time.Now().Add(time.Second))
	if n := d.metric(d.admin, "percodb_gc_stores_away") + d.metric(d.admin, "percodb_gc_locks_left"); n != 0 {
		t.Errorf("%v stores and locks are left", n)
	}
	for table := range byTable {
		got, err := "", error(nil)
		for end := time.Now().Add(waitTimeout); ; time.Sleep(200 * time.Millisecond) {
			if got, err = d.value(c, "select count(*) from "+table); err == nil || time.Now().After(end) {
				break
			}
		}
		if want := map[bool]string{true: "0", false: "1000"}[byTable[table] == victim]; got != want || err != nil {
			t.Errorf("table %s: %s rows, %v", table, got, err)
		}
		d.exec(c, "insert into "+table+" values (5000, 1)", "update "+table+" set v = v + 1 where id < 100")
	}
	d.checkLive()
}
