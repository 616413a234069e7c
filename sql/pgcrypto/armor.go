package pgcrypto

import (
	"encoding/base64"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

const (
	armorBegin = "-----BEGIN PGP MESSAGE-----\n"
	armorEnd   = "-----END PGP MESSAGE-----\n"
	// armorLine is the length of a line of digits.
	armorLine = 76
)

// Header is a line before the data of an armored message.
type Header struct{ Key, Value string }

// Armor returns data as text: the form of PGP messages in mails.
func Armor(data []byte, headers []Header) string {
	var b strings.Builder
	b.WriteString(armorBegin)
	for _, h := range headers {
		b.WriteString(h.Key + ": " + h.Value + "\n")
	}
	b.WriteByte('\n')
	digits := base64.StdEncoding.EncodeToString(data)
	for len(digits) > 0 {
		n := min(len(digits), armorLine)
		b.WriteString(digits[:n] + "\n")
		digits = digits[n:]
	}
	b.WriteString("=" + base64.StdEncoding.EncodeToString(checksum(data)) + "\n" + armorEnd)
	return b.String()
}

// checksum is the CRC of 24 bits that ends an armored message.
func checksum(data []byte) []byte {
	crc := uint32(0xb704ce)
	for _, c := range data {
		crc ^= uint32(c) << 16
		for range 8 {
			if crc <<= 1; crc&0x1000000 != 0 {
				crc ^= 0x1864cfb
			}
		}
	}
	return []byte{byte(crc >> 16), byte(crc >> 8), byte(crc)}
}

func corruptArmor() error { return pgerror.New(externalRoutine, "Corrupt ascii-armor") }

// armored finds the parts of an armored message: its headers, its digits, and those of its checksum.
func armored(text string) (headers, digits, sum string, err error) {
	_, rest, ok := cutLine(text, "-----BEGIN ")
	if !ok {
		return "", "", "", corruptArmor()
	}
	title, rest, ok := strings.Cut(rest, "\n")
	if !ok || !strings.HasSuffix(strings.TrimRight(title, "\r"), "-----") {
		return "", "", "", corruptArmor()
	}
	for { // the headers end with an empty line
		line, after, more := strings.Cut(rest, "\n")
		if !more {
			return "", "", "", corruptArmor()
		}
		rest = after
		if strings.TrimRight(line, "\r") == "" {
			break
		}
		headers += line + "\n"
	}
	body, _, ok := cutLine("\n"+rest, "-----END ")
	if !ok {
		return "", "", "", corruptArmor()
	}
	digits, sum, ok = cutLine(body, "=")
	if !ok || len(sum) < 4 {
		return "", "", "", corruptArmor()
	}
	return headers, digits, sum[:4], nil
}

// cutLine is strings.Cut at a line that begins with a text.
func cutLine(text, begin string) (before, after string, found bool) {
	if after, ok := strings.CutPrefix(text, begin); ok {
		return "", after, true
	}
	return strings.Cut(text, "\n"+begin)
}

// Dearmor is the inverse of Armor.
func Dearmor(text string) ([]byte, error) {
	_, digits, sum, err := armored(text)
	if err != nil {
		return nil, err
	}
	digits = strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, digits)
	data, err := base64.StdEncoding.DecodeString(digits)
	if err != nil || base64.StdEncoding.EncodeToString(checksum(data)) != sum {
		return nil, corruptArmor()
	}
	return data, nil
}

// ArmorHeaders returns the headers of an armored message.
func ArmorHeaders(text string) ([]Header, error) {
	lines, _, _, err := armored(text)
	if err != nil {
		return nil, err
	}
	var list []Header
	for line := range strings.Lines(lines) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		if !ok {
			return nil, corruptArmor()
		}
		list = append(list, Header{key, value})
	}
	return list, nil
}
