package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// rangeTypeRows is pg_range.
func rangeTypeRows(s *scan) error {
	if err := s.dataRows(pgdata.Ranges()).all(); err != nil {
		return err
	}
	for _, d := range s.Types().All() {
		if d.Kind != types.RangeKind {
			continue
		}
		rt := d.Type().Ranges()
		err := s.emit(col{"rngtypid", oid(rt.Range.OID)}, col{"rngsubtype", oid(rt.Sub.OID)}, col{"rngmultitypid", oid(rt.Multi.OID)},
			col{"rngcollation", num(collationOf(rt.Sub))}, col{"rngsubopc", num(operatorClass(rt.Sub))}, col{"rngsubdiff", differenceOID(d.Difference, rt.Sub.OID)})
		if err != nil {
			return err
		}
	}
	return nil
}

// differenceOID returns the OID of a function on two values of a type; 0 for no function.
func differenceOID(name string, sub types.OID) types.Datum {
	for _, p := range builtin.ProcsNamed(name) {
		if len(p.Args) == 2 && p.Args[0] == sub && p.Args[1] == sub {
			return oid(uint32(p.OID))
		}
	}
	return num(0)
}

// emitRangeType emits the row of a range or multirange type in pg_type; cols are what all user-defined types have.
func (s *scan) emitRangeType(d *catalog.TypeDescriptor, functions string, cols []col) error {
	return s.emit(append(append(cols, rangeFunctions(functions)...), col{"typtype", letter(byte(d.Kind))}, col{"typacl", types.ACL(d.ACL)})...)
}

// rangeFunctions are the columns of pg_type that name functions, for ranges (range_) or multiranges (multirange_).
func rangeFunctions(prefix string) []col {
	return []col{{"typinput", procOID(prefix + "in")}, {"typoutput", procOID(prefix + "out")}, {"typreceive", procOID(prefix + "recv")},
		{"typsend", procOID(prefix + "send")}, {"typanalyze", procOID(prefix + "typanalyze")}}
}
