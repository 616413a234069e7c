// Package secrets plants passwords, verifiers and keys wherever clients and administrators give them to a server process, and looks for them
// in everything that the process shows: its log at the level debug, the audit log, errors, system views, plans, metrics, and its data files.
package secrets

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/auth/verifier"
	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/process"
)

// waitTimeout bounds every wait for the server.
const waitTimeout = 2 * time.Minute

// control is no secret, and must be found.
const control = "a comment on a role"

// planted is a server with secrets, and what it has shown.
type planted struct {
	t       *testing.T
	ctx     context.Context
	dir     string
	addr    string
	admin   string
	secrets map[string]string // what each is for, by its text
	shown   map[string][]byte // by where it was
}

// secret makes a secret of letters and digits, which nothing quotes or escapes.
func (p *planted) secret(purpose string) string {
	text := rand.Text()
	p.secrets[text] = purpose
	return text
}

func (p *planted) show(where string, text []byte) { p.shown[where] = append(p.shown[where], text...) }

// showError adds all that a client is told of an error.
func (p *planted) showError(where string, err error) {
	p.t.Helper()
	if err == nil {
		p.t.Errorf("%s: no error", where)
		return
	}
	p.show("error: "+where, fmt.Appendf(nil, "%v", err))
	var e *pgconn.PgError
	if errors.As(err, &e) {
		p.show("error: "+where, fmt.Appendf(nil, "%+v", *e))
	}
}

// look reports the secrets that were shown.
func (p *planted) look() {
	p.t.Helper()
	for where, text := range p.shown {
		if len(text) == 0 {
			p.t.Errorf("%s: nothing was read", where)
		}
		for secret, purpose := range p.secrets {
			if at := bytes.Index(text, []byte(secret)); at >= 0 {
				p.t.Errorf("%s shows %s: …%s…", where, purpose, text[max(0, at-80):min(len(text), at+len(secret)+40)])
			}
		}
	}
}

func (p *planted) connect(user, password string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig("postgres://" + p.addr + "/percodb?sslmode=require")
	if err != nil {
		p.t.Fatal(err)
	}
	config.User, config.Password = user, password
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return pgx.ConnectConfig(p.ctx, config)
}

func (p *planted) mustConnect(user, password string) *pgx.Conn {
	p.t.Helper()
	conn, err := p.connect(user, password)
	if err != nil {
		p.t.Fatalf("%s: %v", user, err)
	}
	p.t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func (p *planted) exec(conn *pgx.Conn, text string) {
	p.t.Helper()
	if _, err := conn.Exec(p.ctx, text); err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
}

// Goal: no log, neither the server's nor the audit log, no view, plan, error, metric or file contains a password, a verifier or a key that was given to the server, but for the
// verifiers in pg_authid and its views, and in the data files. Method: plant them in every place that takes one, also where the statement,
// the login or the file is wrong; then read everything.
func TestNothingShowsSecrets(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	p := &planted{t: t, ctx: ctx, dir: t.TempDir(), secrets: map[string]string{}, shown: map[string][]byte{}}
	server := p.start()
	root := p.mustConnect("postgres", "")
	p.plantStatements(root)
	p.plantLogins()
	p.plantFiles(root, server)
	p.readViews(root)
	p.readMetrics()
	if err := server.End(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	log := server.Output()
	if !strings.Contains(log, "client refused") {
		t.Error("the log has no refused logins")
	}
	p.show("the log", []byte(log))
	audit, err := os.ReadFile(p.auditFile())
	if err != nil || !bytes.Contains(audit, []byte("login_failed")) || !bytes.Contains(audit, []byte("ALTER ROLE guarded PASSWORD '********'")) {
		t.Errorf("the audit log lacks what happened: %v\n%s", err, audit)
	}
	p.show("the audit log", audit)
	p.readFiles(filepath.Join(p.dir, "data"))
	p.look()
}

// start starts a server whose log has all there is, with a key, and rules by which guarded roles need their passwords.
func (p *planted) start() *process.Process {
	binary, err := process.Build(p.ctx, p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.admin, err = process.FreeAddr(); err != nil {
		p.t.Fatal(err)
	}
	if err := certs.WriteTrial(filepath.Join(p.dir, "certs"), certs.Trial{Hosts: []string{"127.0.0.1"}, Users: []string{"postgres"}}); err != nil {
		p.t.Fatal(err)
	}
	p.writeRules("")
	key := filepath.Join(p.dir, "certs", "server.key")
	p.keepKey(key)
	server, err := process.Start(binary, nil, "start", "--data", filepath.Join(p.dir, "data"), "--listen", "127.0.0.1:0", "--admin-listen", p.admin,
		"--hba", p.rulesFile(), "--tls-cert", filepath.Join(p.dir, "certs", "server.crt"), "--tls-key", key, "--log-level", "debug", "--audit-log", p.auditFile())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(server.Kill)
	if p.addr, err = server.AwaitReady(p.ctx); err != nil {
		p.t.Fatal(err, server.Output())
	}
	return server
}

// keepKey makes each line of a key's text a secret.
func (p *planted) keepKey(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		p.t.Fatalf("%s has no key", path)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if len(line) > 20 && !strings.HasPrefix(line, "-----") {
			p.secrets[line] = "the private key"
		}
	}
}

func (p *planted) auditFile() string { return filepath.Join(p.dir, "audit.log") }

func (p *planted) rulesFile() string { return filepath.Join(p.dir, "hba.conf") }

func (p *planted) writeRules(more string) {
	text := "host all guarded all scram-sha-256\n" + more + "host all all all trust\n"
	if err := os.WriteFile(p.rulesFile(), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// plantStatements gives passwords and verifiers in statements: such as succeed, fail, wait, and are rolled back.
func (p *planted) plantStatements(root *pgx.Conn) {
	p.exec(root, "create role guarded login password '"+p.secret("the password of CREATE ROLE")+"'")
	p.exec(root, "alter role guarded password '"+p.secret("the password of ALTER ROLE")+"'")
	p.exec(root, "create role plain login")
	p.exec(root, "comment on role plain is '"+control+"'")
	v := verifier.New(p.secret("the password of a verifier")).String()
	_, keys, _ := strings.Cut(v, "$")
	_, keys, _ = strings.Cut(keys, "$")
	p.secrets[keys] = "a verifier"
	p.exec(root, "create role verified login password '"+v+"'")
	var stored string
	if err := root.QueryRow(p.ctx, "select rolpassword from pg_authid where rolname = 'verified'").Scan(&stored); err != nil || stored != v {
		p.t.Errorf("the verifier is stored as %q, %v", stored, err)
	}

	plain := p.mustConnect("plain", "")
	for i, s := range []struct {
		conn *pgx.Conn
		text string
	}{
		{root, "alter role missing password '%s'"},
		{root, "create role guarded password '%s'"},
		{root, "alter role guarded password '%s' valid until 'nonsense'"},
		{root, "alter role guarded password '%s' connection limit -7"},
		{root, "alter role guarded password '%s' nonsense"},
		{root, "alter role guarded nonsense password '%s'"},
		{root, "alter role guarded password '%s' password 'twice'"},
		{root, "explain alter role guarded password '%s'"},
		{root, "alter role guarded password '%s'; select 1/0"},
		{plain, "create role other password '%s'"},
		{plain, "alter role guarded password '%s'"},
	} {
		_, err := s.conn.Exec(p.ctx, fmt.Sprintf(s.text, p.secret(fmt.Sprintf("the password of failed statement %d", i))))
		p.showError(s.text, err)
	}
	// The extended protocol, with a statement that stays prepared; a session whose block with the statement stays open.
	if _, err := root.Prepare(p.ctx, "kept", "alter role plain password '"+p.secret("the password of a prepared statement")+"'"); err != nil {
		p.t.Fatal(err)
	}
	open := p.mustConnect("postgres", "")
	p.exec(open, "begin")
	p.exec(open, "alter role verified password '"+p.secret("the password of an open block")+"'")
	waiting := p.mustConnect("postgres", "")
	p.exec(waiting, "set lock_timeout = '1s'")
	p.exec(waiting, "create role waiting password '"+p.secret("the password of a role beside a block")+"'")
	p.t.Cleanup(func() { open.Close(context.Background()) })
}

// plantLogins gives passwords to the server as clients do: wrong ones, of roles that do not exist, and as parameters.
func (p *planted) plantLogins() {
	for _, user := range []string{"guarded", "missing"} {
		conn, err := p.connect(user, p.secret("the password of a login as "+user))
		if user == "missing" && err == nil || user == "guarded" && err == nil {
			conn.Close(p.ctx)
		}
		p.showError("login as "+user, err)
	}
	// A client that sends the password in the clear, with the first message.
	raw, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	defer raw.Close()
	body := []byte("\x00\x03\x00\x00user\x00guarded\x00password\x00" + p.secret("a password among the parameters") + "\x00\x00")
	if _, err := raw.Write(append([]byte{0, 0, 0, byte(len(body) + 4)}, body...)); err != nil {
		p.t.Fatal(err)
	}
	answer := make([]byte, 4096)
	n, err := raw.Read(answer)
	if err != nil {
		p.t.Fatal(err)
	}
	p.show("the answer to a password among the parameters", answer[:n])
	message := append([]byte{'p', 0, 0, 0, 0}, p.secret("a password in the clear")+"\x00"...)
	message[4] = byte(len(message) - 1)
	if _, err := raw.Write(message); err != nil {
		p.t.Fatal(err)
	}
	if n, err = raw.Read(answer); err == nil {
		p.show("the answer to a password in the clear", answer[:n])
	}
}

// plantFiles gives secrets in files that are wrong, which the server loads again: a rule's option, and a key.
func (p *planted) plantFiles(root *pgx.Conn, server *process.Process) {
	p.writeRules("host all all 10.0.0.0/8 ldap ldapserver=ldap.example.org ldapbindpasswd=" + p.secret("a password in a rule") + "\n" +
		"host all all 10.0.0.0/8 radius radiussecrets=" + p.secret("a second one") + "\n" +
		"host all all 10.0.0.0/8 trust password=" + p.secret("a third one") + "\n")
	key := filepath.Join(p.dir, "certs", "server.key")
	text := "-----BEGIN EC PRIVATE KEY-----\n" + p.secret("the text of a wrong key") + "\n-----END EC PRIVATE KEY-----\n" + p.secret("what follows a wrong key") + "\n"
	if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.exec(root, "select pg_reload_conf()")
	for !strings.Contains(server.Output(), "were not reloaded") {
		if p.ctx.Err() != nil {
			p.t.Fatal("the log does not say that the files are wrong")
		}
		time.Sleep(10 * time.Millisecond) // The server reloads after it has answered.
	}
}

// readViews reads all system tables and views, as a superuser, and plans and answers about them.
func (p *planted) readViews(root *pgx.Conn) {
	rows, err := root.Query(p.ctx, `select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname in ('pg_catalog', 'information_schema', 'percodb') and c.relkind in ('r', 'v')`)
	if err != nil {
		p.t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) < 100 {
		p.t.Fatalf("%d system tables: %v", len(names), err)
	}
	for _, name := range names {
		what := "select * from " + name
		switch name {
		case "pg_catalog.pg_authid", "pg_catalog.pg_shadow":
			p.readRows(root, what+" where false") // They have the verifiers.
		default:
			p.readRows(root, what)
		}
		p.readRows(root, "explain (verbose, analyze) "+what)
	}
	p.readRows(root, "select rolname, rolpassword from pg_roles")
	if !bytes.Contains(p.shown["select * from pg_catalog.pg_shdescription"], []byte(control)) {
		p.t.Error("what is no secret is not found, either")
	}
}

func (p *planted) readRows(root *pgx.Conn, text string) {
	p.t.Helper()
	results, err := root.PgConn().Exec(p.ctx, text).ReadAll()
	if err != nil {
		p.t.Errorf("%s: %v", text, err)
		return
	}
	out := []byte(text + "\n")
	for _, result := range results {
		for _, row := range result.Rows {
			for _, value := range row {
				out = append(append(out, value...), '\t')
			}
		}
	}
	p.show(text, out)
}

func (p *planted) readMetrics() {
	for _, path := range []string{"/metrics", "/healthz"} {
		resp, err := http.Get("http://" + p.admin + path)
		if err != nil {
			p.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			p.t.Fatal(err)
		}
		p.show(path, append(text, path...))
	}
}

// readFiles reads the data files, which contain verifiers, but neither passwords nor keys.
func (p *planted) readFiles(dir string) {
	for text, purpose := range p.secrets {
		if purpose == "a verifier" {
			delete(p.secrets, text)
			defer func() { p.secrets[text] = purpose }()
		}
	}
	files := &planted{t: p.t, secrets: p.secrets, shown: map[string][]byte{}}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if len(text) > 0 {
			files.show(path, text)
		}
		return err
	})
	if err != nil || len(files.shown) == 0 {
		p.t.Errorf("%d files: %v", len(files.shown), err)
	}
	files.look()
}
