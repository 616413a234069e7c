package node

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/tlsfiles"
)

// Goal: an admin endpoint that other machines reach serves operators, and nobody else. Method: requests with each kind of
// certificate, and without.
func TestAdminForOperators(t *testing.T) {
	dir, other := trial(t), trial(t)
	n := start(t, Options{
		Role: RoleTSO, Data: t.TempDir(), RPCListen: "127.0.0.1:0", ClusterTLS: certs.ProcessFiles(dir, certs.TSO),
		AdminListen: "127.0.0.1:0", AdminTLS: true,
	})
	get := func(client *http.Client, scheme string) (text string, err error) {
		defer client.CloseIdleConnections()
		res, err := client.Get(scheme + "://" + n.AdminAddr().String() + "/metrics")
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return string(body), err
	}
	const metric = "go_goroutines"
	operator, err := OperatorClient(certs.ProcessFiles(dir, certs.Operator))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := get(operator, "https"); err != nil || !strings.Contains(text, metric) {
		t.Errorf("the operator: %v, %q", err, text)
	}
	if text, _ := get(http.DefaultClient, "http"); strings.Contains(text, metric) {
		t.Error("metrics were served without TLS")
	}
	for name, files := range map[string]tlsfiles.Files{
		"nobody":                     {},
		"a client of the database":   certs.ClientFiles(dir, "alice"),
		"a SQL process":              certs.ProcessFiles(dir, certs.SQL),
		"another cluster's operator": certs.ProcessFiles(other, certs.Operator),
	} {
		config := &tls.Config{InsecureSkipVerify: true}
		if files.Cert != "" {
			pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
			if err != nil {
				t.Fatal(err)
			}
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		if text, err := get(&http.Client{Transport: &http.Transport{TLSClientConfig: config}}, "https"); err == nil || text != "" {
			t.Errorf("%s was served %q", name, text)
		}
	}
	stranger, err := OperatorClient(certs.ProcessFiles(other, certs.Operator))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(stranger, "https"); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("an operator sent a request to another cluster: %v", err)
	}
	for _, c := range []Options{
		{Role: RoleAll, Data: t.TempDir(), Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", AdminTLS: true},
		{Role: RoleTSO, Data: t.TempDir(), RPCListen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", AdminTLS: true},
	} {
		if n, err := Start(context.Background(), c); err == nil || !strings.Contains(err.Error(), "no certificate") {
			t.Errorf("%s: %v, %v", c.Role, n, err)
		}
	}
}

// Goal: the admin endpoint of a server on its own serves superusers with their password, members of pg_monitor metrics only, and
// nobody else.
func TestAdminForRoles(t *testing.T) {
	n := start(t, Options{
		Role: RoleAll, Data: t.TempDir(), Listen: "127.0.0.1:0", Access: auth.Options{Certificates: certs.ServerFiles(trial(t))},
		AdminListen: "127.0.0.1:0", AdminTLS: true, AdminPprof: true,
	})
	for _, sql := range []string{
		"create role chief superuser login password 'cs'", "create role watcher login password 'ws'", "grant pg_monitor to watcher",
		"create role other login password 'os'", "create role idle superuser nologin password 'is'",
		"create role late superuser login password 'ls' valid until '2001-01-01'", "create role bare superuser login",
	} {
		query(t, n, sql)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for _, c := range []struct {
		user, password, path string
		want                 int
	}{
		{"chief", "cs", "/metrics", 200}, {"chief", "cs", "/debug/pprof/cmdline", 200}, {"chief", "ws", "/metrics", 401}, {"chief", "", "/metrics", 401},
		{"watcher", "ws", "/metrics", 200}, {"watcher", "ws", "/healthz", 200}, {"watcher", "ws", "/debug/pprof/cmdline", 401}, {"watcher", "ws", "/check", 401},
		{"other", "os", "/metrics", 401}, {"idle", "is", "/metrics", 401}, {"late", "ls", "/metrics", 401},
		{"bare", "", "/metrics", 401}, {"nobody", "", "/metrics", 401}, {"", "", "/metrics", 401},
	} {
		r, err := http.NewRequest(http.MethodGet, "https://"+n.AdminAddr().String()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.user != "" {
			r.SetBasicAuth(c.user, c.password)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("%q, %q, %s: %d, want %d", c.user, c.password, c.path, res.StatusCode, c.want)
		}
	}
}
