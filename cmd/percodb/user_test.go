package main

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/node"
)

// Goal: without a password a server does not listen beyond its machine, and says which command sets one; that command does, and
// the user then needs it.
func TestUserSetsPassword(t *testing.T) {
	dir := t.TempDir()
	const beyond = "0.0.0.0:0"
	_, err := node.Start(t.Context(), node.Options{Role: node.RoleAll, Data: dir, Listen: beyond, NeedPassword: true})
	if err == nil || !strings.Contains(explain(err), "percodb user ") || !strings.Contains(explain(err), beyond) {
		t.Fatalf("error %v", err)
	}
	n := startNode(t, node.Options{
		Role: node.RoleAll, Data: dir, Listen: "127.0.0.1:0", Access: auth.Options{Rules: "host all postgres all trust\nhost all all all scram-sha-256\n"},
	})
	url := func(user string) string { return "postgres://" + user + "@" + n.Addr().String() + "/percodb" }
	run := func(password string, args ...string) (string, error) {
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetIn(strings.NewReader(password))
		root.SetArgs(append([]string{"user", "--url", url("postgres")}, args...))
		err := execute(t.Context(), root)
		return out.String(), err
	}
	if _, err := run("\n", `a"b`); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty password: %v", err)
	}
	for _, c := range [][2]string{{"first pass\n", "user a\"b is created\n"}, {"second pass", "user a\"b is changed\n"}} {
		if out, err := run(c[0], `a"b`, "--superuser"); err != nil || out != c[1] {
			t.Errorf("%q, %v", out, err)
		}
	}
	conn, err := pgx.Connect(t.Context(), url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "CREATE ROLE staff"); err != nil {
		t.Fatal(err)
	}
	if _, err := run("secret", "staff"); err == nil || !strings.Contains(err.Error(), "--login") {
		t.Errorf("a role that may not log in: %v", err)
	}
	var login bool
	if err := conn.QueryRow(t.Context(), "SELECT rolcanlogin OR rolpassword IS NOT NULL FROM pg_authid WHERE rolname = 'staff'").Scan(&login); err != nil || login {
		t.Errorf("it was changed: %v, %v", login, err)
	}
	if out, err := run("secret", "staff", "--login"); err != nil || out != "user staff is changed\n" {
		t.Errorf("%q, %v", out, err)
	}
	_, err = run("secret", "staff", "--url", url("nobody"))
	if err == nil || strings.Count(err.Error(), n.Addr().String()) > 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error of the connection: %v", err)
	}
	for password, in := range map[string]bool{"first%20pass": false, "second%20pass": true, "": false} {
		conn, err := pgx.Connect(t.Context(), url("a%22b:"+password))
		if (err == nil) != in {
			t.Errorf("with %q: %v", password, err)
		}
		if conn != nil {
			conn.Close(t.Context())
		}
	}
	stopNode(n)
	n = startNode(t, node.Options{Role: node.RoleAll, Data: dir, Listen: "127.0.0.1:0", NeedPassword: true})
	stopNode(n)
}

// Goal: the line that a start prints names a command by which the superuser gets in, and none that the rules refuse.
func TestReadyLine(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	const trust, password, reject = auth.Trust, auth.Password, auth.Reject
	for _, c := range []struct {
		plain, encrypted, local auth.Method
		want                    string
	}{
		{trust, reject, reject, "psql -h 127.0.0.1 -p 5433 -U postgres -d percodb"},
		{password, password, reject, "psql -h 127.0.0.1 -p 5433 -U postgres -d percodb (asks for the password)"},
		{reject, password, reject, "psql 'host=127.0.0.1 port=5433 user=postgres dbname=percodb sslmode=require' (asks for the password)"},
		{reject, trust, reject, "psql 'host=127.0.0.1 port=5433 user=postgres dbname=percodb sslmode=require'"},
		{password, password, trust, "psql -h /run/p -p 5433 -U postgres -d percodb"},
		{reject, reject, password, "psql -h /run/p -p 5433 -U postgres -d percodb (asks for the password)"},
		{reject, reject, reject, ""},
	} {
		access := func(_ string, from netip.Addr, tls bool) auth.Method {
			switch {
			case from != loopback:
				return c.local
			case tls:
				return c.encrypted
			}
			return c.plain
		}
		want := "percodb is ready: " + c.want
		if c.want == "" {
			want = "percodb is ready on 127.0.0.1:5433"
		}
		if got := readyLine(access, "127.0.0.1", "5433", "/run/p"); got != want {
			t.Errorf("%v: %s", c, got)
		}
	}
}

// Goal: a password by which nobody can log in does not count for a start on an address of other machines.
func TestPasswordsThatDoNotCount(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, node.Options{Role: node.RoleAll, Data: dir, Listen: "127.0.0.1:0"})
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+n.Addr().String()+"/percodb")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE ROLE hashed LOGIN PASSWORD 'md5" + strings.Repeat("0", 32) + "'", "CREATE ROLE expired LOGIN PASSWORD 'x' VALID UNTIL '2001-01-01'",
		"CREATE ROLE nologin PASSWORD 'x'", "CREATE ROLE full LOGIN PASSWORD 'x' CONNECTION LIMIT 0",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	conn.Close(t.Context())
	stopNode(n)
	_, err = node.Start(t.Context(), node.Options{Role: node.RoleAll, Data: dir, Listen: "0.0.0.0:0", NeedPassword: true})
	var none *node.NoPasswordError
	if !errors.As(err, &none) {
		t.Fatalf("error %v", err)
	}
}
