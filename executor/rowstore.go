package executor

import (
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// RowStore is a first-in first-out queue of rows: in memory up to its share, and beyond that in a temporary file. Not
// safe for concurrent use.
//
//	Add ──▶ rows in memory, until it is crowded ──▶ Next
//	    └──▶ list in the file, then further lists ──┘
//
// When there is a file, all rows go there. The list being read accepts no more rows; later ones go to the next list.
type RowStore struct {
	ex      *execution
	mayNot  bool // some column has a type that cannot be written to a file
	rows    rowBuffer
	at      int // the next of rows
	file    *tempFile
	lists   []*tempList
	reading bool // the first of lists
	reader  tempReader
}

// NewRowStore creates a store that does not belong to a Runner, for rows of these columns. It uses only the memory and
// temporary-file settings of rt.
func NewRowStore(columns []planner.Column, rt *Runtime) *RowStore {
	ex := &execution{}
	ex.bind(rt)
	s := &RowStore{}
	s.init(ex, columns)
	return s
}

func (s *RowStore) init(ex *execution, columns []planner.Column) {
	s.ex, s.rows.mem, s.mayNot = ex, &ex.mem, !storable(columnTypes(columns))
}

// Add keeps a copy of row.
func (s *RowStore) Add(row types.Row) error {
	if s.file == nil {
		if s.mayNot || !s.ex.mem.crowded(s.rows.held) {
			return s.rows.add(row)
		}
		file, err := s.ex.newTempFile()
		if err != nil {
			return err
		}
		s.file = file
	}
	if n := len(s.lists); n == 0 || n == 1 && s.reading {
		s.lists = append(s.lists, &tempList{file: s.file})
	}
	return s.lists[len(s.lists)-1].add(nil, row)
}

// Next takes the next row, valid until the following call of any method; nil means that there is none.
func (s *RowStore) Next() (types.Row, error) {
	if s.at < len(s.rows.rows) {
		s.at++
		return s.rows.rows[s.at-1], nil
	}
	for len(s.lists) > 0 {
		if !s.reading {
			if err := s.lists[0].finish(); err != nil {
				return nil, err
			}
			s.rows.release()
			s.at, s.reading = 0, true
			s.reader.open(s.lists[0], maxReadBytes)
		}
		if row, err := s.reader.next(); row != nil || err != nil {
			return row, err
		}
		s.lists[0].drop()
		s.lists, s.reading = s.lists[1:], false
	}
	return nil, nil
}

// Reset drops all rows.
func (s *RowStore) Reset() error {
	s.rows.release()
	s.at, s.lists, s.reading = 0, nil, false
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.close()
}

// Close is Reset of a store that does not belong to a Runner; the store cannot be used afterwards.
func (s *RowStore) Close() error {
	err := s.Reset()
	s.ex.unbind()
	return err
}
