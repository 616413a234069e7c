package pgcrypto

import (
	"bytes"
	"fmt"

	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/percodb/percodb/sql/pgerror"
)

// maxKeyPacket bounds the packet of a key: the arithmetic of one of some 8,000 bits takes about a second, which no timeout interrupts.
const maxKeyPacket = 4 << 10

// eachPacket calls f with the packets of a key or a message, until it returns false.
func eachPacket(data []byte, f func(tag int, p *packet.OpaquePacket) (bool, error)) error {
	r := bytes.NewReader(data)
	all := packet.NewOpaqueReader(r)
	for r.Len() > 0 {
		tag, ok := packetTag(data[len(data)-r.Len()])
		if !ok {
			return errCorruptMessage()
		}
		if tag == tagEncrypted || tag == tagEncryptedMDC {
			_, err := f(tag, nil)
			return err
		}
		p, err := all.Next()
		if err != nil {
			return errCorruptMessage()
		}
		if more, err := f(tag, p); !more || err != nil {
			return err
		}
	}
	return nil
}

// readSubkey returns the one subkey of a key that encrypts: a *packet.PublicKey, or if secret a *packet.PrivateKey.
func readSubkey(key []byte, secret bool) (packet.Packet, error) {
	var found packet.Packet
	main := false
	err := eachPacket(key, func(tag int, p *packet.OpaquePacket) (bool, error) {
		switch tag {
		case tagPublicKey, tagSecretKey:
			if main {
				return false, errSeveralKeys()
			}
			main = true
		case tagPublicSubkey, tagSecretSubkey:
			if secret && tag == tagPublicSubkey {
				return false, pgpError("Cannot decrypt with public key")
			}
			if !secret && tag == tagSecretSubkey {
				return false, pgpError("Refusing to encrypt with secret key")
			}
			subkey, err := parseSubkey(p)
			if err != nil || subkey == nil {
				return true, err
			}
			if found != nil {
				return false, pgpError("Several subkeys not supported")
			}
			found = subkey
		case tagSignature, tagMarker, tagTrust, tagUserID, tagUserAttribute, tagPrivate61:
		default:
			return false, pgpError("Unexpected packet in key data")
		}
		return true, nil
	})
	if err == nil && found == nil {
		err = errNoUsableKey()
	}
	return found, err
}

func errSeveralKeys() error {
	return pgpError("Several keys given - pgcrypto does not handle keyring")
}

// parseSubkey reads a subkey; nil if it does not encrypt.
func parseSubkey(p *packet.OpaquePacket) (packet.Packet, error) {
	const algorithmAt = 5 // behind the version and the time
	if len(p.Contents) <= algorithmAt {
		return nil, errCorruptMessage()
	}
	if p.Contents[0] != 4 {
		return nil, pgpError("Only V4 key packets are supported")
	}
	switch packet.PublicKeyAlgorithm(p.Contents[algorithmAt]) {
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSAEncryptOnly, packet.PubKeyAlgoElGamal:
	case packet.PubKeyAlgoRSASignOnly, packet.PubKeyAlgoDSA:
		return nil, nil
	default:
		return nil, pgpError("Unknown public-key encryption algorithm")
	}
	if len(p.Contents) > maxKeyPacket {
		return nil, pgerror.Unsupported("a PGP key of so many bits", "Use one of up to 4096 bits.")
	}
	key, err := p.Parse()
	if err != nil {
		return nil, errCorruptMessage()
	}
	if secret, ok := key.(*packet.PrivateKey); ok {
		if err := checkProtection(secret, p.Contents); err != nil {
			return nil, err
		}
	}
	return key, nil
}

// checkProtection refuses what OpenPGP has got since pgcrypto was written to protect a secret key with a password: a hostile key could ask for
// any amount of memory.
func checkProtection(key *packet.PrivateKey, contents []byte) error {
	const none, digest, sum = 0, 254, 255
	var public bytes.Buffer
	if err := key.PublicKey.Serialize(&public); err != nil {
		return errCorruptMessage()
	}
	p, err := packet.NewOpaqueReader(&public).Next()
	if err != nil || len(contents) <= len(p.Contents) {
		return errCorruptMessage()
	}
	switch contents[len(p.Contents)] {
	case none, digest, sum:
		return nil
	}
	return pgpError("Corrupt key packet")
}

// unlock decrypts a secret key with its password; nil: none is given.
func unlock(key *packet.PrivateKey, password []byte) error {
	if !key.Encrypted {
		return nil
	}
	if password == nil {
		return pgpError("Need password for secret key")
	}
	if err := key.Decrypt(password); err != nil {
		return errCorruptMessage()
	}
	return nil
}

// KeyID is pgp_key_id: the number of the key that a key or message is for.
func KeyID(data []byte) (string, error) {
	var id uint64
	keys, sessions, passwords := 0, 0, 0
	main := false
	err := eachPacket(data, func(tag int, p *packet.OpaquePacket) (bool, error) {
		switch tag {
		case tagPublicKey, tagSecretKey:
			if main {
				return false, errSeveralKeys()
			}
			main = true
		case tagPublicSubkey, tagSecretSubkey:
			key, err := parseSubkey(p)
			if err != nil {
				return false, err
			}
			switch k := key.(type) {
			case *packet.PublicKey:
				id = k.KeyId
				keys++
			case *packet.PrivateKey:
				id = k.KeyId
				keys++
			}
		case tagPubKeySession:
			session, err := parseSession(p)
			if err != nil {
				return false, err
			}
			id = session.KeyId
			sessions++
		case tagSymKeySession:
			passwords++
		case tagEncrypted, tagEncryptedMDC:
			return false, nil
		case tagSignature, tagMarker, tagTrust, tagUserID, tagUserAttribute, tagPrivate61:
		default:
			return false, errCorruptMessage()
		}
		return true, nil
	})
	switch {
	case err != nil:
		return "", err
	case keys > 0 && sessions > 0:
		return "", errCorruptMessage()
	case keys > 1 || sessions > 1:
		return "", errSeveralKeys()
	case keys+sessions > 0 && id == 0:
		return "ANYKEY", nil
	case keys+sessions > 0:
		return fmt.Sprintf("%016X", id), nil
	case passwords > 0:
		return "SYMKEY", nil
	}
	return "", errNoUsableKey()
}

// parseSession reads a session key that is encrypted for a public key.
func parseSession(p *packet.OpaquePacket) (*packet.EncryptedKey, error) {
	if len(p.Contents) == 0 || p.Contents[0] != 3 {
		return nil, errCorruptMessage()
	}
	parsed, err := p.Parse()
	session, ok := parsed.(*packet.EncryptedKey)
	if err != nil || !ok {
		return nil, errCorruptMessage()
	}
	return session, nil
}
