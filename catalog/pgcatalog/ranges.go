package pgcatalog

import (
	"github.com/percodb/percodb/sql/types"
)

// rangeTypeRows is pg_range.
func rangeTypeRows(s *scan) error {
	for _, rt := range types.BuiltinRanges() {
		name := rt.Range.Info().Name
		canonical := "-"
		if rt.Discrete() {
			canonical = name + "_canonical"
		}
		if err := s.emitRange(rt, canonical, name+"_subdiff"); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) emitRange(rt *types.RangeTypes, canonical, diff string) error {
	return s.emit(col{"rngtypid", oid(rt.Range.OID)}, col{"rngsubtype", oid(rt.Sub.OID)}, col{"rngmultitypid", oid(rt.Multi.OID)},
		col{"rngcollation", num(collationOf(rt.Sub))}, col{"rngsubopc", oid(uint32(0))}, col{"rngcanonical", text(canonical)}, col{"rngsubdiff", text(diff)})
}
