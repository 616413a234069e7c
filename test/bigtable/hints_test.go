package bigtable

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/process"
)

// metric returns the value of a metric without labels.
func metric(t *testing.T, admin, name string) (n int) {
	t.Helper()
	res, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			if _, err := fmt.Sscan(value, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// awaitMetric waits until a metric has at least a value.
func awaitMetric(t *testing.T, admin, name string, least int) {
	t.Helper()
	for begun := time.Now(); metric(t, admin, name) < least; time.Sleep(time.Millisecond) {
		if time.Since(begun) > waitTimeout {
			t.Fatalf("%s is %d", name, metric(t, admin, name))
		}
	}
}

// hinted are two processes, one of which waits for a row of the other.
type hinted struct {
	t                        *testing.T
	holder, waiter           *pgx.Conn
	holderAdmin, waiterAdmin string
}

// wait has the holder lock the row and the waiter wait for it; its end is sent.
func (h *hinted) wait() <-chan error {
	h.t.Helper()
	mustExec(h.t, h.holder, "BEGIN")
	mustExec(h.t, h.holder, "UPDATE h SET n = n + 1")
	ended := make(chan error, 1)
	go func() {
		_, err := h.waiter.Exec(h.t.Context(), "UPDATE h SET n = n + 1")
		ended <- err
	}()
	awaitMetric(h.t, h.holderAdmin, "percodb_bigtable_locks_awaited", 1)
	return ended
}

// round has the waiter wait until the holder commits, and told of that.
func (h *hinted) round() {
	h.t.Helper()
	before := metric(h.t, h.waiterAdmin, "percodb_bigtable_lock_hints_received_total")
	ended := h.wait()
	mustExec(h.t, h.holder, "COMMIT")
	if err := <-ended; err != nil {
		h.t.Fatal(err)
	}
	awaitMetric(h.t, h.waiterAdmin, "percodb_bigtable_lock_hints_received_total", before+1)
}

// Goal: a transaction that waits for a row of another process is sent a hint when the other commits, over TLS, also after the coordinator has moved; nothing is sent when nobody waits;
// when the coordinator moves, or the holder is killed, while somebody waits, the waiter goes on. Method: real processes; the metrics of hints, and the sum of the updates.
func TestHintsBetweenProcesses(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	flags := certificates(t, certs.SQL)
	coordinator, _ := startSQL(t, emulator, flags...)
	var processes []*process.Process
	var addrs, admins []string
	for range 2 {
		admin, err := process.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		p, addr := startSQL(t, emulator, append(flags, "--admin-listen", admin)...)
		processes, addrs, admins = append(processes, p), append(addrs, addr), append(admins, admin)
	}
	h := &hinted{t: t, holder: connect(t, addrs[0]), waiter: connect(t, addrs[1]), holderAdmin: admins[0], waiterAdmin: admins[1]}
	mustExec(t, h.holder, "CREATE TABLE h (id int PRIMARY KEY, n int)")
	mustExec(t, h.holder, "INSERT INTO h VALUES (1, 0)")
	mustExec(t, h.waiter, "UPDATE h SET n = n + 1")
	for range 10 {
		mustExec(t, h.holder, "BEGIN")
		mustExec(t, h.holder, "UPDATE h SET n = n + 1")
		mustExec(t, h.holder, "COMMIT")
	}
	if n := metric(t, admins[0], "percodb_bigtable_lock_hints_sent_total"); n != 0 {
		t.Errorf("%d hints were sent although nobody waited", n)
	}
	for range 5 {
		h.round()
	}
	if got := mustInt(t, h.waiter, "SELECT n FROM h"); got != 21 {
		t.Errorf("n is %d", got)
	}

	ended := h.wait()
	coordinator.Kill()
	// The processes may have been cut off for so long that their transactions have been finished.
	updates := 21
	for _, end := range []func() error{func() error { _, err := h.holder.Exec(t.Context(), "COMMIT"); return err }, func() error { return <-ended }} {
		err := end()
		if refused := (*pgconn.PgError)(nil); err == nil {
			updates++
		} else if !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
	if got := mustInt(t, h.waiter, "SELECT n FROM h"); got < updates || got > 23 {
		t.Errorf("n is %d, and %d updates were acknowledged", got, updates)
	}
	updates = mustInt(t, h.waiter, "SELECT n FROM h")
	h.round()

	ended = h.wait()
	processes[0].Kill()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := mustInt(t, h.waiter, "SELECT n FROM h"); got != updates+3 {
		t.Errorf("n is %d, not %d", got, updates+3)
	}
}
