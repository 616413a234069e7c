package session

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/percodb/percodb/internal/storetest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// testServer is what the sessions of a test share: a store in memory.
type testServer struct {
	t         testing.TB
	deps      Deps
	waits     *waitgraph.Local
	conflicts atomic.Int32 // how many of the next prewrites are answered with a conflict
	pid       uint32
}

func newTestServer(t testing.TB) *testServer {
	t.Helper()
	s := &testServer{t: t}
	store := storetest.Open(t, func(_ context.Context, req any) error {
		if p, ok := req.(*kv.PrewriteRequest); ok && s.conflicts.Add(-1) >= 0 {
			return &mvcc.WriteConflictError{Key: p.Mutations[0].Key, StartTS: p.StartTS, ConflictingStartTS: 1, ConflictingCommitTS: 2}
		}
		return nil
	})
	s.waits = store.Waits
	s.deps = Deps{
		DB: store.DB, Catalog: store.Catalog, Router: store.Router, Oracle: store.Oracle, Plans: NewPlanCache(), Metrics: NewMetrics(nil),
		Logger: slog.New(slog.DiscardHandler), Version: "15.8", Notify: notify.New(notify.Options{}),
	}
	return s
}

// client is a session with a writer that records what its client is sent.
type client struct {
	t testing.TB
	*Session
	recordingWriter
}

func (s *testServer) connect() *client {
	s.t.Helper()
	s.pid++
	session, err := New(context.Background(), s.deps, s.pid, Client{}, map[string]string{"user": "postgres"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(session.Close)
	c := &client{t: s.t, Session: session}
	c.Buffer = NewBuffer(&c.sent, nil)
	return c
}

// recordingWriter is a ResultWriter whose messages are lines of text.
type recordingWriter struct {
	*Buffer
	sent  bytes.Buffer
	input string // what CopyIn reads
	cols  []Column
}

func (r *recordingWriter) add(format string, args ...any) error {
	r.Data = append(fmt.Appendf(r.Data, format, args...), "; "...)
	return r.SendIfLarge()
}

func (r *recordingWriter) Columns(cols []Column, _ []int16, announce bool) error {
	r.cols = cols
	if !announce {
		return nil
	}
	names := make([]string, len(cols))
	for i := range cols {
		names[i] = cols[i].Name
	}
	return r.add("columns %s", strings.Join(names, " "))
}

func (r *recordingWriter) Row(row types.Row) error {
	values := make([]string, len(row))
	for i := range row {
		values[i] = "null"
		if !row[i].IsNull() {
			values[i] = string(types.AppendText(nil, row[i], r.cols[i].Type, &types.Format{}))
		}
	}
	return r.add("row %s", strings.Join(values, " "))
}

func (r *recordingWriter) Complete(tag Tag) error { return r.add("%s", tag.Append(nil)) }
func (r *recordingWriter) Suspended() error       { return r.add("suspended") }
func (r *recordingWriter) Empty() error           { return r.add("empty") }
func (r *recordingWriter) Notice(n *pgerror.Error) {
	at := len(r.Data)
	_ = r.add("notice %s", n.Code)
	r.Keep(at)
}

func (r *recordingWriter) Setting(n, value string) { _ = r.add("setting %s=%s", n, value) }
func (r *recordingWriter) CopyIn(int, bool) (io.Reader, error) {
	return strings.NewReader(r.input), r.add("copy in")
}
func (r *recordingWriter) CopyOut(int, bool) (io.Writer, error) {
	return copyLines{r}, r.add("copy out")
}
func (r *recordingWriter) CopyDone() error { return r.add("copy done") }

type copyLines struct{ r *recordingWriter }

func (c copyLines) Write(p []byte) (int, error) { return len(p), c.r.add("data %q", p) }

// query runs a simple query and returns what the client is sent, with the status, as one line.
func (c *client) query(text string) string {
	c.t.Helper()
	return c.report(c.Query(text, &c.recordingWriter))
}

// report ends a transcript's line: what was sent since the last one, the error, the status.
func (c *client) report(err error) string {
	if err != nil {
		_ = c.add("error %s", ToPGError(err).Code)
	}
	_ = c.add("%c", c.Status())
	if err := c.Send(); err != nil {
		c.t.Fatal(err)
	}
	defer c.sent.Reset()
	return strings.TrimSuffix(c.sent.String(), "; ")
}

// must runs statements that must succeed.
func (c *client) must(texts ...string) {
	c.t.Helper()
	for _, text := range texts {
		if got := c.query(text); strings.Contains(got, "error") {
			c.t.Fatalf("%s: %s", text, got)
		}
	}
}

// transcript runs the simple queries on the left and compares what the client is sent with what stands on the right.
func (c *client) transcript(lines string) {
	c.t.Helper()
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		text, want, _ := strings.Cut(line, " → ")
		if got := c.query(strings.TrimSpace(text)); got != strings.TrimSpace(want) {
			c.t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// pipeline runs statements of the extended protocol and Sync, and returns what the client is sent. A statement may have a
// number of rows before it ("2: select …") and arguments behind it (" | 1 | 2"). Behind an error all are skipped.
func (c *client) pipeline(statements ...string) string {
	c.t.Helper()
	for _, text := range statements {
		if err := c.runExtended(text); err != nil {
			_ = c.add("error %s", ToPGError(err).Code)
			break
		}
	}
	return c.report(c.Sync(&c.recordingWriter))
}

func (c *client) runExtended(text string) error {
	maxRows := 0
	if before, after, ok := strings.Cut(text, ": "); ok {
		if n, err := strconv.Atoi(before); err == nil {
			maxRows, text = n, after
		}
	}
	parts := strings.Split(text, " | ")
	if err := c.RunDeferred(&c.recordingWriter); err != nil {
		return err
	}
	if err := c.Parse("", parts[0], nil); err != nil {
		return err
	}
	_ = c.add("parsed")
	req := BindRequest{}
	for _, value := range parts[1:] {
		req.Params = append(req.Params, []byte(value))
	}
	if err := c.Bind(req); err != nil {
		return err
	}
	return c.Execute("", maxRows, &c.recordingWriter)
}

// counted returns the value of a counter.
func counted(t *testing.T, c prometheus.Counter) int {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return int(m.Counter.GetValue())
}
