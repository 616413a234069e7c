package auth

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/xdg-go/scram"

	"github.com/percodb/percodb/auth/verifier"
	"github.com/percodb/percodb/sql/pgerror"
)

// someRoles are roles by name.
type someRoles map[string]*Role

func (r someRoles) Role(_ context.Context, name string) (*Role, error) { return r[name], nil }
func (r someRoles) Secret(context.Context) ([]byte, error)             { return []byte("secret"), nil }

// scripted is a client: it has chosen a mechanism, and answers by functions.
type scripted struct {
	offered   []string
	mechanism string
	first     func() []byte
	final     func(challenge []byte) []byte
	challenge []byte
	finished  []byte
}

func (s *scripted) Begin(mechanisms []string) (string, []byte, error) {
	s.offered = mechanisms
	return s.mechanism, s.first(), nil
}

func (s *scripted) Challenge(message []byte) ([]byte, error) {
	s.challenge = bytes.Clone(message)
	return s.final(message), nil
}

func (s *scripted) Finish(message []byte) error {
	s.finished = message
	return nil
}

// knows is a client that knows a password. binding is that which it computes, none for SCRAM-SHA-256.
func knows(t testing.TB, password string, binding scram.ChannelBinding) *scripted {
	client, err := scram.SHA256.NewClientUnprepped("", verifier.Prepare(password), "")
	if err != nil {
		t.Fatal(err)
	}
	conv, mechanism := client.NewConversation(), mechanismPlain
	if binding.IsSupported() {
		conv, mechanism = client.NewConversationWithChannelBinding(binding), mechanismBinding
	}
	step := func(message string) []byte {
		answer, err := conv.Step(message)
		if err != nil {
			t.Fatal(err)
		}
		return []byte(answer)
	}
	return &scripted{
		mechanism: mechanism, first: func() []byte { return step("") }, final: func(challenge []byte) []byte { return step(string(challenge)) },
	}
}

// passwordGate needs a password of everyone. Its log is written to log.
func passwordGate(t testing.TB, roles someRoles, log *strings.Builder) *Gate {
	gate, err := NewGate(Options{Rules: "host all all all scram-sha-256\n", Roles: roles, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

// admit has a gate decide on a client, and report a refusal.
func admit(gate *Gate, c *Client, conv Conversation) error {
	_, err := gate.Admit(context.Background(), c, conv)
	if err != nil {
		gate.Report(c, err)
	}
	return err
}

func clientOf(user string) *Client {
	return &Client{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9}, User: user, Database: "percodb"}
}

func serverCert(t testing.TB) *x509.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// Goal: the right password is accepted, with and without channel binding; every other login fails with one error and tells the client
// nothing about the role; the log says why.
func TestPasswords(t *testing.T) {
	cert := serverCert(t)
	hash := sha256.Sum256(cert.Raw)
	binding := scram.ChannelBinding{Type: scram.ChannelBindingTLSServerEndpoint, Data: hash[:]}
	other := scram.ChannelBinding{Type: scram.ChannelBindingTLSServerEndpoint, Data: make([]byte, 32)}
	stored := verifier.New("pé ß").String()
	roles := someRoles{
		"alice": {Verifier: stored}, "bare": {}, "old": {Verifier: "md5" + strings.Repeat("0", 32)},
		"expired": {Verifier: stored, Expires: time.Now().Add(-time.Hour)}, "valid": {Verifier: stored, Expires: time.Now().Add(time.Hour)},
	}
	for _, c := range []struct {
		user, password string
		cert           *x509.Certificate
		binding        scram.ChannelBinding
		want, logged   string
	}{
		{user: "alice", password: "pé ß"},
		{user: "alice", password: "pe\u0301\u00a0ß"}, // The same by SASLprep.
		{user: "valid", password: "pé ß"},
		{user: "alice", password: "pé ß", cert: cert, binding: binding},
		{user: "alice", password: "pé ß", cert: cert},
		{user: "alice", password: "pé ß", cert: cert, binding: other, want: "28000 SCRAM channel binding check failed"},
		{user: "alice", password: "x", cert: cert, binding: binding, want: `28P01 password authentication failed for user "alice"`, logged: "the password is wrong"},
		{user: "alice", password: "x", want: `28P01 password authentication failed for user "alice"`, logged: "the password is wrong"},
		{user: "bare", password: "pé ß", want: `28P01 password authentication failed for user "bare"`, logged: "has no password assigned"},
		{user: "old", password: "pé ß", want: `28P01 password authentication failed for user "old"`, logged: "does not have a valid SCRAM secret"},
		{user: "expired", password: "pé ß", want: `28P01 password authentication failed for user "expired"`, logged: "has an expired password"},
		{user: "nobody", password: "pé ß", want: `28P01 password authentication failed for user "nobody"`, logged: "does not exist"},
	} {
		var log strings.Builder
		gate := passwordGate(t, roles, &log)
		client := clientOf(c.user)
		client.ServerCert = c.cert
		conv := knows(t, c.password, c.binding)
		err := admit(gate, client, conv)
		if got := describe(err); got != c.want {
			t.Errorf("%s, %q: %q, want %q", c.user, c.password, got, c.want)
		}
		if (err == nil) != (conv.finished != nil) {
			t.Errorf("%s, %q: %v, and the server's proof is %q", c.user, c.password, err, conv.finished)
		}
		if offered := strings.Join(conv.offered, " "); (offered == "SCRAM-SHA-256-PLUS SCRAM-SHA-256") != (c.cert != nil) {
			t.Errorf("%s: offered %s", c.user, offered)
		}
		if !strings.Contains(log.String(), c.logged) {
			t.Errorf("%s: logged %s", c.user, log.String())
		}
		if text := log.String() + describe(err); strings.Contains(text, "SCRAM-SHA-256$") || strings.Contains(text, "pé") {
			t.Errorf("%s: a secret is shown: %s", c.user, text)
		}
	}
}

func describe(err error) string {
	var e *pgerror.Error
	if errors.As(err, &e) {
		return string(e.Code) + " " + e.Message
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// Goal: the challenge of a user who does not exist is that of one who does: of the same form, and the same salt each time.
func TestUnknownUsersLookKnown(t *testing.T) {
	var log strings.Builder
	gate := passwordGate(t, someRoles{"alice": {Verifier: verifier.New("x").String()}}, &log)
	salt := func(user string) string {
		conv := knows(t, "wrong", scram.ChannelBinding{})
		if err := admit(gate, clientOf(user), conv); describe(err) != `28P01 password authentication failed for user "`+user+`"` {
			t.Fatal(err)
		}
		fields := strings.Split(string(conv.challenge), ",")
		if len(fields) != 3 || !strings.HasPrefix(fields[0], "r=") || fields[2] != "i=4096" {
			t.Fatalf("challenge %s", conv.challenge)
		}
		return fields[1]
	}
	if known, unknown := salt("alice"), salt("nobody"); len(known) != len(unknown) || known == unknown || unknown != salt("nobody") || unknown == salt("someone") {
		t.Errorf("salts %s and %s", known, unknown)
	}
}

// Goal: messages that break the exchange's rules are errors of the protocol, whoever sends them.
func TestMalformedExchanges(t *testing.T) {
	const first = "n,,n=,r=abcdefgh"
	cert := serverCert(t)
	final := func(text string) func([]byte) []byte {
		return func(challenge []byte) []byte {
			nonce, _, _ := strings.Cut(strings.TrimPrefix(string(challenge), "r="), ",")
			return []byte(strings.ReplaceAll(text, "NONCE", nonce))
		}
	}
	for _, c := range []struct {
		mechanism, first, final string
		cert                    *x509.Certificate
		want                    string
	}{
		{mechanism: "SCRAM-SHA-1", first: first, want: "08P01 client selected an invalid SASL authentication mechanism"},
		{mechanism: "", first: first, want: "08P01 client selected an invalid SASL authentication mechanism"},
		{mechanism: mechanismBinding, first: "p=tls-server-end-point,,n=,r=x", want: "08P01 client selected an invalid SASL authentication mechanism"},
		{mechanism: mechanismBinding, first: first, cert: cert, want: "08P01 malformed SCRAM message"},
		{mechanism: mechanismPlain, first: "p=tls-server-end-point,,n=,r=x", cert: cert, want: "08P01 malformed SCRAM message"},
		{mechanism: mechanismBinding, first: "p=tls-unique,,n=,r=x", cert: cert, want: "08P01 unsupported SCRAM channel-binding type"},
		{mechanism: mechanismPlain, first: "y,,n=,r=x", cert: cert, want: "28000 SCRAM channel binding negotiation error"},
		{mechanism: mechanismPlain, first: "y,,n=,r=x", final: "c=eSws,r=NONCE,p=" + strings.Repeat("A", 43) + "=", want: `28P01 password authentication failed for user "alice"`},
		{mechanism: mechanismPlain, first: "", want: "08P01 malformed SCRAM message"},
		{mechanism: mechanismPlain, first: "n,,", want: "08P01 malformed SCRAM message"},
		{mechanism: mechanismPlain, first: "n,a=other,n=,r=x", want: "0A000 client uses authorization identity, but it is not supported"},
		{mechanism: mechanismPlain, first: "n,a=,n=,r=x", want: "0A000 client uses authorization identity, but it is not supported"},
		{mechanism: mechanismPlain, first: "n,,m=x,n=,r=x", want: "08P01 malformed SCRAM message"},
		{mechanism: mechanismPlain, first: first, final: "", want: "08P01 malformed SCRAM message"},
		{mechanism: mechanismPlain, first: first, final: "c=biws,r=NONCE", want: "08P01 malformed SCRAM message"},
		{mechanism: mechanismPlain, first: first, final: "c=biws,r=NONCEx,p=AAAA", want: "08P01 malformed SCRAM message"},
		{mechanism: mechanismPlain, first: first, final: "c=biws,r=NONCE,p=AAAA", want: "08P01 malformed SCRAM message"},
		{mechanism: mechanismPlain, first: first, final: "c=eSws,r=NONCE,p=AAAA", want: "28000 SCRAM channel binding check failed"},
		{mechanism: mechanismPlain, first: first, final: "c=biws,r=NONCE,p=" + strings.Repeat("A", 43) + "=", want: `28P01 password authentication failed for user "alice"`},
	} {
		var log strings.Builder
		gate := passwordGate(t, someRoles{"alice": {Verifier: verifier.New("x").String()}}, &log)
		client := clientOf("alice")
		client.ServerCert = c.cert
		conv := &scripted{mechanism: c.mechanism, first: func() []byte { return []byte(c.first) }, final: final(c.final)}
		if got := describe(admit(gate, client, conv)); got != c.want {
			t.Errorf("%s, %q, %q: %q, want %q", c.mechanism, c.first, c.final, got, c.want)
		}
	}
}

// FuzzSCRAM: whatever a client sends that does not know the password, it is not let in, and nothing panics.
func FuzzSCRAM(f *testing.F) {
	f.Add(mechanismPlain, "n,,n=,r=abcdefgh", "c=biws,r=NONCE,p="+strings.Repeat("A", 43)+"=", false)
	f.Add(mechanismBinding, "p=tls-server-end-point,,n=,r=x", "c=cD10bHMtc2VydmVyLWVuZC1wb2ludCws,r=NONCE,p=AAAA", true)
	f.Add(mechanismPlain, "y,a=b,n=x,r=", "c=eSws,r=NONCE,x=1,p=", true)
	cert := serverCert(f)
	roles := someRoles{"alice": {Verifier: verifier.New("a password").String()}}
	f.Fuzz(func(t *testing.T, mechanism, first, final string, encrypted bool) {
		var log strings.Builder
		gate := passwordGate(t, roles, &log)
		client := clientOf("alice")
		if encrypted {
			client.ServerCert = cert
		}
		conv := &scripted{mechanism: mechanism, first: func() []byte { return []byte(first) }, final: func(challenge []byte) []byte {
			nonce, _, _ := strings.Cut(strings.TrimPrefix(string(challenge), "r="), ",")
			return []byte(strings.ReplaceAll(final, "NONCE", nonce))
		}}
		err := admit(gate, client, conv)
		var e *pgerror.Error
		if !errors.As(err, &e) || conv.finished != nil {
			t.Fatalf("%v, %q", err, conv.finished)
		}
	})
}

// Goal: +role and samerole are memberships.
func TestMemberships(t *testing.T) {
	member := func(of ...string) *Role {
		return &Role{MemberOf: func(role string) bool { return strings.Contains(" "+strings.Join(of, " ")+" ", " "+role+" ") }}
	}
	gate, err := NewGate(Options{
		Rules: "host all +staff all trust\nhost samerole all all trust\nhost all \"+quoted\" all trust\n",
		Roles: someRoles{"ann": member("staff"), "bob": member("percodb"), "eve": member("quoted")}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	for user, in := range map[string]bool{"ann": true, "bob": true, "eve": false, "nobody": false, "+quoted": true} {
		if err := admit(gate, clientOf(user), nil); (err == nil) != in {
			t.Errorf("%s: %v", user, err)
		}
	}
}
