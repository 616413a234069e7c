package pgcrypto

import (
	"bufio"
	"bytes"
	"io"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// SymDecrypt is pgp_sym_decrypt, and with text false pgp_sym_decrypt_bytea. It writes the data to out piece by piece, whose errors it returns;
// they are valid only if it returns nil.
func SymDecrypt(out io.Writer, message []byte, text bool, password []byte, options string) error {
	o, err := parsePGPOptions(options)
	if err != nil {
		return err
	}
	if len(password) == 0 {
		return errIllegalArgument()
	}
	return o.decrypt(out, message, text, func(tag int, p *packet.OpaquePacket) ([]byte, packet.CipherFunction, error) {
		if tag == tagPubKeySession {
			return nil, 0, errCorruptMessage()
		}
		return passwordKey(p.Contents, password)
	})
}

// PubDecrypt is pgp_pub_decrypt, and with text false pgp_pub_decrypt_bytea, as SymDecrypt. password is that of the key, nil for none.
func PubDecrypt(out io.Writer, message []byte, text bool, key, password []byte, options string) error {
	o, err := parsePGPOptions(options)
	if err != nil {
		return err
	}
	found, err := readSubkey(key, true)
	if err != nil {
		return err
	}
	subkey := found.(*packet.PrivateKey)
	if err := unlock(subkey, password); err != nil {
		return err
	}
	return o.decrypt(out, message, text, func(tag int, p *packet.OpaquePacket) ([]byte, packet.CipherFunction, error) {
		if tag == tagSymKeySession {
			return nil, 0, errCorruptMessage()
		}
		return sessionKey(p, subkey)
	})
}

// sessionKey decrypts a session key with a secret key.
func sessionKey(p *packet.OpaquePacket, key *packet.PrivateKey) ([]byte, packet.CipherFunction, error) {
	session, err := parseSession(p)
	if err != nil {
		return nil, 0, err
	}
	if session.KeyId != 0 && session.KeyId != key.KeyId || session.Algo != key.PubKeyAlgo {
		return nil, 0, pgpError("Wrong key")
	}
	if err := session.Decrypt(key, nil); err != nil {
		return nil, 0, errCorruptMessage()
	}
	return session.Key, session.CipherFunc, nil
}

// passwordKey makes the session key from a password. contents are those of its packet.
func passwordKey(contents, password []byte) ([]byte, packet.CipherFunction, error) {
	// What is newer than version 4, and the modes after the third, would let a message ask for any amount of memory.
	if len(contents) < 4 || contents[0] != 4 {
		return nil, 0, errCorruptMessage()
	}
	if contents[1] == cipherBlowfish {
		return nil, 0, unsupportedCipher("Blowfish")
	}
	if c := packet.CipherFunction(contents[1]); !c.IsSupported() {
		return nil, 0, errUnsupportedCipher()
	}
	switch contents[2] {
	case s2kSimple, s2kSalted, s2kIterated:
	default:
		return nil, 0, pgpError("Bad S2K mode")
	}
	if err := checkDigest(contents[3]); err != nil {
		return nil, 0, err
	}
	p, err := (&packet.OpaquePacket{Tag: tagSymKeySession, Contents: contents}).Parse()
	session, ok := p.(*packet.SymmetricKeyEncrypted)
	if err != nil || !ok {
		return nil, 0, errCorruptMessage()
	}
	key, c, err := session.Decrypt(password)
	if err != nil {
		return nil, 0, errCorruptMessage()
	}
	return key, c, nil
}

// decrypt reads a message. open returns the session key of the first packet that has one; the others are skipped.
func (o *pgpOptions) decrypt(out io.Writer, message []byte, text bool, open func(tag int, p *packet.OpaquePacket) ([]byte, packet.CipherFunction, error)) error {
	r := bytes.NewReader(message)
	keys := packet.NewOpaqueReader(r)
	var key []byte
	var c packet.CipherFunction
	for r.Len() > 0 {
		tag, _ := packetTag(message[len(message)-r.Len()])
		switch tag {
		case tagMarker, tagPubKeySession, tagSymKeySession:
			p, err := keys.Next()
			if err != nil {
				return errCorruptMessage()
			}
			if tag == tagMarker || key != nil {
				continue
			}
			if key, c, err = open(tag, p); err != nil {
				return err
			}
		case tagEncrypted, tagEncryptedMDC:
			if key == nil {
				return errCorruptMessage()
			}
			if err := o.readData(out, r, text, key, c); err != nil {
				return err
			}
			if r.Len() > 0 {
				return errCorruptMessage()
			}
			return nil
		default:
			return errCorruptMessage()
		}
	}
	return errCorruptMessage()
}

// readData reads the packet of the encrypted data, and checks its digest.
func (o *pgpOptions) readData(out io.Writer, r io.Reader, text bool, key []byte, c packet.CipherFunction) error {
	p, err := packet.Read(r)
	data, ok := p.(*packet.SymmetricallyEncrypted)
	if err != nil || !ok || data.IntegrityProtected && data.Version != 1 {
		return errCorruptMessage()
	}
	plain, err := data.Decrypt(c, key)
	if err != nil {
		return errCorruptMessage()
	}
	format, err := o.readPackets(out, bufio.NewReader(plain), text, true)
	if err != nil {
		return err
	}
	if err := plain.Close(); err != nil {
		return errCorruptMessage()
	}
	if text && format != 't' && format != 'u' {
		return pgpError("Not text data")
	}
	return nil
}

// readPackets reads the one packet of data, which may be compressed if it is not inside of one that is. It returns the format of the data.
func (o *pgpOptions) readPackets(out io.Writer, r *bufio.Reader, text, compressed bool) (format byte, err error) {
	for {
		first, err := r.Peek(1)
		if err != nil {
			if err == io.EOF && format != 0 {
				return format, nil
			}
			return 0, errCorruptMessage()
		}
		tag, _ := packetTag(first[0])
		if tag != tagMarker && tag != tagLiteral && (tag != tagCompressed || !compressed) || format != 0 && tag != tagMarker {
			return 0, errCorruptMessage()
		}
		p, err := packet.Read(r)
		if err != nil {
			return 0, errCorruptMessage()
		}
		switch p := p.(type) {
		case *packet.Compressed:
			if format, err = o.readPackets(out, bufio.NewReader(p.Body), text, false); err != nil {
				return 0, err
			}
		case *packet.LiteralData:
			format = p.Format
			if err := copyData(out, p.Body, text && o.convertCRLF); err != nil {
				return 0, err
			}
		}
	}
}

// copyData copies data, without the carriage returns at the ends of lines if crlf.
func copyData(out io.Writer, in io.Reader, crlf bool) error {
	buf := make([]byte, 64<<10)
	held := false // a carriage return has been read, and not written
	for {
		n, err := in.Read(buf)
		piece := buf[:n]
		if crlf && n > 0 {
			piece, held = dropReturns(piece, held)
		}
		if len(piece) > 0 {
			if _, err := out.Write(piece); err != nil {
				return err
			}
		}
		if err == io.EOF {
			if held {
				_, err = out.Write([]byte{'\r'})
				return err
			}
			return nil
		}
		if err != nil {
			return errCorruptMessage()
		}
	}
}

// dropReturns returns a piece of text without the carriage returns before line feeds. One at the end is held back until the next piece is known.
func dropReturns(piece []byte, held bool) ([]byte, bool) {
	out := make([]byte, 0, len(piece)+1)
	for _, b := range piece {
		if held && b != '\n' {
			out = append(out, '\r')
		}
		if held = b == '\r'; !held {
			out = append(out, b)
		}
	}
	return out, held
}
