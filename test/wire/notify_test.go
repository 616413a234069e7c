package wire_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/node"
)

// Goal: LISTEN, UNLISTEN and NOTIFY answer as PostgreSQL's do: they take effect at commit, in order, each notification once, and
// nothing remains of what was rolled back. Method: transcripts of a session that notifies itself.
func TestNotifyTranscripts(t *testing.T) {
	r := open(t)
	const row = "columns pg_notify:2278/0\nrow \ncomplete SELECT 1\n"
	cases := []struct{ name, text, want string }{
		{"nobody listens", "notify n1", "complete NOTIFY\nready I\n"},
		{"listen", "listen n1", "complete LISTEN\nready I\n"},
		{"itself", "notify n1", "complete NOTIFY\nnotification n1 \"\"\nready I\n"},
		{"payload", "notify n1, 'it''s'", "complete NOTIFY\nnotification n1 \"it's\"\nready I\n"},
		{"names are folded", "notify N1", "complete NOTIFY\nnotification n1 \"\"\nready I\n"},
		{"quoted names are not", `notify "N1"`, "complete NOTIFY\nready I\n"},
		{"a channel named observer", "listen observer; notify observer; notify observer, 'x'; unlisten observer", `
			complete LISTEN
			complete NOTIFY
			complete NOTIFY
			complete UNLISTEN
			ready I
			`},
		{"another channel", "notify n2, 'x'", "complete NOTIFY\nready I\n"},
		{"duplicates", "begin; notify n1, 'b'; notify n1, 'a'; notify n1, 'b'; notify n1; notify n1; commit", `
			complete BEGIN
			complete NOTIFY
			complete NOTIFY
			complete NOTIFY
			complete NOTIFY
			complete NOTIFY
			complete COMMIT
			notification n1 "b"
			notification n1 "a"
			notification n1 ""
			ready I
			`},
		{"in a block", "begin; notify n1, 'c'", "complete BEGIN\ncomplete NOTIFY\nready T\n"},
		{"still in it", "select 1", "columns ?column?:23/0\nrow 1\ncomplete SELECT 1\nready T\n"},
		{"commit", "commit", "complete COMMIT\nnotification n1 \"c\"\nready I\n"},
		{"rollback", "begin; notify n1, 'd'; rollback", "complete BEGIN\ncomplete NOTIFY\ncomplete ROLLBACK\nready I\n"},
		{"failure", "notify n1, 'd'; select 1/(g-g) from generate_series(1, 1) g", "complete NOTIFY\ncolumns ?column?:23/0\nerror 22012 division by zero\nready I\n"},
		{"savepoints", `begin; notify n1, 'a'; savepoint s; notify n1, 'b'; notify n1, 'a'; savepoint u; notify n1, 'c'; rollback to s;
			notify n1, 'd'; notify n1, 'b'; release s; commit`, `
			complete BEGIN
			complete NOTIFY
			complete SAVEPOINT
			complete NOTIFY
			complete NOTIFY
			complete SAVEPOINT
			complete NOTIFY
			complete ROLLBACK
			complete NOTIFY
			complete NOTIFY
			complete RELEASE
			complete COMMIT
			notification n1 "a"
			notification n1 "d"
			notification n1 "b"
			ready I
			`},
		{"and chain", "begin; notify n1, 'x'; commit and chain", "complete BEGIN\ncomplete NOTIFY\ncomplete COMMIT\nready T\n"},
		{"after the chain", "rollback", "complete ROLLBACK\nnotification n1 \"x\"\nready I\n"},
		{"pg_notify", "select pg_notify('n1', 'f')", row + "notification n1 \"f\"\nready I\n"},
		{"pg_notify of NULL", "select pg_notify('n1', null)", row + "notification n1 \"\"\nready I\n"},
		{"many", "select count(pg_notify('n1', (i % 20)::text)) from generate_series(1, 40) i", "columns count:20/0\nrow 40\ncomplete SELECT 1\n" +
			numbered(1, 19) + numbered(0, 0) + "ready I\n"},
		{"no channel", "select pg_notify('', 'x')", "columns pg_notify:2278/0\nerror 22023 channel name cannot be empty\nready I\n"},
		{"no channel at all", "select pg_notify(null, 'x')", "columns pg_notify:2278/0\nerror 22023 channel name cannot be empty\nready I\n"},
		{"long channel", "select pg_notify(repeat('x', 64), 'x')", "columns pg_notify:2278/0\nerror 22023 channel name too long\nready I\n"},
		{"longest channel", "select pg_notify(repeat('x', 63), 'x')", row + "ready I\n"},
		{"long payload", "select pg_notify('n1', repeat('x', 8000))", "columns pg_notify:2278/0\nerror 22023 payload string too long\nready I\n"},
		{"longest payload", "select pg_notify('n1', repeat('x', 7999))", row + "notification n1 \"" + strings.Repeat("x", 7999) + "\"\nready I\n"},
		{"long payload of NOTIFY", "notify n1, '" + strings.Repeat("x", 8000) + "'", "error 22023 payload string too long\nready I\n"},
		{"read only", "begin read only; notify n1, 'r'; commit", "complete BEGIN\ncomplete NOTIFY\ncomplete COMMIT\nnotification n1 \"r\"\nready I\n"},
		{"failed block", "begin; selec", "error 42601 syntax error at or near \"selec\"\nready I\n"},
		{"listen twice", "listen n1; listen n1; notify n1", "complete LISTEN\ncomplete LISTEN\ncomplete NOTIFY\nnotification n1 \"\"\nready I\n"},
		{"channels", "select pg_listening_channels()", "columns pg_listening_channels:25/0\nrow n1\ncomplete SELECT 1\nready I\n"},
		{"listen is transactional", "begin; listen n2; select pg_listening_channels(); notify n2; rollback", `
			complete BEGIN
			complete LISTEN
			columns pg_listening_channels:25/0
			row n1
			complete SELECT 1
			complete NOTIFY
			complete ROLLBACK
			ready I
			`},
		{"listen and savepoints", "begin; savepoint s; listen n3; rollback to s; listen n2; commit; select * from pg_listening_channels() c order by c", `
			complete BEGIN
			complete SAVEPOINT
			complete LISTEN
			complete ROLLBACK
			complete LISTEN
			complete COMMIT
			columns c:25/0
			row n1
			row n2
			complete SELECT 2
			ready I
			`},
		{"channels in order", "listen \"A\"; select pg_listening_channels(); unlisten \"A\"", `
			complete LISTEN
			columns pg_listening_channels:25/0
			row n1
			row n2
			complete SELECT 2
			complete UNLISTEN
			ready I
			`},
		{"listens later", "listen \"A\"", "complete LISTEN\nready I\n"},
		{"later ones come last", "select pg_listening_channels()", "columns pg_listening_channels:25/0\nrow n1\nrow n2\nrow A\ncomplete SELECT 3\nready I\n"},
		{"no more", "unlisten \"A\"", "complete UNLISTEN\nready I\n"},
		{"unlisten is transactional", "begin; unlisten *; notify n2; rollback", "complete BEGIN\ncomplete UNLISTEN\ncomplete NOTIFY\ncomplete ROLLBACK\nready I\n"},
		{"unlisten", "unlisten n2; notify n2; notify n1", "complete UNLISTEN\ncomplete NOTIFY\ncomplete NOTIFY\nnotification n1 \"\"\nready I\n"},
		{"unlisten an unknown one", "unlisten nowhere", "complete UNLISTEN\nready I\n"},
		{"listen and notify", "begin; notify n2, 'y'; listen n2; commit", "complete BEGIN\ncomplete NOTIFY\ncomplete LISTEN\ncomplete COMMIT\nnotification n2 \"y\"\nready I\n"},
		{"usage", "select pg_notification_queue_usage()", "columns pg_notification_queue_usage:701/0\nrow 0\ncomplete SELECT 1\nready I\n"},
		{"reset all keeps them", "reset all; notify n1", "complete RESET\ncomplete NOTIFY\nnotification n1 \"\"\nready I\n"},
		{"settings come after", "begin; notify n1; set application_name = 'later'; commit", `
			complete BEGIN
			complete NOTIFY
			complete SET
			complete COMMIT
			notification n1 ""
			setting application_name=later
			ready I
			`},
		{"discard all", "discard all", "complete DISCARD ALL\nsetting application_name=\nready I\n"},
		{"listens to nothing", "notify n1; select count(*) from pg_listening_channels()", "complete NOTIFY\ncolumns count:20/0\nrow 0\ncomplete SELECT 1\nready I\n"},
		{"unlisten all of none", "unlisten *", "complete UNLISTEN\nready I\n"},
	}
	for _, c := range cases {
		expect(t, c.name, r.query(c.text), c.want)
		if c.name == "failed block" {
			r.query("rollback")
		}
	}
}

// numbered is the transcript of notifications of n1 with numbers.
func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "notification n1 \"%d\"\n", i)
	}
	return b.String()
}

// Goal: in the extended protocol notifications follow Sync, also when a statement of the pipeline runs again.
func TestNotifyInPipelines(t *testing.T) {
	r := open(t)
	r.query("listen pipe")
	r.send(parse("", "notify pipe, 'a'"), bind("", ""), execute("", 0), parse("", "select pg_notify('pipe', 'b')"), bind("", ""), execute("", 0), syncing)
	expect(t, "two", r.ready(), `
		parsecomplete
		bindcomplete
		complete NOTIFY
		parsecomplete
		bindcomplete
		row 
		complete SELECT 1
		notification pipe "a"
		notification pipe "b"
		ready I
	`)
	r.query("drop table if exists pipe_t")
	r.query("create table pipe_t (id int primary key)")
	r.query("insert into pipe_t values (1)")
	r.send(parse("", "select pg_notify('pipe', id::text) from pipe_t where id = 1"), bind("", ""), execute("", 0),
		parse("", "insert into pipe_t values (2)"), bind("", ""), execute("", 0), syncing)
	expect(t, "a query that notifies, then a change", r.ready(), `
		parsecomplete
		bindcomplete
		row 
		complete SELECT 1
		parsecomplete
		bindcomplete
		complete INSERT 0 1
		notification pipe "1"
		ready I
	`)
	r.send(parse("", "notify pipe, 'c'"), bind("", ""), execute("", 0), parse("", "insert into pipe_t values (1)"), bind("", ""), execute("", 0), syncing)
	if got := r.ready(); strings.Contains(got, "notification") || !strings.Contains(got, "error 23505") {
		t.Errorf("a pipeline that fails: %q", got)
	}
}

// receive returns the next notification's payload.
func receive(t testing.TB, conn *pgx.Conn) string {
	t.Helper()
	n, err := conn.WaitForNotification(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return n.Payload
}

// Goal: a client that waits is sent notifications at once, with the sender's process id; one in a transaction only after its
// end; none after UNLISTEN; and its next statement is undisturbed.
func TestWaitForNotification(t *testing.T) {
	listener, sender := connect(t, ""), connect(t, "")
	execAll(t, listener, "listen w1")
	ctx := testContext(t)
	for i := range 100 {
		sent := make(chan error, 1)
		go func() {
			_, err := sender.Exec(ctx, fmt.Sprintf("notify w1, '%d'", i))
			sent <- err
		}()
		n, err := listener.WaitForNotification(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n.Channel != "w1" || n.Payload != fmt.Sprint(i) || n.PID != sender.PgConn().PID() {
			t.Fatalf("%+v, want w1 %d from %d", n, i, sender.PgConn().PID())
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	execAll(t, listener, "begin", "select 1")
	execAll(t, sender, "notify w1, 'in a block'")
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if n, err := listener.WaitForNotification(short); err == nil {
		t.Errorf("in a transaction block: %+v", n)
	}
	listener = connect(t, "") // pgx closes a connection whose wait was cut off.
	execAll(t, listener, "listen w1", "begin", "select 1")
	execAll(t, sender, "notify w1, 'a'", "notify w1, 'b'")
	execAll(t, listener, "commit")
	if a, b := receive(t, listener), receive(t, listener); a != "a" || b != "b" {
		t.Errorf("after the block: %s, %s", a, b)
	}
	execAll(t, listener, "begin", "unlisten w1")
	execAll(t, sender, "notify w1, 'c'")
	execAll(t, listener, "commit", "listen w1")
	execAll(t, sender, "notify w1, 'd'")
	if got := receive(t, listener); got != "d" {
		t.Errorf("after UNLISTEN and LISTEN: %s", got)
	}
}

// Goal: who reads after a notification sees what its sender has committed, and the notifications of each sender arrive in the
// order of its commits, however many send and whatever the listener does meanwhile.
func TestNotifyOrder(t *testing.T) {
	const senders, each = 8, 200
	listener := connect(t, "")
	execAll(t, listener, "drop table if exists notify_order", "create table notify_order (sender int, n int, primary key (sender, n))", "listen ordered")
	ctx := testContext(t)
	var wg sync.WaitGroup
	for s := range senders {
		conn := connect(t, "")
		wg.Go(func() {
			for i := range each {
				_, err := conn.Exec(ctx, fmt.Sprintf("begin; insert into notify_order values (%d, %d); notify ordered, '%d %d'; commit", s, i, s, i))
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var next [senders]int
	for received := 0; received < senders*each; received++ {
		var s, i int
		if _, err := fmt.Sscan(receive(t, listener), &s, &i); err != nil {
			t.Fatal(err)
		}
		if next[s] != i {
			t.Fatalf("sender %d: %d arrived, %d was next", s, i, next[s])
		}
		next[s]++
		if received%7 != 0 {
			continue
		}
		var there int
		if err := listener.QueryRow(ctx, "select count(*) from notify_order where sender = $1 and n = $2", s, i).Scan(&there); err != nil || there != 1 {
			t.Fatalf("the row of a notification: %d, %v", there, err)
		}
	}
	wg.Wait()
}

// Goal: a client that receives a large message, which is read in parts, is sent notifications meanwhile, and the message
// arrives undamaged.
func TestNotifyDuringMessage(t *testing.T) {
	listener, sender := open(t), connect(t, "")
	listener.query("listen m1")
	text := "select '" + strings.Repeat("x", 100_000) + "' as x"
	message, err := (&pgproto3.Query{String: text}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range [][]byte{message[:3], message[3:50_000], message[50_000:]} {
		execAll(t, sender, "notify m1")
		if got := listener.next(); got != `notification m1 ""` {
			t.Fatal(got)
		}
		if _, err := listener.conn.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if got := listener.ready(); len(got) < 100_000 || !strings.HasSuffix(got, "complete SELECT 1\nready I\n") {
		t.Errorf("%.200s", got)
	}
}

// Goal: idle_session_timeout, pg_terminate_backend and COPY work for a client that listens and is notified.
func TestNotifiedConnectionEnds(t *testing.T) {
	t.Parallel() // It mostly waits.
	listener, sender := open(t), connect(t, "")
	pid := listener.pid()
	listener.query("drop table if exists notify_copy")
	listener.query("create table notify_copy (id int primary key)")
	listener.query("listen e1")
	listener.send(&pgproto3.Query{String: "copy notify_copy from stdin"})
	if got := listener.next(); !strings.HasPrefix(got, "copyin") {
		t.Fatal(got)
	}
	execAll(t, sender, "notify e1, 'copy'")
	time.Sleep(20 * time.Millisecond) // The server waits for data; a notification must not end that.
	listener.send(&pgproto3.CopyData{Data: []byte("1\n")}, &pgproto3.CopyDone{})
	expect(t, "copy", listener.ready(), "complete COPY 1\nnotification e1 \"copy\"\nready I\n")

	execAll(t, sender, "notify e1, 'idle'")
	if got := listener.next(); got != `notification e1 "idle"` {
		t.Error(got)
	}
	execAll(t, sender, fmt.Sprintf("select pg_terminate_backend(%d)", pid))
	if got := listener.end(); got != "fatal 57P01 terminating connection due to administrator command\n" {
		t.Errorf("terminated: %q", got)
	}

	idle := open(t)
	idle.query("listen e1")
	began := time.Now()
	idle.query("set idle_session_timeout = '4s'")
	for range 3 {
		time.Sleep(100 * time.Millisecond) // The client is to be idle for a part of its timeout.
		execAll(t, sender, "notify e1")
		if got := idle.next(); got != `notification e1 ""` {
			t.Fatal(got)
		}
	}
	if got := idle.end(); got != "fatal 57P05 terminating connection due to idle-session timeout\n" {
		t.Errorf("idle: %q", got)
	}
	if took := time.Since(began); took < 3900*time.Millisecond || took > time.Minute {
		t.Errorf("the session was idle for %v", took)
	}
}

// Goal: a client that does not take its notifications is disconnected with an error, and others are not held up.
func TestSlowListener(t *testing.T) {
	if address == "" || !isPercodb(t) {
		t.Skip("PostgreSQL keeps notifications in a queue of 8 GB")
	}
	slow, quick, sender := open(t), connect(t, ""), connect(t, "")
	slow.query("begin; listen s1; commit; begin")
	execAll(t, quick, "listen s1")
	ctx := testContext(t)
	const notifications = 2000
	var sending sync.WaitGroup
	sending.Go(func() {
		for i := range notifications {
			if _, err := sender.Exec(ctx, fmt.Sprintf("notify s1, '%d %s'", i, strings.Repeat("x", 7900))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range notifications {
		if got := receive(t, quick); !strings.HasPrefix(got, fmt.Sprintf("%d x", i)) {
			t.Fatalf("%d: %.20s", i, got)
		}
	}
	sending.Wait()
	if got := slow.end(); got != "fatal 54000 terminating connection because too many notifications wait for the client\n" {
		t.Errorf("the slow client: %.300q", got)
	}
	if _, err := sender.Exec(ctx, "begin; select pg_notify('s1', repeat('x', 7000) || i) from generate_series(1, 2000) i; commit"); failure(err) != "54000 too many notifications in the NOTIFY queue" {
		t.Errorf("a transaction with too many: %v", err)
	}
}

func isPercodb(t testing.TB) bool {
	var version string
	if err := connect(t, "").QueryRow(testContext(t), "select version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(version, "percodb")
}

// Goal: the server shuts down although clients listen.
func TestShutdownOfListeners(t *testing.T) {
	if !isPercodb(t) {
		t.Skip("starts a server of its own")
	}
	n, err := node.Start(context.Background(), options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(testContext(t), "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	execAll(t, conn, "listen down")
	n.Close(testContext(t))
	if _, err := conn.WaitForNotification(testContext(t)); failure(err) != "57P01 terminating connection due to administrator command" {
		t.Errorf("the listener: %v", err)
	}
}
