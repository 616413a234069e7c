package pgcatalog

import (
	"context"
	_ "embed" // for the lists of columns
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

//go:embed columns.txt
var columnsText string

//go:embed information.txt
var informationText string

//go:embed own.txt
var ownText string

// systemTable is a system table as this package knows it.
type systemTable struct {
	desc *catalog.TableDescriptor
	kind byte // relkind: r or v
	// template is the row with every column at its default: NULL, or the type's zero.
	template types.Row
	ordinals map[string]int
}

// Tables makes the descriptors of all system tables, for catalog.Options.System.
func Tables() []*catalog.TableDescriptor {
	byName := rowsFunctions()
	maps.Copy(byName, informationRows())
	maps.Copy(byName, statisticsRows())
	maps.Copy(byName, usageViews())
	var all []*catalog.TableDescriptor
	kinds := map[uint64]byte{}
	for _, t := range parse(columnsText + informationText + ownText) {
		if t.kind == 'r' {
			t.addTableOID()
		}
		kinds[t.desc.ID] = t.kind
		restrict(t.desc)
		fill := byName[t.desc.Schema+"."+t.desc.Name]
		t.desc.Rows = func(ctx context.Context, r catalog.Resolver, view catalog.SystemView, yield func(types.Row) error) error {
			if fill == nil {
				return nil
			}
			s := &scan{ctx: ctx, Resolver: r, view: view, table: t, kinds: kinds, yield: yield, row: make(types.Row, len(t.template))}
			if err := s.reads(); err != nil {
				return err
			}
			return fill(s)
		}
		all = append(all, t.desc)
	}
	return all
}

// parse reads the lists of columns, which are part of the program: what it cannot read is a bug.
func parse(text string) []*systemTable {
	var all []*systemTable
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case !strings.HasPrefix(line, " "):
			schema, name, _ := strings.Cut(fields[0], ".")
			oid, err := strconv.ParseUint(fields[1], 10, 32)
			if err != nil {
				panic(err)
			}
			all = append(all, &systemTable{kind: fields[2][0], ordinals: map[string]int{}, desc: &catalog.TableDescriptor{
				ID: oid, Version: 1, WriterVersion: 1, Kind: catalog.KindVirtual, Schema: schema, Name: name,
			}})
		default:
			all[len(all)-1].addColumn(fields[0], fields[1])
		}
	}
	return all
}

func (t *systemTable) addColumn(name, typeName string) {
	nullable := strings.HasSuffix(typeName, "?")
	typeName = strings.TrimSuffix(typeName, "?")
	dims := 0
	if rest, ok := strings.CutPrefix(typeName, "_"); ok {
		typeName, dims = rest, 1
	}
	var typ types.Type
	if typeName == "char" {
		// The type "char", which as a bare word means character(1).
		if typ = types.TChar; dims == 1 {
			typ = typ.ArrayOf()
		}
	} else {
		var err error
		if typ, err = types.Lookup(typeName, nil, dims); err != nil {
			panic(fmt.Sprintf("columns.txt: %s: %v", name, err))
		}
	}
	d := t.desc
	t.ordinals[name] = len(d.Columns)
	d.Columns = append(d.Columns, catalog.ColumnDescriptor{ID: uint32(len(d.Columns) + 1), Name: name, Type: typ, NotNull: !nullable})
	zero := types.Null
	if !nullable {
		zero = zeroOf(typ)
	}
	t.template = append(t.template, zero)
}

// tableOIDNumber becomes -6 in 16 bits, the number that PostgreSQL gives the column.
const tableOIDNumber = 1<<16 - 6

// addTableOID adds the system column that has the table's OID.
func (t *systemTable) addTableOID() {
	d := t.desc
	d.Columns = append(d.Columns, catalog.ColumnDescriptor{ID: tableOIDNumber, Name: "tableoid", Type: types.TOid, NotNull: true, Hidden: true})
	t.template = append(t.template, types.Int(int64(d.ID)))
}

// zeroOf is what a NOT NULL column shows where percodb has nothing to say.
func zeroOf(t types.Type) types.Datum {
	if t.IsVector() {
		return types.Vector(t, nil)
	}
	switch t.KindOf() {
	case types.KindBool:
		return types.Bool(false)
	case types.KindInt:
		return types.Int(0)
	case types.KindFloat:
		return types.Float(0)
	case types.KindArray:
		return types.NewArray(&types.Array{Elem: t.Elem()})
	}
	return types.Text("")
}

// scan is one reading of a system table. One goroutine's.
type scan struct {
	catalog.Resolver
	ctx   context.Context
	view  catalog.SystemView
	table *systemTable
	kinds map[uint64]byte // relkind of system tables
	yield func(types.Row) error
	row   types.Row
	// reader is the access of the role that reads.
	reader *catalog.Access
}

// col is a column's value in a row being made.
type col struct {
	name  string
	value types.Datum
}

// emit yields a row of defaults with the given columns set.
func (s *scan) emit(cols ...col) error {
	copy(s.row, s.table.template)
	for i := range cols {
		ord, ok := s.table.ordinals[cols[i].name]
		if !ok {
			panic("pgcatalog: " + s.table.desc.Name + " has no column " + cols[i].name)
		}
		s.row[ord] = cols[i].value
	}
	return s.yield(s.row)
}

func text(v string) types.Datum      { return types.Text(v) }
func oid[T ~uint32](v T) types.Datum { return types.Int(int64(v)) }
func num[T ~int | ~int16 | ~int32 | ~int64 | ~uint32 | ~uint64](v T) types.Datum {
	return types.Int(int64(v))
}
func boolean(v bool) types.Datum { return types.Bool(v) }

// optional is v, or NULL when it is empty.
func optional(v string) types.Datum {
	if v == "" {
		return types.Null
	}
	return types.Text(v)
}

// int2s and oids make the arrays in which PostgreSQL keeps lists of columns and of objects.
func int2s(values []int64) types.Datum { return intArray(types.TInt2, values) }
func oids(values []int64) types.Datum  { return intArray(types.TOid, values) }

// vector makes an int2vector or oidvector.
func vector(t types.Type, values []int64) types.Datum {
	elems := make([]types.Datum, len(values))
	for i, v := range values {
		elems[i] = types.Int(v)
	}
	return types.Vector(t, elems)
}

func intArray(elem types.Type, values []int64) types.Datum {
	a := &types.Array{Elem: elem, Elems: make([]types.Datum, len(values))}
	for i, v := range values {
		a.Elems[i] = types.Int(v)
	}
	return types.NewArray(a)
}

func textArray(values []string) types.Datum {
	a := &types.Array{Elem: types.TText, Elems: make([]types.Datum, len(values))}
	for i, v := range values {
		a.Elems[i] = types.Text(v)
	}
	return types.NewArray(a)
}

func yesNo(v bool) types.Datum {
	if v {
		return types.Text("YES")
	}
	return types.Text("NO")
}

// each calls f with every relation.
func (s *scan) each(f func(t *catalog.TableDescriptor) error) error {
	all, err := s.Relations(s.ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if err := f(t); err != nil {
			return err
		}
	}
	return nil
}

// eachIndex calls f with every index that clients see.
func (s *scan) eachIndex(f func(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) error) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		for _, ix := range visibleIndexes(t) {
			if err := f(t, ix); err != nil {
				return err
			}
		}
		return nil
	})
}

// visibleIndexes are a table's indexes but the one over the hidden rowid.
func visibleIndexes(t *catalog.TableDescriptor) []*catalog.IndexDescriptor {
	var all []*catalog.IndexDescriptor
	if t.HasPrimaryKey() {
		all = append(all, &t.Primary)
	}
	for i := range t.Indexes {
		all = append(all, &t.Indexes[i])
	}
	for i := range t.Builds {
		if t.Builds[i].KeepInvalid { // Others appear when they are complete.
			all = append(all, &t.Builds[i].Index)
		}
	}
	return all
}

// schemaOID returns a schema's OID, 0 when it is not known.
func schemaOID(r catalog.Resolver, name string) uint32 {
	if d, ok := r.(catalog.SchemaDetails); ok {
		return d.SchemaOID(name)
	}
	return 0
}
