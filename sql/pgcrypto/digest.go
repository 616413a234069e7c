package pgcrypto

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"hash"
	"strings"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/blake2s"
)

// hashes are the digests by the names that PostgreSQL knows them by.
var hashes = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
	"sha512-224": sha512.New512_224, "sha512-256": sha512.New512_256,
	"sha3-224": func() hash.Hash { return sha3.New224() }, "sha3-256": func() hash.Hash { return sha3.New256() },
	"sha3-384": func() hash.Hash { return sha3.New384() }, "sha3-512": func() hash.Hash { return sha3.New512() },
	"blake2b512": unkeyed(blake2b.New512), "blake2s256": unkeyed(blake2s.New256),
}

// unkeyed returns a constructor of a hash without a key, of which no key is refused.
func unkeyed(f func([]byte) (hash.Hash, error)) func() hash.Hash {
	return func() hash.Hash {
		h, err := f(nil)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		return h
	}
}

// newHash finds a digest by name.
func newHash(name string) (func() hash.Hash, error) {
	lower := strings.ToLower(name)
	if h := hashes[lower]; h != nil {
		return h, nil
	}
	if rest, ok := strings.CutPrefix(lower, "sha-"); ok { // sha-1, sha-256, sha2-256
		if h := hashes["sha"+rest]; h != nil && !strings.HasPrefix(rest, "3-") {
			return h, nil
		}
	}
	if rest, ok := strings.CutPrefix(lower, "sha2-"); ok {
		if h := hashes["sha"+strings.Replace(rest, "/", "-", 1)]; h != nil && rest != "1" {
			return h, nil
		}
	}
	return nil, cannotUse(name, "No such hash algorithm")
}

// Digest returns the digest of data.
func Digest(data []byte, algorithm string) ([]byte, error) {
	h, err := newHash(algorithm)
	if err != nil {
		return nil, err
	}
	sum := h()
	sum.Write(data)
	return sum.Sum(nil), nil
}

// HMAC returns the keyed digest of data.
func HMAC(data, key []byte, algorithm string) ([]byte, error) {
	h, err := newHash(algorithm)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(h, key)
	mac.Write(data)
	return mac.Sum(nil), nil
}
