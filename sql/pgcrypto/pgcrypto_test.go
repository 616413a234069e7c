package pgcrypto

import (
	"crypto/des"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func never() error { return nil }

// Goal: without a salt, the cipher is DES.
//
// Method: random keys and blocks are compared with crypto/des.
func TestDES(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var key, block [8]byte
		binary.BigEndian.PutUint64(key[:], r.Uint64())
		binary.BigEndian.PutUint64(block[:], r.Uint64())
		c, err := des.NewCipher(key[:])
		if err != nil {
			t.Fatal(err)
		}
		got, err := newDESKey(binary.BigEndian.Uint64(key[:])).encrypt(binary.BigEndian.Uint64(block[:]), 0, 1, never)
		c.Encrypt(block[:], block[:])
		if want := binary.BigEndian.Uint64(block[:]); err != nil || got != want {
			t.Fatalf("key %x: %x, want %x, %v", key, got, want, err)
		}
	}
}

// Goal: password hashes are those of PostgreSQL.
//
// Method: hashes that PostgreSQL 15 has made, of passwords shorter and longer than what the kinds take.
func TestCrypt(t *testing.T) {
	for _, test := range []struct{ password, salt, want string }{
		{"a", "xy", "xy8ocFraBmYwg"},
		{"a", "::", "::4/MD05HLWjI"},
		{"a", "$5$abc", "$5NRp/CmOJmz."},
		{"a", "_J9..rasm", "_J9..rasmWuvos8B/9gQ"},
		{"a", "$1$", "$1$$Ij31LCAysPM23KuPlm1wA/"},
		{"a", "$1$abcdefghijkl$zz", "$1$abcdefgh$jUYc1Xi7pkozuzWQ0Dft71"},
		{"", "$1$abc", "$1$abc$Or2rbeUYTvt12aiVzMuS/."},
		{"a", "$2a$04$abcdefghijklmnopqrstuu", "$2a$04$abcdefghijklmnopqrstuuMFdJu9yVgmagVAIC24fOZkaFqd3s9JC"},
		{strings.Repeat("a", 100), "$2a$04$abcdefghijklmnopqrstuu", "$2a$04$abcdefghijklmnopqrstuuBzzIgyKkz7xMWYSzkIjUSnxEQFQ0WNe"},
		{strings.Repeat("a", 72), "$2a$04$abcdefghijklmnopqrstuu", "$2a$04$abcdefghijklmnopqrstuuBzzIgyKkz7xMWYSzkIjUSnxEQFQ0WNe"},
		{"ü€", "$2a$04$abcdefghijklmnopqrstuu", "$2a$04$abcdefghijklmnopqrstuu.vgBDdO0Ams47/7I/GiCRVhZK4mIAHK"},
	} {
		if got, err := Crypt(test.password, test.salt, never); err != nil || got != test.want {
			t.Errorf("%q with %q: %s, %v, want %s", test.password, test.salt, got, err, test.want)
		}
	}
}

// Goal: a hash that takes days ends when the statement does.
//
// Method: the poll fails after a few calls.
func TestCryptPolls(t *testing.T) {
	for _, salt := range []string{"$2a$31$abcdefghijklmnopqrstuu", "_zzzzabcd"} {
		stop, polls := errors.New("stop"), 0
		_, err := Crypt("a", salt, func() error {
			if polls++; polls > 3 {
				return stop
			}
			return nil
		})
		if err != stop {
			t.Errorf("%s: %v", salt, err)
		}
	}
}

// Goal: nothing that clients write as salt, algorithm or armored text panics, and what is encrypted can be decrypted.
func FuzzInputs(f *testing.F) {
	f.Add("password", "$2a$04$abcdefghijklmnopqrstuu", "aes-cbc/pad:pkcs")
	f.Add("", "_J9..rasm", "bf-ecb/pad:none")
	f.Add("a", "-----BEGIN PGP MESSAGE-----\n\nAA==\n=YWnT\n-----END PGP MESSAGE-----\n", "3des")
	f.Fuzz(func(t *testing.T, data, salt, how string) {
		polls := 0
		_, _ = Crypt(data, salt, func() error {
			if polls++; polls > 8 {
				return errors.New("long enough")
			}
			return nil
		})
		_, _ = Digest([]byte(data), how)
		_, _ = GenSalt(how, len(data))
		_, _ = Dearmor(salt)
		if out, err := Encrypt([]byte(data), []byte(salt), nil, how); err == nil {
			back, err := Decrypt(out, []byte(salt), nil, how)
			if err != nil || string(back) != data {
				t.Errorf("%q by %q: %q, %v", data, how, back, err)
			}
		}
		_, _ = Decrypt([]byte(data), []byte(salt), []byte(how), "aes")
	})
}
