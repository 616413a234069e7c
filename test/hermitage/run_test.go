package hermitage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// scheduleTimeout bounds a schedule, so that a server that does not answer fails a test instead of the run.
const scheduleTimeout = 2 * time.Minute

// server is where schedules run.
type server struct {
	url string
	// waiting is a query that tells whether the session with the given process id ($1) waits for a
	// lock of an open transaction.
	waiting string
}

// outcome is what became of a schedule.
type outcome struct {
	transcript string
	// committed holds the answers that each transaction got that committed, in order.
	committed map[string]string
	// table is what the table holds in the end.
	table string
}

func (o *outcome) equal(other *outcome) bool {
	return o.table == other.table && maps.Equal(o.committed, other.committed)
}

// answer is how a statement ended.
type answer struct {
	text   string // for the transcript
	failed bool
}

// session is a transaction's connection.
type session struct {
	conn    *pgconn.PgConn
	begun   bool
	failed  bool
	ended   bool
	pending chan answer // of the statement under way, or nil
	waits   bool        // that statement has been noted as waiting
	answers []string
}

// runner runs one schedule.
type runner struct {
	t        testing.TB
	ctx      context.Context
	server   *server
	level    string
	observer *pgconn.PgConn
	sessions map[string]*session
	order    []string // of sessions, as they began
	lines    []string
}

func connect(ctx context.Context, t testing.TB, s *server) *pgconn.PgConn {
	t.Helper()
	conn, err := pgconn.Connect(ctx, s.url)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// run runs a schedule at a level and reports what became of it. A schedule is one that a person at
// several terminals could have typed: a transaction whose statement waits has no step before it is
// answered.
func run(t testing.TB, s *server, level string, schedule []step) *outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scheduleTimeout)
	defer cancel()
	r := &runner{t: t, ctx: ctx, server: s, level: level, sessions: map[string]*session{}}
	r.observer = connect(ctx, t, s)
	defer r.observer.Close(context.Background())
	r.must("drop table if exists test")
	r.must("create table test (id int primary key, value int)")
	r.must("insert into test (id, value) values (1, 10), (2, 20)")
	defer func() {
		for _, s := range r.sessions {
			s.conn.Close(context.Background())
		}
	}()
	for _, step := range schedule {
		r.step(step)
	}
	return r.outcome()
}

func (r *runner) must(statement string) string {
	r.t.Helper()
	a := execute(r.ctx, r.observer, statement)
	if a.failed {
		r.t.Fatalf("%s: %s", statement, a.text)
	}
	return a.text
}

// step runs a statement until it is answered or waits, then each statement that waited until it is answered or
// waits again.
func (r *runner) step(st step) {
	r.t.Helper()
	s := r.sessions[st.txn]
	if s == nil {
		s = &session{conn: connect(r.ctx, r.t, r.server)}
		r.sessions[st.txn] = s
		r.order = append(r.order, st.txn)
	}
	if !s.begun {
		if a := execute(r.ctx, s.conn, "begin isolation level "+r.level); a.failed {
			r.t.Fatalf("%s: begin: %s", st.txn, a.text)
		}
		s.begun = true
	}
	ends := st.statement == "commit" || st.statement == "rollback"
	if s.pending != nil {
		r.t.Fatalf("%s: the statement before is still waiting:\n%s", st, strings.Join(r.lines, "\n"))
	}
	if s.failed && !ends {
		r.note("%s → not run", st)
		return
	}
	s.pending = make(chan answer, 1)
	go func(pending chan answer) { pending <- execute(r.ctx, s.conn, st.statement) }(s.pending)
	r.settle(st.txn, st.String())
	s.ended = s.ended || ends
	// A commit or a rollback to a savepoint lets others go on: the next step comes after their answers.
	for _, name := range r.order {
		r.settle(name, name)
	}
}

// settle waits until a transaction's statement is answered or waits for a lock, and notes which.
func (r *runner) settle(name, title string) {
	r.t.Helper()
	s := r.sessions[name]
	if s.pending == nil {
		return
	}
	for {
		select {
		case a := <-s.pending:
			s.pending, s.waits = nil, false
			s.failed = s.failed || a.failed
			s.answers = append(s.answers, a.text)
			r.note("%s → %s", title, a.text)
			return
		case <-r.ctx.Done():
			r.t.Fatalf("no answer:\n%s\n%s", strings.Join(r.lines, "\n"), title)
		case <-time.After(time.Millisecond):
		}
		result := r.observer.ExecParams(r.ctx, r.server.waiting, [][]byte{fmt.Append(nil, s.conn.PID())}, nil, nil, nil).Read()
		if result.Err != nil {
			r.t.Fatalf("%s: %v", r.server.waiting, result.Err)
		}
		if len(result.Rows) == 0 || string(result.Rows[0][0]) != "t" {
			continue
		}
		if !s.waits {
			s.waits = true
			r.note("%s → waits", title)
		}
		return
	}
}

func (r *runner) note(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// outcome ends the run.
func (r *runner) outcome() *outcome {
	r.t.Helper()
	for name, s := range r.sessions {
		if s.pending != nil || !s.ended {
			r.t.Fatalf("%s has not ended:\n%s", name, strings.Join(r.lines, "\n"))
		}
	}
	o := &outcome{committed: map[string]string{}, table: r.must("select * from test")}
	for name, s := range r.sessions {
		if n := len(s.answers) - 1; s.answers[n] == "commit" {
			o.committed[name] = strings.Join(s.answers[:n], "; ")
		}
	}
	r.note("table → %s", o.table)
	o.transcript = strings.Join(r.lines, "\n")
	return o
}

// execute runs a statement; rows are sorted, since a table has no order.
func execute(ctx context.Context, conn *pgconn.PgConn, statement string) answer {
	results, err := conn.Exec(ctx, statement).ReadAll()
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr):
		return answer{text: "error " + pgErr.Code, failed: true}
	case err != nil:
		return answer{text: err.Error(), failed: true}
	}
	result := results[len(results)-1]
	tag := result.CommandTag
	if !tag.Select() && !strings.HasPrefix(tag.String(), "FETCH") {
		if tag.Insert() || tag.Update() || tag.Delete() {
			return answer{text: counted(int(tag.RowsAffected()))}
		}
		return answer{text: strings.ToLower(tag.String())}
	}
	var rows []string
	for _, row := range result.Rows {
		var values []string
		for _, v := range row {
			values = append(values, string(v))
		}
		rows = append(rows, "("+strings.Join(values, ",")+")")
	}
	if len(rows) == 0 {
		return answer{text: counted(0)}
	}
	slices.Sort(rows)
	return answer{text: strings.Join(rows, " ")}
}

func counted(n int) string {
	switch n {
	case 0:
		return "no row"
	case 1:
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// serial reports whether an outcome is that of the committed transactions one after the other, in
// some order, on the same server.
func serial(t testing.TB, s *server, level string, schedule []step, o *outcome) (order []string, ok bool) {
	t.Helper()
	for _, order := range permutations(slices.Sorted(maps.Keys(o.committed))) {
		var steps []step
		for _, name := range order {
			for _, st := range schedule {
				if st.txn == name {
					steps = append(steps, st)
				}
			}
		}
		if o.equal(run(t, s, level, steps)) {
			return order, true
		}
	}
	return nil, false
}

func permutations(names []string) (all [][]string) {
	if len(names) == 0 {
		return [][]string{nil}
	}
	for i := range names {
		rest := slices.Concat(names[:i], names[i+1:])
		for _, p := range permutations(rest) {
			all = append(all, append([]string{names[i]}, p...))
		}
	}
	return all
}
