package planner

import (
	"encoding/binary"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// rowsPerBlock is into how many rows of a block a ctid divides the hidden row ids: the greatest number of which none is 0.
const rowsPerBlock = 1<<16 - 1

// tupleID makes the ctid of a row from its hidden row id: in their order, and different for different rows. An update keeps it.
var tupleID = &builtin.Overload{
	Name: "ctid", Args: []types.Type{types.TInt8}, Ret: types.Type{OID: types.OIDTid, Mod: -1}, Strict: true, Volatility: builtin.Immutable,
	Fn: func(_ *builtin.Env, a []types.Datum) (types.Datum, error) {
		id := uint64(a[0].Int())
		block := binary.BigEndian.AppendUint32(make([]byte, 0, 6), uint32(id/rowsPerBlock))
		return types.Bytes(binary.BigEndian.AppendUint16(block, uint16(id%rowsPerBlock+1))), nil
	},
}

// tupleRow is the inverse of tupleID; -1 for what is no ctid of a row.
var tupleRow = &builtin.Overload{
	Name: "ctid_row", Args: []types.Type{tupleID.Ret}, Ret: types.TInt8, Strict: true, Volatility: builtin.Immutable,
	Fn: func(_ *builtin.Env, a []types.Datum) (types.Datum, error) {
		b := a[0].Bytes()
		offset := int64(binary.BigEndian.Uint16(b[4:]))
		if offset == 0 {
			return types.Int(-1), nil
		}
		return types.Int(int64(binary.BigEndian.Uint32(b))*rowsPerBlock + offset - 1), nil
	},
}

// byRowID turns the comparison of a table's ctid with a value into one of the row id, which the primary key finds.
func byRowID(x expr.Scalar) expr.Scalar {
	c, ok := x.(*expr.Compare)
	if !ok || c.Op != expr.EQ {
		return x
	}
	id, value := c.L, c.R
	if call, ok := id.(*expr.Call); !ok || call.Fn != tupleID {
		id, value = value, id
	}
	call, ok := id.(*expr.Call)
	if !ok || call.Fn != tupleID {
		return x
	}
	return expr.NewCompare(expr.EQ, call.Args[0], &expr.Call{Fn: tupleRow, Args: []expr.Scalar{value}}, types.TInt8)
}

// systemColumn returns a column that a table has beside its own, nil if there is none of that name: those of system tables, tableoid, ctid of
// tables without primary key, and in RETURNING what is known of the row's version.
//
// Errors: 0A000 for those of PostgreSQL's system columns that percodb has not.
func (it *nsItem) systemColumn(b *binder, name string, pos int) (*nsCol, error) {
	for i := range it.system {
		if it.system[i].name == name {
			return &it.system[i], nil
		}
	}
	if it.scan == nil || it.given || !catalog.IsSystemColumn(name) {
		return nil, nil
	}
	t := it.scan.table
	switch virtual := t.Kind == catalog.KindVirtual; {
	case name == "tableoid" && virtual:
		return nil, nil
	case name == "tableoid" && t.IsPartitioned():
		return &nsCol{name: name, id: it.scan.originColumn(b)}, nil
	case name == "tableoid":
		return &nsCol{name: name, e: it.presentOnly(b, &expr.Const{Value: types.Int(int64(t.OID())), Typ: types.TOid})}, nil
	case name == "ctid" && !virtual && hiddenKey(t):
		id := b.column(it.scan.cols[t.Ordinal(t.Primary.Columns[0].ColumnID)], pos)
		return &nsCol{name: name, e: &expr.Call{Fn: tupleID, Args: []expr.Scalar{id}}}, nil
	case it.returned != 0:
		return it.versionColumn(b, name, pos)
	}
	return nil, noSystemColumn(name, pos)
}

// presentOnly is an expression for the rows of the item, NULL where an outer join has none.
func (it *nsItem) presentOnly(b *binder, e expr.Scalar) expr.Scalar {
	if it.absent == nil {
		return e
	}
	present := &expr.IsNull{X: it.absent.marker(b, it), Not: true}
	return &expr.Case{Whens: []expr.When{{Cond: present, Then: e}}, Typ: e.Type()}
}

// noSystemColumn refuses what percodb does not know of a row.
func noSystemColumn(name string, pos int) error {
	hint := "Keep the version of a row in a column of its own."
	if name == "ctid" {
		hint = "Use the primary key; tables without one have a ctid."
	}
	return pgerror.Unsupported("the system column "+name, hint).At(pos)
}

// versionColumn is xmin or xmax of a row in RETURNING: the transaction itself has written the row's version or deleted it. An INSERT that has
// updated an existing row instead has locked that first, which its xmax tells.
func (it *nsItem) versionColumn(b *binder, name string, pos int) (*nsCol, error) {
	own, err := b.ownTransaction(pos)
	if err != nil {
		return nil, err
	}
	deleted := it.returned == catalog.TriggerDelete
	none := &expr.Const{Value: types.Int(0), Typ: own.Type()}
	switch {
	case name == "xmin" && !deleted, name == "xmax" && deleted:
		return &nsCol{name: name, e: own}, nil
	case name == "xmax" && !it.mayReplace:
		return &nsCol{name: name, e: none}, nil
	case name == "xmax" && !it.scan.table.IsPartitioned():
		replaced := b.column(it.scan.replacedColumn(b), pos)
		return &nsCol{name: name, e: &expr.Case{Whens: []expr.When{{Cond: replaced, Then: own}}, Else: none, Typ: own.Type()}}, nil
	}
	return nil, noSystemColumn(name, pos)
}

// ownTransaction is the number of the transaction as an xid.
func (b *binder) ownTransaction(pos int) (expr.Scalar, error) {
	id, err := b.function(builtin.SystemFunc("pg_current_xact_id"), nil, nil, pos)
	if err != nil {
		return nil, err
	}
	return b.coerce(id, types.Type{OID: types.OIDXid, Mod: -1}, castExplicit, pos)
}

// originColumn returns the column of the partition that a row of a partitioned table is from.
func (s *scanRel) originColumn(b *binder) int {
	if s.origin == 0 {
		s.origin = len(b.cols)
		b.cols = append(b.cols, columnInfo{Column: Column{Name: "tableoid", Type: types.TOid, Table: s.alias}, notNull: true})
	}
	return s.origin
}

// replacedColumn returns the column that tells in RETURNING of INSERT … ON CONFLICT DO UPDATE whether the row has been updated.
func (s *scanRel) replacedColumn(b *binder) int {
	if s.replaced == 0 {
		s.replaced = b.newColumn("replaced", types.TBool)
	}
	return s.replaced
}

// unassignable is the error for the assignment to a column that a table does not have, or has as one of the system.
func unassignable(t *catalog.TableDescriptor, name string, pos int) error {
	if catalog.IsSystemColumn(name) && t.Kind != catalog.KindView {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot assign to system column \"%s\"", name).At(pos)
	}
	return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, t.Name).At(pos)
}
