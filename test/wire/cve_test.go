package wire_test

import (
	"bytes"
	"context"
	"crypto/x509/pkix"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/node"
)

// The tests of this file are named by the holes of PostgreSQL that they would find here; docs/security.md lists them.

// Goal: of a certificate's common name every byte counts: neither a NUL nor a length ends it early.
func TestCVE_2009_4034(t *testing.T) {
	s := startSecured(t, "hostssl all all all cert\n", "alice")
	for _, c := range []struct {
		file, name, user string
		admitted         bool
	}{
		{"alice", "alice", "alice", true},
		{"nul", "alice\x00.example.org", "alice", false},
		{"empty", "", "alice", false},
		{"space", "alice ", "alice", false},
		{"case", "Alice", "alice", false},
	} {
		s.client(c.file, pkix.Name{CommonName: c.name})
		if _, err := s.connect(s.tls(c.user, c.file)); (err == nil) != c.admitted {
			t.Errorf("%q as %q: %v", c.name, c.user, err)
		}
	}
}

// Goal: names that agree in their first 32 characters are different names.
func TestCVE_2012_0867(t *testing.T) {
	long := strings.Repeat("a", 32)
	s := startSecured(t, "hostssl all all all cert\n", long, long+"-victim", long+"-mallory")
	s.client("long", pkix.Name{CommonName: long + "-mallory"})
	for _, user := range []string{long, long + "-victim"} {
		if _, err := s.connect(s.tls(user, "long")); err == nil {
			t.Errorf("admitted as %q", user)
		}
	}
	if _, err := s.connect(s.tls(long+"-mallory", "long")); err != nil {
		t.Error(err)
	}
}

// Goal: a database's or user's name that looks like a switch of the command line is a name.
func TestCVE_2013_1899(t *testing.T) {
	s := startSecured(t, "host all all all trust\n")
	file := s.path("written")
	for _, database := range []string{"-r" + file, "-c log_directory=" + s.dir, "--data=" + s.dir} {
		ctx, cancel := context.WithTimeout(context.Background(), exchangeTimeout)
		config, err := pgx.ParseConfig(s.tls("x", "") + " host=127.0.0.1 port=" + s.port())
		s.must(err)
		config.Database = database
		conn, err := pgx.ConnectConfig(ctx, config)
		if err == nil {
			conn.Close(ctx)
		}
		if !strings.HasPrefix(failure(err), "3D000") {
			t.Errorf("%q: %v", database, err)
		}
		cancel()
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("%s was written: %v", file, err)
	}
}

// Goal: what a client sends within a message is never taken for messages, whatever interrupts the reading of it. Method: messages
// that contain queries, which end too early, in an error, or after a cancel request; then the tables that they
// would have created are looked for.
func TestCVE_2015_0244(t *testing.T) {
	s := startSecured(t, "host all all all trust\n")
	setup, err := s.connect(s.tls("x", ""))
	s.must(err)
	_, err = setup.Exec(testContext(t), "create table target (id int)")
	s.must(err)
	// injected is a message that contains queries from beginning to end.
	query := framed('Q', "create table injected (id int)\x00")
	injected := func(kind byte, before string) []byte {
		return framed(kind, before+strings.Repeat(string(query), 2000))
	}
	ready := func(user string) (net.Conn, *pgproto3.Frontend, *pgproto3.BackendKeyData) {
		conn, err := net.Dial("tcp", s.addr())
		s.must(err)
		t.Cleanup(func() { conn.Close() })
		s.must(conn.SetDeadline(time.Now().Add(exchangeTimeout)))
		_, err = conn.Write(startupPacket(t, user))
		s.must(err)
		f := pgproto3.NewFrontend(conn, conn)
		var key *pgproto3.BackendKeyData
		for {
			m, err := f.Receive()
			s.must(err)
			switch m := m.(type) {
			case *pgproto3.BackendKeyData:
				key = &pgproto3.BackendKeyData{ProcessID: m.ProcessID, SecretKey: bytes.Clone(m.SecretKey)}
			case *pgproto3.ReadyForQuery:
				return conn, f, key
			}
		}
	}
	for name, messages := range map[string][]byte{
		"an unknown type":           injected('!', ""),
		"a function call":           injected('F', ""),
		"text with zeroes":          injected('Q', "select 1\x00"),
		"parameters that are short": injected('B', "\x00\x00\x00\x01\x00\x00\x7f\xff"),
		"COPY after its error":      append(framed('Q', "copy target from stdin\x00"), append(framed('d', "not a number\n"), injected('d', "")...)...),
		"COPY that fails":           append(framed('Q', "copy target from stdin\x00"), injected('f', "")...),
		"data without COPY":         injected('d', ""),
	} {
		conn, _, _ := ready("x")
		_, err := conn.Write(append(messages, framed('X', "")...))
		if err != nil {
			t.Logf("%s: %v", name, err) // the server has closed the connection
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		rest(t, conn)
	}
	// A cancel request in the middle of a message.
	conn, f, key := ready("x")
	whole := injected('Q', "select 1\x00")
	half := len(framed('Q', "select 1\x00")) + 1000*len(query) // What follows begins with a query.
	_, err = conn.Write(whole[:half])
	s.must(err)
	canceller, err := net.Dial("tcp", s.addr())
	s.must(err)
	cancel, err := (&pgproto3.CancelRequest{ProcessID: key.ProcessID, SecretKey: key.SecretKey}).Encode(nil)
	s.must(err)
	_, err = canceller.Write(cancel)
	s.must(err)
	rest(t, canceller)
	canceller.Close()
	_, err = conn.Write(whole[half:])
	s.must(err)
	for done := false; !done; {
		m, err := f.Receive()
		if err != nil {
			break // the connection has ended
		}
		_, done = m.(*pgproto3.ReadyForQuery)
	}
	var n int
	if s.must(setup.QueryRow(testContext(t), "select count(*) from pg_class where relname = 'injected'").Scan(&n)); n != 0 {
		t.Error("a query within another message was executed")
	}
}

// Goal: clients that leave while the time for their authentication ends do no harm. Method: many that leave at about that time.
func TestCVE_2015_3165(t *testing.T) {
	const timeout = 30 * time.Millisecond
	opts := options(t.TempDir())
	opts.Access.Timeout = timeout
	n, err := node.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			conn, err := net.Dial("tcp", n.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = conn.Write([]byte("\x00\x00\x01\x00\x00\x03\x00\x00user")[:i%13])                    // it may be closed already
			_ = conn.SetReadDeadline(time.Now().Add(timeout + time.Duration(i%20-10)*time.Millisecond)) // leaves then
			_, _ = conn.Read(make([]byte, 1))
		})
	}
	wg.Wait()
	for end := time.Now().Add(exchangeTimeout); ; {
		conn, err := pgx.Connect(testContext(t), "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
		if err == nil {
			conn.Close(context.Background())
			return
		}
		if time.Now().After(end) { // a slow machine may exceed so short a time by itself
			t.Fatal(err)
		}
	}
}
