package pgcrypto

import (
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/blowfish" //lint:ignore SA1019 pgcrypto has this cipher

	"github.com/percodb/percodb/sql/pgerror"
)

// crypt64 are the digits in which password hashes are written, bcrypt64 those of bcrypt.
const (
	crypt64  = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	bcrypt64 = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

var bcryptEncoding = base64.NewEncoding(bcrypt64).WithPadding(base64.NoPadding)

func invalidSalt() error { return pgerror.New(pgerror.InvalidParameterValue, "invalid salt") }

// GenSalt returns a random salt for Crypt; rounds 0 is the default number.
//
// Errors: 22023.
func GenSalt(kind string, rounds int) (string, error) {
	wrong := pgerror.New(pgerror.InvalidParameterValue, "gen_salt: Incorrect number of rounds")
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	switch strings.ToLower(kind) {
	case "bf":
		if rounds == 0 {
			rounds = 6
		}
		if rounds < 4 || rounds > 31 {
			return "", wrong
		}
		cost := strconv.Itoa(rounds)
		return "$2a$" + strings.Repeat("0", 2-len(cost)) + cost + "$" + bcryptEncoding.EncodeToString(random[:]), nil
	case "md5":
		if rounds != 0 && rounds != 1000 {
			return "", wrong
		}
		return "$1$" + string(append64(append64(nil, random[:3]), random[3:6])), nil
	case "des":
		if rounds != 0 && rounds != 25 {
			return "", wrong
		}
		return string(append64(nil, random[:3])[:2]), nil
	case "xdes":
		if rounds == 0 {
			rounds = 29 * 25
		}
		if rounds < 1 || rounds > 0xffffff || rounds%2 == 0 {
			return "", wrong
		}
		return "_" + string(append64(append64(nil, []byte{byte(rounds), byte(rounds >> 8), byte(rounds >> 16)}), random[:3])), nil
	}
	return "", pgerror.New(pgerror.InvalidParameterValue, "gen_salt: Unknown salt algorithm")
}

// append64 appends three bytes as four digits, the lowest bits first.
func append64(dst, three []byte) []byte {
	return appendDigits(dst, uint32(three[0])|uint32(three[1])<<8|uint32(three[2])<<16, 4)
}

func appendDigits(dst []byte, v uint32, n int) []byte {
	for range n {
		dst = append(dst, crypt64[v&0x3f])
		v >>= 6
	}
	return dst
}

// Crypt returns the hash of a password, which begins with the salt. poll is called now and then: the salt says how long it takes.
//
// Errors: 22023, 0A000 for hashes by DES, those of poll.
func Crypt(password, salt string, poll func() error) (string, error) {
	if i := strings.IndexByte(password, 0); i >= 0 {
		password = password[:i]
	}
	switch {
	case strings.HasPrefix(salt, "$2a$"), strings.HasPrefix(salt, "$2x$"):
		return bcrypt(password, salt, poll)
	case strings.HasPrefix(salt, "$1$"):
		return md5Crypt(password, salt)
	case strings.HasPrefix(salt, "_"):
		return extendedDES(password, salt, poll)
	}
	return traditionalDES(password, salt, poll)
}

// bcryptPollRounds is the number of rounds between two polls: some milliseconds.
const bcryptPollRounds = 64

// bcrypt hashes by Blowfish, as many times as two to the power of the cost that the salt has.
func bcrypt(password, salt string, poll func() error) (string, error) {
	if len(salt) < 29 || salt[6] != '$' {
		return "", invalidSalt()
	}
	cost, err := strconv.ParseUint(salt[4:6], 10, 8)
	if err != nil || cost < 4 || cost > 31 {
		return "", invalidSalt()
	}
	digits := []byte(salt[7:29])
	last := strings.IndexByte(bcrypt64, digits[21])
	if last < 0 {
		return "", invalidSalt()
	}
	digits[21] = bcrypt64[last&0x30] // Only two of its bits are of the salt.
	random, err := bcryptEncoding.DecodeString(string(digits))
	if err != nil {
		return "", invalidSalt()
	}
	if salt[2] == 'x' && slices.ContainsFunc([]byte(password), func(b byte) bool { return b >= 0x80 }) {
		return "", pgerror.Unsupported("A salt $2x$ for a password that is not ASCII", "Use gen_salt('bf').")
	}
	key := append([]byte(password), 0)
	c, err := blowfish.NewSaltedCipher(key, random)
	if err != nil {
		return "", invalidSalt()
	}
	for i := range uint64(1) << cost {
		if i%bcryptPollRounds == 0 {
			if err := poll(); err != nil {
				return "", err
			}
		}
		blowfish.ExpandKey(key, c)
		blowfish.ExpandKey(random, c)
	}
	sum := []byte("OrpheanBeholderScryDoubt")
	for i := 0; i < len(sum); i += blowfish.BlockSize {
		for range 64 {
			c.Encrypt(sum[i:], sum[i:])
		}
	}
	return salt[:7] + string(digits) + bcryptEncoding.EncodeToString(sum[:23]), nil
}

// md5Crypt hashes by a thousand rounds of MD5, as most systems do.
func md5Crypt(password, salt string) (string, error) {
	const magic = "$1$"
	salt, _, _ = strings.Cut(salt[len(magic):], "$")
	salt = salt[:min(len(salt), 8)]
	inner := md5.Sum([]byte(password + salt + password))
	h := md5.New()
	h.Write([]byte(password + magic + salt))
	for n := len(password); n > 0; n -= md5.Size {
		h.Write(inner[:min(n, md5.Size)])
	}
	for n := len(password); n > 0; n >>= 1 {
		if n&1 != 0 {
			h.Write([]byte{0})
		} else {
			h.Write([]byte(password[:1]))
		}
	}
	sum := h.Sum(nil)
	for i := range 1000 {
		h.Reset()
		parts := []string{string(sum), password}
		if i&1 != 0 {
			parts[0], parts[1] = parts[1], parts[0]
		}
		h.Write([]byte(parts[0]))
		if i%3 != 0 {
			h.Write([]byte(salt))
		}
		if i%7 != 0 {
			h.Write([]byte(password))
		}
		h.Write([]byte(parts[1]))
		sum = h.Sum(sum[:0])
	}
	out := []byte(magic + salt + "$")
	for _, g := range [...][3]int{{0, 6, 12}, {1, 7, 13}, {2, 8, 14}, {3, 9, 15}, {4, 10, 5}} {
		out = append64(out, []byte{sum[g[2]], sum[g[1]], sum[g[0]]})
	}
	return string(appendDigits(out, uint32(sum[11]), 2)), nil
}
