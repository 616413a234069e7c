package acl

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// Append appends the text form of an item: grantee=privileges/grantor. name returns a role's name, "" if there is none of that OID.
func (it Item) Append(dst []byte, name func(uint32) string) []byte {
	if it.Grantee != Public {
		dst = appendRole(dst, it.Grantee, name)
	}
	dst = append(dst, '=')
	for i := range len(letters) {
		if it.Rights&(1<<i) != 0 {
			dst = append(dst, letters[i])
		}
		if it.Rights.Granted()&(1<<i) != 0 {
			dst = append(dst, '*')
		}
	}
	return appendRole(append(dst, '/'), it.Grantor, name)
}

func appendRole(dst []byte, role uint32, name func(uint32) string) []byte {
	s := name(role)
	if s == "" {
		return strconv.AppendUint(dst, uint64(role), 10)
	}
	if strings.IndexFunc(s, func(c rune) bool { return !wordRune(c) }) < 0 {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(s, `"`, `""`)...)
	return append(dst, '"')
}

// wordRune reports whether a character needs no quotes.
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func wordRune(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Parse reads the text form of an item. oid returns the OID of a role, and the error for a client that names one that does not exist;
// without a grantor, the item has bootstrap as its own, and warn is called. Errors: 22P02, 42622.
func Parse(text string, oid func(string) (uint32, error), bootstrap uint32, warn func()) (Item, error) {
	p := itemParser{rest: text, warn: warn}
	it, err := p.item(oid, bootstrap)
	if err != nil {
		return Item{}, err
	}
	if p.skipSpace(); p.rest != "" {
		return Item{}, malformed("extra garbage at the end of the ACL specification")
	}
	return it, nil
}

func malformed(message string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.InvalidTextRepresentation, message, args...)
}

type itemParser struct {
	rest string
	warn func()
}

func (p *itemParser) skipSpace() { p.rest = strings.TrimLeft(p.rest, " \t\n\r\v\f") }

// maxName is the longest name of a role in bytes.
const maxName = 63

// name reads a word or a quoted name, "" if there is none.
func (p *itemParser) name() (string, error) {
	p.skipSpace()
	var b strings.Builder
	quoted := false
	i := 0
	for ; i < len(p.rest); i++ {
		c := p.rest[i]
		switch {
		case c == '"' && quoted && i+1 < len(p.rest) && p.rest[i+1] == '"':
			i++
			b.WriteByte('"')
		case c == '"':
			quoted = !quoted
		case !quoted && c < 0x80 && !wordRune(rune(c)):
			p.rest = p.rest[i:]
			p.skipSpace()
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
		if b.Len() > maxName {
			return "", pgerror.New("42622", "identifier too long").WithDetail("Identifier must be less than %d characters.", maxName+1)
		}
	}
	p.rest = p.rest[i:]
	return b.String(), nil
}

func (p *itemParser) item(oid func(string) (uint32, error), bootstrap uint32) (Item, error) {
	it := Item{Grantor: bootstrap}
	name, err := p.name()
	if err != nil {
		return it, err
	}
	if !strings.HasPrefix(p.rest, "=") {
		// Not a name: a key word that may stand before it.
		if name != "group" && name != "user" {
			return it, malformed("unrecognized key word: \"%s\"", name).WithHint(`ACL key word must be "group" or "user".`)
		}
		if name, err = p.name(); err != nil {
			return it, err
		}
		if name == "" {
			return it, malformed("missing name").WithHint(`A name must follow the "group" or "user" key word.`)
		}
	}
	if !strings.HasPrefix(p.rest, "=") {
		return it, malformed(`missing "=" sign`)
	}
	if it.Rights, err = p.rights(); err != nil {
		return it, err
	}
	if name != "" {
		if it.Grantee, err = oid(name); err != nil {
			return it, err
		}
	}
	if strings.HasPrefix(p.rest, "/") {
		p.rest = p.rest[1:]
		grantor, err := p.name()
		if err != nil {
			return it, err
		}
		if grantor == "" {
			return it, malformed(`a name must follow the "/" sign`)
		}
		if it.Grantor, err = oid(grantor); err != nil {
			return it, err
		}
	} else {
		p.warn()
	}
	return it, nil
}

// rights reads "=" and the privileges' letters.
func (p *itemParser) rights() (rights Privileges, err error) {
	var last Privileges
	for i := 1; ; i++ {
		if i == len(p.rest) || p.rest[i] != '*' && !isLetter(p.rest[i]) {
			p.rest = p.rest[i:]
			return rights, nil
		}
		c := p.rest[i]
		if c == '*' {
			rights |= last.Options()
			continue
		}
		bit := strings.IndexByte(letters, c)
		if bit < 0 {
			return 0, malformed("invalid mode character: must be one of %q", letters)
		}
		last = 1 << bit
		rights |= last
	}
}
