package pgwire

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"strings"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/catalog"
)

// describeTLS returns what pg_stat_ssl shows of a connection, nil if it is not encrypted.
func describeTLS(state *tls.ConnectionState) *catalog.TLS {
	if state == nil {
		return nil
	}
	shown := &catalog.TLS{
		Version: auth.TLSVersion(state), Cipher: tls.CipherSuiteName(state.CipherSuite), Bits: 256,
	}
	if strings.Contains(shown.Cipher, "_128_") {
		shown.Bits = 128
	}
	if len(state.PeerCertificates) > 0 {
		cert := state.PeerCertificates[0]
		shown.ClientDN, shown.IssuerDN = distinguishedName(&cert.Subject), distinguishedName(&cert.Issuer)
		shown.ClientSerial = cert.SerialNumber.String()
	}
	return shown
}

// attributeNames are the short names of the attributes of certificates' names.
var attributeNames = map[string]string{
	"2.5.4.3": "CN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.10": "O", "2.5.4.11": "OU",
	"1.2.840.113549.1.9.1": "emailAddress", "0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
}

// distinguishedName writes a name as PostgreSQL does: /C=…/O=…/CN=….
func distinguishedName(name *pkix.Name) string {
	var b strings.Builder
	for _, part := range name.Names {
		short, ok := attributeNames[part.Type.String()]
		if !ok {
			short = part.Type.String()
		}
		fmt.Fprintf(&b, "/%s=%v", short, part.Value)
	}
	return b.String()
}
