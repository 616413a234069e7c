package pgcrypto

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/pgerror"
)

// gnupgCAST5 is a message of GnuPG for the password pw, with the cipher CAST5.
const gnupgCAST5 = "jA0EAwMCPnpVhVsDBb7/0j4B6TjU1jWXsuBXD9RVzt1Z+Abf++ILTiIIDsJ2s6ziL7jDtL/YNcA7+JDHRhwvjEcrhGgjiih7IJSSHMLbbw=="

func symDecrypt(message []byte, text bool, password string) (string, error) {
	var out bytes.Buffer
	err := SymDecrypt(&out, message, text, []byte(password), "")
	return out.String(), err
}

func TestMessageWithCAST5(t *testing.T) {
	message, err := base64.StdEncoding.DecodeString(gnupgCAST5)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := symDecrypt(message, false, "pw"); got != "From GnuPG" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Goal: what the library does not have is refused as not supported, not as a wrong message.
//
// Method: each such option, and a message with each such algorithm.
func TestUnsupportedInMessages(t *testing.T) {
	for _, options := range []string{"cipher-algo=bf", "cipher-algo=3des", "cipher-algo=cast5", "s2k-digest-algo=md5", "s2k-cipher-algo=blowfish",
		"disable-mdc=1", "debug=1"} {
		if _, err := SymEncrypt([]byte("x"), true, []byte("k"), options, never); codeOf(err) != pgerror.FeatureNotSupported {
			t.Errorf("%s: %v", options, err)
		}
	}
	for _, body := range []string{"\x04\x04\x00\x02", "\x04\x07\x00\x01"} { // Blowfish, MD5
		message := "\xc3" + string(rune(len(body))) + body
		if _, err := symDecrypt([]byte(message), true, "k"); codeOf(err) != pgerror.FeatureNotSupported {
			t.Errorf("%x: %v", message, err)
		}
	}
}

func codeOf(err error) pgerror.Code {
	var e *pgerror.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Goal: a message cannot ask for more memory than its data take, and data that are no valid message are an error, not a panic.
//
// Method: a password's key by Argon2 with a terabyte; messages and keys with changed, left out and added bytes.
func TestHostileMessages(t *testing.T) {
	argon2 := "\x04\x07\x04" + strings.Repeat("s", 16) + "\x01\x01\x1e"
	if _, err := symDecrypt([]byte("\xc3"+string(rune(len(argon2)))+argon2), true, "k"); codeOf(err) != externalRoutine {
		t.Errorf("Argon2: %v", err)
	}
	message, err := SymEncrypt([]byte(strings.Repeat("data ", 100)), true, []byte("k"), "compress-algo=1, s2k-mode=0", never)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		changed := bytes.Clone(message)
		for range 1 + r.IntN(3) {
			at := r.IntN(min(len(changed), 1+r.IntN(len(changed))))
			switch r.IntN(3) {
			case 0:
				changed[at] = byte(r.Uint32())
			case 1:
				changed = changed[:at+1]
			case 2:
				changed = append(changed[:at:at], append([]byte{byte(r.Uint32())}, changed[at:]...)...)
			}
		}
		if _, err := symDecrypt(changed, true, "k"); err != nil && codeOf(err) == "" {
			t.Fatalf("%x: %v", changed, err)
		}
		if _, err := KeyID(changed); err != nil && codeOf(err) == "" {
			t.Fatalf("the key of %x: %v", changed, err)
		}
		if _, err := PubEncrypt([]byte("x"), true, changed, "", never); codeOf(err) == "" {
			t.Fatalf("with the key %x: %v", changed, err)
		}
	}
}

// Goal: a long message is polled while it is made and read.
func TestMessagesPoll(t *testing.T) {
	stop := errors.New("stopped")
	data := make([]byte, 4*chunkBytes)
	if _, err := SymEncrypt(data, false, []byte("k"), "", func() error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	message, err := SymEncrypt(data, false, []byte("k"), "compress-algo=1", never)
	if err != nil {
		t.Fatal(err)
	}
	w := &failingWriter{after: 10, err: stop}
	if err := SymDecrypt(w, message, false, []byte("k"), ""); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// failingWriter fails after some writes.
type failingWriter struct {
	after int
	err   error
}

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.after--; w.after < 0 {
		return 0, w.err
	}
	return len(b), nil
}
