package auth

import (
	"net/netip"
	"slices"
	"strings"
)

// ConnType is the first field of a rule: the kind of connection that it is for.
type ConnType uint8

// The connection types.
const (
	Local     ConnType = iota // a Unix socket
	Host                      // TCP
	HostSSL                   // TCP with TLS
	HostNoSSL                 // TCP without TLS
)

var connTypeNames = [...]string{"local", "host", "hostssl", "hostnossl"}

func (t ConnType) String() string { return connTypeNames[t] }

// Method is how a client that a rule matches proves who it is.
type Method uint8

// The methods.
const (
	Trust Method = iota
	Reject
	Cert
	Password // by SCRAM
)

var methodNames = [...]string{"trust", "reject", "cert", "scram-sha-256"}

func (m Method) String() string { return methodNames[m] }

// ClientCert is what a rule demands of the client's certificate.
type ClientCert uint8

// The demands.
const (
	NoClientCert ClientCert = iota
	VerifyCA                // it is valid
	VerifyFull              // and its common name is the user's name
)

var clientCertNames = [...]string{"", "verify-ca", "verify-full"}

// Name is a word of a rule's list of databases or users. A quoted word has no special meaning.
type Name struct {
	Text   string
	Quoted bool
}

// is reports whether n is this keyword.
func (n Name) is(keyword string) bool { return !n.Quoted && n.Text == keyword }

// addressKind is how a rule gives addresses.
type addressKind uint8

const (
	anyAddress addressKind = iota
	sameHost
	sameNet
	network
)

var addressNames = [...]string{"all", "samehost", "samenet", ""}

// Rule is one line of the rules.
type Rule struct {
	Line       int
	Type       ConnType
	Databases  []Name
	Users      []Name
	addresses  addressKind
	prefix     netip.Prefix // of network
	Method     Method
	ClientCert ClientCert
}

// Connection is what rules are matched with.
type Connection struct {
	// Addr is the client's address; the zero Addr is a Unix socket.
	Addr           netip.Addr
	TLS            bool
	User, Database string
	// Interfaces returns the addresses of this machine with their networks; called for samehost and samenet.
	Interfaces func() []netip.Prefix
	// MemberOf reports whether the user is a direct or indirect member of a role, or that role; called for +role and samerole.
	MemberOf func(role string) bool
}

// Match returns the first rule that matches c, nil if there is none.
func Match(rules []Rule, c *Connection) *Rule {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.matches(c) })
	if i < 0 {
		return nil
	}
	return &rules[i]
}

func (r *Rule) matches(c *Connection) bool {
	if local := !c.Addr.IsValid(); local != (r.Type == Local) {
		return false
	}
	if r.Type == HostSSL && !c.TLS || r.Type == HostNoSSL && c.TLS {
		return false
	}
	if r.Type != Local && !r.matchesAddress(c) {
		return false
	}
	return slices.ContainsFunc(r.Databases, func(n Name) bool { return n.matchesDatabase(c) }) &&
		slices.ContainsFunc(r.Users, func(n Name) bool { return n.matchesUser(c) })
}

func (r *Rule) matchesAddress(c *Connection) bool {
	addr := c.Addr.Unmap().WithZone("")
	switch r.addresses {
	case anyAddress:
		return true
	case network:
		return r.prefix.Contains(addr)
	case sameHost:
		return slices.ContainsFunc(c.Interfaces(), func(p netip.Prefix) bool { return p.Addr() == addr })
	default:
		return slices.ContainsFunc(c.Interfaces(), func(p netip.Prefix) bool { return p.Masked().Contains(addr) })
	}
}

func (n Name) matchesUser(c *Connection) bool {
	if group, ok := strings.CutPrefix(n.Text, "+"); ok && !n.Quoted {
		return c.MemberOf(group)
	}
	return n.is("all") || n.Text == c.User
}

func (n Name) matchesDatabase(c *Connection) bool {
	switch {
	case n.is("all"):
		return true
	case n.is("sameuser"):
		return c.Database == c.User
	case n.is("samerole"), n.is("samegroup"):
		return c.MemberOf(c.Database)
	case n.is("replication"): // Replication connections, which percodb does not have.
		return false
	}
	return n.Text == c.Database
}
