package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percodb/percodb/internal/tlsfiles"
)

func read(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s is not in PEM format", path)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Goal: the certificates of a trial verify for what they are made for, and for nothing else. Method: verify each of them as
// a server and as a client, and compare the roles that they state.
func TestTrial(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	if err := WriteTrial(dir, Trial{Hosts: Loopback, Users: []string{"alice"}}); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(read(t, filepath.Join(dir, "ca.crt")))
	for _, c := range []struct {
		files          tlsfiles.Files
		server, client bool
		role           Role
	}{
		{ServerFiles(dir), true, false, ""},
		{ClientFiles(dir, "alice"), false, true, ""},
		{ProcessFiles(dir, TSO), true, true, TSO},
		{ProcessFiles(dir, KV), true, true, KV},
		{ProcessFiles(dir, SQL), true, true, SQL},
		{ProcessFiles(dir, Operator), true, true, Operator},
	} {
		if _, err := tlsfiles.Open(c.files, nil); err != nil {
			t.Error(err)
		}
		cert := read(t, c.files.Cert)
		usable := func(usage x509.ExtKeyUsage, host string) bool {
			_, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}})
			return err == nil
		}
		for _, host := range Loopback {
			if got := usable(x509.ExtKeyUsageServerAuth, host); got != c.server {
				t.Errorf("%s as a server at %s: %v", c.files.Cert, host, got)
			}
		}
		if usable(x509.ExtKeyUsageServerAuth, "example.org") {
			t.Errorf("%s is a server at example.org", c.files.Cert)
		}
		if got := usable(x509.ExtKeyUsageClientAuth, ""); got != c.client {
			t.Errorf("%s as a client: %v", c.files.Cert, got)
		}
		for _, role := range []Role{TSO, KV, SQL, Operator} {
			if Has(cert, role) != (role == c.role) {
				t.Errorf("%s as %s: %v", c.files.Cert, role, Has(cert, role))
			}
		}
		if said := Describe(cert); !strings.Contains(said, string(c.role)) || c.role == "" && !strings.Contains(said, "no process") {
			t.Errorf("%s: %s", c.files.Cert, said)
		}
	}
	if got := read(t, ClientFiles(dir, "alice").Cert).Subject.CommonName; got != "alice" {
		t.Errorf("alice's common name is %q", got)
	}
}

// Goal: what was written is readable by its owner only, and is never overwritten, not even in part.
func TestTrialOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "sql.key")
	if err := os.WriteFile(kept, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	var exists *ExistsError
	if err := WriteTrial(dir, Trial{Hosts: Loopback}); !errors.As(err, &exists) || exists.Path != kept {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(dir)
	if text, readErr := os.ReadFile(kept); err != nil || len(entries) != 1 || readErr != nil || !bytes.Equal(text, []byte("mine")) {
		t.Errorf("%v, %v, %q, %v", entries, err, text, readErr)
	}
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	if err := WriteTrial(dir, Trial{Hosts: Loopback}); err != nil {
		t.Fatal(err)
	}
	if entries, err = os.ReadDir(dir); err != nil || len(entries) != 13 {
		t.Errorf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info, err)
		}
	}
	if err := WriteTrial(t.TempDir(), Trial{Hosts: Loopback, Users: []string{"../x"}}); err == nil {
		t.Error("a user's name led out of the directory")
	}
}
