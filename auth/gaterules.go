package auth

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
)

// maxRulesBytes is the size of the largest file of rules.
const maxRulesBytes = 4 << 20

// text reads the rules, which are given unless they are in a file.
func (g *Gate) text(given string) (string, error) {
	if g.opts.RulesFile == "" {
		return given, nil
	}
	f, err := os.Open(g.opts.RulesFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("the file of rules %q does not exist", g.opts.RulesFile)
	case errors.Is(err, os.ErrPermission):
		return "", fmt.Errorf("no permission to read the file of rules %q; let the user who runs the server read it", g.opts.RulesFile)
	case err != nil:
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRulesBytes+1))
	if len(text) > maxRulesBytes {
		err = fmt.Errorf("%s is longer than %d MB", g.opts.RulesFile, maxRulesBytes>>20)
	}
	return string(text), err
}

func (g *Gate) loadRules(given string) error {
	text, err := g.text(given)
	if err != nil {
		return err
	}
	rules, invalid := ParseRules(text)
	source := g.opts.RulesFile
	if source == "" {
		source = "percodb.hba"
	}
	if len(rules) == 0 && len(invalid) == 0 {
		return fmt.Errorf("%s contains no entries", source)
	}
	var errs []error
	for _, e := range append(invalid, g.unusable(rules)...) {
		errs = append(errs, fmt.Errorf("%s: %w", source, e))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	g.rules.Store(&rules)
	return nil
}

// unusable returns an error for each rule that cannot be obeyed by this server.
func (g *Gate) unusable(rules []Rule) (all []*RuleError) {
	for _, r := range rules {
		switch {
		case r.Type == HostSSL && g.opts.Certificates.Cert == "":
			all = append(all, &RuleError{r.Line, "hostssl record cannot match because TLS is disabled", "give --tls-cert and --tls-key"})
		case r.ClientCert != NoClientCert && g.opts.Certificates.CA == "":
			all = append(all, &RuleError{r.Line, "client certificates can only be checked if a root certificate store is available", "give --tls-ca"})
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

// FileRules returns the rules as the file has them now, without one those that are given, which may not be those in force.
func (g *Gate) FileRules(given string) ([]FileRule, error) {
	text, err := g.text(given)
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
