package wire_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/percodb/percodb/audit"
	"github.com/percodb/percodb/node"
)

// auditKinds reads the kinds of events from the source of package audit.
func auditKinds(t *testing.T) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../audit/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Type == nil || len(spec.Values) != 1 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != "Kind" {
			return true
		}
		kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, kind)
		return true
	})
	return all
}

// fullDisk is a file of an audit log that can be full.
type fullDisk struct {
	mu   sync.Mutex
	full bool
	text bytes.Buffer
}

func (d *fullDisk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return 0, errors.New("no space left on device")
	}
	return d.text.Write(p)
}

func (d *fullDisk) setFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// Goal: every kind of event that the code has is written to the audit log. Method: the cases
// run one after the other on one server; a kind without a case fails.
func TestEveryAuditKind(t *testing.T) {
	disk := &fullDisk{}
	s := startSecuredWith(t, "host all barred all reject\nhost all all all trust\n", func(o *node.Options) {
		o.Audit, o.AuditOut, o.AdminListen, o.AdminTLS = audit.Standard, disk, "127.0.0.1:0", true
	})
	conn, err := s.connect("user=app sslmode=disable")
	s.must(err)
	refuse := func(times int) {
		for range times {
			if _, err := s.connect("user=barred sslmode=disable"); err == nil {
				t.Fatal("barred is let in")
			}
		}
	}
	cases := []struct {
		kind audit.Kind
		act  func()
	}{
		{audit.Start, func() {}},
		{audit.Connect, func() {}},
		{audit.Refused, func() { refuse(1) }},
		{audit.Statement, func() { execAll(t, conn, "create role staff", "grant staff to app") }},
		{audit.RoleChange, func() {
			execAll(t, conn, "select set_config('role', 'staff', false)", "select set_config('role', 'none', false)")
		}},
		{audit.Ended, func() { execAll(t, conn, "begin", "create schema kinds", "rollback") }},
		{audit.Function, func() { execAll(t, conn, "select pg_cancel_backend(0)") }},
		{audit.Reload, func() { s.node.Reload() }},
		{audit.Admin, func() { s.requestMetrics("app", "sesame") }},
		{audit.Disconnect, func() {
			other, err := s.connect("user=x sslmode=disable")
			s.must(err)
			var ended bool
			s.must(s.admin.QueryRow(testContext(t), "select pg_terminate_backend($1, 60000)", other.PgConn().PID()).Scan(&ended))
		}},
		{audit.Lost, func() {
			disk.setFull(true)
			long := "drop table /* " + strings.Repeat("x", 16<<10) + " */ missing"
			for range 300 {
				if _, err := conn.Exec(testContext(t), long); !strings.HasPrefix(failure(err), "42P01") {
					t.Fatal(err)
				}
			}
			disk.setFull(false)
		}},
		{audit.Suppressed, func() { refuse(30); s.node.Close(context.Background()) }},
		{audit.Stop, func() {}},
	}
	execAll(t, conn, "alter role app password 'sesame'")
	for _, c := range cases {
		c.act()
	}
	found := map[audit.Kind]int{}
	for line := range strings.Lines(disk.text.String()) {
		var e audit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		found[e.Event]++
	}
	for _, kind := range auditKinds(t) {
		has := false
		for _, c := range cases {
			has = has || string(c.kind) == kind
		}
		if !has {
			t.Errorf("kind %s has no case", kind)
		}
		if found[audit.Kind(kind)] == 0 {
			t.Errorf("no event of kind %s was written", kind)
		}
	}
	if len(auditKinds(t)) != len(cases) {
		t.Errorf("%d kinds, %d cases", len(auditKinds(t)), len(cases))
	}
}

// requestMetrics asks the admin endpoint for metrics with a role's password.
func (s *secured) requestMetrics(user, password string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(testContext(s.t), http.MethodGet, "https://"+s.node.AdminAddr().String()+"/metrics", nil)
	s.must(err)
	request.SetBasicAuth(user, password)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	s.must(err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("metrics: %s", response.Status)
	}
}
