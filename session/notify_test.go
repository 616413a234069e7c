package session

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/notify"
)

// recordedLink records what a Hub asks other processes for.
type recordedLink struct {
	calls       []string
	unavailable bool
}

func (l *recordedLink) record(format string, args ...any) error {
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
	if l.unavailable {
		return &kv.UnavailableError{Shard: "directory", Err: context.DeadlineExceeded}
	}
	return nil
}

// since returns what was recorded since the last call.
func (l *recordedLink) since() string {
	defer func() { l.calls = nil }()
	return strings.Join(l.calls, "; ")
}

func (l *recordedLink) Subscribe(_ context.Context, channels []string) error {
	return l.record("subscribe %s", channels)
}

func (l *recordedLink) Unsubscribe(channels []string) { _ = l.record("unsubscribe %s", channels) }

func (l *recordedLink) Announce(_ context.Context, channels []string) (notify.Announcement, error) {
	return recordedAnnouncement{l}, l.record("announce %s", channels)
}

type recordedAnnouncement struct{ link *recordedLink }

func (a recordedAnnouncement) Publish(messages []notify.Message) {
	var texts []string
	for _, m := range messages {
		texts = append(texts, m.Channel+" "+m.Payload)
	}
	_ = a.link.record("publish %s", strings.Join(texts, ", "))
}

func (a recordedAnnouncement) Cancel() { _ = a.link.record("cancel") }
func (a recordedAnnouncement) Lose()   { _ = a.link.record("lose") }

func notifying(t *testing.T) (*testServer, *recordedLink) {
	t.Helper()
	s, link := newTestServer(t), &recordedLink{}
	s.deps.Notify.Join(link)
	return s, link
}

// Goal: what follows a commit is what the outcome of the commit demands, and statements that run again notify once.
func TestNotificationsFollowTheCommit(t *testing.T) {
	s, link := notifying(t)
	c := s.connect()
	c.must("create table t (id int primary key, v int)", "create sequence s", "insert into t values (1, 0)")
	const update = "update t set v = v + 1 where id = 1 returning pg_notify('c', nextval('s')::text)"
	check := func(what, got, want, calls string) {
		t.Helper()
		if link := link.since(); got != want || link != calls {
			t.Errorf("%s:\n got %s\nwant %s\n got %s\nwant %s", what, got, want, link, calls)
		}
	}
	check("no conflict", c.query(update), "columns pg_notify; row ; UPDATE 1; I", "announce [c]; publish c 1")
	s.conflicts.Store(2)
	check("a statement that runs again", c.query(update), "columns pg_notify; row ; UPDATE 1; I", "announce [c]; cancel; announce [c]; cancel; announce [c]; publish c 4")
	c.must("begin; notify b, 'x'; update t set v = 1")
	s.conflicts.Store(1)
	check("a block that fails", c.query("commit"), "error 40001; I", "announce [b]; cancel")
	s.conflicts.Store(0)
	check("rolled back", c.query("begin; notify b; listen b; rollback"), "BEGIN; NOTIFY; LISTEN; ROLLBACK; I", "")
	check("several channels", c.query("notify b, '1'; notify a, '2'; notify b, '3'"), "NOTIFY; NOTIFY; NOTIFY; I", "announce [a b]; publish b 1, a 2, b 3")
	check("listen", c.query("begin; listen a; unlisten a; listen b; commit"), "BEGIN; LISTEN; UNLISTEN; LISTEN; COMMIT; I", "subscribe [b]")
	check("listen again", c.query("listen b"), "LISTEN; I", "")
	check("unlisten", c.query("unlisten *"), "UNLISTEN; I", "unsubscribe [b]")

	c.must("begin; update t set v = 1; notify b; listen d")
	link.unavailable = true
	check("without the other processes", c.query("commit"), "error 08006; I", "subscribe [d]")
	check("notify without them", c.query("notify b"), "error 08006; I", "announce [b]")
	link.unavailable = false
	check("the transaction has not committed", c.query("select v from t"), "columns v; row 2; SELECT 1; I", "")
	check("what failed is forgotten", c.query("select count(*) from pg_listening_channels()"), "columns count; row 0; SELECT 1; I", "")
	if used := c.memory.Used(); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
}

// Goal: a statement that runs again within its block notifies once.
func TestNotificationsOfRestartedStatements(t *testing.T) {
	s, link := notifying(t)
	a, b := s.connect(), s.connect()
	a.must("create table t (id int primary key, v int)", "create sequence s", "insert into t values (1, 0)")
	b.must("begin", "select 1")
	b.must("update t set v = v where id = 2")
	a.must("update t set v = 5 where id = 1")
	link.since()
	b.must("notify x, 'before'", "update t set v = v + 1 where id = 1 returning pg_notify('x', 'v ' || v)", "commit")
	if got := link.since(); got != "announce [x]; publish x before, x v 6" {
		t.Error(got)
	}
}

// Goal: the notifications of a transaction draw memory, which its end gives back, however it ends.
func TestNotificationsDrawMemory(t *testing.T) {
	s, _ := notifying(t)
	c := s.connect()
	for _, end := range []string{"commit", "rollback", "selec; rollback"} {
		c.must("begin; select count(pg_notify('c', i || repeat('x', 1000))) from generate_series(1, 100) i; listen c; savepoint a")
		c.must("select count(pg_notify('c', 'a' || i || repeat('x', 1000))) from generate_series(1, 100) i")
		if used := c.memory.Used(); used < 200_000 {
			t.Errorf("%d bytes for 200 notifications", used)
		}
		c.must("rollback to a")
		if used := c.memory.Used(); used < 100_000 || used > 150_000 {
			t.Errorf("%d bytes for 100 notifications", used)
		}
		c.query(end)
		c.query("rollback")
		if used := c.memory.Used(); end == "commit" && (used < channelBytes || used > 10_000) {
			t.Errorf("%d bytes for a channel", used)
		}
		c.must("unlisten *")
		if used := c.memory.Used(); used != 0 {
			t.Errorf("%s: %d bytes are left", end, used)
		}
	}
	if got := c.query("select count(pg_notify('c', i || repeat('x', 7000))) from generate_series(1, 2000) i"); !strings.Contains(got, "error 54000") {
		t.Errorf("too many notifications: %s", got)
	}
}
