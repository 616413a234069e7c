package pgcrypto

import (
	"strconv"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/percodb/percodb/sql/pgerror"
)

// OpenPGP messages (RFC 4880), as pgcrypto makes and reads them: one session key, from a password or encrypted for a subkey; encrypted data
// with a digest; in them, perhaps compressed, one text or some bytes. Signatures are neither made nor checked.

func pgpError(message string) error { return pgerror.New(externalRoutine, "%s", message) }

func errCorruptMessage() error      { return pgpError("Wrong key or corrupt data") }
func errIllegalArgument() error     { return pgpError("Illegal argument to function") }
func errUnsupportedCipher() error   { return pgpError("Unsupported cipher algorithm") }
func errUnsupportedDigest() error   { return pgpError("Unsupported digest algorithm") }
func errNoUsableKey() error         { return pgpError("No encryption key found") }
func errUnsupportedCompress() error { return pgpError("Unsupported compression algorithm") }

// The numbers of RFC 4880 that package packet does not export.
const (
	cipherBlowfish = 4

	s2kSimple   = 0
	s2kSalted   = 1
	s2kIterated = 3

	digestMD5    = 1
	digestSHA1   = 2
	digestRIPEMD = 3
)

// pgpCiphers are the names of ciphers. Twofish has a number in RFC 4880, and is refused by pgcrypto as well.
var pgpCiphers = map[string]packet.CipherFunction{
	"3des": packet.Cipher3DES, "cast5": packet.CipherCAST5, "bf": cipherBlowfish, "blowfish": cipherBlowfish, "aes": packet.CipherAES128,
	"aes128": packet.CipherAES128, "aes192": packet.CipherAES192, "aes256": packet.CipherAES256,
}

// pgpDigests are the names of the digests that make keys of passwords.
var pgpDigests = map[string]byte{
	"md5": digestMD5, "sha1": digestSHA1, "sha-1": digestSHA1, "ripemd160": digestRIPEMD, "sha256": 8, "sha384": 9, "sha512": 10,
}

// pgpOptions are the options of a call.
type pgpOptions struct {
	cipher        packet.CipherFunction
	compress      packet.CompressionAlgo
	compressLevel int
	convertCRLF   bool
	sessionKey    bool // the password's key encrypts a random one
	unicode       bool
	s2kMode       byte
	s2kCount      int // 0: chosen at random
	s2kDigest     byte
	s2kCipher     packet.CipherFunction // 0: cipher
}

// parsePGPOptions reads options: name=value, separated by commas.
func parsePGPOptions(text string) (pgpOptions, error) {
	o := pgpOptions{cipher: packet.CipherAES128, compressLevel: 6, s2kMode: s2kIterated, s2kDigest: digestSHA1}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.Trim(item, pgpSpaces)
		if item == "" && text == "" {
			break
		}
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			return o, errIllegalArgument()
		}
		if err := o.set(strings.ToLower(strings.Trim(name, pgpSpaces)), strings.ToLower(strings.Trim(value, pgpSpaces))); err != nil {
			return o, err
		}
	}
	return o, nil
}

const pgpSpaces = " \t\n\r\v\f"

func (o *pgpOptions) set(name, value string) error {
	if strings.ContainsAny(value, pgpSpaces) || value == "" {
		return errIllegalArgument()
	}
	n := leadingInt(value)
	valid := true
	switch name {
	case "cipher-algo":
		return setCipher(&o.cipher, value)
	case "s2k-cipher-algo":
		return setCipher(&o.s2kCipher, value)
	case "s2k-digest-algo":
		return o.setDigest(value)
	case "compress-algo":
		o.compress = packet.CompressionAlgo(n)
		if valid = n >= 0 && n <= 3; n == 3 {
			return errUnsupportedCompress()
		}
	case "compress-level":
		o.compressLevel, valid = n, n >= 0 && n <= 9
	case "convert-crlf":
		o.convertCRLF = n != 0
	case "sess-key":
		o.sessionKey = n != 0
	case "unicode-mode":
		o.unicode = n != 0
	case "s2k-mode":
		o.s2kMode, valid = byte(n), n == s2kSimple || n == s2kSalted || n == s2kIterated
	case "s2k-count":
		o.s2kCount, valid = n, o.s2kMode == s2kIterated && n >= 1024 && n <= 65011712
	case "disable-mdc":
		if n != 0 {
			return pgerror.Unsupported("a message without digest (disable-mdc)", "Leave the option out.")
		}
	case "debug", "expect-cipher-algo", "expect-disable-mdc", "expect-sess-key", "expect-s2k-mode", "expect-s2k-count", "expect-s2k-digest-algo",
		"expect-s2k-cipher-algo", "expect-compress-algo", "expect-unicode-mode":
		return pgerror.Unsupported("the option "+name, "Leave it out: it only reports what a message contains.")
	default:
		valid = false
	}
	if !valid {
		return errIllegalArgument()
	}
	return nil
}

func setCipher(to *packet.CipherFunction, name string) error {
	c, ok := pgpCiphers[name]
	switch {
	case !ok:
		return errUnsupportedCipher()
	case c == cipherBlowfish:
		return unsupportedCipher("Blowfish")
	}
	*to = c
	return nil
}

func (o *pgpOptions) setDigest(name string) error {
	d, ok := pgpDigests[name]
	if !ok {
		return errUnsupportedDigest()
	}
	o.s2kDigest = d
	return checkDigest(d)
}

func unsupportedCipher(name string) error {
	return pgerror.Unsupported("the cipher "+name+" in PGP messages", "Use aes128, aes192 or aes256.")
}

// checkDigest refuses the digests that the library does not have.
func checkDigest(d byte) error {
	switch d {
	case digestMD5:
		return pgerror.Unsupported("the digest MD5 for passwords of PGP messages", "Use sha1, sha256, sha384 or sha512.")
	case digestRIPEMD:
		return pgerror.Unsupported("the digest RIPEMD-160 for passwords of PGP messages", "Use sha1, sha256, sha384 or sha512.")
	}
	return nil
}

// leadingInt is C's atoi: the integer that a text begins with, or 0.
func leadingInt(s string) int {
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || end == 0 && (s[end] == '-' || s[end] == '+')) {
		end++
	}
	n, _ := strconv.Atoi(s[:end])
	return n
}

// packetTag returns the tag of the packet that begins with a byte; false if none does.
func packetTag(b byte) (tag int, ok bool) {
	switch {
	case b&0x80 == 0:
		return 0, false
	case b&0x40 == 0:
		return int(b&0x3f) >> 2, true
	}
	return int(b & 0x3f), true
}

// The tags of packets.
const (
	tagPubKeySession = 1
	tagSignature     = 2
	tagSymKeySession = 3
	tagSecretKey     = 5
	tagPublicKey     = 6
	tagSecretSubkey  = 7
	tagCompressed    = 8
	tagEncrypted     = 9
	tagMarker        = 10
	tagLiteral       = 11
	tagTrust         = 12
	tagUserID        = 13
	tagPublicSubkey  = 14
	tagUserAttribute = 17
	tagEncryptedMDC  = 18
	tagPrivate61     = 61
)
