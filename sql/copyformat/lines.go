package copyformat

import (
	"bufio"
	"fmt"
	"io"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/pgerror"
)

// rowBuffer holds bytes of a row. It draws from an account as it grows beyond some.
type rowBuffer struct {
	b       []byte
	account *memory.Account
	counted int64
}

// some is the capacity with which a rowBuffer begins. Fields are cut from buffers, and only a NULL may be nil.
const some = 256

func newRowBuffer(account *memory.Account) rowBuffer {
	return rowBuffer{b: make([]byte, 0, some), account: account}
}

// grow makes space for n more bytes.
func (r *rowBuffer) grow(n int) error {
	if n <= cap(r.b)-len(r.b) {
		return nil
	}
	size := len(r.b) + n
	if size > maxRowBytes {
		return errRowTooLong()
	}
	capacity := min(max(size, 2*cap(r.b)), maxRowBytes)
	if r.account != nil {
		if err := r.account.Grow(int64(capacity)); err != nil {
			return err
		}
	}
	b := append(make([]byte, 0, capacity), r.b...)
	r.release()
	r.b, r.counted = b, int64(capacity)
	return nil
}

func errRowTooLong() error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "COPY row is longer than %d bytes", maxRowBytes)
}

func (r *rowBuffer) release() {
	if r.account != nil && r.counted > 0 {
		r.account.Shrink(r.counted)
	}
	r.b, r.counted = nil, 0
}

// lineEnd is how the lines of a stream end. The first line decides, and the others must agree.
type lineEnd uint8

const (
	unknownEnd  lineEnd = iota
	newline             // \n
	carriageEnd         // \r\n
)

// lineReader yields lines without their newline.
type lineReader struct {
	r    *bufio.Reader
	long rowBuffer // a line that did not fit r's buffer
	n    int       // lines read
	// escapes: a newline behind a backslash belongs to the line.
	escapes bool
	// ended: the line last read had a newline, which the last one of a stream may lack.
	ended bool
	end   lineEnd
}

func newLineReader(r *bufio.Reader, account *memory.Account) lineReader {
	return lineReader{r: r, long: rowBuffer{account: account}}
}

// next returns the next line. It may end in a carriage return.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull || err == nil && l.escapes && continues(line) {
		line, err = l.nextLong(line, err)
	}
	if err == io.EOF && len(line) > 0 {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	l.n++
	l.ended = line[len(line)-1] == '\n' && !(l.escapes && continues(line)) // At the end of the stream the last may be escaped.
	if l.ended {
		line = line[:len(line)-1]
	}
	return line, nil
}

func (l *lineReader) nextLong(start []byte, err error) ([]byte, error) {
	l.long.b = l.long.b[:0]
	more := start
	for {
		if err := l.long.grow(len(more)); err != nil {
			return nil, err
		}
		l.long.b = append(l.long.b, more...)
		if err != bufio.ErrBufferFull && (err != nil || !l.escapes || !continues(l.long.b)) {
			return l.long.b, err
		}
		more, err = l.r.ReadSlice('\n')
	}
}

// continues reports whether the newline at the end of line is escaped.
func continues(line []byte) bool {
	i := len(line) - 1
	for i > 0 && line[i-1] == '\\' {
		i--
	}
	return (len(line)-1-i)%2 == 1
}

// endError is the error of a line that ends as those before it do not, or has a carriage return within.
func (l *lineReader) endError(character, escape string) error {
	if l.escapes {
		return malformed("literal %s found in data", character).WithHint(fmt.Sprintf("Use %q to represent %s.", escape, character))
	}
	return malformed("unquoted %s found in data", character).WithHint(fmt.Sprintf("Use quoted CSV field to represent %s.", character))
}

// finish checks how a row's last line ends, and returns how many bytes of it belong to the end. carriage is where its first
// carriage return lies that is no data; -1: there is none.
func (l *lineReader) finish(line []byte, carriage int) (int, error) {
	switch {
	case carriage < 0 && (l.end != carriageEnd || !l.ended):
		if l.ended {
			l.end = newline
		}
		return 0, nil
	case carriage < 0:
		return 0, l.endError("newline", "\n")
	case carriage < len(line)-1 || l.end == newline || l.end == carriageEnd && !l.ended:
		return 0, l.endError("carriage return", "\r")
	}
	l.end = carriageEnd
	return 1, nil
}

// fieldList are the fields of a row: as many as there are columns and one more, so that a row of delimiters takes no memory.
type fieldList struct {
	fields [][]byte
	most   int
	count  int // of all fields
}

func (f *fieldList) reset(columns int) { f.fields, f.most, f.count = f.fields[:0], columns+1, 0 }

func (f *fieldList) add(field []byte) {
	f.count++
	if len(f.fields) < f.most {
		f.fields = append(f.fields, field)
	}
}

// row returns the fields of a row of data.
func (f *fieldList) row(columns int) ([][]byte, error) {
	if f.count > columns {
		return nil, malformed("extra data after last expected column")
	}
	return f.fields, nil
}

func (l *lineReader) close() { l.long.release() }
