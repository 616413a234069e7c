package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
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
	for _, d := range s.Types().All() {
		if d.Kind != types.RangeKind {
			continue
		}
		diff := "-"
		if d.Difference != "" {
			diff = d.Difference
		}
		if err := s.emitRange(d.Type().Ranges(), "-", diff); err != nil {
			return err
		}
	}
	return nil
}

// emitRangeType emits the row of a range or multirange type in pg_type; cols are what all user-defined types have.
func (s *scan) emitRangeType(d *catalog.TypeDescriptor, functions string, cols []col) error {
	return s.emit(append(cols, col{"typtype", letter(byte(d.Kind))}, col{"typacl", types.ACL(d.ACL)}, col{"typsubscript", text("-")},
		col{"typinput", text(functions + "in")}, col{"typoutput", text(functions + "out")}, col{"typreceive", text(functions + "recv")},
		col{"typsend", text(functions + "send")}, col{"typanalyze", text("-")})...)
}

func (s *scan) emitRange(rt *types.RangeTypes, canonical, diff string) error {
	return s.emit(col{"rngtypid", oid(rt.Range.OID)}, col{"rngsubtype", oid(rt.Sub.OID)}, col{"rngmultitypid", oid(rt.Multi.OID)},
		col{"rngcollation", num(collationOf(rt.Sub))}, col{"rngsubopc", oid(uint32(0))}, col{"rngcanonical", text(canonical)}, col{"rngsubdiff", text(diff)})
}
