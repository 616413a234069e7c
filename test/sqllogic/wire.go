package sqllogic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// serverError is an error with which the server answered a record. The connection stays open.
type serverError struct {
	code    string // the SQLSTATE
	message string
	fatal   bool // the server ends the connection after it
}

func (e *serverError) Error() string { return "ERROR " + e.code + ": " + e.message }

// errTimeout is returned if a record exceeds its time limit. The connection is closed then.
var errTimeout = errors.New("timed out")

// wire is one connection. pgconn opens it, with everything that a URL can specify; the runner then speaks the protocol
// itself: for hundreds of thousands of short queries, one write and one pass over the answer, without goroutines and
// contexts, keep the runner's cost out of the measurement.
type wire struct {
	conn      net.Conn
	frontend  *pgproto3.Frontend
	processID uint32 // these two identify the session in a cancel request
	secretKey []byte
	timeout   time.Duration
	unwatch   func() bool // ends the watch over the run's context

	letters []byte   // the column letters of the current query
	oids    []uint32 // its column types, as the server describes them
}

// dial opens a connection to the server.
func dial(ctx context.Context, dsn string, timeout time.Duration) (*wire, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 10 * time.Second
	}
	pc, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	hijacked, err := pc.Hijack()
	if err != nil {
		return nil, err
	}
	w := &wire{
		conn: hijacked.Conn, frontend: hijacked.Frontend,
		processID: hijacked.PID, secretKey: hijacked.SecretKey,
		timeout: timeout,
	}
	w.unwatch = context.AfterFunc(ctx, func() { _ = w.conn.Close() })
	return w, nil
}

// close ends the connection. Terminate is optional, but the server logs less with it.
func (w *wire) close() {
	w.unwatch()
	w.frontend.Send(&pgproto3.Terminate{})
	_ = w.frontend.Flush()
	_ = w.conn.Close()
}

// cancel requests that the server cancel the current query, so that its locks do not block later ones. The server may
// ignore it.
func (w *wire) cancel() {
	const cancelTimeout = 5 * time.Second
	addr := w.conn.RemoteAddr()
	conn, err := net.DialTimeout(addr.Network(), addr.String(), cancelTimeout)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(cancelTimeout))
	request := pgproto3.CancelRequest{ProcessID: w.processID, SecretKey: w.secretKey}
	message, err := request.Encode(nil)
	if err != nil {
		return
	}
	if _, err := conn.Write(message); err == nil {
		_, _ = conn.Read(make([]byte, 1)) // the server closes after it has forwarded the request
	}
}

// reply is the result of one simple query that the server answered.
type reply struct {
	err     *serverError // nil when it succeeded
	rows    int64        // the row count of the last command tag, -1 when it has none
	columns bool         // whether it returned rows at all
}

// request is one record in the form in which it is sent.
type request struct {
	sql      string
	data     string // the input of COPY … FROM STDIN; "" makes it fail
	letters  string // the column letters; "?" takes them from the server's types
	exact    bool   // see result.add
	extended bool   // use the extended protocol in place of a simple query
}

// query sends one request and reads the whole answer, its rows into res when
// that is not nil. The error is not nil when the connection is lost.
func (w *wire) query(q request, res *result) (reply, error) {
	out := reply{rows: -1}
	if err := w.conn.SetDeadline(time.Now().Add(w.timeout)); err != nil {
		return out, err
	}
	// The extended protocol cannot carry several statements; a text that may contain several is sent as a simple query.
	q.extended = q.extended && !strings.Contains(strings.TrimRight(q.sql, "; \t\n"), ";")
	w.send(q)
	if err := w.frontend.Flush(); err != nil {
		return out, w.lost(err)
	}
	for {
		message, err := w.frontend.Receive()
		if err != nil {
			if out.err != nil && out.err.fatal {
				err = fmt.Errorf("the server ended the connection: %w", out.err)
			}
			return out, w.lost(err)
		}
		switch m := message.(type) {
		case *pgproto3.RowDescription:
			out.columns = true
			w.describe(m, q.letters, res)
		case *pgproto3.DataRow:
			if res != nil {
				w.row(m, res, q.exact)
			}
		case *pgproto3.CommandComplete:
			out.rows = tagRows(m.CommandTag)
		case *pgproto3.ErrorResponse:
			fatal := m.Severity == "FATAL" || m.Severity == "PANIC"
			out.err = &serverError{code: m.Code, message: m.Message, fatal: fatal}
		case *pgproto3.CopyInResponse:
			if err := w.copyIn(q); err != nil {
				return out, w.lost(err)
			}
		case *pgproto3.CopyOutResponse:
			// COPY … TO STDOUT counts as a query of one text column.
			out.columns = true
			w.oids, w.letters = append(w.oids[:0], 25), append(w.letters[:0], 'T')
			if res != nil {
				res.reset(1)
			}
		case *pgproto3.CopyData:
			if res != nil {
				res.add(bytes.TrimSuffix(m.Data, []byte("\n")), 'T', 25, q.exact)
			}
		case *pgproto3.ReadyForQuery:
			return out, nil
		}
	}
}

// send writes the messages of one request to the buffer.
func (w *wire) send(q request) {
	if !q.extended {
		w.frontend.SendQuery(&pgproto3.Query{String: q.sql})
		return
	}
	w.frontend.SendParse(&pgproto3.Parse{Query: q.sql})
	w.frontend.SendBind(&pgproto3.Bind{})
	w.frontend.SendDescribe(&pgproto3.Describe{ObjectType: 'P'})
	w.frontend.SendExecute(&pgproto3.Execute{})
	w.frontend.SendSync(&pgproto3.Sync{})
}

// copyIn answers COPY … FROM STDIN with the record's data.
func (w *wire) copyIn(q request) error {
	if q.data == "" {
		w.frontend.Send(&pgproto3.CopyFail{Message: "the record holds no data"})
	} else {
		w.frontend.Send(&pgproto3.CopyData{Data: []byte(q.data)})
		w.frontend.Send(&pgproto3.CopyDone{})
	}
	if q.extended {
		// The server has discarded the Sync that preceded its request for data.
		w.frontend.SendSync(&pgproto3.Sync{})
	}
	return w.frontend.Flush()
}

// lost returns the reason why the connection is unusable.
func (w *wire) lost(err error) error {
	w.unwatch()
	timedOut := errors.Is(err, os.ErrDeadlineExceeded)
	if timedOut {
		w.cancel()
		err = errTimeout
	}
	_ = w.conn.Close()
	return err
}

// describe stores the types of a result's columns.
func (w *wire) describe(m *pgproto3.RowDescription, letters string, res *result) {
	w.oids = w.oids[:0]
	for i := range m.Fields {
		w.oids = append(w.oids, m.Fields[i].DataTypeOID)
	}
	w.letters = append(w.letters[:0], letters...)
	if letters == "?" {
		w.letters = w.letters[:0]
		for _, oid := range w.oids {
			w.letters = append(w.letters, letterOf(oid))
		}
	}
	if res != nil {
		res.reset(len(m.Fields))
	}
}

// letterOf returns the letter that the rewriter gives a column: I for the integer types and T for all others, whose
// exact text a test should contain.
func letterOf(oid uint32) byte {
	switch oid {
	case 20, 21, 23, 26: // int8, int2, int4, oid
		return 'I'
	}
	return 'T'
}

func (w *wire) row(m *pgproto3.DataRow, res *result, exact bool) {
	for i, value := range m.Values {
		letter, oid := byte('T'), uint32(0)
		if i < len(w.letters) {
			letter = w.letters[i]
		}
		if i < len(w.oids) {
			oid = w.oids[i]
		}
		res.add(value, letter, oid, exact)
	}
}

// tagRows returns the row count at the end of a command tag, or -1.
func tagRows(tag []byte) int64 {
	s := string(tag)
	n, err := strconv.ParseInt(s[strings.LastIndexByte(s, ' ')+1:], 10, 64)
	if err != nil {
		return -1
	}
	return n
}
