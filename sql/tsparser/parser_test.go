package tsparser

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func never() error { return nil }

func tokensOf(t testing.TB, text string) (out []string) {
	p := New(text, never)
	for {
		kind, token, ok, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return out
		}
		out = append(out, fmt.Sprintf("%s:%s", Kinds[kind-1].Name, token))
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"up-to-date":         "asciihword:up-to-date hword_asciipart:up blank:- hword_asciipart:to blank:- hword_asciipart:date",
		"http://h.com/a?b":   "protocol:http:// url:h.com/a?b host:h.com url_path:/a?b",
		"-1.2.3":             "blank:- version:1.2.3",
		"-1.5.":              "float:-1.5 blank:.",
		"me@h.org":           "email:me@h.org",
		"<!-- c --><a b>":    "tag:<!-- c --> tag:<a b>",
		"1e-3":               "sfloat:1e-3",
		"/usr/a.txt":         "file:/usr/a.txt",
		"&amp;":              "entity:&amp;",
		"<script>a</script>": "tag:<script> blank:a tag:</script>",
	} {
		if got := strings.Join(tokensOf(t, text), " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestLinear parses texts that invite attempts that fail.
func TestLinear(t *testing.T) {
	for _, part := range []string{"a_", "a.", "a-", "<!--", "a1", "a@", "<a ", "a/", "&a", "1.", "<a '", "/", "~", "a@b.", "http://", ".", "-1."} {
		start := time.Now()
		tokensOf(t, strings.Repeat(part, 100000/len(part))+"!")
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%q: %v", part, d)
		}
	}
}

func FuzzParser(f *testing.F) {
	f.Add("a-b http://h.com/x me@h.org <b> &amp; 1.2e3 /a/b.c -1.2.3")
	f.Fuzz(func(t *testing.T, text string) {
		size := 0
		p := New(text, never)
		for {
			_, token, ok, _ := p.Next()
			if !ok {
				break
			}
			if token == "" {
				t.Fatalf("an empty token in %q", text)
			}
			size += len(token)
		}
		if size < len(text) {
			t.Fatalf("%d of %d bytes of %q", size, len(text), text)
		}
	})
}
