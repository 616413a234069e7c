package verifier

import (
	"errors"
	"strings"
	"testing"
)

// made are verifiers that PostgreSQL 15 has made, with their passwords.
var made = map[string]string{
	"secret": "SCRAM-SHA-256$4096:8FP7CJpoOXuWAg25Atq1lw==$6F3kZCqwv5b6wdeIn6WFhIGr+UvaMdZNczIdKmpByPk=:jnCEgukudmNvEOehAJawnYLzCg0td5FgkYtWj9+Bmy8=",
	"pé ß":   "SCRAM-SHA-256$4096:pQ6hLCpccswz0adLt6kqwQ==$j4ssPkbv7arrWc8+OnGTiv5YrgJtJ74DwhdE0N19Q3I=:FZg+qCTy0fh44il24OYe0BguyLOFDuqB8NtKOEdZXMg=",
}

// Goal: verifiers of PostgreSQL are read, match their passwords only, and are printed as they were.
func TestPostgresVerifiers(t *testing.T) {
	for password, text := range made {
		v, ok := Parse(text)
		if !ok || v.String() != text || v.Iterations != 4096 {
			t.Errorf("%q: %v, %+v", password, ok, v)
			continue
		}
		if !v.Matches(password) || v.Matches(password+"x") || v.Matches("") {
			t.Errorf("%q: matches the wrong passwords", password)
		}
	}
}

// Goal: a new verifier matches its password, is never the same twice, and does not contain the password.
func TestNew(t *testing.T) {
	a, b := New("s3cret").String(), New("s3cret").String()
	if a == b || strings.Contains(a, "s3cret") {
		t.Fatalf("%s and %s", a, b)
	}
	v, ok := Parse(a)
	if !ok || !v.Matches("s3cret") || v.Matches("S3cret") {
		t.Fatalf("%s", a)
	}
}

// Goal: a password is normalized as clients do it.
func TestPrepare(t *testing.T) {
	for _, c := range [][2]string{
		{"plain", "plain"}, {"a\u00a0b", "a b"}, {"\u2168", "IX"}, {"e\u0301", "\u00e9"}, {"soft\u00adhyphen", "softhyphen"},
		{"I\u00adX", "IX"}, {"USER", "USER"}, {"\u00aa", "a"}, {"\u0627\u0031", "\u0627\u0031"}, {"\a", "\a"}, // RFC 4013, section 3
		// What is prohibited, not assigned or of both directions stays as it is, also what could be normalized in it.
		{"\u00aa\a", "\u00aa\a"}, {"\u00aa\U0001f600", "\u00aa\U0001f600"}, {"\u05d0\u00aa", "\u05d0\u00aa"}, {"\u200e\u00aa", "\u200e\u00aa"},
		// PostgreSQL's choices: U+200B is a space, and what is prohibited, or not assigned, before normalization counts.
		{"a\u200bb", "a b"}, {"a\u1806b", "ab"}, {"\u200b", " "}, {"\u1d68", "\u1d68"}, {"\u0341", "\u0341"}, {"\ufdfa\u0031", "\ufdfa\u0031"},
		{"bell\a", "bell\a"}, {"\u00ad", "\u00ad"}, {"bytes\xff", "bytes\xff"},
	} {
		if got := Prepare(c[0]); got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
	}
}

// Goal: what is kept of the password of CREATE ROLE.
func TestStored(t *testing.T) {
	scram, hash := made["secret"], "md5"+strings.Repeat("0a", 16)
	for text, same := range map[string]bool{scram: true, hash: true, "md5x": false, "SCRAM-SHA-256$4096:x": false, "plain": false} {
		got, err := Stored(text)
		if (got == text) != same || err != nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
		if _, ok := Parse(got); !ok && got != hash {
			t.Errorf("%s: no verifier: %s", text, got)
		}
	}
	for _, text := range []string{"", derive("", []byte("salt"), 1).String()} {
		if _, err := Stored(text); !errors.Is(err, ErrEmpty) {
			t.Errorf("%q: %v", text, err)
		}
	}
	// A verifier that would keep a processor busy for long is refused, and not taken for a password.
	for _, iterations := range []string{"1000001", "10000000", "2147483647"} {
		if got, err := Stored(strings.Replace(scram, "4096", iterations, 1)); !errors.Is(err, ErrIterations) {
			t.Errorf("%s iterations: %q, %v", iterations, got, err)
		}
	}
}

// Goal: what is no verifier is not taken for one.
func TestParseRefuses(t *testing.T) {
	valid := made["secret"]
	for _, text := range []string{
		"", "SCRAM-SHA-256", "SCRAM-SHA-256$$", "x" + valid, valid + "$", strings.Replace(valid, "4096", "0", 1), strings.Replace(valid, "4096", "-1", 1),
		strings.Replace(valid, "4096", "99999999999", 1), strings.Replace(valid, "4096", "x", 1), valid[:len(valid)-4], valid + "AAAA", strings.Replace(valid, "=", "!", 1),
	} {
		if _, ok := Parse(text); ok {
			t.Errorf("%q is read", text)
		}
	}
}
