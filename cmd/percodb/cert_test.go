package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/internal/certs"
)

// runCert runs percodb cert and returns its output.
func runCert(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs(append([]string{"cert"}, args...))
	err := execute(t.Context(), root)
	return out.String(), err
}

// Goal: the lines that percodb cert prints start processes as they are. Method: parse them as percodb start does, and check
// their addresses and that their files exist.
func TestCertPrintsStartLines(t *testing.T) {
	for _, hosts := range [][]string{nil, {"--host", "db1.example.org,10.1.2.3"}, {"--host", "::1"}} {
		dir := filepath.Join(t.TempDir(), "certs")
		out, err := runCert(t, append(hosts, "--dir", dir, "--user", "alice,bob")...)
		if err != nil {
			t.Fatal(err)
		}
		started := 0
		for line := range strings.Lines(out) {
			line, isStart := strings.CutPrefix(strings.TrimSpace(line), "percodb start ")
			if !isStart {
				continue
			}
			started++
			cmd := startCommand()
			if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			role := cmd.Flag("role").Value.String()
			if role == "all" {
				for _, name := range []string{"tls-cert", "tls-key", "tls-ca", "hba"} {
					if _, err := os.Stat(cmd.Flag(name).Value.String()); err != nil {
						t.Errorf("--%s: %v", name, err)
					}
				}
				continue
			}
			for _, name := range []string{"cluster-tls-cert", "cluster-tls-key", "cluster-tls-ca"} {
				path := cmd.Flag(name).Value.String()
				if _, err := os.Stat(path); err != nil || !strings.Contains(path, role) && name != "cluster-tls-ca" {
					t.Errorf("--role=%s --%s %s: %v", role, name, path, err)
				}
			}
		}
		if started != 4 || strings.Count(out, "sslmode=verify-full") != 4 || strings.Count(out, " -c 'CREATE ROLE ") != 2 {
			t.Errorf("%d lines in %s", started, out)
		}
		for _, name := range []string{"client-alice.crt", "client-bob.key", "client-postgres.key", "server.crt", "operator.key"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
		if len(hosts) > 0 && hosts[1] == "::1" && !strings.Contains(out, "--join [::1]:7000") {
			t.Errorf("no address of IPv6 in %s", out)
		}
	}
}

// Goal: percodb cert overwrites nothing, and says what is in its way.
func TestCertRefusesToOverwrite(t *testing.T) {
	dir := t.TempDir()
	if _, err := runCert(t, "--dir", dir); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runCert(t, "--dir", dir); err == nil || !strings.Contains(err.Error(), "ca.crt exists, and nothing was overwritten") {
		t.Errorf("%v", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "ca.key")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the key has changed: %v", err)
	}
	if _, err := runCert(t, "--dir", filepath.Join(dir, "x"), "--host", "localhost,"); err == nil || !strings.Contains(err.Error(), "--host") {
		t.Errorf("%v", err)
	}
}

func TestConninfoQuote(t *testing.T) {
	for text, want := range map[string]string{"a/b.crt": "a/b.crt", "a b": "'a b'", "it's": `'it\'s'`, `a\b`: `'a\\b'`, "": "''"} {
		if got := conninfoQuote(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for text, want := range map[string]string{"a/b.crt": "a/b.crt", "a b": "'a b'", "it's": `'it'\''s'`, "": "''"} {
		if got := shellQuote(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// Goal: a client connects with verify-full as percodb cert prints it, and without its certificate does not; the role of another --user can
// be created by the line that is printed for that. Method: start a server with the printed files, and carry out the printed lines of
// psql in their order, but for the port.
func TestCertConnects(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	out, err := runCert(t, "--dir", dir, "--user", "postgres,alice", "--host", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	server := certs.ServerFiles(dir)
	flags := startFlags{
		role: "all", listen: "127.0.0.1:0", data: filepath.Join(t.TempDir(), "data"), logLevel: "error", memory: 1 << 30, maxConnections: 10,
		hba: certs.RulesFile(dir), tlsCert: server.Cert, tlsKey: server.Key, tlsCA: server.CA, authenticationTimeout: auth.DefaultTimeout,
	}
	opts, err := flags.options()
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, opts)
	defer stopNode(n)
	var users []string
	for line := range strings.Lines(out) {
		rest, isPsql := strings.CutPrefix(line, "  psql '")
		if !isPsql {
			continue
		}
		conninfo, rest, _ := strings.Cut(rest, "'")
		config, err := pgx.ParseConfig(conninfo)
		if err != nil {
			t.Fatal(err)
		}
		config.Port = uint16(n.Addr().(*net.TCPAddr).Port)
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if command, isCommand := strings.CutPrefix(rest, " -c '"); isCommand {
			_, err = conn.Exec(t.Context(), strings.TrimSuffix(strings.TrimSpace(command), "'"))
		} else {
			var user string
			err = conn.QueryRow(t.Context(), "select current_user").Scan(&user)
			users = append(users, user)
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		conn.Close(t.Context())
		config.TLSConfig.Certificates, config.TLSConfig.GetClientCertificate = nil, nil
		if conn, err := pgx.ConnectConfig(t.Context(), config); err == nil {
			conn.Close(t.Context())
			t.Error("a client without a certificate was let in")
		}
	}
	if !slices.Equal(users, []string{"postgres", "alice"}) {
		t.Errorf("connected as %q", users)
	}
}
