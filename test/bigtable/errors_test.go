package bigtable

import (
	"errors"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/faultproxy"
)

// startFaulty starts an emulator, a proxy before it, and a SQL process over the proxy.
func startFaulty(t *testing.T, args ...string) (*faultproxy.Proxy, *pgx.Conn) {
	t.Helper()
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	proxy, err := faultproxy.New(emulator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	_, addr := startSQL(t, proxy.Addr(), args...)
	return proxy, connect(t, addr)
}

// onKeys is a fault of requests that concern keys, not the coordinator's rows, by their method.
func onKeys(method string, f faultproxy.Fault) func(string, []byte) faultproxy.Fault {
	return func(called string, request []byte) faultproxy.Fault {
		if called != method || strings.Contains(string(request), "\x12\x0cmcoordinator") {
			return faultproxy.Fault{}
		}
		return f
	}
}

// Goal: the errors of Bigtable reach clients with their SQLSTATEs and what to do, and the connection goes on afterwards. Method: one fault after
// the other, in a proxy.
func TestErrorsOfStatements(t *testing.T) {
	t.Parallel() // It waits most of the time.
	proxy, conn := startFaulty(t, "--request-timeout", "1s")
	mustExec(t, conn, "CREATE TABLE e (id int PRIMARY KEY, v text)")
	mustExec(t, conn, "INSERT INTO e VALUES (1, 'one')")
	answer := func(code codes.Code) faultproxy.Fault {
		return faultproxy.Fault{Err: status.Error(code, "as the test says")}
	}
	for _, c := range []struct {
		name, method string
		fault        faultproxy.Fault
		timeout, sql string
		code, text   string
	}{
		{"permission to write", "CheckAndMutateRow", answer(codes.PermissionDenied), "0", "UPDATE e SET v = 'x' WHERE id = 1", "08006", "permissions of the server's credentials"},
		{"permission to read", "ReadRows", answer(codes.PermissionDenied), "0", "SELECT v FROM e WHERE id = 1", "08006", "permissions of the server's credentials"},
		{"profile", "CheckAndMutateRow", answer(codes.FailedPrecondition), "0", "UPDATE e SET v = 'x' WHERE id = 1", "08006", "single cluster"},
		{"quota", "CheckAndMutateRow", answer(codes.ResourceExhausted), "0", "UPDATE e SET v = 'x' WHERE id = 1", "53400", "quota"},
		{"deadline of the statement", "CheckAndMutateRow", faultproxy.Fault{Delay: 4 * time.Second}, "500ms", "UPDATE e SET v = 'x' WHERE id = 1", "57014", "statement timeout"},
		{"deadline of a read", "ReadRows", faultproxy.Fault{Delay: 4 * time.Second}, "500ms", "SELECT v FROM e WHERE id = 1", "57014", "statement timeout"},
		{"no answer before the deadline", "ReadRows", answer(codes.Unavailable), "500ms", "SELECT v FROM e WHERE id = 1", "57014", "statement timeout"},
		{"a read without an answer", "ReadRows", faultproxy.Fault{Silent: true}, "0", "SELECT v FROM e WHERE id = 1", "08006", "does not answer"},
		{"a write without an answer", "CheckAndMutateRow", faultproxy.Fault{Silent: true}, "0", "UPDATE e SET v = 'x' WHERE id = 1", "08006", "does not answer"},
		{"value", "", faultproxy.Fault{}, "0", "UPDATE e SET v = repeat('x', 11000000) WHERE id = 1", "54000", "row is too big"},
		{"key", "", faultproxy.Fault{}, "0", "CREATE TABLE k (v text PRIMARY KEY); INSERT INTO k VALUES (repeat('x', 5000))", "54000", "index row size"},
	} {
		begun := time.Now()
		mustExec(t, conn, "SET statement_timeout = '"+c.timeout+"'")
		proxy.Inject(onKeys(c.method, c.fault))
		_, err := conn.Exec(t.Context(), c.sql)
		proxy.Inject(nil)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != c.code || !strings.Contains(pg.Message+pg.Detail+pg.Hint, c.text) {
			t.Errorf("%s: %v; want %s and %q", c.name, err, c.code, c.text)
		}
		mustExec(t, conn, "SET statement_timeout = 0")
		if got := mustInt(t, conn, "SELECT count(*) FROM e WHERE v = 'one'"); got != 1 {
			t.Errorf("%s: the row is not as it was", c.name)
		}
		t.Logf("%s: %v", c.name, time.Since(begun))
	}
}

// Goal: a commit whose outcome cannot be known is said to be so, and one that can be found out is found out. Method: the answer to the primary's commit,
// the second conditional request, is lost, or does not come; then all requests are answered, or none is for longer than commits are followed up.
func TestLostCommits(t *testing.T) {
	gone := faultproxy.Fault{Err: status.Error(codes.Unavailable, "lost")}
	executed := faultproxy.Fault{Err: gone.Err, Execute: true}
	for name, tc := range map[string]struct {
		commit, afterwards faultproxy.Fault
		unknown            bool
	}{
		"the answer is lost":                {commit: executed},
		"the answer does not come":          {commit: faultproxy.Fault{Silent: true, Execute: true}},
		"nothing is answered any more":      {commit: executed, afterwards: gone, unknown: true},
		"no answer comes for anything more": {commit: executed, afterwards: faultproxy.Fault{Silent: true}, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // It waits most of the time.
			proxy, conn := startFaulty(t, "--request-timeout", "1s")
			mustExec(t, conn, "CREATE TABLE e (id int PRIMARY KEY, n int)")
			mustExec(t, conn, "INSERT INTO e VALUES (1, 0)")
			mustExec(t, conn, "SELECT * FROM e")
			loseCommit(proxy, tc.commit, tc.afterwards)
			begun := time.Now()
			_, err := conn.Exec(t.Context(), "UPDATE e SET n = 1 WHERE id = 1")
			proxy.Inject(nil)
			var pg *pgconn.PgError
			switch {
			case !tc.unknown && err != nil:
				t.Error(err)
			case tc.unknown && (!errors.As(err, &pg) || pg.Code != "08007" || !strings.Contains(pg.Hint, "before you run it again")):
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			if got := mustInt(t, conn, "SELECT n FROM e WHERE id = 1"); got != 1 { // It had committed.
				t.Errorf("%d", got)
			}
		})
	}
}

// loseCommit injects a fault into the second conditional request from now on, and another one into all that follow; the coordinator's are left alone.
func loseCommit(proxy *faultproxy.Proxy, commit, afterwards faultproxy.Fault) {
	var conditional atomic.Int32
	proxy.Inject(func(method string, request []byte) faultproxy.Fault {
		if strings.Contains(string(request), "\x12\x0cmcoordinator") {
			return faultproxy.Fault{}
		}
		if method == "CheckAndMutateRow" {
			switch conditional.Add(1) {
			case 1:
				return faultproxy.Fault{}
			case 2:
				return commit
			}
		}
		if conditional.Load() >= 2 {
			return afterwards
		}
		return faultproxy.Fault{}
	})
}

// Goal: percodb init prepares an instance, and says what it has found the second time; percodb start over an instance that is not as it must be ends
// with what to do. Method: the binary over a proxy.
func TestInit(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	proxy, err := faultproxy.New(emulator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	flags := []string{"--engine", "bigtable", "--project", "p", "--instance", "i", "--emulator", proxy.Addr()}
	run := func(want string, args ...string) {
		t.Helper()
		out, _ := exec.Command(binary, append(args, flags...)...).CombinedOutput()
		if !strings.Contains(string(out), want) {
			t.Errorf("%v: %s\nwant %q in it", args, out, want)
		}
	}
	proxy.Inject(func(method string, _ []byte) faultproxy.Fault {
		if method == "CreateTable" {
			return faultproxy.Fault{Err: status.Error(codes.PermissionDenied, "as the test says")}
		}
		return faultproxy.Fault{}
	})
	run("Run percodb init --engine bigtable once", "start", "--listen", "127.0.0.1:0")
	proxy.Inject(nil)
	run("created the table percodb with the families d, l, m, n, s, w", "init")
	run("the table percodb exists, with all its families", "init")
	proxy.Inject(onKeys("CheckAndMutateRow", faultproxy.Fault{Err: status.Error(codes.FailedPrecondition, "several clusters")}))
	run("must route to a single cluster", "start", "--listen", "127.0.0.1:0")
	out, _ := exec.Command(binary, "init").CombinedOutput()
	if !strings.Contains(string(out), "--engine bigtable is missing") {
		t.Errorf("%s", out)
	}
}
