package auth

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/sql/pgerror"
)

// DefaultTimeout bounds the time from a client's connection to the end of its authentication.
const DefaultTimeout = time.Minute

// DefaultRules are the rules of a server that is given none: who has access to the machine is trusted, others need a password.
const DefaultRules = `local all all               trust
host  all all 127.0.0.0/8   trust
host  all all ::1/128       trust
host  all all all           scram-sha-256
`

// TrustEverything are rules that let everyone in.
const TrustEverything = "local all all trust\nhost all all all trust\n"

// Options configure a Gate.
type Options struct {
	// RulesFile is a file in the form of pg_hba.conf; if it is empty, Rules has its text.
	RulesFile, Rules string
	// Certificates are those of the server, and the authorities of clients' certificates; if Cert is empty, TLS is refused.
	Certificates tlsfiles.Files
	Timeout      time.Duration // 0: DefaultTimeout
	Roles        Roles
	Logger       *slog.Logger
}

// Roles looks up the roles of the database.
type Roles interface {
	// Role returns a role, nil if there is none.
	Role(ctx context.Context, name string) (*Role, error)
	// Secret returns bytes that are the same for all servers of the database, and that nobody else knows.
	Secret(ctx context.Context) ([]byte, error)
}

// Role is what matters of a role for its login.
type Role struct {
	Verifier string    // pg_authid.rolpassword, "" for none
	Expires  time.Time // of the password; zero: never
	MemberOf func(role string) bool
}

// Gate holds the rules and certificates in force. Safe for concurrent use.
type Gate struct {
	opts     Options
	reload   sync.Mutex
	rules    atomic.Pointer[[]Rule]
	files    *tlsfiles.Keeper // nil: TLS is refused
	tls      atomic.Pointer[tls.Config]
	failures *failures
}

// NewGate loads the rules and certificates.
func NewGate(opts Options) (*Gate, error) {
	if opts.Timeout == 0 {
		opts.Timeout = DefaultTimeout
	}
	g := &Gate{opts: opts, failures: newFailures()}
	if err := g.loadRules(); err != nil {
		return nil, err
	}
	if opts.Certificates.Cert == "" {
		return g, nil
	}
	var err error
	if g.files, err = tlsfiles.Open(opts.Certificates, nil); err != nil {
		return nil, err
	}
	g.tls.Store(serverConfig(g.files.Current()))
	return g, nil
}

// Reload loads the files again. What cannot be used is logged, and what was in force before stays.
func (g *Gate) Reload() {
	g.reload.Lock()
	defer g.reload.Unlock()
	if err := g.loadRules(); err != nil {
		g.opts.Logger.Error("the rules for clients were not reloaded", "err", err)
	}
	if g.files == nil {
		return
	}
	if err := g.files.Reload(); err != nil {
		g.opts.Logger.Error("the certificates for clients were not reloaded", "err", err)
		return
	}
	g.tls.Store(serverConfig(g.files.Current()))
}

// Timeout bounds the time from a client's connection to the end of its authentication.
func (g *Gate) Timeout() time.Duration { return g.opts.Timeout }

// TLS returns the configuration for a handshake, nil if TLS is refused.
func (g *Gate) TLS() *tls.Config { return g.tls.Load() }

// maxRulesBytes is the size of the largest file of rules.
const maxRulesBytes = 4 << 20

// text reads the rules.
func (g *Gate) text() (string, error) {
	if g.opts.RulesFile == "" {
		return g.opts.Rules, nil
	}
	f, err := os.Open(g.opts.RulesFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRulesBytes+1))
	if len(text) > maxRulesBytes {
		err = fmt.Errorf("%s is longer than %d MB", g.opts.RulesFile, maxRulesBytes>>20)
	}
	return string(text), err
}

func (g *Gate) loadRules() error {
	text, err := g.text()
	if err != nil {
		return err
	}
	rules, invalid := ParseRules(text)
	if len(rules) == 0 && len(invalid) == 0 {
		return fmt.Errorf("%s contains no entries", g.opts.RulesFile)
	}
	var errs []error
	for _, e := range invalid {
		errs = append(errs, fmt.Errorf("%s: %w", g.opts.RulesFile, e))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, r := range rules {
		switch {
		case r.Type == HostSSL && g.opts.Certificates.Cert == "":
			return fmt.Errorf("%s: line %d: hostssl record cannot match because TLS is disabled (give --tls-cert and --tls-key)", g.opts.RulesFile, r.Line)
		case r.ClientCert != NoClientCert && g.opts.Certificates.CA == "":
			return fmt.Errorf("%s: line %d: client certificates can only be checked if a root certificate store is available (give --tls-ca)", g.opts.RulesFile, r.Line)
		}
	}
	g.rules.Store(&rules)
	return nil
}

// Client is a client that asks to be let in.
type Client struct {
	Addr           net.Addr             // of its end of the connection
	TLS            *tls.ConnectionState // nil: the connection is not encrypted
	ServerCert     *x509.Certificate    // that the client has been shown; nil without TLS
	User, Database string
}

// address returns the client's IP address; the zero Addr is a Unix socket.
func (c *Client) address() netip.Addr {
	if tcp, ok := c.Addr.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr()
	}
	return netip.Addr{}
}

// describe names the client as PostgreSQL's messages do.
func (c *Client) describe() string {
	host, encryption := "[local]", "no encryption"
	if addr := c.address(); addr.IsValid() {
		host = addr.Unmap().String()
	}
	if c.TLS != nil {
		encryption = "SSL encryption"
	}
	return fmt.Sprintf("host \"%s\", user \"%s\", database \"%s\", %s", host, c.User, c.Database, encryption)
}

// Admit decides whether a client is let in. The error is what to end its connection with. conv is used if a password is needed.
func (g *Gate) Admit(ctx context.Context, c *Client, conv Conversation) error {
	login := login{gate: g, ctx: ctx, Client: c}
	rule := Match(*g.rules.Load(), &Connection{
		Addr: c.address(), TLS: c.TLS != nil, User: c.User, Database: c.Database, Interfaces: g.interfaces, MemberOf: login.memberOf,
	})
	switch {
	case login.err != nil:
		return login.err
	case rule == nil:
		return g.refuse(c, nil, pgerror.InvalidAuthorization, "no pg_hba.conf entry for "+c.describe(), nil)
	case rule.Method == Reject:
		return g.refuse(c, rule, pgerror.InvalidAuthorization, "pg_hba.conf rejects connection for "+c.describe(), nil)
	}
	certErr := rule.checkClientCert(c.TLS, c.User)
	if errors.Is(certErr, errNoClientCert) {
		return g.refuse(c, rule, pgerror.InvalidAuthorization, certErr.Error(), nil)
	}
	if rule.Method == Password {
		if err := login.password(conv); err != nil {
			return login.failed(rule, err)
		}
	}
	if certErr != nil {
		return login.failed(rule, certErr)
	}
	return nil
}

// login is a client's attempt to be let in.
type login struct {
	*Client
	gate   *Gate
	ctx    context.Context
	role   *Role // nil: there is none
	looked bool
	err    error
}

// lookUp finds the user's role.
func (l *login) lookUp() error {
	if !l.looked {
		l.role, l.err = l.gate.opts.Roles.Role(l.ctx, l.User)
		l.looked = true
	}
	return l.err
}

func (l *login) memberOf(role string) bool {
	return l.lookUp() == nil && l.role != nil && l.role.MemberOf(role)
}

// failed is the error of a client that a rule's method has not let in. Errors of the protocol are sent as they are.
func (l *login) failed(rule *Rule, why error) error {
	if !errors.Is(why, errRefused) {
		return why
	}
	switch rule.Method {
	case Password:
		return l.gate.refuse(l.Client, rule, pgerror.InvalidPassword, "password authentication failed for user \""+l.User+"\"", why)
	case Cert:
		return l.gate.refuse(l.Client, rule, pgerror.InvalidAuthorization, "certificate authentication failed for user \""+l.User+"\"", why)
	}
	return l.gate.refuse(l.Client, rule, pgerror.InvalidAuthorization, "\"trust\" authentication failed for user \""+l.User+"\"", why)
}

// refuse logs a refusal, with the reason that the client is not sent.
func (g *Gate) refuse(c *Client, rule *Rule, code pgerror.Code, message string, why error) error {
	attrs := []any{"address", c.Addr, "user", c.User, "database", c.Database, "message", message}
	if rule != nil {
		attrs = append(attrs, "line", rule.Line)
	}
	if why != nil {
		attrs = append(attrs, "reason", why)
	}
	g.opts.Logger.Warn("client refused", attrs...)
	return pgerror.New(code, "%s", message)
}

// interfaces returns the machine's addresses. If they are not known, samehost and samenet match nothing.
func (g *Gate) interfaces() []netip.Prefix {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		g.opts.Logger.Error("the addresses of the machine's interfaces are not known", "err", err)
	}
	var all []netip.Prefix
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if p, err := netip.ParsePrefix(n.String()); err == nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// FileRule is a line of the rules as pg_hba_file_rules shows it; if Error is set, it is not valid and has no other fields.
type FileRule struct {
	Line                           int
	Type, Address, Netmask, Method string
	Databases, Users, Options      []string
	Error                          string
}

// FileRules returns the rules as the file has them now, which may not be those in force.
func (g *Gate) FileRules() ([]FileRule, error) {
	text, err := g.text()
	if err != nil {
		return nil, err
	}
	rules, invalid := ParseRules(text)
	var all []FileRule
	for i := range rules {
		all = append(all, rules[i].show())
	}
	for _, e := range invalid {
		all = append(all, FileRule{Line: e.Line, Error: e.Message})
	}
	slices.SortFunc(all, func(a, b FileRule) int { return cmp.Compare(a.Line, b.Line) })
	return all, nil
}

func (r *Rule) show() FileRule {
	shown := FileRule{Line: r.Line, Type: r.Type.String(), Method: r.Method.String()}
	for _, n := range r.Databases {
		shown.Databases = append(shown.Databases, n.Text)
	}
	for _, n := range r.Users {
		shown.Users = append(shown.Users, n.Text)
	}
	switch {
	case r.Type == Local:
	case r.addresses == network:
		shown.Address = r.prefix.Addr().String()
		mask := make([]byte, r.prefix.Addr().BitLen()/8)
		for bit := range r.prefix.Bits() {
			mask[bit/8] |= 0x80 >> (bit % 8)
		}
		addr, _ := netip.AddrFromSlice(mask) // 4 or 16 bytes.
		shown.Netmask = addr.String()
	default:
		shown.Address = addressNames[r.addresses]
	}
	if r.ClientCert != NoClientCert {
		shown.Options = []string{"clientcert=" + clientCertNames[r.ClientCert]}
	}
	return shown
}
