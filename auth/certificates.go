package auth

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/percodb/percodb/internal/tlsfiles"
)

// ALPN is the name of PostgreSQL's protocol in the TLS handshake.
const ALPN = "postgresql"

// serverConfig returns the configuration of a server for clients' connections. A client's certificate is asked for if there
// are authorities, and verified if it is sent.
func serverConfig(set *tlsfiles.Set) *tls.Config {
	config := &tls.Config{
		Certificates: []tls.Certificate{*set.Certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{ALPN},
		// Small records serve browsers that render as data arrive. Each is a system call.
		DynamicRecordSizingDisabled: true,
		SessionTicketsDisabled:      true, // libpq never resumes, and a ticket would outlive the authorities that it was issued under.
	}
	if set.Authorities != nil {
		config.ClientCAs, config.ClientAuth = set.Authorities, tls.VerifyClientCertIfGiven
	}
	return config
}

// CipherNames lists the cipher suites that serverConfig offers with TLS 1.2: those with forward secrecy that crypto/tls has. Those of TLS 1.3
// cannot be chosen.
func CipherNames() string {
	var names []string
	for _, suite := range tls.CipherSuites() {
		if slices.Contains(suite.SupportedVersions, tls.VersionTLS12) && strings.HasPrefix(suite.Name, "TLS_ECDHE_") {
			names = append(names, suite.Name)
		}
	}
	return strings.Join(names, ":")
}

var (
	oidCommonName = asn1.ObjectIdentifier{2, 5, 4, 3}

	errNoClientCert = errors.New("connection requires a valid client certificate")
	// errRefused is wrapped by the reasons of refusals that are logged only.
	errRefused = errors.New("refused")
)

// commonName returns the common name of a client's verified certificate. A certificate with several has none, because
// which of them counts would depend on the reader.
func commonName(cert *x509.Certificate) (name string, ok bool) {
	found := 0
	for _, part := range cert.Subject.Names {
		if part.Type.Equal(oidCommonName) {
			name, ok = part.Value.(string)
			found++
		}
	}
	return name, ok && found == 1 && name != ""
}

// checkClientCert verifies what a rule demands of the client's certificate. The handshake has verified its chain.
func (r *Rule) checkClientCert(state *tls.ConnectionState, user string) error {
	if r.ClientCert == NoClientCert {
		return nil
	}
	if state == nil || len(state.VerifiedChains) == 0 {
		return errNoClientCert
	}
	if r.ClientCert == VerifyCA {
		return nil
	}
	name, ok := commonName(state.PeerCertificates[0])
	if !ok {
		return refusal("the client's certificate does not have one common name")
	}
	if name != user {
		return refusal("provided user name (%q) and the common name of the client's certificate (%q) do not match", user, name)
	}
	return nil
}

// refusedError is the reason of a refusal that is logged only.
type refusedError struct{ reason string }

func refusal(format string, args ...any) error { return &refusedError{fmt.Sprintf(format, args...)} }

func (e *refusedError) Error() string        { return e.reason }
func (e *refusedError) Is(target error) bool { return target == errRefused }
