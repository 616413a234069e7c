package messages

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/auth/verifier"
)

var exchanges = flag.Int("exchanges", 2_000, "how many logins by password are damaged")

// keys are what a client of SCRAM derives from its password. They are random here: no derivation takes time, whatever the number
// of iterations.
type keys struct {
	iterations           int
	client, stored, sign []byte // of 32 bytes; sign is the server's
}

func newKeys(rng *rand.Rand, iterations int) *keys {
	k := &keys{iterations: iterations, client: noise(rng, 32), sign: noise(rng, 32)}
	sum := sha256.Sum256(k.client)
	k.stored = sum[:]
	return k
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// verifier is what the server stores.
func (k *keys) verifier(rng *rand.Rand) string {
	v := verifier.Verifier{Iterations: k.iterations, Salt: noise(rng, 16), StoredKey: k.stored, ServerKey: k.sign}
	return v.String()
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// proof is the client's for the messages' text.
func (k *keys) proof(messages string) []byte {
	p := mac(k.stored, messages)
	for i := range p {
		p[i] ^= k.client[i]
	}
	return p
}

// Users of the exchange beside guarded: the verifier of iterated demands many iterations of its clients, bare has none, and
// absent does not exist.
var logins = []string{guarded, guarded, guarded, "iterated", "bare", "absent"}

const manyIterations = 1_000_000

// exchange is one login: what was sent and received.
type exchange struct {
	rng         *rand.Rand
	keys        *keys  // nil: nobody can log in as this user
	channel     []byte // the hash of the server's certificate; nil without TLS
	mechanism   string
	first, last string // of the client
	challenge   string
}

// Goal: no sequence of damaged messages of SCRAM does more than to end its connection, and nobody is let in but who proves his
// password for exactly the messages that were exchanged, on the server's own channel. Method: from a seed, logins by clients who
// know the password, some messages of which are damaged: their fields before or after the proof is computed, their bytes, their order.
// What the server accepts is checked by a computation of its own after RFC 5802; undamaged logins must succeed.
func TestMutatedExchanges(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the addresses 127.0.0.0/8: failed logins delay those from the same address")
	}
	h := startHostile(t)
	rng := rand.New(rand.NewPCG(*seed, 1<<32))
	users := map[string]*keys{guarded: newKeys(rng, verifier.Iterations), "iterated": newKeys(rng, manyIterations)}
	for user, k := range users {
		h.query("create role " + user + " login password '" + k.verifier(rng) + "'")
	}
	h.query("create role bare login")
	var begun, accepted atomic.Int64
	h.besiege(t, func(rng *rand.Rand) (bool, error) {
		if begun.Add(1) > int64(*exchanges) {
			return false, nil
		}
		user, encrypted := logins[rng.IntN(len(logins))], rng.IntN(2) == 0
		in, err := h.logIn(rng, user, users[user], encrypted)
		if err != nil {
			return false, fmt.Errorf("user %s, TLS %v: %w", user, encrypted, err)
		}
		if in {
			accepted.Add(1)
		}
		return true, nil
	})
	if accepted.Load() == 0 {
		t.Error("no login succeeded")
	}
	t.Logf("seed %d: %d logins, %d damaged messages, %d accepted", *seed, *exchanges, h.sent.Load(), accepted.Load())
}

// logIn connects from a random address and logs in. It reports whether the user was let in.
func (h *hostile) logIn(rng *rand.Rand, user string, k *keys, encrypted bool) (bool, error) {
	from := net.TCPAddr{IP: net.IPv4(127, byte(1+rng.IntN(254)), byte(rng.Uint32()), byte(1+rng.IntN(254)))}
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	tcp, err := (&net.Dialer{LocalAddr: &from}).DialContext(ctx, "tcp", h.addr)
	if err != nil {
		return false, err
	}
	defer tcp.Close()
	if err := tcp.SetDeadline(time.Now().Add(waitTimeout)); err != nil {
		return false, err
	}
	x := &exchange{rng: rng, keys: k}
	conn, closeWrite := tcp, tcp.(*net.TCPConn).CloseWrite
	if encrypted {
		secured, err := secure(h.t, tcp)
		if err != nil {
			return false, err
		}
		x.channel = channelOf(secured)
		conn, closeWrite = secured, secured.CloseWrite
	}
	if _, err := conn.Write(startupOf(h.t, user)); err != nil {
		return false, err
	}
	if _, err := expectAuth(conn, pgproto3.AuthTypeSASL); err != nil {
		return false, err
	}
	if rng.IntN(4) == 0 {
		return false, h.blind(x, conn, closeWrite)
	}
	as := identity{user, encrypted}
	if earlier, ok := h.logins.Load(as); ok && rng.IntN(8) == 0 {
		return false, h.replay(earlier.(*exchange), conn)
	}
	in, err := h.converse(x, conn, user)
	if in && err == nil {
		h.logins.Store(as, x)
	}
	return in, err
}

// identity is what the messages of a login are worth anything for.
type identity struct {
	user      string
	encrypted bool
}

// replay sends the messages of a login that has succeeded once more. The server's nonce is another one, so that the proof is wrong.
func (h *hostile) replay(earlier *exchange, conn net.Conn) error {
	h.sent.Add(1)
	challenge, err := ask(conn, &pgproto3.SASLInitialResponse{AuthMechanism: earlier.mechanism, Data: []byte(earlier.first)}, pgproto3.AuthTypeSASLContinue)
	if err != nil {
		return fmt.Errorf("the first message of an earlier login is refused: %w", err)
	}
	if string(challenge) == earlier.challenge {
		return fmt.Errorf("the challenge %q was sent twice", challenge)
	}
	_, err = ask(conn, &pgproto3.SASLResponse{Data: []byte(earlier.last)}, pgproto3.AuthTypeSASLFinal)
	var r refused
	switch {
	case err == nil:
		return errors.New("let in by the messages of an earlier login")
	case errors.As(err, &r):
		return r.check()
	}
	return err
}

// channelOf is the data of channel binding tls-server-end-point: certs signs with SHA-256.
func channelOf(conn *tls.Conn) []byte {
	sum := sha256.Sum256(conn.ConnectionState().PeerCertificates[0].Raw)
	return sum[:]
}

// blind sends damaged messages of the exchange in any order, without waiting for answers. The server's nonce is unknown to it, so
// that it is never let in; that the server answers, and then closes the connection, is all that is checked.
func (h *hostile) blind(x *exchange, conn net.Conn, closeWrite func() error) error {
	x.compose()
	x.challenge = "r=" + randomText(x.rng, 24) + ",s=AAAA,i=1"
	from := []message{
		encode(h.t, &pgproto3.SASLInitialResponse{AuthMechanism: x.mechanism, Data: []byte(x.first)}),
		encode(h.t, &pgproto3.SASLResponse{Data: []byte(x.finish(true))}),
		encode(h.t, &pgproto3.SASLInitialResponse{AuthMechanism: x.mechanism}),
		encode(h.t, &pgproto3.PasswordMessage{Password: "secret"}), encode(h.t, &pgproto3.SSLRequest{}), startupOf(h.t, guarded),
		encode(h.t, &pgproto3.Query{String: "select 1"}), encode(h.t, &pgproto3.Sync{}), encode(h.t, &pgproto3.Terminate{}),
	}
	out := &seen{Conn: conn}
	if err := h.send(x.rng, out, closeWrite, from, 1+x.rng.IntN(4)); err != nil {
		return err
	}
	if out.has([]byte("Z\x00\x00\x00\x05")) {
		return errors.New("let in without an answer to the challenge")
	}
	return nil
}

// seen is a connection whose received bytes are kept.
type seen struct {
	net.Conn
	all []byte
}

func (s *seen) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.all = append(s.all, p[:n]...)
	return n, err
}

func (s *seen) has(part []byte) bool { return strings.Contains(string(s.all), string(part)) }

// converse carries out the exchange, with damaged contents in whole messages.
func (h *hostile) converse(x *exchange, conn net.Conn, user string) (bool, error) {
	damage := x.rng.IntN(8) // bit 0: the first message, bit 1: the last
	x.compose()
	if damage&1 != 0 {
		x.damageFirst()
		h.sent.Add(1)
	}
	body, err := ask(conn, &pgproto3.SASLInitialResponse{AuthMechanism: x.mechanism, Data: []byte(x.first)}, pgproto3.AuthTypeSASLContinue)
	if err == nil {
		x.challenge = string(body)
		x.last = x.finish(damage&2 != 0)
		if damage&2 != 0 {
			h.sent.Add(1)
		}
		body, err = ask(conn, &pgproto3.SASLResponse{Data: []byte(x.last)}, pgproto3.AuthTypeSASLFinal)
	}
	var r refused
	switch {
	case err != nil && damage&3 == 0 && x.keys != nil:
		return false, fmt.Errorf("a right login is refused: %w", err)
	case errors.As(err, &r):
		return false, r.check()
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		return false, nil // The connection ends with unread bytes, such as those of a message that is too long.
	case err != nil:
		return false, err
	}
	if err := x.judge(string(body)); err != nil {
		return true, fmt.Errorf("%w: %s %q, %q, %q", err, x.mechanism, x.first, x.challenge, x.last)
	}
	return true, h.use(conn, user)
}

// judge is an error if the client must not have been let in, or if the server's signature is wrong.
func (x *exchange) judge(signature string) error {
	text := x.first
	var header string
	for range 2 { // gs2-header = gs2-cbind-flag "," [ authzid ] ","
		part, rest, ok := strings.Cut(text, ",")
		if !ok {
			return errors.New("let in with half a first message")
		}
		header, text = header+part+",", rest
	}
	at := strings.LastIndex(x.last, ",p=")
	if x.keys == nil || at < 0 {
		return errors.New("let in without a proof")
	}
	bare, unproven := text, x.last[:at]
	signed := bare + "," + x.challenge + "," + unproven
	bound := []byte(header)
	switch {
	case header == "p=tls-server-end-point,," && x.mechanism == "SCRAM-SHA-256-PLUS" && x.channel != nil:
		bound = append(bound, x.channel...)
	case x.mechanism != "SCRAM-SHA-256" || header != "n,," && (header != "y,," || x.channel != nil):
		return errors.New("let in with a wrong channel binding")
	}
	fields := strings.Split(unproven, ",")
	nonce, _, _ := strings.Cut(x.challenge, ",")
	c, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(fields[0], "c="))
	if err != nil || !slices.Equal(c, bound) || len(fields) < 2 || fields[1] != nonce {
		return errors.New("let in with another channel or nonce")
	}
	proof, err := base64.StdEncoding.DecodeString(x.last[at+3:])
	if err != nil || !slices.Equal(proof, x.keys.proof(signed)) {
		return errors.New("let in with a wrong proof")
	}
	if want := "v=" + base64.StdEncoding.EncodeToString(mac(x.keys.sign, signed)); signature != want {
		return fmt.Errorf("the server's signature is %s, want %s", signature, want)
	}
	return nil
}

// use finds that the session is that of the user, whatever name the exchange contained, and ends it.
func (h *hostile) use(conn net.Conn, user string) error {
	if err := write(conn, &pgproto3.Query{String: "select current_user"}); err != nil {
		return err
	}
	for ready := 0; ready < 2; {
		kind, body, err := readFrame(conn)
		switch {
		case err != nil:
			return err
		case kind == 'E':
			return refused(body)
		case kind == 'Z':
			ready++
		case kind == 'D' && string(body[6:]) != user:
			return fmt.Errorf("let in as %q, want %q", body, user)
		}
	}
	return write(conn, &pgproto3.Terminate{})
}

func write(conn net.Conn, m pgproto3.FrontendMessage) error {
	b, err := m.Encode(nil)
	if err != nil {
		return err
	}
	_, err = conn.Write(b)
	return err
}

func readFrame(conn net.Conn) (kind byte, body []byte, err error) {
	var header [5]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(header[1:])-4)
	_, err = io.ReadFull(conn, body)
	return header[0], body, err
}

// refused is the server's error, as in its message.
type refused []byte

func (r refused) Error() string { return fmt.Sprintf("refused: %q", []byte(r)) }

// check is an error unless the refusal is one of those of a login.
func (r refused) check() error {
	for _, code := range []string{"28P01", "28000", "08P01", "0A000"} {
		if strings.Contains(string(r), "\x00C"+code+"\x00") {
			return nil
		}
	}
	return r
}

// ask sends a message of the exchange and returns what is answered.
func ask(conn net.Conn, m pgproto3.FrontendMessage, want uint32) ([]byte, error) {
	if err := write(conn, m); err != nil {
		return nil, err
	}
	return expectAuth(conn, want)
}

// expectAuth reads a message of the authentication. An error that the server sends instead is of type refused.
func expectAuth(conn net.Conn, kind uint32) ([]byte, error) {
	got, body, err := readFrame(conn)
	switch {
	case err != nil:
		return nil, err
	case got == 'E':
		return nil, refused(body)
	case got != 'R' || len(body) < 4 || binary.BigEndian.Uint32(body) != kind:
		return nil, fmt.Errorf("received %c %q, want authentication %d", got, body, kind)
	}
	return body[4:], nil
}
