package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"unsafe"

	"github.com/cockroachdb/crlib/crbytes"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
)

// keySchemaName is written into every table by Pebble; opening with another schema fails.
const keySchemaName = "percodb.v1"

// A data block contains its keys as columns, in which readers search for a key without assembling keys first:
//
//	prefixes   without the common parts of neighbours
//	versions   numbers, in as many bytes as they differ by in this block: none if they are all the same. Plain
//	           keys, which come before all versions of their prefix, have the largest number
//	plain      which of those that have the largest number are plain keys
const (
	columnPrefix = iota
	columnVersion
	columnPlain
	numKeyColumns
)

var keyColumnTypes = []colblk.DataType{
	columnPrefix:  colblk.DataTypePrefixBytes,
	columnVersion: colblk.DataTypeUint,
	columnPlain:   colblk.DataTypeBool,
}

// prefixBundle is the number of prefixes with a common beginning, a power of two.
const prefixBundle = 16

const plainVersion = math.MaxUint64

// newKeySchema returns the schema of the keys that the package comment describes.
func newKeySchema() pebble.KeySchema {
	return pebble.KeySchema{
		Name:        keySchemaName,
		ColumnTypes: keyColumnTypes,
		NewKeyWriter: func() colblk.KeyWriter {
			w := &keyWriter{}
			w.prefixes.Init(prefixBundle)
			w.versions.Init()
			return w
		},
		InitKeySeekerMetadata: func(meta *colblk.KeySeekerMetadata, d *colblk.DataBlockDecoder) {
			b := d.BlockDecoder()
			*(*keySeeker)(unsafe.Pointer(meta)) = keySeeker{
				prefixes: b.PrefixBytes(columnPrefix), versions: b.Uints(columnVersion), plain: b.Bitmap(columnPlain),
				prefixChanged: d.PrefixChanged(),
			}
		},
		KeySeeker: func(meta *colblk.KeySeekerMetadata) colblk.KeySeeker {
			return (*keySeeker)(unsafe.Pointer(meta))
		},
	}
}

// versionOf returns the number of a suffix.
func versionOf(suffix []byte) (version uint64, plain bool) {
	if len(suffix) == 0 {
		return plainVersion, true
	}
	return ^binary.BigEndian.Uint64(suffix), false
}

// appendSuffix is the inverse of versionOf.
func appendSuffix(dst []byte, version uint64, plain bool) []byte {
	if plain {
		return dst
	}
	return AppendVersion(dst, version)
}

// keyWriter gathers the keys of a block. It implements colblk.KeyWriter.
type keyWriter struct {
	prefixes colblk.PrefixBytesBuilder
	versions colblk.UintBuilder
	plain    colblk.BitmapBuilder
	isPlain  []bool // by row, to be read before the block is finished
}

// ComparePrev implements colblk.KeyWriter. Keys ascend, and a prefix is never the beginning of another's
// suffix, so one that has all of its prefix in common with the previous key has the same.
func (w *keyWriter) ComparePrev(key []byte) colblk.KeyComparison {
	n := split(key)
	rows := w.prefixes.Rows()
	if rows == 0 {
		return colblk.KeyComparison{PrefixLen: int32(n), UserKeyComparison: 1}
	}
	prev := w.prefixes.UnsafeGet(rows - 1)
	common := crbytes.CommonPrefix(prev, key[:n])
	c := colblk.KeyComparison{PrefixLen: int32(n), CommonPrefixLen: int32(common)}
	switch {
	case common < n && common < len(prev):
		c.UserKeyComparison = int32(cmp.Compare(key[common], prev[common]))
	case common < n || common < len(prev):
		c.UserKeyComparison = int32(cmp.Compare(n, len(prev)))
	default:
		last := appendSuffix(make([]byte, 0, suffixLen), w.versions.Get(rows-1), w.isPlain[rows-1])
		c.UserKeyComparison = int32(bytes.Compare(key[n:], last))
	}
	return c
}

// WriteKey implements colblk.KeyWriter.
func (w *keyWriter) WriteKey(row int, key []byte, prefixLen, shared int32) {
	w.prefixes.Put(key[:prefixLen], int(shared))
	version, plain := versionOf(key[prefixLen:])
	w.versions.Set(row, version)
	if plain {
		w.plain.Set(row)
	}
	w.isPlain = append(w.isPlain[:row], plain)
}

// MaterializeKey implements colblk.KeyWriter.
func (w *keyWriter) MaterializeKey(dst []byte, row int) []byte {
	return appendSuffix(append(dst, w.prefixes.UnsafeGet(row)...), w.versions.Get(row), w.isPlain[row])
}

// FinishHeader implements colblk.KeyWriter.
func (w *keyWriter) FinishHeader([]byte) {}

// NumColumns implements colblk.ColumnWriter.
func (w *keyWriter) NumColumns() int { return numKeyColumns }

// DataType implements colblk.ColumnWriter.
func (w *keyWriter) DataType(col int) colblk.DataType { return keyColumnTypes[col] }

func (w *keyWriter) column(col int) colblk.ColumnWriter {
	return [...]colblk.ColumnWriter{&w.prefixes, &w.versions, &w.plain}[col]
}

// Reset implements colblk.ColumnWriter.
func (w *keyWriter) Reset() {
	for col := range numKeyColumns {
		w.column(col).Reset()
	}
	w.isPlain = w.isPlain[:0]
}

// Size implements colblk.ColumnWriter.
func (w *keyWriter) Size(rows int, offset uint32) uint32 {
	offset = w.prefixes.Size(rows, offset)
	offset = w.versions.Size(rows, offset)
	return w.plain.Size(rows, offset)
}

// Finish implements colblk.ColumnWriter.
func (w *keyWriter) Finish(col, rows int, offset uint32, buf []byte) uint32 {
	return w.column(col).Finish(0, rows, offset, buf)
}

// WriteDebug implements colblk.ColumnWriter.
func (w *keyWriter) WriteDebug(dst io.Writer, rows int) {
	for col, name := range []string{"prefixes", "versions", "plain"} {
		fmt.Fprintf(dst, "%d: %s: ", col, name)
		w.column(col).WriteDebug(dst, rows)
		fmt.Fprintln(dst)
	}
}

// keySeeker looks for keys in a block. It implements colblk.KeySeeker. It lies in memory that Pebble
// keeps with the block, which the garbage collector does not look at: all it points to is the block.
type keySeeker struct {
	prefixes      colblk.PrefixBytes
	versions      colblk.UnsafeUints
	plain         colblk.Bitmap
	prefixChanged colblk.Bitmap
}

var _ [colblk.KeySeekerMetadataSize - unsafe.Sizeof(keySeeker{})]byte // it fits

// isPlain is for a row's version.
func (s *keySeeker) isPlain(version uint64, row int) bool {
	return version == plainVersion && s.plain.At(row)
}

// IsLowerBound implements colblk.KeySeeker.
func (s *keySeeker) IsLowerBound(k, syntheticSuffix []byte) bool {
	n := split(k)
	if c := bytes.Compare(s.prefixes.UnsafeFirstSlice(), k[:n]); c != 0 {
		return c > 0
	}
	suffix := syntheticSuffix
	if len(suffix) == 0 {
		version := s.versions.At(0)
		suffix = appendSuffix(make([]byte, 0, suffixLen), version, s.isPlain(version, 0))
	}
	return bytes.Compare(suffix, k[n:]) >= 0
}

// SeekGE implements colblk.KeySeeker.
func (s *keySeeker) SeekGE(key []byte, _ int, _ int8) (row int, equalPrefix bool) {
	n := split(key)
	row, equalPrefix = s.prefixes.Search(key[:n])
	if !equalPrefix || n == len(key) {
		return row, equalPrefix // a plain key is the first of its prefix
	}
	version, _ := versionOf(key[n:])
	if !s.before(row, version) {
		return row, true
	}
	low, high := row+1, s.prefixChanged.SeekSetBitGE(row+1)
	for low < high {
		if mid := int(uint(low+high) / 2); s.before(mid, version) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, true
}

// before reports whether a row lies before a version of its prefix.
func (s *keySeeker) before(row int, version uint64) bool {
	v := s.versions.At(row)
	return v > version || s.isPlain(v, row)
}

// MaterializeUserKey implements colblk.KeySeeker.
func (s *keySeeker) MaterializeUserKey(it *colblk.PrefixBytesIter, prevRow, row int) []byte {
	s.setPrefix(it, prevRow, row)
	version := s.versions.At(row)
	return appendSuffix(it.Buf, version, s.isPlain(version, row))
}

// MaterializeUserKeyWithSyntheticSuffix implements colblk.KeySeeker.
func (s *keySeeker) MaterializeUserKeyWithSyntheticSuffix(it *colblk.PrefixBytesIter, suffix []byte, prevRow, row int) []byte {
	s.setPrefix(it, prevRow, row)
	return append(it.Buf, suffix...)
}

func (s *keySeeker) setPrefix(it *colblk.PrefixBytesIter, prevRow, row int) {
	if prevRow >= 0 && row == prevRow+1 {
		s.prefixes.SetNext(it)
	} else {
		s.prefixes.SetAt(it, row)
	}
}
