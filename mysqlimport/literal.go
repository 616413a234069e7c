package mysqlimport

import (
	"strings"
)

// form is how a value is written.
type form byte

const (
	formNull form = iota
	formString
	formDigits
	formBytes // X'…', 0x…, B'…', 0b…
)

// literal is a value of a row.
type literal struct {
	form    form
	text    []byte // with its escapes applied; digits as written; the bytes of formBytes
	charset string // of _charset'…', "" without one
}

// readLiteral reads a value. If keep is false it is skipped, and text is not valid.
func (s *scanner) readLiteral(l *literal, keep bool) error {
	l.text, l.charset = l.text[:0], ""
	for {
		if err := s.skipBlanks(); err != nil {
			return err
		}
		ch := s.peek()
		switch {
		case ch == '\'' || ch == '"':
			l.form = formString
			return s.readString(l, ch, keep)
		case '0' <= ch && ch <= '9' || ch == '-' || ch == '+' || ch == '.':
			return s.readDigits(l)
		case ch == '_':
			l.charset = strings.ToLower(s.word()[1:])
		case (ch == 'x' || ch == 'X' || ch == 'b' || ch == 'B') && s.peekAt(1) == '\'':
			s.pos += 2
			return s.readBytes(l, ch|0x20, true)
		case (ch == 'n' || ch == 'N') && s.peekAt(1) == '\'':
			s.pos++
		default:
			return s.readWord(l)
		}
	}
}

func (s *scanner) readWord(l *literal) error {
	line := s.line()
	switch w := strings.ToUpper(s.word()); w {
	case "NULL":
		l.form = formNull
		return nil
	case "TRUE", "FALSE":
		l.form = formDigits
		l.text = append(l.text, '0')
		if w == "TRUE" {
			l.text[0] = '1'
		}
		return nil
	case "":
		return s.unexpected("a value")
	default:
		return &PlaceError{File: s.file, Line: line, Text: "an expression with " + w + " stands where a value was expected",
			Hint: "Dumps of mysqldump, mydumper and Dumpling have constants only: dump again, and leave the file as it is."}
	}
}

// readString reads a string after its first quote.
func (s *scanner) readString(l *literal, quote byte, keep bool) error {
	s.pos++
	size := 0
	for {
		if s.atEnd() {
			return s.truncated("a string")
		}
		chunk := s.buf[s.pos:s.end]
		i := 0
		for i < len(chunk) && chunk[i] != quote && (chunk[i] != '\\' || s.noBackslash) {
			i++
		}
		if keep {
			l.text = append(l.text, chunk[:i]...)
		}
		s.pos += i
		if size += i; size > maxRow {
			return s.fail("Leave the table out with --exclude.", "a value is longer than %d MiB", maxRow>>20)
		}
		if i == len(chunk) {
			continue
		}
		if chunk[i] == quote {
			if s.peekAt(1) != quote {
				s.pos++
				return nil
			}
			l.text = append(l.text, quote)
			s.pos += 2
			continue
		}
		if !s.fill(2) {
			return s.truncated("a string")
		}
		ch := s.buf[s.pos+1]
		s.pos += 2
		if keep {
			l.text = appendEscape(l.text, ch)
		}
	}
}

// appendEscape appends the character that a backslash and ch denote.
func appendEscape(b []byte, ch byte) []byte {
	switch ch {
	case '0':
		return append(b, 0)
	case 'n':
		return append(b, '\n')
	case 't':
		return append(b, '\t')
	case 'r':
		return append(b, '\r')
	case 'b':
		return append(b, '\b')
	case 'Z':
		return append(b, 26)
	case '%', '_':
		return append(b, '\\', ch)
	}
	return append(b, ch)
}

// readDigits reads a number, 0x… or 0b….
func (s *scanner) readDigits(l *literal) error {
	if s.peek() == '0' {
		switch s.peekAt(1) {
		case 'x', 'b':
			base := s.peekAt(1)
			s.pos += 2
			return s.readBytes(l, base, false)
		}
	}
	l.form = formDigits
	for {
		ch := s.peek()
		if (ch < '0' || ch > '9') && ch != '.' && ch != '-' && ch != '+' && ch != 'e' && ch != 'E' {
			break
		}
		l.text = append(l.text, ch)
		s.pos++
		if len(l.text) > 4096 {
			return s.fail("", "a number has more than 4096 digits")
		}
	}
	if wordByte(s.peek()) {
		return s.unexpected("the end of a number")
	}
	return nil
}

// readBytes reads the digits of formBytes, up to a quote or the first byte that is not a digit. Skipping them is not
// faster.
func (s *scanner) readBytes(l *literal, base byte, quoted bool) error {
	l.form = formBytes
	var acc, n uint
	bits := uint(4)
	if base == 'b' {
		return s.readBits(l, quoted)
	}
	for {
		if s.pos == s.end && !s.fill(1) {
			return s.truncated("a value")
		}
		d := hexDigit[s.buf[s.pos]]
		if d < 0 {
			break
		}
		s.pos++
		acc = acc<<bits | uint(d)
		if n++; n%2 == 0 {
			l.text = append(l.text, byte(acc))
			if len(l.text) > maxRow {
				return s.fail("Leave the table out with --exclude.", "a value is longer than %d MiB", maxRow>>20)
			}
		}
	}
	if n%2 != 0 {
		if quoted || n > 16 {
			return s.fail("", "a hexadecimal value has an odd number of digits")
		}
		shiftNibble(l, byte(acc&15))
	}
	return s.endBytes(quoted)
}

// shiftNibble adds the last of an odd number of hexadecimal digits: 0xabc is 0x0abc.
func shiftNibble(l *literal, last byte) {
	l.text = append(l.text, last)
	carry := byte(0)
	for i := 0; i < len(l.text)-1; i++ {
		l.text[i], carry = carry<<4|l.text[i]>>4, l.text[i]&15
	}
	l.text[len(l.text)-1] = carry<<4 | last
}

func (s *scanner) readBits(l *literal, quoted bool) error {
	var v uint64
	n := 0
	for {
		ch := s.peek()
		if ch != '0' && ch != '1' {
			break
		}
		v = v<<1 | uint64(ch-'0')
		s.pos++
		if n++; n > 64 {
			return s.fail("", "a bit value has more than 64 digits")
		}
	}
	for i := (n+7)/8 - 1; i >= 0; i-- {
		l.text = append(l.text, byte(v>>(8*i)))
	}
	return s.endBytes(quoted)
}

func (s *scanner) endBytes(quoted bool) error {
	if quoted {
		if s.peek() != '\'' {
			return s.unexpected("the end of a value in digits")
		}
		s.pos++
		return nil
	}
	if wordByte(s.peek()) {
		return s.unexpected("the end of a value in digits")
	}
	return nil
}

// hexDigit is the value of each byte as a hexadecimal digit, -1 for others.
var hexDigit = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i := range 10 {
		t['0'+i] = int8(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = int8(10+i), int8(10+i)
	}
	return t
}()
