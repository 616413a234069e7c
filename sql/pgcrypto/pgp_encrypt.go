package pgcrypto

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/rand"
	"encoding/binary"
	"io"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/s2k"
	"golang.org/x/crypto/cast5" //lint:ignore SA1019 messages may have this cipher
)

// Poll is called every now and then by what takes long. Its error ends the work.
type Poll func() error

// chunkBytes is what is encrypted or decrypted between two polls.
const chunkBytes = 1 << 20

// SymEncrypt is pgp_sym_encrypt, and with text false pgp_sym_encrypt_bytea.
func SymEncrypt(data []byte, text bool, password []byte, options string, poll Poll) ([]byte, error) {
	o, err := parsePGPOptions(options)
	if err != nil {
		return nil, err
	}
	if len(password) == 0 {
		return nil, errIllegalArgument()
	}
	if err := o.encrypts(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	key, err := o.writePasswordKey(&out, password)
	if err != nil {
		return nil, err
	}
	err = o.writeData(&out, key, data, text, poll)
	return out.Bytes(), err
}

// PubEncrypt is pgp_pub_encrypt, and with text false pgp_pub_encrypt_bytea.
func PubEncrypt(data []byte, text bool, key []byte, options string, poll Poll) ([]byte, error) {
	o, err := parsePGPOptions(options)
	if err != nil {
		return nil, err
	}
	subkey, err := readSubkey(key, false)
	if err != nil {
		return nil, err
	}
	if err := o.encrypts(); err != nil {
		return nil, err
	}
	sessionKey, err := randomBytes(o.cipher.KeySize())
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := packet.SerializeEncryptedKeyAEAD(&out, subkey.(*packet.PublicKey), o.cipher, false, sessionKey, nil); err != nil {
		return nil, errCorruptMessage()
	}
	err = o.writeData(&out, sessionKey, data, text, poll)
	return out.Bytes(), err
}

// encrypts refuses ciphers that the library reads, but does not write.
func (o *pgpOptions) encrypts() error {
	switch o.cipher {
	case packet.Cipher3DES:
		return unsupportedCipher("triple DES")
	case packet.CipherCAST5:
		return unsupportedCipher("CAST5")
	}
	return nil
}

func randomBytes(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := rand.Read(b)
	return b, err
}

// writePasswordKey writes the packet from which the password gives the session key, which it returns. The library's own function always
// encrypts a random session key, and makes no plain keys.
func (o *pgpOptions) writePasswordKey(out *bytes.Buffer, password []byte) ([]byte, error) {
	keyCipher := o.cipher
	if o.sessionKey && o.s2kCipher != 0 {
		keyCipher = o.s2kCipher
	}
	specifier, err := o.passwordSpecifier()
	if err != nil {
		return nil, err
	}
	derive, err := s2k.Parse(bytes.NewReader(specifier))
	if err != nil {
		return nil, errUnsupportedDigest()
	}
	key := make([]byte, keyCipher.KeySize())
	derive(key, password)
	body := append([]byte{4, byte(keyCipher)}, specifier...)
	if o.sessionKey {
		sessionKey, err := randomBytes(o.cipher.KeySize())
		if err != nil {
			return nil, err
		}
		block, err := pgpBlock(keyCipher, key)
		if err != nil {
			return nil, err
		}
		encrypted := append([]byte{byte(o.cipher)}, sessionKey...)
		//lint:ignore SA1019 OpenPGP has this mode
		cipher.NewCFBEncrypter(block, make([]byte, block.BlockSize())).XORKeyStream(encrypted, encrypted)
		body, key = append(body, encrypted...), sessionKey
	}
	out.Write([]byte{0xC0 | tagSymKeySession, byte(len(body))})
	out.Write(body)
	return key, nil
}

// passwordSpecifier says how a password becomes a key.
func (o *pgpOptions) passwordSpecifier() ([]byte, error) {
	b := []byte{o.s2kMode, o.s2kDigest}
	if o.s2kMode == s2kSimple {
		return b, nil
	}
	random, err := randomBytes(9)
	if err != nil {
		return nil, err
	}
	b = append(b, random[:8]...)
	if o.s2kMode == s2kIterated {
		count := 96 + random[8]&31
		if o.s2kCount > 0 {
			for count = 0; (16+int(count&15))<<(count>>4+6) < o.s2kCount; count++ {
			}
		}
		b = append(b, count)
	}
	return b, nil
}

func pgpBlock(c packet.CipherFunction, key []byte) (cipher.Block, error) {
	switch c {
	case packet.Cipher3DES:
		return des.NewTripleDESCipher(key)
	case packet.CipherCAST5:
		return cast5.NewCipher(key)
	}
	return aes.NewCipher(key)
}

// writeData writes the packet of the encrypted data.
func (o *pgpOptions) writeData(out io.Writer, key, data []byte, text bool, poll Poll) error {
	w, err := packet.SerializeSymmetricallyEncrypted(out, o.cipher, false, packet.CipherSuite{}, key, nil)
	if err != nil {
		return err
	}
	if o.compress != packet.CompressionNone && o.compressLevel > 0 {
		if w, err = packet.SerializeCompressed(w, o.compress, &packet.CompressionConfig{Level: o.compressLevel}); err != nil {
			return err
		}
	}
	format := byte('b')
	if text {
		if format = 't'; o.unicode {
			format = 'u'
		}
		if o.convertCRLF {
			data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		}
	}
	// The library writes texts as Unicode alone, and its packets name no plain ones.
	header := binary.BigEndian.AppendUint32([]byte{0xC0 | tagLiteral, 0xFF}, uint32(len(data)+6))
	header = append(header, format, 0, 0, 0, 0, 0)
	if _, err := w.Write(header); err != nil {
		return err
	}
	for len(data) > 0 {
		n := min(len(data), chunkBytes)
		if _, err := w.Write(data[:n]); err != nil {
			return err
		}
		if err := poll(); err != nil {
			return err
		}
		data = data[n:]
	}
	return w.Close()
}
