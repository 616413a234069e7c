package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"hash"
	"strings"
	"time"

	"github.com/xdg-go/scram"

	"github.com/percodb/percodb/auth/verifier"
	"github.com/percodb/percodb/sql/pgerror"
)

// Conversation exchanges SASL messages with a client (55.3).
type Conversation interface {
	// Begin offers mechanisms and returns the one that the client has chosen, with its first message.
	Begin(mechanisms []string) (mechanism string, message []byte, err error)
	// Challenge sends a message and returns the client's answer.
	Challenge(message []byte) (answer []byte, err error)
	// Finish sends the last message.
	Finish(message []byte) error
}

// The SASL mechanisms.
const (
	mechanismPlain   = "SCRAM-SHA-256"
	mechanismBinding = "SCRAM-SHA-256-PLUS"
)

// password has the client prove that it knows the user's password. A user who does not exist, or has no password, is sent the
// same messages as one who has, and fails at the same point.
func (l *login) password(conv Conversation) error {
	if err := l.lookUp(); err != nil {
		return err
	}
	secret, err := l.gate.opts.Roles.Secret(l.ctx)
	if err != nil {
		return err
	}
	stored, doomed := verifierOf(secret, l.User, l.role)
	credentials := scram.StoredCredentials{
		KeyFactors: scram.KeyFactors{Salt: string(stored.Salt), Iters: stored.Iterations},
		StoredKey:  stored.StoredKey, ServerKey: stored.ServerKey,
	}
	server, err := scram.SHA256.NewServer(func(string) (scram.StoredCredentials, error) { return credentials, nil })
	if err != nil {
		return err
	}
	exchange, mechanisms := server.NewConversation(), []string{mechanismPlain}
	if binding := l.binding(); binding.IsSupported() {
		exchange, mechanisms = server.NewConversationWithChannelBinding(binding), []string{mechanismBinding, mechanismPlain}
	}
	mechanism, message, err := conv.Begin(mechanisms)
	if err != nil {
		return err
	}
	if err := checkMechanism(mechanism, mechanisms, message); err != nil {
		return err
	}
	challenge, err := exchange.Step(string(message))
	switch {
	case err != nil:
		return scramError(challenge)
	case namesAuthorization(message):
		return pgerror.New(pgerror.FeatureNotSupported, "client uses authorization identity, but it is not supported")
	}
	answer, err := conv.Challenge([]byte(challenge))
	if err != nil {
		return err
	}
	if err := l.gate.failures.wait(l.ctx, l.Address()); err != nil {
		return err
	}
	last, err := exchange.Step(string(answer))
	switch {
	case err != nil && last != scram.ErrInvalidProof:
		return scramError(last)
	case err != nil && doomed == nil:
		doomed = refusal("the password is wrong")
	}
	if doomed != nil {
		l.gate.failures.add(l.Address())
		return doomed
	}
	return conv.Finish([]byte(last))
}

// checkMechanism refuses a first message that does not belong to the mechanism that the client has chosen.
func checkMechanism(mechanism string, offered []string, message []byte) error {
	binds := strings.HasPrefix(string(message), "p=")
	switch {
	case mechanism != mechanismPlain && (mechanism != mechanismBinding || len(offered) == 1):
		return pgerror.New(pgerror.ProtocolViolation, "client selected an invalid SASL authentication mechanism")
	case mechanism == mechanismBinding && !binds:
		return malformed("The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data.")
	case mechanism == mechanismPlain && binds:
		return malformed("The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel binding data.")
	}
	return nil
}

// namesAuthorization reports whether a first message asks for an authorization identity, which may be the empty name.
func namesAuthorization(message []byte) bool {
	_, rest, _ := bytes.Cut(message, []byte(","))
	return bytes.HasPrefix(rest, []byte("a"))
}

func malformed(detail string) error {
	e := pgerror.New(pgerror.ProtocolViolation, "malformed SCRAM message")
	if detail != "" {
		e = e.WithDetail("%s", detail)
	}
	return e
}

// scramError is the error for a message that package scram has refused with one of RFC 5802's errors, or "".
func scramError(code string) error {
	switch code {
	case scram.ErrChannelBindingsDontMatch:
		return pgerror.New(pgerror.InvalidAuthorization, "SCRAM channel binding check failed")
	case scram.ErrServerDoesSupportChannelBinding:
		return pgerror.New(pgerror.InvalidAuthorization, "SCRAM channel binding negotiation error").
			WithDetail("The client supports SCRAM channel binding but thinks the server does not.  However, this server does support channel binding.")
	case scram.ErrUnsupportedChannelBindingType:
		return pgerror.New(pgerror.ProtocolViolation, "unsupported SCRAM channel-binding type")
	}
	return malformed("")
}

// binding is the data of channel binding tls-server-end-point (RFC 5929), none without TLS.
func (c *Client) binding() scram.ChannelBinding {
	if c.ServerCert == nil {
		return scram.ChannelBinding{}
	}
	return scram.ChannelBinding{Type: scram.ChannelBindingTLSServerEndpoint, Data: endPoint(c.ServerCert)}
}

// endPoint is the hash of a server's certificate, with the function of its signature, or SHA-256 in place of weaker ones. nil:
// the signature does not name one, and there is no channel binding.
func endPoint(cert *x509.Certificate) []byte {
	var h hash.Hash
	switch cert.SignatureAlgorithm {
	case x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1,
		x509.SHA256WithRSA, x509.SHA256WithRSAPSS, x509.DSAWithSHA256, x509.ECDSAWithSHA256:
		h = sha256.New()
	case x509.SHA384WithRSA, x509.SHA384WithRSAPSS, x509.ECDSAWithSHA384:
		h = sha512.New384()
	case x509.SHA512WithRSA, x509.SHA512WithRSAPSS, x509.ECDSAWithSHA512:
		h = sha512.New()
	default:
		return nil
	}
	h.Write(cert.Raw)
	return h.Sum(nil)
}

// verifierOf returns the verifier that a login is checked with. doomed is why it cannot succeed.
func verifierOf(secret []byte, user string, role *Role) (v *verifier.Verifier, doomed error) {
	mock := mockVerifier(secret, user) // Made in any case: both cases take the same time.
	if role == nil {
		return mock, refusal("role %q does not exist", user)
	}
	stored, why := role.verifier()
	if stored == nil {
		return mock, refusal("user %q "+why, user)
	}
	return stored, nil
}

// verifier returns that of the role's password, nil if no password lets a client in; why is what the role lacks.
func (r *Role) verifier() (_ *verifier.Verifier, why string) {
	switch {
	case r.Verifier == "":
		return nil, "has no password assigned"
	case !r.Expires.IsZero() && time.Now().After(r.Expires):
		return nil, "has an expired password"
	}
	stored, ok := verifier.Parse(r.Verifier)
	if !ok {
		return nil, "does not have a valid SCRAM secret"
	}
	return stored, ""
}

// HasPassword reports whether there is a password by which clients can log in as the role now.
func (r *Role) HasPassword() bool {
	stored, _ := r.verifier()
	return stored != nil
}

// mockSaltBytes is the length of the salts that package verifier and PostgreSQL make.
const mockSaltBytes = 16

// mockVerifier makes a verifier for a user without one. Its salt is always the same for the same name, as that of a user is.
func mockVerifier(secret []byte, user string) *verifier.Verifier {
	derive := func(what string) []byte {
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(what + "\x00" + user))
		return h.Sum(nil)
	}
	return &verifier.Verifier{
		Iterations: verifier.Iterations, Salt: derive("salt")[:mockSaltBytes], StoredKey: derive("stored key"), ServerKey: derive("server key"),
	}
}
