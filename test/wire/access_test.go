package wire_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/node"
)

// authority issues certificates into files of dir.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes an authority whose certificate is name.crt.
func newAuthority(t testing.TB, dir, name string) *authority {
	a := &authority{t: t, dir: dir}
	a.cert, a.key = a.issue(name, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// server issues a certificate for 127.0.0.1, client one for a user.
func (a *authority) server(name string) {
	a.issue(name, &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func (a *authority) client(name string, subject pkix.Name) {
	a.issue(name, &x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// clientNamed issues a certificate for the user of this name.
func (a *authority) clientNamed(user string) { a.client(user, pkix.Name{CommonName: user}) }

// issue writes name.crt and name.key.
func (a *authority) issue(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	a.must(err)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	a.must(err)
	cert, err := x509.ParseCertificate(der)
	a.must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	a.must(err)
	a.must(os.WriteFile(a.path(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	a.must(os.WriteFile(a.path(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return cert, key
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// secured is a server with TLS and rules.
type secured struct {
	*authority
	node  *node.Node
	admin *pgx.Conn
	log   logBuffer
	rules string // the path of their file
}

// startSecured starts a server with some superusers: app, full, plain, trusted, verified, x, y and others.
func startSecured(t testing.TB, rules string, others ...string) *secured {
	t.Helper()
	return startSecuredWith(t, rules, func(*node.Options) {}, others...)
}

// textLogger logs warnings and errors.
func textLogger(to io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// startSecuredWith is startSecured with other options.
func startSecuredWith(t testing.TB, rules string, change func(*node.Options), others ...string) *secured {
	t.Helper()
	dir := t.TempDir()
	s := &secured{authority: newAuthority(t, dir, "ca"), rules: filepath.Join(dir, "hba.conf")}
	s.server("server")
	s.write(rules + "\nlocal all postgres trust\n")
	opts := options(filepath.Join(dir, "data"))
	opts.Logger, opts.SocketDir = textLogger(&s.log), dir
	opts.Access = auth.Options{
		RulesFile: s.rules, Timeout: exchangeTimeout,
		Certificates: tlsfiles.Files{Cert: s.path("server.crt"), Key: s.path("server.key"), CA: s.path("ca.crt")},
	}
	change(&opts)
	var err error
	s.node, err = node.Start(context.Background(), opts)
	s.must(err)
	t.Cleanup(func() { s.node.Close(context.Background()) })
	s.admin, err = pgx.Connect(testContext(t), "host="+dir+" port="+s.port()+" user=postgres dbname=percodb")
	s.must(err)
	t.Cleanup(func() { s.admin.Close(context.Background()) })
	for _, name := range append(others, "app", "full", "plain", "trusted", "verified", "x", "y") {
		execAll(t, s.admin, "create role "+pgx.Identifier{name}.Sanitize()+" login superuser")
	}
	return s
}

func (s *secured) write(rules string) {
	s.t.Helper()
	s.must(os.WriteFile(s.rules, []byte(rules), 0o600))
}

func (s *secured) addr() string { return s.node.Addr().String() }

func (s *secured) port() string { return strconv.Itoa(s.node.Addr().(*net.TCPAddr).Port) }

// connect connects with a connection string's parameters after those of the address.
func (s *secured) connect(params string) (*pgx.Conn, error) {
	host, port, _ := net.SplitHostPort(s.addr())
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, "host="+host+" port="+port+" dbname=percodb "+params)
	if err == nil {
		s.t.Cleanup(func() { conn.Close(context.Background()) })
	}
	return conn, err
}

// tls are the parameters of a client that verifies the server, and shows the certificate of this name unless it is "".
func (s *secured) tls(user, cert string) string {
	params := "user=" + user + " sslmode=verify-full sslrootcert=" + s.path("ca.crt")
	if cert != "" {
		params += " sslcert=" + s.path(cert+".crt") + " sslkey=" + s.path(cert+".key")
	}
	return params
}

// Goal: the rules decide who is let in, by address, encryption and certificate, with PostgreSQL's errors.
func TestAccessRules(t *testing.T) {
	s := startSecured(t, `
local     all      all               trust
hostnossl all      plain    samehost trust
hostssl   percodb  barred   all      reject
hostssl   all      barred   all      trust
hostnossl all      all      all      reject
hostssl   all      trusted  all      trust
hostssl   all      verified all      trust clientcert=verify-ca
hostssl   all      full     all      trust clientcert=verify-full
hostssl   all      app      all      cert
`)
	s.client("app", pkix.Name{CommonName: "app", Organization: []string{"percodb"}})
	s.client("two", pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{{Type: []int{2, 5, 4, 3}, Value: "x"}, {Type: []int{2, 5, 4, 3}, Value: "app"}}})
	newAuthority(t, s.dir, "other").client("stranger", pkix.Name{CommonName: "app"})
	for _, c := range []struct{ params, want string }{
		{"user=plain sslmode=disable", ""},
		{"user=x sslmode=disable", `28000 pg_hba.conf rejects connection for host "127.0.0.1", user "x", database "percodb", no encryption`},
		{s.tls("x", ""), `28000 no pg_hba.conf entry for host "127.0.0.1", user "x", database "percodb", SSL encryption`},
		{s.tls("barred", "") + " dbname=postgres", `28000 pg_hba.conf rejects connection for host "127.0.0.1", user "barred", database "percodb", SSL encryption`},
		{s.tls("trusted", ""), ""},
		{s.tls("verified", ""), "28000 connection requires a valid client certificate"},
		{s.tls("verified", "app"), ""},
		{s.tls("full", "app"), `28000 "trust" authentication failed for user "full"`},
		{s.tls("app", ""), "28000 connection requires a valid client certificate"},
		{s.tls("app", "app"), ""},
		{s.tls("app", "two"), `28000 certificate authentication failed for user "app"`},
		{s.tls("app", "server"), "no SQLSTATE"}, // A server's certificate is none of a client.
		{s.tls("app", "stranger"), "no SQLSTATE"},
	} {
		_, err := s.connect(c.params)
		if got := failure(err); err == nil && c.want != "" || err != nil && (c.want == "" || !strings.HasPrefix(got, c.want) && c.want != "no SQLSTATE") {
			t.Errorf("%s: %v, want %s", c.params, err, c.want)
		}
	}
	conn, err := s.connect(s.tls("app", "app"))
	s.must(err)
	var version, cipher, client, issuer string
	var bits int
	s.must(conn.QueryRow(testContext(t), "select version, cipher, bits, client_dn, issuer_dn from pg_stat_ssl where pid = pg_backend_pid() and ssl and client_serial > 0").
		Scan(&version, &cipher, &bits, &client, &issuer))
	if version != "TLSv1.3" || !strings.HasPrefix(cipher, "TLS_") || bits < 128 || client != "/O=percodb/CN=app" || issuer != "/CN=ca" {
		t.Errorf("pg_stat_ssl: %s %s %d %s %s", version, cipher, bits, client, issuer)
	}
	var addr string
	s.must(conn.QueryRow(testContext(t), "select client_addr from pg_stat_activity where pid = pg_backend_pid() and client_port > 0").Scan(&addr))
	if addr != "127.0.0.1" {
		t.Errorf("client_addr %s", addr)
	}
	if !s.log.contains("the common name") && !s.log.contains("common name") {
		t.Error("the reason of a refused certificate is not logged")
	}
	local, err := pgx.Connect(testContext(t), "host="+s.dir+" port="+s.port()+" user=x dbname=percodb")
	s.must(err)
	defer local.Close(context.Background())
	var port int
	s.must(local.QueryRow(testContext(t), "select client_port from pg_stat_activity where pid = pg_backend_pid()").Scan(&port))
	if port != -1 {
		t.Errorf("client_port %d on a Unix socket", port)
	}
}

// Goal: pg_reload_conf takes new rules and certificates over; wrong files change nothing, and pg_hba_file_rules shows them.
func TestReload(t *testing.T) {
	s := startSecured(t, "host all all all trust\n")
	conn, err := s.connect(s.tls("x", ""))
	s.must(err)
	reload := func() {
		t.Helper()
		var ok bool
		if s.must(conn.QueryRow(testContext(t), "select pg_reload_conf()").Scan(&ok)); !ok {
			t.Error("pg_reload_conf() = false")
		}
	}
	leaf := func() *big.Int {
		t.Helper()
		c, err := s.connect(s.tls("x", ""))
		s.must(err)
		return c.PgConn().Conn().(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber
	}
	first := leaf()
	s.server("server")
	s.write("host all x all trust\nhost all y\n")
	reload()
	if second := leaf(); second.Cmp(first) == 0 {
		t.Error("the new certificate is not shown")
	}
	if _, err := s.connect(s.tls("y", "")); err != nil {
		t.Errorf("rules that are wrong were taken over: %v", err)
	}
	var line int
	var why string
	s.must(conn.QueryRow(testContext(t), "select line_number, error from pg_hba_file_rules where error is not null").Scan(&line, &why))
	if line != 2 || why != "end-of-line before IP address specification" {
		t.Errorf("line %d: %s", line, why)
	}
	if !s.log.contains("line 2: end-of-line before IP address specification") {
		t.Error("the error is not logged")
	}
	s.write("hostssl all x 127.0.0.0/8 trust clientcert=verify-ca\nhost all x all trust\n")
	s.must(os.WriteFile(s.path("server.crt"), []byte("no certificate"), 0o600))
	second := leaf()
	reload()
	if _, err := s.connect(s.tls("x", "")); failure(err) != "28000 connection requires a valid client certificate" {
		t.Errorf("the new rules are not in force: %v", err)
	}
	var rule string
	s.must(conn.QueryRow(testContext(t), "select type || database::text || user_name::text || address || ' ' || netmask || ' ' || auth_method || options::text from pg_hba_file_rules where line_number = 1").Scan(&rule))
	if rule != "hostssl{all}{x}127.0.0.0 255.0.0.0 trust{clientcert=verify-ca}" {
		t.Errorf("pg_hba_file_rules: %s", rule)
	}
	s.write("host all x all trust\n")
	reload()
	if third := leaf(); third.Cmp(second) != 0 {
		t.Error("a wrong certificate was taken over")
	}
	if !s.log.contains("the certificates for clients were not reloaded") {
		t.Error("the error is not logged")
	}
}

const (
	sslRequest = "\x00\x00\x00\x08\x04\xd2\x16\x2f"
	gssRequest = "\x00\x00\x00\x08\x04\xd2\x16\x30"
)

// request sends bytes on a new connection and returns it with the byte that is answered.
func (s *secured) request(b []byte) (net.Conn, byte) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr())
	s.must(err)
	s.t.Cleanup(func() { conn.Close() })
	s.must(conn.SetDeadline(time.Now().Add(exchangeTimeout)))
	_, err = conn.Write(b)
	s.must(err)
	var answer [1]byte
	_, err = io.ReadFull(conn, answer[:])
	s.must(err)
	return conn, answer[0]
}

func (s *secured) clientConfig(alpn ...string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(s.cert)
	return &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", NextProtos: alpn}
}

func startupPacket(t testing.TB, user string) []byte {
	b, err := (&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": user, "database": "percodb"}}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rest reads until the connection ends.
func rest(t testing.TB, conn net.Conn) []byte {
	t.Helper()
	b, err := io.ReadAll(conn)
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
		t.Fatal("the server does not end the connection")
	}
	return b
}

// Goal: a statement that an attacker sends in the clear behind an SSLRequest is not executed, and is not taken for a part of
// the encrypted conversation (CVE-2021-23214). Method: the startup packet and a query that would be answered, in one packet
// with the SSLRequest; then, within TLS, a query that the client itself sends.
func TestCVE_2021_23214(t *testing.T) {
	s := startSecured(t, "host all all all trust\n")
	query, err := (&pgproto3.Query{String: "create table injected (id int)"}).Encode(nil)
	s.must(err)
	injected := append(startupPacket(t, "x"), query...)
	conn, answer := s.request(append([]byte(sslRequest), injected...))
	if answer != 'S' {
		t.Fatalf("answer %c", answer)
	}
	if got := rest(t, conn); bytes.Contains(got, []byte("Z\x00\x00\x00\x05")) {
		t.Errorf("the injected startup packet opened a session: %q", got)
	}
	// The same, followed by a handshake that would succeed.
	conn, answer = s.request(append([]byte(sslRequest), injected...))
	if answer != 'S' {
		t.Fatalf("answer %c", answer)
	}
	if err := tls.Client(conn, s.clientConfig()).Handshake(); err == nil {
		t.Error("the handshake succeeded behind injected bytes")
	}
	check, err := s.connect(s.tls("x", ""))
	s.must(err)
	var n int
	if s.must(check.QueryRow(testContext(t), "select count(*) from pg_class where relname = 'injected'").Scan(&n)); n != 0 {
		t.Error("the injected statement was executed")
	}
}

// Goal: TLS is negotiated, direct with ALPN only, once only, and never for a client that speaks something else.
func TestTLSNegotiation(t *testing.T) {
	s := startSecured(t, "hostssl all all all trust\n")
	session := func(conn net.Conn) string {
		_, err := conn.Write(startupPacket(t, "x"))
		s.must(err)
		f := pgproto3.NewFrontend(conn, conn)
		for {
			switch m, err := f.Receive(); m := m.(type) {
			case *pgproto3.ErrorResponse:
				return m.Message
			case *pgproto3.ReadyForQuery:
				return "ready"
			case nil:
				return err.Error()
			}
		}
	}
	conn, answer := s.request([]byte(gssRequest))
	if answer != 'N' {
		t.Errorf("answer %c to a GSSENCRequest", answer)
	}
	_, err := conn.Write([]byte(sslRequest))
	s.must(err)
	var b [1]byte
	if _, err = io.ReadFull(conn, b[:]); err != nil || b[0] != 'S' {
		t.Fatalf("answer %c, %v", b[0], err)
	}
	encrypted := tls.Client(conn, s.clientConfig(auth.ALPN))
	s.must(encrypted.Handshake())
	if got := session(encrypted); got != "ready" {
		t.Errorf("negotiated: %s", got)
	}
	direct := func(config *tls.Config) *tls.Conn {
		conn, err := net.Dial("tcp", s.addr())
		s.must(err)
		t.Cleanup(func() { conn.Close() })
		s.must(conn.SetDeadline(time.Now().Add(exchangeTimeout)))
		c := tls.Client(conn, config)
		s.must(c.Handshake())
		return c
	}
	if got := session(direct(s.clientConfig(auth.ALPN))); got != "ready" {
		t.Errorf("direct: %s", got)
	}
	if got := session(direct(s.clientConfig())); got != "received direct SSL connection request without ALPN protocol negotiation extension" {
		t.Errorf("direct without ALPN: %s", got)
	}
	again := direct(s.clientConfig(auth.ALPN))
	_, err = again.Write([]byte(sslRequest))
	s.must(err)
	if got := rest(t, again); !bytes.Contains(got, []byte("C08P01")) {
		t.Errorf("SSLRequest within TLS: %q", got)
	}
	old, _ := s.request([]byte(sslRequest))
	config := s.clientConfig()
	config.MaxVersion, config.MinVersion = tls.VersionTLS11, tls.VersionTLS10
	if err := tls.Client(old, config).Handshake(); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	newer, _ := s.request([]byte(sslRequest))
	if err := tls.Client(newer, s.clientConfig("http/1.1")).Handshake(); err == nil {
		t.Error("another protocol is accepted")
	}
	half, _ := s.request(append([]byte(sslRequest), 0x16, 3, 1))
	half.Close() // The next client is served all the same.
	if _, err := s.connect(s.tls("x", "")); err != nil {
		t.Error(err)
	}
}

// Goal: a statement is canceled by a CancelRequest over TLS.
func TestCancelOverTLS(t *testing.T) {
	s := startSecured(t, "hostssl all all all trust\n")
	conn, err := s.connect(s.tls("x", ""))
	s.must(err)
	done := make(chan error, 1)
	ctx := testContext(t)
	go func() {
		_, err := conn.Exec(ctx, "select pg_sleep(1000)")
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if failure(err) != "57014 canceling statement due to user request" {
				t.Error(err)
			}
			return
		case <-ctx.Done():
			t.Fatal("the statement is not canceled")
		default: // A request before the statement has begun has no effect.
		}
		c, answer := s.request([]byte(sslRequest))
		if answer != 'S' {
			t.Fatalf("answer %c", answer)
		}
		encrypted := tls.Client(c, s.clientConfig())
		s.must(encrypted.Handshake())
		packet := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 16, 4, 210, 22, 46}, conn.PgConn().PID())
		_, err := encrypted.Write(append(packet, conn.PgConn().SecretKey()...))
		s.must(err)
		rest(t, encrypted)
	}
}

// Goal: a client that does not introduce itself is cut off after the time for it, with and without TLS.
func TestAuthenticationTimeout(t *testing.T) {
	opts := options(t.TempDir())
	opts.Access.Timeout = 300 * time.Millisecond
	n, err := node.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	for _, sent := range []string{"", "\x00\x00", sslRequest, "\x00\x00\x01\x00\x00\x03\x00\x00user"} {
		conn, err := net.Dial("tcp", n.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
		if got := rest(t, conn); len(got) > 1 {
			t.Errorf("%q: answer %q", sent, got)
		}
	}
}

// Goal: the socket of a process that was killed is replaced, that of a running one is not, and it goes with the server.
func TestSocketDirectory(t *testing.T) {
	s := startSecured(t, "local all all trust\n")
	path := filepath.Join(s.dir, ".s.PGSQL."+s.port())
	info, err := os.Stat(path)
	s.must(err)
	if info.Mode().Perm() != 0o777 {
		t.Errorf("mode %v", info.Mode())
	}
	start := func(dir, listen string) (*node.Node, error) {
		opts := options(t.TempDir())
		opts.SocketDir, opts.Listen = dir, listen
		return node.Start(context.Background(), opts)
	}
	// 127.0.0.2 is another address with the same name of the socket.
	if n, err := start(s.dir, "127.0.0.2:"+s.port()); err == nil || !strings.Contains(err.Error(), "is in use by another process") {
		t.Errorf("a second server on the socket: %v", err)
		if n != nil {
			n.Close(context.Background())
		}
	}
	dir := t.TempDir()
	stale := filepath.Join(dir, ".s.PGSQL."+s.port())
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	s.must(err)
	l.SetUnlinkOnClose(false)
	if n, err := start(dir, "127.0.0.2:"+s.port()); err == nil || !strings.Contains(err.Error(), "is in use by another process") {
		t.Errorf("a socket without lock file that is alive: %v", err)
		if n != nil {
			n.Close(context.Background())
		}
	}
	s.must(l.Close())
	s.must(os.WriteFile(stale+".lock", []byte("1\n"), 0o600))
	n, err := start(dir, "127.0.0.2:"+s.port())
	s.must(err)
	conn, err := pgx.Connect(testContext(t), "host="+dir+" port="+s.port()+" user=postgres dbname=percodb")
	s.must(err)
	conn.Close(context.Background())
	n.Close(context.Background())
	for _, name := range []string{stale, stale + ".lock"} {
		if _, err := os.Lstat(name); !os.IsNotExist(err) {
			t.Errorf("%s remains: %v", name, err)
		}
	}
	if _, err := start(filepath.Join(dir, strings.Repeat("x", 100)), "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long path: %v", err)
	}
}

// Goal: pg_stat_activity shows the application's name of every session to everyone, as PostgreSQL does, and pg_stat_ssl the sessions only
// of those whose privileges the reader has, with the whole of the client's certificate.
func TestSessionsShown(t *testing.T) {
	s := startSecured(t, "local all all trust\nhostssl all all all cert\n")
	s.clientNamed("postgres")
	admin, err := s.connect(s.tls("postgres", "postgres") + " application_name=backup")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	if _, err := admin.Exec(t.Context(), "CREATE ROLE other LOGIN"); err != nil {
		t.Fatal(err)
	}
	s.clientNamed("other")
	other, err := s.connect(s.tls("other", "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	text := func(conn *pgx.Conn, query string) (got string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), query).Scan(&got); err != nil {
			t.Errorf("%s: %v", query, err)
		}
		return got
	}
	const names = "SELECT application_name FROM pg_stat_activity WHERE usename = 'postgres' AND application_name <> ''"
	if got := text(other, names); got != "backup" {
		t.Errorf("the name is %q", got)
	}
	if _, err := admin.Exec(t.Context(), "SET application_name = restore"); err != nil {
		t.Fatal(err)
	}
	if got := text(other, names); got != "restore" {
		t.Errorf("after SET the name is %q", got)
	}
	for name, want := range map[string]string{"ssl": "on", "ssl_min_protocol_version": "TLSv1.2", "ssl_cert_file": s.path("server.crt"), "authentication_timeout": "120"} {
		if got := text(other, "SELECT setting FROM pg_settings WHERE name = '"+name+"'"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	const whole = "SELECT string_agg(a.usename || ' ' || s.client_dn || ' ' || (s.client_serial > 0)::text || ' ' || (s.issuer_dn LIKE '/CN=_%')::text, ', ' ORDER BY a.usename) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE s.ssl"
	if got := text(admin, whole); got != "other /CN=other true true, postgres /CN=postgres true true" {
		t.Errorf("a superuser sees %q", got)
	}
	if got := text(other, whole); got != "other /CN=other true true" {
		t.Errorf("another role sees %q", got)
	}
}
