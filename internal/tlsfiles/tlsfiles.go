// Package tlsfiles loads certificates, private keys and certificate authorities from PEM files, and loads them again while
// the process runs.
//
// Invariants: a Set never changes after it was loaded; a Keeper always has a Set that is whole, so wrong files found by
// Reload change nothing.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
)

// Files are the paths of PEM files.
type Files struct {
	Cert string // the certificate, followed by those of intermediate authorities
	Key  string // its private key, not encrypted, that only its owner reads
	CA   string // the authorities that issue the certificates of the other side; "" if none is verified
}

// Set is what Files contained when they were loaded.
type Set struct {
	Certificate *tls.Certificate // with its Leaf
	Authorities *x509.CertPool   // nil without Files.CA
}

// Keeper holds the Set that was loaded last. Safe for concurrent use.
type Keeper struct {
	files   Files
	check   func(*Set) error
	current atomic.Pointer[Set]
}

// Open loads the files. check, unless nil, refuses a Set that cannot be used, now and in every Reload.
func Open(files Files, check func(*Set) error) (*Keeper, error) {
	k := &Keeper{files: files, check: check}
	if err := k.Reload(); err != nil {
		return nil, err
	}
	return k, nil
}

// Current returns the Set that was loaded last. It is shared and must not be changed.
func (k *Keeper) Current() *Set { return k.current.Load() }

// Reload loads the files again. If it returns an error, which names the file, Current remains what it was.
func (k *Keeper) Reload() error {
	set, err := k.files.load()
	if err == nil && k.check != nil {
		if err = k.check(set); err != nil {
			err = fmt.Errorf("%s: %w", k.files.Cert, err)
		}
	}
	if err != nil {
		return err
	}
	k.current.Store(set)
	return nil
}

func (f Files) load() (*Set, error) {
	if err := checkKeyFile(f.Key); err != nil {
		return nil, err
	}
	cert, err := readFile("certificate file", f.Cert)
	if err != nil {
		return nil, err
	}
	key, err := readFile("private key file", f.Key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with private key %s: %w", f.Cert, f.Key, explainPair(err, key))
	}
	set := &Set{Certificate: &pair}
	if f.CA == "" {
		return set, nil
	}
	authorities, err := readFile("file of authorities", f.CA)
	if err != nil {
		return nil, err
	}
	if set.Authorities, err = parseAuthorities(authorities); err != nil {
		return nil, fmt.Errorf("%s: %w", f.CA, err)
	}
	return set, nil
}

func readFile(what, path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(what, path, err)
	}
	return text, nil
}

// unreadable says what to do about a file that cannot be read.
func unreadable(what, path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s %q does not exist; percodb cert makes certificates for a trial", what, path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to read %s %q; have it and its directory belong to the user who runs the process (chown), with the permissions 0600 and 0700", what, path)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// explainPair says that a key is encrypted, which crypto/tls reports as a key that it cannot parse.
func explainPair(err error, key []byte) error {
	block, _ := pem.Decode(key)
	if block != nil && (block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "") {
		return errors.New("the key is encrypted with a passphrase; store it without one, readable by its owner only")
	}
	return err
}

// parseAuthorities returns the certificates in text. All of them must be valid: an authority that is silently left out
// would refuse its clients.
func parseAuthorities(text []byte) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", n+1, err)
		}
		pool.AddCert(c)
		n++
	}
	if n == 0 {
		return nil, errors.New("there is no certificate in PEM format")
	}
	return pool, nil
}

// checkKeyFile refuses, as PostgreSQL does, a key that other users can read. If root owns the file, the group may.
func checkKeyFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return unreadable("private key file", path, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("private key file %q is not a regular file", path)
	}
	allowed := fs.FileMode(0o700)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == 0 && os.Getuid() != 0 {
		allowed = 0o740
	}
	if mode := info.Mode().Perm(); mode&^allowed != 0 {
		return fmt.Errorf("private key file %q has group or world access (permissions %04o); use chmod 600", path, mode)
	}
	return nil
}
