package tlsfiles

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// write writes a self-signed certificate of that name and its key into dir, and returns their paths; the certificate is
// its own authority.
func write(t *testing.T, dir, name string) Files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	f := Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "cert.pem")}
	put(t, f.Cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	put(t, f.Key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	return f
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Goal: Reload takes new files, and keeps what it has while the files are wrong.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	files := write(t, dir, "first")
	k, err := Open(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	name := func() string { return k.Current().Certificate.Leaf.Subject.CommonName }
	if name() != "first" || k.Current().Authorities == nil {
		t.Errorf("%q, %v", name(), k.Current().Authorities)
	}
	put(t, files.Key, "half a key")
	if err := k.Reload(); err == nil || name() != "first" {
		t.Errorf("wrong key: %v, %q", err, name())
	}
	write(t, dir, "second")
	if err := k.Reload(); err != nil || name() != "second" {
		t.Errorf("new files: %v, %q", err, name())
	}
}

// Goal: files that cannot be used are refused with the file's name and the reason.
func TestWrongFiles(t *testing.T) {
	const encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
	none := errors.New("not this one")
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, f *Files)
		check func(*Set) error
		want  []string
	}{
		{"no certificate", func(_ *testing.T, f *Files) { f.Cert += ".missing" }, nil, []string{"cert.pem.missing", "does not exist"}},
		{"no key", func(_ *testing.T, f *Files) { f.Key += ".missing" }, nil, []string{"key.pem.missing", "does not exist"}},
		{"no authorities", func(_ *testing.T, f *Files) { f.CA += ".missing" }, nil, []string{"cert.pem.missing", "does not exist"}},
		{"empty authorities", func(t *testing.T, f *Files) { f.CA = f.Key }, nil, []string{"key.pem", "no certificate"}},
		{"damaged authorities", func(t *testing.T, f *Files) {
			f.CA = f.Cert + ".ca"
			put(t, f.CA, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
		}, nil, []string{"cert.pem.ca", "certificate 1"}},
		{"another's key", func(t *testing.T, f *Files) { f.Key = write(t, t.TempDir(), "other").Key }, nil, []string{"cert.pem", "key.pem", "does not match"}},
		{"encrypted key", func(t *testing.T, f *Files) { put(t, f.Key, encrypted) }, nil, []string{"key.pem", "passphrase"}},
		{"open key", func(t *testing.T, f *Files) {
			if err := os.Chmod(f.Key, 0o644); err != nil {
				t.Fatal(err)
			}
		}, nil, []string{"key.pem", "group or world access", "chmod 600"}},
		{"a directory", func(t *testing.T, f *Files) { f.Key = t.TempDir() }, nil, []string{"not a regular file"}},
		{"refused", func(*testing.T, *Files) {}, func(*Set) error { return none }, []string{"cert.pem", none.Error()}},
	} {
		files := write(t, t.TempDir(), "it")
		c.spoil(t, &files)
		_, err := Open(files, c.check)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in %q", c.name, want, err)
			}
		}
	}
}
