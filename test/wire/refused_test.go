package wire_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/node"
)

// Goal: a message for which there is no memory is an error of its statement, as in PostgreSQL: 53200, the connection goes on.
// Method: a server whose messages may have 16 MB, by either protocol, within blocks and COPY, with others behind it.
func TestRefusedMessages(t *testing.T) {
	opts := options(t.TempDir())
	opts.Memory = memory.NewPool("server", 64<<20)
	n, err := node.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	ctx, pg := testContext(t), conn.PgConn()
	execAll(t, conn, "create table refused (s text)")
	large := "select length('" + strings.Repeat("x", 20<<20) + "')"
	alive := func(after, status string) {
		t.Helper()
		if got := string(pg.TxStatus()); got != status {
			t.Errorf("after %s the status is %s, want %s", after, got, status)
		}
		var one int
		err := conn.QueryRow(ctx, "select 1", pgx.QueryExecModeSimpleProtocol).Scan(&one)
		if want := map[string]string{"I": "", "E": "25P02"}[status]; code(err) != want {
			t.Errorf("after %s: %v", after, err)
		}
	}
	if _, err := pg.Exec(ctx, large).ReadAll(); code(err) != "53200" {
		t.Errorf("a query: %v", err)
	}
	alive("a query", "I")
	if err := pg.ExecParams(ctx, large, nil, nil, nil, nil).Read().Err; code(err) != "53200" {
		t.Errorf("Parse: %v", err)
	}
	alive("Parse", "I")
	if err := pg.ExecParams(ctx, "select length($1::text)", [][]byte{[]byte(large)}, nil, nil, nil).Read().Err; code(err) != "53200" {
		t.Errorf("Bind: %v", err)
	}
	alive("Bind", "I")
	execAll(t, conn, "set idle_session_timeout = '2s'")
	f := pg.Frontend()
	f.SendParse(&pgproto3.Parse{Query: large})
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	if m, err := f.Receive(); err != nil || m.(*pgproto3.ErrorResponse).Code != "53200" {
		t.Fatalf("Parse without Sync: %v, %v", m, err)
	}
	time.Sleep(3 * time.Second) // longer than an idle session may last
	f.SendSync(&pgproto3.Sync{})
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	if m, err := f.Receive(); err != nil || m.(*pgproto3.ReadyForQuery).TxStatus != 'I' {
		t.Fatalf("a pipeline was taken for idle: %v, %v", m, err)
	}
	execAll(t, conn, "set idle_session_timeout = 0", "begin")
	if err := pg.ExecParams(ctx, large, nil, nil, nil, nil).Read().Err; code(err) != "53200" {
		t.Errorf("Parse in a block: %v", err)
	}
	alive("Parse in a block", "E")
	execAll(t, conn, "rollback", "begin")
	if _, err := pg.Exec(ctx, large).ReadAll(); code(err) != "53200" {
		t.Errorf("a query in a block: %v", err)
	}
	alive("a query in a block", "E")
	execAll(t, conn, "rollback")
	f.SendQuery(&pgproto3.Query{String: "copy refused from stdin"})
	for _, data := range []string{large, "x\n"} {
		f.Send(&pgproto3.CopyData{Data: []byte(data)})
	}
	f.Send(&pgproto3.CopyDone{})
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	var got string
	for ready := false; !ready; {
		m, err := f.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := m.(*pgproto3.ErrorResponse); ok {
			got += e.Code
		}
		_, ready = m.(*pgproto3.ReadyForQuery)
	}
	if got != "53200" {
		t.Errorf("COPY: %q", got)
	}
	alive("COPY", "I")
}
