package builtin

import "github.com/percodb/percodb/sql/types"

// accessMethod is what an index method can do, as PostgreSQL's have it.
type accessMethod struct {
	order, unique, columns, exclude, include bool // of the method
	cluster, index, bitmap, backward         bool // of its indexes
	returnable, searchArray, searchNulls     bool // of their columns
}

// accessMethods are PostgreSQL's index methods by OID. None of percodb's indexes is in the order of distances.
var accessMethods = map[int64]accessMethod{
	403: {order: true, unique: true, columns: true, exclude: true, include: true, cluster: true, index: true, bitmap: true, backward: true,
		returnable: true, searchArray: true, searchNulls: true}, // btree
	405:  {exclude: true, index: true, bitmap: true, backward: true},                                                 // hash
	783:  {columns: true, exclude: true, include: true, cluster: true, index: true, bitmap: true, searchNulls: true}, // gist
	2742: {columns: true, bitmap: true},                                                                              // gin
	4000: {exclude: true, include: true, index: true, bitmap: true, searchNulls: true},                               // spgist
	3580: {columns: true, bitmap: true, searchNulls: true},                                                           // brin
}

// indexPropertyFuncs declares the functions that tell what indexes and their methods can do.
func indexPropertyFuncs() []decl {
	return []decl{
		{sig: "pg_indexam_has_property(oid,text) bool", flags: stable, fn: fn2(func(method, name types.Datum) (types.Datum, error) {
			m, ok := accessMethods[method.Int()]
			if !ok {
				return types.Null, nil
			}
			return property(name, map[string]bool{
				"can_order": m.order, "can_unique": m.unique, "can_multi_col": m.columns, "can_exclude": m.exclude, "can_include": m.include,
			})
		})},
		{sig: "pg_index_has_property(regclass,text) bool", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			m, ok, err := methodOfIndex(env, a[0])
			if !ok {
				return types.Null, err
			}
			return property(a[1], map[string]bool{"clusterable": m.cluster, "index_scan": m.index, "bitmap_scan": m.bitmap, "backward_scan": m.backward})
		}},
		{sig: "pg_index_column_has_property(regclass,int4,text) bool", flags: stable, fn: indexColumnProperty},
	}
}

// property returns the property of a name, NULL if there is none.
func property(name types.Datum, all map[string]bool) (types.Datum, error) {
	if has, ok := all[name.Text()]; ok {
		return types.Bool(has), nil
	}
	return types.Null, nil
}

// methodOfIndex returns the method of an index; false if the relation is none.
func methodOfIndex(env *Env, relation types.Datum) (accessMethod, bool, error) {
	row, err := systemRow(env, "pg_class", "oid", relation.Int())
	if err != nil || row == nil {
		return accessMethod{}, false, err
	}
	m, ok := accessMethods[row["relam"].Int()]
	return m, ok, nil
}

// indexColumnProperty is pg_index_column_has_property.
func indexColumnProperty(env *Env, a []types.Datum) (types.Datum, error) {
	m, ok, err := methodOfIndex(env, a[0])
	if !ok {
		return types.Null, err
	}
	row, err := systemRow(env, "pg_index", "indexrelid", a[0].Int())
	column := a[1].Int()
	if err != nil || row == nil || column < 1 || column > row["indnatts"].Int() {
		return types.Null, err
	}
	key, option := column <= row["indnkeyatts"].Int(), int64(0)
	if options := row["indoption"].Array().Elems; key && int(column) <= len(options) {
		option = options[column-1].Int()
	}
	const descending, nullsFirst = 1, 2
	ordered := key && m.order
	return property(a[2], map[string]bool{
		"asc": ordered && option&descending == 0, "desc": ordered && option&descending != 0,
		"nulls_first": ordered && option&nullsFirst != 0, "nulls_last": ordered && option&nullsFirst == 0,
		"orderable": ordered, "distance_orderable": false, "returnable": m.returnable,
		"search_array": key && m.searchArray, "search_nulls": key && m.searchNulls,
	})
}
