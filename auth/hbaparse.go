package auth

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// RuleError is a line of the rules that is not valid.
type RuleError struct {
	Line          int
	Message, Hint string
}

func (e *RuleError) Error() string {
	s := fmt.Sprintf("line %d: %s", e.Line, e.Message)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// ParseRules parses text in the form of pg_hba.conf. It returns the valid lines, and an error for each of the others.
func ParseRules(text string) (rules []Rule, invalid []*RuleError) {
	number := 0
	for rest, more := text, true; more; {
		var line string
		start := number + 1
		line, rest, more = strings.Cut(rest, "\n")
		number++
		for strings.HasSuffix(line, "\\") && more { // It continues on the next one.
			var next string
			next, rest, more = strings.Cut(rest, "\n")
			number++
			line = line[:len(line)-1] + next
		}
		p := lineParser{line: start}
		if rule := p.parse(line); p.err != nil {
			invalid = append(invalid, p.err)
		} else if rule != nil {
			rules = append(rules, *rule)
		}
	}
	return rules, invalid
}

// lineParser parses a line. After the first error its methods have no effect.
type lineParser struct {
	line   int
	fields [][]Name // to come; words with commas between them are one field
	err    *RuleError
}

func (p *lineParser) fail(hint, format string, args ...any) {
	if p.err == nil {
		p.err = &RuleError{Line: p.line, Message: fmt.Sprintf(format, args...), Hint: hint}
	}
}

func (p *lineParser) parse(line string) *Rule {
	p.fields = p.split(line)
	if p.err != nil || len(p.fields) == 0 {
		return nil
	}
	r := &Rule{Line: p.line}
	r.Type = p.connType()
	r.Databases = p.names("database")
	r.Users = p.names("role")
	if r.Type != Local {
		p.address(r)
	}
	p.method(r)
	for p.err == nil && len(p.fields) > 0 {
		for _, option := range p.next("") {
			p.option(r, option.Text)
		}
	}
	if r.Method == Cert {
		r.ClientCert = VerifyFull
	}
	return r
}

// maxWord is the longest word of a rule, in bytes; no name, address or option is longer.
const maxWord = 1024

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// split divides a line into fields. Words are separated by blanks and commas, may be quoted in whole or in part ("" is a
// quotation mark), and end at a comment.
func (p *lineParser) split(line string) (fields [][]Name) {
	var field []Name
	for at := 0; ; {
		for at < len(line) && (isBlank(line[at]) || line[at] == ',') {
			at++
		}
		if at == len(line) || line[at] == '#' {
			break
		}
		word, length, ok := nextWord(line[at:])
		at += length
		switch {
		case !ok:
			p.fail("", "unterminated quoted string")
		case len(word.Text) > maxWord:
			p.fail("", "authentication file token too long")
		case strings.ContainsRune(word.Text, 0):
			p.fail("", "invalid byte 0")
		case !word.Quoted && strings.HasPrefix(word.Text, "@"):
			p.fail("Write the names into the rule.", "files of names are not supported: %q", word.Text)
		}
		field = append(field, word)
		if at == len(line) || line[at] != ',' { // With a comma, the field goes on.
			fields = append(fields, field)
			field = nil
		}
	}
	if field != nil {
		fields = append(fields, field)
	}
	return fields
}

// nextWord reads the word at the beginning of s. It is Quoted if it begins with a quotation mark. !ok: a quotation mark is
// missing.
func nextWord(s string) (word Name, length int, ok bool) {
	var text []byte
	quoted := false
	for ; length < len(s); length++ {
		c := s[length]
		switch {
		case c == '"' && quoted && length+1 < len(s) && s[length+1] == '"':
			text = append(text, '"')
			length++
			continue
		case c == '"':
			word.Quoted = word.Quoted || length == 0
			quoted = !quoted
			continue
		case !quoted && (isBlank(c) || c == ',' || c == '#'):
			word.Text = string(text)
			return word, length, true
		}
		text = append(text, c)
	}
	word.Text = string(text)
	return word, length, !quoted
}

// next takes a field. missing is what the line lacks if there is none.
func (p *lineParser) next(missing string) []Name {
	if p.err != nil {
		return nil
	}
	if len(p.fields) == 0 {
		p.fail("", "end-of-line before %s", missing)
		return nil
	}
	field := p.fields[0]
	p.fields = p.fields[1:]
	return field
}

// one takes a field of one word.
func (p *lineParser) one(missing, what, hint string) Name {
	field := p.next(missing)
	if p.err != nil {
		return Name{}
	}
	if len(field) > 1 {
		p.fail(hint, "multiple values specified for %s", what)
	}
	return field[0]
}

func (p *lineParser) connType() ConnType {
	word := p.one("connection type", "connection type", "Specify exactly one connection type per line.")
	switch name := word.Text; name {
	case "local":
		return Local
	case "host", "hostnogssenc": // No connection is encrypted with GSSAPI.
		return Host
	case "hostssl":
		return HostSSL
	case "hostnossl":
		return HostNoSSL
	case "hostgssenc":
		p.fail("Use hostssl.", "hostgssenc record cannot match because GSSAPI is not supported")
	case "include", "include_if_exists", "include_dir":
		p.fail("Write the rules into this file.", "%s is not supported", name)
	default:
		p.fail("", "invalid connection type \"%s\"", name)
	}
	return 0
}

// names takes the list of databases or users.
func (p *lineParser) names(what string) []Name {
	list := p.next(what + " specification")
	for _, n := range list {
		switch {
		case n.Text == "" && !n.Quoted:
			p.fail("", "empty %s name", what)
		case n.Quoted:
		case strings.HasPrefix(n.Text, "/"):
			p.fail("List the names.", "regular expressions for %s names are not supported: %q", what, n.Text)
		}
	}
	return list
}

const addressHint = "Specify an address range in CIDR notation, or provide a separate netmask."

func (p *lineParser) address(r *Rule) {
	word := p.one("IP address specification", "host address", "Specify one address range per line.")
	if p.err != nil {
		return
	}
	switch {
	case word.is("all"):
		return
	case word.is("samehost"):
		r.addresses = sameHost
		return
	case word.is("samenet"):
		r.addresses = sameNet
		return
	}
	r.addresses = network
	text, bits, cidr := strings.Cut(word.Text, "/")
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil && cidr:
		p.fail("", "specifying both host name and CIDR mask is invalid: \"%s\"", word.Text)
		return
	case err != nil:
		p.fail("Use its IP address.", "host names are not supported: \"%s\"", word.Text)
		return
	case addr.Zone() != "" || addr.Is4In6():
		p.fail("", "invalid IP address \"%s\"", text)
		return
	}
	if !cidr {
		r.prefix = p.mask(addr)
		return
	}
	n, err := strconv.ParseUint(bits, 10, 8)
	if r.prefix, _ = addr.Prefix(int(n)); err != nil || !r.prefix.IsValid() {
		p.fail("", "invalid CIDR mask in address \"%s\"", word.Text)
	}
}

// mask takes the netmask of an address without prefix length.
func (p *lineParser) mask(addr netip.Addr) netip.Prefix {
	if len(p.fields) == 0 {
		p.fail(addressHint, "end-of-line before netmask specification")
		return netip.Prefix{}
	}
	word := p.one("", "netmask", "")
	mask, err := netip.ParseAddr(word.Text)
	if err != nil || mask.Zone() != "" {
		p.fail(addressHint, "invalid IP mask \"%s\"", word.Text)
		return netip.Prefix{}
	}
	if mask.BitLen() != addr.BitLen() {
		p.fail("", "IP address and mask do not match")
		return netip.Prefix{}
	}
	bits := 0
	for _, b := range mask.AsSlice() {
		for bit := byte(0x80); bit != 0 && b&bit != 0; bit >>= 1 {
			bits++
		}
		if b != 0xff {
			break
		}
	}
	prefix, _ := addr.Prefix(bits) // bits are at most the address's.
	if all, _ := netip.AddrFromSlice(slices.Repeat([]byte{0xff}, mask.BitLen()/8)); netip.PrefixFrom(all, bits).Masked().Addr() != mask {
		p.fail("", "invalid IP mask \"%s\"", word.Text)
	}
	return prefix
}

func (p *lineParser) method(r *Rule) {
	word := p.one("authentication method", "authentication type", "Specify exactly one authentication type per line.")
	switch name := word.Text; name {
	case "trust":
		r.Method = Trust
	case "reject":
		r.Method = Reject
	case "cert":
		r.Method = Cert
		if r.Type != HostSSL {
			p.fail("", "cert authentication is only supported on hostssl connections")
		}
	case "scram-sha-256":
		r.Method = Password
	case "md5", "password", "gss", "sspi", "ident", "peer", "pam", "bsd", "ldap", "radius", "oauth":
		p.fail("Use scram-sha-256 or cert.", "authentication method %q is not supported", name)
	default:
		p.fail("", "invalid authentication method \"%s\"", name)
	}
}

// option takes NAME=VALUE behind the method.
func (p *lineParser) option(r *Rule, text string) {
	name, value, ok := strings.Cut(text, "=")
	switch {
	case !ok:
		p.fail("", "authentication option not in name=value format: %s", text)
	case name == "clientcert" && r.Type != HostSSL:
		p.fail("", "clientcert can only be configured for \"hostssl\" rows")
	case name == "clientcert" && value == "verify-full":
		r.ClientCert = VerifyFull
	case name == "clientcert" && value == "verify-ca" && r.Method == Cert:
		p.fail("", "clientcert only accepts \"verify-full\" when using \"cert\" authentication")
	case name == "clientcert" && value == "verify-ca":
		r.ClientCert = VerifyCA
	case name == "clientcert":
		p.fail("", "invalid value for clientcert: \"%s\"", value)
	case name == "map":
		p.fail("The common name of a certificate is the user's name.", "authentication option \"map\" is not supported")
	case name == "clientname" && value == "CN": // What is compared anyway.
	case name == "clientname":
		p.fail("Use clientname=CN.", "clientname=%s is not supported", value)
	default:
		p.fail("", "unrecognized authentication option name: \"%s\"", name)
	}
}
