// Package sortrun keeps sorted runs of keys and values in a temporary file: what a transaction writes
// beyond its share of memory.
//
//	file    run 0                 │ run 1          │ …
//	run     block │ block │ block │ block │ block  │
//	block   uvarint key length, uvarint value length, key, value; and again
//
// A run is written once, in key order, and may then be read by any number of cursors at the same time. The
// bounds of each block stay in memory, less than a percent of the data. The file has no name, so nothing
// is left of it however the process ends.
package sortrun

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sort"
	"sync/atomic"

	"github.com/percodb/percodb/internal/errkind"
)

// blockBytes is where a block ends; one record may make it longer.
const blockBytes = 32 << 10

// Error: the temporary file could not be written or read.
type Error struct{ Err error }

func (e *Error) Error() string { return fmt.Sprintf("could not use a temporary file: %v", e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Kind implements errkind.Error.
func (e *Error) Kind() errkind.Kind { return errkind.TempFile }

// File is a temporary file. Runs are added one after the other; finished runs may be read by many.
type File struct {
	f     *os.File
	size  int64
	users atomic.Int32
}

// Create makes a file in dir; "" is the system's directory for temporary files.
func Create(dir string) (*File, error) {
	f, err := os.CreateTemp(dir, "percodb-temp-*")
	if err != nil {
		return nil, &Error{Err: err}
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, &Error{Err: errors.Join(err, f.Close())}
	}
	file := &File{f: f}
	file.users.Store(1)
	return file, nil
}

// Share adds a user of the file, who calls Close as well.
func (f *File) Share() *File {
	f.users.Add(1)
	return f
}

// Close deletes the file when the last of its users calls it: runs must not be read any more then.
func (f *File) Close() error {
	if f.users.Add(-1) > 0 {
		return nil
	}
	return f.f.Close()
}

// SizeBytes is how large the file is.
func (f *File) SizeBytes() int64 { return f.size }

// Run is a finished run.
type Run struct {
	file   *File
	blocks []Block
	// Len is the number of records, SizeBytes their keys and values.
	Len, SizeBytes int64
}

// Follows says that r's keys are all above those of before, which is in the same file.
func (r *Run) Follows(before *Run) bool {
	return r.file == before.file && len(r.blocks) > 0 && len(before.blocks) > 0 && bytes.Compare(r.First(), before.Last()) > 0
}

// Extend returns the run that is r and then next, which follows it. Nothing is copied. r stays as it is, and is
// extended once at most.
func (r *Run) Extend(next *Run) *Run {
	return &Run{file: r.file, blocks: append(r.blocks, next.blocks...), Len: r.Len + next.Len, SizeBytes: r.SizeBytes + next.SizeBytes}
}

// Block is a group of consecutive records of a run. First and Last are its smallest and its largest key.
type Block struct {
	First, Last []byte
	Len         int   // records
	Tags        uint8 // the caller's, of all records together
	file        *File
	at          int64
	size        uint32
	sum         uint32
	marked      bool
}

// SizeBytes is how large the block is.
func (b *Block) SizeBytes() int64 { return int64(b.size) }

// First returns the smallest key, nil of an empty run.
func (r *Run) First() []byte {
	if len(r.blocks) == 0 {
		return nil
	}
	return r.blocks[0].First
}

// Last returns the largest key, nil of an empty run.
func (r *Run) Last() []byte {
	if len(r.blocks) == 0 {
		return nil
	}
	return r.blocks[len(r.blocks)-1].Last
}

// Blocks is into how many groups of consecutive records the run is divided.
func (r *Run) Blocks() int { return len(r.blocks) }

// recordBytes is the number of bytes that take as long to process as a record in addition to its own.
const recordBytes = 128

// work is about how long the records of the block take to process.
func (b *Block) work() int64 { return b.SizeBytes() + int64(b.Len)*recordBytes }

// Parts divides the run into at most n consecutive runs that take about the same time to process. They share its memory.
func (r *Run) Parts(n int) []*Run {
	total := int64(0)
	for i := range r.blocks {
		total += r.blocks[i].work()
	}
	parts := []*Run{{file: r.file}}
	done, from := int64(0), 0
	for i := range r.blocks {
		b, p := &r.blocks[i], parts[len(parts)-1]
		if done*int64(n) >= total*int64(len(parts)) {
			p, from = &Run{file: r.file}, i
			parts = append(parts, p)
		}
		p.blocks = r.blocks[from : i+1 : i+1]
		p.Len += int64(b.Len)
		p.SizeBytes += b.SizeBytes()
		done += b.work()
	}
	return parts
}

// Block returns one of the groups; it belongs to the run.
func (r *Run) Block(i int) *Block { return &r.blocks[i] }

// Adopted says that a block is of another file than the run's.
func (r *Run) Adopted(b *Block) bool { return b.file != r.file }

// Writer makes one run. No other Writer of the file may be in use.
type Writer struct {
	run *Run
	buf []byte
	// first and last are offsets of keys in buf: that of the block's first record, and its newest.
	firstAt, firstEnd int
	lastAt, lastEnd   int
	records           int // in buf
	marked            bool
	tags              uint8
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// NewWriter begins a run.
func (f *File) NewWriter() *Writer {
	return &Writer{run: &Run{file: f}, buf: make([]byte, 0, blockBytes+4<<10)}
}

// Add appends a record; keys ascend, and may be equal. It copies key and value.
func (w *Writer) Add(key, value []byte) error {
	if len(w.buf) >= blockBytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	empty := len(w.buf) == 0
	w.buf = binary.AppendUvarint(w.buf, uint64(len(key)))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(value)))
	w.lastAt = len(w.buf)
	w.buf = append(w.buf, key...)
	w.lastEnd = len(w.buf)
	if empty {
		w.firstAt, w.firstEnd = w.lastAt, w.lastEnd
	}
	w.buf = append(w.buf, value...)
	w.records++
	w.run.Len++
	w.run.SizeBytes += int64(len(key) + len(value))
	return nil
}

// Mark marks the block of the record that was added last: Merge.Block does not yield it.
func (w *Writer) Mark() { w.marked = len(w.buf) > 0 }

// Tag adds to the tags of the block of the record that was added last.
func (w *Writer) Tag(tags uint8) { w.tags |= tags }

// AddBlock appends the records of a block of another file, which come from there when they are read: nothing is
// copied.
func (w *Writer) AddBlock(b *Block) error {
	if len(w.buf) > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.run.blocks = append(w.run.blocks, *b)
	w.run.Len += int64(b.Len)
	w.run.SizeBytes += b.SizeBytes()
	return nil
}

func (w *Writer) flush() error {
	f, r := w.run.file, w.run
	if _, err := f.f.WriteAt(w.buf, f.size); err != nil {
		return &Error{Err: err}
	}
	r.blocks = append(r.blocks, Block{
		First: bytes.Clone(w.buf[w.firstAt:w.firstEnd]), Last: bytes.Clone(w.buf[w.lastAt:w.lastEnd]), Len: w.records,
		file: f, at: f.size, size: uint32(len(w.buf)), sum: crc32.Checksum(w.buf, castagnoli), marked: w.marked, Tags: w.tags,
	})
	f.size += int64(len(w.buf))
	w.buf, w.records, w.marked, w.tags = w.buf[:0], 0, false, 0
	return nil
}

// Finish ends the run.
func (w *Writer) Finish() (*Run, error) {
	if len(w.buf) > 0 {
		if err := w.flush(); err != nil {
			return nil, err
		}
	}
	w.buf = nil
	return w.run, nil
}

// Cursor walks over a run in either direction. Key and Value are valid until the next move. After a move
// that returned false, Err tells an end from a failure. One goroutine's.
type Cursor struct {
	run  *Run
	at   int // the block in buf
	buf  []byte
	recs []record
	i    int // the record in recs
	err  error
}

// record says where a record lies in its block.
type record struct{ key, value, end uint32 }

// NewCursor returns a cursor that stands nowhere.
func (r *Run) NewCursor() *Cursor { return &Cursor{run: r, at: -1} }

// Key is that of the present record.
func (c *Cursor) Key() []byte { r := &c.recs[c.i]; return c.buf[r.key:r.value:r.value] }

// Value is that of the present record.
func (c *Cursor) Value() []byte { r := &c.recs[c.i]; return c.buf[r.value:r.end:r.end] }

// Err returns the failure that ended the walk, or nil.
func (c *Cursor) Err() error { return c.err }

// First moves to the first record.
func (c *Cursor) First() bool { return c.load(0) && c.settle(0) }

// SeekBlock moves to the first record of a block of the run.
func (c *Cursor) SeekBlock(i int) bool { return c.load(i) && c.settle(0) }

// SeekGE moves to the first record with a key at or above key.
func (c *Cursor) SeekGE(key []byte) bool {
	blocks := c.run.blocks
	// The first block that begins at key or above may be preceded by records at or above key.
	i := sort.Search(len(blocks), func(i int) bool { return bytes.Compare(blocks[i].First, key) >= 0 })
	if i > 0 {
		if !c.load(i - 1) {
			return false
		}
		if j := c.search(key); j < len(c.recs) {
			return c.settle(j)
		}
	}
	return c.load(i) && c.settle(0)
}

// SeekLT moves to the last record with a key below key; an empty key is no bound.
func (c *Cursor) SeekLT(key []byte) bool {
	blocks := c.run.blocks
	i := len(blocks)
	if len(key) > 0 {
		i = sort.Search(len(blocks), func(i int) bool { return bytes.Compare(blocks[i].First, key) >= 0 })
	}
	if i == 0 || !c.load(i-1) {
		return false
	}
	if len(key) == 0 {
		return c.settle(len(c.recs) - 1)
	}
	return c.settle(c.search(key) - 1)
}

// Next moves to the following record.
func (c *Cursor) Next() bool {
	if c.i+1 < len(c.recs) {
		c.i++
		return true
	}
	return c.load(c.at+1) && c.settle(0)
}

// More says that the following record shares the present one's memory: both are valid until the cursor
// leaves the block.
func (c *Cursor) More() bool { return c.i+1 < len(c.recs) }

// Adopted says that the present record is in a block of another file than the run's.
func (c *Cursor) Adopted() bool { return c.run.Adopted(&c.run.blocks[c.at]) }

// Prev moves to the preceding record.
func (c *Cursor) Prev() bool {
	if c.i > 0 {
		c.i--
		return true
	}
	return c.at > 0 && c.load(c.at-1) && c.settle(len(c.recs)-1)
}

func (c *Cursor) settle(i int) bool { c.i = i; return true }

// search returns the first record of the block with a key at or above key.
func (c *Cursor) search(key []byte) int {
	return sort.Search(len(c.recs), func(j int) bool {
		return bytes.Compare(c.buf[c.recs[j].key:c.recs[j].value], key) >= 0
	})
}

// load reads a block; false at the end of the run.
func (c *Cursor) load(i int) bool {
	if c.err != nil || i >= len(c.run.blocks) {
		return false
	}
	if i == c.at {
		return true
	}
	b := &c.run.blocks[i]
	if cap(c.buf) < int(b.size) {
		c.buf = make([]byte, b.size)
	}
	c.buf = c.buf[:b.size]
	c.at = -1
	if _, err := b.file.f.ReadAt(c.buf, b.at); err != nil {
		c.err = &Error{Err: err}
		return false
	}
	if crc32.Checksum(c.buf, castagnoli) != b.sum || !c.index() {
		c.err = &Error{Err: errors.New("a block was changed on disk")}
		return false
	}
	c.at = i
	return true
}

// index finds the records of the block.
func (c *Cursor) index() bool {
	c.recs = c.recs[:0]
	for at := 0; at < len(c.buf); {
		k, n := binary.Uvarint(c.buf[at:])
		if n <= 0 {
			return false
		}
		at += n
		v, n := binary.Uvarint(c.buf[at:])
		if n <= 0 || k+v > uint64(len(c.buf)-at-n) {
			return false
		}
		at += n
		end := at + int(k+v)
		c.recs = append(c.recs, record{key: uint32(at), value: uint32(at) + uint32(k), end: uint32(end)})
		at = end
	}
	return len(c.recs) > 0
}
