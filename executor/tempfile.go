package executor

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// tempFile is a temporary file that is unlinked when it is created, so nothing remains of it however the process ends.
// It contains lists of rows in pages: many lists are written concurrently, and the pages of a dropped list are reused.
//
//	pages   A0 │ B0 │ A1 │ C0 │ …     list A: the bytes of A0, then those of A1
//	row     uvarint length, then its datums as length and bytes
//
// Its buffers, a page for every list being written and up to maxReadBytes for each reader, are not charged to the
// statement: they are bounded by the number of lists.
type tempFile struct {
	file  *os.File
	pages int64    // handed out so far: the file's size
	free  []int64  // pages given back
	spare [][]byte // buffers not in use
	row   []byte   // scratch: the row being written
}

const (
	tempPageBytes = 64 << 10
	maxReadBytes  = tempPageBytes
)

func (ex *execution) newTempFile() (*tempFile, error) {
	f, err := os.CreateTemp(ex.rt.TempDir, "percodb-temp-*")
	if err != nil {
		return nil, tempError(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, tempError(errors.Join(err, f.Close()))
	}
	return &tempFile{file: f}, nil
}

// tempError explains a failure of the temporary file.
func tempError(err error) error {
	code := pgerror.IOError
	if errors.Is(err, syscall.ENOSPC) {
		code = pgerror.DiskFull
	}
	e := pgerror.New(code, "could not use a temporary file: %v", err)
	e.Cause = err
	return e.WithHint("What does not fit into memory needs room in the directory for temporary files (TMPDIR).")
}

// close gives the file up, which deletes it.
func (f *tempFile) close() error { return f.file.Close() }

// bytes is the size of the file.
func (f *tempFile) bytes() int64 { return f.pages * tempPageBytes }

// storable reports whether values of all types can be written.
func storable(ts []types.Type) bool {
	for _, t := range ts {
		if t.KindOf() == types.KindRow || t.Underlying().Elem().KindOf() == types.KindRow || t.HasRow() {
			return false
		}
	}
	return true
}

// encode returns the bytes of a row, valid until the next call: the datums of key, then those of row.
func (f *tempFile) encode(key, row types.Row) ([]byte, error) {
	// The datums follow space for the longest length.
	const room = binary.MaxVarintLen64
	buf := append(f.row[:0], make([]byte, room)...)
	for _, part := range [2]types.Row{key, row} {
		for _, d := range part {
			at := len(buf)
			buf = append(buf, 0)
			var err error
			if buf, err = rowenc.AppendDatum(buf, d); err != nil {
				return nil, err
			}
			buf = prefixLength(buf, at)
		}
	}
	f.row = buf
	var head [room]byte
	n := binary.PutUvarint(head[:], uint64(len(buf)-room))
	copy(buf[room-n:], head[:n])
	return buf[room-n:], nil
}

// prefixLength writes the length of the bytes after b[at] there, moving them if one byte is too few.
func prefixLength(b []byte, at int) []byte {
	n := len(b) - at - 1
	if n < 0x80 {
		b[at] = byte(n)
		return b
	}
	var head [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(head[:], uint64(n))
	b = append(b, head[1:k]...)
	copy(b[at+k:], b[at+1:len(b)-k+1])
	copy(b[at:], head[:k])
	return b
}

// tempList is a list of rows in a temporary file: rows are added, finish ends that, and from then on
// it may be read, any number of times. The zero list with a file is empty.
type tempList struct {
	file  *tempFile
	pages []int64
	page  []byte // the incomplete page; nil: none
	size  int64  // in bytes
	rows  int64
}

// add appends a row made of the datums of key and of row; key may be nil.
func (l *tempList) add(key, row types.Row) error {
	b, err := l.file.encode(key, row)
	if err != nil {
		return err
	}
	l.rows++
	l.size += int64(len(b))
	for len(b) > 0 {
		if l.page == nil {
			l.page = l.file.takeBuffer()
		}
		at := len(l.page)
		n := copy(l.page[at:cap(l.page)], b)
		l.page, b = l.page[:at+n], b[n:]
		if len(l.page) == cap(l.page) {
			if err := l.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish writes the rows still in memory; no row may be added after it.
func (l *tempList) finish() error {
	if l.page == nil {
		return nil
	}
	return l.flush()
}

func (l *tempList) flush() error {
	f := l.file
	page := f.takePage()
	l.pages = append(l.pages, page)
	_, err := f.file.WriteAt(l.page, page*tempPageBytes)
	f.spare = append(f.spare, l.page[:0])
	l.page = nil
	if err != nil {
		return tempError(err)
	}
	return nil
}

// drop gives the list's pages to lists to come.
func (l *tempList) drop() {
	if l.file != nil {
		l.file.free = append(l.file.free, l.pages...)
	}
	*l = tempList{file: l.file}
}

func (f *tempFile) takePage() int64 {
	if n := len(f.free); n > 0 {
		page := f.free[n-1]
		f.free = f.free[:n-1]
		return page
	}
	f.pages++
	return f.pages - 1
}

func (f *tempFile) takeBuffer() []byte {
	if n := len(f.spare); n > 0 {
		b := f.spare[n-1]
		f.spare = f.spare[:n-1]
		return b
	}
	return make([]byte, 0, tempPageBytes)
}

// tempReader reads a list from its beginning to its end.
type tempReader struct {
	list  *tempList
	at    int64 // bytes read off the file so far
	in    *bufio.Reader
	bytes []byte // memory of row's datums
	row   types.Row
}

// open begins to read a list, which is finished, through a buffer of so many bytes if the reader has
// none yet.
func (r *tempReader) open(l *tempList, size int) {
	r.list, r.at = l, 0
	if r.in == nil {
		r.in = bufio.NewReaderSize((*tempPages)(r), size)
		r.row = types.Row{}
		return
	}
	r.in.Reset((*tempPages)(r))
}

// next returns the next row, valid until the following call, or nil at the end.
func (r *tempReader) next() (types.Row, error) {
	n, err := binary.ReadUvarint(r.in)
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, tempError(err)
	}
	if uint64(cap(r.bytes)) < n {
		r.bytes = make([]byte, n)
	}
	b := r.bytes[:n]
	if _, err := io.ReadFull(r.in, b); err != nil {
		return nil, tempError(err)
	}
	r.row = r.row[:0]
	for len(b) > 0 {
		size, k := binary.Uvarint(b)
		if k <= 0 || size > uint64(len(b)-k) {
			return nil, tempError(errors.New("a row is torn"))
		}
		d, err := rowenc.DecodeDatum(b[k : k+int(size)])
		if err != nil {
			return nil, err
		}
		r.row = append(r.row, d)
		b = b[k+int(size):]
	}
	return r.row, nil
}

// tempPages reads the bytes of a reader's list, page after page.
type tempPages tempReader

func (r *tempPages) Read(p []byte) (int, error) {
	left := r.list.size - r.at
	if left == 0 {
		return 0, io.EOF
	}
	page, within := r.list.pages[r.at/tempPageBytes], r.at%tempPageBytes
	p = p[:min(int64(len(p)), tempPageBytes-within, left)]
	n, err := r.list.file.file.ReadAt(p, page*tempPageBytes+within)
	r.at += int64(n)
	if n == len(p) {
		return n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
