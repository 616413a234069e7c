package wire_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/node"
)

// FuzzServe: for any bytes after a valid startup, no session panics, the connection ends, and the server answers the
// next client. Method: send the bytes to a complete server and stop sending; look for panics in the log.
func FuzzServe(f *testing.F) {
	encode := func(ms ...pgproto3.FrontendMessage) []byte {
		var b []byte
		for _, m := range ms {
			var err error
			if b, err = m.Encode(b); err != nil {
				f.Fatal(err)
			}
		}
		return b
	}
	f.Add(encode(&pgproto3.Query{String: "select 1; begin; select 1/0"}, &pgproto3.Query{String: ""}))
	f.Add(encode(parse("s", "select $1::int, $2::text[]"), describeS("s"), bind("p", "s", "1", "{a}"), describeP("p"), execute("p", 1), &pgproto3.Flush{}, syncing, closeS("s")))
	f.Add(encode(&pgproto3.Query{String: "copy (values (1)) to stdout"}, &pgproto3.CopyData{Data: []byte("x")}, &pgproto3.CopyDone{}))
	f.Add(encode(parse("", "select $1", 1700), &pgproto3.Bind{Parameters: [][]byte{{0, 1, 0, 0, 0, 0, 0, 0, 0, 1}}, ParameterFormatCodes: []int16{1}, ResultFormatCodes: []int16{1}}, execute("", 0), syncing))
	f.Add(framed('B', "\x00\x00\xff\xff"))
	f.Add([]byte("Q\x00\x00\x00\x00"))
	n, err := node.Start(context.Background(), options(f.TempDir()))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { n.Close(context.Background()) })
	greeting := encode(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30,
		Parameters: map[string]string{"user": "postgres", "database": "percodb", "statement_timeout": "1000"}})
	f.Fuzz(func(t *testing.T, input []byte) {
		conn, err := net.Dial("tcp", n.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
			t.Fatal(err)
		}
		go func() { // The server may close the connection before it has read everything.
			_, _ = conn.Write(append(append([]byte(nil), greeting...), input...))
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		if _, err := io.Copy(io.Discard, conn); err != nil {
			if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
				t.Fatal("the server neither answers nor hangs up")
			}
		}
		if logged.contains("panic in session") {
			t.Fatal("a session panicked")
		}
	})
}
