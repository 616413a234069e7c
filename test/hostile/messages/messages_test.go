package messages

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/node"
)

var (
	messages = flag.Int("messages", 10_000, "how many mutated messages are sent")
	seed     = flag.Uint64("seed", 1, "what the mutations are derived from")
)

// Users: one whom everyone may be, one who shows a certificate, and one who needs a password.
const (
	trusted   = "postgres"
	certified = "certified"
	guarded   = "guarded"
)

// waitTimeout bounds every wait for the server.
const waitTimeout = 2 * time.Minute

// rules are those of the server.
const rules = "host all " + trusted + " all trust\nhostssl all " + certified + " all cert\nhost all " + guarded + ",iterated,bare,absent all scram-sha-256\n"

// hostile is a server with what attacks it.
type hostile struct {
	t      *testing.T
	addr   string
	corpus *corpus
	log    *failures
	sent   atomic.Int64
	ended  [phases]atomic.Int64 // connections, by phase
	logins sync.Map             // the *exchange of one that succeeded, by identity
}

// failures collects what the server logs of panics.
type failures struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (f *failures) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytes.Contains(bytes.ToLower(p), []byte("panic")) || bytes.Contains(p, []byte("XX000")) {
		f.text.Write(p)
	}
	return len(p), nil
}

// The phases in which a connection's messages are damaged.
const (
	beforeStartup = iota // the first messages
	inHandshake          // the client's side of a TLS handshake
	inSession            // statements
	phases
)

func startHostile(t *testing.T) *hostile {
	t.Helper()
	dir := t.TempDir()
	h := &hostile{t: t, corpus: newCorpus(t), log: &failures{}}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	trial := filepath.Join(dir, "certs")
	if err := certs.WriteTrial(trial, certs.Trial{Hosts: certs.Loopback}); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(t.Context(), node.Options{
		Role: node.RoleAll, Data: filepath.Join(dir, "data"), Listen: "127.0.0.1:0", Version: "15.0", Logger: log, MaxConnections: 100,
		Access: auth.Options{Rules: rules, Certificates: certs.ServerFiles(trial)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(context.Background()) })
	h.addr = n.Addr().String()
	h.query("create table item (id int primary key, name text)")
	h.query("insert into item select g, 'item ' || g from generate_series(1, 5) g")
	return h
}

// query executes a statement as an ordinary client over TLS.
func (h *hostile) query(sql string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, "postgres://"+trusted+"@"+h.addr+"/percodb?sslmode=require")
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
}

// Goal: no sequence of damaged messages does more than to end its connection. Method: from a seed, connections that send
// damaged messages in every phase, in the clear and over TLS; then the server's goroutines and memory are what they were, and an
// ordinary client is served.
func TestMutatedMessages(t *testing.T) {
	h := startHostile(t)
	h.besiege(t, func(rng *rand.Rand) (bool, error) {
		if h.sent.Load() >= int64(*messages) {
			return false, nil
		}
		phase, encrypted := rng.IntN(phases), rng.IntN(2) == 0
		if err := h.attack(rng, phase, encrypted); err != nil {
			return false, fmt.Errorf("phase %d, TLS %v: %w", phase, encrypted, err)
		}
		return true, nil
	})
	t.Logf("seed %d: %d messages; connections before the startup %d, in the handshake %d, in the session %d",
		*seed, h.sent.Load(), h.ended[beforeStartup].Load(), h.ended[inHandshake].Load(), h.ended[inSession].Load())
}

// besiege has several goroutines attack the server until attack reports that it is enough, or fails. Then it checks that the server is
// as before: nothing is logged, an ordinary client is served, and goroutines and memory are what they were.
func (h *hostile) besiege(t *testing.T, attack func(*rand.Rand) (bool, error)) {
	t.Helper()
	goroutines, heap := settle(t, 0)
	var wg sync.WaitGroup
	failed := make(chan error, 1)
	for worker := range 4 {
		rng := rand.New(rand.NewPCG(*seed, uint64(worker)))
		wg.Go(func() {
			for {
				more, err := attack(rng)
				if err != nil {
					select {
					case failed <- err:
					default:
					}
				}
				if !more {
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
	if h.log.text.Len() > 0 {
		t.Errorf("the server logged:\n%s", h.log.text.String())
	}
	h.query("select 1")
	after, heapAfter := settle(t, goroutines)
	if after > goroutines {
		t.Errorf("%d goroutines before, %d after", goroutines, after)
	}
	if grown := int64(heapAfter) - int64(heap); grown > 64<<20 {
		t.Errorf("the heap has grown by %d MB", grown>>20)
	}
}

// settle waits until there are no more goroutines than most, and returns their number and the heap's size; most 0: at once.
func settle(t *testing.T, most int) (goroutines int, heap uint64) {
	t.Helper()
	for end := time.Now().Add(waitTimeout); ; time.Sleep(20 * time.Millisecond) {
		goroutines = runtime.NumGoroutine()
		if most == 0 || goroutines <= most || time.Now().After(end) {
			break
		}
	}
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return goroutines, stats.HeapAlloc
}

// attack opens a connection, sends damaged messages of a phase, and reads until the server closes it.
func (h *hostile) attack(rng *rand.Rand, phase int, encrypted bool) error {
	tcp, err := net.Dial("tcp", h.addr)
	if err != nil {
		return err
	}
	defer tcp.Close()
	if err := tcp.SetDeadline(time.Now().Add(waitTimeout)); err != nil {
		return err
	}
	defer h.ended[phase].Add(1)
	conn, closeWrite := tcp, tcp.(*net.TCPConn).CloseWrite
	if phase == inHandshake {
		return h.attackHandshake(rng, tcp)
	}
	if encrypted {
		secured, err := secure(h.t, tcp)
		if err != nil {
			return err
		}
		conn, closeWrite = secured, secured.CloseWrite
	}
	if phase == beforeStartup {
		return h.send(rng, conn, closeWrite, h.corpus.startup, 1+rng.IntN(3))
	}
	if err := introduce(h.t, conn); err != nil {
		return err
	}
	return h.send(rng, conn, closeWrite, h.corpus.session, 1+rng.IntN(60))
}

// secure requests TLS and carries out the handshake.
func secure(t *testing.T, tcp net.Conn) (*tls.Conn, error) {
	if _, err := tcp.Write(encode(t, &pgproto3.SSLRequest{})); err != nil {
		return nil, err
	}
	var answer [1]byte
	if _, err := io.ReadFull(tcp, answer[:]); err != nil || answer[0] != 'S' {
		return nil, fmt.Errorf("the answer to SSLRequest: %q, %w", answer, err)
	}
	conn := tls.Client(tcp, &tls.Config{InsecureSkipVerify: true})
	return conn, conn.Handshake()
}

// introduce sends a startup message, and returns when the server is ready.
func introduce(t *testing.T, conn net.Conn) error {
	if _, err := conn.Write(startupOf(t, trusted)); err != nil {
		return err
	}
	for {
		kind, body, err := readFrame(conn)
		switch {
		case err != nil:
			return fmt.Errorf("introduce: %w", err)
		case kind == 'E':
			return fmt.Errorf("introduce: %q", body)
		case kind == 'Z':
			return nil
		}
	}
}

// attackHandshake sends a damaged first flight of TLS, after an SSLRequest or directly.
func (h *hostile) attackHandshake(rng *rand.Rand, tcp net.Conn) error {
	if rng.IntN(4) > 0 {
		if _, err := tcp.Write(encode(h.t, &pgproto3.SSLRequest{})); err != nil {
			return err
		}
		if _, err := io.ReadFull(tcp, make([]byte, 1)); err != nil {
			return err
		}
	}
	return h.send(rng, tcp, tcp.(*net.TCPConn).CloseWrite, h.corpus.hello, 1)
}

// send sends n messages, most of them damaged, and reads until the server closes the connection.
func (h *hostile) send(rng *rand.Rand, conn net.Conn, closeWrite func() error, from []message, n int) error {
	var out []byte
	for range n {
		m := from[rng.IntN(len(from))]
		if rng.IntN(4) > 0 {
			m = mutate(rng, m, from)
			h.sent.Add(1)
		}
		out = append(out, m...)
	}
	read := make(chan error, 1)
	go func() { read <- readAll(conn) }()
	if _, err := conn.Write(out); err == nil {
		_ = closeWrite() // an error means that the server has closed the connection
	}
	return <-read
}

// readAll reads what the server sends until it closes the connection. It returns an error if that takes too long, or if an
// internal error is among it.
func readAll(conn net.Conn) error {
	internal := []byte("CXX000\x00")
	buf, kept := make([]byte, 64<<10), 0
	for {
		n, err := conn.Read(buf[kept:])
		seen := buf[:kept+n]
		if at := bytes.Index(seen, internal); at >= 0 {
			return fmt.Errorf("an internal error: %q", seen[max(0, at-50):min(len(seen), at+300)])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.New("the server has not closed the connection")
		}
		if err != nil {
			return nil
		}
		tail := min(len(seen), len(internal)-1)
		kept = copy(buf, seen[len(seen)-tail:])
	}
}
