// Package verifier makes and reads what is stored of a role's password, in the form of PostgreSQL's pg_authid.rolpassword:
// SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey (RFC 5803). The password does not follow from it, but whoever knows a verifier
// can try passwords: it is a secret, too.
package verifier

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/xdg-go/stringprep"
	"golang.org/x/text/unicode/norm"
)

// The parameters of new verifiers, which are PostgreSQL's.
const (
	Iterations = 4096
	saltBytes  = 16
)

const (
	// MaxIterations bounds the iterations of a verifier that is to be stored: what checks a password in clear, such as the admin
	// endpoint, does them each time. A million take a few tenths of a second.
	MaxIterations = 1_000_000
	// maxParsed bounds those of a verifier that has been stored before; logins by SCRAM do none.
	maxParsed = 10_000_000
)

const prefix = "SCRAM-SHA-256"

// Verifier is a SCRAM-SHA-256 verifier.
type Verifier struct {
	Iterations           int
	Salt                 []byte
	StoredKey, ServerKey []byte // of sha256.Size bytes
}

// New makes the verifier of a password, with a random salt.
func New(password string) *Verifier {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // crypto/rand.Read never fails.
	return derive(password, salt, Iterations)
}

func derive(password string, salt []byte, iterations int) *Verifier {
	salted, err := pbkdf2.Key(sha256.New, Prepare(password), salt, iterations, sha256.Size)
	if err != nil {
		panic("BUG: " + err.Error()) // Only in FIPS mode, for parameters below its limits.
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	return &Verifier{Iterations: iterations, Salt: salt, StoredKey: stored[:], ServerKey: mac(salted, "Server Key")}
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Prepare normalizes a password by SASLprep, as libpq and PostgreSQL do. One that SASLprep prohibits is used as it is.
func Prepare(password string) string {
	mapped, err := beforeNormalization.Prepare(password)
	if err != nil || mapped == "" {
		return password
	}
	return norm.NFKC.String(mapped)
}

// beforeNormalization is SASLprep without its last step. Unlike RFC 4013, PostgreSQL looks for what is prohibited, and at the direction of
// writing, in the text before it is normalized; and it makes a space of U+200B, which RFC 4013 maps both to a space and to nothing.
var beforeNormalization = stringprep.Profile{
	Mappings: []stringprep.Mapping{spaces(), stringprep.TableB1, {0x1806: {}}}, // RFC 3454 lists the last one in B.1, too.
	Prohibits: []stringprep.Set{
		stringprep.TableA1, stringprep.TableC1_2, stringprep.TableC2_1, stringprep.TableC2_2, stringprep.TableC3, stringprep.TableC4,
		stringprep.TableC5, stringprep.TableC6, stringprep.TableC7, stringprep.TableC8, stringprep.TableC9,
	},
	CheckBiDi: true,
}

// spaces maps the spaces of other languages to that of ASCII.
func spaces() stringprep.Mapping {
	m := stringprep.Mapping{}
	for _, between := range stringprep.TableC1_2 {
		for r := between[0]; r <= between[1]; r++ {
			m[r] = []rune{' '}
		}
	}
	return m
}

// Parse reads a verifier; false if text is none.
func Parse(text string) (*Verifier, bool) {
	v, ok := parse(text)
	return v, ok && v.Iterations <= maxParsed
}

// parse reads a verifier with any number of iterations.
func parse(text string) (*Verifier, bool) {
	parts := strings.Split(text, "$")
	if len(parts) != 3 || parts[0] != prefix {
		return nil, false
	}
	iterations, salt, ok := strings.Cut(parts[1], ":")
	stored, server, ok2 := strings.Cut(parts[2], ":")
	n, err := strconv.Atoi(iterations)
	if !ok || !ok2 || err != nil || n < 1 {
		return nil, false
	}
	v := &Verifier{Iterations: n}
	for _, field := range []struct {
		to   *[]byte
		text string
	}{{&v.Salt, salt}, {&v.StoredKey, stored}, {&v.ServerKey, server}} {
		if *field.to, err = base64.StdEncoding.DecodeString(field.text); err != nil {
			return nil, false
		}
	}
	return v, len(v.Salt) > 0 && len(v.StoredKey) == sha256.Size && len(v.ServerKey) == sha256.Size
}

// String is the inverse of Parse.
func (v *Verifier) String() string {
	encode := base64.StdEncoding.EncodeToString
	return prefix + "$" + strconv.Itoa(v.Iterations) + ":" + encode(v.Salt) + "$" + encode(v.StoredKey) + ":" + encode(v.ServerKey)
}

// Matches reports whether the verifier is that of a password.
func (v *Verifier) Matches(password string) bool {
	return subtle.ConstantTimeCompare(derive(password, v.Salt, v.Iterations).StoredKey, v.StoredKey) == 1
}

// IsMD5 reports whether text is a hash as PostgreSQL stores it with password_encryption = md5. No password matches one here.
func IsMD5(text string) bool {
	digits, ok := strings.CutPrefix(text, "md5")
	return ok && len(digits) == 32 && len(bytes.Trim([]byte(digits), "0123456789abcdef")) == 0
}

// Errors of Stored.
var (
	ErrEmpty      = errors.New("the password is empty")
	ErrIterations = fmt.Errorf("the verifier has more than %d iterations", MaxIterations)
)

// Stored returns what is kept of the password of CREATE ROLE: text itself if it is a verifier or a hash already. Errors: ErrEmpty if it
// is, or is that of, the empty password, which is not permitted; ErrIterations.
func Stored(text string) (string, error) {
	if text == "" {
		return "", ErrEmpty
	}
	if v, ok := parse(text); ok {
		switch {
		case v.Iterations > MaxIterations:
			return "", ErrIterations
		case v.Matches(""):
			return "", ErrEmpty
		}
		return text, nil
	}
	if IsMD5(text) {
		return text, nil
	}
	return New(text).String(), nil
}
