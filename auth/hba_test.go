package auth

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func parse(t testing.TB, text string) []Rule {
	t.Helper()
	rules, invalid := ParseRules(text)
	for _, e := range invalid {
		t.Fatal(e)
	}
	return rules
}

// Goal: the first rule that matches decides, by type, database, user and address.
func TestFirstMatchDecides(t *testing.T) {
	rules := parse(t, `
# TYPE    DATABASE   USER            ADDRESS               METHOD
local     all        all                                   trust
host      all        "all"           all                   reject   # a user of that name
hostssl   percodb    app,web         10.0.0.0/8            cert
hostnossl all        all             10.0.0.0/8            reject
host      sameuser   all             192.168.1.7/24        trust
host      all        ops             172.16.0.0 255.240.0.0 trust
host      postgres   all             fd00::/8              trust
host      all        near            samehost              trust
host      all        near            samenet               reject
`)
	for _, c := range []struct {
		addr           string // "": a Unix socket
		tls            bool
		user, database string
		line           int // 0: no rule
	}{
		{"", false, "x", "percodb", 3},
		{"127.0.0.1", false, "all", "percodb", 4},
		{"10.1.2.3", true, "app", "percodb", 5},
		{"10.1.2.3", true, "web", "percodb", 5},
		{"10.1.2.3", true, "web", "other", 0},
		{"10.1.2.3", false, "app", "percodb", 6},
		{"::ffff:10.1.2.3", false, "app", "percodb", 6},
		{"11.1.2.3", true, "app", "percodb", 0},
		{"192.168.1.200", false, "percodb", "percodb", 7},
		{"192.168.1.200", false, "x", "percodb", 0},
		{"172.31.0.1", false, "ops", "percodb", 8},
		{"172.32.0.1", false, "ops", "percodb", 0},
		{"fd00::1", false, "x", "postgres", 9},
		{"fd00::1%eth0", false, "x", "postgres", 9},
		{"fe00::1", false, "x", "postgres", 0},
		{"192.0.2.1", false, "near", "percodb", 10},
		{"192.0.2.9", false, "near", "percodb", 11},
		{"192.0.3.1", false, "near", "percodb", 0},
	} {
		conn := &Connection{TLS: c.tls, User: c.user, Database: c.database, Interfaces: func() []netip.Prefix {
			return []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}
		}}
		if c.addr != "" {
			conn.Addr = netip.MustParseAddr(c.addr)
		}
		line := 0
		if r := Match(rules, conn); r != nil {
			line = r.Line
		}
		if line != c.line {
			t.Errorf("%+v: line %d, want %d", c, line, c.line)
		}
	}
}

// Goal: words are divided as by PostgreSQL: quoted in whole or in part, in lists, over several lines, up to a comment.
func TestWordsOfRules(t *testing.T) {
	rules := parse(t, "local \"a b\",c, \"say \"\"x\"\"\" \\\n  u\"#\"v,\"all\" trust#comment\r\n\n\tlocal all,x all reject\r\n")
	if len(rules) != 2 || rules[1].Line != 4 || rules[1].Method != Reject {
		t.Fatalf("%+v", rules)
	}
	want := []Name{{"a b", true}, {"c", false}, {`say "x"`, true}}
	if !slices.Equal(rules[0].Databases, want) || !slices.Equal(rules[0].Users, []Name{{"u#v", false}, {"all", true}}) {
		t.Errorf("%+v", rules[0])
	}
}

// Goal: every word that is not understood is refused, with PostgreSQL's message if it has one.
func TestInvalidRules(t *testing.T) {
	for line, want := range map[string]string{
		"x":                                                 `invalid connection type "x"`,
		"local,host all all trust":                          `multiple values specified for connection type (Specify exactly one connection type per line.)`,
		"local":                                             "end-of-line before database specification",
		"local all":                                         "end-of-line before role specification",
		"local all all":                                     "end-of-line before authentication method",
		"local all all trust,reject":                        "multiple values specified for authentication type (Specify exactly one authentication type per line.)",
		"local all all x":                                   `invalid authentication method "x"`,
		"local all all md5":                                 `authentication method "md5" is not supported`,
		"local all all password":                            `authentication method "password" is not supported`,
		"local all all peer":                                `authentication method "peer" is not supported`,
		"local all all cert":                                "cert authentication is only supported on hostssl connections",
		"host all all all cert":                             "cert authentication is only supported on hostssl connections",
		"local all all trust x":                             "authentication option not in name=value format: x",
		"local all all trust x=1":                           `unrecognized authentication option name: "x"`,
		"host all all all trust clientcert=1":               `clientcert can only be configured for "hostssl" rows`,
		"hostssl all all all trust clientcert=1":            `invalid value for clientcert: "1"`,
		"hostssl all all all cert map=x":                    `authentication option "map" is not supported`,
		"hostssl all all all cert clientname=DN":            "clientname=DN is not supported",
		"hostssl a a all cert clientcert=verify-ca":         `clientcert only accepts "verify-full" when using "cert" authentication`,
		"host all all":                                      "end-of-line before IP address specification",
		"host all all 1.2.3.4,1.2.3.5 trust":                "multiple values specified for host address (Specify one address range per line.)",
		"host all all 1.2.3.4":                              "end-of-line before netmask specification (" + addressHint + ")",
		"host all all 1.2.3.4 trust":                        `invalid IP mask "trust" (` + addressHint + ")",
		"host all all 1.2.3.4 255.0.255.0 trust":            `invalid IP mask "255.0.255.0"`,
		"host all all 1.2.3.4 ffff:: trust":                 "IP address and mask do not match",
		"host all all 1.2.3.4/33 trust":                     `invalid CIDR mask in address "1.2.3.4/33"`,
		"host all all 1.2.3.4/x trust":                      `invalid CIDR mask in address "1.2.3.4/x"`,
		"host all all ::/129 trust":                         `invalid CIDR mask in address "::/129"`,
		"host all all example.com trust":                    `host names are not supported: "example.com"`,
		"host all all .example.com trust":                   `host names are not supported`,
		"host all all example.com/8 trust":                  `specifying both host name and CIDR mask is invalid: "example.com/8"`,
		"local @users all trust":                            `files of names are not supported: "@users"`,
		"local /^a all trust":                               "regular expressions for database names are not supported",
		"local all /^a trust":                               "regular expressions for role names are not supported",
		"hostgssenc all all all trust":                      "hostgssenc record cannot match because GSSAPI is not supported",
		"include other.conf":                                "include is not supported",
		"local \"all all trust":                             "unterminated quoted string",
		"local a\x00b all trust":                            "invalid byte 0",
		"local " + strings.Repeat("a", 1025) + " all trust": "authentication file token too long",
	} {
		rules, invalid := ParseRules("local all all reject\n" + line)
		if len(rules) != 1 || len(invalid) != 1 || !strings.HasPrefix(invalid[0].Error(), "line 2: "+want) {
			t.Errorf("%q: %d rules, %v, want %s", line, len(rules), invalid, want)
		}
	}
}
