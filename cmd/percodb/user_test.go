package main

import (
	"bytes"
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
