package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/audit"
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
	// RulesFile is a file in the form of pg_hba.conf; if it is empty, Rules has its text, until Reload.
	RulesFile, Rules string
	// Reach is where clients can connect.
	Reach Reach
	// Certificates are those of the server, and the authorities of clients' certificates; if Cert is empty, TLS is refused.
	Certificates tlsfiles.Files
	Timeout      time.Duration // until Reload; 0: DefaultTimeout
	Roles        Roles
	Logger       *slog.Logger
	Audit        *audit.Log // nil: there is none
}

// Reach is where clients can connect to a server.
type Reach struct {
	Socket   bool // there is a Unix socket
	Loopback bool // of addresses, there are only those of this machine
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
	timeout  atomic.Int64
	files    *tlsfiles.Keeper // nil: TLS is refused
	tls      atomic.Pointer[tls.Config]
	failures *failures
	refusals *refusals
	deriving chan struct{} // has the one password in clear that is checked
}

// NewGate loads the rules and certificates.
func NewGate(opts Options) (*Gate, error) {
	if opts.Timeout == 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Gate{opts: opts, failures: newFailures(), refusals: newRefusals(), deriving: make(chan struct{}, 1)}
	g.timeout.Store(int64(opts.Timeout))
	if err := g.loadRules(opts.Rules); err != nil {
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

// Policy is what ALTER SYSTEM decides of a gate. Rules are used if no file has them.
type Policy struct {
	Rules   string
	Timeout time.Duration
	Err     error // why the policy is not the one that is stored
}

// Reload takes a policy over, loads the files again, and opens the audit log again. What cannot be used is logged, and what was in force
// before stays.
func (g *Gate) Reload(p Policy) {
	g.reload.Lock()
	defer g.reload.Unlock()
	g.timeout.Store(int64(p.Timeout))
	event := audit.Event{Event: audit.Reload, SQLState: audit.Success}
	note := func(what string, err error) {
		if err != nil {
			g.opts.Logger.Error(what, "err", err)
			event.SQLState, event.Message = string(pgerror.ConfigFileError), what+": "+err.Error()
		}
	}
	note("the audit log was not opened again", g.opts.Audit.Reopen())
	note("settings were not reloaded", p.Err)
	note("the rules for clients were not reloaded", g.loadRules(p.Rules))
	if g.files != nil {
		err := g.files.Reload()
		if note("the certificates for clients were not reloaded", err); err == nil {
			g.tls.Store(serverConfig(g.files.Current()))
		}
	}
	g.opts.Audit.Write(event)
}

// Audit returns the audit log, nil if there is none.
func (g *Gate) Audit() *audit.Log { return g.opts.Audit }

// Timeout bounds the time from a client's connection to the end of its authentication.
func (g *Gate) Timeout() time.Duration { return time.Duration(g.timeout.Load()) }

// RulesFile returns the path of the file of rules, "" if there is none.
func (g *Gate) RulesFile() string { return g.opts.RulesFile }

// Certificates returns the paths of the files, which are empty if TLS is refused.
func (g *Gate) Certificates() tlsfiles.Files { return g.opts.Certificates }

// TLS returns the configuration for a handshake, nil if TLS is refused.
func (g *Gate) TLS() *tls.Config { return g.tls.Load() }

// Admit decides whether a client is let in, and returns the rule by which it is. The error is what to end its connection with,
// *Refused if the client was refused; Report logs it. conv is used if a password is needed.
func (g *Gate) Admit(ctx context.Context, c *Client, conv Conversation) (*Rule, error) {
	login := login{gate: g, ctx: ctx, Client: c}
	rule, certErr := login.match()
	if rule == nil {
		return nil, certErr
	}
	if rule.Method == Password {
		if err := login.password(conv); err != nil {
			return nil, login.failed(rule, err)
		}
	}
	if certErr != nil {
		return nil, login.failed(rule, certErr)
	}
	return rule, nil
}

// MethodFor returns the method by which a user without a certificate is let in now: Trust, Password if the user has one, and Reject
// in all other cases. The zero Addr is a Unix socket.
func (g *Gate) MethodFor(user, database string, from netip.Addr, encrypted bool) Method {
	if encrypted && g.TLS() == nil {
		return Reject
	}
	l := login{gate: g, ctx: context.Background(), Client: &Client{User: user}}
	rule := Match(*g.rules.Load(), &Connection{
		Addr: from, TLS: encrypted, User: user, Database: database, Interfaces: g.interfaces, MemberOf: l.memberOf,
	})
	switch {
	case rule == nil || rule.ClientCert != NoClientCert:
		return Reject
	case rule.Method == Password && (l.lookUp() != nil || l.role == nil || !l.role.HasPassword()):
		return Reject
	}
	return rule.Method
}

// match finds the rule for a client. err is why it cannot be let in; with a rule, it is that of its certificate, which it is sent
// only after its password has been checked.
func (l *login) match() (rule *Rule, err error) {
	g, c := l.gate, l.Client
	rule = Match(*g.rules.Load(), &Connection{
		Addr: c.Address(), TLS: c.TLS != nil, User: c.User, Database: c.Database, Interfaces: g.interfaces, MemberOf: l.memberOf,
	})
	switch {
	case l.err != nil:
		return nil, l.err
	case rule == nil:
		return nil, refused(nil, pgerror.InvalidAuthorization, "no pg_hba.conf entry for "+c.describe(), nil)
	case rule.Method == Reject:
		return nil, refused(rule, pgerror.InvalidAuthorization, "pg_hba.conf rejects connection for "+c.describe(), nil)
	}
	certErr := rule.checkClientCert(c.TLS, c.User)
	if errors.Is(certErr, errNoClientCert) {
		return nil, refused(rule, pgerror.InvalidAuthorization, certErr.Error(), nil)
	}
	return rule, certErr
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
func (l *login) failed(rule *Rule, why error) error { return l.failedAs(rule.Method, rule, why) }

func (l *login) failedAs(method Method, rule *Rule, why error) error {
	if !errors.Is(why, errRefused) {
		return why
	}
	switch method {
	case Password:
		return refused(rule, pgerror.InvalidPassword, "password authentication failed for user \""+l.User+"\"", why)
	case Cert:
		return refused(rule, pgerror.InvalidAuthorization, "certificate authentication failed for user \""+l.User+"\"", why)
	}
	return refused(rule, pgerror.InvalidAuthorization, "\"trust\" authentication failed for user \""+l.User+"\"", why)
}

// refused is the error of a client that is not let in. rule nil: there is none.
func refused(rule *Rule, code pgerror.Code, message string, why error) error {
	e := &Refused{Err: pgerror.New(code, "%s", message), Why: why}
	if rule != nil {
		e.Line = rule.Line
	}
	return e
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
