// Package certs issues certificates, and defines the names by which those of a cluster's processes state their roles.
//
// Invariants: a certificate without a role's name never identifies a process of a cluster, whoever signed it; keys are
// ECDSA P-256; files are readable by their owner only, and none is overwritten.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Role is what a process of a cluster may be, according to its certificate.
type Role string

// The roles. A certificate states one by the URI percodb:ROLE among its subject alternative names, and may state several.
const (
	TSO      Role = "tso"
	KV       Role = "kv"
	SQL      Role = "sql"
	Operator Role = "operator" // percodb store
)

// scheme is that of the URIs that name roles.
const scheme = "percodb"

// String returns the role's name in certificates.
func (r Role) String() string { return scheme + ":" + string(r) }

// Has reports whether the certificate states one of the roles.
func Has(c *x509.Certificate, roles ...Role) bool {
	for _, uri := range c.URIs {
		if uri.Scheme == scheme && slices.Contains(roles, Role(uri.Opaque)) {
			return true
		}
	}
	return false
}

// Describe names the certificate's roles, for messages.
func Describe(c *x509.Certificate) string {
	var roles []string
	for _, uri := range c.URIs {
		if uri.Scheme == scheme {
			roles = append(roles, uri.String())
		}
	}
	if len(roles) == 0 {
		return fmt.Sprintf("%q, which is of no process of a cluster", c.Subject.CommonName)
	}
	return fmt.Sprintf("%q, which is %s", c.Subject.CommonName, strings.Join(roles, " and "))
}

// Request describes a certificate.
type Request struct {
	Name  string   // the common name: of a client, its role in the database
	Hosts []string // DNS names and IP addresses of a server; none for a client
	Role  Role     // of a process of a cluster, which is server and client; "" for others
}

// Pair is a certificate with its private key, in PEM format.
type Pair struct{ Cert, Key []byte }

// Authority issues certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pair Pair
}

// The authority outlives the certificates that it issues.
const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// clockTolerance is how far the clock of another machine may be behind.
	clockTolerance = time.Hour
)

// NewAuthority makes an authority with a new key.
func NewAuthority(name string) (*Authority, error) {
	template, err := newTemplate(name, authorityLife)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &Authority{key: key}
	a.cert, a.pair, err = sign(template, key, template, key)
	return a, err
}

// Pair returns the authority's own certificate and key.
func (a *Authority) Pair() Pair { return a.pair }

// Issue issues a certificate for a new key.
func (a *Authority) Issue(req Request) (Pair, error) {
	template, err := newTemplate(req.Name, certificateLife)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	switch {
	case req.Role != "":
		template.URIs = []*url.URL{{Scheme: scheme, Opaque: string(req.Role)}}
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	case len(req.Hosts) > 0:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	default:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	for _, host := range req.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	_, pair, err := sign(template, key, a.cert, a.key)
	return pair, err
}

func newTemplate(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-clockTolerance), NotAfter: now.Add(life),
	}, nil
}

// sign returns the template's certificate for key, signed by the issuer.
func sign(template *x509.Certificate, key *ecdsa.PrivateKey, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey) (*x509.Certificate, Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		return nil, Pair{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, Pair{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, Pair{}, err
	}
	return cert, Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}, nil
}
