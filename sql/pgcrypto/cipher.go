package pgcrypto

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"strings"

	"golang.org/x/crypto/blowfish" //lint:ignore SA1019 pgcrypto has this cipher
	"golang.org/x/crypto/cast5"    //lint:ignore SA1019 pgcrypto has this cipher

	"github.com/percodb/percodb/sql/pgerror"
)

// algorithm is a block cipher. Keys shorter than one of its sizes are filled with zeros.
type algorithm struct {
	block    int
	keySizes []int // nil: any size up to maxKey
	maxKey   int
	make     func(key []byte) (cipher.Block, error)
}

var (
	aesCipher      = algorithm{block: aes.BlockSize, keySizes: []int{16, 24, 32}, maxKey: 32, make: aes.NewCipher}
	desCipher      = algorithm{block: des.BlockSize, keySizes: []int{8}, maxKey: 8, make: des.NewCipher}
	tripleCipher   = algorithm{block: des.BlockSize, keySizes: []int{24}, maxKey: 24, make: des.NewTripleDESCipher}
	blowfishCipher = algorithm{block: blowfish.BlockSize, maxKey: 56, make: func(key []byte) (cipher.Block, error) { return blowfish.NewCipher(key) }}
	castCipher     = algorithm{block: cast5.BlockSize, keySizes: []int{16}, maxKey: 16, make: func(key []byte) (cipher.Block, error) { return cast5.NewCipher(key) }}
)

// algorithms are the ciphers by their names, without modes.
var algorithms = map[string]*algorithm{
	"aes": &aesCipher, "rijndael": &aesCipher, "des": &desCipher, "3des": &tripleCipher, "des3": &tripleCipher, "bf": &blowfishCipher,
	"blowfish": &blowfishCipher, "cast5": &castCipher,
}

// method is how data are encrypted: "aes-cbc/pad:none".
type method struct {
	algorithm *algorithm
	ecb       bool
	unpadded  bool
}

// parseMethod reads the name of an algorithm with its mode and options.
func parseMethod(text string) (method, error) {
	name, options, _ := strings.Cut(strings.ToLower(text), "/")
	var m method
	for option := range strings.SplitSeq(options, "/") {
		if options == "" {
			break
		}
		key, value, ok := strings.Cut(option, ":")
		switch {
		case !ok:
			return m, cannotUse(text, "Badly formatted type")
		case key != "pad":
			return m, cannotUse(text, "Unknown option")
		case value == "none":
			m.unpadded = true
		case value != "pkcs":
			return m, cannotUse(text, "No such cipher algorithm")
		}
	}
	base, mode, _ := strings.Cut(name, "-")
	if m.algorithm = algorithms[base]; m.algorithm == nil || name == "des3" || mode != "" && mode != "cbc" && mode != "ecb" {
		return m, cannotUse(text, "No such cipher algorithm")
	}
	m.ecb = mode == "ecb"
	return m, nil
}

// cipher returns the block cipher for a key.
func (m *method) cipher(key []byte, what string) (cipher.Block, error) {
	a := m.algorithm
	if len(key) > a.maxKey {
		key = key[:a.maxKey]
	}
	for _, size := range a.keySizes {
		if len(key) <= size {
			key = append(bytes.Clone(key), make([]byte, size-len(key))...)
			break
		}
	}
	block, err := a.make(key)
	if err != nil { // an empty key
		return nil, failed(what, "Cipher cannot be initialized")
	}
	return block, nil
}

func failed(what, why string) error {
	return pgerror.New(externalRoutine, "%s error: %s", what, why)
}

// vector returns an initialization vector of the block's size.
func (m *method) vector(iv []byte) []byte {
	out := make([]byte, m.algorithm.block)
	copy(out, iv)
	return out
}

// Encrypt encrypts data.
func Encrypt(data, key, iv []byte, how string) ([]byte, error) {
	m, err := parseMethod(how)
	if err != nil {
		return nil, err
	}
	const what = "encrypt"
	block, err := m.cipher(key, what)
	if err != nil {
		return nil, err
	}
	size := m.algorithm.block
	out := bytes.Clone(data)
	if !m.unpadded {
		n := size - len(data)%size
		out = append(out, bytes.Repeat([]byte{byte(n)}, n)...)
	} else if len(data)%size != 0 {
		return nil, failed(what, "Encryption failed")
	}
	if m.ecb {
		for i := 0; i < len(out); i += size {
			block.Encrypt(out[i:], out[i:])
		}
		return out, nil
	}
	cipher.NewCBCEncrypter(block, m.vector(iv)).CryptBlocks(out, out)
	return out, nil
}

// Decrypt is the inverse of Encrypt.
func Decrypt(data, key, iv []byte, how string) ([]byte, error) {
	m, err := parseMethod(how)
	if err != nil {
		return nil, err
	}
	const what = "decrypt"
	block, err := m.cipher(key, what)
	if err != nil {
		return nil, err
	}
	size := m.algorithm.block
	if len(data)%size != 0 {
		return nil, failed(what, "Decryption failed")
	}
	out := bytes.Clone(data)
	if m.ecb {
		for i := 0; i < len(out); i += size {
			block.Decrypt(out[i:], out[i:])
		}
	} else {
		cipher.NewCBCDecrypter(block, m.vector(iv)).CryptBlocks(out, out)
	}
	if m.unpadded {
		return out, nil
	}
	if len(out) == 0 {
		return nil, failed(what, "Decryption failed")
	}
	n := int(out[len(out)-1])
	if n == 0 || n > size || n > len(out) || !bytes.Equal(out[len(out)-n:], bytes.Repeat([]byte{byte(n)}, n)) {
		return nil, failed(what, "Decryption failed")
	}
	return out[:len(out)-n], nil
}
