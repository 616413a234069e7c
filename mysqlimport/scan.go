package mysqlimport

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// maxStatement bounds a statement that is not INSERT, since it is kept in memory.
const maxStatement = 16 << 20

// maxRow bounds a row of INSERT.
const maxRow = 256 << 20

// PlaceError is an error at a place in a dump.
type PlaceError struct {
	File string
	Line int
	Text string
	Hint string
}

func (e *PlaceError) Error() string {
	s := fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
	if e.Hint != "" {
		s += "\n" + e.Hint
	}
	return s
}

// scanner reads a dump byte by byte, in a buffer of fixed size. Comments that contain code (/*!40101 … */) are read as
// code.
type scanner struct {
	in   io.Reader
	file string

	buf      []byte
	pos, end int
	base     int64 // offset of buf[0] in the dump
	lines    int   // newlines before buf[counted]
	counted  int
	err      error // of in; io.EOF at the end

	inCode      bool // inside a comment that contains code
	delimiter   string
	noBackslash bool   // sql_mode has NO_BACKSLASH_ESCAPES
	codeVersion string // of the last comment that contained code
	headed      bool   // a comment names mysqldump
	completed   bool   // a comment says that the dump is complete
}

const bufferSize = 256 << 10

func newScanner(in io.Reader, file string) *scanner {
	return &scanner{in: in, file: file, buf: make([]byte, bufferSize), delimiter: ";"}
}

// fill ensures that n bytes from pos on are in the buffer, if the dump has as many. n is small.
func (s *scanner) fill(n int) bool {
	for s.end-s.pos < n {
		if s.err != nil {
			return false
		}
		if s.pos > 0 {
			s.lines += bytes.Count(s.buf[s.counted:s.pos], newline)
			s.base += int64(s.pos)
			copy(s.buf, s.buf[s.pos:s.end])
			s.end -= s.pos
			s.pos, s.counted = 0, 0
		}
		m, err := s.in.Read(s.buf[s.end:])
		s.end += m
		if err != nil {
			s.err = err
		}
	}
	return true
}

var newline = []byte{'\n'}

// peek returns the next byte, 0 at the end. Dumps have no byte 0 outside of strings.
func (s *scanner) peek() byte {
	if s.pos == s.end && !s.fill(1) {
		return 0
	}
	return s.buf[s.pos]
}

// peekAt returns the byte n bytes further, 0 beyond the end.
func (s *scanner) peekAt(n int) byte {
	if !s.fill(n + 1) {
		return 0
	}
	return s.buf[s.pos+n]
}

func (s *scanner) atEnd() bool { return s.pos == s.end && !s.fill(1) }

// line returns the line of the next byte, from 1.
func (s *scanner) line() int {
	s.lines += bytes.Count(s.buf[s.counted:s.pos], newline)
	s.counted = s.pos
	return s.lines + 1
}

// offset returns how many bytes have been read.
func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

func (s *scanner) fail(hint, format string, args ...any) error {
	if s.err != nil && s.err != io.EOF {
		return &PlaceError{File: s.file, Line: s.line(), Text: "cannot read on: " + s.err.Error(),
			Hint: "The file is damaged or incomplete: copy it again, or dump again."}
	}
	return &PlaceError{File: s.file, Line: s.line(), Text: fmt.Sprintf(format, args...), Hint: hint}
}

// truncated is the error for a dump that ends within a statement or a value.
func (s *scanner) truncated(within string) error {
	return s.fail("The dump is incomplete: dump again, or copy the file again. Then run the import with --restart.", "the file ends within %s", within)
}

func blank(ch byte) bool {
	return ch == ' ' || ch == '\n' || ch == '\t' || ch == '\r' || ch == '\f' || ch == '\v'
}

// skipBlanks skips white space and comments, and the delimiters of comments that contain code.
func (s *scanner) skipBlanks() error {
	for {
		switch ch := s.peek(); {
		case ch == 0:
			if s.pos < s.end {
				return s.fail("Dump with --hex-blob, or copy the file again.", "a byte 0 stands outside of a string")
			}
			if s.err != io.EOF {
				return s.fail("", "")
			}
			return nil
		case blank(ch):
			s.pos++
		case ch == '#':
			s.lineComment()
		case ch == '-' && s.peekAt(1) == '-' && (blank(s.peekAt(2)) || s.peekAt(2) == 0):
			s.lineComment()
		case ch == '/' && s.peekAt(1) == '*':
			if err := s.comment(); err != nil {
				return err
			}
		case ch == '*' && s.inCode && s.peekAt(1) == '/':
			s.pos += 2
			s.inCode = false
		default:
			return nil
		}
	}
}

// lineComment skips the rest of a line, and reads what mysqldump states there about the dump.
func (s *scanner) lineComment() {
	var text []byte
	for {
		ch := s.peek()
		if ch == 0 && s.atEnd() || ch == '\n' {
			break
		}
		if len(text) < 64 {
			text = append(text, ch)
		}
		s.pos++
	}
	head := string(text)
	if strings.HasPrefix(head, "-- MySQL dump") || strings.HasPrefix(head, "-- MariaDB dump") {
		s.headed, s.completed = true, false
	}
	if strings.HasPrefix(head, "-- Dump completed") {
		s.completed = true
	}
}

// comment skips a comment, or the delimiter that begins one that contains code.
func (s *scanner) comment() error {
	n := 2
	if s.peekAt(n) == 'M' && s.peekAt(n+1) == '!' {
		n++
	}
	if s.peekAt(n) == '!' {
		n++
		var version []byte
		for ch := s.peekAt(n); '0' <= ch && ch <= '9' && len(version) < 6; ch = s.peekAt(n) {
			version = append(version, ch)
			n++
		}
		if string(version) != "999999" { // mysqldump uses this version for code that no server runs
			s.inCode, s.codeVersion = true, string(version)
			s.pos += n
			return nil
		}
	}
	if s.fill(14) && string(s.buf[s.pos:s.pos+14]) == "/*T![auto_rand" && s.peekAt(14) == ']' {
		s.inCode, s.codeVersion = true, ""
		s.pos += 15
		return nil
	}
	for s.pos += 2; ; s.pos++ {
		if !s.fill(2) {
			return s.truncated("a comment")
		}
		if s.buf[s.pos] == '*' && s.buf[s.pos+1] == '/' {
			s.pos += 2
			return nil
		}
	}
}

// word reads a word of letters, digits and underscores, "" if there is none.
func (s *scanner) word() string {
	var b []byte
	for len(b) < 128 {
		ch := s.peek()
		if !wordByte(ch) {
			break
		}
		b = append(b, ch)
		s.pos++
	}
	return string(b)
}

func wordByte(ch byte) bool {
	return ch == '_' || ch == '$' || ch >= 0x80 || '0' <= ch && ch <= '9' || 'a' <= ch && ch <= 'z' || 'A' <= ch && ch <= 'Z'
}

// name reads a name, quoted or not.
func (s *scanner) name() (string, error) {
	if err := s.skipBlanks(); err != nil {
		return "", err
	}
	quote := s.peek()
	if quote != '`' && quote != '"' {
		if w := s.word(); w != "" {
			return w, nil
		}
		return "", s.unexpected("a name")
	}
	var b []byte
	for s.pos++; len(b) <= 256; s.pos++ {
		ch := s.peek()
		if ch == 0 && s.atEnd() {
			return "", s.truncated("a name")
		}
		if ch == quote {
			if s.peekAt(1) != quote {
				s.pos++
				return string(b), nil
			}
			s.pos++
		}
		b = append(b, ch)
	}
	return "", s.fail("", "a name is longer than 256 bytes")
}

// unexpected is the error that names what was found and what was expected.
func (s *scanner) unexpected(expected string) error {
	if s.atEnd() {
		if s.err != io.EOF {
			return s.fail("", "")
		}
		return s.truncated("a statement")
	}
	s.fill(20)
	found := s.buf[s.pos:min(s.pos+20, s.end)]
	if i := bytes.IndexByte(found, '\n'); i > 0 {
		found = found[:i]
	}
	return s.fail("The file is no dump of mysqldump, mydumper or Dumpling, or it was changed: dump again.", "%s was expected, not %q", expected, found)
}

// atDelimiter reports whether the statement ends here.
func (s *scanner) atDelimiter() bool {
	d := s.delimiter
	if s.peek() != d[0] {
		return false
	}
	return len(d) == 1 || s.fill(len(d)) && string(s.buf[s.pos:s.pos+len(d)]) == d
}

// statement reads to the end of a statement, and returns it without comments, but with the code that they contain.
func (s *scanner) statement(begin string) (string, error) {
	b := []byte(begin)
	for {
		at := s.offset()
		if err := s.skipBlanks(); err != nil {
			return "", err
		}
		if s.offset() > at {
			b = append(b, ' ')
		}
		if s.atEnd() {
			return "", s.truncated("a statement")
		}
		if s.atDelimiter() {
			s.pos += len(s.delimiter)
			return string(b), nil
		}
		ch := s.buf[s.pos]
		s.pos++
		b = append(b, ch)
		if ch == '\'' || ch == '"' || ch == '`' {
			var err error
			if b, err = s.quoted(b, ch); err != nil {
				return "", err
			}
		}
		if len(b) > maxStatement {
			return "", s.fail("", "a statement that is not INSERT is longer than %d MiB", maxStatement>>20)
		}
	}
}

// quoted copies the rest of a quoted string or name.
func (s *scanner) quoted(b []byte, quote byte) ([]byte, error) {
	for {
		if s.atEnd() {
			return nil, s.truncated("a string")
		}
		ch := s.buf[s.pos]
		s.pos++
		b = append(b, ch)
		switch {
		case ch == '\\' && quote != '`' && !s.noBackslash:
			if s.atEnd() {
				return nil, s.truncated("a string")
			}
			b = append(b, s.buf[s.pos])
			s.pos++
		case ch == quote:
			return b, nil
		case len(b) > maxStatement:
			return nil, s.fail("", "a statement that is not INSERT is longer than %d MiB", maxStatement>>20)
		}
	}
}

// setDelimiter handles the client command DELIMITER: the rest of the line.
func (s *scanner) setDelimiter() error {
	var b []byte
	for len(b) < 32 {
		ch := s.peek()
		if ch == '\n' || ch == 0 {
			break
		}
		b = append(b, ch)
		s.pos++
	}
	d := strings.TrimSpace(string(b))
	if d == "" {
		return s.unexpected("a delimiter")
	}
	s.delimiter = d
	return nil
}
