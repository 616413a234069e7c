package auth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/percodb/percodb/internal/tlsfiles"
)

// Goal: rules that cannot be in force as they are written are refused when they are loaded.
func TestGateRefusesRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hba.conf")
	for text, want := range map[string]string{
		"":                          "contains no entries",
		"# nothing\n":               "contains no entries",
		"host all all\nlocal all\n": "line 1: end-of-line before IP address specification",
		"hostssl all all all trust": "hostssl record cannot match because TLS is disabled",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := NewGate(Options{RulesFile: file}); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := NewGate(Options{RulesFile: file + "x"}); err == nil {
		t.Error("a file that does not exist is accepted")
	}
	if _, err := NewGate(Options{Rules: TrustEverything, Certificates: tlsfiles.Files{Cert: file, Key: file + "x"}}); err == nil {
		t.Error("a key that does not exist is accepted")
	}
}

// FuzzRules: for any text, every line is a rule, an error or nothing, and what is shown of the rules is the same rules.
func FuzzRules(f *testing.F) {
	f.Add("local all all trust\nhost \"a b\",c sameuser 10.0.0.0/8 reject\n")
	f.Add("hostssl all all 1.2.3.4 255.255.0.0 cert clientcert=verify-full # x\n")
	f.Add("host all \\\nall samenet trust")
	f.Fuzz(func(t *testing.T, text string) {
		rules, invalid := ParseRules(text)
		lines := strings.Count(text, "\n") + 1
		if len(rules)+len(invalid) > lines {
			t.Fatalf("%d rules and %d errors in %d lines", len(rules), len(invalid), lines)
		}
		for _, e := range invalid {
			if e.Line < 1 || e.Line > lines || e.Message == "" {
				t.Fatalf("error %+v", e)
			}
		}
		for i := range rules {
			r := &rules[i]
			if r.Line < 1 || r.Line > lines || len(r.Databases) == 0 || len(r.Users) == 0 {
				t.Fatalf("rule %+v", r)
			}
			if utf8.ValidString(text) {
				again, errs := ParseRules(line(r.show()))
				if len(errs) != 0 || len(again) != 1 || again[0].Method != r.Method || again[0].addresses != r.addresses || again[0].prefix != r.prefix {
					t.Fatalf("%+v is shown as %q: %v", r, line(r.show()), errs)
				}
			}
		}
	})
}

// line writes a rule as it is shown; every name is quoted.
func line(r FileRule) string {
	list := func(names []string) string {
		var quoted []string
		for _, n := range names {
			quoted = append(quoted, `"`+strings.ReplaceAll(n, `"`, `""`)+`"`)
		}
		return strings.Join(quoted, ",")
	}
	words := []string{r.Type, list(r.Databases), list(r.Users), r.Address, r.Netmask, r.Method}
	return strings.Join(append(words, r.Options...), " ")
}
