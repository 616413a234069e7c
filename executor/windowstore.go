package executor

import (
	"sort"

	"github.com/percodb/percodb/sql/types"
)

// windowStore keeps the rows of a partition by their position. Rows are in segments: those not used for the longest time
// leave memory for a temporary file when it is crowded, and are read back on demand.
//
//	segments   │ dropped │ in the file │ in memory │ in the file │ being filled │
//	           trim ─────┘                                        └── add
type windowStore struct {
	ex     *execution
	mayNot bool // some column has a type that cannot be written to a file
	segs   []*windowSegment
	recent *windowSegment // found last
	spare  *windowSegment
	n      int64 // rows added, those dropped included
	held   int64 // by the segments
	file   *tempFile
	reader tempReader
	clock  uint64
	// tempBytes is the size of the files of earlier runs.
	tempBytes int64
}

// windowSegment is a sequence of rows. In memory are all of them or none.
type windowSegment struct {
	from, count int64
	rows        rowBuffer
	list        tempList
	stored      bool // list has the rows
	used        uint64
}

const (
	segmentRows  = 1024
	segmentBytes = 256 << 10
	// segmentsKept is how many segments stay in memory however crowded it is: the one being filled, and those of the current
	// row and of the ends of its frame.
	segmentsKept = 4
)

func (s *windowSegment) loaded() bool { return len(s.rows.rows) > 0 }

// add appends a copy of row.
func (s *windowStore) add(row types.Row) error {
	var last *windowSegment
	if n := len(s.segs); n > 0 {
		last = s.segs[n-1]
	}
	if last == nil || last.count >= segmentRows || last.rows.held >= min(segmentBytes, s.ex.mem.limit/32) {
		if err := s.makeRoom(); err != nil {
			return err
		}
		last = s.newSegment()
	}
	before := last.rows.held
	err := last.rows.add(row)
	s.held += last.rows.held - before
	last.count++
	s.n++
	return err
}

func (s *windowStore) newSegment() *windowSegment {
	seg := s.spare
	if s.spare = nil; seg == nil {
		seg = &windowSegment{rows: rowBuffer{mem: &s.ex.mem}}
	}
	seg.from, seg.count, seg.stored, seg.used = s.n, 0, false, s.clock
	s.segs = append(s.segs, seg)
	return seg
}

// at returns the row at a position, which was added and not dropped. It is valid until the next reset or trim.
func (s *windowStore) at(pos int64) (types.Row, error) {
	seg := s.recent
	if seg == nil || pos < seg.from || pos >= seg.from+seg.count {
		i := sort.Search(len(s.segs), func(i int) bool { return s.segs[i].from > pos }) - 1
		seg = s.segs[i]
		s.recent = seg
		s.clock++
		seg.used = s.clock
	}
	if !seg.loaded() {
		if err := s.load(seg); err != nil {
			return nil, err
		}
	}
	return seg.rows.rows[pos-seg.from], nil
}

// load reads a segment back.
func (s *windowStore) load(seg *windowSegment) error {
	if err := s.makeRoom(); err != nil {
		return err
	}
	s.reader.open(&seg.list, maxReadBytes)
	for {
		row, err := s.reader.next()
		if row == nil || err != nil {
			return err
		}
		before := seg.rows.held
		err = seg.rows.add(row)
		s.held += seg.rows.held - before
		if err != nil {
			return err
		}
	}
}

// makeRoom moves segments to the file while memory is crowded.
func (s *windowStore) makeRoom() error {
	for !s.mayNot && s.ex.mem.crowded(s.held) {
		var oldest *windowSegment
		loaded := 0
		for i, seg := range s.segs {
			if !seg.loaded() {
				continue
			}
			// The last one is being filled: the file would have a part of its rows.
			if loaded++; seg != s.recent && i < len(s.segs)-1 && (oldest == nil || seg.used < oldest.used) {
				oldest = seg
			}
		}
		if loaded < segmentsKept {
			return nil
		}
		if err := s.evict(oldest); err != nil {
			return err
		}
	}
	return nil
}

// evict moves a segment to the file. Its rows may still be referred to, so that their memory is left to the collector.
func (s *windowStore) evict(seg *windowSegment) error {
	if !seg.stored {
		if s.file == nil {
			file, err := s.ex.newTempFile()
			if err != nil {
				return err
			}
			s.file = file
		}
		seg.list = tempList{file: s.file}
		for _, row := range seg.rows.rows {
			if err := seg.list.add(nil, row); err != nil {
				return err
			}
		}
		if err := seg.list.finish(); err != nil {
			return err
		}
		seg.stored = true
	}
	s.held -= seg.rows.held
	seg.rows.escapes = true
	seg.rows.release()
	seg.rows.escapes = false
	return nil
}

// trim drops rows before a position, as far as whole segments consist of them.
func (s *windowStore) trim(pos int64) {
	n := 0
	for n < len(s.segs)-1 && s.segs[n].from+s.segs[n].count <= pos {
		s.drop(s.segs[n])
		n++
	}
	if n > 0 {
		s.segs = append(s.segs[:0], s.segs[n:]...)
	}
}

func (s *windowStore) drop(seg *windowSegment) {
	s.held -= seg.rows.held
	seg.rows.reset()
	if seg.stored {
		seg.list.drop()
	}
	if s.recent == seg {
		s.recent = nil
	}
	s.spare = seg
}

// reset drops all rows.
func (s *windowStore) reset() {
	for _, seg := range s.segs {
		s.drop(seg)
	}
	clear(s.segs)
	s.segs, s.n = s.segs[:0], 0
}

// release drops all rows and gives the memory and the file back.
func (s *windowStore) release() error {
	s.reset()
	if s.spare != nil {
		s.spare.rows.release()
		s.spare = nil
	}
	if s.file == nil {
		return nil
	}
	s.tempBytes += s.file.bytes()
	f := s.file
	s.file = nil
	return f.close()
}

// spilledBytes is the size of the files that were needed.
func (s *windowStore) spilledBytes() int64 {
	if s.file != nil {
		return s.tempBytes + s.file.bytes()
	}
	return s.tempBytes
}
