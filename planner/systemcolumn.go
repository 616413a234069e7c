package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// systemColumn returns a column that a table has beside its own, nil if there is none of that name: those of system tables, and tableoid.
func (it *nsItem) systemColumn(b *binder, name string) *nsCol {
	for i := range it.system {
		if it.system[i].name == name {
			return &it.system[i]
		}
	}
	if name != "tableoid" || it.scan == nil || it.given || it.scan.table.Kind == catalog.KindVirtual {
		return nil
	}
	if it.scan.table.IsPartitioned() {
		return &nsCol{name: name, id: it.scan.originColumn(b)}
	}
	oid := expr.Scalar(&expr.Const{Value: types.Int(int64(it.scan.table.OID())), Typ: types.TOid})
	if it.absent != nil {
		present := &expr.IsNull{X: it.absent.marker(b, it), Not: true}
		oid = &expr.Case{Whens: []expr.When{{Cond: present, Then: oid}}, Typ: types.TOid}
	}
	return &nsCol{name: name, e: oid}
}

// originColumn returns the column of the partition that a row of a partitioned table is from.
func (s *scanRel) originColumn(b *binder) int {
	if s.origin == 0 {
		s.origin = len(b.cols)
		b.cols = append(b.cols, columnInfo{Column: Column{Name: "tableoid", Type: types.TOid, Table: s.alias}, notNull: true})
	}
	return s.origin
}
