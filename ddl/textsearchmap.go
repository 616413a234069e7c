package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/tsparser"
	"github.com/percodb/percodb/sql/types"
)

// alterMapping changes which dictionaries a configuration consults for which tokens.
func (r *run) alterMapping(ctx context.Context, d *catalog.TextSearchDescriptor, n *ast.AlterTextSearch) error {
	kinds, err := tokenKinds(n.Tokens)
	if err != nil {
		return err
	}
	if n.Action == "DROP" {
		return r.dropMapping(d, kinds, n.IfExists)
	}
	var dictionaries []uint32
	for _, name := range n.Dictionaries {
		oid, err := r.textSearchOID(ctx, types.OIDRegdictionary, name)
		if err != nil {
			return err
		}
		dictionaries = append(dictionaries, oid)
	}
	if len(n.Replace) > 0 {
		return r.replaceMapping(ctx, d, kinds, n.Replace, dictionaries[0])
	}
	for _, kind := range kinds {
		if n.Action == "ADD" && len(d.Dictionaries(kind)) > 0 {
			return pgerror.New(pgerror.UniqueViolation, "duplicate key value violates unique constraint %q", "pg_ts_config_map_index").
				WithDetail("Key (mapcfg, maptokentype, mapseqno)=(%d, %d, 1) already exists.", d.ID, kind)
		}
		d.Map(kind, dictionaries)
	}
	return nil
}

// tokenKinds returns the numbers of the kinds of tokens with these names, each once.
func tokenKinds(names []string) ([]int, error) {
	var kinds []int
	for _, name := range names {
		i := slices.IndexFunc(tsparser.Kinds[:], func(k tsparser.KindInfo) bool { return k.Name == name })
		if i < 0 {
			return nil, pgerror.New(pgerror.InvalidParameterValue, "token type %q does not exist", name)
		}
		if !slices.Contains(kinds, i+1) {
			kinds = append(kinds, i+1)
		}
	}
	return kinds, nil
}

func (r *run) dropMapping(d *catalog.TextSearchDescriptor, kinds []int, ifExists bool) error {
	for _, kind := range kinds {
		name := tsparser.Kinds[kind-1].Name
		switch {
		case len(d.Dictionaries(kind)) > 0:
			d.Map(kind, nil)
		case ifExists:
			r.noticeAbsent("mapping for token type %q does not exist, skipping", name)
		default:
			return pgerror.New(pgerror.UndefinedObject, "mapping for token type %q does not exist", name)
		}
	}
	return nil
}

// replaceMapping puts one dictionary in the place of another one, for some kinds of tokens or, if none is given, for all.
func (r *run) replaceMapping(ctx context.Context, d *catalog.TextSearchDescriptor, kinds []int, replaced []string, by uint32) error {
	old, err := r.textSearchOID(ctx, types.OIDRegdictionary, replaced)
	if err != nil {
		return err
	}
	for _, m := range d.Mappings {
		if len(kinds) > 0 && !slices.Contains(kinds, m.Kind) {
			continue
		}
		for i := range m.Dictionaries {
			if m.Dictionaries[i] == old {
				m.Dictionaries[i] = by
			}
		}
	}
	return nil
}
