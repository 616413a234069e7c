package wire_test

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/node"
)

const passwordRules = `
hostssl all bob   all scram-sha-256 clientcert=verify-full
host    all all   all scram-sha-256
`

// Goal: pgx and libpq log in with passwords, with and without TLS, with channel binding where there is TLS; wrong passwords, roles without
// one and roles that do not exist fail with the same error, and with no secret in the log.
func TestPasswordLogins(t *testing.T) {
	s := startSecured(t, passwordRules, "alice")
	execAll(t, s.admin, "alter role alice password 'pé ß'", "create role bob login superuser password 'secret'")
	execAll(t, s.admin, "create role expired login superuser password 'secret' valid until '2001-01-01'")
	// A verifier that PostgreSQL 15 has made of the password secret, as pg_dumpall writes it.
	const verifier = "SCRAM-SHA-256$4096:8FP7CJpoOXuWAg25Atq1lw==$6F3kZCqwv5b6wdeIn6WFhIGr+UvaMdZNczIdKmpByPk=:jnCEgukudmNvEOehAJawnYLzCg0td5FgkYtWj9+Bmy8="
	execAll(t, s.admin, "create role dumped login superuser password '"+verifier+"'")
	s.clientNamed("bob")
	s.clientNamed("alice")
	plain := func(user, password string) string {
		return "sslmode=disable user=" + user + " password='" + password + "'"
	}
	encrypted := func(user, cert, password string) string { return s.tls(user, cert) + " password='" + password + "'" }
	wrong := func(user string) string { return `28P01 password authentication failed for user "` + user + `"` }
	for _, c := range []struct{ params, want string }{
		{plain("alice", "pé ß"), ""},
		{encrypted("alice", "", "pé ß"), ""},
		{encrypted("alice", "", "pé ß") + " channel_binding=require", ""},
		{plain("dumped", "secret"), ""},
		{encrypted("bob", "bob", "secret"), ""},
		{encrypted("bob", "alice", "secret"), wrong("bob")},
		{encrypted("bob", "", "secret"), "28000 connection requires a valid client certificate"},
		{encrypted("bob", "bob", "x"), wrong("bob")},
		{plain("alice", "x"), wrong("alice")},
		{plain("expired", "secret"), wrong("expired")},
		{plain("x", "x"), wrong("x")},
		{plain("nobody", "x"), wrong("nobody")},
	} {
		_, err := s.connect(c.params)
		if got := failure(err); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want[6:]) {
			t.Errorf("%s: %s, want %s", c.params, got, c.want)
		}
	}
	if s.log.contains("SCRAM-SHA-256$") || s.log.contains("pé ß") {
		t.Error("a secret is logged")
	}
	if !s.log.contains("expired password") || !s.log.contains("does not exist") {
		t.Error("the reasons of refusals are not logged")
	}
	var encryption string // That psql's \password asks for.
	s.must(s.admin.QueryRow(testContext(t), "show password_encryption").Scan(&encryption))
	if _, err := s.admin.Exec(testContext(t), "set password_encryption = 'md5'"); encryption != "scram-sha-256" || !strings.HasPrefix(failure(err), "0A000") {
		t.Errorf("password_encryption is %s; md5: %v", encryption, err)
	}
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("psql is not installed")
	}
	host, port, _ := net.SplitHostPort(s.addr())
	for _, c := range []struct{ user, password, options, want string }{
		{"alice", "pé ß", "sslmode=disable", "alice|f"},
		{"alice", "pé ß", "sslmode=require channel_binding=require", "alice|t"},
		{"alice", "pé ß", "sslmode=verify-full channel_binding=disable sslrootcert=" + s.path("ca.crt"), "alice|t"},
		{"dumped", "secret", "sslmode=disable", "dumped|f"},
		{"alice", "wrong", "sslmode=require channel_binding=require", `password authentication failed for user "alice"`},
	} {
		cmd := exec.CommandContext(testContext(t), psql, "-XAtqc", "select current_user, ssl from pg_stat_ssl where pid = pg_backend_pid()",
			"host="+host+" port="+port+" dbname=percodb user="+c.user+" "+c.options)
		cmd.Env = append(os.Environ(), "PGPASSWORD="+c.password)
		out, _ := cmd.CombinedOutput() // The output says whether it failed.
		if !strings.Contains(string(out), c.want) {
			t.Errorf("psql %s %s: %s, want %s", c.user, c.options, out, c.want)
		}
	}
}

// Goal: a client that sends something else than its login, or too much, is cut off.
func TestHalfLogins(t *testing.T) {
	for _, c := range []struct {
		name string
		sent []byte
		want string // part of what is answered
	}{
		{"a query", framed('Q', "select 1\x00"), "C08P01"},
		{"a password", framed('p', "secret\x00"), "C08P01"},
		{"another mechanism", framed('p', "SCRAM-SHA-1\x00\x00\x00\x00\x09n,,n=,r=x"), "C08P01"},
		{"no message yet", append(framed('p', "SCRAM-SHA-1\x00\xff\xff\xff\xff"), framed('p', "n,,n=,r=x")...), "C08P01"},
		// The answer may be lost: a reset follows where the server has not read everything.
		{"too long", framed('p', "SCRAM-SHA-256\x00\x00\x00\x10\x00"+strings.Repeat("x", 4096)), ""},
		{"huge", message('p', 1<<30, "x"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := halfLogin(t, exchangeTimeout, c.sent); !strings.Contains(got, c.want) || strings.Contains(got, "Z\x00\x00\x00\x05") {
				t.Errorf("%q, want %s", got, c.want)
			}
		})
	}
}

// Goal: a client that does not finish its login in time is sent why.
func TestLoginTimeout(t *testing.T) {
	for name, sent := range map[string][]byte{"silent": nil, "incomplete": []byte("p\x00\x00\x01\x00SCRAM")} {
		t.Run(name, func(t *testing.T) {
			// Where the time is over before the login begins, the client is not sent anything.
			for timeout := 50 * time.Millisecond; ; timeout *= 4 {
				got := halfLogin(t, timeout, sent)
				if strings.Contains(got, "C57014\x00Mcanceling authentication due to timeout") {
					return
				}
				if timeout > exchangeTimeout/2 {
					t.Fatalf("answer %q", got)
				}
			}
		})
	}
}

// halfLogin sends a startup packet and more to a server that needs a password, and returns what it answers.
func halfLogin(t *testing.T, timeout time.Duration, sent []byte) string {
	t.Helper()
	opts := options(t.TempDir())
	opts.Access.Rules, opts.Access.Timeout = "host all all all scram-sha-256\n", timeout
	n, err := node.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	conn, err := net.Dial("tcp", n.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * exchangeTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(append(startupPacket(t, "x"), sent...)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
		t.Fatal("the server does not end the connection")
	}
	return string(got)
}

// Goal: no role can log in without a password where the rules demand one, whatever is stored for it (CVE-2017-7546).
func TestCVE_2017_7546(t *testing.T) {
	s := startSecured(t, "host all all all scram-sha-256\n")
	for i, password := range []string{"password ''", "password null", "password 'md500000000000000000000000000000000'", ""} {
		user := "empty" + string(rune('a'+i))
		execAll(t, s.admin, "create role "+user+" login superuser "+password)
		for _, tried := range []string{"", "x"} {
			if _, err := s.connect("sslmode=disable user=" + user + " password='" + tried + "'"); err == nil {
				t.Errorf("%s: logged in with %q", password, tried)
			}
		}
	}
}

// Goal: verifiers of any length that a user gives as a password are a password or refused; the server goes on
// (CVE-2019-10164).
func TestCVE_2019_10164(t *testing.T) {
	s := startSecured(t, "host all all all scram-sha-256\n")
	long := strings.Repeat("A", 4096)
	for _, password := range []string{
		"SCRAM-SHA-256$4096:" + long + "$" + long + ":" + long, "SCRAM-SHA-256$" + strings.Repeat("9", 4096) + ":AAAA$" + long + ":" + long,
		"SCRAM-SHA-256$4096:AAAA$" + long, "md5" + long,
	} {
		execAll(t, s.admin, "alter role x password '"+password+"'")
		if _, err := s.connect("sslmode=disable user=x password=x"); failure(err) == "" || strings.Contains(failure(err), "XX000") {
			t.Errorf("%.40s: %v", password, err)
		}
	}
}
