package node

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

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
