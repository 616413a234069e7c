package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/goleak"

	"github.com/percodb/percodb/node"
)

// message frames a body, with an arbitrary length field.
func message(kind byte, length uint32, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, length), body...)
}

func framed(kind byte, body string) []byte { return message(kind, uint32(len(body)+4), body) }

// Goal: whatever bytes arrive on the socket, the connection ends with an error and the server continues. Method:
// hostile bytes at the start, and after a valid startup; then a valid client.
func TestBadBytes(t *testing.T) {
	starts := map[string][]byte{
		"HTTP":           []byte("GET / HTTP/1.1\r\n\r\n"),
		"zeroes":         make([]byte, 100),
		"huge length":    {0xff, 0xff, 0xff, 0xff, 0, 3, 0, 0},
		"length 0":       {0, 0, 0, 0},
		"old protocol":   {0, 0, 0, 8, 0, 2, 0, 0},
		"no terminator":  {0, 0, 0, 12, 0, 3, 0, 0, 'u', 's', 'e', 'r'},
		"no user":        {0, 0, 0, 9, 0, 3, 0, 0, 0},
		"short cancel":   {0, 0, 0, 8, 4, 210, 22, 46},
		"endless TLS":    bytes.Repeat([]byte{0, 0, 0, 8, 4, 210, 22, 47}, 10),
		"vanishes early": {0, 0},
	}
	for name, b := range starts {
		r := dialSilent(t)
		if _, err := r.conn.Write(b); err != nil {
			t.Fatal(err)
		}
		_ = r.conn.(*net.TCPConn).CloseWrite()
		if got := drain(t, r); bytes.Contains(got, []byte{'Z', 0, 0, 0, 5}) {
			t.Errorf("%s: got a session: %q", name, got)
		}
	}
	bodies := map[string][]byte{
		"unknown type":        framed('!', "x"),
		"length 3":            message('Q', 3, ""),
		"length 0":            message('Q', 0, ""),
		"negative length":     message('Q', 0xffffffff, ""),
		"too long":            message('Q', 1<<30, "select 1"),
		"unterminated query":  framed('Q', "select 1"),
		"empty query body":    framed('Q', ""),
		"empty parse":         framed('P', ""),
		"parse counts":        framed('P', "s\x00select 1\x00\x7f\xff"),
		"negative counts":     framed('P', "s\x00select 1\x00\xff\xff"),
		"bind counts":         framed('B', "\x00\x00\xff\xff"),
		"bind sizes":          framed('B', "\x00\x00\x00\x00\x00\x01\x7f\xff\xff\xff"),
		"bind negative":       framed('B', "\x00\x00\x00\x00\x00\x01\xff\xff\xff\xf0\x00\x00"),
		"describe nothing":    framed('D', "X\x00"),
		"describe empty":      framed('D', ""),
		"close empty":         framed('C', ""),
		"execute short":       framed('E', "\x00\x00"),
		"sync with a body":    framed('S', "body"),
		"password":            framed('p', "secret\x00"),
		"truncated":           message('Q', 100, "select"),
		"copy fail bare":      framed('f', ""),
		"function call":       framed('F', "\x00"),
		"second start packet": {0, 0, 0, 8, 0, 3, 0, 0},
	}
	for name, b := range bodies {
		r := open(t)
		if _, err := r.conn.Write(b); err != nil {
			t.Fatal(err)
		}
		_ = r.conn.(*net.TCPConn).CloseWrite()
		drain(t, r)
		_ = name
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		r := open(t)
		junk := make([]byte, rng.IntN(200))
		for i := range junk {
			junk[i] = byte(rng.Uint32())
		}
		if len(junk) > 5 && rng.IntN(2) == 0 { // Half of it with valid framing.
			copy(junk, framed("QPBDECSHdcf"[rng.IntN(11)], string(junk[5:]))[:5])
		}
		if _, err := r.conn.Write(junk); err != nil {
			t.Fatal(err)
		}
		_ = r.conn.(*net.TCPConn).CloseWrite()
		drain(t, r)
	}
	isAlive(t)
	if logged.contains("panic in session") {
		t.Error("a session panicked; see the log")
	}
}

// drain reads to the end of the connection, which must follow.
func drain(t *testing.T, r *raw) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.conn); err != nil {
		if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
			t.Fatalf("the server neither answers nor hangs up; so far %q", b.Bytes())
		}
	}
	return b.Bytes()
}

// Goal: a client that disconnects at any point leaves nothing behind: its transaction is rolled back, its goroutine
// ends. Method: a separate server, checked for goroutines after its end.
func TestVanishingClients(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	n, err := node.Start(context.Background(), options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	shared := address
	address = n.Addr().String()
	defer func() { address = shared }()
	execAll(t, connect(t, ""), "create table vanish_t (id int primary key)")
	vanish := map[string]func(r *raw){
		"idle":         func(*raw) {},
		"in a block":   func(r *raw) { r.query("begin; insert into vanish_t values (1)") },
		"mid-message":  func(r *raw) { _, _ = r.conn.Write(message('Q', 50, "insert")) },
		"mid-query":    func(r *raw) { r.send(&pgproto3.Query{String: "select a from generate_series(1, 100000000) a"}) },
		"mid-pipeline": func(r *raw) { r.send(parse("", "insert into vanish_t values (2)"), bind("", ""), execute("", 0)) },
		"mid-copy": func(r *raw) {
			r.send(&pgproto3.Query{String: "copy vanish_t from stdin"}, &pgproto3.CopyData{Data: []byte("3\n4\n")})
			r.next()
		},
		"suspended": func(r *raw) {
			r.send(parse("", "select generate_series(1, 10)"), bind("p", ""), execute("p", 1), syncing)
		},
	}
	for _, act := range vanish {
		for range 3 {
			r := open(t)
			act(r)
			r.conn.Close()
		}
	}
	var wg sync.WaitGroup
	for range 8 { // Thousands connect and disconnect.
		wg.Go(func() {
			for range 250 {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				c.Close()
			}
		})
	}
	wg.Wait()
	conn := connect(t, "")
	var rows int
	if err := conn.QueryRow(testContext(t), "select count(*) from vanish_t").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows of clients that vanished, %v", rows, err)
	}
	execAll(t, conn, "insert into vanish_t values (1), (2), (3)")
	conn.Close(context.Background())
	closing, cancel := context.WithTimeout(context.Background(), exchangeTimeout)
	defer cancel()
	n.Close(closing)
	goleak.VerifyNone(t, ignore, goleak.IgnoreTopFunction("testing.(*T).Run"))
}

// Goal: a server that stops tells idle clients the reason, lets running statements finish, and terminates those that
// exceed the timeout, whose clients are told too.
func TestDrain(t *testing.T) {
	n, err := node.Start(context.Background(), options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	shared := address
	address = n.Addr().String()
	defer func() { address = shared }()
	idle, inBlock, busy, stuck, copying, waiting, asks := open(t), open(t), open(t), open(t), open(t), open(t), open(t)
	inBlock.query("create table drained (id int primary key)")
	inBlock.query("begin; insert into drained values (1)")
	copying.send(&pgproto3.Query{String: "copy drained from stdin"})
	waiting.send(&pgproto3.Query{String: "insert into drained values (1); select 1"})
	stuck.send(&pgproto3.Query{String: endless})
	busy.send(&pgproto3.Query{String: "select count(pg_sleep(2)) as n"})
	untilSucceeds(t, func() error { // The statements of four sessions run, and the one that asks.
		if got := asks.query("select count(*) from pg_stat_activity where state = 'active'"); !strings.Contains(got, "row 5\n") {
			return errors.New(got)
		}
		return nil
	})
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		n.Close(closing)
		close(closed)
	}()
	const bye = "fatal 57P01 terminating connection due to administrator command\n"
	expect(t, "idle", idle.end(), bye)
	expect(t, "in a block", inBlock.end(), bye)
	if got := busy.end(); got != "columns n:20/0\nrow 1\ncomplete SELECT 1\nready I\n"+bye {
		t.Errorf("busy: %s", got)
	}
	for what, r := range map[string]*raw{"stuck": stuck, "in a COPY": copying} {
		if got := r.end(); strings.Contains(got, "complete") || !strings.HasSuffix(got, bye) {
			t.Errorf("%s: %s", what, got)
		}
	}
	if got := waiting.end(); !strings.HasSuffix(got, bye) {
		t.Errorf("waiting for another client: %s", got)
	}
	select {
	case <-closed:
	case <-time.After(exchangeTimeout):
		t.Fatal("Close does not return")
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("still listening")
	}
}
